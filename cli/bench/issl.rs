//! The experiments of the two papers on ISSL (Chappell, Geva and Zuccon), measured on signatures of one's own: quality and
//! time by expansion and admission, how much of a collection the lists touch, and growth. Beside it, ours: weak bits first.

use lookalike::{
    Signatures,
    index::{Answers, Index, Issl, Queries, Reach, Scan},
    quality::{cdr, nearest_found},
};
use lookalike_thesis::plot::{Plot, Series};
use rayon::{ThreadPool, ThreadPoolBuilder};
use serde::Serialize;

use super::{batch::Clock, figures::log_axis, measure::median, text::table};

/// What to measure.
pub(crate) struct IsslSetup<'a> {
    pub(crate) rows: &'a Signatures,
    pub(crate) queries: Queries<'a>,
    /// Other queries, that the rates of flips are learned from.
    pub(crate) learned_from: Queries<'a>,
    pub(crate) width: Option<u32>,
    pub(crate) repeats: usize,
    pub(crate) threads: usize,
}

/// Everything that was measured.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct IsslResults {
    workload: Vec<Workload>,
    /// Table 1 of the paper of 2015.
    published: Vec<ReachRow>,
    /// The same with more rows compared in the end.
    reranked: Vec<ReachRow>,
    /// Weak bits first.
    weakest: Vec<ReachRow>,
    /// Table 1 of the earlier paper.
    touched: Vec<TouchedRow>,
    /// Figure 3.
    growth: Vec<GrowthRow>,
}

#[derive(Debug, Clone, Serialize)]
struct Workload {
    rows: usize,
    distinct: usize,
    bits: u32,
    queries: usize,
    margins: bool,
    threads: usize,
    width: u32,
    slices: usize,
    build_seconds: f64,
    bytes_a_row: f64,
    /// A query at a time.
    scan_ms: f64,
}

/// One reach.
#[derive(Debug, Clone, Serialize)]
struct ReachRow {
    reach: Reach,
    lists: usize,
    ms: f64,
    cdr: f64,
    recall: f64,
    /// The share of the answers that are proven.
    proven: f64,
    /// What the paper has, on other documents and 20 threads.
    published_ms: Option<f64>,
    published_cdr: Option<f64>,
}

/// The lists within some errors.
#[derive(Debug, Clone, Serialize)]
struct TouchedRow {
    errors: u32,
    /// In each slice.
    lists: usize,
    share: f64,
    published_share: Option<f64>,
}

