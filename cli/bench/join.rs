//! The self-join beside batched probing of the tables that have the same keys, on the thesis' workload.

use std::time::Instant;

use lookalike::{
    Signatures,
    index::{Answers, Build, Index, Method, Tables},
    join::{JoinSettings, Joined, Pair, self_join},
};
use lookalike_thesis::workload::Workload;
use rayon::{ThreadPool, ThreadPoolBuilder};
use serde::Serialize;

use super::{digest::mix, measure::RADIUS, table2::Setup};

/// One way to find the pairs.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct JoinRow {
    pub(crate) name: &'static str,
    pub(crate) rows: usize,
    pub(crate) threads: usize,
    /// The median of the repeats.
    pub(crate) seconds: f64,
    /// Of which before the first pair is looked for; joins have no such time.
    pub(crate) build_seconds: f64,
    pub(crate) rows_a_second: f64,
    /// With the 8 of the signature itself, without the pairs.
    pub(crate) bytes_a_row: f64,
    pub(crate) pairs: u64,
    /// A sum of hashes of the pairs of documents.
    pub(crate) checksum: u64,
}

/// Both ways, in turn.
pub(crate) fn join(setup: &Setup, tell: &dyn Fn(String)) -> anyhow::Result<[JoinRow; 2]> {
    let pool = ThreadPoolBuilder::new().num_threads(setup.threads).build()?;
    let start = Instant::now();
    let rows = Signatures::from_words(64, Workload::new(setup.rows, 0, setup.seed).stored)?;
    tell(format!("made {} rows in {:.1} s", rows.len(), start.elapsed().as_secs_f64()));
    let (mut joins, mut probings) = (Vec::new(), Vec::new());
    for _ in 0..setup.repeats {
        joins.push(by_join(&rows, &pool)?);
        tell(joins[joins.len() - 1].line());
        probings.push(by_probing(&rows, &pool)?);
        tell(probings[probings.len() - 1].line());
    }
    Ok([median(joins), median(probings)])
}

fn median(mut rows: Vec<JoinRow>) -> JoinRow {
    rows.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    rows.swap_remove(rows.len() / 2)
}

fn by_join(rows: &Signatures, pool: &ThreadPool) -> lookalike::Result<JoinRow> {
    let (start, mut sums) = (Instant::now(), Sums::default());
    let each = |pairs: &[Pair]| {
        pairs.iter().for_each(|pair| sums.add(pair.a, pair.b));
        Ok(())
    };
    let joined: Joined = pool.install(|| self_join(rows, &JoinSettings::new(RADIUS), each))?;
    let seconds = start.elapsed().as_secs_f64();
    Ok(JoinRow::new("join", rows, pool, (seconds, 0.0), joined.bytes, sums))
}

/// Queries asked at a time: what is found is added up, not kept.
const CHUNK: usize = 1 << 16;

/// Every row is a query; a row finds itself, and each pair is found twice.
fn by_probing(rows: &Signatures, pool: &ThreadPool) -> lookalike::Result<JoinRow> {
    let (start, mut sums) = (Instant::now(), Sums::default());
    let method = Method::Multi { slices: 2, parts: 3 };
    let tables = pool.install(|| Tables::build(rows, method, Build::default()))?;
    let build = start.elapsed().as_secs_f64();
    let mut answers = Answers::new();
    for (number, words) in rows.words().chunks(CHUNK).enumerate() {
        let queries = Signatures::from_words(64, words.to_vec())?;
        pool.install(|| tables.within((&queries).into(), RADIUS, &mut answers))?;
        for (query, found) in answers.iter().enumerate() {
            let a = (number * CHUNK + query) as u32;
            found.iter().filter(|near| near.row > a).for_each(|near| sums.add(a, near.row));
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let bytes = tables.bytes() + tables.row_bytes();
    Ok(JoinRow::new("batched probing of multi-2x3", rows, pool, (seconds, build), bytes, sums))
}

/// What was found.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    pairs: u64,
    checksum: u64,
}

impl Sums {
    #[inline]
    fn add(&mut self, a: u32, b: u32) {
        self.pairs += 1;
        self.checksum = self.checksum.wrapping_add(mix(u64::from(a) << 32 | u64::from(b)));
    }
}

impl JoinRow {
    fn new(
        name: &'static str,
        rows: &Signatures,
        pool: &ThreadPool,
        (seconds, build_seconds): (f64, f64),
        bytes: u64,
        sums: Sums,
    ) -> Self {
        JoinRow {
            name,
            rows: rows.len(),
            threads: pool.current_num_threads(),
            seconds,
            build_seconds,
            rows_a_second: rows.len() as f64 / seconds,
            bytes_a_row: 8.0 + bytes as f64 / rows.len() as f64,
            pairs: sums.pairs,
            checksum: sums.checksum,
        }
    }

    fn line(&self) -> String {
        format!("{}: {:.2} s, {:.1} M rows/s", self.name, self.seconds, self.rows_a_second / 1e6)
    }
}

/// Whether both found the same.
pub(crate) fn agree([a, b]: &[JoinRow; 2]) -> bool {
    (a.pairs, a.checksum) == (b.pairs, b.checksum)
}

/// For people.
pub(crate) fn join_report(rows: &[JoinRow; 2]) -> String {
    let mut text = format!(
        "self-join of {} rows of 64 bits within {RADIUS}, {} thread(s)\n\n\
         | method | s | of which build | M rows/s | bytes a row | pairs | checksum |\n\
         |---|---|---|---|---|---|---|\n",
        rows[0].rows, rows[0].threads
    );
    for row in rows {
        text += &format!(
            "| {} | {:.2} | {:.2} | {:.2} | {:.1} | {} | {:016x} |\n",
            row.name,
            row.seconds,
            row.build_seconds,
            row.rows_a_second / 1e6,
            row.bytes_a_row,
            row.pairs,
            row.checksum
        );
    }
    let without = rows[1].seconds - rows[1].build_seconds;
    text + &format!(
        "\nthe join is {:.2} times as fast, and {:.2} times as fast as probing tables that are there already",
        rows[1].seconds / rows[0].seconds,
        without / rows[0].seconds
    )
}
