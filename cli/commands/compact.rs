//! `lookalike compact`.

use std::{path::PathBuf, time::Instant};

use clap::Args;
use serde_json::json;

use super::{Global, Outcome};
use crate::{
    collection,
    output::{counted, print, say},
};

/// Make one index of all parts of a collection, and forget what was removed
///
/// Searches of many parts are slower than of one. Parts are merged as the collection grows; this does the rest.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  lookalike compact news")]
pub(crate) struct Compact {
    /// The collection
    #[arg(value_name = "COLLECTION")]
    collection: PathBuf,
}

impl Compact {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Outcome> {
        let started = Instant::now();
        let collection = collection::open(&self.collection, global)?;
        let purged = collection.compact()?;
        let snapshot = collection.snapshot();
        let (records, parts) = (snapshot.len() as u64, snapshot.parts().count() as u64);
        collection.close()?;
        let seconds = started.elapsed().as_secs_f64();
        if global.json() {
            print(
                json!({ "records": records, "parts": parts, "purged": purged, "seconds": seconds }),
            )?;
        }
        say(global, || {
            let path = self.collection.display();
            let (records, parts) = (counted(records, "record"), counted(parts, "part"));
            let purged = counted(purged, "removed record");
            format!("{path}: {records} in {parts}; forgot {purged} ({seconds:.1} s)")
        });
        Ok(Outcome::Done)
    }
}
