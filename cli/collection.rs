//! Collections as commands open them, and their records as they are shown.

use std::path::Path;

use lookalike::collection::{Collection, Record};
use serde_json::{Value, json};

use crate::{commands::Global, failure::hinted, output::say};

/// Opens a collection to write to it.
pub(crate) fn open(folder: &Path, global: &Global) -> anyhow::Result<Collection> {
    check_folder(folder)?;
    Ok(told(Collection::open(folder)?, global))
}

/// Opens a collection to read it, whoever else writes.
pub(crate) fn open_reader(folder: &Path, global: &Global) -> anyhow::Result<Collection> {
    check_folder(folder)?;
    Ok(told(Collection::open_reader(folder)?, global))
}

/// Refuses what is no collection, and says what it is instead.
fn check_folder(folder: &Path) -> anyhow::Result<()> {
    if Collection::is_in(folder) {
        return Ok(());
    }
    let path = folder.display();
    let make = format!("`lookalike create {path}` makes one");
    let (problem, hint) = match (folder.is_dir(), folder.exists()) {
        (true, _) => (
            "is a folder, but no collection",
            "`lookalike create FOLDER` makes one in a new folder",
        ),
        (_, true) => (
            "is a file, not a collection",
            "a collection is a folder; `lookalike create FOLDER` makes one",
        ),
        _ => ("there is no such collection", make.as_str()),
    };
    Err(hinted(format!("{path}: {problem}"), hint))
}

/// Tells what was noticed when a collection was opened.
fn told(collection: Collection, global: &Global) -> Collection {
    collection.notes().iter().for_each(|note| say(global, || format!("note: {note}")));
    collection
}

/// A record for programs.
pub(crate) fn json_of(record: &Record) -> Value {
    let mut json = json!({
        "id": record.id,
        "signature": record.signature.to_string(),
        "payload": record.payload_value(),
        "time_ms": record.time,
    });
    if let Some(text) = &record.text {
        json["text"] = text.as_str().into();
    }
    json
}
