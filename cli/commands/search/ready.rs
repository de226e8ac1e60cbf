//! An index made ready for a question: opened, built, or none if every row is compared.

use std::time::{Duration, Instant};

use clap::Args;
use lookalike::{
    SignatureFile,
    index::{Build, Composition, IndexFile, Permuted, PermutedMethod, Scan, Tables},
    plan,
    search::{AnyIndex, Question},
};

use crate::{
    commands::Global,
    failure::hinted,
    index::{Choice, Chosen, Task, Wanted, choose, parse_share},
    opened::{Opened, OpenedIndex},
    output::say,
    planner::Planner,
    size,
};

/// Flags that say how to search.
#[derive(Debug, Args)]
#[command(next_help_heading = "Index")]
pub(super) struct IndexArgs {
    /// How to search: `scan` compares with every row; pieces, blocks, multi and psm look up parts of signatures in
    /// tables, and may have numbers: pieces-4, blocks-5-2, multi-2x4, psm-1-23; permuted walks through sorted orders, as
    /// permuted-16; graph walks from neighbor to neighbor, issl scores rows in lists of slices: graph-62-96, issl-16.
    /// Collections keep the index that they were created with; `sql` asks their database alone.
    /// Not said, it is the index file's way; without one, what is predicted to be the fastest, which is the
    /// scan unless there are many rows and queries
    #[arg(long, value_name = "METHOD", default_value = "auto", hide_default_value = true)]
    pub(super) index: Wanted,

    /// The share of the hits that is enough, as 0.9: allows an index that is not exact
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    pub(super) recall: Option<f64>,

    /// The most memory for an index that is built for this search, as 500M or 4G
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub(super) memory: Option<u64>,

    /// Tell on standard error how the search was done and how long it took, beside what was predicted
    #[arg(long)]
    pub(super) explain: bool,
}

/// What an index is made ready for.
#[derive(Clone, Copy)]
pub(super) struct Demand<'a> {
    pub(super) args: &'a IndexArgs,
    pub(super) question: Question,
    /// How many queries there will be, or about as many.
    pub(super) queries: u64,
    pub(super) global: &'a Global,
}

/// An index that is ready, and what there is to tell about it.
pub(super) struct Ready<'a> {
    pub(super) index: AnyIndex<'a>,
    /// Whether margins help it.
    pub(super) takes_margins: bool,
    /// Queries to ask at a time.
    pub(super) batch: usize,
    /// What the planner calls it, if it knows it.
    pub(super) planned: Option<plan::Choice>,
    /// Whether it was there before the search.
    pub(super) was_built: bool,
    /// What to try if less was found than is enough.
    pub(super) to_find_more: &'static str,
    pub(super) about: Vec<(&'static str, String)>,
}

/// Queries that a scan is asked at a time: enough to share each pass over memory.
const SCAN_BATCH: usize = 256;
/// Tables are asked more at a time, so that each thread has some.
pub(super) const TABLES_BATCH: usize = 8192;

/// What finds more than some tables or orders do.
const MORE_PROBES: &str =
    "more probes (psm-1-200) or orders (permuted-64) find more; `--index multi` finds all";
/// The same permutations each time.
const SEED: u64 = 1;

impl<'a> Ready<'a> {
    /// Makes an index ready for a question.
    pub(super) fn new(demand: Demand<'_>, opened: &'a Opened) -> anyhow::Result<Self> {
        match &opened.index {
            Some(index) if demand.args.index != Wanted::Scan => {
                Ready::opened(demand, opened, index)
            }
            _ => Ready::chosen(demand, &opened.file),
        }
    }

    /// The index of a file.
    fn opened(demand: Demand<'_>, opened: &'a Opened, index: &OpenedIndex) -> anyhow::Result<Self> {
        let kind = index.kind();
        if !demand.args.index.admits_file(kind) {
            let sig = opened.path.display();
            return Err(hinted(
                format!("the index file is {kind}, which is not what `--index` says"),
                format!(
                    "leave `--index` out, or search {sig} itself: the index is then built for this search"
                ),
            ));
        }
        match index {
            OpenedIndex::Tables(file) => Ready::opened_tables(demand, opened, file),
            OpenedIndex::Graph(file) => Ready::opened_graph(demand, opened, file),
            OpenedIndex::Issl(file) => Ready::opened_issl(demand, opened, file),
        }
    }

    fn opened_tables(
        demand: Demand<'_>,
        opened: &'a Opened,
        index: &IndexFile,
    ) -> anyhow::Result<Self> {
        let composition = index.composition();
        let method = composition.method();
        let allowed = demand.check_tables(composition);
        if allowed.is_err() && demand.args.index == Wanted::Auto {
            let within = composition.guarantee();
            say(demand.global, || {
                format!(
                    "note: {method} is exact up to a radius of {within}, so every row is compared; `--recall` allows less"
                )
            });
            return Ready::scan(&opened.file, "the index file is not exact for this radius");
        }
        allowed?;
        let started = Instant::now();
        let tables = index.tables(opened.file.signatures())?;
        let how = ("opened", seconds(opened.took + started.elapsed()));
        let ready = Ready::tables(tables, "the index file has it", how, demand.question);
        Ok(Ready { was_built: true, ..ready })
    }

