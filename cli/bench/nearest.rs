//! The nearest by a graph: time, recall and CDR by effort, beside the scan; what a recall that is asked for delivers; and
//! growth. `nearest_lines` says the same of some settings in the words of `benches/nearest/peers.py`.

use std::{path::Path, time::Instant};

use lookalike::{
    Signatures,
    index::{Answers, Effort, Graph, Index, Promise, Scan, Shape, recall_at},
    quality::cdr,
};
use lookalike_thesis::plot::{Plot, Series};
use rayon::ThreadPoolBuilder;
use serde::Serialize;

use super::{batch::Clock, figures::log_axis, measure::median, text::table};
use crate::failure::hinted;

/// What to measure.
pub(crate) struct NearestSetup<'a> {
    pub(crate) rows: &'a Signatures,
    pub(crate) queries: &'a Signatures,
    /// Other queries, that levels are chosen with.
    pub(crate) tune: Option<&'a Signatures>,
    /// Nothing takes the shape of the saved graph, or the usual one.
    pub(crate) shape: Option<Shape>,
    /// Where the graph is, or is saved.
    pub(crate) index: Option<&'a Path>,
    pub(crate) growth: bool,
    pub(crate) repeats: usize,
    pub(crate) threads: usize,
}

/// Everything that was measured.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct NearestResults {
    workload: Vec<Workload>,
    /// The scan, then the graph by level.
    settings: Vec<SettingRow>,
    /// What is found where a recall is asked for.
    promised: Vec<PromisedRow>,
    /// The least levels that reach goals with other queries.
    chosen: Vec<ChosenRow>,
    growth: Vec<GrowthRow>,
    /// The table of `peers.py`, line by line.
    pub(crate) peers: Vec<String>,
}

#[derive(Debug, Clone, Serialize)]
struct Workload {
    rows: usize,
    distinct: usize,
    bits: u32,
    queries: usize,
    threads: usize,
    repeats: usize,
    shape: String,
    /// Nothing if it was there already.
    build_seconds: Option<f64>,
    /// Beside the signatures.
    bytes_a_row: f64,
}

#[derive(Debug, Clone, Serialize)]
struct SettingRow {
    setting: String,
    /// A query a call.
    ms: f64,
    /// Batches of [`BATCH`].
    batch_ms: f64,
    recall: f64,
    cdr: f64,
}

#[derive(Debug, Clone, Serialize)]
struct PromisedRow {
    asked: f64,
    /// Nothing where it is a scan.
    level: Option<u32>,
    promised: f64,
    recall: f64,
    cdr: f64,
    ms: f64,
}

#[derive(Debug, Clone, Serialize)]
struct ChosenRow {
    goal: &'static str,
    least: f64,
    /// Nothing if it was never reached.
    setting: Option<String>,
    ms: Option<f64>,
    recall: Option<f64>,
    cdr: Option<f64>,
}

/// A part of the rows, and what a recall of [`GROWTH_RECALL`] costs there.
#[derive(Debug, Clone, Serialize)]
struct GrowthRow {
    rows: usize,
    build_seconds: Option<f64>,
    /// Between measured ones; nothing if it was never reached.
    level: Option<f64>,
    ms: Option<f64>,
    scan_ms: f64,
}

/// A setting as `peers.py` reads it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct NearestLine {
    setting: String,
    ms: f64,
    recall: f64,
    cdr: f64,
}

/// Neighbors that are asked for.
const K: usize = 10;
const SEED: u64 = 1;
/// Queries in one call, where several are asked at a time.
const BATCH: usize = 64;
const LEVELS: [u32; 22] = [
    8, 12, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 384, 512, 640, 768,
    1024,
];
const RECALLS: [f64; 4] = [0.8, 0.9, 0.95, 0.99];
/// As in `benches/nearest/best.py`.
const GOALS: [(&str, f64); 4] =
    [("recall", 0.85), ("recall", 0.90), ("recall", 0.95), ("cdr", 0.985)];
const GROWTH_RECALL: f64 = 0.90;
/// Parts of the rows, for growth.
const PARTS: [usize; 5] = [16, 8, 4, 2, 1];
/// A scan takes as long for one query as for another.
const SCANNED_QUERIES: usize = 100;

type Tell<'a> = &'a (dyn Fn(String) + Sync);

