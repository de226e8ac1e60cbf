//! `lookalike bench nearest`.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::Context;
use clap::Args;
use lookalike::{
    Signatures,
    index::Shape,
    sigfile::{npy, suffix_of},
};

use super::{
    super::{Global, Outcome},
    json_lines, write_files,
};
use crate::{
    bench::{NearestSetup, nearest, nearest_growth_figure, nearest_lines, nearest_report},
    failure::hinted,
    output::{open_signatures, print, say},
};

/// The 10 nearest by a graph, on signatures of your own: time, recall and CDR by effort, beside the scan
///
/// One query a call and batches of 64, for each level of effort; then what `--recall` delivers where .8, .9, .95 and .99 are
/// asked for, and which levels reach a recall of .85, .9 and .95 and a CDR of .985 if they are chosen with other queries
/// (--tune). Recall counts ties; queries should not be among the rows. Times are by the clock on the wall, that of the build
/// by CPU time where the system tells; on one thread unless --threads says more.
///
/// --peers measures faiss and usearch in the same run. It needs the sources of this program and a Python that has them; see
/// benches/nearest/README.md. Where there are no results of theirs yet, their indexes are built first, which takes hours
/// with a million rows.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike bench nearest news.sig --queries b.sig
  lookalike bench nearest news.sig --queries b.sig --tune a.sig --index news.graph --growth --output nearest
  lookalike bench nearest news.sig --queries b.sig --tune a.sig --index news.graph --peers python3 --cache peers
  lookalike bench nearest news.npy --queries b.npy --index news.graph --lines --setting graph-64")]
pub(super) struct NearestBench {
    /// The stored signatures: .sig, .npy, .hex or .parquet
    rows: PathBuf,

    /// Signatures to ask for
    #[arg(long, value_name = "FILE")]
    queries: PathBuf,

    /// Other ones, to choose levels with
    #[arg(long, value_name = "FILE")]
    tune: Option<PathBuf>,

    /// Ask the first so many of them
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
    asked: u32,

    /// The graph: neighbors of a node, and how many they are chosen from, as graph-62-96; the usual ones for
    /// the bits if not said
    #[arg(long, value_name = "SHAPE")]
    shape: Option<Shape>,

    /// Take the graph from this file; if it is not there, build and save it
    #[arg(long, value_name = "FILE")]
    index: Option<PathBuf>,

    /// Times are medians of so many passes
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..))]
    repeats: u8,

    /// Build graphs of parts of the rows, too: how time grows
    #[arg(long)]
    growth: bool,

    /// Write nearest.json and, with --growth, nearest-growth.svg into this folder
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,

    /// Beside faiss and usearch, with this Python: benches/nearest/peers.py is run with it, from the folder of the sources
    #[arg(long, value_name = "PYTHON", requires_all = ["tune", "index", "cache"], conflicts_with = "lines")]
    peers: Option<PathBuf>,

    /// The folder of their indexes and results (results.jsonl)
    #[arg(long, value_name = "DIR", requires = "peers")]
    cache: Option<PathBuf>,

    /// The file of their results, if it is another
    #[arg(long, value_name = "FILE", requires = "peers")]
    results: Option<PathBuf>,

    /// Only JSON lines, as benches/nearest/peers.py reads them
    #[arg(long, requires = "index", conflicts_with_all = ["growth", "output", "tune"])]
    lines: bool,

    /// With --lines: graph-64 and so on, asked once; or all, medians of the passes
    #[arg(long, value_name = "NAME", default_value = "all", requires = "lines")]
    setting: String,
}

/// Where the others are measured, in the sources.
const SCRIPT: &str = "benches/nearest/peers.py";

