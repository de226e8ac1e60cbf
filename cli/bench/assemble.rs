//! From what was measured to what is reported: recall, agreement, and the share of the memory's speed.

use anyhow::Context;
use lookalike::hamming;

use super::{
    digest::{Digest, in_common, share},
    measure::Measured,
    published::TABLE_2,
    results::{About, Agreement, Finding, GrowthRow, Limit, Rate, Results, Row},
    table2::{Done, Looks, Setup},
};

pub(super) fn results(
    setup: &Setup,
    done: &[Done],
    looks: Looks,
    growth: Vec<GrowthRow>,
) -> anyhow::Result<Results> {
    let truth = done.iter().find(|done| done.is_truth).context("no exact index was measured")?;
    let digests = &truth.all.digests;
    Ok(Results {
        workload: about(setup, looks.distinct, &truth.all)?,
        methods: done.iter().map(|done| row(done, digests)).collect(),
        agreement: agreement(done, digests),
        limit: against_limit(truth, &looks),
        unbatched: looks.unbatched,
        weak_bits: looks.weak_bits,
        growth,
        published: TABLE_2.to_vec(),
    })
}

fn row(done: &Done, truth: &[Digest]) -> Row {
    let about = &done.about;
    let (all, there) = in_common(&done.all.digests, truth);
    let all_recall = share(all.pairs, there.pairs);
    let (first, there) = in_common(&done.first.digests, truth);
    let first_recall = share(first.matched, there.matched);
    Row {
        name: about.name.clone(),
        form: about.form,
        tables: about.tables,
        key_bits: about.key_bits,
        exact: about.exact,
        build_seconds: done.build_seconds,
        bytes: about.bytes,
        bytes_with_rows: about.bytes_with_rows,
        all: rate(&done.all, all_recall),
        first: rate(&done.first, first_recall),
        note: about.note.clone(),
    }
}

fn rate(measured: &Measured, recall: f64) -> Rate {
    Rate {
        queries: measured.queries,
        seconds: measured.times.median,
        spread: measured.times.spread,
        queries_a_second: measured.rate(),
        recall,
        times_bphs: measured.times_baseline,
    }
}

fn about(setup: &Setup, distinct: usize, truth: &Measured) -> anyhow::Result<About> {
    let found = sum(&truth.digests);
    let a_query = 1.0 / truth.queries as f64;
    Ok(About {
        rows: setup.rows,
        distinct,
        queries: setup.queries,
        seed: setup.seed,
        threads: setup.threads,
        repeats: setup.repeats,
        kernel: hamming::kernel()?.name(),
        matched: found.matched as f64 * a_query,
        neighbors: found.pairs as f64 * a_query,
    })
}

fn against_limit(truth: &Done, looks: &Looks) -> Limit {
    let groups = looks.groups.clone();
    let lines_a_second = groups.iter().map(|group| group.lines_a_second).fold(0.0, f64::max);
    let (name, lines, bytes) = (truth.about.name.clone(), looks.lines, looks.bytes);
    let share = lines.all() * looks.rate / lines_a_second;
    Limit { bytes, groups, lines_a_second, name, queries_a_second: looks.rate, lines, share }
}

fn sum(digests: &[Digest]) -> Digest {
    digests.iter().fold(Digest::default(), |sum, &digest| sum + digest)
}

/// Whether all exact methods found the same, as far as all of them got; whether `first` found something for the same
/// queries; and whether nothing was found that is no neighbor, by any method.
fn agreement(done: &[Done], truth: &[Digest]) -> Agreement {
    let exact = || done.iter().filter(|done| done.about.exact);
    let chunks = exact().map(|done| done.all.digests.len()).min().unwrap_or(0);
    let found = sum(&truth[..chunks]);
    let same = exact().all(|done| sum(&done.all.digests[..chunks]) == found);
    let first = exact().all(|done| {
        let (first, there) = in_common(&done.first.digests, truth);
        first.matched == there.matched
    });
    let wrong = |measured: &Measured| sum(&measured.digests).wrong;
    let right = done.iter().all(|done| wrong(&done.all) + wrong(&done.first) == 0);
    let queries = exact().map(|done| done.all.queries).min().unwrap_or(0);
    let methods = exact().map(|done| finding(done, chunks, queries)).collect();
    Agreement { agree: same && first && right, methods }
}

fn finding(done: &Done, chunks: usize, queries: usize) -> Finding {
    let found = sum(&done.all.digests[..chunks]);
    Finding {
        name: done.about.name.clone(),
        queries,
        pairs: found.pairs,
        signatures: found.distinct,
        checksum: format!("{:016x}", found.checksum),
    }
}
