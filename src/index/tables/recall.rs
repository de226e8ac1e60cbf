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
        Answers, Index, Promise, Queries, Scan,
        random::{Random, spread},
    },
};

/// The share of rows that is found, by distance.
#[derive(Debug, Clone)]
pub(super) struct Calibration {
    radius: u32,
    /// Whether the queries had margins.
    margins: bool,
    shares: Vec<f64>,
}

/// Patterns of errors that are tried for each distance.
const PATTERNS: usize = 4096;
/// A share that is as good as nothing.
const RARE: f64 = 0.001;
/// Queries, and rows, of the sample that margins are calibrated on.
const SAMPLE_QUERIES: usize = 256;
const SAMPLE_ROWS: usize = 1 << 20;
/// Fewer pairs than this at a distance say nothing.
const PAIRS: u32 = 20;

impl Tables<'_> {
    /// What is expected of answers that are not exact.
    pub(super) fn expected(
        &self,
        queries: Queries<'_>,
        looking: &Looking,
        found: &Answers,
    ) -> Result<Promise> {
        let radius = looking.radius.min(self.rows.bits());
        let margins = !queries.is_empty() && queries.margins(0).is_some();
        let shares = self.shares(queries, radius, margins, looking)?;
        let (mut seen, mut there) = (0.0, 0.0);
        for neighbor in found.iter().flatten() {
            seen += 1.0;
            there += 1.0 / shares[neighbor.distance as usize];
        }
        let recall = if seen > 0.0 { seen / there } else { shares[radius as usize] };
        Ok(Promise::Expected { recall: recall as f32 })
    }

    fn shares(
        &self,
        queries: Queries<'_>,
        radius: u32,
        margins: bool,
        looking: &Looking,
    ) -> Result<Vec<f64>> {
        let known = |of: &&Calibration| (of.radius, of.margins) == (radius, margins);
        let lock = || self.calibrations.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(known) = lock().iter().find(known) {
            return Ok(known.shares.clone());
        }
        let mut shares = self.uniform(radius, looking)?;
        if margins {
            self.sampled(queries, radius, looking, &mut shares)?;
        }
        lock().push(Calibration { radius, margins, shares: shares.clone() });
        Ok(shares)
    }

    /// If every bit is as likely to differ as any other: some patterns are tried.
    fn uniform(&self, radius: u32, looking: &Looking) -> Result<Vec<f64>> {
        let mut reach = Reach::default();
        let query = Signatures::from_words(self.rows.bits(), vec![0; self.rows.stride()])?;
        reach.begin(looking, (&query).into(), 0..1);
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let mut differences = vec![0; self.rows.stride()];
        let mut share = |distance: u32| {
            let found = (0..PATTERNS).filter(|_| {
                random.differ_in(distance, self.rows.bits(), &mut differences);
                self.finds(looking, &reach, 0, &differences)
            });
            // Where nothing was found, something might be.
            (found.count() as f64 / PATTERNS as f64).max(0.5 / PATTERNS as f64)
        };
        let mut shares: Vec<f64> = Vec::new();
        for distance in 0..=radius {
            // Farther rows are found no more often than these, which is hardly ever.
            let share = match shares.last() {
                Some(&last) if last < RARE => last,
                _ => share(distance),
            };
            shares.push(share);
        }
        Ok(shares)
    }

    /// With margins the weak bits are likelier to differ: how much, a sample of the queries and rows says.
    fn sampled(
        &self,
        queries: Queries<'_>,
        radius: u32,
        looking: &Looking,
        shares: &mut [f64],
    ) -> Result<()> {
        let rows = sample(self.rows, SAMPLE_ROWS)?;
        let chosen = spread(queries.len(), SAMPLE_QUERIES);
        let mut signatures = Signatures::new(queries.bits())?;
        for &query in &chosen {
            signatures.push_row_of(queries.signatures(), query)?;
        }
        let mut pairs = Answers::new();
        Scan::with_kernel(&rows, self.kernel)?.within((&signatures).into(), radius, &mut pairs)?;

        let mut reach = Reach::default();
        let mut counts = vec![(0_u32, 0_u32); shares.len()];
        for (&query, neighbors) in chosen.iter().zip(pairs.iter()) {
            reach.begin(looking, queries, query..query + 1);
            for neighbor in neighbors {
                let row = rows.row(neighbor.row as usize);
                let words = row.iter().zip(queries.signatures().row(query));
                let differences: Vec<u64> = words.map(|(a, b)| a ^ b).collect();
                let (found, all) = &mut counts[neighbor.distance as usize];
                *found += u32::from(self.finds(looking, &reach, 0, &differences));
                *all += 1;
            }
        }
        for (share, (found, all)) in shares.iter_mut().zip(counts) {
            if all >= PAIRS {
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

fn sample(rows: &Signatures, most: usize) -> Result<Signatures> {
    if rows.len() <= most {
        return Ok(rows.clone());
    }
    let words = spread(rows.len(), most).into_iter().flat_map(|row| rows.row(row));
    Signatures::from_words(rows.bits(), words.copied().collect())
}
