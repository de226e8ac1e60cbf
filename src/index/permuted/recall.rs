//! What an answer is worth: measured, as it depends on how close the rows are to each other.
//!
//! For a radius: rows of a sample are looked for with some bits flipped, which gives the share that is found at each
//! distance. The rows that were found, each counted for all those at its distance, then say how many there are, and so
//! which share of them was found. For the nearest: the scan says what is missing from the answers to a sample.
//! Each is measured once, at the first question of its kind, which takes as long as a scan for some hundred queries.

use std::{ops::Range, sync::Arc};

use rayon::prelude::*;

use super::{Permuted, walk::Walker};
use crate::{
    Result,
    index::{
        Answers, Index, Promise, Queries, Scan,
        sample::{Random, others, recall_of, share, spread, taken},
    },
};

/// What was measured.
#[derive(Debug, Default)]
pub(super) struct Calibrations {
    /// The share of rows with flipped bits that is found, by distance, as far as anyone asked.
    flipped: Vec<f64>,
    /// The recall of the nearest, by their number.
    nearest: Vec<Nearest>,
    /// Pairs of rows at each distance, and how many of them are found.
    pairs: Option<Arc<[Pairs]>>,
}

#[derive(Debug, Clone, Copy)]
struct Nearest {
    k: usize,
    /// Whether queries were the sample, or rows for want of enough of them.
    of_queries: bool,
    recall: f64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Pairs {
    there: u64,
    found: u64,
}

/// Walks for each distance that is measured: at least so many, and more until the share is as sure as this.
const TRIALS: usize = 2048;
const DEVIATION: f64 = 0.004;
/// Rows of a sample are compared with all rows: at most so many, and fewer if that reads more words than this.
const SAMPLE: usize = 1024;
const SAMPLE_WORDS: usize = 1 << 29;
/// So many queries are a sample themselves.
const ENOUGH: usize = 64;
/// If more neighbors are asked for, the sample is smaller.
const SAMPLE_NEIGHBORS: usize = 1 << 18;
/// Fewer pairs than this at a distance say nothing.
const FEWEST_PAIRS: f64 = 64.0;
/// What differs by more than so many standard deviations is not chance.
const DEVIATIONS: f64 = 4.0;

impl Permuted<'_> {
    /// What is expected of answers to queries with a radius.
    pub(super) fn expected(&self, radius: u32, found: &Answers) -> Result<Promise> {
        Ok(recall_of(found, &self.shares(radius.min(self.rows.bits()))?))
    }

    /// What is expected of the nearest rows that were found. The first batch of many queries is the sample for all later
    /// ones; until then, rows are.
    pub(super) fn expected_nearest(
        &self,
        queries: Queries<'_>,
        k: usize,
        found: &Answers,
    ) -> Result<Promise> {
        let of_queries = queries.len() >= ENOUGH;
        let suits = |known: &Nearest| known.k == k && known.of_queries >= of_queries;
        let known = self.calibrated(|known| known.nearest.iter().copied().find(suits));
        let recall = match known {
            Some(known) => known.recall,
            None => {
                let recall = match of_queries {
                    true => self.recall_of_queries(queries, k, found)?,
                    false => self.recall_of_rows(k)?,
                };
                self.calibrated(|known| {
                    known.nearest.retain(|known| known.k != k);
                    known.nearest.push(Nearest { k, of_queries, recall });
                });
                recall
            }
        };
        Ok(Promise::Expected { recall: recall as f32 })
    }

