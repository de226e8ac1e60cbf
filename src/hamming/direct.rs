//! The direct form: one query against row after row, at the speed of memory.
//!
//! As many rows as a vector has lanes are counted together, so that their distances end up in one vector, in order.

use std::sync::atomic::{Ordering::SeqCst, compiler_fence};

use bytemuck::{Zeroable, cast_slice};

use super::{lanes::Lanes, scalar};

/// The most lanes of any level.
const MOST_LANES: usize = 8;
/// Vectors whose counts are added before they are summed: a byte has room for 31.
const PIECE: usize = 16;
/// Words of a cache line: memory is read in lines.
const LINE_WORDS: usize = 8;
/// First halves decide where at most so many of 64 rows remain.
const FEW: u32 = 8;

/// How many bits of two rows differ.
#[inline(always)]
pub(super) fn distance<L: Lanes>(proof: L::Proof, a: &[u64], b: &[u64]) -> u32 {
    let whole = a.len() / L::COUNT * L::COUNT;
    let ((a, a_rest), (b, b_rest)) = (a.split_at(whole), b.split_at(whole));
    let mut sum = scalar::distance(a_rest, b_rest);
    // Loops, no closures: those are compiled without the level's instructions, and each of these becomes a call.
    for (a, b) in cast_slice(a).chunks(PIECE).zip(cast_slice(b).chunks(PIECE)) {
        sum += piece::<L>(proof, a, b);
    }
    sum
}

#[inline(always)]
fn piece<L: Lanes>(proof: L::Proof, a: &[L::Words], b: &[L::Words]) -> u32 {
    let mut counts = L::splat(proof, 0);
    for (a, b) in a.iter().zip(b) {
        counts = counts.plus(count::<L>(proof, a, b));
    }
    counts.totals().sum() as u32
}

#[inline(always)]
fn count<L: Lanes>(proof: L::Proof, a: &L::Words, b: &L::Words) -> L {
    L::load(proof, a).xor(L::load(proof, b)).count_ones()
}

/// The distance of each row to the query.
#[inline(always)]
pub(super) fn distances<L: Lanes>(proof: L::Proof, query: &[u64], rows: &[u64], out: &mut [u32]) {
    match query.len() {
        1 => Fixed::<L, 1>::new(proof, query).distances(rows, out),
        2 => Fixed::<L, 2>::new(proof, query).distances(rows, out),
        4 => Fixed::<L, 4>::new(proof, query).distances(rows, out),
        8 => Fixed::<L, 8>::new(proof, query).distances(rows, out),
        16 => Fixed::<L, 16>::new(proof, query).distances(rows, out),
        words => {
            for (row, out) in rows.chunks_exact(words).zip(out) {
                *out = distance::<L>(proof, query, row);
            }
        }
    }
}

/// The distance of each of these rows to the query.
#[inline(always)]
pub(super) fn distances_of<L: Lanes>(
    proof: L::Proof,
    query: &[u64],
    rows: &[u64],
    numbers: &[u32],
    out: &mut [u32],
) {
    match query.len() {
        1 => distances_of_words::<1>(query, rows, numbers, out),
        2 => distances_of_words::<2>(query, rows, numbers, out),
        4 if L::COUNT > 4 => distances_of_words::<4>(query, rows, numbers, out),
        4 => distances_of_width::<L, 4>(proof, query, rows, numbers, out),
        8 => distances_of_width::<L, 8>(proof, query, rows, numbers, out),
        16 => distances_of_width::<L, 16>(proof, query, rows, numbers, out),
        words => {
            for (&number, out) in numbers.iter().zip(out) {
                *out = distance::<L>(proof, query, &rows[number as usize * words..][..words]);
            }
        }
    }
}

/// The same for rows that are less than a vector.
#[inline(always)]
fn distances_of_words<const WORDS: usize>(
    query: &[u64],
    rows: &[u64],
    numbers: &[u32],
    out: &mut [u32],
) {
    let query: &[u64; WORDS] = query.try_into().expect("the caller matched the width");
    for (&number, out) in numbers.iter().zip(out) {
        let row = &rows[number as usize * WORDS..][..WORDS];
        *out = query.iter().zip(row).map(|(a, b)| (a ^ b).count_ones()).sum();
    }
}

/// The same for rows of a width known to the compiler: a vector at least.
#[inline(always)]
fn distances_of_width<L: Lanes, const WORDS: usize>(
    proof: L::Proof,
    query: &[u64],
    rows: &[u64],
    numbers: &[u32],
    out: &mut [u32],
) {
    let words: &[L::Words] = cast_slice(query);
    let mut vectors = [L::splat(proof, 0); WORDS];
    for i in 0..WORDS / L::COUNT {
        vectors[i] = L::load(proof, &words[i]);
    }
    for (numbers, out) in numbers.chunks(L::COUNT).zip(out.chunks_mut(L::COUNT)) {
        let mut sums = [L::splat(proof, 0); MOST_LANES];
        for i in 0..L::COUNT {
            // The last few rows have the last of them in their place.
            let number = numbers[i.min(numbers.len() - 1)] as usize;
            let row: &[L::Words] = cast_slice(&rows[number * WORDS..][..WORDS]);
            let mut sum = vectors[0].xor(L::load(proof, &row[0])).count_ones();
            for vector in 1..WORDS / L::COUNT {
                sum = sum.plus(vectors[vector].xor(L::load(proof, &row[vector])).count_ones());
            }
            sums[i] = sum.totals();
        }
        let mut words = L::Words::zeroed();
        fold(&mut sums, L::COUNT).store(&mut words);
        for (out, &word) in out.iter_mut().zip(cast_slice::<_, u64>(&[words])) {
            *out = word as u32;
        }
    }
}

