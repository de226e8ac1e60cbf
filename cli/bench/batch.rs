//! Batch mode, figure 10 of the thesis: the queries are in memory and the stored file streams past them. BPHS and PSM as
//! the thesis describes them, and our join, in turn on the same queries and the same file.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use lookalike::{
    Signatures,
    join::{JoinSettings, StreamJoin, Wanted},
};
use lookalike_thesis::{
    batch::{self, BphsBatch, Order, PsmBatch, sorted_chunks},
    plot::{Axis, Plot, Series},
    workload::Workload,
};
use rayon::{ThreadPool, ThreadPoolBuilder};
use serde::Serialize;

use super::{
    contenders::log2,
    digest::{mix, share},
    figures::log_axis,
    measure::{RADIUS, median},
    subjects::{PROBES_ALL, PROBES_FIRST},
    text::table,
};

/// What to measure: every batch size with the largest file, and every file size with the largest batch.
#[derive(Debug, Clone)]
pub(crate) struct BatchSetup {
    pub(crate) queries: Vec<usize>,
    pub(crate) rows: Vec<usize>,
    pub(crate) seed: u64,
    pub(crate) repeats: usize,
    pub(crate) threads: usize,
}

/// A method at one batch size and one file size.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct BatchRow {
    name: &'static str,
    form: &'static str,
    exact: bool,
    queries: usize,
    rows: usize,
    threads: usize,
    all: BatchRate,
    first: BatchRate,
}

/// How one question was answered.
#[derive(Debug, Clone, Serialize)]
struct BatchRate {
    /// From the queries to the last pair: the median of the repeats. Of one thread, its CPU time where the system tells.
    seconds: f64,
    queries_a_second: f64,
    rows_a_second: f64,
    /// Of all pairs; of `first`, of the queries that have one.
    recall: f64,
    /// Times the speed of BPHS-4 in the same turn: the median over the turns.
    times_bphs: f64,
    /// What is kept of the queries and of the part of the file that is looked at, without the pairs.
    megabytes: f64,
    pairs: u64,
    /// A sum of hashes of the pairs.
    checksum: String,
    /// Pairs that are farther apart than they may be. There must be none.
    wrong: u64,
}

#[derive(Debug, Clone, Copy)]
enum Form {
    Bphs(u32, u32),
    Psm(Order),
    Ours,
}

/// The first is what the others are compared with.
const METHODS: [(&str, Form); 5] = [
    ("BPHS-4", Form::Bphs(4, 1)),
    ("BPHS-10", Form::Bphs(5, 2)),
    ("PSM, heap", Form::Psm(Order::ByQuery)),
    ("PSM, sorted", Form::Psm(Order::Sorted)),
    ("stream join", Form::Ours),
];
const OURS: &str = "stream join";
/// What takes less is run more than once in a turn.
const SHORT: Duration = Duration::from_secs(2);

/// Measures everything; `tell` hears how far it is.
pub(crate) fn batch(setup: &BatchSetup, tell: &dyn Fn(String)) -> anyhow::Result<Vec<BatchRow>> {
    let pool = ThreadPoolBuilder::new().num_threads(setup.threads).build()?;
    let start = Instant::now();
    let largest = |sizes: &[usize]| sizes.iter().copied().max().unwrap_or(0);
    let (queries, rows) = (largest(&setup.queries), largest(&setup.rows));
    let workload = Workload::new(rows, queries, setup.seed);
    tell(format!("made the workload in {:.1} s", start.elapsed().as_secs_f64()));
    let by_queries = setup.queries.iter().map(|&size| (rows, size));
    let by_rows = setup.rows.iter().map(|&size| (size, queries));
    let sizes: BTreeSet<(usize, usize)> = by_queries.chain(by_rows).collect();
    let mut measured = Vec::new();
    for (rows, queries) in sizes {
        let point = Point::new(&workload, queries, rows, &pool)?;
        let of_point = point.measure(setup.repeats)?;
        of_point.iter().for_each(|row| tell(row.line()));
        measured.extend(of_point);
    }
    Ok(measured)
}

/// One batch and one file.
struct Point<'a> {
    queries: Signatures,
    margins: &'a [[u8; 64]],
    /// In sorted chunks of the size of the batch.
    file: Signatures,
    pool: &'a ThreadPool,
}

/// A query's signature and a row.
type Found = batch::Found;

