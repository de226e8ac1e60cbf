//! A column of texts: all bytes in one section, where each ends in another.

use std::borrow::Cow;

use serde::de::DeserializeOwned;

use crate::{Result, container::Container, mapped::Cells};

/// A column of texts.
#[derive(Debug, Clone)]
pub(crate) enum Strings {
    /// In a mapped file.
    Mapped { bytes: Cells<u8>, ends: Cells<u64> },
    /// In memory.
    Owned(Vec<String>),
}

/// The names of a column's two sections.
pub(super) fn ends_of(name: &str) -> &'static str {
    match name {
        "ids" => "id_ends",
        _ => "payload_ends",
    }
}

impl Strings {
    /// The column `name` of `rows` texts, if the file has it.
    pub(crate) fn open<M: DeserializeOwned>(
        container: &Container<M>,
        name: &str,
        rows: usize,
    ) -> Result<Option<Self>> {
        let Some(bytes) = container.mapped_bytes(name) else { return Ok(None) };
        let ends = container.cells(ends_of(name), rows)?;
        let last = ends.as_slice().last().copied().unwrap_or(0);
        if !ends.as_slice().is_sorted() || last != bytes.as_slice().len() as u64 {
            return Err(container.damaged(ends_of(name), "does not fit the texts that it cuts"));
        }
        Ok(Some(Strings::Mapped { bytes, ends }))
    }

    /// The text of a row.
    pub(crate) fn get(&self, row: usize) -> Cow<'_, str> {
        let (bytes, ends) = match self {
            Strings::Mapped { bytes, ends } => (bytes.as_slice(), ends.as_slice()),
            Strings::Owned(texts) => return Cow::Borrowed(&texts[row]),
        };
        let start = if row == 0 { 0 } else { ends[row - 1] };
        String::from_utf8_lossy(&bytes[start as usize..ends[row] as usize])
    }
}
