//! `lookalike join`.

use std::{
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::Context;
use clap::Args;
use lookalike::{
    Error, SignatureFile,
    join::{Estimate, JoinSettings, Joined, Pair, cross_join, estimate, self_join},
};
use serde_json::json;

use super::{Global, Outcome};
use crate::{
    failure::check_radius,
    output::{PairWriter, RowFormat, check_rows, counted, open_signatures, print, say},
    size,
};

/// Find all pairs of signatures within a radius: in one file, or between two
///
/// Writes id_a, id_b and distance of each pair, once, id_a before id_b in the file; of two files, id_a is of the first
/// and id_b of the second, and pairs within a file are left out: new against old. Pairs are in the order of the rows,
/// whatever the threads and the memory. Foreign signatures without ids have their row numbers.
///
/// Small radii, up to 6 of 64 bits, are exact. Beyond that, if comparing all takes long, a share of the pairs (--recall) is
/// found in a fraction of the time; the summary says what to expect.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit code 1 if there is no pair.

Examples:
  lookalike join crawl.sig -o pairs.parquet --radius 3
  lookalike join new.sig old.sig -o pairs.csv --radius 3 --memory 500M
  lookalike join news.sig --radius 60 --recall 0.9 --format json")]
pub(crate) struct Join {
    /// The signatures: .sig, .npy, .hex or .parquet
    file: PathBuf,

    /// Signatures to join them with; the file itself if not said
    other: Option<PathBuf>,

    /// The file to write: .csv, .jsonl or .parquet; not said, CSV goes to standard output, or JSON lines with --format json
    #[arg(long, short, value_name = "PAIRS")]
    output: Option<PathBuf>,

    /// Pairs at most so many bits apart
    #[arg(long, short, value_name = "BITS")]
    radius: u32,

    #[command(flatten)]
    how: JoinArgs,

    /// Refuse if there are more pairs than this
    #[arg(long, value_name = "N", default_value_t = 1_000_000_000)]
    at_most: u64,
}

/// How pairs are found.
#[derive(Debug, Args)]
pub(super) struct JoinArgs {
    /// The most memory beside the signatures: with less, they are read more often, and pairs are sorted on disk
    #[arg(long, value_name = "SIZE", default_value = "2G", value_parser = size::parse)]
    #[arg(requires = "radius")]
    pub(super) memory: u64,

    /// Of the pairs at the very radius, the share that must be found where finding all takes long
    #[arg(long, value_name = "SHARE", default_value_t = 0.98, value_parser = share)]
    #[arg(requires = "radius")]
    recall: f64,

    /// Find all pairs, however long it takes
    #[arg(long, conflicts_with = "recall", requires = "radius")]
    exact: bool,
}

impl JoinArgs {
    pub(super) fn recall(&self) -> f64 {
        if self.exact { 1.0 } else { self.recall }
    }
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.01..=1.0).contains(share));
    share.ok_or_else(|| "a share is a number from 0.01 to 1".to_owned())
}

/// More comparisons than this are told about before they are done.
const MANY: f64 = 3e11;

impl Join {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Outcome> {
        let format = self.check_output()?;
        let file = open_signatures(&self.file)?;
        let other = self.other.as_deref().map(open_signatures).transpose()?;
        if let Some((a, b)) = file.recipe().zip(other.as_ref().and_then(SignatureFile::recipe)) {
            b.check_same(a)?;
        }
        check_radius(self.radius, file.signatures().bits())?;
        let settings = self.settings();
        self.tell_work(&file, other.as_ref(), &settings, global)?;
        let started = Instant::now();
        let joined = self.join(&file, other.as_ref(), &settings, format, global)?;
        let seconds = started.elapsed().as_secs_f64();
        if let Some(output) = self.output.as_deref().filter(|_| global.json()) {
            print(summary(output, &file, other.as_ref(), &joined, seconds))?;
        }
        say(global, || self.line(&joined, seconds));
        Ok(if joined.pairs == 0 { Outcome::NothingFound } else { Outcome::Done })
    }

    fn settings(&self) -> JoinSettings {
        JoinSettings {
            radius: self.radius,
            memory: self.how.memory,
            recall: self.how.recall(),
            most_pairs: self.at_most,
        }
    }

    /// Refuses what cannot be written before any work is done.
    fn check_output(&self) -> anyhow::Result<Option<RowFormat>> {
        let inputs: Vec<&Path> =
            [Some(&self.file), self.other.as_ref()].into_iter().flatten().map(|i| &**i).collect();
        self.output.as_deref().map(|output| check_rows(output, &inputs)).transpose()
    }

    fn tell_work(
        &self,
        file: &SignatureFile,
        other: Option<&SignatureFile>,
        settings: &JoinSettings,
        global: &Global,
    ) -> lookalike::Result<()> {
        let others = other.map(SignatureFile::signatures);
        let Estimate { compared, .. } = estimate(file.signatures(), others, settings)?;
        if compared > MANY {
            say(global, || {
                let ways = if self.how.exact {
                    "without `--exact` it may be less"
                } else {
                    "a smaller `--recall` takes less"
                };
                format!("note: about {compared:.0e} comparisons; {ways}")
            });
        }
        Ok(())
    }

    fn join(
        &self,
        file: &SignatureFile,
        other: Option<&SignatureFile>,
        settings: &JoinSettings,
        format: Option<RowFormat>,
        global: &Global,
    ) -> anyhow::Result<Joined> {
        let place = self.output.as_deref().unwrap_or(Path::new("standard output"));
        let context = || place.display().to_string();
        let mut writer = match format {
            Some(format) => PairWriter::create(place, format, false),
            None => PairWriter::standard(global.json()),
        }
        .with_context(context)?;
        let id_b = other.unwrap_or(file);
        let each = |pairs: &[Pair]| {
            let ids = |pair: &Pair| {
                (file.id(pair.a as usize), id_b.id(pair.b as usize), pair.distance, None)
            };
            let pairs: Vec<_> = pairs.iter().map(ids).collect();
            writer.write(&pairs).map_err(|error| Error::io(place, error))
        };
        let joined = match other {
            Some(other) => cross_join(file.signatures(), other.signatures(), settings, each)?,
            None => self_join(file.signatures(), settings, each)?,
        };
        writer.complete().with_context(context)?;
        Ok(joined)
    }

    fn line(&self, joined: &Joined, seconds: f64) -> String {
        let worth = match joined.exact() {
            true => "all there are".to_owned(),
            false => format!(
                "not exact: {:.1}% of those at the radius are expected, and more of nearer ones",
                joined.recall * 100.0
            ),
        };
        let pairs = counted(joined.pairs, "pair");
        // Short times are noise.
        let took = if seconds < 1.0 { String::new() } else { format!(" in {seconds:.1} s") };
        format!("{pairs} within {}{took} ({worth})", counted(self.radius.into(), "bit"))
    }
}

fn summary(
    output: &Path,
    file: &SignatureFile,
    other: Option<&SignatureFile>,
    joined: &Joined,
    seconds: f64,
) -> serde_json::Value {
    json!({
        "output": output.display().to_string(),
        "rows": file.signatures().len(),
        "others": other.map(|other| other.signatures().len()),
        "copies": joined.copies,
        "pairs": joined.pairs,
        "exact": joined.exact(),
        "expected_recall": joined.recall,
        "compared": joined.compared,
        "bytes": joined.bytes,
        "seconds": seconds,
    })
}
