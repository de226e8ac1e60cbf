//! A closer look at one of our indexes: without batches, and at the bits in which neighbors differ.

use std::time::Instant;

use lookalike::{
    Signatures,
    index::{Answers, Index},
};
use lookalike_thesis::{
    flips::Flips,
    weak_bits::{Histogram, WeakBits},
};
use rayon::prelude::*;

use super::{
    measure::{Chunk, Meter, Question, RADIUS, Subject, times},
    published::WEAK_BITS,
    results::{Unbatched, WeakRow, WeakShare},
    subjects::Ours,
};

/// Queries asked one by one; a few seconds at most.
const SINGLES: usize = 200_000;
/// Chunks whose neighbors are looked at: of a million queries.
const WEAK_CHUNKS: usize = 64;

/// The rate with one query a call.
pub(super) fn unbatched(
    name: &str,
    ours: &Ours<'_>,
    chunks: &[Chunk<'_>],
    batched: f64,
    meter: &Meter<'_>,
) -> lookalike::Result<Unbatched> {
    let queries = chunks.iter().flat_map(|chunk| chunk.signatures.words()).take(SINGLES);
    let queries = queries
        .map(|&query| Signatures::from_words(64, vec![query]))
        .collect::<Result<Vec<_>, _>>()?;
    let pass = || -> lookalike::Result<f64> {
        let (start, mut found) = (Instant::now(), Answers::new());
        for query in &queries {
            ours.tables.within(query.into(), RADIUS, &mut found)?;
        }
        Ok(start.elapsed().as_secs_f64())
    };
    let seconds = meter.pool.install(|| times(meter.repeats, pass))?.median;
    let rate = queries.len() as f64 / seconds;
    Ok(Unbatched {
        name: name.to_owned(),
        queries: queries.len(),
        queries_a_second: rate,
        batched_to_unbatched: batched / rate,
    })
}

/// How soon weak bits lead to the neighbors. Not timed, and so on all cores.
pub(super) fn weak_bits(
    ours: &mut Ours<'_>,
    chunks: &[Chunk<'_>],
) -> lookalike::Result<Vec<WeakRow>> {
    let mut all = WeakBits::default();
    for chunk in chunks.iter().take(WEAK_CHUNKS) {
        ours.ask(Question::All, chunk)?;
        all = all.merge(of_chunk(ours, chunk));
    }
    Ok((1..=RADIUS).map(|distance| weak_row(distance, all.at(distance))).collect())
}

fn of_chunk(ours: &Ours<'_>, chunk: &Chunk<'_>) -> WeakBits {
    let margins = chunk.margins.as_chunks::<64>().0;
    let queries = chunk.signatures.words().par_iter().zip(margins).enumerate();
    let counted = queries.fold(
        || (WeakBits::default(), Flips::new()),
        |(mut weak, mut flips), (number, (&query, margins))| {
            let mut found: Vec<u64> = ours.found(number).collect();
            found.sort_unstable();
            found.dedup();
            found.iter().for_each(|&row| weak.add(&mut flips, query, margins, row));
            (weak, flips)
        },
    );
    counted.map(|(weak, _)| weak).reduce(WeakBits::default, WeakBits::merge)
}

fn weak_row(distance: u32, histogram: &Histogram) -> WeakRow {
    let flips = |share| histogram.attempts_for(share).unwrap_or(0);
    let published = WEAK_BITS.iter().filter(|of| of.0 == distance);
    let shares = published.map(|&(_, flips, thesis)| {
        let here = histogram.share_within(flips);
        WeakShare { flips, thesis, here }
    });
    WeakRow {
        distance,
        pairs: histogram.total(),
        shares: shares.collect(),
        flips_95: flips(0.95),
        flips_99: flips(0.99),
        flips_all: flips(1.0),
        combinations: [64, 2016, 41_664][distance as usize - 1],
        curve: histogram.curve(),
    }
}
