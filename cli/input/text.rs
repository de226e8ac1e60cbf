//! Files that are documents: plain text and HTML.

use std::io::Read;
use std::sync::Arc;

use lookalike::{Document, Media};

use super::chunk::{Flow, Outlet, Record};
use super::format::Format;
use super::html;
use super::lines::Lines;
use super::lines::utf8;
use super::record::{At, BadRecord, Place};
use super::source::Reading;

/// A file, as it is stored.
pub(super) struct WholeFile {
    pub(super) name: Arc<str>,
    pub(super) media: Media,
    pub(super) bytes: Vec<u8>,
}

pub(super) fn read(mut stream: impl Read, reading: &Reading<'_>, out: &mut Outlet<'_>) -> Flow {
    match whole(&mut stream, reading) {
        Ok(bytes) => {
            let media = if reading.format == Format::Html { Media::Html } else { Media::Plain };
            out.file(WholeFile { name: Arc::clone(&reading.name), media, bytes })
        }
        Err(bad) => out.bad(bad),
    }
}

/// All bytes of a stream, unless they are too many.
pub(super) fn whole(stream: &mut dyn Read, reading: &Reading<'_>) -> Result<Vec<u8>, BadRecord> {
    let most = reading.options.max_document_bytes;
    let mut bytes = Vec::new();
    if let Err(error) = stream.take(most.saturating_add(1)).read_to_end(&mut bytes) {
        return Err(BadRecord::broken(reading.place(At::Byte(bytes.len() as u64)), error));
    }
    if bytes.len() as u64 > most {
        let problem = format!("the file is longer than {most} bytes");
        return Err(
            BadRecord::new(reading.place(At::File), problem).hint("raise --max-document-bytes")
        );
    }
    Ok(bytes)
}

pub(super) fn parse_file(file: WholeFile) -> Record {
    let id = file.name.to_string();
    let text = match file.media {
        Media::Html => html::decoded(file.bytes, None),
        Media::Plain => plain(file.bytes, &Place::new(&file.name, At::File))?,
    };
    Ok(Document { id, text, media: file.media, ..Document::default() })
}

/// Plain text is UTF-8, unless a byte order mark says otherwise.
pub(super) fn plain(bytes: Vec<u8>, place: &Place) -> Result<String, BadRecord> {
    if let Some(text) = html::by_order_mark(&bytes) {
        return Ok(text);
    }
    utf8(&bytes, place)?;
    if bytes.contains(&0) {
        let problem = "not text: it has NUL bytes, as binary files and UTF-16 without a mark have";
        return Err(BadRecord::new(place.clone(), problem));
    }
    // Just checked, so nothing is replaced here, and nothing copied.
    Ok(String::from_utf8(bytes).unwrap_or_default())
}

pub(super) fn parse_lines(lines: &Lines, options: &super::args::Options, found: &mut Vec<Record>) {
    lines.parse(options, found, |place, line| Ok(Document::new(place.to_id(), line)));
}
