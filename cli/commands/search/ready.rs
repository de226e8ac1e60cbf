//! An index made ready for a question: opened, built, or none if every row is compared.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use clap::Args;
use lookalike::{
    SignatureFile,
    index::{Composition, IndexFile, Scan, Tables},
    search::{AnyIndex, Question},
};

use crate::{
    commands::Global,
    failure::hinted,
    index::{Choice, Task, Wanted, choose},
    output::say,
    size,
};

/// Flags that say how to search.
#[derive(Debug, Args)]
#[command(next_help_heading = "Index")]
pub(super) struct IndexArgs {
    /// How to search: `scan` compares with every row; pieces, blocks, multi and psm look up parts of signatures in
    /// tables, and may have numbers: pieces-4, blocks-5-2, multi-2x4, psm-1-23. Not said, it is the index file's way, or
    /// the scan
    #[arg(long, value_name = "METHOD", default_value = "auto", hide_default_value = true)]
    index: Wanted,

    /// The share of the hits that is enough, as 0.9: allows an index that is not exact
    #[arg(long, value_name = "SHARE", value_parser = parse_recall)]
    pub(super) recall: Option<f32>,

    /// The most memory for an index that is built for this search, as 500M or 4G
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    memory: Option<u64>,

    /// Tell on standard error how the search was done and how long it took
    #[arg(long)]
    pub(super) explain: bool,
}

fn parse_recall(text: &str) -> Result<f32, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "a share is a number from 0 to 1, as 0.9".to_owned())
}

/// What is searched: signatures, and an index over them if a file of one was named.
pub(super) struct Opened {
    pub(super) file: SignatureFile,
    pub(super) path: PathBuf,
    index: Option<IndexFile>,
    took: Duration,
}

impl Opened {
    /// Opens what the user named: signatures, or an index, which knows where its signatures are.
    pub(super) fn new(path: &Path) -> anyhow::Result<Self> {
        let started = Instant::now();
        let index = IndexFile::is_in(path).then(|| IndexFile::open(path)).transpose()?;
        let path = match &index {
            Some(index) => signatures_of(index, path)?,
            None => path.to_owned(),
        };
        let file = crate::output::open_signatures(&path)?;
        Ok(Opened { file, path, index, took: started.elapsed() })
    }
}

fn signatures_of(index: &IndexFile, path: &Path) -> anyhow::Result<PathBuf> {
    let path = path.display();
    match index.signatures() {
        Some(signatures) if signatures.exists() => Ok(signatures),
        Some(signatures) => Err(hinted(
            format!("{path} belongs to {}, which is not there", signatures.display()),
            "an index needs its signatures: put them there, or beside it",
        )),
        None => Err(hinted(
            format!("{path} does not say which signatures it belongs to"),
            "build it again with `lookalike build FILE.sig -o FILE.idx`",
        )),
    }
}

/// An index that is ready, and what there is to tell about it.
pub(super) struct Ready<'a> {
    pub(super) index: AnyIndex<'a>,
    /// Whether margins help it.
    pub(super) takes_margins: bool,
    /// Queries to ask at a time.
    pub(super) batch: usize,
    pub(super) about: Vec<(&'static str, String)>,
}

/// Queries that a scan is asked at a time: enough to share each pass over memory.
const SCAN_BATCH: usize = 256;
/// Tables are asked more at a time, so that each thread has some.
const TABLES_BATCH: usize = 8192;

impl<'a> Ready<'a> {
    /// Makes an index ready for a question.
    pub(super) fn new(
        args: &IndexArgs,
        opened: &'a Opened,
        question: Question,
        global: &Global,
    ) -> anyhow::Result<Self> {
        match (&opened.index, args.index) {
            (Some(index), wanted) if wanted != Wanted::Scan => {
                Ready::opened(args, opened, index, question, global)
            }
            _ => Ready::chosen(args, &opened.file, question),
        }
    }