/// Adds the lanes of so many vectors in pairs until one vector has them all, in order.
#[inline(always)]
fn fold<L: Lanes>(sums: &mut [L; MOST_LANES], mut left: usize) -> L {
    while left > 1 {
        left /= 2;
        for i in 0..left {
            sums[i] = sums[2 * i].pair_sums(sums[2 * i + 1]);
        }
    }
    sums[0]
}

/// Bit `i` of mask `m` says whether row `64 m + i` is within the threshold.
#[inline(always)]
pub(super) fn within<L: Lanes>(
    proof: L::Proof,
    query: &[u64],
    rows: &[u64],
    threshold: u32,
    masks: &mut [u64],
) {
    match query.len() {
        1 => Fixed::<L, 1>::new(proof, query).within(rows, threshold, masks),
        2 => Fixed::<L, 2>::new(proof, query).within(rows, threshold, masks),
        4 => Fixed::<L, 4>::new(proof, query).within(rows, threshold, masks),
        8 => Fixed::<L, 8>::new(proof, query).within(rows, threshold, masks),
        16 => Fixed::<L, 16>::new(proof, query).within(rows, threshold, masks),
        32 => Fixed::<L, 32>::new(proof, query).within(rows, threshold, masks),
        words => {
            for (rows, mask) in rows.chunks(64 * words).zip(masks) {
                *mask = 0;
                for (i, row) in rows.chunks_exact(words).enumerate() {
                    *mask |= u64::from(distance::<L>(proof, query, row) <= threshold) << i;
                }
            }
        }
    }
}

/// A query of a width known to the compiler, which divides the lanes or is divided by them.
struct Fixed<L: Lanes, const WORDS: usize> {
    proof: L::Proof,
    query: [u64; WORDS],
    /// The query in vectors, repeated until it fills one.
    vectors: [L; WORDS],
}

impl<L: Lanes, const WORDS: usize> Fixed<L, WORDS> {
    /// Vectors of one row, or of the few rows that share one.
    const VECTORS: usize = if WORDS < L::COUNT { 1 } else { WORDS / L::COUNT };
    /// Vectors that remain for as many rows as there are lanes, after those of a row are added.
    const SUMS: usize = if WORDS < L::COUNT { WORDS } else { L::COUNT };

    #[inline(always)]
    fn new(proof: L::Proof, query: &[u64]) -> Self {
        let query: [u64; WORDS] = query.try_into().expect("the caller matched the width");
        let mut vectors = [L::splat(proof, 0); WORDS];
        // Loops, no closures, here as well: buckets of a few rows are many.
        for (i, vector) in vectors.iter_mut().enumerate().take(Self::VECTORS) {
            let mut words = [0; MOST_LANES];
            for (lane, word) in words.iter_mut().enumerate() {
                *word = query[(i * L::COUNT + lane) % WORDS];
            }
            *vector = L::load(proof, &cast_slice(&words)[0]);
        }
        Fixed { proof, query, vectors }
    }

    #[inline(always)]
    fn count(&self, vector: usize, words: &L::Words) -> L {
        self.vectors[vector].xor(L::load(self.proof, words)).count_ones()
    }

    /// How many bits of a row's first vectors differ from the query's, lane by lane.
    #[inline(always)]
    fn totals(&self, row: &[L::Words], vectors: usize) -> L {
        let mut sum = self.count(0, &row[0]);
        for (vector, words) in row.iter().enumerate().take(vectors).skip(1) {
            sum = sum.plus(self.count(vector, words));
        }
        sum.totals()
    }

    /// The distances of as many rows as there are lanes.
    #[inline(always)]
    fn lanes(&self, rows: &[L::Words]) -> L {
        assert_eq!(rows.len(), Self::SUMS * Self::VECTORS);
        let mut sums = [L::splat(self.proof, 0); MOST_LANES];
        for i in 0..Self::SUMS {
            sums[i] = self.totals(&rows[i * Self::VECTORS..], Self::VECTORS);
            // Rows must be read in order, or the CPU does not see that it will need the next ones.
            compiler_fence(SeqCst);
        }
        fold(&mut sums, Self::SUMS)
    }

