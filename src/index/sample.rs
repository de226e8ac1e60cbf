//! Samples, and numbers that look random and are the same in every run.

use super::{Answers, Index, Neighbor, Promise, Queries, Scan};
use crate::{Result, Signatures};

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
pub(crate) fn spread(len: usize, most: usize) -> Vec<usize> {
    let taken = len.min(most);
    (0..taken).map(|i| i * len / taken).collect()
}

/// These rows of a matrix.
pub(crate) fn taken(rows: &Signatures, numbers: &[usize]) -> Result<Signatures> {
    let words = numbers.iter().flat_map(|&row| rows.row(row)).copied().collect();
    Signatures::from_words(rows.bits(), words)
}

/// The share of the nearest that was found; one row is as good as another at the same distance.
pub(super) fn share<'a>(truth: &Answers, found: impl Iterator<Item = &'a [Neighbor]>) -> f64 {
    let (mut seen, mut there) = (0, 0);
    for (truth, found) in truth.iter().zip(found) {
        let farthest = truth.last().map_or(0, |neighbor| neighbor.distance);
        let near = found.iter().filter(|neighbor| neighbor.distance <= farthest).count();
        seen += near.min(truth.len());
        there += truth.len();
    }
    if there > 0 { seen as f64 / there as f64 } else { 1.0 }
}

/// The answers without what is identical to the query.
pub(super) fn others(answers: &Answers) -> Answers {
    let mut others = Answers::new();
    for neighbors in answers.iter() {
        others.extend(neighbors.iter().copied().filter(|neighbor| neighbor.distance > 0));
    }
    others
}

/// A query and a row near it.
pub(crate) struct NearPair {
    /// The number of the query.
    pub(crate) query: usize,
    /// Which bits differ.
    pub(crate) differences: Vec<u64>,
}

/// Rows among which pairs are looked for.
const SAMPLE_ROWS: usize = 1 << 20;
/// Queries that look for them together: few, as a wide radius finds nearly all rows.
const TOGETHER: usize = 8;

/// Pairs of some of the queries and some of the rows within a radius, until there are enough of them.
pub(crate) fn near_pairs(
    rows: &Signatures,
    queries: Queries<'_>,
    radius: u32,
    most_queries: usize,
    enough: usize,
) -> Result<Vec<NearPair>> {
    let rows = taken(rows, &spread(rows.len(), SAMPLE_ROWS))?;
    let scan = Scan::new(&rows)?;
    let (mut pairs, mut found) = (Vec::new(), Answers::new());
    for chosen in spread(queries.len(), most_queries).chunks(TOGETHER) {
        scan.within((&taken(queries.signatures(), chosen)?).into(), radius, &mut found)?;
        for (&query, neighbors) in chosen.iter().zip(found.iter()) {
            // Some of each, or a query with very many would be all that is seen.
            for neighbor in spread(neighbors.len(), enough / 16).iter().map(|&i| neighbors[i]) {
                let words = rows.row(neighbor.row as usize).iter();
                let differences = words.zip(queries.signatures().row(query)).map(|(a, b)| a ^ b);
                pairs.push(NearPair { query, differences: differences.collect() });
            }
        }
        if pairs.len() >= enough {
            break;
        }
    }
    Ok(pairs)
}

/// Which share of the neighbors was found, if so many at each distance are: each that was found stands for all those at
/// its distance.
pub(super) fn recall_of(found: &Answers, shares: &[f64]) -> Promise {
    let (mut seen, mut there) = (0.0, 0.0);
    for neighbor in found.iter().flatten() {
        seen += 1.0;
        there += 1.0 / shares[neighbor.distance as usize];
    }
    let farthest = shares.last().copied().unwrap_or(1.0);
    Promise::Expected { recall: if seen > 0.0 { seen / there } else { farthest } as f32 }
}
