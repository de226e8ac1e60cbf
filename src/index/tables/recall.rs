//! What an answer beyond the guarantee is worth.
//!
//! A calibration says which share of the rows at each distance is found. The rows that were found, each counted for all
//! those at its distance, then say how many there are, and so which share of them was found.

use super::{
    Tables,
    looks::{Looking, Reach},
};
use crate::{
    Result, Signatures,
    index::{
        Answers, Promise, Queries,
        sample::{Random, near_pairs, recall_of},
    },
};

/// The share of rows that is found, by distance.
#[derive(Debug, Clone)]
pub(super) struct Calibration {
    radius: u32,
    /// Whether the queries had margins.
    margins: bool,
    /// Whether a sample of queries was looked at.
    sampled: bool,
    shares: Vec<f64>,
}

/// Patterns of errors that are tried for a distance, fewer if they have many errors.
const MOST_PATTERNS: u32 = 4096;
const FEWEST_PATTERNS: u32 = 512;
const PATTERN_BITS: u32 = 1 << 18;
/// Distances that are tried.
const DISTANCES: u32 = 32;
/// Fewer queries than this are no sample.
const ENOUGH_QUERIES: usize = 64;
/// Queries of the sample, and how many pairs are enough.
const SAMPLE_QUERIES: usize = 1024;
const ENOUGH_PAIRS: usize = 1 << 14;
/// Fewer pairs than this at a distance say nothing.
const FEWEST_PAIRS: u32 = 50;

impl Tables<'_> {
    /// What is expected of answers that are not exact.
    pub(super) fn expected(
        &self,
        queries: Queries<'_>,
        looking: &Looking,
        found: &Answers,
    ) -> Result<Promise> {
        Ok(recall_of(found, &self.shares(queries, looking)?))
    }

    /// The first batch of many queries is the sample for all that follow; until it comes, errors are taken to be anywhere.
    fn shares(&self, queries: Queries<'_>, looking: &Looking) -> Result<Vec<f64>> {
        let margins = !queries.is_empty() && queries.margins(0).is_some();
        let sampled = queries.len() >= ENOUGH_QUERIES;
        let known = |of: &&Calibration| {
            (of.radius, of.margins) == (looking.radius, margins) && of.sampled >= sampled
        };
        let lock = || self.calibrations.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(known) = lock().iter().rev().find(known) {
            return Ok(known.shares.clone());
        }
        let mut shares = self.uniform(looking)?;
        if sampled {
            self.sample(queries, looking, &mut shares)?;
        }
        let radius = looking.radius;
        lock().push(Calibration { radius, margins, sampled, shares: shares.clone() });
        Ok(shares)
    }

    /// If every bit is as likely to differ as any other: some patterns are tried.
    fn uniform(&self, looking: &Looking) -> Result<Vec<f64>> {
        let mut reach = Reach::default();
        let query = Signatures::from_words(self.rows.bits(), vec![0; self.rows.stride()])?;
        reach.begin(looking, (&query).into(), 0..1);
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let mut differences = vec![0; self.rows.stride()];
        let mut share = |distance: u32| {
            let patterns = (PATTERN_BITS / distance.max(1)).clamp(FEWEST_PATTERNS, MOST_PATTERNS);
            let found = (0..patterns).filter(|_| {
                random.differ_in(distance, self.rows.bits(), &mut differences);
                self.finds(looking, &reach, 0, &differences)
            });
            // Where nothing was found, something might be.
            (found.count() as f64).max(0.5) / f64::from(patterns)
        };
        // Of many distances only some are tried; in between, shares are as well.
        let radius = looking.radius;
        let step = (radius / DISTANCES).max(1);
        let mut shares = vec![share(0)];
        while let Some(next) =
            (shares.len() as u32 <= radius).then(|| shares.len() as u32 - 1 + step)
        {
            let (last, end) = (shares[shares.len() - 1], next.min(radius));
            let steps = end + 1 - shares.len() as u32;
            let share = share(end);
            let between = |i: u32| last + (share - last) * f64::from(i) / f64::from(steps);
            shares.extend((1..=steps).map(between));
        }
        Ok(shares)
    }

    /// Weak bits are likelier to differ, and some bits of skewed data: how much, a sample of the queries and rows says.
    fn sample(&self, queries: Queries<'_>, looking: &Looking, shares: &mut [f64]) -> Result<()> {
        let pairs = near_pairs(&self.rows, queries, looking.radius, SAMPLE_QUERIES, ENOUGH_PAIRS)?;
        let mut reach = Reach::default();
        let mut counts = vec![(0_u32, 0_u32); shares.len()];
        for of_query in pairs.chunk_by(|a, b| a.query == b.query) {
            let query = of_query[0].query;
            reach.begin(looking, queries, query..query + 1);
            for pair in of_query {
                let distance: u32 = pair.differences.iter().map(|word| word.count_ones()).sum();
                let (found, all) = &mut counts[distance as usize];
                *found += u32::from(self.finds(looking, &reach, 0, &pair.differences));
                *all += 1;
            }
        }
        for (share, (found, all)) in shares.iter_mut().zip(counts) {
            if all >= FEWEST_PAIRS {
                *share = f64::from(found.max(1)) / f64::from(all);
            }
        }
        Ok(())
    }

    /// Whether a row that differs so from a query is found.
    fn finds(&self, looking: &Looking, reach: &Reach, query: usize, differences: &[u64]) -> bool {
        (0..looking.steps.len()).any(|step| {
            let fields = &self.tables[looking.steps[step].table].fields;
            reach.finds(looking, step, query, fields.take(differences) as u32)
        })
    }
}