    #[inline(always)]
    fn distances(&self, rows: &[u64], out: &mut [u32]) {
        let whole = out.len() / L::COUNT * L::COUNT;
        let groups = cast_slice(&rows[..whole * WORDS]).chunks_exact(Self::SUMS * Self::VECTORS);
        for (rows, out) in groups.zip(out.chunks_exact_mut(L::COUNT)) {
            let mut words = L::Words::zeroed();
            self.lanes(rows).store(&mut words);
            for (out, &word) in out.iter_mut().zip(cast_slice::<_, u64>(&[words])) {
                *out = word as u32;
            }
        }
        scalar::distances(&self.query, &rows[whole * WORDS..], &mut out[whole..]);
    }

    /// Whether a row of at least a vector is within the threshold.
    #[inline(always)]
    fn is_within(&self, row: &[L::Words], threshold: u32) -> u64 {
        u64::from(self.totals(row, Self::VECTORS).sum() <= u64::from(threshold))
    }

    /// Which of 64 rows are within the threshold.
    #[inline(always)]
    fn mask(&self, rows: &[u64], threshold: u32) -> u64 {
        let mut mask = 0;
        if WORDS < L::COUNT {
            let groups = cast_slice(rows).chunks_exact(Self::SUMS * Self::VECTORS);
            for (i, rows) in groups.enumerate() {
                mask |= self.lanes(rows).at_most(threshold) << (i * L::COUNT);
            }
        } else {
            for (i, row) in cast_slice(rows).chunks_exact(Self::VECTORS).enumerate() {
                mask |= self.is_within(row, threshold) << i;
            }
        }
        mask
    }

    /// The same for rows in two places, in turn: the CPU then has more of memory under way.
    #[inline(always)]
    fn masks(&self, here: &[u64], there: &[u64], threshold: u32) -> (u64, u64) {
        let here = cast_slice(here).chunks_exact(Self::VECTORS);
        let there = cast_slice(there).chunks_exact(Self::VECTORS);
        let mut masks = (0, 0);
        for (i, (here, there)) in here.zip(there).enumerate() {
            masks.0 |= self.is_within(here, threshold) << i;
            masks.1 |= self.is_within(there, threshold) << i;
        }
        masks
    }

    /// Which of 64 rows are within the threshold by their first half alone.
    #[inline(always)]
    fn half_mask(&self, rows: &[u64], threshold: u32) -> u64 {
        let mut mask = 0;
        // Eight rows a turn at every level: the CPU foresees the steps of each of eight loads, and so reads far ahead.
        let groups = cast_slice(rows).chunks_exact(MOST_LANES * Self::VECTORS);
        for (group, rows) in groups.enumerate() {
            for first in (0..MOST_LANES).step_by(L::COUNT) {
                let mut sums = [L::splat(self.proof, 0); MOST_LANES];
                for i in 0..L::COUNT {
                    sums[i] = self.totals(&rows[(first + i) * Self::VECTORS..], Self::VECTORS / 2);
                }
                let near = fold(&mut sums, L::COUNT).at_most(threshold);
                mask |= near << (group * MOST_LANES + first);
            }
        }
        mask
    }

    /// Which of 64 rows are within the threshold. The second half of a row is read only if the first does not rule it out.
    #[inline(always)]
    fn mask_by_halves(&self, rows: &[u64], threshold: u32) -> u64 {
        let (mut mask, mut left) = (0, self.half_mask(rows, threshold));
        while left != 0 {
            let row = left.trailing_zeros() as usize;
            let words = cast_slice(&rows[row * WORDS..][..WORDS]);
            mask |= self.is_within(words, threshold) << row;
            left &= left - 1;
        }
        mask
    }

    /// Whether to look at first halves: of rows whose halves are a cache line or more, where those of the first 64 rows
    /// rule out nearly all.
    #[inline(always)]
    fn halves_decide(&self, rows: &[u64], threshold: u32) -> bool {
        let size = 64 * WORDS;
        WORDS >= 2 * LINE_WORDS
            && rows.len() >= size
            && self.half_mask(&rows[..size], threshold).count_ones() <= FEW
    }

    #[inline(always)]
    fn within(&self, rows: &[u64], threshold: u32, masks: &mut [u64]) {
        let size = 64 * WORDS;
        let whole = rows.len() / size;
        if self.halves_decide(rows, threshold) {
            for (rows, mask) in rows.chunks_exact(size).zip(&mut *masks) {
                *mask = self.mask_by_halves(rows, threshold);
            }
        } else {
            self.whole_rows_within(rows, threshold, masks);
        }
        let (rest, last) = (&rows[whole * size..], &mut masks[whole..]);
        scalar::within(&self.query, rest, threshold, last);
    }

    /// The same for every 64 rows, all of them read whole.
    #[inline(always)]
    fn whole_rows_within(&self, rows: &[u64], threshold: u32, masks: &mut [u64]) {
        let size = 64 * WORDS;
        let whole = rows.len() / size;
        let half = if WORDS < L::COUNT { 0 } else { whole / 2 };
        for i in 0..half {
            let there = half + i;
            let (here_rows, there_rows) =
                (&rows[i * size..][..size], &rows[there * size..][..size]);
            (masks[i], masks[there]) = self.masks(here_rows, there_rows, threshold);
        }
        for i in 2 * half..whole {
            masks[i] = self.mask(&rows[i * size..][..size], threshold);
        }
    }
}
