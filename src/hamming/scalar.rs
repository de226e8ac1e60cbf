//! Plain words: the definition of right. The other levels compile the same functions with their own instructions, or
//! are tested against them.

use super::{
    Besides, Functions, InOrder, Level, Met, Near, PairTask, Probe, Stretch, check, lanes::Lanes,
    minima, shared, sliced,
};

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

    fn distances_of(self, query: &[u64], rows: &[u64], numbers: &[u32], out: &mut [u32]) {
        for (&number, out) in numbers.iter().zip(out) {
            *out = distance(query, &rows[number as usize * query.len()..][..query.len()]);
        }
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

    fn check_whole(
        self,
        of: &[Stretch],
        rows: &[u64],
        and: &mut Besides<'_>,
        found: &mut Vec<Near>,
    ) {
        check::whole::<u64>(self, of, rows, and, found);
    }

    fn check_halves(self, stretches: &[Stretch], rows: &[u32], found: &mut Vec<Near>) {
        check::halves::<u64>(self, stretches, rows, found);
    }

    fn check_lines(
        self,
        of: &[Probe],
        lines: &[u64],
        and: &mut Besides<'_>,
        found: &mut Vec<Near>,
    ) {
        check::lines::<u64>(self, of, lines, and, found);
    }

    fn check_pairs(self, task: PairTask<'_>) {
        check::pairs::<u64>(self, task);
    }

    fn check_in_order(self, task: InOrder<'_>, found: &mut Vec<Met>) {
        check::in_order::<u64>(self, task, found);
    }

    fn minima(self, set: &[u32], functions: &Functions, minima: &mut [u32]) {
        minima::lower(set, functions, minima);
    }

    fn bits_of_minima(self, minima: &[u32], words: &mut [u64]) {
        minima::bits(minima, words);
    }

    fn keys_of_minima(self, minima: &[u32], keys: &mut [u32]) {
        minima::keys(minima, keys);
    }

    fn shared(self, a: &[u32], b: &[u32], needed: usize) -> Option<usize> {
        shared::shared(a, b, needed)
    }
}

impl Lanes for u64 {
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

    #[inline(always)]
    fn count_ones(self) -> Self {
        u64::from(u64::count_ones(self))
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self + other
    }

    #[inline(always)]
    fn totals(self) -> Self {
        self
    }

    /// A single lane has no neighbor, and is never asked.
    #[inline(always)]
    fn pair_sums(self, _: Self) -> Self {
        self
    }

    #[inline(always)]
    fn at_most(self, threshold: u32) -> u64 {
        u64::from(self <= u64::from(threshold))
    }

    #[inline(always)]
    fn zeros(self) -> u64 {
        u64::from(self == 0)
    }

    #[inline(always)]
    fn halves_at_most(self, threshold: u32) -> u64 {
        let near = |half: u32| u64::from(half.count_ones() <= threshold);
        near(self as u32) | near((self >> 32) as u32) << 1
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
    for (row, out) in rows.chunks_exact(query.len()).zip(out) {
        *out = distance(query, row);
    }
}

/// Bit `i` of mask `m` says whether row `64 m + i` is within the threshold.
#[inline(always)]
pub(super) fn within(query: &[u64], rows: &[u64], threshold: u32, masks: &mut [u64]) {
    for (rows, mask) in rows.chunks(64 * query.len()).zip(masks) {
        let near = |row: &[u64]| u64::from(distance(query, row) <= threshold);
        let bits = rows.chunks_exact(query.len()).enumerate();
        *mask = bits.fold(0, |mask, (i, row)| mask | near(row) << i);
    }
}