    /// The index that is chosen, built for this search.
    fn chosen(demand: Demand<'_>, file: &'a SignatureFile) -> anyhow::Result<Self> {
        let rows = file.signatures();
        let task = Task {
            bits: rows.bits(),
            rows: rows.len(),
            radius: radius_of(demand.question),
            nearest: match demand.question {
                Question::Nearest(k) => Some(k),
                Question::Within(_) | Question::First(_) => None,
            },
            recall: demand.args.recall.unwrap_or(1.0),
            memory: demand.args.memory,
            key_bits: None,
            stored: None,
            queries: Some(demand.queries),
        };
        let plans = |task: &_| Ok(Planner::new(file, task, demand.global)?.plans(task));
        let Chosen { choice, why } = choose(demand.args.index, &task, plans)?;
        let started = Instant::now();
        match choice {
            Choice::Scan => Ready::scan(file, why),
            Choice::Graph(shape) => Ready::built_graph(demand, file, shape, why),
            Choice::Issl(width) => Ready::built_issl(demand, file, width, why),
            Choice::Permuted(method) => {
                demand.check_permuted(method, rows.len())?;
                let index = Permuted::build(rows, method.orders, method.walks, SEED)?;
                Ok(Ready::permuted(index, why, started.elapsed()))
            }
            Choice::Tables(method, build) => {
                let usual = lookalike::table::key_width(rows.len());
                let width = build.key_width.unwrap_or(usual);
                demand.check_tables(&method.compose(rows.bits(), width)?)?;
                let tables = Tables::build(rows, method, build)?;
                let how = ("built", seconds(started.elapsed()));
                Ok(Ready::tables(tables, why, how, demand.question))
            }
        }
    }

    pub(super) fn scan(file: &'a SignatureFile, why: &'static str) -> anyhow::Result<Self> {
        let rows = file.signatures();
        let memory = size::display(size_of_val(rows.words()) as u64);
        Ok(Ready {
            index: Box::new(Scan::new(rows)?),
            takes_margins: false,
            batch: SCAN_BATCH,
            planned: Some(plan::Choice::Scan),
            was_built: false,
            to_find_more: MORE_PROBES,
            about: vec![
                ("index", "scan: every row is compared".to_owned()),
                ("why", why.to_owned()),
                ("memory", format!("none but {memory} of signatures")),
            ],
        })
    }

    fn permuted(index: Permuted<'a>, why: &'static str, took: Duration) -> Self {
        let PermutedMethod { orders, walks } = index.method();
        let (bytes, distinct) = (size::display(index.bytes()), index.distinct());
        let about = vec![
            ("index", index.method().to_string()),
            ("why", why.to_owned()),
            ("built", seconds(took)),
            ("orders", format!("{orders}, a query looks at {walks} rows")),
            ("memory", format!("{bytes} for {distinct} distinct rows")),
        ];
        Ready {
            index: Box::new(index),
            takes_margins: false,
            batch: TABLES_BATCH,
            planned: None,
            was_built: false,
            to_find_more: MORE_PROBES,
            about,
        }
    }

    fn tables(
        tables: Tables<'a>,
        why: &'static str,
        how: (&'static str, String),
        question: Question,
    ) -> Self {
        let composition = tables.composition();
        let bytes = tables.bytes() + tables.row_bytes();
        let (count, stored) = (composition.layouts().len(), tables.stored());
        let (method, key) = (composition.method(), composition.key_width());
        let about = vec![
            ("index", method.to_string()),
            ("why", why.to_owned()),
            how,
            ("tables", format!("{count}, keys of {key} bits, {} bytes a row", stored.bytes())),
            ("memory", format!("{} for {} distinct rows", size::display(bytes), tables.distinct())),
            ("probes", probes(&tables, question)),
        ];
        let build = Build { key_width: Some(key), stored: Some(stored) };
        Ready {
            takes_margins: composition.takes_margins(),
            index: Box::new(tables),
            batch: TABLES_BATCH,
            planned: Some(plan::Choice::Tables(method, build)),
            was_built: false,
            to_find_more: MORE_PROBES,
            about,
        }
    }
}

/// How many keys are looked up for a query, in words.
fn probes(tables: &Tables<'_>, question: Question) -> String {
    let Some(radius) = radius_of(question) else {
        return "few: where rows a few bits away are not enough, every row is compared".to_owned();
    };
    let composition = tables.composition();
    let keys = composition.probes(radius);
    match composition.is_scanned(radius, tables.distinct()) {
        true => format!("none: {keys} keys are more than rows, so every row is compared"),
        false => format!("{keys} keys a query"),
    }
}

impl Demand<'_> {
    /// Whether tables answer exactly, or less is allowed.
    fn check_tables(&self, composition: &Composition) -> anyhow::Result<()> {
        let exact = radius_of(self.question).is_none_or(|radius| composition.is_exact(radius));
        self.check_exact(exact, || {
            let (method, within) = (composition.method(), composition.guarantee());
            let radius = radius_of(self.question).unwrap_or_default();
            format!(
                "{method} may miss hits within {radius} bits: it is exact up to a radius of {within}"
            )
        })
    }

    /// Whether sorted orders look at every row, or less is allowed.
    fn check_permuted(&self, method: PermutedMethod, rows: usize) -> anyhow::Result<()> {
        self.check_exact(method.walks >= rows, || {
            format!("{method} may miss hits: a query looks at {} of {rows} rows", method.walks)
        })
    }

    pub(super) fn check_exact(
        &self,
        exact: bool,
        problem: impl FnOnce() -> String,
    ) -> anyhow::Result<()> {
        if exact || self.args.recall.is_some_and(|recall| recall < 1.0) {
            return Ok(());
        }
        let hint = "`--recall 0.9` says that some may be missing; `--index multi` misses none";
        Err(hinted(problem(), hint))
    }
}

/// The radius of a question, if it has one.
pub(super) fn radius_of(question: Question) -> Option<u32> {
    match question {
        Question::Within(radius) | Question::First(radius) => Some(radius),
        Question::Nearest(_) => None,
    }
}

pub(super) fn seconds(time: Duration) -> String {
    format!("{:.3} s", time.as_secs_f64())
}
