//! What users see: progress and summaries on standard error, and results.

mod colour;
mod parquet;
mod reading;

pub(crate) use colour::{Paint, colour};
pub(crate) use parquet::write_parquet;
pub(crate) use reading::Reading;

use std::{fmt::Display, io::Write, path::Path};

use anyhow::Context;

use lookalike::SignatureFile;

use crate::commands::Global;

/// Opens a file of signatures, whichever of our formats it is in.
pub(crate) fn open_signatures(path: &Path) -> anyhow::Result<SignatureFile> {
    match path.extension().and_then(|suffix| suffix.to_str()) {
        Some("parquet") => parquet::read_parquet(path),
        _ => Ok(SignatureFile::open(path)?),
    }
}

/// Writes results to standard output.
pub(crate) fn print(text: impl Display) -> anyhow::Result<()> {
    writeln!(std::io::stdout().lock(), "{text}").context("standard output")
}

/// Tells the user something on standard error, unless they want quiet.
pub(crate) fn say(global: &Global, text: impl FnOnce() -> String) {
    if !global.quiet {
        eprintln!("{}", text());
    }
}
