//! Numbers that look random and are the same in every run: what samples and permutations are made with.

/// A small generator of numbers (splitmix64): the same ones in every run.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub(super) fn below(&mut self, end: u32) -> u32 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u32
    }

    /// Ones in so many places of `bits`, each choice as likely as any other.
    pub(super) fn differ_in(&mut self, ones: u32, bits: u32, words: &mut [u64]) {
        words.fill(0);
        let is_one = |words: &[u64], bit: u32| words[bit as usize / 64] << (bit % 64) >> 63 == 1;
        // Floyd's way: a place that is already taken gives the last one that became possible.
        for last in bits - ones..bits {
            let bit = self.below(last + 1);
            let bit = if is_one(words, bit) { last } else { bit };
            words[bit as usize / 64] |= 1 << (63 - bit % 64);
        }
    }
}

/// At most so many numbers below `len`, evenly spread.
pub(super) fn spread(len: usize, most: usize) -> Vec<usize> {
    let taken = len.min(most);
    (0..taken).map(|i| i * len / taken).collect()
}
