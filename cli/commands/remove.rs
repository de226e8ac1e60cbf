//! `lookalike remove`.

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
};

use anyhow::Context;
use clap::Args;
use serde_json::json;

use super::{Global, Outcome};
use crate::{
    collection,
    output::{counted, print, say},
};

/// Remove documents from a collection
///
/// Searches do not find them any more; `lookalike compact` forgets them for good.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike remove news a1 a2
  lookalike remove news --ids gone.txt")]
pub(crate) struct Remove {
    /// The collection
    #[arg(value_name = "COLLECTION")]
    collection: PathBuf,

    /// The ids of the documents
    #[arg(value_name = "ID", required_unless_present = "file")]
    ids: Vec<String>,

    /// A file with an id a line; `-` is standard input
    #[arg(long = "ids", value_name = "FILE")]
    file: Option<PathBuf>,
}

/// So many are removed as one.
const BATCH: usize = 50_000;

impl Remove {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Outcome> {
        let lines = self.file.as_deref().map(read).transpose()?.unwrap_or_default();
        let given = self.ids.iter().map(String::as_str);
        let ids: Vec<&str> =
            given.chain(lines.lines().filter(|line| !line.trim().is_empty())).collect();
        let collection = collection::open(&self.collection, global)?;
        let (mut removed, mut missing) = (0, None);
        for batch in ids.chunks(BATCH) {
            let there = collection.remove(batch)?;
            removed += there.iter().filter(|there| **there).count();
            missing = missing.or(there.iter().position(|there| !there).map(|at| batch[at]));
        }
        let records = collection.snapshot().len() as u64;
        collection.close()?;
        if global.json() {
            print(json!({ "asked": ids.len(), "removed": removed, "records": records }))?;
        }
        say(global, || {
            let (path, records) = (self.collection.display(), counted(records, "record"));
            let of = counted(ids.len() as u64, "document");
            let missing = missing.map_or(String::new(), |id| format!("; `{id}` is not there"));
            format!("{path}: {removed} of {of} removed; now {records}{missing}")
        });
        Ok(if removed > 0 { Outcome::Done } else { Outcome::NothingFound })
    }
}

/// The whole of a file, or of standard input.
fn read(path: &Path) -> anyhow::Result<String> {
    if path != Path::new("-") {
        return fs::read_to_string(path).with_context(|| path.display().to_string());
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).context("standard input")?;
    Ok(text)
}