/// A part of the rows, with slices as wide as suit it.
#[derive(Debug, Clone, Serialize)]
struct GrowthRow {
    rows: usize,
    width: u32,
    published: Point,
    weakest: Point,
    scan_ms: f64,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct Point {
    ms: f64,
    cdr: f64,
    recall: f64,
}

/// Neighbors that are asked for.
const K: usize = 10;
/// Table 1 of the paper of 2015: expansion, admission, milliseconds, CDR@10.
const PUBLISHED: [(u32, u32, f64, f64); 15] = [
    (0, 0, 0.040, 0.817),
    (1, 0, 0.112, 0.869),
    (1, 1, 0.193, 0.913),
    (2, 0, 0.568, 0.896),
    (2, 1, 0.703, 0.951),
    (2, 2, 1.399, 0.967),
    (3, 0, 2.242, 0.911),
    (3, 1, 2.452, 0.967),
    (3, 2, 3.251, 0.985),
    (3, 3, 5.080, 0.989),
    (4, 0, 7.011, 0.913),
    (4, 1, 7.258, 0.971),
    (4, 2, 8.517, 0.99),
    (4, 3, 11.483, 0.995),
    (4, 4, 12.744, 0.996),
];
/// The width that the published numbers are for.
const PUBLISHED_WIDTH: u32 = 16;
/// Table 1 of the earlier paper: the share of the collection that lists within so many errors cover.
const TOUCHED: [f64; 6] = [0.0062, 0.0713, 0.3476, 0.7962, 0.9893, 1.0];
/// As many queries as that paper had.
const TOUCHED_QUERIES: usize = 10;
const SCANNED_QUERIES: usize = 40;
/// A measurement takes at least so many seconds, or so many rounds.
const SHORT: f64 = 0.15;
const MOST_ROUNDS: u32 = 256;
/// Parts of the rows, for growth.
const PARTS: [usize; 5] = [16, 8, 4, 2, 1];
/// For growth, lists in each slice where weak bits go first.
const LISTS: usize = 128;

/// Measures everything; `tell` hears how far it is.
pub(crate) fn issl(setup: &IsslSetup<'_>, tell: &dyn Fn(String)) -> anyhow::Result<IsslResults> {
    let pool = ThreadPoolBuilder::new().num_threads(setup.threads).build()?;
    let point = Collection::new(setup, setup.rows, &pool)?;
    let workload = point.workload(setup)?;
    tell(format!("built in {:.1} s", point.build_seconds));
    let published = PUBLISHED.map(|(i, j, ..)| Issl::published(i, j));
    let published = point.ladder(&published, tell)?;
    let reranked = point.ladder(&point.index.ladder(false), tell)?;
    let weakest = point.ladder(&point.index.ladder(true), tell)?;
    let touched = point.touched();
    drop(point);
    let growth: anyhow::Result<Vec<GrowthRow>> =
        PARTS.iter().map(|&part| growth(setup, part, &pool, tell)).collect();
    Ok(IsslResults {
        workload: vec![workload],
        published,
        reranked,
        weakest,
        touched,
        growth: growth?,
    })
}

/// Rows, an index over them, and the true answers.
struct Collection<'a> {
    rows: &'a Signatures,
    queries: Queries<'a>,
    index: Issl<'a>,
    truth: Answers,
    build_seconds: f64,
    repeats: usize,
    pool: &'a ThreadPool,
}

impl<'a> Collection<'a> {
    fn new(
        setup: &IsslSetup<'a>,
        rows: &'a Signatures,
        pool: &'a ThreadPool,
    ) -> lookalike::Result<Self> {
        let clock = Clock::start(2);
        let mut index = Issl::build(rows, setup.width)?;
        let build_seconds = clock.seconds();
        index.learn(setup.learned_from)?;
        let mut truth = Answers::new();
        Scan::new(rows)?.nearest(setup.queries, K, &mut truth)?;
        let (queries, repeats) = (setup.queries, setup.repeats);
        Ok(Collection { rows, queries, index, truth, build_seconds, repeats, pool })
    }

    fn workload(&self, setup: &IsslSetup<'_>) -> lookalike::Result<Workload> {
        Ok(Workload {
            rows: self.rows.len(),
            distinct: self.index.distinct(),
            bits: self.rows.bits(),
            queries: self.queries.len(),
            margins: self.queries.margins(0).is_some(),
            threads: setup.threads,
            width: self.index.width(),
            slices: self.index.slices(),
            build_seconds: self.build_seconds,
            bytes_a_row: self.index.bytes() as f64 / self.rows.len() as f64,
            scan_ms: self.scan_ms()?,
        })
    }

    fn ladder(&self, reaches: &[Reach], tell: &dyn Fn(String)) -> lookalike::Result<Vec<ReachRow>> {
        let rows = reaches.iter().map(|&reach| {
            let row = self.measure(reach)?;
            tell(format!(
                "{reach:?}: {:.2} ms, CDR {:.3}, recall {:.3}",
                row.ms, row.cdr, row.recall
            ));
            Ok(row)
        });
        rows.collect()
    }

    /// Time and quality of a reach: the time is the median of the repeats.
    fn measure(&self, reach: Reach) -> lookalike::Result<ReachRow> {
        let (mut found, mut proven) = (Answers::new(), 0);
        let mut ask = || -> lookalike::Result<()> {
            proven = self.index.nearest_at(self.queries, K, reach, &mut found)?.count();
            Ok(())
        };
        let seconds: lookalike::Result<Vec<f64>> =
            (0..self.repeats).map(|_| self.seconds(&mut ask)).collect();
        let published = self.published(reach);
        let queries = self.queries.len() as f64;
        Ok(ReachRow {
            reach,
            lists: self.lists(reach),
            ms: median(&mut seconds?) / queries * 1e3,
            cdr: cdr(&found, &self.truth, K, self.rows.bits()),
            recall: nearest_found(&found, &self.truth),
            proven: proven as f64 / queries,
            published_ms: published.map(|(ms, _)| ms),
            published_cdr: published.map(|(_, cdr)| cdr),
        })
    }

