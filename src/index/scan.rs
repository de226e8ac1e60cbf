//! The exhaustive scan: every row against every query. The oracle of every test, and an index in its own right: for
//! small collections, wide radii and big batches it wins.

mod collect;

use std::ops::Range;

use rayon::prelude::*;

use self::collect::{All, Bounds, Collect, First, Nearest, answer, sort};
use super::{Answers, Index, Neighbor, Promise, Queries};
use crate::{
    Error, Result, Signatures,
    hamming::{self, Batch, Kernel, Match, Workspace},
};

/// Every row against every query, on all cores of the current thread pool.
#[derive(Debug, Clone, Copy)]
pub struct Scan<'a> {
    rows: &'a Signatures,
    kernel: Kernel,
}

/// Parts for each thread, so that a slow core does not hold up the others.
const PARTS_PER_THREAD: usize = 8;
/// A part has at least so many words to compare, or starting it costs more than it saves.
const PART_WORDS: usize = 1 << 18;
/// The blocks of a single query grow until they have so many words: memory is read faster in long stretches.
const LONE_WORDS: usize = 1 << 19;

impl<'a> Scan<'a> {
    /// A scan of `rows` with the kernel of this process.
    pub fn new(rows: &'a Signatures) -> Result<Self> {
        Scan::with_kernel(rows, hamming::kernel()?)
    }

    /// A scan of `rows` with a kernel of one's choice.
    pub fn with_kernel(rows: &'a Signatures, kernel: Kernel) -> Result<Self> {
        match u32::try_from(rows.len()) {
            Ok(_) => Ok(Scan { rows, kernel }),
            Err(_) => Err(Error::TooManyRows { rows: rows.len() }),
        }
    }

    fn batch<'q>(&self, queries: Queries<'q>) -> Result<Batch<'q>> {
        if queries.bits() != self.rows.bits() {
            return Err(Error::WidthMismatch { stored: self.rows.bits(), given: queries.bits() });
        }
        let queries = queries.signatures();
        Ok(Batch::new(queries.words(), queries.stride()))
    }

    /// Runs a collector, made for the part's first row, over each part of the rows. Gives what they kept, in the order
    /// of the parts.
    fn collect<C: Collect>(
        &self,
        batch: &Batch<'_>,
        new: impl Fn(usize) -> C + Sync,
    ) -> Vec<Vec<Vec<Neighbor>>> {
        let run = |part: Range<usize>| {
            let mut collector = new(part.start);
            self.run(batch, part, &mut collector);
            collector.into_found()
        };
        self.parts(batch.len()).into_par_iter().map(run).collect()
    }

    /// Even parts of the rows: one for a single thread or little work.
    fn parts(&self, queries: usize) -> Vec<Range<usize>> {
        let threads = rayon::current_num_threads();
        let most = self.rows.words().len().saturating_mul(queries) / PART_WORDS;
        let parts = if threads == 1 { 1 } else { most.clamp(1, threads * PARTS_PER_THREAD) };
        let size = self.rows.len().div_ceil(parts).max(1);
        let starts = (0..self.rows.len()).step_by(size);
        starts.map(|start| start..(start + size).min(self.rows.len())).collect()
    }

    /// Offers a collector every row of a part that is within its thresholds, block after block.
    fn run(&self, batch: &Batch<'_>, part: Range<usize>, collector: &mut impl Collect) {
        let mut block = self.kernel.block_rows(batch);
        let (mut workspace, mut found) = (Workspace::default(), Vec::new());
        let mut start = part.start;
        while start < part.end && !collector.is_done() {
            let end = (start + block).min(part.end);
            let thresholds = collector.thresholds();
            found.clear();
            let rows = self.words(start..end);
            self.kernel.within_batch(batch, rows, thresholds, &mut workspace, &mut found);
            self.offer(batch, start, &found, collector);
            start = end;
            // Rows that pass one query need not stay in the cache for others.
            if batch.len() == 1 && rows.len() < LONE_WORDS {
                block *= 2;
            }
        }
    }

    fn words(&self, rows: Range<usize>) -> &'a [u64] {
        let stride = self.rows.stride();
        &self.rows.words()[rows.start * stride..rows.end * stride]
    }

    /// Offers a collector the rows of a block that matched, with their true distances.
    fn offer(
        &self,
        batch: &Batch<'_>,
        start: usize,
        found: &[Match],
        collector: &mut impl Collect,
    ) {
        for matched in found {
            let query = batch.query(matched.query as usize);
            for row in matched.rows().map(|row| start + row) {
                let distance = self.kernel.distance(query, self.rows.row(row));
                let neighbor = Neighbor { row: row as u32, distance };
                collector.offer(matched.query as usize, neighbor);
            }
        }
    }
}

impl Index for Scan<'_> {
    fn within(&self, queries: Queries<'_>, radius: u32, found: &mut Answers) -> Result<Promise> {
        let batch = self.batch(queries)?;
        let parts = self.collect(&batch, |_| All::new(batch.len(), radius));
        answer(parts, batch.len(), |neighbors| sort(neighbors), found);
        Ok(Promise::Exact)
    }

    /// The row with the lowest number.
    fn first(&self, queries: Queries<'_>, radius: u32, found: &mut Answers) -> Result<Promise> {
        let batch = self.batch(queries)?;
        let seen = Bounds::new(batch.len(), u32::MAX);
        let parts = self.collect(&batch, |first_row| First::new(&seen, first_row, radius));
        answer(parts, batch.len(), |neighbors| neighbors.truncate(1), found);
        Ok(Promise::Exact)
    }

    fn nearest(&self, queries: Queries<'_>, k: usize, found: &mut Answers) -> Result<Promise> {
        let batch = self.batch(queries)?;
        let bounds = Bounds::new(batch.len(), self.rows.bits());
        let parts = self.collect(&batch, |_| Nearest::new(&bounds, k));
        let cut = |neighbors: &mut Vec<Neighbor>| {
            sort(neighbors);
            neighbors.truncate(k);
        };
        answer(parts, batch.len(), cut, found);
        Ok(Promise::Exact)
    }
}
