//! Asking the same queries of everything that is measured, and timing it.

use std::time::{Duration, Instant};

use lookalike::{Signatures, index::Queries};
use lookalike_thesis::workload::Workload;
use rayon::ThreadPool;

use super::digest::Digest;

/// Pairs at most so many bits apart are found, as in the thesis.
pub(super) const RADIUS: u32 = 3;

/// Queries asked in one call. What is found is checked chunk by chunk, so a slow method may stop after any of them.
const CHUNK: usize = 16_384;

/// Some of the queries.
pub(super) struct Chunk<'a> {
    /// The number of its first query.
    pub(super) first: usize,
    pub(super) signatures: Signatures,
    pub(super) margins: &'a [u8],
}

impl Chunk<'_> {
    pub(super) fn len(&self) -> usize {
        self.signatures.len()
    }

    pub(super) fn queries(&self) -> lookalike::Result<Queries<'_>> {
        Queries::with_margins(&self.signatures, self.margins)
    }
}

/// Cuts the queries of a workload into chunks.
pub(super) fn chunks(workload: &Workload) -> lookalike::Result<Vec<Chunk<'_>>> {
    let queries = workload.queries.chunks(CHUNK).zip(workload.margins.chunks(64 * CHUNK));
    let chunk = |(number, (words, margins)): (usize, (&[u64], _))| {
        let signatures = Signatures::from_words(64, words.to_vec())?;
        Ok(Chunk { first: number * CHUNK, signatures, margins })
    };
    queries.enumerate().map(chunk).collect()
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    /// Every neighbor.
    All,
    /// One of them.
    First,
}

/// Something that answers queries, and keeps the answers to the latest chunk.
pub(super) trait Subject: Send + Sync {
    fn ask(&mut self, question: Question, chunk: &Chunk<'_>) -> lookalike::Result<()>;

    /// The signatures that were found for a query of the latest chunk. One that is stored twice comes twice.
    fn found(&self, query: usize) -> impl Iterator<Item = u64>;
}

/// How things are measured.
pub(super) struct Meter<'a> {
    pub(super) pool: &'a ThreadPool,
    pub(super) repeats: usize,
    /// A pass over the queries ends with the chunk that takes it past this.
    pub(super) budget: Duration,
}

/// A rate, and what was found.
pub(super) struct Measured {
    pub(super) queries: usize,
    pub(super) times: Times,
    /// Times the speed of what it took turns with: the median over the turns. 1 without such.
    pub(super) times_baseline: f64,
    /// For each chunk that was asked.
    pub(super) digests: Vec<Digest>,
}

impl Measured {
    /// Queries a second.
    pub(super) fn rate(&self) -> f64 {
        self.queries as f64 / self.times.median
    }
}

impl Meter<'_> {
    /// A first pass checks what is found and warms up; the repeats are timed.
    pub(super) fn measure(
        &self,
        subject: &mut impl Subject,
        question: Question,
        chunks: &[Chunk<'_>],
    ) -> lookalike::Result<Measured> {
        self.in_turn(subject, question, chunks, || Ok(None))
    }

    /// The same; before each repeat a baseline has its turn, as what else the machine does changes by the second.
    pub(super) fn measure_beside(
        &self,
        subject: &mut impl Subject,
        question: Question,
        chunks: &[Chunk<'_>],
        (baseline, few): (&mut impl Subject, &[Chunk<'_>]),
    ) -> lookalike::Result<Measured> {
        self.in_turn(subject, question, chunks, || rate(baseline, question, few).map(Some))
    }

    fn in_turn(
        &self,
        subject: &mut impl Subject,
        question: Question,
        chunks: &[Chunk<'_>],
        mut baseline: impl FnMut() -> lookalike::Result<Option<f64>> + Send,
    ) -> lookalike::Result<Measured> {
        self.pool.install(|| {
            let digests = self.check(subject, question, chunks)?;
            let asked = &chunks[..digests.len()];
            let queries = count(asked);
            let mut ratios = Vec::new();
            let times = times(self.repeats, || {
                let baseline = baseline()?;
                let rate = rate(subject, question, asked)?;
                ratios.push(rate / baseline.unwrap_or(rate));
                Ok(queries as f64 / rate)
            })?;
            Ok(Measured { queries, times, times_baseline: median(&mut ratios), digests })
        })
    }

    /// As many chunks as the budget allows, and what is found in each.
    fn check(
        &self,
        subject: &mut impl Subject,
        question: Question,
        chunks: &[Chunk<'_>],
    ) -> lookalike::Result<Vec<Digest>> {
        let (mut digests, mut spent) = (Vec::new(), Duration::ZERO);
        for chunk in chunks {
            if spent > self.budget {
                break;
            }
            let start = Instant::now();
            subject.ask(question, chunk)?;
            spent += start.elapsed();
            digests.push(Digest::of(subject, chunk));
        }
        Ok(digests)
    }
}

fn count(chunks: &[Chunk<'_>]) -> usize {
    chunks.iter().map(Chunk::len).sum()
}

/// Queries a second in one pass. A chunk is asked ahead of it, for what another subject has driven out of the cache.
fn rate(
    subject: &mut impl Subject,
    question: Question,
    chunks: &[Chunk<'_>],
) -> lookalike::Result<f64> {
    chunks.iter().take(1).try_for_each(|chunk| subject.ask(question, chunk))?;
    let start = Instant::now();
    chunks.iter().try_for_each(|chunk| subject.ask(question, chunk))?;
    Ok(count(chunks) as f64 / start.elapsed().as_secs_f64())
}

/// Some repeats, in seconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub(super) median: f64,
    /// The slowest to the fastest.
    pub(super) spread: f64,
}

/// Repeats a measurement.
pub(super) fn times<E>(
    repeats: usize,
    mut measure: impl FnMut() -> Result<f64, E>,
) -> Result<Times, E> {
    let mut all = (0..repeats.max(1)).map(|_| measure()).collect::<Result<Vec<_>, _>>()?;
    let median = median(&mut all);
    Ok(Times { median, spread: all[all.len() - 1] / all[0] })
}

/// The middle one; sorts them.
pub(super) fn median(all: &mut [f64]) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_one_counts() {
        let mut seconds = [3.0, 1.0, 4.0].into_iter();
        let times = times(3, || seconds.next().ok_or(())).unwrap();
        assert_eq!((times.median, times.spread), (3.0, 4.0));
    }

    #[test]
    fn chunks_are_all_the_queries() {
        let workload = Workload::new(1_000, CHUNK + 7, 1);
        let chunks = chunks(&workload).unwrap();
        assert_eq!(
            chunks.iter().map(|chunk| (chunk.first, chunk.len())).collect::<Vec<_>>(),
            [(0, CHUNK), (CHUNK, 7)]
        );
        assert_eq!(chunks[1].signatures.words(), &workload.queries[CHUNK..]);
        assert_eq!(
            chunks[1].queries().unwrap().margins(6).unwrap(),
            &workload.margins[64 * (CHUNK + 6)..]
        );
    }
}
