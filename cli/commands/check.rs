//! `lookalike check`.

use std::path::PathBuf;

use clap::Args;
use lookalike::collection::Checked;
use serde_json::json;

use super::{Global, Outcome};
use crate::{
    collection,
    failure::hinted,
    output::{counted, print, say},
};

/// Look at everything in a collection: is it what was written?
///
/// Reads every record and every segment, compares them with their checksums and with each other, and lists what is wrong.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  lookalike check news")]
pub(crate) struct Check {
    /// The collection
    #[arg(value_name = "COLLECTION")]
    collection: PathBuf,
}

impl Check {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Outcome> {
        // A writer would delete the segments that are not to be believed; to look is not to change.
        let collection = collection::open_reader(&self.collection, global)?;
        let Checked { records, segments, problems } = collection.check()?;
        match global.json() {
            true => {
                print(json!({ "records": records, "segments": segments, "problems": problems }))?
            }
            false => problems.iter().try_for_each(print)?,
        }
        if !problems.is_empty() {
            let (path, number) =
                (self.collection.display(), counted(problems.len() as u64, "problem"));
            return Err(hinted(
                format!("{path}: {number}"),
                "segments that are wrong are made again by the next `lookalike compact`; for records there is the \
                 latest `lookalike backup`",
            ));
        }
        say(global, || {
            let (records, segments) =
                (counted(records, "record"), counted(segments as u64, "segment"));
            format!("all is well: {records}, {segments}")
        });
        Ok(Outcome::Done)
    }
}
