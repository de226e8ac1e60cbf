//! `lookalike export`.

use std::{
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use clap::Args;
use lookalike::{
    Error, Result,
    collection::{Collection, Record},
    partial::Partial,
    sigfile::{Columns, Row, SignatureWriter, suffix_of},
};

use super::{Global, Outcome};
use crate::{
    collection::{self, json_of},
    failure::hinted,
    output::{check_place, counted, say},
};

/// Write all records of a collection, as they are at one moment
///
/// A .sig file has signatures, ids, other fields and margins, and `lookalike add` takes it into another collection. JSON
/// lines have the texts, too, if they are kept.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike export news > news.jsonl
  lookalike export news -o news.sig")]
pub(crate) struct Export {
    /// The collection
    #[arg(value_name = "COLLECTION")]
    collection: PathBuf,

    /// The file to write, .jsonl or .sig; it appears when it is complete. JSON lines on standard output if not said
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Export {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Outcome> {
        self.output.as_deref().map_or(Ok(()), check_place)?;
        let suffix = self.output.as_deref().and_then(suffix_of);
        let collection = collection::open_reader(&self.collection, global)?;
        let records = match (&self.output, suffix.as_deref()) {
            (None, _) => {
                // Standard output has no name that an error could tell.
                let out = BufWriter::new(io::stdout().lock());
                write_lines(&collection, Path::new("standard output"), out)?.1
            }
            (Some(path), Some("jsonl")) => {
                let failed = |error| Error::io(path, error);
                let out = BufWriter::new(Partial::create(path).map_err(failed)?);
                let (out, records) = write_lines(&collection, path, out)?;
                let out = out.into_inner().map_err(|error| failed(error.into_error()))?;
                out.complete().map_err(failed)?;
                records
            }
            (Some(path), Some("sig")) => write_signatures(&collection, path)?,
            (Some(path), _) => {
                let problem = format!("{}: records are written as .jsonl or .sig", path.display());
                return Err(hinted(
                    problem,
                    "`lookalike convert` makes .npy, .hex and .parquet of a .sig file",
                ));
            }
        };
        say(global, || {
            let to =
                self.output.as_ref().map_or(String::new(), |path| format!("{}: ", path.display()));
            format!("{to}{} of {}", counted(records, "record"), self.collection.display())
        });
        Ok(Outcome::Done)
    }
}

/// Writes a JSON object a line; gives what they were written to, and how many there are.
fn write_lines<W: Write>(collection: &Collection, path: &Path, mut out: W) -> Result<(W, u64)> {
    let failed = |error| Error::io(path, error);
    let mut records = 0;
    each(collection, true, &mut |record| {
        records += 1;
        writeln!(out, "{}", json_of(&record)).map_err(failed)
    })?;
    out.flush().map_err(failed)?;
    Ok((out, records))
}

fn write_signatures(collection: &Collection, path: &Path) -> Result<u64> {
    let about = collection.about();
    let margins = about.keeps.margins && all_have_margins(collection)?;
    let columns = Columns { ids: true, margins, passages: false, payloads: true };
    let mut writer = SignatureWriter::create(path, about.bits, about.recipe.as_ref(), columns)?;
    each(collection, false, &mut |record| {
        if margins && record.margins.is_none() {
            let problem = "has no margins: it was added meanwhile; export again".to_owned();
            return Err(Error::Entry { id: record.id, problem });
        }
        writer.push(&Row {
            words: record.signature.words(),
            id: &record.id,
            margins: record.margins.as_deref(),
            passage: None,
            payload: record.payload.as_deref(),
        })
    })?;
    let rows = writer.rows();
    writer.finish(0)?;
    Ok(rows)
}

/// A file has margins for each row or for none, and signatures from elsewhere have none.
fn all_have_margins(collection: &Collection) -> Result<bool> {
    let mut all = true;
    each(collection, false, &mut |record| {
        all &= record.margins.is_some();
        Ok(())
    })?;
    Ok(all)
}

fn each(
    collection: &Collection,
    texts: bool,
    each: &mut dyn FnMut(Record) -> Result<()>,
) -> Result<()> {
    collection.with_reader(|store| store.each(texts, each))
}
