//! How often each feature occurs in a text.

use super::hash::HashWords;

/// A feature and how often it occurs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// Its hash.
    pub hash: HashWords,
    /// How often it occurs.
    pub count: u32,
}

/// The distinct features of a text in the order of their first occurrence.
///
/// An open table of positions: features are told apart by the first word of their hash, whose leading bits say where to
/// look. It is never more than half full.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    counted: Vec<Counted>,
    /// Position in `counted` plus 1; 0 is free.
    slots: Vec<u32>,
    shift: u32,
    total: u64,
}

impl Counts {
    /// Forgets everything and makes room for about `expected` distinct features; it grows where that is not enough.
    pub fn reset(&mut self, expected: usize) {
        self.counted.clear();
        self.total = 0;
        self.make_slots(expected.min(1 << 16));
    }

    /// Counts one occurrence.
    #[inline]
    pub fn add(&mut self, hash: HashWords) {
        self.total += 1;
        let mut slot = (hash[0] >> self.shift) as usize;
        loop {
            match self.slots[slot] {
                0 => break,
                position => {
                    let counted = &mut self.counted[position as usize - 1];
                    if counted.hash[0] == hash[0] {
                        counted.count = counted.count.saturating_add(1);
                        return;
                    }
                }
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        self.counted.push(Counted { hash, count: 1 });
        self.slots[slot] = self.counted.len() as u32;
        if self.counted.len() * 2 > self.slots.len() {
            self.grow();
        }
    }

    /// The distinct features, by first occurrence.
    pub fn distinct(&self) -> &[Counted] {
        &self.counted
    }

    /// All occurrences of all features.
    pub fn total(&self) -> u64 {
        self.total
    }

    fn make_slots(&mut self, expected: usize) {
        let size = (expected * 2).next_power_of_two().max(16);
        self.shift = 64 - size.trailing_zeros();
        self.slots.clear();
        self.slots.resize(size, 0);
    }

    #[cold]
    fn grow(&mut self) {
        self.make_slots(self.counted.len() * 2);
        for (position, counted) in self.counted.iter().enumerate() {
            let mut slot = (counted.hash[0] >> self.shift) as usize;
            while self.slots[slot] != 0 {
                slot = (slot + 1) & (self.slots.len() - 1);
            }
            self.slots[slot] = position as u32 + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn counts_as_a_hash_map_does(hashes in prop::collection::vec(0..60_u64, 0..300), wide: bool) {
            // Narrow hashes all start with zeros, so that every one of them meets the others in the table.
            let hashes: Vec<u64> =
                hashes.iter().map(|&h| if wide { h << 58 } else { h }).collect();
            let mut counts = Counts::default();
            counts.reset(4);
            hashes.iter().for_each(|&hash| counts.add([hash, 0]));
            let mut expected = HashMap::new();
            hashes.iter().for_each(|&hash| *expected.entry(hash).or_insert(0) += 1);
            let found: HashMap<u64, u32> =
                counts.distinct().iter().map(|c| (c.hash[0], c.count)).collect();
            prop_assert_eq!(found.len(), counts.distinct().len());
            prop_assert_eq!(found, expected);
            prop_assert_eq!(counts.total(), hashes.len() as u64);
        }
    }
}
