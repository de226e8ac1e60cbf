//! `lookalike backup`.

use std::path::PathBuf;

use clap::Args;
use lookalike::collection::Collection;
use serde_json::json;

use super::{Global, Outcome};
use crate::{
    collection,
    output::{counted, print, say},
    size,
};

/// Copy a collection, as it is at one moment, while others write to it
///
/// The copy is a collection of its own: to restore one, put the copy in its place.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  lookalike backup news /backups/news-monday")]
pub(crate) struct Backup {
    /// The collection
    #[arg(value_name = "COLLECTION")]
    collection: PathBuf,

    /// The folder to make
    to: PathBuf,
}

impl Backup {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Outcome> {
        collection::open_reader(&self.collection, global)?.backup(&self.to)?;
        // To open it is to see that it is one.
        let copy = Collection::open_reader(&self.to)?;
        let (records, bytes) =
            (copy.snapshot().len() as u64, copy.with_reader(|store| store.bytes())?);
        let to = self.to.display();
        if global.json() {
            print(json!({ "backup": to.to_string(), "records": records, "bytes": bytes }))?;
        }
        say(global, || format!("{to}: {}, {}", counted(records, "record"), size::display(bytes)));
        Ok(Outcome::Done)
    }
}
