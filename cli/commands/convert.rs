//! `lookalike convert`.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

use clap::Args;
use lookalike::{
    SignatureFile,
    sigfile::{SignatureWriter, hex, npy},
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
        let suffix = self.to.extension().and_then(|suffix| suffix.to_str());
        match suffix {
            Some("sig") => write_sig(&self.to, &file)?,
            Some("npy") => {
                npy::write(&self.to, file.signatures().bits(), file.signatures().rows())?
            }
            Some("hex") => write_hex(&self.to, &file)?,
            Some("parquet") => write_parquet(&self.to, &file)?,
            _ => {
                let problem = format!("{}: the suffix tells no format", self.to.display());
                return Err(hinted(problem, "write .sig, .npy, .hex or .parquet"));
            }
        }
        if suffix == Some("npy") && file.columns().ids {
            say(global, || "note: .npy has no place for ids; rows keep their order".into());
        }
        Ok(Outcome::Done)
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

fn write_hex(path: &Path, file: &SignatureFile) -> anyhow::Result<()> {
    let context = |error| lookalike::Error::io(path, error);
    let mut out = BufWriter::new(File::create(path).map_err(context)?);
    let bits = file.signatures().bits();
    for (row, words) in file.signatures().rows().enumerate() {
        let id = file.columns().ids.then(|| file.id(row));
        hex::write_line(&mut out, bits, words, id.as_deref()).map_err(context)?;
    }
    out.flush().map_err(context)?;
    Ok(())
}
