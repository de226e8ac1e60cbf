//! Indexes that find most of the nearest, made ready: graphs and slice lists look as hard as the wanted share takes, as far
//! as that is sooner done than a scan.

use std::time::Instant;

use lookalike::{
    SignatureFile, Signatures,
    index::{
        Answers, Effort, Graph, GraphFile, Index, Issl, IsslFile, Promise, Queries, Reached, Shape,
    },
    search::Question,
};

use super::ready::{Demand, Ready, TABLES_BATCH, seconds};
use crate::{
    commands::build::SEED,
    index::{BATCH, FEW_ROWS, Wanted},
    opened::Opened,
    output::say,
    planner::costs,
    size,
};

const IN_FILE: &str = "the index file has it";
const NOT_EXACT: &str = "the index file is not exact for this question";
const SO_FEW: &str = "so few rows or queries are sooner compared than an index is tried";
const SCAN_WINS: &str = "a scan is predicted to be faster than the index was when it was tried";
const NOT_REACHED: &str = "the index was measured to find less than `--recall` says";
/// How to find more than was found.
const SCAN_FINDS_ALL: &str = "`--index scan` finds all";

/// Walks that are timed; as many go before them, so that what they need is in memory.
const TIMED: usize = 16;
/// Rows that slice lists are tried with, to see how far they have to go.
const TRIED: usize = 100;
/// The most neighbors that they are tried for.
const MOST_TRIED: usize = 100;

/// A graph and how hard it looks, both of which live as long as they are asked.
struct Walks {
    graph: Graph,
    effort: Effort,
}

impl Index for Walks {
    fn within(
        &self,
        queries: Queries<'_>,
        radius: u32,
        found: &mut Answers,
    ) -> lookalike::Result<Promise> {
        self.graph.at(self.effort).within(queries, radius, found)
    }

    fn first(
        &self,
        queries: Queries<'_>,
        radius: u32,
        found: &mut Answers,
    ) -> lookalike::Result<Promise> {
        self.graph.at(self.effort).first(queries, radius, found)
    }

    fn nearest(
        &self,
        queries: Queries<'_>,
        k: usize,
        found: &mut Answers,
    ) -> lookalike::Result<Promise> {
        self.graph.at(self.effort).nearest(queries, k, found)
    }
}

impl<'a> Ready<'a> {
    /// The graph of a file.
    pub(super) fn opened_graph(
        demand: Demand<'_>,
        opened: &'a Opened,
        file: &GraphFile,
    ) -> anyhow::Result<Self> {
        if let Some(scan) = Ready::passed_over(demand, opened, demand.check_graph(file.shape()))? {
            return Ok(scan);
        }
        let started = Instant::now();
        let graph = file.graph(opened.file.signatures())?;
        let how = ("opened", seconds(opened.took + started.elapsed()));
        if let (Wanted::Auto, Question::Nearest(k)) = (demand.args.index, demand.question) {
            let rows = opened.file.signatures();
            if rows.len() < FEW_ROWS {
                return Ready::scan(&opened.file, SO_FEW);
            }
            let reached = graph.curve().reach(demand.recall(), k).is_some();
            if reached && demand.scan_seconds(rows)? < demand.walk_seconds(&graph, rows, k)? {
                return Ready::scan(&opened.file, SCAN_WINS);
            }
        }
        let ready = Ready::graph(demand, &opened.file, graph, (IN_FILE, how))?;
        Ok(Ready { was_built: true, ..ready })
    }

    /// A graph, built for this search.
    pub(super) fn built_graph(
        demand: Demand<'_>,
        file: &'a SignatureFile,
        shape: Shape,
        why: &'static str,
    ) -> anyhow::Result<Self> {
        demand.check_graph(shape)?;
        let started = Instant::now();
        let graph = Graph::build(file.signatures(), shape, SEED)?;
        Ready::graph(demand, file, graph, (why, ("built", seconds(started.elapsed()))))
    }

