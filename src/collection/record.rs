//! Records: what a collection keeps of a document.

use serde_json::Value;
use xxhash_rust::xxh3::Xxh3Default;

use super::Keeps;
use crate::{Error, Result, Signature, signature::bytes_of_words};

/// A document as it comes into a collection: signed, and with what is to be kept of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The name by which users know it: unique in the collection.
    pub id: String,
    /// The signature.
    pub signature: Signature,
    /// How weak each bit is, in a byte each, if it is known. Kept if the collection keeps margins.
    pub margins: Option<Vec<u8>>,
    /// Where it comes from, and whatever else its user has: a JSON object.
    pub payload: Option<String>,
    /// The text. Kept, compressed, if the collection keeps texts.
    pub text: Option<String>,
}

impl Entry {
    /// An entry of an id and a signature, and nothing else.
    pub fn new(id: impl Into<String>, signature: Signature) -> Self {
        Entry { id: id.into(), signature, margins: None, payload: None, text: None }
    }
}

/// A record of a collection. It never changes: a document that is replaced gets a new one.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Its place in the change log, which only grows.
    pub position: u64,
    /// The name by which users know it.
    pub id: String,
    /// The signature.
    pub signature: Signature,
    /// How weak each bit is, if the collection keeps margins.
    pub margins: Option<Vec<u8>>,
    /// Where it comes from, and whatever else its user has: a JSON object.
    pub payload: Option<String>,
    /// The text, if the collection keeps texts and it was asked for.
    pub text: Option<String>,
    /// When it was added, in milliseconds since 1970.
    pub time: i64,
}

impl Record {
    /// About how many bytes it has.
    pub(super) fn bytes(&self) -> u64 {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let margins = self.margins.as_ref().map_or(0, Vec::len);
        (self.id.len() + margins + length(&self.payload) + length(&self.text)) as u64
    }

    /// The payload as a JSON value; null if there is none.
    pub fn payload_value(&self) -> Value {
        let parsed = self.payload.as_deref().map(serde_json::from_str);
        parsed.and_then(std::result::Result::ok).unwrap_or_default()
    }

    /// The checksum of what it says.
    pub(super) fn checksum(&self) -> i64 {
        Columns {
            position: self.position,
            id: &self.id,
            signature: &self.signature.to_bytes(),
            margins: self.margins.as_deref(),
            payload: self.payload.as_deref(),
            time: self.time,
        }
        .checksum()
    }
}

/// The columns of a record that its checksum is of. Texts are not among them: they have one of their own.
pub(super) struct Columns<'a> {
    pub(super) position: u64,
    pub(super) id: &'a str,
    pub(super) signature: &'a [u8],
    pub(super) margins: Option<&'a [u8]>,
    pub(super) payload: Option<&'a str>,
    pub(super) time: i64,
}

impl<'a> Columns<'a> {
    /// The columns of an entry, as far as they are kept. `bytes` is room for the signature.
    pub(super) fn of(
        entry: &'a Entry,
        position: u64,
        time: i64,
        keeps: Keeps,
        bytes: &'a mut SignatureBytes,
    ) -> Self {
        let signature = bytes_of(&entry.signature, bytes);
        let margins = entry.margins.as_deref().filter(|_| keeps.margins);
        let payload = entry.payload.as_deref();
        Columns { position, id: &entry.id, signature, margins, payload, time }
    }

    /// XXH3-64 of the columns: databases notice a page that cannot be, not a byte that is another.
    pub(super) fn checksum(&self) -> i64 {
        let mut hash = Xxh3Default::new();
        hash.update(&self.position.to_le_bytes());
        hash.update(&self.time.to_le_bytes());
        let payload = self.payload.map(str::as_bytes);
        for column in [Some(self.id.as_bytes()), Some(self.signature), self.margins, payload] {
            // A length that no column has marks one that is not there.
            let length = column.map_or(u64::MAX, |bytes| bytes.len() as u64);
            hash.update(&length.to_le_bytes());
            hash.update(column.unwrap_or_default());
        }
        hash.digest() as i64
    }
}