    /// The index of a file.
    fn opened(
        args: &IndexArgs,
        opened: &'a Opened,
        index: &IndexFile,
        question: Question,
        global: &Global,
    ) -> anyhow::Result<Self> {
        let composition = index.composition();
        let method = composition.method();
        if !args.index.admits(method) {
            let sig = opened.path.display();
            return Err(hinted(
                format!("the index file is {method}, which is not what `--index` says"),
                format!(
                    "leave `--index` out, or search {sig} itself: the index is then built for this search"
                ),
            ));
        }
        let allowed = args.check_exact(composition, question);
        if allowed.is_err() && args.index == Wanted::Auto {
            let within = composition.guarantee();
            say(global, || {
                format!(
                    "note: {method} is exact up to a radius of {within}, so every row is compared; `--recall` allows less"
                )
            });
            return Ready::scan(&opened.file);
        }
        allowed?;
        let started = Instant::now();
        let tables = index.tables(opened.file.signatures())?;
        let how = format!("opened in {}", seconds(opened.took + started.elapsed()));
        Ok(Ready::tables(tables, how, question))
    }

    /// The index that is chosen, built for this search.
    fn chosen(
        args: &IndexArgs,
        file: &'a SignatureFile,
        question: Question,
    ) -> anyhow::Result<Self> {
        let rows = file.signatures();
        let task = Task {
            bits: rows.bits(),
            rows: rows.len(),
            radius: radius_of(question),
            memory: args.memory,
            key_bits: None,
            stored: None,
            keep: false,
        };
        let started = Instant::now();
        match choose(args.index, &task)? {
            Choice::Scan => Ready::scan(file),
            Choice::Tables(method, build) => {
                let width = lookalike::table::key_width(rows.len());
                args.check_exact(&method.compose(rows.bits(), width)?, question)?;
                let tables = Tables::build(rows, method, build)?;
                let how = format!("built in {}", seconds(started.elapsed()));
                Ok(Ready::tables(tables, how, question))
            }
        }
    }

    fn scan(file: &'a SignatureFile) -> anyhow::Result<Self> {
        let rows = file.signatures();
        let about = vec![
            ("index", "scan: every row is compared".to_owned()),
            (
                "memory",
                format!("{} of signatures", size::display(size_of_val(rows.words()) as u64)),
            ),
        ];
        let index = Box::new(Scan::new(rows)?);
        Ok(Ready { index, takes_margins: false, batch: SCAN_BATCH, about })
    }

    fn tables(tables: Tables<'a>, how: String, question: Question) -> Self {
        let composition = tables.composition();
        let bytes = tables.bytes() + tables.row_bytes();
        let (count, stored) = (composition.layouts().len(), tables.stored().bytes());
        let key = composition.key_width();
        let about = vec![
            ("index", format!("{}, {how}", composition.method())),
            ("tables", format!("{count}, keys of {key} bits, {stored} bytes a row")),
            ("memory", format!("{} for {} distinct rows", size::display(bytes), tables.distinct())),
            ("probes", probes(&tables, question)),
        ];
        let takes_margins = composition.takes_margins();
        Ready { index: Box::new(tables), takes_margins, batch: TABLES_BATCH, about }
    }
}

/// How many keys are looked up for a query, in words.
fn probes(tables: &Tables<'_>, question: Question) -> String {
    let Some(radius) = radius_of(question) else {
        return "none: the nearest are found by comparing every row".to_owned();
    };
    let composition = tables.composition();
    let keys = composition.probes(radius);
    match composition.is_scanned(radius, tables.distinct()) {
        true => format!("none: {keys} keys are more than rows, so every row is compared"),
        false => format!("{keys} keys a query"),
    }
}

impl IndexArgs {
    /// Whether a composition answers exactly, or less is allowed.
    fn check_exact(&self, composition: &Composition, question: Question) -> anyhow::Result<()> {
        let exact = radius_of(question).is_none_or(|radius| composition.is_exact(radius));
        if exact || self.recall.is_some_and(|recall| recall < 1.0) {
            return Ok(());
        }
        let (method, within) = (composition.method(), composition.guarantee());
        let radius = radius_of(question).unwrap_or_default();
        Err(hinted(
            format!(
                "{method} may miss hits within {radius} bits: it is exact up to a radius of {within}"
            ),
            "`--recall 0.9` says that some may be missing; `--index multi` misses none",
        ))
    }
}

/// The radius of a question, if it has one.
fn radius_of(question: Question) -> Option<u32> {
    match question {
        Question::Within(radius) | Question::First(radius) => Some(radius),
        Question::Nearest(_) => None,
    }
}

pub(super) fn seconds(time: Duration) -> String {
    format!("{:.3} s", time.as_secs_f64())
}
