//! The nearest nodes that a walk has met, and which of them it goes to next.
//!
//! Distances are small whole numbers, so nodes lie in a bucket for each: whoever is added or taken moves no other. To keep
//! them sorted in a list took twice as long as all distances.

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

/// Which nodes were added: all of them, as long as they are.
#[derive(Debug, Default)]
struct Added {
    slots: Vec<u32>,
    len: usize,
}

/// Slots for each node that is kept: several times as many are added.
const SLOTS: usize = 16;
const FEWEST_SLOTS: usize = 1 << 10;

impl Added {
    fn clear(&mut self, width: usize) {
        let slots = (width * SLOTS).next_power_of_two().max(FEWEST_SLOTS);
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
        refill(&mut self.slots, 2 * nodes.len().next_power_of_two() * 2, NONE);
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

    proptest! {
        /// As a sorted list would: nearest first, none twice, none farther than the last that is kept.
        #[test]
        fn a_pool_keeps_the_nearest(
            width in 1_usize..40,
            nodes in prop::collection::vec(0_u32..3000, 0..2500),
        ) {
            let mut pool = Pool::default();
            pool.clear(width, 64);
            let mut list: Vec<Met> = nodes.iter().map(|&node| Met::new(node * 7 % 65, node)).collect();
            list.iter().for_each(|&met| pool.add(met));
            list.sort_unstable();
            list.dedup();
            let mut found = Vec::new();
            pool.nearest(width, &mut found);
            prop_assert!(found.len() >= width.min(list.len()));
            // Of those that are as near as the last, some may be missing.
            let last = list.get(width - 1).map_or(65, |met| met.distance());
            let nearer = list.partition_point(|met| met.distance() < last);
            prop_assert_eq!(&found[..nearer], &list[..nearer]);
            prop_assert!(found[nearer..].iter().all(|met| met.distance() == last && list.contains(met)));
            prop_assert!(found.is_sorted_by(|a, b| a < b));
            // Whoever is taken is the nearest of those that are left.
            let mut taken = Vec::new();
            while let Some(node) = pool.take() {
                taken.push(*list.iter().find(|met| met.node() == node).unwrap());
            }
            prop_assert!(taken.is_sorted_by_key(|met| met.distance()));
            taken.sort_unstable();
            prop_assert_eq!(taken, found);
        }
    }
}
