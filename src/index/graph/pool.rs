//! The nearest nodes that a walk has met, and which of them it goes to next.
//!
//! Distances are small whole numbers, so nodes lie in a bucket for each: whoever is added or taken moves no other. To keep
//! them sorted in a list took a quarter of a walk.

use super::nodes::NONE;

/// A node that was met: its distance and its number. Sorted by distance, then by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Met(u64);

impl Met {
    #[inline(always)]
    pub(super) fn new(distance: u32, node: u32) -> Self {
        Met(u64::from(distance) << 32 | u64::from(node))
    }

    #[inline(always)]
    pub(super) fn distance(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline(always)]
    pub(super) fn node(self) -> u32 {
        self.0 as u32
    }
}

/// What a walk keeps: so many of the nearest, and some of those that are as near as the last of them.
#[derive(Debug, Default)]
pub(super) struct Pool {
    width: usize,
    /// All that were added, also those that are too far by now.
    met: Vec<Met>,
    /// Of each of them the next in the same bucket.
    behind: Vec<u32>,
    /// By distance: the first of those that the walk has not gone to.
    left: Vec<u32>,
    /// By distance, a bit: whether there are any.
    has_left: Vec<u64>,
    /// By distance: how many were added.
    counts: Vec<u32>,
    /// The distance of the farthest that are kept.
    worst: usize,
    /// How many are kept.
    kept: usize,
    added: Added,
}

impl Pool {
    /// Makes room for the nearest nodes of a query.
    pub(super) fn clear(&mut self, width: usize, bits: usize) {
        self.width = width.max(1);
        self.met.clear();
        self.behind.clear();
        refill(&mut self.left, bits + 1, NONE);
        refill(&mut self.has_left, bits / 64 + 1, 0);
        refill(&mut self.counts, bits + 1, 0);
        self.worst = bits;
        self.kept = 0;
        self.added.clear(self.width);
    }

    /// Adds a node, if it is near enough and not there.
    #[inline(always)]
    pub(super) fn add(&mut self, met: Met) {
        let distance = met.distance() as usize;
        let limit = self.worst + usize::from(self.kept < self.width);
        if distance >= limit || !self.added.insert(met.node()) {
            return;
        }
        self.behind.push(self.left[distance]);
        self.left[distance] = self.met.len() as u32;
        self.met.push(met);
        self.has_left[distance / 64] |= 1 << (distance % 64);
        self.counts[distance] += 1;
        self.kept += 1;
        while self.kept - self.counts[self.worst] as usize >= self.width {
            self.kept -= self.counts[self.worst] as usize;
            self.worst -= 1;
        }
    }

    /// The nearest that the walk has not gone to.
    #[inline(always)]
    pub(super) fn take(&mut self) -> Option<u32> {
        let distance = self.left_from(0)?;
        let first = self.left[distance] as usize;
        self.left[distance] = self.behind[first];
        if self.behind[first] == NONE {
            self.has_left[distance / 64] &= !(1 << (distance % 64));
        }
        Some(self.met[first].node())
    }

    /// Shows the next nodes that would be taken, at most so many.
    #[inline(always)]
    pub(super) fn peek(&self, most: usize, mut each: impl FnMut(u32)) {
        let (mut shown, mut from) = (0, 0);
        while let Some(distance) = self.left_from(from) {
            let mut at = self.left[distance];
            while at != NONE {
                if shown == most {
                    return;
                }
                each(self.met[at as usize].node());
                shown += 1;
                at = self.behind[at as usize];
            }
            from = distance + 1;
        }
    }

    /// The least distance, not less than that, of nodes that are kept and that the walk has not gone to.
    #[inline(always)]
    fn left_from(&self, from: usize) -> Option<usize> {
        let mut word = from / 64;
        let mut bits = self.has_left.get(word)? & !0 << (from % 64);
        while bits == 0 {
            word += 1;
            bits = *self.has_left.get(word)?;
        }
        let distance = word * 64 + bits.trailing_zeros() as usize;
        (distance <= self.worst).then_some(distance)
    }