/// Measures everything; `tell` hears how far it is.
pub(crate) fn nearest(setup: &NearestSetup<'_>, tell: Tell<'_>) -> anyhow::Result<NearestResults> {
    let pool = ThreadPoolBuilder::new().num_threads(setup.threads).build()?;
    pool.install(|| {
        let (graph, build_seconds) = graph(setup, tell)?;
        let point = Point::new(setup, setup.rows, &graph)?;
        let workload = point.workload(setup, build_seconds);
        let settings = point.settings(tell)?;
        let results = NearestResults {
            workload: vec![workload],
            promised: point.promised(tell)?,
            chosen: setup.tune.map_or(Ok(Vec::new()), |tune| point.chosen(tune, &settings))?,
            settings,
            growth: if setup.growth {
                growth(setup, (&point, build_seconds), tell)?
            } else {
                vec![]
            },
            peers: Vec::new(),
        };
        Ok(results)
    })
}

/// All settings, or the one with this name, for `peers.py`. One alone is asked once: so are the others in its rounds.
pub(crate) fn nearest_lines(
    setup: &NearestSetup<'_>,
    setting: &str,
    tell: Tell<'_>,
) -> anyhow::Result<Vec<NearestLine>> {
    let levels: Vec<u32> =
        LEVELS.into_iter().filter(|&level| ["all", &name(level)].contains(&setting)).collect();
    if levels.is_empty() {
        let problem = format!("there is no setting `{setting}`");
        return Err(hinted(
            problem,
            format!("`all`, or one of `{}`", LEVELS.map(name).join("`, `")),
        ));
    }
    let repeats = if setting == "all" { setup.repeats } else { 1 };
    let setup = NearestSetup { repeats, ..*setup };
    let pool = ThreadPoolBuilder::new().num_threads(setup.threads).build()?;
    pool.install(|| {
        let (graph, _) = graph(&setup, tell)?;
        let point = Point::new(&setup, setup.rows, &graph)?;
        let line = |level| {
            let measured = point.measure(Effort::Level(level))?;
            let Measured { ms, recall, cdr, .. } = measured;
            Ok(NearestLine { setting: name(level), ms, recall, cdr })
        };
        levels.into_iter().map(line).collect()
    })
}

fn name(level: u32) -> String {
    format!("graph-{level}")
}

/// The saved graph, or a new one, which is saved where it was not found; and how long its build took.
fn graph(setup: &NearestSetup<'_>, tell: Tell<'_>) -> anyhow::Result<(Graph, Option<f64>)> {
    if let Some(path) = setup.index.filter(|path| path.exists()) {
        let graph = Graph::open(path, setup.rows)?.in_huge_pages()?;
        return match setup.shape.is_none_or(|shape| shape == graph.shape()) {
            true => Ok((graph, None)),
            false => Err(hinted(
                format!("{} is a {}", path.display(), graph.shape()),
                "leave --shape out, or name another file",
            )),
        };
    }
    let clock = Clock::start(setup.threads);
    let graph =
        Graph::build(setup.rows, setup.shape.unwrap_or(Shape::usual(setup.rows.bits())), SEED)?;
    let seconds = clock.seconds();
    tell(format!("{} rows: built in {seconds:.1} s", setup.rows.len()));
    if let Some(path) = setup.index {
        graph.save(path, setup.rows, None)?;
    }
    Ok((graph, Some(seconds)))
}

/// Rows, a graph over them, queries and their true answers.
struct Point<'a> {
    graph: &'a Graph,
    scan: Scan<'a>,
    queries: &'a Signatures,
    singles: Vec<Signatures>,
    batches: Vec<Signatures>,
    /// Stored rows, to warm up with: the queries themselves would lie in the caches.
    others: Vec<Signatures>,
    truth: Answers,
    repeats: usize,
}

struct Measured {
    ms: f64,
    recall: f64,
    cdr: f64,
    promise: Promise,
}

impl<'a> Point<'a> {
    fn new(
        setup: &NearestSetup<'a>,
        rows: &'a Signatures,
        graph: &'a Graph,
    ) -> lookalike::Result<Self> {
        let scan = Scan::new(rows)?;
        let queries = setup.queries;
        let mut truth = Answers::new();
        scan.nearest(queries.into(), K, &mut truth)?;
        let step = (rows.len() / queries.len().max(1)).max(1);
        let others = (0..rows.len()).step_by(step).take(queries.len());
        Ok(Point {
            graph,
            scan,
            queries,
            singles: cut(queries, 1)?,
            batches: cut(queries, BATCH)?,
            others: others.map(|row| Signatures::from(rows.get(row))).collect(),
            truth,
            repeats: setup.repeats,
        })
    }

