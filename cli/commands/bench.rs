//! `lookalike bench`.

mod nearest;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;
use clap::{Args, Subcommand};
use lookalike::{SignatureFile, Signatures, index::Queries};
use serde::Serialize;
use serde_json::Value;

use self::nearest::NearestBench;
use super::{Global, Outcome};
use crate::{
    bench::{
        BatchSetup, IsslSetup, JoinRow, Results, Setup, agree, batch, batch_report, batches_agree,
        by_batch_figure, by_file_figure, growth_figure, issl, issl_growth_figure, issl_report,
        join, join_report, report, run, weak_bits_figure,
    },
    failure::hinted,
    output::{print, say},
};

/// Measure this program beside the methods of the papers
#[derive(Debug, Args)]
pub(crate) struct Bench {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Table2(Table2),
    Join(JoinBench),
    Batch(BatchBench),
    Issl(IsslBench),
    Nearest(Box<NearestBench>),
}

/// The experiments of "Probabilistic Simhash Matching" (Sood, 2011), and our indexes in the same run
///
/// Reproduces Table 2 of the thesis' slides (speed, recall and memory of BPHS and PSM, for all neighbors within 3 bits and
/// for the first one), its figure 2 (how soon weak bits are found) and its figures 7 and 8 (speed by size), on a workload
/// that is made from the seed. Both methods are measured as the thesis describes them, then our indexes on the same
/// queries; it is checked that all exact methods find the same. The thesis had 60,000,000 rows and 10,000,000 queries:
/// such a run needs about 14 GB of memory. Searches run on one thread unless --threads says more.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike bench table2
  lookalike bench table2 --rows 60000000 --queries 10000000 --output table2
  lookalike bench table2 --rows 100000 --queries 10000 --format json")]
struct Table2 {
    /// Stored signatures
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1000..))]
    rows: u32,

    /// Queries; a method that would take longer than 10 seconds is asked fewer
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    queries: u32,

    /// The workload depends on this alone
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Times are medians of so many passes
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..))]
    repeats: u8,

    /// Write table2.json, weak-bits.svg and growth.svg into this folder
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// All pairs within 3 bits: our join, and batched probing of tables with the same keys, in the same run
///
/// The workload is that of `bench table2`: clusters of edited copies. Both are timed from the rows to the last pair of
/// documents, and must find the same. On one thread unless --threads says more.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  lookalike bench join\n  lookalike bench join --rows 60000000 --repeats 1"
)]
struct JoinBench {
    /// Rows to join
    #[arg(long, value_name = "N", default_value_t = 10_000_000, value_parser = clap::value_parser!(u32).range(1000..))]
    rows: u32,

    /// The workload depends on this alone
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Times are medians of so many turns
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..))]
    repeats: u8,
}

impl JoinBench {
    fn run(self, global: &Global) -> anyhow::Result<Outcome> {
        let setup = Setup {
            rows: self.rows as usize,
            queries: 0,
            seed: self.seed,
            repeats: usize::from(self.repeats),
            threads: global.threads.map_or(1, usize::from),
        };
        let rows = join(&setup, &|text| say(global, || text))?;
        match global.json() {
            true => rows.iter().try_for_each(|row: &JoinRow| print(serde_json::to_string(row)?))?,
            false => print(join_report(&rows))?,
        }
        match agree(&rows) {
            true => Ok(Outcome::Done),
            false => {
                Err(hinted("the join and the tables do not find the same", "this is a bug of ours"))
            }
        }
    }
}

/// Batch mode, figure 10 of the same thesis: the queries are in memory and the stored file streams past them
///
/// BPHS has its tables on the queries and looks up every stored row; PSM computes the flips of the queries once and searches
/// the file, chunk by chunk. Both as the thesis describes them, then our join, in turn on the same queries and the same file;
/// for all neighbors within 3 bits, and for the first one, with which a query leaves the batch. Every batch size is measured
/// with the largest file, and every file size with the largest batch. Times are from the queries to the last pair, without
/// reading the file; it is checked that all exact methods find the same. On one thread, and by its CPU time where the system
/// tells, unless --threads says more; searches in the thesis' form are always on one.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike bench batch
  lookalike bench batch --queries 20000,50000 --rows 100000,200000 --repeats 1
  lookalike bench batch --queries 1000000,10000000 --rows 15000000,60000000 --output batch")]
