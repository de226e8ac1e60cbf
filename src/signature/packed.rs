//! Many signatures of one width, row after row.

use std::borrow::Cow;

use xxhash_rust::xxh3::xxh3_64;

use super::{Signature, check_width, check_words, words_for};
use crate::{Error, Result, mapped::Cells};

/// A packed matrix of signatures: row `i` is one signature of `bits` bits in `stride` words.
#[derive(Debug, Clone)]
pub struct Signatures {
    bits: u32,
    words: Words,
    /// That of the file which they come from, if it has one.
    checksum: Option<u64>,
}

/// Where the words are: ours, or a file's.
#[derive(Debug, Clone)]
enum Words {
    Owned(Vec<u64>),
    Mapped(Cells<u64>),
}

impl Signatures {
    /// No rows yet, of `bits` bits each.
    pub fn new(bits: u32) -> Result<Self> {
        Signatures::from_words(bits, Vec::new())
    }

    /// Rows of `bits` bits from their words, row after row.
    pub fn from_words(bits: u32, words: Vec<u64>) -> Result<Self> {
        check_words(bits, &words)?;
        Ok(Signatures { bits, words: Words::Owned(words), checksum: None })
    }

    /// Rows of `bits` bits from their bytes, row after row, leading byte first.
    pub fn from_bytes(bits: u32, bytes: &[u8]) -> Result<Self> {
        check_width(bits as usize)?;
        let row_bytes = bits as usize / 8;
        if !bytes.len().is_multiple_of(row_bytes) {
            let words = bytes.len().div_ceil(8);
            return Err(Error::Words { words, bits, problem: "the last row is cut" });
        }
        let words = bytes.chunks_exact(row_bytes).flat_map(super::words_of_bytes).collect();
        Signatures::from_words(bits, words)
    }

    pub(crate) fn from_mapped(bits: u32, words: Cells<u64>, checksum: Option<u64>) -> Result<Self> {
        check_words(bits, words.as_slice())?;
        Ok(Signatures { bits, words: Words::Mapped(words), checksum })
    }

    /// The same rows, moved into huge pages where the system has them: worth the copy if they are scanned often, as
    /// long walks through memory then cross fewer pages.
    pub fn in_huge_pages(self) -> Self {
        match Cells::copy_of(self.words()) {
            Ok(words) => Signatures { words: Words::Mapped(words), ..self },
            Err(_) => self,
        }
    }

    /// XXH3-64 of the words as our files have them: by this an index knows its signatures again. Those of a file of ours
    /// have it from there.
    pub fn checksum(&self) -> u64 {
        self.checksum.unwrap_or_else(|| xxh3_64(bytemuck::cast_slice(self.words())))
    }

    /// The width in bits.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Words from one row to the next.
    pub fn stride(&self) -> usize {
        words_for(self.bits)
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.words().len() / self.stride()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.words().is_empty()
    }

    /// All words, row after row.
    pub fn words(&self) -> &[u64] {
        match &self.words {
            Words::Owned(words) => words,
            Words::Mapped(words) => words.as_slice(),
        }
    }

    /// The words of one row.
    #[inline]
    pub fn row(&self, row: usize) -> &[u64] {
        let stride = self.stride();
        &self.words()[row * stride..(row + 1) * stride]
    }

    /// One row as a signature of its own.
    pub fn get(&self, row: usize) -> Signature {
        Signature { bits: self.bits, words: self.row(row).to_vec() }
    }

    /// The rows in order.
    pub fn rows(&self) -> std::slice::ChunksExact<'_, u64> {
        self.words().chunks_exact(self.stride())
    }

    /// Appends a row. Rows that live in a file are copied into memory first.
    pub fn push(&mut self, signature: &Signature) -> Result<()> {
        if signature.bits != self.bits {
            return Err(Error::WidthMismatch { stored: self.bits, given: signature.bits });
        }
        self.push_words(&signature.words);
        Ok(())
    }

    /// Appends a row of another matrix of the same width.
    pub fn push_row_of(&mut self, other: &Signatures, row: usize) -> Result<()> {
        if other.bits != self.bits {
            return Err(Error::WidthMismatch { stored: self.bits, given: other.bits });
        }
        self.push_words(other.row(row));
        Ok(())
    }

    fn push_words(&mut self, words: &[u64]) {
        self.checksum = None;
        if let Words::Mapped(mapped) = &self.words {
            self.words = Words::Owned(mapped.as_slice().to_vec());
        }
        if let Words::Owned(owned) = &mut self.words {
            owned.extend_from_slice(words);
        }
    }
}

impl From<Signature> for Signatures {
    fn from(signature: Signature) -> Self {
        Signatures { bits: signature.bits, words: Words::Owned(signature.words), checksum: None }
    }
}

/// Rows that are lent, or given away, to whoever holds them.
impl<'a> From<&'a Signatures> for Cow<'a, Signatures> {
    fn from(signatures: &'a Signatures) -> Self {
        Cow::Borrowed(signatures)
    }
}

impl From<Signatures> for Cow<'_, Signatures> {
    fn from(signatures: Signatures) -> Self {
        Cow::Owned(signatures)
    }
}
