//! What users see: progress and summaries on standard error, and results.

mod colour;
mod pairs;
mod parquet;
mod reading;
mod rows;
mod steps;

pub(crate) use colour::{Paint, colour};
pub(crate) use pairs::PairWriter;
pub(crate) use parquet::write_parquet;
pub(crate) use reading::Reading;
pub(crate) use rows::{RowFormat, RowWriter};
pub(crate) use steps::Steps;

use std::{fmt::Display, fs, io::Write, path::Path};

use anyhow::Context;

use lookalike::{Error, SignatureFile, partial::folder_of, sigfile::suffix_of};

use crate::{
    commands::Global,
    failure::hinted,
    input::{self, Sources},
};

/// Opens a file of signatures, whichever of our formats it is in.
pub(crate) fn open_signatures(path: &Path) -> anyhow::Result<SignatureFile> {
    match suffix_of(path).as_deref() {
        Some("parquet") => parquet::read_parquet(path),
        _ => SignatureFile::open(path).map_err(|error| match error {
            Error::Format { .. } if input::is_document(path) => {
                let sig = path.with_extension("sig");
                hinted(
                    format!("{} holds documents, not signatures", path.display()),
                    format!(
                        "sign them first: `lookalike sign {} -o {}`",
                        path.display(),
                        sig.display()
                    ),
                )
            }
            error => error.into(),
        }),
    }
}

/// Writes results to standard output.
pub(crate) fn print(text: impl Display) -> anyhow::Result<()> {
    writeln!(std::io::stdout().lock(), "{text}").context("standard output")
}

/// Refuses to write over what is read, and what is no file.
pub(crate) fn check_output(path: &Path, sources: &Sources) -> anyhow::Result<()> {
    check_place(path)?;
    if sources.reads(path) { Err(would_be_lost(path)) } else { Ok(()) }
}

/// The format of a file to be written. Refuses to write over these files that are read, and what is no file.
pub(crate) fn check_rows(path: &Path, inputs: &[&Path]) -> anyhow::Result<RowFormat> {
    check_place(path)?;
    let format = RowFormat::of(path)?;
    let same = |input: &&Path| {
        fs::canonicalize(input).ok().zip(fs::canonicalize(path).ok()).is_some_and(|(a, b)| a == b)
    };
    if inputs.iter().any(same) { Err(would_be_lost(path)) } else { Ok(format) }
}

fn would_be_lost(path: &Path) -> anyhow::Error {
    let problem = format!("{} is one of the inputs and would be lost", path.display());
    hinted(problem, "name another file with `-o`")
}

/// Refuses to write where no file can be.
pub(crate) fn check_place(path: &Path) -> anyhow::Result<()> {
    if path == Path::new("-") {
        let problem = "`-` is standard input; results of this command go to a file";
        return Err(hinted(problem, "name one, as in `-o x.sig`"));
    }
    let folder = folder_of(path);
    if !folder.is_dir() {
        let problem = format!("{}: there is no folder `{}`", path.display(), folder.display());
        return Err(hinted(problem, "make it first, or name another file with `-o`"));
    }
    Ok(())
}

/// A number of things in words: `1 document`, `2 documents`.
pub(crate) fn counted(number: u64, thing: &str) -> String {
    let plural = match (number, thing.strip_suffix('y')) {
        (1, _) => return format!("1 {thing}"),
        (_, Some(stem)) => format!("{stem}ies"),
        _ => format!("{thing}s"),
    };
    format!("{number} {plural}")
}

/// Writes a line to standard error; if even that fails, nobody can be told.
pub(crate) fn tell(text: impl Display) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Tells the user something on standard error, unless they want quiet.
pub(crate) fn say(global: &Global, text: impl FnOnce() -> String) {
    if !global.quiet {
        tell(text());
    }
}