    /// The nearest that are kept, nearest first: so many, if there are, and those that are as near as the last of them.
    pub(super) fn nearest(&self, enough: usize, found: &mut Vec<Met>) {
        let mut sum = 0;
        let counts = self.counts[..=self.worst].iter();
        let farthest = counts.take_while(|&&count| {
            let goes_on = sum < enough;
            sum += count as usize;
            goes_on
        });
        let end = farthest.count() as u32;
        found.clear();
        found.extend(self.met.iter().filter(|met| met.distance() < end));
        found.sort_unstable();
    }
}

/// Which nodes were added.
#[derive(Debug, Default)]
struct Added {
    slots: Vec<u32>,
    len: usize,
}

/// Slots for each node that is kept, to begin with: several times as many are added.
const SLOTS: usize = 16;
const FEWEST_SLOTS: usize = 1 << 10;
const MOST_SLOTS: usize = 1 << 16;

impl Added {
    fn clear(&mut self, width: usize) {
        let slots = width.saturating_mul(SLOTS).clamp(FEWEST_SLOTS, MOST_SLOTS).next_power_of_two();
        refill(&mut self.slots, slots, NONE);
        self.len = 0;
    }

    /// Adds a node, if it is not there.
    #[inline(always)]
    fn insert(&mut self, node: u32) -> bool {
        let slots = &mut self.slots[..];
        // The upper bits of the product, times the slots.
        let hash = u64::from(node.wrapping_mul(0x9e37_79b1));
        let mut at = ((hash * slots.len() as u64) >> 32) as usize;
        while slots[at] != NONE {
            if slots[at] == node {
                return false;
            }
            at = (at + 1) & (slots.len() - 1);
        }
        slots[at] = node;
        self.len += 1;
        if self.len * 2 > slots.len() {
            self.grow();
        }
        true
    }

    #[cold]
    fn grow(&mut self) {
        let nodes: Vec<u32> = self.slots.iter().copied().filter(|&node| node != NONE).collect();
        let slots = self.slots.len() * 4;
        refill(&mut self.slots, slots, NONE);
        self.len = 0;
        nodes.into_iter().for_each(|node| {
            self.insert(node);
        });
    }
}

/// So many cells with the same value.
pub(super) fn refill<T: Copy>(cells: &mut Vec<T>, len: usize, value: T) {
    cells.clear();
    cells.resize(len, value);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::features::hash::mix;

    /// The distance of a node, as if by chance.
    fn distance(node: u32) -> u32 {
        (mix(u64::from(node)) % 257) as u32
    }

    proptest! {
        /// As a sorted list would, whatever is taken in between: nearest first, none twice, nothing that is too far.
        #[test]
        fn a_pool_keeps_the_nearest(
            width in 1_usize..40,
            enough in 1_usize..50,
            steps in prop::collection::vec((0_u32..3000, prop::bool::weighted(0.3)), 0..1500),
        ) {
            let mut pool = Pool::default();
            pool.clear(width, 256);
            let (mut list, mut taken) = (Vec::new(), Vec::new());
            for (node, takes) in steps {
                let met = Met::new(distance(node), node);
                pool.add(met);
                list.push(met);
                list.sort_unstable();
                list.dedup();
                if takes && let Some(node) = pool.take() {
                    let left = list.iter().filter(|met| !taken.contains(&met.node()));
                    prop_assert_eq!(Some(distance(node)), left.map(|met| met.distance()).min());
                    taken.push(node);
                }
            }
            let mut found = Vec::new();
            pool.nearest(enough, &mut found);
            prop_assert!(found.len() >= enough.min(width).min(list.len()));
            prop_assert!(found.is_sorted_by(|a, b| a < b));
            // Of those that are as near as the last, some may be missing.
            let last = list.get(enough.min(width) - 1).map_or(257, |met| met.distance());
            let nearer = list.partition_point(|met| met.distance() < last);
            prop_assert_eq!(&found[..nearer], &list[..nearer]);
            prop_assert!(found[nearer..].iter().all(|met| met.distance() == last && list.contains(met)));
        }
    }

    #[test]
    fn many_are_known() {
        let mut added = Added::default();
        added.clear(1);
        let mut known = std::collections::HashSet::new();
        for node in (0..20_000).chain(5000..25_000) {
            assert_eq!(added.insert(node), known.insert(node), "{node}");
        }
        assert_eq!(added.len, 25_000);
    }
}
