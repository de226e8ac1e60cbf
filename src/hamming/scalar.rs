//! Plain words: the definition of right. The other levels compile the same functions with their own instructions, or
//! are tested against them.

use super::{Level, sliced};

/// No proof needed: every CPU has words.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scalar;

impl Level for Scalar {
    type Lanes = u64;

    fn distance(self, a: &[u64], b: &[u64]) -> u32 {
        distance(a, b)
    }

    fn distances(self, query: &[u64], rows: &[u64], out: &mut [u32]) {
        distances(query, rows, out);
    }

    fn within(self, query: &[u64], rows: &[u64], threshold: u32, masks: &mut [u64]) {
        within(query, rows, threshold, masks);
    }

    fn slice_step(self, block: &mut sliced::Block<'_, u64>) {
        block.slice_step(self);
    }

    fn within_sliced(self, task: sliced::Task<'_>) {
        task.run(self);
    }
}

impl sliced::Lanes for u64 {
    type Proof = Scalar;
    type Words = [u64; 1];

    #[inline(always)]
    fn load(_: Scalar, words: &[u64; 1]) -> Self {
        words[0]
    }

    #[inline(always)]
    fn store(self, words: &mut [u64; 1]) {
        words[0] = self;
    }

    #[inline(always)]
    fn splat(_: Scalar, word: u64) -> Self {
        word
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        self & other
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        self | other
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        self ^ other
    }

    #[inline(always)]
    fn shift_left(self, by: u32) -> Self {
        self << by
    }

    #[inline(always)]
    fn shift_right(self, by: u32) -> Self {
        self >> by
    }

    #[inline(always)]
    fn is_ones(self) -> bool {
        self == !0
    }
}

/// How many bits of two rows differ.
#[inline(always)]
pub(super) fn distance(a: &[u64], b: &[u64]) -> u32 {
    a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum()
}

/// The distance of each row to the query.
#[inline(always)]
pub(super) fn distances(query: &[u64], rows: &[u64], out: &mut [u32]) {
    match query.len() {
        1 => distances_fixed::<1>(query, rows, out),
        2 => distances_fixed::<2>(query, rows, out),
        4 => distances_fixed::<4>(query, rows, out),
        8 => distances_fixed::<8>(query, rows, out),
        16 => distances_fixed::<16>(query, rows, out),
        words => {
            for (row, out) in rows.chunks_exact(words).zip(out) {
                *out = distance(query, row);
            }
        }
    }
}

/// The same with a width known to the compiler, which then unrolls the row.
#[inline(always)]
fn distances_fixed<const WORDS: usize>(query: &[u64], rows: &[u64], out: &mut [u32]) {
    let query: &[u64; WORDS] = query.try_into().expect("the caller matched the width");
    for (row, out) in rows.as_chunks::<WORDS>().0.iter().zip(out) {
        *out = distance(query, row);
    }
}

/// Bit `i` of mask `m` says whether row `64 m + i` is within the threshold.
#[inline(always)]
pub(super) fn within(query: &[u64], rows: &[u64], threshold: u32, masks: &mut [u64]) {
    let mut out = [0; 64];
    for (rows, mask) in rows.chunks(64 * query.len()).zip(masks) {
        let out = &mut out[..rows.len() / query.len()];
        distances(query, rows, out);
        *mask = mask_of(out, threshold);
    }
}

/// Bit `i` says whether distance `i` is within the threshold.
#[inline(always)]
fn mask_of(distances: &[u32], threshold: u32) -> u64 {
    let bits = distances.iter().enumerate();
    bits.fold(0, |mask, (i, &distance)| mask | u64::from(distance <= threshold) << i)
}