    fn workload(&self, setup: &NearestSetup<'_>, build_seconds: Option<f64>) -> Workload {
        Workload {
            rows: setup.rows.len(),
            distinct: self.graph.distinct(),
            bits: setup.rows.bits(),
            queries: self.queries.len(),
            threads: setup.threads,
            repeats: self.repeats,
            shape: self.graph.shape().to_string(),
            build_seconds,
            bytes_a_row: self.graph.bytes() as f64 / setup.rows.len().max(1) as f64,
        }
    }

    fn settings(&self, tell: Tell<'_>) -> lookalike::Result<Vec<SettingRow>> {
        let asked = self.singles.len().min(SCANNED_QUERIES);
        let scan = SettingRow {
            setting: "scan".to_owned(),
            ms: self.ms(&self.scan, &self.singles[..asked])?,
            batch_ms: self.ms(&self.scan, &self.batches)?,
            recall: 1.0,
            cdr: 1.0,
        };
        let levels = LEVELS.into_iter().map(|level| {
            let Measured { ms, recall, cdr, .. } = self.measure(Effort::Level(level))?;
            let batch_ms = self.ms(&self.graph.at(Effort::Level(level)), &self.batches)?;
            tell(format!("{}: {ms:.4} ms, recall {recall:.3}, CDR {cdr:.4}", name(level)));
            Ok(SettingRow { setting: name(level), ms, batch_ms, recall, cdr })
        });
        [Ok(scan)].into_iter().chain(levels).collect()
    }

    fn promised(&self, tell: Tell<'_>) -> lookalike::Result<Vec<PromisedRow>> {
        let rows = RECALLS.into_iter().map(|asked| {
            let Measured { ms, recall, cdr, promise } = self.measure(Effort::Recall(asked))?;
            let (level, promised) = match promise {
                Promise::Expected { recall } => {
                    let reached = self.graph.curve().reach(asked, K);
                    (reached.map(|reached| reached.level), f64::from(recall))
                }
                _ => (None, 1.0),
            };
            tell(format!("recall {asked} asked for: {recall:.3} in {ms:.4} ms"));
            Ok(PromisedRow { asked, level, promised, recall, cdr, ms })
        });
        rows.collect()
    }

    /// The fastest settings that reach each goal with other queries, as the queries have them.
    fn chosen(
        &self,
        tune: &Signatures,
        settings: &[SettingRow],
    ) -> lookalike::Result<Vec<ChosenRow>> {
        let mut truth = Answers::new();
        self.scan.nearest(tune.into(), K, &mut truth)?;
        let quality = LEVELS.into_iter().map(|level| {
            let mut found = Answers::new();
            self.graph.at(Effort::Level(level)).nearest(tune.into(), K, &mut found)?;
            Ok((recall_at(&found, &truth, K), cdr(&found, &truth, K, tune.bits())))
        });
        let quality: Vec<(f64, f64)> = quality.collect::<lookalike::Result<_>>()?;
        let of_goal = |(goal, least)| {
            let reaches = |&(recall, cdr): &(f64, f64)| match goal {
                "cdr" => cdr >= least,
                _ => recall >= least,
            };
            // The scan comes before the levels.
            let row = quality.iter().position(reaches).map(|level| &settings[1 + level]);
            ChosenRow {
                goal,
                least,
                setting: row.map(|row| row.setting.clone()),
                ms: row.map(|row| row.ms),
                recall: row.map(|row| row.recall),
                cdr: row.map(|row| row.cdr),
            }
        };
        Ok(GOALS.into_iter().map(of_goal).collect())
    }

    /// A query a call: first the time, then what is found.
    fn measure(&self, effort: Effort) -> lookalike::Result<Measured> {
        let search = self.graph.at(effort);
        let ms = self.ms(&search, &self.singles)?;
        let mut found = Answers::new();
        let promise = search.nearest(self.queries.into(), K, &mut found)?;
        let recall = recall_at(&found, &self.truth, K);
        let cdr = cdr(&found, &self.truth, K, self.queries.bits());
        Ok(Measured { ms, recall, cdr, promise })
    }