    fn calibrated<T>(&self, use_them: impl FnOnce(&mut Calibrations) -> T) -> T {
        use_them(&mut self.calibrations.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    /// The share that is found at each distance up to the radius.
    fn shares(&self, radius: u32) -> Result<Vec<f64>> {
        let mut shares = self.calibrated(|known| known.flipped.clone());
        if shares.len() <= radius as usize {
            self.extend_flipped(radius, &mut shares);
            self.calibrated(|known| known.flipped.clone_from(&shares));
        }
        shares.truncate(radius as usize + 1);
        self.correct(&mut shares)?;
        Ok(shares)
    }

    /// If every bit is as likely to differ as any other. Far distances are measured here and there.
    fn extend_flipped(&self, radius: u32, shares: &mut Vec<f64>) {
        if shares.is_empty() {
            shares.push(self.measure(0));
        }
        while shares.len() <= radius as usize {
            let (at, last) = (shares.len() as u32 - 1, shares[shares.len() - 1]);
            let step = (at / 6).clamp(1, self.rows.bits() - at);
            let next = self.measure(at + step);
            let between = |i: u32| last + (next - last) * f64::from(i) / f64::from(step);
            shares.extend((1..=step).map(between));
        }
    }

    /// The share of rows that are found with so many bits flipped.
    fn measure(&self, distance: u32) -> f64 {
        let some = self.count(distance, 0..TRIALS);
        let share = some as f64 / TRIALS as f64;
        let trials = TRIALS.max((share * (1.0 - share) / (DEVIATION * DEVIATION)) as usize);
        let found = some + self.count(distance, TRIALS..trials);
        // Where nothing was found, something might be.
        (found as f64).max(0.5) / trials as f64
    }

    /// How many of these trials find their row.
    fn count(&self, distance: u32, trials: Range<usize>) -> usize {
        let trials = trials.into_par_iter().with_min_len(TRIALS / 64);
        let walker = || Walker::new(&self.orders, self.walks);
        let found = trials.map_init(walker, |walker, trial| self.finds(walker, distance, trial));
        found.filter(|&found| found).count()
    }

    fn finds(&self, walker: &mut Walker<'_>, distance: u32, trial: usize) -> bool {
        let mut random = Random(u64::from(distance) << 32 | trial as u64);
        let firsts = self.orders[0].rows();
        let wanted = firsts[random.below(firsts.len() as u32) as usize];
        let mut query = vec![0; self.rows.stride()];
        random.differ_in(distance, self.rows.bits(), &mut query);
        query.iter_mut().zip(self.rows.row(wanted as usize)).for_each(|(word, row)| *word ^= row);
        walker.walk(&query).any(|look| look.row == wanted)
    }

    /// Real neighbors may be closer together than rows with flipped bits, and differ in other bits: where those of a
    /// sample say so, they are believed.
    fn correct(&self, shares: &mut [f64]) -> Result<()> {
        // What is identical is found first, and a row is no pair with itself.
        for (share, pairs) in shares.iter_mut().zip(&*self.pairs()?).skip(1) {
            let (there, found) = (pairs.there as f64, pairs.found as f64);
            let deviation = (*share * (1.0 - *share) * there).sqrt().max(1.0);
            if there >= FEWEST_PAIRS && (found - *share * there).abs() > DEVIATIONS * deviation {
                *share = found.max(0.5) / there;
            }
        }
        Ok(())
    }

    /// How many pairs of a sampled and another row are there at each distance, and how many are found?
    fn pairs(&self) -> Result<Arc<[Pairs]>> {
        if let Some(pairs) = self.calibrated(|known| known.pairs.clone()) {
            return Ok(pairs);
        }
        let sample = taken(self.rows, &self.chosen(self.rows.len(), SAMPLE))?;
        let none = || vec![Pairs::default(); self.rows.bits() as usize + 1];
        let walker = || (Walker::new(&self.orders, self.walks), none());
        let rows =
            (0..sample.len()).into_par_iter().fold(walker, |(mut walker, mut pairs), row| {
                self.count_found(&mut walker, sample.row(row), &mut pairs);
                self.count_there(sample.row(row), &mut pairs);
                (walker, pairs)
            });
        let pairs: Arc<[Pairs]> = rows.map(|(_, pairs)| pairs).reduce(none, sum).into();
        self.calibrated(|known| known.pairs = Some(pairs.clone()));
        Ok(pairs)
    }

    fn count_found(&self, walker: &mut Walker<'_>, query: &[u64], pairs: &mut [Pairs]) {
        for matched in self.matches(walker, query, self.rows.bits()) {
            let copies = self.copies.view().rows(matched.row).count();
            pairs[matched.distance as usize].found += copies as u64;
        }
    }

    fn count_there(&self, query: &[u64], pairs: &mut [Pairs]) {
        let mut distances = [0; 1024];
        for rows in self.rows.words().chunks(distances.len() * query.len()) {
            let distances = &mut distances[..rows.len() / query.len()];
            self.kernel.distances(query, rows, distances);
            distances.iter().for_each(|&distance| pairs[distance as usize].there += 1);
        }
    }

    /// Which share of the nearest was found for some of the queries?
    fn recall_of_queries(&self, queries: Queries<'_>, k: usize, found: &Answers) -> Result<f64> {
        let chosen = self.chosen(queries.len(), SAMPLE_NEIGHBORS / k.max(1));
        let sample = taken(queries.signatures(), &chosen)?;
        let mut truth = Answers::new();
        Scan::with_kernel(self.rows, self.kernel)?.nearest((&sample).into(), k, &mut truth)?;
        Ok(share(&truth, chosen.iter().map(|&query| found.of(query))))
    }

    /// Which share of the nearest is found for some of the rows? What is identical is always found, and does not count.
    fn recall_of_rows(&self, k: usize) -> Result<f64> {
        let chosen = self.chosen(self.rows.len(), SAMPLE_NEIGHBORS / k.max(1));
        let sample = taken(self.rows, &chosen)?;
        let (walks, k) = (self.walks.max(k), k.saturating_add(1));
        let (mut truth, mut found) = (Answers::new(), Answers::new());
        Scan::with_kernel(self.rows, self.kernel)?.nearest((&sample).into(), k, &mut truth)?;
        self.ask((&sample).into(), walks, &mut found, |walker, query, found| {
            self.closest(walker, query, k, found);
        })?;
        Ok(share(&others(&truth), others(&found).iter()))
    }

    /// A sample that all rows can be compared with: numbers below `len`, evenly spread.
    fn chosen(&self, len: usize, most: usize) -> Vec<usize> {
        let affordable = (SAMPLE_WORDS / self.rows.words().len().max(1)).clamp(32, SAMPLE);
        spread(len, most.clamp(1, affordable))
    }
}

fn sum(mut pairs: Vec<Pairs>, more: Vec<Pairs>) -> Vec<Pairs> {
    for (pairs, more) in pairs.iter_mut().zip(more) {
        pairs.there += more.there;
        pairs.found += more.found;
    }
    pairs
}