struct BatchBench {
    /// Sizes of the batch
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_values_t = [100_000, 300_000, 1_000_000], value_parser = clap::value_parser!(u32).range(1000..))]
    queries: Vec<u32>,

    /// Sizes of the stored file, in signatures
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_values_t = [1_000_000, 2_000_000, 4_000_000], value_parser = clap::value_parser!(u32).range(1000..))]
    rows: Vec<u32>,

    /// The workload depends on this and on the largest sizes alone
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Times are medians of so many turns
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..))]
    repeats: u8,

    /// Write batch.json, batch-queries.svg and batch-rows.svg into this folder
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
}

impl BatchBench {
    fn run(self, global: &Global) -> anyhow::Result<Outcome> {
        if let Some(folder) = &self.output {
            // Before the work, not after it.
            fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        let setup = BatchSetup {
            queries: self.queries.iter().map(|&size| size as usize).collect(),
            rows: self.rows.iter().map(|&size| size as usize).collect(),
            seed: self.seed,
            repeats: usize::from(self.repeats),
            threads: global.threads.map_or(1, usize::from),
        };
        let rows = batch(&setup, &|text| say(global, || text))?;
        match global.json() {
            true => rows.iter().try_for_each(|row| print(serde_json::to_string(row)?))?,
            false => print(batch_report(&rows))?,
        }
        if let Some(folder) = &self.output {
            let json = serde_json::to_string_pretty(&rows)? + "\n";
            let (by_batch, by_file) = (by_batch_figure(&rows), by_file_figure(&rows));
            let files = [
                ("batch.json", json),
                ("batch-queries.svg", by_batch),
                ("batch-rows.svg", by_file),
            ];
            write_files(folder, files)?;
        }
        match batches_agree(&rows) {
            true => Ok(Outcome::Done),
            false => Err(hinted("the exact methods do not find the same", "this is a bug of ours")),
        }
    }
}

/// The experiments of the papers on slice lists (ISSL; Chappell, Geva and Zuccon, 2015), on signatures of your own
///
/// Time, CDR@10 and recall@10 by expansion and admission, as Table 1 of the paper, beside what it says; the same with more
/// rows compared in the end; weak bits first, for queries with margins; how many lists there are within some errors and
/// which share of the rows they have, as Table 1 of the earlier paper; and growth, as figure 3. How likely bits are to flip
/// is learned from those queries that are not asked. On one thread, and by its CPU time where the system tells, unless
/// --threads says more.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike bench issl news.sig --queries asked.sig
  lookalike bench issl news.sig --queries asked.sig --width 20 --output issl")]
struct IsslBench {
    /// The stored signatures
    rows: PathBuf,

    /// Signatures to ask for, signed with --margins if weak bits are to go first
    #[arg(long, value_name = "FILE")]
    queries: PathBuf,

    /// Ask the first so many of them
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..))]
    asked: u32,

    /// Bits of a slice; as a rule 16 for a million rows and one more each time they double
    #[arg(long, value_name = "BITS", value_parser = clap::value_parser!(u32).range(8..=28))]
    width: Option<u32>,

    /// Times are medians of so many turns
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..))]
    repeats: u8,

    /// Write issl.json and issl-growth.svg into this folder
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
}