    fn recall(&self, level: u32) -> lookalike::Result<f64> {
        let mut found = Answers::new();
        self.graph.at(Effort::Level(level)).nearest(self.queries.into(), K, &mut found)?;
        Ok(recall_at(&found, &self.truth, K))
    }

    /// Milliseconds a query by the clock on the wall, as `peers.py` takes them; the median of the repeats.
    fn ms(&self, index: &impl Index, queries: &[Signatures]) -> lookalike::Result<f64> {
        let mut found = Answers::new();
        let mut ask = |queries: &[Signatures]| {
            queries.iter().try_for_each(|some| index.nearest(some.into(), K, &mut found).map(drop))
        };
        ask(&self.others[..self.others.len().min(queries.len())])?;
        let count: usize = queries.iter().map(Signatures::len).sum();
        let passes = (0..self.repeats).map(|_| {
            let started = Instant::now();
            ask(queries)?;
            Ok(started.elapsed().as_secs_f64() * 1e3 / count.max(1) as f64)
        });
        Ok(median(&mut passes.collect::<lookalike::Result<Vec<f64>>>()?))
    }

    /// What it takes to find such a share: a level and milliseconds, between those of two measured levels.
    fn cost(&self, recall: f64) -> lookalike::Result<Option<(f64, f64)>> {
        let at = |level| Ok((level, self.ms(&self.graph.at(Effort::Level(level)), &self.singles)?));
        let mut below = None;
        for level in LEVELS {
            let found = self.recall(level)?;
            if found < recall {
                below = Some((level, found));
                continue;
            }
            let above = at(level)?;
            let Some((level, less)) = below else {
                return Ok(Some((f64::from(above.0), above.1)));
            };
            return Ok(Some(between(at(level)?, above, (recall - less) / (found - less))));
        }
        Ok(None)
    }
}

/// Between two levels and their times, both on logarithmic scales.
fn between(below: (u32, f64), above: (u32, f64), part: f64) -> (f64, f64) {
    let mean = |below: f64, above: f64| below * (above / below).powf(part);
    (mean(f64::from(below.0), f64::from(above.0)), mean(below.1, above.1))
}

/// Signatures in pieces of some rows.
fn cut(signatures: &Signatures, rows: usize) -> lookalike::Result<Vec<Signatures>> {
    let pieces = signatures.words().chunks(rows * signatures.stride());
    pieces.map(|words| Signatures::from_words(signatures.bits(), words.to_vec())).collect()
}

/// Measures evenly spread parts of the rows; all of them are measured already.
fn growth(
    setup: &NearestSetup<'_>,
    (all, seconds): (&Point<'_>, Option<f64>),
    tell: Tell<'_>,
) -> anyhow::Result<Vec<GrowthRow>> {
    let row = |point: &Point<'_>, rows: usize, build_seconds| -> anyhow::Result<GrowthRow> {
        let cost = point.cost(GROWTH_RECALL)?;
        let asked = point.singles.len().min(SCANNED_QUERIES);
        let scan_ms = point.ms(&point.scan, &point.singles[..asked])?;
        let (level, ms) = (cost.map(|cost| cost.0), cost.map(|cost| cost.1));
        tell(format!("{rows} rows: {} ms, scan {scan_ms:.3} ms", or_none(ms, 4)));
        Ok(GrowthRow { rows, build_seconds, level, ms, scan_ms })
    };
    let parts = PARTS.iter().map(|&part| {
        if part == 1 {
            return row(all, setup.rows.len(), seconds);
        }
        let words = setup.rows.rows().step_by(part).flatten().copied().collect();
        let rows = Signatures::from_words(setup.rows.bits(), words)?;
        let shape = Some(all.graph.shape());
        let setup = NearestSetup { rows: &rows, index: None, shape, ..*setup };
        let (graph, seconds) = graph(&setup, tell)?;
        row(&Point::new(&setup, &rows, &graph)?, rows.len(), seconds)
    });
    parts.collect()
}

fn or_none(number: Option<f64>, digits: usize) -> String {
    number.map_or("-".to_owned(), |number| format!("{number:.digits$}"))
}