/// One run of a method.
struct Turn {
    seconds: f64,
    bytes: f64,
}

/// What a run found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sums {
    pairs: u64,
    checksum: u64,
    wrong: u64,
}

impl<'a> Point<'a> {
    fn new(
        workload: &'a Workload,
        queries: usize,
        rows: usize,
        pool: &'a ThreadPool,
    ) -> lookalike::Result<Self> {
        let file = sorted_chunks(&workload.stored[..rows], queries);
        Ok(Point {
            queries: Signatures::from_words(64, workload.queries[..queries].to_vec())?,
            margins: &workload.margins.as_chunks().0[..queries],
            file: Signatures::from_words(64, file)?,
            pool,
        })
    }

    fn measure(&self, repeats: usize) -> lookalike::Result<Vec<BatchRow>> {
        let [all, first] = [Wanted::All, Wanted::First].map(|wanted| self.ask(wanted, repeats));
        let methods = METHODS.iter().zip(all?.into_iter().zip(first?));
        let row = |(&(name, form), (all, first)): (&(_, Form), _)| BatchRow {
            name,
            form: if name == OURS { "ours" } else { "thesis" },
            exact: !matches!(form, Form::Psm(_)),
            queries: self.queries.len(),
            rows: self.file.len(),
            threads: self.pool.current_num_threads(),
            all,
            first,
        };
        Ok(methods.map(row).collect())
    }

    /// All methods in turn, as often as asked: what else the machine does changes by the second.
    fn ask(&self, wanted: Wanted, repeats: usize) -> lookalike::Result<Vec<BatchRate>> {
        let mut turns: Vec<Vec<Turn>> = METHODS.iter().map(|_| Vec::new()).collect();
        let mut sums = Vec::new();
        let mut found = Vec::new();
        for _ in 0..repeats.max(1) {
            sums.clear();
            for ((_, form), turns) in METHODS.iter().zip(&mut turns) {
                turns.push(self.turn(*form, wanted, &mut found)?);
                sums.push(self.sums(&found));
            }
        }
        let truth = sums[0].pairs;
        let rates = turns.iter().zip(&sums).map(|(of, sums)| self.rate(of, &turns[0], sums, truth));
        Ok(rates.collect())
    }

    /// The middle one of three runs; what takes long is run once.
    fn turn(&self, form: Form, wanted: Wanted, found: &mut Vec<Found>) -> lookalike::Result<Turn> {
        let (start, mut runs) = (Instant::now(), Vec::new());
        while runs.len() < 3 && (runs.is_empty() || start.elapsed() < SHORT) {
            found.clear();
            runs.push(self.pool.install(|| self.run(form, wanted, found))?);
        }
        runs.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        Ok(runs.swap_remove(runs.len() / 2))
    }

    fn rate(&self, turns: &[Turn], baseline: &[Turn], sums: &Sums, truth: u64) -> BatchRate {
        let mut seconds: Vec<f64> = turns.iter().map(|turn| turn.seconds).collect();
        let ratios = baseline.iter().zip(turns).map(|(a, b)| a.seconds / b.seconds);
        let seconds = median(&mut seconds);
        BatchRate {
            seconds,
            queries_a_second: self.queries.len() as f64 / seconds,
            rows_a_second: self.file.len() as f64 / seconds,
            recall: share(sums.pairs, truth),
            times_bphs: median(&mut ratios.collect::<Vec<_>>()),
            megabytes: turns.iter().map(|turn| turn.bytes).fold(0.0, f64::max) / 1e6,
            pairs: sums.pairs,
            checksum: format!("{:016x}", sums.checksum),
            wrong: sums.wrong,
        }
    }

    /// From the queries to the last pair, with what is built on the queries.
    fn run(&self, form: Form, wanted: Wanted, found: &mut Vec<Found>) -> lookalike::Result<Turn> {
        let clock = Clock::start(self.pool.current_num_threads());
        let bytes = match form {
            Form::Bphs(blocks, lead) => self.bphs((blocks, lead), in_thesis(wanted), found),
            Form::Psm(order) => self.psm(order, in_thesis(wanted), found),
            Form::Ours => self.ours(wanted, found)?,
        };
        Ok(Turn { seconds: clock.seconds(), bytes })
    }

    /// The chunks of the file, each with the number of its first row.
    fn chunks(&self) -> impl Iterator<Item = (u32, &[u64])> {
        let size = self.queries.len();
        let chunks = self.file.words().chunks(size).enumerate();
        chunks.map(move |(number, chunk)| ((number * size) as u32, chunk))
    }

