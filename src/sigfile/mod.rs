//! Signature files: signatures with the recipe that made them, and what belongs to each row.
//!
//! Our own format is memory-mapped ([`SignatureFile`], [`SignatureWriter`]; drawn in `docs/format.md`); [`npy`] and
//! [`hex`] are for signatures that come from elsewhere or go there.

pub mod hex;
pub mod npy;
mod strings;
mod writer;

use std::{borrow::Cow, fs::File, io::BufReader, ops::Range, path::Path};

use serde::{Deserialize, Serialize};

use crate::{
    Error, Recipe, Result, Signatures,
    container::Container,
    mapped::Cells,
    signature::{check_width, words_for},
};
pub(crate) use strings::Strings;
pub use writer::{Columns, Row, SignatureWriter};

const KIND: &str = "signatures";

/// What a signature file says about itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct About {
    bits: u32,
    rows: u64,
    /// Absent for signatures that we did not make.
    recipe: Option<Recipe>,
    recipe_hash: Option<String>,
    /// Documents that had too few features for a signature.
    unsigned: u64,
}

/// Signatures with what belongs to each row: an open file of ours, memory-mapped, or signatures from elsewhere.
#[derive(Debug, Clone)]
pub struct SignatureFile {
    signatures: Signatures,
    recipe: Option<Recipe>,
    unsigned: u64,
    ids: Option<Strings>,
    payloads: Option<Strings>,
    passages: Option<Cells<u64>>,
    margins: Option<Cells<u8>>,
}

/// The suffix of a file's name, in lower case.
pub fn suffix_of(path: &Path) -> Option<String> {
    Some(path.extension()?.to_str()?.to_ascii_lowercase())
}

impl SignatureFile {
    /// Opens a file of signatures: one of ours, or `.npy`, or hexadecimal lines (`.hex`), by its suffix.
    pub fn open(path: &Path) -> Result<Self> {
        match suffix_of(path).as_deref() {
            Some("npy") => Ok(SignatureFile::foreign(npy::read(path)?, None)),
            Some("hex") => {
                let file = File::open(path).map_err(|error| Error::io(path, error))?;
                let lines = hex::read(path, BufReader::new(file))?;
                Ok(SignatureFile::foreign(lines.signatures, lines.ids))
            }
            _ => SignatureFile::open_ours(path),
        }
    }

    /// Signatures that we did not make, with their ids if they have any.
    pub fn foreign(signatures: Signatures, ids: Option<Vec<String>>) -> Self {
        let ids = ids.map(Strings::Owned);
        SignatureFile {
            signatures,
            recipe: None,
            unsigned: 0,
            ids,
            payloads: None,
            passages: None,
            margins: None,
        }
    }

    /// Opens a file of ours and checks every byte of it against its checksums.
    fn open_ours(path: &Path) -> Result<Self> {
        let container: Container<About> = Container::open(path, KIND)?;
        let about = &container.about;
        let damaged = |error: Error| container.damaged("signatures", &error.to_string());
        let bits = check_width(about.bits as usize).map_err(damaged)?;
        let rows = usize::try_from(about.rows).ok();
        let words = rows.and_then(|rows| rows.checked_mul(words_for(bits)));
        let (Some(rows), Some(words)) = (rows, words) else {
            return Err(container.damaged("signatures", "has more rows than fit into memory"));
        };
        if about.recipe.as_ref().map(Recipe::hash) != about.recipe_hash {
            return Err(
                container.damaged("signatures", "has a recipe that does not match its hash")
            );
        }
        let margins = container.mapped_bytes("margins");
        let right =
            |margins: &Cells<u8>| Some(margins.as_slice().len()) == rows.checked_mul(bits as usize);
        if !margins.as_ref().is_none_or(right) {
            return Err(container.damaged("margins", "does not have a byte for each bit"));
        }
        let has_passages = container.mapped_bytes("passages").is_some();
        let (words, checksum) =
            (container.cells("signatures", words)?, container.checksum("signatures"));
        Ok(SignatureFile {
            signatures: Signatures::from_mapped(bits, words, checksum).map_err(damaged)?,
            recipe: about.recipe.clone(),
            unsigned: about.unsigned,
            ids: Strings::open(&container, "ids", rows)?,
            payloads: Strings::open(&container, "payloads", rows)?,
            passages: has_passages.then(|| container.cells("passages", rows * 2)).transpose()?,
            margins,
        })
    }

    /// The signatures, row by row.
    pub fn signatures(&self) -> &Signatures {
        &self.signatures
    }

    /// The recipe that made them, if we know it.
    pub fn recipe(&self) -> Option<&Recipe> {
        self.recipe.as_ref()
    }

    /// How many documents had too few features for a signature.
    pub fn unsigned(&self) -> u64 {
        self.unsigned
    }

    /// The id of a row: that of its document, or the row's number if there is none.
    pub fn id(&self, row: usize) -> Cow<'_, str> {
        match &self.ids {
            Some(ids) => ids.get(row),
            None => Cow::Owned(row.to_string()),
        }
    }

    /// How weak each bit of a row is, in a byte each.
    pub fn margins(&self, row: usize) -> Option<&[u8]> {
        let bits = self.signatures.bits() as usize;
        Some(&self.all_margins()?[row * bits..(row + 1) * bits])
    }

    /// How weak each bit of each row is, row after row.
    pub fn all_margins(&self) -> Option<&[u8]> {
        self.margins.as_ref().map(Cells::as_slice)
    }

    /// Which bytes of its document's text a row is the signature of, if documents were cut into passages.
    pub fn passage(&self, row: usize) -> Option<Range<u64>> {
        let bounds = &self.passages.as_ref()?.as_slice()[row * 2..row * 2 + 2];
        Some(bounds[0]..bounds[1])
    }

    /// The other fields of a row's document, as JSON.
    pub fn payload(&self, row: usize) -> Option<Cow<'_, str>> {
        self.payloads.as_ref().map(|payloads| payloads.get(row))
    }

    /// Which columns there are besides the signatures.
    pub fn columns(&self) -> Columns {
        Columns {
            ids: self.ids.is_some(),
            margins: self.margins.is_some(),
            passages: self.passages.is_some(),
            payloads: self.payloads.is_some(),
        }
    }

    /// One row with everything that belongs to it.
    pub fn with_row<T>(&self, row: usize, each: impl FnOnce(Row<'_>) -> T) -> T {
        let (id, payload) = (self.id(row), self.payload(row));
        each(Row {
            words: self.signatures.row(row),
            id: &id,
            margins: self.margins(row),
            passage: self.passage(row),
            payload: payload.as_deref(),
        })
    }
}
