//! `lookalike get`.

use std::path::PathBuf;

use clap::Args;
use lookalike::collection::{Record, rfc3339};

use super::{Global, Outcome};
use crate::{
    collection::{self, json_of},
    failure::hinted,
    output::{print, say},
};

/// Show what a collection keeps of documents
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike get news a1
  lookalike get news a1 a2 --text --format json")]
pub(crate) struct Get {
    /// The collection
    #[arg(value_name = "COLLECTION")]
    collection: PathBuf,

    /// The ids of the documents
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,

    /// The text as well, of a collection that keeps texts
    #[arg(long)]
    text: bool,
}

impl Get {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Outcome> {
        let collection = collection::open_reader(&self.collection, global)?;
        if self.text && !collection.about().keeps.texts {
            let problem = format!("{} keeps no texts", self.collection.display());
            return Err(hinted(
                problem,
                "one that does is made with `lookalike create --keep-text`",
            ));
        }
        let ids: Vec<&str> = self.ids.iter().map(String::as_str).collect();
        let records = collection.get(&ids, self.text)?;
        for (id, record) in ids.iter().zip(&records) {
            match record {
                Some(record) if global.json() => print(json_of(record))?,
                Some(record) => print(shown(record))?,
                None => say(global, || format!("there is no `{id}`")),
            }
        }
        let found = records.iter().any(Option::is_some);
        Ok(if found { Outcome::Done } else { Outcome::NothingFound })
    }
}

/// A record for people.
fn shown(record: &Record) -> String {
    let mut lines = vec![
        ("id", record.id.clone()),
        ("signature", record.signature.to_string()),
        ("time", rfc3339(record.time)),
    ];
    lines.extend(record.payload.clone().map(|payload| ("payload", payload)));
    lines.extend(record.text.clone().map(|text| ("text", text)));
    let line = |(name, value): &(&str, String)| format!("{name:<12} {value}");
    lines.iter().map(line).collect::<Vec<_>>().join("\n")
}
