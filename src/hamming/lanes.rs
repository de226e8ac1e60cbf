//! A vector of 64-bit lanes: what the forms need of a level's instructions.

use bytemuck::{Pod, Zeroable, cast_slice};

/// A vector. Whoever has one has a CPU that can work with it: making one takes the level's proof.
pub(super) trait Lanes: Copy {
    /// The level.
    type Proof: Copy;
    /// The vector in memory: an array of words, one for each lane.
    type Words: Pod;
    /// How many lanes there are.
    const COUNT: usize = size_of::<Self::Words>() / 8;

    fn load(proof: Self::Proof, words: &Self::Words) -> Self;
    fn store(self, words: &mut Self::Words);
    fn splat(proof: Self::Proof, word: u64) -> Self;

    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    fn shift_left(self, by: u32) -> Self;
    fn shift_right(self, by: u32) -> Self;
    fn is_ones(self) -> bool;

    /// The sum and the carry of three bits, in every position.
    #[inline(always)]
    fn add(self, b: Self, c: Self) -> (Self, Self) {
        let half = self.xor(b);
        (half.xor(c), self.and(b).or(half.and(c)))
    }

    /// How many bits are one, in parts of a lane that the level is good at: bytes or whole lanes.
    fn count_ones(self) -> Self;
    /// Adds such counts. A byte has room for those of 31 vectors.
    fn plus(self, other: Self) -> Self;
    /// The sum of such counts in each lane.
    fn totals(self) -> Self;
    /// The sum of all lanes.
    #[inline(always)]
    fn sum(self) -> u64 {
        let mut words = Self::Words::zeroed();
        self.store(&mut words);
        cast_slice::<_, u64>(&[words]).iter().sum()
    }
    /// The sums of neighboring lanes: first those of `self`, then those of `other`.
    fn pair_sums(self, other: Self) -> Self;
    /// Bit `i` says whether lane `i` is at most `threshold`.
    fn at_most(self, threshold: u32) -> u64;
    /// Bit `i` says whether lane `i` is zero.
    fn zeros(self) -> u64;
    /// Bit `i` says whether half `i` of the lanes (32 bits each, in their order in memory) has at most `threshold` ones.
    fn halves_at_most(self, threshold: u32) -> u64;
}
