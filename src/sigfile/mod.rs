//! Signature files: signatures with the recipe that made them, and what belongs to each row.
//!
//! Our own format is memory-mapped ([`SignatureFile`], [`SignatureWriter`]; drawn in `docs/format.md`); [`npy`] and
//! [`hex`] are for signatures that come from elsewhere or go there.

pub mod hex;
pub mod npy;
mod strings;
mod writer;

use std::{borrow::Cow, ops::Range, path::Path};

use serde::{Deserialize, Serialize};

use crate::{
    Recipe, Result, Signatures,
    container::{self, Container},
    mapped::MappedWords,
    signature::{check_width, words_for},
};
use strings::Strings;
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

/// An open signature file, memory-mapped.
#[derive(Debug, Clone)]
pub struct SignatureFile {
    container: Container<About>,
    signatures: Signatures,
    ids: Option<Strings>,
    payloads: Option<Strings>,
    passages: Option<MappedWords>,
}

/// Whether a file begins like one of ours.
pub fn is_ours(path: &Path) -> bool {
    container::is_container(path)
}

impl SignatureFile {
    /// Opens a file and checks every byte of it against its checksums.
    pub fn open(path: &Path) -> Result<Self> {
        let container: Container<About> = Container::open(path, KIND)?;
        let bits = check_width(container.about.bits as usize)?;
        let rows = usize::try_from(container.about.rows).ok();
        let words = rows.and_then(|rows| rows.checked_mul(words_for(bits)));
        let (Some(rows), Some(words)) = (rows, words) else {
            return Err(
                container.damaged("signatures", "has more rows than this machine can address")
            );
        };
        let signatures = Signatures::from_mapped(bits, container.words("signatures", words)?);
        if let Some(recipe) = &container.about.recipe
            && container.about.recipe_hash.as_ref() != Some(&recipe.hash())
        {
            return Err(
                container.damaged("signatures", "has a recipe that does not match its hash")
            );
        }
        let margins = container.bytes("margins").map(<[u8]>::len);
        if margins.is_some_and(|length| Some(length) != rows.checked_mul(bits as usize)) {
            return Err(container.damaged("margins", "does not have a byte for each bit"));
        }
        let has_passages = container.bytes("passages").is_some();
        let passages = has_passages.then(|| container.words("passages", rows * 2)).transpose()?;
        let ids = Strings::open(&container, "ids", rows)?;
        let payloads = Strings::open(&container, "payloads", rows)?;
        Ok(SignatureFile { signatures, ids, payloads, passages, container })
    }

    /// The signatures, row by row.
    pub fn signatures(&self) -> &Signatures {
        &self.signatures
    }

    /// The recipe that made them, if we know it.
    pub fn recipe(&self) -> Option<&Recipe> {
        self.container.about.recipe.as_ref()
    }

    /// How many documents had too few features for a signature.
    pub fn unsigned(&self) -> u64 {
        self.container.about.unsigned
    }

    /// Whether rows have ids of their own.
    pub fn has_ids(&self) -> bool {
        self.ids.is_some()
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
        Some(&self.container.bytes("margins")?[row * bits..(row + 1) * bits])
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
            margins: self.container.bytes("margins").is_some(),
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