    fn bphs(&self, (z, x): (u32, u32), wanted: batch::Wanted, found: &mut Vec<Found>) -> f64 {
        let mut batch = BphsBatch::build(self.queries.words(), z, x);
        for (first, chunk) in self.chunks() {
            batch.pass(chunk, first, (wanted, RADIUS), |pair| found.push(pair));
        }
        batch.bytes() * self.queries.len() as f64
    }

    fn psm(&self, order: Order, wanted: batch::Wanted, found: &mut Vec<Found>) -> f64 {
        let probes = match wanted {
            batch::Wanted::All => PROBES_ALL,
            batch::Wanted::First => PROBES_FIRST,
        };
        let queries = self.queries.words().iter().copied().zip(self.margins);
        let chunk = self.queries.len().min(self.file.len());
        let mut batch = PsmBatch::build(queries, (RADIUS, probes), log2(chunk), order);
        for (first, chunk) in self.chunks() {
            if !batch.is_done() {
                batch.pass(chunk, first, (wanted, RADIUS), |pair| found.push(pair));
            }
        }
        batch.bytes(chunk) * self.queries.len() as f64
    }

    /// The file as a mapped one: the join looks at a window of it at a time.
    fn ours(&self, wanted: Wanted, found: &mut Vec<Found>) -> lookalike::Result<f64> {
        let mut join = StreamJoin::new(&self.queries, wanted, &JoinSettings::new(RADIUS))?;
        let queries = self.queries.words();
        join.pass(&self.file, |pairs| {
            found.extend(pairs.iter().map(|pair| (queries[pair.a as usize], pair.b)));
            Ok(())
        })?;
        Ok(join.joined().bytes as f64)
    }

    fn sums(&self, found: &[Found]) -> Sums {
        let far = |&&(query, row): &&Found| {
            (self.file.words()[row as usize] ^ query).count_ones() > RADIUS
        };
        let hash = |&(query, row): &Found| mix(mix(u64::from(row)).wrapping_add(query));
        Sums {
            pairs: found.len() as u64,
            checksum: found.iter().map(hash).fold(0, u64::wrapping_add),
            wrong: found.iter().filter(far).count() as u64,
        }
    }
}

/// Time that passed, or what of it one thread was given: others may be busy on the same machine.
pub(super) struct Clock {
    start: Instant,
    thread: Option<f64>,
}

impl Clock {
    pub(super) fn start(threads: usize) -> Self {
        let thread = if threads == 1 { thread_seconds() } else { None };
        Clock { start: Instant::now(), thread }
    }

    pub(super) fn seconds(&self) -> f64 {
        let passed = || self.start.elapsed().as_secs_f64();
        let of_thread = self.thread.and_then(|start| Some(thread_seconds()? - start));
        of_thread.filter(|&seconds| seconds > COARSE).unwrap_or_else(passed)
    }
}

/// The system's count moves on in steps of some milliseconds: shorter times are not taken from it.
const COARSE: f64 = 0.1;

/// The CPU time of this thread, where the system tells: Linux does, in nanoseconds.
fn thread_seconds() -> Option<f64> {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: u64 = told.split(' ').next()?.parse().ok()?;
    Some(nanoseconds as f64 / 1e9)
}

fn in_thesis(wanted: Wanted) -> batch::Wanted {
    match wanted {
        Wanted::All => batch::Wanted::All,
        Wanted::First => batch::Wanted::First,
    }
}

/// Whether the exact methods found the same at each size, and no method what is no neighbor. The first match is the one
/// with the lowest row, so that it is the same for all of them, too.
pub(crate) fn batches_agree(rows: &[BatchRow]) -> bool {
    let found =
        |row: &BatchRow| [&row.all, &row.first].map(|rate| (rate.pairs, rate.checksum.clone()));
    let right = rows.iter().all(|row| row.all.wrong + row.first.wrong == 0);
    let exact: Vec<&BatchRow> = rows.iter().filter(|row| row.exact).collect();
    let mut points = exact.chunk_by(|a, b| (a.queries, a.rows) == (b.queries, b.rows));
    right && points.all(|rows| rows.iter().all(|row| found(row) == found(rows[0])))
}

