//! The nearest: rings of keys, farther out as long as neighbors are lacking and a scan would cost more; then a scan.

use std::ops::Range;

use super::{
    Tables,
    engine::{BATCH, Engine},
    rings::{Rings, random_radius},
};
use crate::{
    Error, Result, Signatures,
    index::{Answers, Index, Queries, Scan},
};

/// What is asked of the rings.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) rings: &'a Rings,
    pub(super) k: usize,
    /// Within which distance random rows have enough.
    pub(super) far: u32,
    /// How many queries there are for each of a batch: what lacks neighbors is scanned together.
    pub(super) batches: usize,
}

impl Tables<'_> {
    pub(super) fn find_nearest(
        &self,
        queries: Queries<'_>,
        k: usize,
        found: &mut Answers,
    ) -> Result<()> {
        let (bits, rows) = (self.rows.bits(), self.rows.len());
        if queries.bits() != bits {
            return Err(Error::WidthMismatch { stored: bits, given: queries.bits() });
        }
        let scan = Scan::with_kernel(&self.rows, self.kernel)?;
        if k == 0 || k > rows {
            return scan.nearest(queries, k, found).map(drop);
        }
        let rings = self.rings.get_or_init(|| Rings::of(self));
        let far = random_radius(bits, rows, k);
        let wanted = Wanted { rings, k, far, batches: queries.len().div_ceil(BATCH) };
        self.in_parts(queries.len(), found, |part: Range<usize>, found: &mut Answers| {
            Engine::new(self, &rings.looking, queries, false).nearest(wanted, part, found);
        });
        let lacking: Vec<usize> = (0..queries.len()).filter(|&q| found.of(q).is_empty()).collect();
        if lacking.is_empty() {
            return Ok(());
        }
        let mut left = Signatures::new(bits)?;
        for &query in &lacking {
            left.push_row_of(queries.signatures(), query)?;
        }
        let mut scanned = Answers::new();
        scan.nearest((&left).into(), k, &mut scanned)?;
        fill(found, &scanned);
        Ok(())
    }
}

/// Puts further answers in the places of the empty ones.
fn fill(found: &mut Answers, further: &Answers) {
    let mut filled = Answers::new();
    let mut further = further.iter();
    for answer in found.iter() {
        match answer.is_empty() {
            true => filled.push(further.next().unwrap_or_default()),
            false => filled.push(answer),
        }
    }
    *found = filled;
}

/// How many rows each query of a batch has found, by distance.
#[derive(Debug, Default)]
pub(super) struct Tally {
    counts: Vec<u32>,
    distances: usize,
}

impl Tally {
    pub(super) fn begin(&mut self, queries: usize, radius: u32) {
        self.distances = radius as usize + 1;
        self.counts.clear();
        self.counts.resize(queries * self.distances, 0);
    }

    pub(super) fn add(&mut self, query: u32, distance: u32) {
        self.counts[query as usize * self.distances + distance as usize] += 1;
    }

    /// Within which distance a query has found `k` rows.
    pub(super) fn radius(&self, query: u32, k: usize) -> Option<u32> {
        let counts = &self.counts[query as usize * self.distances..][..self.distances];
        let mut within = 0;
        let enough = counts.iter().position(|&count| {
            within += count as usize;
            within >= k
        });
        enough.map(|distance| distance as u32)
    }
}
