//! The readers from outside: real files in every format, damaged ones, and many damaged at random.

mod damaged;
mod formats;
mod fuzz;
mod order;

use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser;
use lookalike::Document;

use super::args::Options;
use super::{BadRecord, InputArgs, Sources};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    input: InputArgs,
}

/// The arguments of a command line.
fn args<'a>(line: impl IntoIterator<Item = &'a str>) -> InputArgs {
    Line::try_parse_from(["test"].into_iter().chain(line)).unwrap().input
}

fn open(args: &InputArgs, payload: bool) -> Sources {
    Sources::open(&args.inputs, &args.read, payload).unwrap()
}

fn options<'a>(line: impl IntoIterator<Item = &'a str>) -> Options {
    let line = line.into_iter().chain(["-"]);
    Options::new(&args(line).read, false).unwrap()
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// What is in a fixture, as (id without folder, text).
fn texts(name: &str, flags: &[&str]) -> Vec<(String, String)> {
    let documents = documents(name, flags);
    documents.into_iter().map(|document| (document.id, document.text)).collect()
}

fn documents(name: &str, flags: &[&str]) -> Vec<Document> {
    read(&fixture(name), flags, false).into_iter().map(|record| record.unwrap()).collect()
}

fn with_payload(name: &str, flags: &[&str]) -> Vec<Document> {
    read(&fixture(name), flags, true).into_iter().map(|record| record.unwrap()).collect()
}

/// Reads a file, and takes its folder off ids and places.
fn read(path: &Path, flags: &[&str], payload: bool) -> Vec<Result<Document, BadRecord>> {
    let path = path.to_str().unwrap();
    let folder = &path[..=path.rfind('/').unwrap()];
    let line = flags.iter().copied().chain([path]);
    let records = open(&args(line), payload).records();
    let cut = |id: &str| id.strip_prefix(folder).unwrap_or(id).to_owned();
    let cut_document = |document: Document| Document { id: cut(&document.id), ..document };
    let cut_bad = |mut bad: BadRecord| {
        assert!(bad.place.file.starts_with(folder), "{bad} does not name its file");
        bad.place.file = cut(&bad.place.file).into();
        bad
    };
    records.into_iter().map(|record| record.map(cut_document).map_err(cut_bad)).collect()
}

/// Reads bytes as a file of that name; documents as their texts, the rest as its message.
fn read_bytes(name: &str, bytes: &[u8], flags: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    let said = |record: Result<Document, BadRecord>| match record {
        Ok(document) => document.text,
        Err(bad) => format!("{bad}"),
    };
    read(&path, flags, false).into_iter().map(said).collect()
}

/// The hint of the only bad record.
fn hint(name: &str, bytes: &[u8], flags: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    let mut bad: Vec<_> = read(&path, flags, false).into_iter().filter_map(Result::err).collect();
    assert_eq!(bad.len(), 1, "{bad:?}");
    bad.remove(0).hint.unwrap_or_default()
}
