//! `lookalike build`.

mod built;

use std::{fs, path::PathBuf, time::Instant};

use clap::{Args, ValueEnum};
use lookalike::{
    SignatureFile,
    sigfile::suffix_of,
    table::{self, WIDEST_KEY},
};

use self::built::Built;
pub(super) use self::built::SEED;
use super::{Global, Outcome};
use crate::{
    failure::{check_radius, hinted},
    index::{Choice, SCAN_WINS, Task, Wanted, choose},
    output::{check_place, open_signatures, print, say},
    planner::Planner,
    size,
};

/// Build an index over a signature file, for searches that do not compare with every row
///
/// The index is a file of its own that `lookalike search` takes in place of the signatures. It holds no documents:
/// keep the signature file, in its place or beside the index.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike build news.sig -o news.idx
  lookalike build crawl.sig -o crawl.idx --radius 3 --memory 8G
  lookalike build crawl.sig -o crawl.idx --index blocks-5-2 --stored split
  lookalike build essays.sig -o essays.idx --index graph")]
pub(crate) struct Build {
    /// The signatures: .sig, .npy, .hex or .parquet
    file: PathBuf,

    /// The index file to write; it appears when it is complete
    #[arg(long, short, value_name = "FILE.idx")]
    output: PathBuf,

    /// The method: pieces, blocks, multi or psm, or with its numbers: pieces-4, blocks-5-2, multi-2x4, psm-1-23. For most
    /// of the nearest of long signatures: graph, or with the neighbors of a node and those they are chosen from,
    /// graph-62-96; issl, or with the width of its slices, issl-16. Not said, the fastest tables for the radius, as
    /// `lookalike plan` tells
    #[arg(long, value_name = "METHOD", default_value = "auto", hide_default_value = true)]
    index: Wanted,

    /// The radius that it is built for; if not said, it is exact for every radius, and fast for 3 of 64 bits
    #[arg(long, short, value_name = "BITS")]
    radius: Option<u32>,

    /// The most that the index may take, as 500M or 4G: smaller ones are slower
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    memory: Option<u64>,

    /// The most bits of a key; what suits the number of rows if not said
    #[arg(long, value_name = "BITS", value_parser = clap::value_parser!(u32).range(0..=i64::from(WIDEST_KEY)))]
    key_bits: Option<u32>,

    /// What tables have of each signature of up to 64 bits
    #[arg(long, value_enum)]
    stored: Option<Stored>,
}

/// What tables have of each signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Stored {
    /// All of it: 8 bytes
    Whole,
    /// What its key does not say: 6 bytes
    Split,
    /// All of it, in a line of the cache for each key: the fastest, and 64 bytes a key
    Lines,
}

impl Build {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Outcome> {
        self.check_output()?;
        let file = open_signatures(&self.file)?;
        let choice = self.choose(&file, global)?;
        let started = Instant::now();
        let rows = file.signatures();
        let index = Built::new(choice, rows)?.ok_or_else(|| no_file(choice))?;
        let built = started.elapsed().as_secs_f64();
        index.save(&self.output, rows, Some(&self.file))?;
        let path = self.output.display();
        if global.json() {
            let mut summary = index.summary(rows);
            summary["output"] = path.to_string().into();
            print(summary)?;
        }
        say(global, || {
            let time = if built < 1.0 { String::new() } else { format!("\nbuilt in {built:.1} s") };
            format!("{path}: {}{time}", index.line(rows))
        });
        Ok(Outcome::Done)
    }

    /// What to build.
    fn choose(&self, file: &SignatureFile, global: &Global) -> anyhow::Result<Choice> {
        self.check_keys()?;
        check_radius(self.radius.unwrap_or_default(), file.signatures().bits())?;
        let plans = |task: &_| Ok(Planner::new(file, task, global)?.plans(task));
        let chosen = choose(self.index, &self.task(file), plans)?;
        if chosen.why == SCAN_WINS {
            say(global, || {
                "note: for such a radius a scan is predicted to be faster than any index".to_owned()
            });
        }
        Ok(chosen.choice)
    }

    /// Only tables have keys.
    fn check_keys(&self) -> anyhow::Result<()> {
        let without_keys = matches!(self.index, Wanted::Graph(_) | Wanted::Issl(_));
        match without_keys && (self.key_bits.is_some() || self.stored.is_some()) {
            true => Err(hinted(
                "`--key-bits` and `--stored` are of tables, which such an index has not",
                "leave them out, or say `--index multi`",
            )),
            false => Ok(()),
        }
    }

    fn task(&self, file: &SignatureFile) -> Task {
        let stored = self.stored.map(|stored| match stored {
            Stored::Whole => table::Stored::Whole,
            Stored::Split => table::Stored::Split,
            Stored::Lines => table::Stored::Lines,
        });
        Task {
            bits: file.signatures().bits(),
            rows: file.signatures().len(),
            radius: self.radius,
            nearest: None,
            recall: 1.0,
            memory: self.memory,
            key_bits: self.key_bits,
            stored,
            queries: None,
        }
    }

    fn check_output(&self) -> anyhow::Result<()> {
        check_place(&self.output)?;
        let path = self.output.display();
        let suffix = suffix_of(&self.output).unwrap_or_default();
        let ours = self.output.with_extension("idx");
        if ["sig", "npy", "hex", "parquet"].contains(&suffix.as_str()) {
            let problem = format!("{path}: `build` writes an index, not signatures");
            return Err(hinted(problem, format!("name it `-o {}`", ours.display())));
        }
        let same = fs::canonicalize(&self.file).ok() == fs::canonicalize(&self.output).ok();
        if same && self.output.exists() {
            let problem = format!("{path} is the input and would be lost");
            return Err(hinted(problem, "name another file with `-o`"));
        }
        Ok(())
    }
}

/// Why there is no file of what was chosen.
fn no_file(choice: Choice) -> anyhow::Error {
    match choice {
        Choice::Permuted(method) => hinted(
            format!("{method} cannot be kept in a file"),
            "`lookalike search FILE.sig --index permuted --recall 0.9` builds it in memory",
        ),
        _ => {
            hinted("a scan needs no index file", "`lookalike search FILE.sig --index scan` is all")
        }
    }
}
