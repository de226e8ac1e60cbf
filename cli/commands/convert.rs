//! `lookalike convert`.

use std::path::{Path, PathBuf};

use clap::Args;
use lookalike::{
    SignatureFile,
    sigfile::{SignatureWriter, hex, npy, suffix_of},
};

use super::{Global, Outcome};
use crate::{
    failure::hinted,
    output::{open_signatures, say, write_parquet},
};

/// Convert signatures between .sig, .npy, .hex and .parquet, by suffix
///
/// .npy is uint8 of shape (n, bits/8), most significant bit first, as numpy.packbits and FAISS have it; ids are not kept
/// there. .hex is a line for each signature: hexadecimal digits, then a tab and the id. .parquet has the columns `id`
/// and `signature`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  lookalike convert codes.npy codes.sig\n  lookalike convert news.sig news.hex"
)]
pub(crate) struct Convert {
    /// The file to read
    from: PathBuf,
    /// The file to write
    to: PathBuf,
}

impl Convert {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Outcome> {
        let file = open_signatures(&self.from)?;
        let suffix = suffix_of(&self.to);
        let suffix = suffix.as_deref();
        match suffix {
            Some("sig") => write_sig(&self.to, &file)?,
            Some("npy") => {
                npy::write(&self.to, file.signatures().bits(), file.signatures().rows())?
            }
            Some("hex") => hex::write(&self.to, &file)?,
            Some("parquet") => write_parquet(&self.to, &file)?,
            _ => {
                let problem = format!("{}: the suffix tells no format", self.to.display());
                return Err(hinted(problem, "write .sig, .npy, .hex or .parquet"));
            }
        }
        say_what_is_lost(global, &file, suffix);
        Ok(Outcome::Done)
    }
}

/// Only .sig holds everything.
fn say_what_is_lost(global: &Global, file: &SignatureFile, suffix: Option<&str>) {
    let columns = file.columns();
    let lost = [
        ("the ids", columns.ids && suffix == Some("npy")),
        ("the recipe", file.recipe().is_some()),
        ("the margins", columns.margins),
        ("the passages", columns.passages),
        ("the payloads", columns.payloads),
    ];
    let lost: Vec<&str> = lost.iter().filter(|(_, lost)| *lost).map(|(name, _)| *name).collect();
    if suffix != Some("sig") && !lost.is_empty() {
        let suffix = suffix.unwrap_or_default();
        say(global, || format!("note: .{suffix} has no place for {}", lost.join(", ")));
    }
}

fn write_sig(path: &Path, file: &SignatureFile) -> anyhow::Result<()> {
    let bits = file.signatures().bits();
    let mut writer = SignatureWriter::create(path, bits, file.recipe(), file.columns())?;
    for row in 0..file.signatures().len() {
        file.with_row(row, |row| writer.push(&row))?;
    }
    Ok(writer.finish(file.unsigned())?)
}
