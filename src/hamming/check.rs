//! The check of rows that a table led to: short stretches of rows, each against one query.

use bytemuck::{cast_slice, pod_read_unaligned};

use super::{PairTask, direct, lanes::Lanes};

/// How many bytes behind the last row may be read, and must be there.
pub const READ_PAST: usize = 64;

/// Rows to compare with a query.
#[derive(Debug, Clone, Copy)]
pub struct Stretch {
    /// What the rows are compared with.
    pub query: u64,
    /// The first row.
    pub start: u32,
    /// The end of the rows.
    pub end: u32,
    /// How many bits may differ.
    pub allowed: u32,
    /// Whatever the caller wants to find the stretch by.
    pub tag: u32,
}

/// A row that is near.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Near {
    /// The stretch it is in.
    pub stretch: u32,
    /// The row.
    pub row: u32,
}

/// A row and a query, both of several words.
#[derive(Debug, Clone, Copy)]
pub struct Pair {
    /// The number of the query.
    pub query: u32,
    /// The number of the row.
    pub row: u32,
}

impl Stretch {
    /// Where the vectors of so many lanes begin that have all its rows. They begin at multiples of their size: then they
    /// touch no line of the cache that has none of the rows.
    #[inline(always)]
    fn vectors(&self, lanes: usize) -> impl Iterator<Item = usize> + use<> {
        let first = self.start as usize & !(lanes - 1);
        let end = if self.start < self.end { self.end as usize } else { first };
        (first..end).step_by(lanes)
    }

    /// Which lanes of the vector that begins at `at`, of at most 16, are rows of the stretch.
    #[inline(always)]
    fn lanes(&self, at: usize) -> u64 {
        let (start, end) = ((self.start as usize).saturating_sub(at), self.end as usize - at);
        ((1 << end.min(63)) - 1) & (u64::MAX << start)
    }
}

/// Rows of one word.
#[inline(always)]
pub(super) fn whole<L: Lanes>(
    proof: L::Proof,
    stretches: &[Stretch],
    rows: &[u64],
    found: &mut Vec<Near>,
) {
    for (stretch, asked) in stretches.iter().enumerate() {
        let query = L::splat(proof, asked.query);
        for at in asked.vectors(L::COUNT) {
            let words: &L::Words = &cast_slice(&rows[at..at + L::COUNT])[0];
            let counts = query.xor(L::load(proof, words)).count_ones().totals();
            push(stretch, at, counts.at_most(asked.allowed) & asked.lanes(at), found);
        }
    }
}

/// The first 32 bits of rows whose further bits are elsewhere.
#[inline(always)]
pub(super) fn halves<L: Lanes>(
    proof: L::Proof,
    stretches: &[Stretch],
    rows: &[u32],
    found: &mut Vec<Near>,
) {
    for (stretch, asked) in stretches.iter().enumerate() {
        let half = asked.query & u64::from(u32::MAX);
        let query = L::splat(proof, half << 32 | half);
        for at in asked.vectors(2 * L::COUNT) {
            let words = pod_read_unaligned(cast_slice(&rows[at..at + 2 * L::COUNT]));
            let near = query.xor(L::load(proof, &words)).halves_at_most(asked.allowed);
            push(stretch, at, near & asked.lanes(at), found);
        }
    }
}

/// Rows of several words, each with its own query.
#[inline(always)]
pub(super) fn pairs<L: Lanes>(proof: L::Proof, task: PairTask<'_>) {
    let PairTask { pairs, queries, rows, stride, radius, found } = task;
    for (i, pair) in pairs.iter().enumerate() {
        let query = &queries[pair.query as usize * stride..][..stride];
        let row = &rows[pair.row as usize * stride..][..stride];
        let distance = direct::distance::<L>(proof, query, row);
        if distance <= radius {
            found.push((i as u32, distance));
        }
    }
}

#[inline(always)]
fn push(stretch: usize, start: usize, mut near: u64, found: &mut Vec<Near>) {
    while near != 0 {
        let row = start as u32 + near.trailing_zeros();
        found.push(Near { stretch: stretch as u32, row });
        near &= near - 1;
    }
}
