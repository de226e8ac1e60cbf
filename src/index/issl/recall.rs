//! What an answer is worth: measured on a sample, once for each question.

use super::{Issl, Reach, locked};
use crate::{
    Result,
    index::{
        Answers, Curve, Promise, Queries,
        effort::SAMPLE_NEIGHBORS,
        sample::{others, share, spread, taken},
    },
};

/// The recall of the `k` nearest with a reach.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    k: usize,
    reach: Reach,
    /// Whether queries were the sample, or rows for want of enough of them.
    of_queries: bool,
    recall: f32,
}

/// So many queries, or rows, are a sample.
const SAMPLE: usize = 128;
const ENOUGH: usize = 64;

impl Issl<'_> {
    /// What is expected of the nearest rows that were found. The first batch of many queries is the sample for all later
    /// ones; until then, rows are.
    pub(super) fn expected(
        &self,
        queries: Queries<'_>,
        k: usize,
        reach: Reach,
        found: &Answers,
    ) -> Result<Promise> {
        let of_queries = queries.len() >= ENOUGH;
        let same = |known: &Known| (known.k, known.reach) == (k, reach);
        let suits = |known: &&Known| same(known) && known.of_queries >= of_queries;
        if let Some(known) = locked(&self.known).iter().find(suits) {
            return Ok(Promise::Expected { recall: known.recall });
        }
        let recall = match of_queries {
            true => self.recall_of_queries(queries, k, found)?,
            false => self.recall_of_rows(k, reach)?,
        };
        let mut all = locked(&self.known);
        all.retain(|known| !same(known));
        all.push(Known { k, reach, of_queries, recall });
        Ok(Promise::Expected { recall })
    }

    /// What each step of the [ladder](Self::ladder) finds for queries without margins: the levels of the curve are steps.
    /// So many of the rows are the queries, without what is identical to them.
    pub fn calibrate(&self, sample: usize) -> Result<Curve> {
        let sample = taken(&self.rows, &spread(self.rows.len(), sample))?;
        let queries = Queries::from(&sample);
        // Each finds itself, which does not count.
        let k = SAMPLE_NEIGHBORS + 1;
        let truth = others(&self.truth(queries, k)?);
        let ladder = self.ladder(false);
        Curve::measure(0..ladder.len() as u32, &truth, |step, asked, found| {
            let asked = taken(&sample, &(0..asked).collect::<Vec<_>>())?;
            self.nearest_at((&asked).into(), k, ladder[step as usize], found)?;
            *found = others(found);
            Ok(())
        })
    }

    fn recall_of_queries(&self, queries: Queries<'_>, k: usize, found: &Answers) -> Result<f32> {
        let chosen = spread(queries.len(), SAMPLE);
        let sample = taken(queries.signatures(), &chosen)?;
        let truth = self.truth((&sample).into(), k)?;
        Ok(share(&truth, chosen.iter().map(|&query| found.of(query))) as f32)
    }

    /// Rows are asked for without margins, and find themselves, which does not count.
    fn recall_of_rows(&self, k: usize, reach: Reach) -> Result<f32> {
        let sample = taken(&self.rows, &spread(self.rows.len(), SAMPLE))?;
        let k = k.saturating_add(1);
        let mut found = Answers::new();
        self.nearest_at((&sample).into(), k, reach, &mut found)?;
        Ok(share(&others(&self.truth((&sample).into(), k)?), others(&found).iter()) as f32)
    }

    fn truth(&self, queries: Queries<'_>, k: usize) -> Result<Answers> {
        let mut truth = Answers::new();
        let scan = |query: usize| self.scanned(queries.signatures().row(query), k);
        let answers = self.for_each(queries, |_, query, _| scan(query));
        answers.iter().for_each(|neighbors| truth.push(neighbors));
        Ok(truth)
    }
}
