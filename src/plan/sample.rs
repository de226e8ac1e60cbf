//! What a sample of the rows says about keys: how many rows a key leads to, however skewed they are.

use crate::{Result, Signatures, table::KeyLayout};

/// Some of the rows, each signature once.
#[derive(Debug, Clone)]
pub struct Sample {
    rows: Signatures,
    /// How many rows there are in all.
    total: usize,
}

/// Rows whose keys are compared by sorting: a share of equal keys of 1 in a billion is seen.
const SORTED: usize = 1 << 15;
/// Rows whose keys are compared each with each, for keys that are a few bits apart.
const COMPARED: usize = 1 << 9;

impl Sample {
    /// A sample of rows, evenly spread.
    pub fn of(rows: &Signatures) -> Result<Self> {
        let mut chosen: Vec<&[u64]> = spread(rows.len(), SORTED).map(|row| rows.row(row)).collect();
        chosen.sort_unstable();
        chosen.dedup();
        let words = chosen.into_iter().flatten().copied().collect();
        Ok(Sample { rows: Signatures::from_words(rows.bits(), words)?, total: rows.len() })
    }

    /// How many rows there are in all.
    pub fn total(&self) -> usize {
        self.total
    }

    /// The width in bits.
    pub fn bits(&self) -> u32 {
        self.rows.bits()
    }

    /// Which share of all pairs of rows has keys that differ in at most `errors` bits.
    pub(super) fn share(&self, layout: &KeyLayout, errors: u32) -> f64 {
        let fields = layout.fields();
        let key = |row: usize| fields.take(self.rows.row(row));
        let most = if errors == 0 { SORTED } else { COMPARED };
        let mut keys: Vec<u64> = spread(self.rows.len(), most).map(key).collect();
        let near = match errors {
            0 => equal_pairs(&mut keys),
            _ => near_pairs(&keys, errors),
        };
        near / pairs(keys.len())
    }
}

/// At most so many numbers below `len`, evenly spread.
fn spread(len: usize, most: usize) -> impl Iterator<Item = usize> {
    let taken = len.min(most);
    (0..taken).map(move |i| i * len / taken)
}

fn pairs(len: usize) -> f64 {
    (len as f64 * (len as f64 - 1.0) / 2.0).max(1.0)
}

fn equal_pairs(keys: &mut [u64]) -> f64 {
    keys.sort_unstable();
    keys.chunk_by(|a, b| a == b).map(|same| pairs(same.len()) * f64::from(same.len() > 1)).sum()
}

fn near_pairs(keys: &[u64], errors: u32) -> f64 {
    let near = |i: usize| {
        keys[..i].iter().filter(|&other| (keys[i] ^ other).count_ones() <= errors).count()
    };
    (0..keys.len()).map(near).sum::<usize>() as f64
}