    fn lists(&self, reach: Reach) -> usize {
        match reach {
            Reach::Within { expansion, .. } => self.index.lists(expansion),
            Reach::Weakest { lists, .. } => lists,
        }
    }

    fn published(&self, reach: Reach) -> Option<(f64, f64)> {
        let Reach::Within { expansion, admission, .. } = reach else { return None };
        let same =
            reach == Issl::published(expansion, admission) && self.index.width() == PUBLISHED_WIDTH;
        let of = PUBLISHED.iter().find(|&&(i, j, ..)| (i, j) == (expansion, admission))?;
        same.then_some((of.2, of.3))
    }

    fn touched(&self) -> Vec<TouchedRow> {
        let queries = self.queries.signatures();
        let asked = queries.len().min(TOUCHED_QUERIES);
        let row = |errors: u32| {
            let shares = (0..asked).map(|query| self.index.touched(queries.row(query), errors).1);
            let published = TOUCHED.get(errors as usize).copied();
            TouchedRow {
                errors,
                lists: self.index.lists(errors) / self.index.slices(),
                share: shares.sum::<f64>() / asked as f64,
                published_share: published.filter(|_| self.index.width() == PUBLISHED_WIDTH),
            }
        };
        (0..=self.index.width().min(16)).map(row).collect()
    }

    /// One query after the other: a batch would share the reading.
    fn scan_ms(&self) -> lookalike::Result<f64> {
        let scan = Scan::new(self.rows)?;
        let asked = self.queries.len().min(SCANNED_QUERIES);
        let one = |query: usize| Signatures::from(self.queries.signatures().get(query));
        let queries: Vec<Signatures> = (0..asked).map(one).collect();
        let mut found = Answers::new();
        let mut ask = || -> lookalike::Result<()> {
            let mut queries = queries.iter();
            queries.try_for_each(|query| scan.nearest(query.into(), K, &mut found).map(drop))
        };
        Ok(self.seconds(&mut ask)? / asked as f64 * 1e3)
    }

    /// How long something takes. What takes no time is done again and again: the system's clock of a thread is coarse.
    fn seconds(
        &self,
        run: &mut (impl FnMut() -> lookalike::Result<()> + Send),
    ) -> lookalike::Result<f64> {
        self.pool.install(|| {
            let mut rounds = 1;
            loop {
                let clock = Clock::start(self.pool.current_num_threads());
                (0..rounds).try_for_each(|_| run())?;
                let seconds = clock.seconds();
                if seconds > SHORT || rounds >= MOST_ROUNDS {
                    return Ok(seconds / f64::from(rounds));
                }
                rounds *= 4;
            }
        })
    }

    fn point(&self, reach: Reach) -> lookalike::Result<Point> {
        let ReachRow { ms, cdr, recall, .. } = self.measure(reach)?;
        Ok(Point { ms, cdr, recall })
    }
}

/// Measures one in so many of the rows, with slices as wide as suit them.
fn growth(
    setup: &IsslSetup<'_>,
    part: usize,
    pool: &ThreadPool,
    tell: &dyn Fn(String),
) -> anyhow::Result<GrowthRow> {
    let words = setup.rows.rows().step_by(part).flatten().copied().collect();
    let rows = Signatures::from_words(setup.rows.bits(), words)?;
    let setup = IsslSetup { rows: &rows, width: None, ..*setup };
    let collection = Collection::new(&setup, &rows, pool)?;
    let lists = collection.index.slices() * LISTS;
    let row = GrowthRow {
        rows: rows.len(),
        width: collection.index.width(),
        published: collection.point(Issl::published(2, 2))?,
        weakest: collection.point(Reach::Weakest { lists, reranked: 1000 })?,
        scan_ms: collection.scan_ms()?,
    };
    tell(format!("{} rows: {:.2} ms, scan {:.2} ms", row.rows, row.published.ms, row.scan_ms));
    Ok(row)
}