impl SettingRow {
    fn cells(&self) -> Vec<String> {
        let numbers = [(self.ms, 4), (self.batch_ms, 4), (self.recall, 4), (self.cdr, 4)];
        let numbers = numbers.map(|(number, digits)| or_none(Some(number), digits));
        [self.setting.clone()].into_iter().chain(numbers).collect()
    }
}

impl PromisedRow {
    fn cells(&self) -> Vec<String> {
        let setting = self.level.map_or("scan".to_owned(), name);
        let numbers = [(self.promised, 3), (self.recall, 4), (self.cdr, 4), (self.ms, 4)];
        let numbers = numbers.map(|(number, digits)| or_none(Some(number), digits));
        [self.asked.to_string(), setting].into_iter().chain(numbers).collect()
    }
}

impl ChosenRow {
    fn cells(&self) -> Vec<String> {
        let setting = self.setting.clone().unwrap_or_else(|| "never reached".to_owned());
        let numbers = [self.ms, self.recall, self.cdr].map(|number| or_none(number, 4));
        let goal = format!("{} {}", self.goal, self.least);
        [goal, setting].into_iter().chain(numbers).collect()
    }
}

impl GrowthRow {
    fn cells(&self) -> Vec<String> {
        vec![
            self.rows.to_string(),
            or_none(self.build_seconds, 1),
            or_none(self.level, 0),
            or_none(self.ms, 4),
            or_none(Some(self.scan_ms), 4),
            or_none(self.ms.map(|ms| self.scan_ms / ms), 1),
        ]
    }
}

/// For people.
pub(crate) fn nearest_report(results: &NearestResults) -> String {
    let Workload {
        rows,
        distinct,
        bits,
        queries,
        threads,
        repeats,
        shape,
        build_seconds,
        bytes_a_row,
    } = &results.workload[0];
    let built = match build_seconds {
        Some(seconds) => format!("built in {seconds:.1} s"),
        None => "from its file".to_owned(),
    };
    let mut text = format!(
        "{rows} rows of {bits} bits, {distinct} distinct; {queries} queries, {threads} thread(s), medians of {repeats}\n\
         {shape} {built}, {bytes_a_row:.0} bytes a row beside the signatures\n\n\
         By effort, the {K} nearest: a query a call, and batches of {BATCH}\n\n{}\n\n\
         What --recall delivers\n\n{}",
        table(
            "setting | ms | ms in a batch | recall@10 | CDR@10",
            results.settings.iter().map(SettingRow::cells).collect()
        ),
        table(
            "asked | setting | promised | recall@10 | CDR@10 | ms",
            results.promised.iter().map(PromisedRow::cells).collect()
        ),
    );
    if !results.chosen.is_empty() {
        let rows = results.chosen.iter().map(ChosenRow::cells).collect();
        text += "\n\nThe least level that reaches a goal with the queries of --tune\n\n";
        text += &table("goal | setting | ms | recall@10 | CDR@10", rows);
    }
    if !results.growth.is_empty() {
        let rows = results.growth.iter().map(GrowthRow::cells).collect();
        text += &format!("\n\nGrowth: what a recall of {GROWTH_RECALL} costs\n\n");
        text += &table("rows | built in s | level | ms | scan ms | times as fast", rows);
    }
    if !results.peers.is_empty() {
        text += &format!("\n\nBeside others\n\n{}", results.peers.join("\n"));
    }
    text
}

/// Time by the number of rows.
pub(crate) fn nearest_growth_figure(results: &NearestResults) -> String {
    let series = |name: String, ms: fn(&GrowthRow) -> Option<f64>| Series {
        name,
        points: results.growth.iter().filter_map(|row| Some((row.rows as f64, ms(row)?))).collect(),
    };
    let plot = Plot {
        title: "Time of a query by the number of rows, the 10 nearest".to_owned(),
        x: log_axis("stored rows"),
        y: log_axis("milliseconds a query"),
        series: vec![
            series(format!("graph, recall {GROWTH_RECALL:.2}"), |row| row.ms),
            series("scan".to_owned(), |row| Some(row.scan_ms)),
        ],
    };
    plot.svg()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_two_levels() {
        assert_eq!(between((16, 1.0), (64, 4.0), 0.5), (32.0, 2.0));
        assert_eq!(between((16, 1.0), (64, 4.0), 0.0), (16.0, 1.0));
    }
}