/// Room for the bytes of the widest signature.
pub(super) type SignatureBytes = [u8; 512];

/// The bytes of a signature.
fn bytes_of<'a>(signature: &Signature, buffer: &'a mut SignatureBytes) -> &'a [u8] {
    let bytes = signature.bits() as usize / 8;
    let all = bytes_of_words(signature.bits(), signature.words());
    buffer.iter_mut().zip(all).for_each(|(to, byte)| *to = byte);
    &buffer[..bytes]
}

/// What records are checked for when they come out of a store.
#[derive(Debug, Clone)]
pub(super) struct Checks {
    /// The file or the address of the database, for errors.
    pub(super) store: String,
    /// The width of the signatures.
    pub(super) bits: u32,
}

impl Checks {
    /// Are these columns as they were written?
    pub(super) fn columns(&self, columns: &Columns<'_>, checksum: i64) -> Result<()> {
        if checksum != columns.checksum() {
            return Err(
                self.damaged(columns.position, "does not match its checksum: it is damaged")
            );
        }
        if columns.signature.len() != self.bits as usize / 8 {
            let problem = format!("has no signature of {} bits", self.bits);
            return Err(self.damaged(columns.position, problem));
        }
        Ok(())
    }

    /// The record of columns that were checked, with its text as it is stored.
    pub(super) fn record(&self, columns: &Columns<'_>, text: Option<&[u8]>) -> Result<Record> {
        let text = text.map(unpack).transpose();
        Ok(Record {
            position: columns.position,
            id: columns.id.to_owned(),
            signature: Signature::from_bytes(columns.signature)?,
            margins: columns.margins.map(<[u8]>::to_vec),
            payload: columns.payload.map(str::to_owned),
            text: text.map_err(|problem| self.damaged(columns.position, problem))?,
            time: columns.time,
        })
    }

    /// Something has happened to a record.
    pub(super) fn damaged(&self, position: u64, problem: impl Into<String>) -> Error {
        Error::DamagedRecord { store: self.store.clone(), position, problem: problem.into() }
    }
}

/// A text as it is stored: a Zstandard frame with a checksum.
pub(super) fn pack(text: &str) -> std::io::Result<Vec<u8>> {
    let mut encoder = zstd::Encoder::new(Vec::new(), TEXT_LEVEL)?;
    encoder.include_checksum(true)?;
    std::io::Write::write_all(&mut encoder, text.as_bytes())?;
    encoder.finish()
}

/// Higher levels take several times as long for a few percent.
const TEXT_LEVEL: i32 = 3;

/// A text from how it is stored, or what is wrong with it.
pub(super) fn unpack(bytes: &[u8]) -> Result<String, String> {
    let text =
        zstd::decode_all(bytes).map_err(|error| format!("has a text that is damaged: {error}"))?;
    String::from_utf8(text).map_err(|_| "has a text that is not UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_is_in_the_checksum() {
        let columns = |position, id, signature, margins, payload, time| {
            Columns { position, id, signature, margins, payload, time }.checksum()
        };
        let all = [
            columns(1, "a", b"sig", None, None, 5),
            columns(2, "a", b"sig", None, None, 5),
            columns(1, "b", b"sig", None, None, 5),
            columns(1, "a", b"sag", None, None, 5),
            columns(1, "as", b"ig", None, None, 5),
            columns(1, "a", b"sig", Some(b""), None, 5),
            columns(1, "a", b"sig", None, Some(""), 5),
            columns(1, "a", b"sig", None, None, 6),
        ];
        for (i, a) in all.iter().enumerate() {
            assert!(all[..i].iter().all(|b| a != b), "{i}");
        }
    }

    #[test]
    fn texts_come_back_and_damage_is_noticed() {
        let text = "The harbour reopened on Monday. ".repeat(20);
        let mut packed = pack(&text).unwrap();
        assert!(packed.len() < text.len() / 4);
        assert_eq!(unpack(&packed).unwrap(), text);
        let middle = packed.len() / 2;
        packed[middle] ^= 1;
        assert!(unpack(&packed).is_err());
    }
}