impl ReachRow {
    fn cells(&self) -> Vec<String> {
        let name = match self.reach {
            Reach::Within { expansion, admission, .. } => format!("({expansion}, {admission})"),
            Reach::Weakest { .. } => "weakest first".to_owned(),
        };
        let or_none = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        vec![
            name,
            self.lists.to_string(),
            self.reach.reranked().to_string(),
            format!("{:.3}", self.ms),
            format!("{:.3}", self.cdr),
            format!("{:.3}", self.recall),
            format!("{:.3}", self.proven),
            or_none(self.published_ms.map(|ms| format!("{ms:.3}"))),
            or_none(self.published_cdr.map(|cdr| format!("{cdr:.3}"))),
        ]
    }
}

impl TouchedRow {
    fn cells(&self) -> Vec<String> {
        let percent = |share: f64| format!("{:.2}%", 100.0 * share);
        let published = self.published_share.map_or("-".to_owned(), percent);
        vec![self.errors.to_string(), self.lists.to_string(), percent(self.share), published]
    }
}

impl GrowthRow {
    fn cells(&self) -> Vec<String> {
        let start = [self.rows.to_string(), self.width.to_string()];
        let point = |point: Point| {
            [
                format!("{:.3}", point.ms),
                format!("{:.3}", point.cdr),
                format!("{:.3}", point.recall),
            ]
        };
        let points = [self.published, self.weakest].into_iter().flat_map(point);
        start.into_iter().chain(points).chain([format!("{:.3}", self.scan_ms)]).collect()
    }
}

/// For people.
pub(crate) fn issl_report(results: &IsslResults) -> String {
    let of = |rows: &[ReachRow]| {
        let header =
            "(i, j) | lists | re-ranked | ms | CDR@10 | recall@10 | proven | paper ms | paper CDR";
        table(header, rows.iter().map(ReachRow::cells).collect())
    };
    let Workload {
        rows,
        distinct,
        bits,
        queries,
        margins,
        threads,
        width,
        slices,
        build_seconds,
        bytes_a_row,
        scan_ms,
    } = &results.workload[0];
    let with = if *margins { "with" } else { "without" };
    let touched = results.touched.iter().map(TouchedRow::cells).collect();
    let growth = results.growth.iter().map(GrowthRow::cells).collect();
    format!(
        "{rows} rows of {bits} bits, {distinct} distinct; {queries} queries {with} margins, {threads} thread(s)\n\
         {slices} slices of {width} bits, built in {build_seconds:.1} s on all cores, {bytes_a_row:.0} bytes a row; \
         a scan takes {scan_ms:.2} ms\n\n\
         Table 1 of the paper of 2015 (theirs: a million Wikipedia documents, 20 threads)\n\n{}\n\n\
         More rows compared in the end\n\n{}\n\n\
         Weak bits first\n\n{}\n\n\
         Table 1 of the earlier paper: lists in each slice, and the share of the rows that is met in all\n\n{}\n\n\
         Figure 3: growth, the slices a bit wider each time; (2, 2) with 30 re-ranked, weak bits first with 1000\n\n{}",
        of(&results.published),
        of(&results.reranked),
        of(&results.weakest),
        table("errors | lists | met | paper", touched),
        table(
            "rows | width | (2, 2) ms | CDR | recall | weakest ms | CDR | recall | scan ms",
            growth
        ),
    )
}

/// Figure 3: time by the number of rows.
pub(crate) fn issl_growth_figure(results: &IsslResults) -> String {
    let series = |name: &str, ms: fn(&GrowthRow) -> f64| Series {
        name: name.to_owned(),
        points: results.growth.iter().map(|row| (row.rows as f64, ms(row))).collect(),
    };
    let plot = Plot {
        title: "Time of a query by the number of rows, slices growing with it".to_owned(),
        x: log_axis("stored rows"),
        y: log_axis("milliseconds a query"),
        series: vec![
            series("ISSL as published, (2, 2)", |row| row.published.ms),
            series("weak bits first", |row| row.weakest.ms),
            series("scan", |row| row.scan_ms),
        ],
    };
    plot.svg()
}