impl BatchRow {
    /// A line for those who wait.
    fn line(&self) -> String {
        let [all, first] = [&self.all, &self.first].map(|rate| rate.rows_a_second / 1e6);
        let (name, queries, rows) = (self.name, self.queries, self.rows);
        format!(
            "{rows} rows past {queries} queries, {name}: {all:.2} M rows/s all, {first:.2} first"
        )
    }

    fn cells(&self) -> Vec<String> {
        let rate = |rate: &BatchRate| {
            [
                format!("{:.3}", rate.seconds),
                format!("{:.2}", rate.rows_a_second / 1e6),
                format!("{:.0}K", rate.queries_a_second / 1e3),
                if rate.recall == 1.0 { "1".to_owned() } else { format!("{:.3}", rate.recall) },
                format!("{:.2}", rate.times_bphs),
            ]
        };
        let megabytes = self.all.megabytes.max(self.first.megabytes);
        let start = [
            self.name.to_owned(),
            self.form.to_owned(),
            self.queries.to_string(),
            self.rows.to_string(),
            format!("{megabytes:.0}"),
        ];
        start.into_iter().chain(rate(&self.all)).chain(rate(&self.first)).collect()
    }
}

/// For people.
pub(crate) fn batch_report(rows: &[BatchRow]) -> String {
    let threads = rows.first().map_or(1, |row| row.threads);
    let header = "method | form | queries | stored | MB | all s | M rows/s | q/s | recall | x BPHS-4 \
                  | first s | M rows/s | q/s | recall | x BPHS-4";
    format!(
        "Figure 10 of the thesis: the stored file streams past the queries, 64 bits, within {RADIUS}, {threads} thread(s)\n\n\
         {}\n\n{}",
        table(header, rows.iter().map(BatchRow::cells).collect()),
        checked(rows)
    )
}

fn checked(rows: &[BatchRow]) -> String {
    let exact = rows.iter().filter(|row| row.exact && row.name == OURS);
    let lines = exact.map(|row| {
        let (queries, stored) = (row.queries, row.rows);
        let [all, first] = [&row.all, &row.first]
            .map(|rate| format!("{} pairs, checksum {}", rate.pairs, rate.checksum));
        format!("{stored} rows past {queries} queries: all {all}; first {first}")
    });
    let lines = lines.collect::<Vec<_>>().join("\n");
    match batches_agree(rows) {
        true => format!("All exact methods found the same pairs:\n{lines}"),
        false => format!("THE EXACT METHODS DO NOT AGREE. Ours:\n{lines}"),
    }
}

/// Figure 10(a): speed by the size of the batch, with the largest file.
pub(crate) fn by_batch_figure(rows: &[BatchRow]) -> String {
    let largest = rows.iter().map(|row| row.rows).max().unwrap_or(0);
    let rows: Vec<&BatchRow> = rows.iter().filter(|row| row.rows == largest).collect();
    let point = |row: &BatchRow, rate: &BatchRate| (row.queries as f64, rate.queries_a_second);
    figure(
        "Batch mode: speed by the size of the batch",
        ("queries", "queries a second"),
        &rows,
        point,
    )
}

/// Figure 10(b): speed by the size of the file, with the largest batch.
pub(crate) fn by_file_figure(rows: &[BatchRow]) -> String {
    let largest = rows.iter().map(|row| row.queries).max().unwrap_or(0);
    let rows: Vec<&BatchRow> = rows.iter().filter(|row| row.queries == largest).collect();
    let point = |row: &BatchRow, rate: &BatchRate| (row.rows as f64, rate.rows_a_second);
    let axes = ("stored rows", "stored rows a second");
    figure("Batch mode: speed by the size of the file", axes, &rows, point)
}

fn figure(
    title: &str,
    (x, y): (&str, &str),
    rows: &[&BatchRow],
    point: impl Fn(&BatchRow, &BatchRate) -> (f64, f64),
) -> String {
    let series = METHODS.iter().flat_map(|(name, _)| {
        let of_method = || rows.iter().filter(|row| row.name == *name);
        let all = of_method().map(|row| point(row, &row.all)).collect();
        let first = of_method().map(|row| point(row, &row.first)).collect();
        [
            Series { name: format!("{name}, all"), points: all },
            Series { name: format!("{name}, first"), points: first },
        ]
    });
    let y = Axis { title: y.to_owned(), log: true };
    Plot { title: title.to_owned(), x: log_axis(x), y, series: series.collect() }.svg()
}
