//! What a sample of the rows says about keys: how many rows a key leads to, however skewed they are.

use crate::{
    Result, Signatures,
    features::hash::mix,
    hamming::{self, Kernel},
    index::{
        Queries,
        sample::{near_pairs, spread},
    },
    table::KeyLayout,
};

/// Some of the rows, each signature once.
#[derive(Debug, Clone)]
pub struct Sample {
    kernel: Kernel,
    rows: Signatures,
    /// How many rows there are in all.
    total: usize,
    near: Vec<WeighedPair>,
}

/// A query and a row near it: how weak the query's bits are, and which differ.
#[derive(Debug, Clone)]
pub(super) struct WeighedPair {
    pub(super) margins: Vec<u8>,
    pub(super) differences: Vec<u64>,
}

/// Rows that are near each other.
#[derive(Debug)]
pub(super) struct NearRows {
    /// Which share of all pairs of rows is that near.
    pub(super) share: f64,
    /// In which bits some of them differ.
    pub(super) differences: Vec<Vec<u64>>,
}

/// Queries among which pairs are looked for, and how many are enough.
const QUERIES: usize = 1 << 10;
const ENOUGH: usize = 1 << 12;

/// Rows whose keys are compared by sorting: a share of equal keys of 1 in a billion is seen.
const SORTED: usize = 1 << 15;
/// Rows whose keys are compared each with each, for keys that are a few bits apart.
const COMPARED: usize = 1 << 11;
/// Rows that are compared each with each, and how many pairs that are near are enough.
const NEAR_COMPARED: usize = 1 << 12;
const NEAR_ENOUGH: usize = 1 << 9;

impl Sample {
    /// A sample of rows, evenly spread.
    pub fn of(rows: &Signatures) -> Result<Self> {
        let mut chosen: Vec<&[u64]> =
            spread(rows.len(), SORTED).into_iter().map(|row| rows.row(row)).collect();
        chosen.sort_unstable();
        chosen.dedup();
        // In an order by chance: some of sorted rows, evenly spread, have fewer near each other than some of all rows have.
        let mut order: Vec<usize> = (0..chosen.len()).collect();
        order.sort_unstable_by_key(|&i| mix(i as u64));
        let words = order.into_iter().flat_map(|i| chosen[i]).copied().collect();
        let sample = Signatures::from_words(rows.bits(), words)?;
        let kernel = hamming::kernel()?;
        Ok(Sample { kernel, rows: sample, total: rows.len(), near: Vec::new() })
    }

    /// The same sample, of rows that are some out of so many.
    pub fn out_of(self, total: usize) -> Self {
        Sample { total, ..self }
    }

    /// Looks for pairs of a query and a row within the radius. They say how likely weak bits are to flip, and with it
    /// which recall an index can promise that looks at the weakest first. Queries without margins say nothing.
    pub fn look_at(&mut self, rows: &Signatures, queries: Queries<'_>, radius: u32) -> Result<()> {
        for pair in near_pairs(rows, queries, radius.min(rows.bits()), QUERIES, ENOUGH)? {
            // A document finds itself without looking far: that says nothing about the others.
            let is_copy = pair.differences.iter().all(|&word| word == 0);
            if let (false, Some(margins)) = (is_copy, queries.margins(pair.query)) {
                let (margins, differences) = (margins.to_vec(), pair.differences);
                self.near.push(WeighedPair { margins, differences });
            }
        }
        Ok(())
    }

    /// The pairs that were found.
    pub(super) fn near(&self) -> &[WeighedPair] {
        &self.near
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
        let mut keys: Vec<u64> = (0..self.rows.len().min(most)).map(key).collect();
        let near = match errors {
            0 => equal_pairs(&mut keys),
            _ => self.close_pairs(&keys, errors),
        };
        near / pairs(keys.len())
    }

    /// Rows within a radius of each other.
    pub(super) fn near_rows(&self, radius: u32) -> NearRows {
        let (len, stride) = (self.rows.len().min(NEAR_COMPARED), self.rows.stride());
        let rows = &self.rows.words()[..len * stride];
        let (mut distances, mut differences) = (vec![0; len], Vec::new());
        let (mut compared, mut near) = (0, 0);
        for i in 0..len {
            let row = &rows[i * stride..][..stride];
            self.kernel.distances(row, rows, &mut distances);
            for j in (0..len).filter(|&j| j != i && distances[j] <= radius) {
                near += 1;
                if differences.len() < NEAR_ENOUGH {
                    let other = &rows[j * stride..][..stride];
                    differences.push(row.iter().zip(other).map(|(a, b)| a ^ b).collect());
                }
            }
            compared += len - 1;
            if near as usize >= NEAR_ENOUGH {
                break;
            }
        }
        NearRows { share: f64::from(near) / compared.max(1) as f64, differences }
    }

    fn close_pairs(&self, keys: &[u64], errors: u32) -> f64 {
        let mut distances = vec![0; keys.len()];
        let mut close = |i: usize| {
            let distances = &mut distances[..i];
            self.kernel.distances(&keys[i..=i], &keys[..i], distances);
            distances.iter().filter(|&&distance| distance <= errors).count()
        };
        (0..keys.len()).map(&mut close).sum::<usize>() as f64
    }
}

fn pairs(len: usize) -> f64 {
    (len as f64 * (len as f64 - 1.0) / 2.0).max(1.0)
}

fn equal_pairs(keys: &mut [u64]) -> f64 {
    keys.sort_unstable();
    keys.chunk_by(|a, b| a == b).map(|same| pairs(same.len()) * f64::from(same.len() > 1)).sum()
}