    fn graph(
        demand: Demand<'_>,
        file: &'a SignatureFile,
        graph: Graph,
        (why, how): (&'static str, (&'static str, String)),
    ) -> anyhow::Result<Self> {
        let recall = demand.recall();
        let effort = match demand.question {
            Question::Within(_) | Question::First(_) => "as wide as the radius takes".to_owned(),
            // So few that it compares them all.
            Question::Nearest(_) if graph.curve().points().is_empty() => {
                "none: so few rows are all compared".to_owned()
            }
            Question::Nearest(k) => match graph.curve().reach(recall, k) {
                Some(reached) => {
                    let (level, queries) = (reached.level, graph.curve().queries());
                    format!("of {level} nodes, as measured with {queries} queries")
                }
                None => return Ready::not_reached(demand, file),
            },
        };
        let bytes = size::display(graph.bytes() + graph.signature_bytes());
        let about = vec![
            ("index", graph.shape().to_string()),
            ("why", why.to_owned()),
            how,
            ("walks", effort),
            ("memory", format!("{bytes} for {} distinct rows", graph.distinct())),
        ];
        Ok(Ready {
            index: Box::new(Walks { graph, effort: Effort::Recall(recall) }),
            takes_margins: false,
            batch: TABLES_BATCH,
            planned: None,
            was_built: false,
            to_find_more: SCAN_FINDS_ALL,
            about,
        })
    }

    /// The slice lists of a file.
    pub(super) fn opened_issl(
        demand: Demand<'_>,
        opened: &'a Opened,
        file: &IsslFile,
    ) -> anyhow::Result<Self> {
        let name = || format!("issl-{}", file.width());
        if let Some(scan) = Ready::passed_over(demand, opened, demand.check_issl(name))? {
            return Ok(scan);
        }
        let started = Instant::now();
        let index = file.index(opened.file.signatures())?;
        let how = ("opened", seconds(opened.took + started.elapsed()));
        let ready = Ready::issl(demand, &opened.file, index, (IN_FILE, how))?;
        Ok(Ready { was_built: true, ..ready })
    }

    /// Slice lists, built for this search.
    pub(super) fn built_issl(
        demand: Demand<'_>,
        file: &'a SignatureFile,
        width: Option<u32>,
        why: &'static str,
    ) -> anyhow::Result<Self> {
        demand.check_issl(|| "issl".to_owned())?;
        let started = Instant::now();
        let index = Issl::build(file.signatures(), width)?;
        Ready::issl(demand, file, index, (why, ("built", seconds(started.elapsed()))))
    }

    fn issl(
        demand: Demand<'_>,
        file: &'a SignatureFile,
        mut index: Issl<'a>,
        (why, how): (&'static str, (&'static str, String)),
    ) -> anyhow::Result<Self> {
        let mut lists = "as many as the radius takes".to_owned();
        if let Question::Nearest(k) = demand.question {
            let auto = demand.args.index == Wanted::Auto;
            // To try them takes as many scans.
            if auto && demand.queries <= 2 * TRIED as u64 {
                return Ready::scan(file, SO_FEW);
            }
            let reached = index.calibrate(TRIED)?.reach(demand.recall(), k.min(MOST_TRIED));
            let Some(Reached { level, seconds, .. }) = reached else {
                return Ready::not_reached(demand, file);
            };
            // They were tried on all threads, as they are asked.
            if auto && demand.scan_seconds(file.signatures())? < seconds * demand.queries as f64 {
                return Ready::scan(file, SCAN_WINS);
            }
            let reach = index.ladder(false)[level as usize];
            lists = format!("{reach:?}, as measured with {TRIED} rows");
            index = index.with_reach(reach);
        }
        let (name, bytes) = (format!("issl-{}", index.width()), size::display(index.bytes()));
        let about = vec![
            ("index", name),
            ("why", why.to_owned()),
            how,
            ("lists", lists),
            ("memory", format!("{bytes} for {} distinct rows", index.distinct())),
        ];
        Ok(Ready {
            index: Box::new(index),
            takes_margins: false,
            batch: TABLES_BATCH,
            planned: None,
            was_built: false,
            to_find_more: SCAN_FINDS_ALL,
            about,
        })
    }

    /// A scan, if the index of a file may miss some and nobody said that this is allowed.
    fn passed_over(
        demand: Demand<'_>,
        opened: &'a Opened,
        allowed: anyhow::Result<()>,
    ) -> anyhow::Result<Option<Self>> {
        if allowed.is_ok() || demand.args.index != Wanted::Auto {
            return allowed.map(|()| None);
        }
        let Some(index) = &opened.index else { return Ok(None) };
        index.check_rows(opened.file.signatures())?;
        let kind = index.kind();
        say(demand.global, || {
            format!("note: {kind} may miss some, so every row is compared; `--recall` allows less")
        });
        Ready::scan(&opened.file, NOT_EXACT).map(Some)
    }

    /// A scan, as no effort that was measured finds enough.
    fn not_reached(demand: Demand<'_>, file: &'a SignatureFile) -> anyhow::Result<Self> {
        let recall = demand.recall();
        say(demand.global, || {
            format!(
                "note: the index was measured to find less than `--recall {recall}`, so every row is compared"
            )
        });
        Ready::scan(file, NOT_REACHED)
    }
}

impl Demand<'_> {
    fn recall(&self) -> f64 {
        self.args.recall.unwrap_or(1.0)
    }

    /// Whether a graph may be asked: it is not exact.
    fn check_graph(&self, shape: Shape) -> anyhow::Result<()> {
        self.check_exact(false, || format!("{shape} may miss hits: a query walks to some rows"))
    }

    /// Whether slice lists may be asked: they are exact within a radius.
    fn check_issl(&self, name: impl FnOnce() -> String) -> anyhow::Result<()> {
        let exact = !matches!(self.question, Question::Nearest(_));
        let name = if exact { String::new() } else { name() };
        self.check_exact(exact, || format!("{name} may miss some of the nearest"))
    }

    /// How long a scan is predicted to take, for all queries on all threads.
    fn scan_seconds(&self, rows: &Signatures) -> anyhow::Result<f64> {
        let batch = self.queries.clamp(1, BATCH) as usize;
        let (bits, count) = (rows.bits(), rows.len() as f64);
        let each = costs(self.global)?.scan(bits, count, bits / 8, batch) / 1e9;
        Ok(each * self.queries as f64 / self.global.threads() as f64)
    }

    /// How long walks take, for all queries: some of them are timed.
    fn walk_seconds(&self, graph: &Graph, rows: &Signatures, k: usize) -> anyhow::Result<f64> {
        let search = graph.at(Effort::Recall(self.recall()));
        let (mut time, mut found) = (0.0, Answers::new());
        for half in 0..2 {
            let mut sample = Signatures::new(rows.bits())?;
            for i in 0..TIMED {
                sample.push_row_of(rows, (2 * i + half) * rows.len() / (2 * TIMED))?;
            }
            let started = Instant::now();
            search.nearest((&sample).into(), k, &mut found)?;
            time = started.elapsed().as_secs_f64() / TIMED as f64;
        }
        // Few queries have few threads: each takes some of them.
        let threads = (self.global.threads() as f64).min((self.queries as f64 / 64.0).ceil());
        Ok(time * self.queries as f64 / threads.max(1.0))
    }
}