impl IsslBench {
    fn run(self, global: &Global) -> anyhow::Result<Outcome> {
        if let Some(folder) = &self.output {
            // Before the work, not after it.
            fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        let rows = SignatureFile::open(&self.rows)?;
        let queries = SignatureFile::open(&self.queries)?;
        let asked = queries.signatures().len().min(self.asked as usize);
        // Where all are asked, all teach, too.
        let others = if asked < queries.signatures().len() { asked } else { 0 };
        let (first, last) = (part(&queries, 0, asked)?, part(&queries, others, usize::MAX)?);
        let results = issl(
            &IsslSetup {
                rows: rows.signatures(),
                queries: with_margins(&first)?,
                learned_from: with_margins(&last)?,
                width: self.width,
                repeats: usize::from(self.repeats),
                threads: global.threads.map_or(1, usize::from),
            },
            &|text| say(global, || text),
        )?;
        match global.json() {
            true => print(json_lines(&results)?)?,
            false => print(issl_report(&results))?,
        }
        if let Some(folder) = &self.output {
            let json = serde_json::to_string_pretty(&results)? + "\n";
            let figure = issl_growth_figure(&results);
            write_files(folder, [("issl.json", json), ("issl-growth.svg", figure)])?;
        }
        Ok(Outcome::Done)
    }
}

/// Some of the rows of a file, and their margins.
fn part(
    file: &SignatureFile,
    start: usize,
    end: usize,
) -> anyhow::Result<(Signatures, Option<Vec<u8>>)> {
    let signatures = file.signatures();
    let end = end.min(signatures.len());
    let of = |cells: usize| start * cells..end * cells;
    let words = signatures.words()[of(signatures.stride())].to_vec();
    let margins = file.all_margins().map(|all| all[of(signatures.bits() as usize)].to_vec());
    Ok((Signatures::from_words(signatures.bits(), words)?, margins))
}

fn with_margins(
    (signatures, margins): &(Signatures, Option<Vec<u8>>),
) -> lookalike::Result<Queries<'_>> {
    match margins {
        Some(margins) => Queries::with_margins(signatures, margins),
        None => Ok(signatures.into()),
    }
}

impl Bench {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Outcome> {
        match self.what {
            What::Table2(table2) => table2.run(global),
            What::Join(join) => join.run(global),
            What::Batch(batch) => batch.run(global),
            What::Issl(issl) => issl.run(global),
            What::Nearest(nearest) => nearest.run(global),
        }
    }
}

impl Table2 {
    fn run(self, global: &Global) -> anyhow::Result<Outcome> {
        if let Some(folder) = &self.output {
            // Before the work, not after it.
            fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        let results = run(&self.setup(global), &|text| say(global, || text))?;
        match global.json() {
            true => print(json_lines(&results)?)?,
            false => print(report(&results))?,
        }
        if let Some(folder) = &self.output {
            write(folder, &results)?;
        }
        match results.agreement.agree {
            true => Ok(Outcome::Done),
            false => Err(hinted(
                "the exact methods do not find the same",
                "this is a bug of ours; the numbers above say where they differ",
            )),
        }
    }

    fn setup(&self, global: &Global) -> Setup {
        Setup {
            rows: self.rows as usize,
            queries: self.queries as usize,
            seed: self.seed,
            repeats: usize::from(self.repeats),
            threads: global.threads.map_or(1, usize::from),
        }
    }
}

fn write(folder: &Path, results: &Results) -> anyhow::Result<()> {
    let files = [
        ("table2.json", serde_json::to_string_pretty(results)? + "\n"),
        ("weak-bits.svg", weak_bits_figure(results)),
        ("growth.svg", growth_figure(results)),
    ];
    write_files(folder, files)
}

fn write_files<const N: usize>(folder: &Path, files: [(&str, String); N]) -> anyhow::Result<()> {
    for (name, text) in files {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// An object for each line of each table; `part` says which table.
fn json_lines(results: &impl Serialize) -> anyhow::Result<String> {
    let Value::Object(parts) = serde_json::to_value(results)? else { return Ok(String::new()) };
    let lines = parts.into_iter().flat_map(|(part, value)| {
        let rows = match value {
            Value::Array(rows) => rows,
            row => vec![row],
        };
        rows.into_iter().map(move |row| with_part(&part, row).to_string())
    });
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

fn with_part(part: &str, row: Value) -> Value {
    let part = [("part".to_owned(), part.into())].into_iter();
    match row {
        Value::Object(fields) => part.chain(fields).collect(),
        other => part.chain([("value".to_owned(), other)]).collect(),
    }
}