impl NearestBench {
    pub(super) fn run(self, global: &Global) -> anyhow::Result<Outcome> {
        // Before the work, not after it.
        for folder in [&self.output, &self.cache].into_iter().flatten() {
            fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        if self.peers.is_some() && !Path::new(SCRIPT).exists() {
            let problem = format!("{SCRIPT} is not there");
            return Err(hinted(problem, "run it from the folder of the sources of lookalike"));
        }
        let rows = open_signatures(&self.rows)?;
        let queries = self.first(&self.queries)?;
        let tune = self.tune.as_deref().map(|path| self.first(path)).transpose()?;
        let setup = NearestSetup {
            rows: rows.signatures(),
            queries: &queries,
            tune: tune.as_ref(),
            shape: self.shape,
            index: self.index.as_deref(),
            growth: self.growth,
            repeats: usize::from(self.repeats),
            threads: global.threads.map_or(1, usize::from),
        };
        let tell = |text| say(global, || text);
        if self.lines {
            let lines = nearest_lines(&setup, &self.setting, &tell)?;
            lines.iter().try_for_each(|line| print(serde_json::to_string(line)?))?;
            return Ok(Outcome::Done);
        }
        let mut results = nearest(&setup, &tell)?;
        if let (Some(python), Some(tune), Some(cache)) = (&self.peers, &tune, &self.cache) {
            let npy = |path: &Path, name: &str, signatures: &Signatures| {
                as_npy(path, &cache.join(name), signatures)
            };
            let files = [
                ("--rows", npy(&self.rows, "rows.npy", rows.signatures())?),
                ("--tune", npy(self.tune.as_ref().unwrap_or(&self.rows), "tune.npy", tune)?),
                ("--report", npy(&self.queries, "queries.npy", &queries)?),
            ];
            results.peers = self.beside(python, cache, &files, global)?;
        }
        match global.json() {
            true => print(json_lines(&results)?)?,
            false => print(nearest_report(&results))?,
        }
        if let Some(folder) = &self.output {
            write_files(
                folder,
                [("nearest.json", serde_json::to_string_pretty(&results)? + "\n")],
            )?;
            if self.growth {
                write_files(folder, [("nearest-growth.svg", nearest_growth_figure(&results))])?;
            }
        }
        Ok(Outcome::Done)
    }

    /// The signatures of a file that are asked.
    fn first(&self, path: &Path) -> anyhow::Result<Signatures> {
        let file = open_signatures(path)?;
        let all = file.signatures();
        let asked = all.len().min(self.asked as usize);
        if asked == 0 {
            return Err(hinted(format!("{} is empty", path.display()), "give some queries"));
        }
        Ok(Signatures::from_words(all.bits(), all.words()[..asked * all.stride()].to_vec())?)
    }

    /// The table of `peers.py`, with this program as one of those that are measured.
    fn beside(
        &self,
        python: &Path,
        cache: &Path,
        files: &[(&str, PathBuf)],
        global: &Global,
    ) -> anyhow::Result<Vec<String>> {
        let results = self.results.clone().unwrap_or_else(|| cache.join("results.jsonl"));
        let peers = |further: &[OsString]| -> anyhow::Result<String> {
            let mut command = Command::new(python);
            command.arg(SCRIPT).args(["--queries", &self.asked.to_string()]);
            for (name, path) in files {
                command.arg(name).arg(path);
            }
            command.arg("--cache").arg(cache).arg("--results").arg(&results).args(further);
            let errors = if global.quiet { Stdio::null() } else { Stdio::inherit() };
            let output = command.stderr(errors).stdin(Stdio::null()).output();
            let output = output.with_context(|| python.display().to_string())?;
            if !output.status.success() {
                let problem = format!("{SCRIPT} ended with {}", output.status);
                return Err(hinted(problem, "benches/nearest/README.md says what it needs"));
            }
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        };
        if !results.exists() {
            peers(&[])?;
        }
        let ours = self.ours()?;
        Ok(peers(&["--best".into(), "--ours".into(), ours.into()])?
            .lines()
            .map(str::to_owned)
            .collect())
    }

    /// The command with which the script asks this program. What is in braces it fills in.
    fn ours(&self) -> anyhow::Result<String> {
        let program = env::current_exe().context("this program")?;
        let index = self.index.as_deref().unwrap_or(Path::new(""));
        Ok(format!(
            "{} bench nearest {{rows}} --queries {{queries}} --asked {{count}} --index {} --repeats {} --threads 1 \
             --lines --setting {{setting}} --quiet",
            word(&program),
            word(index),
            self.repeats,
        ))
    }
}

/// A path as one word of a command, for Python's `shlex` and then `format`.
fn word(path: &Path) -> String {
    let path = path.display().to_string().replace('{', "{{").replace('}', "}}");
    format!("'{}'", path.replace('\'', r#"'"'"'"#))
}

/// The file itself if it is for numpy; another with its signatures if not.
fn as_npy(path: &Path, to: &Path, signatures: &Signatures) -> anyhow::Result<PathBuf> {
    if suffix_of(path).as_deref() == Some("npy") {
        return Ok(path.to_owned());
    }
    npy::write(to, signatures.bits(), signatures.rows())?;
    Ok(to.to_owned())
}
