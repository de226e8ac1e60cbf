//! Web archives (WARC), and the texts extracted from them (WET).
//!
//! The reading thread cuts the archive into records; HTTP and encodings are for the workers.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::atomic::Ordering;

use lookalike::{Document, Media};
use serde_json::{Map, Value};

use super::args::Options;
use super::chunk::{self, Body, CHUNK_BYTES, Flow, Outlet};
use super::format::Format;
use super::http::{self, Response};
use super::record::{At, BadRecord, Place};
use super::source::{Reading, Tally};
use super::{html, text};

/// Heads are some hundred bytes; what is longer is damaged.
const LONGEST_LINE: u64 = 64 << 10;
const MOST_HEADER_LINES: usize = 1000;

/// A record that may be a document.
pub(super) struct Record {
    place: Place,
    head: Head,
    block: Vec<u8>,
}

/// What a record says of itself.
#[derive(Default)]
struct Head {
    kind: Kind,
    length: Option<u64>,
    id: String,
    uri: String,
    date: String,
    content_type: String,
    /// Whether the crawler stopped early; then the rest is missing rightly.
    truncated: bool,
}

#[derive(Default, Clone, Copy, PartialEq)]
enum Kind {
    Response,
    Resource,
    Conversion,
    #[default]
    Other,
}

impl Head {
    fn set(&mut self, name: &[u8], value: &[u8]) {
        let value = String::from_utf8_lossy(value.trim_ascii()).into_owned();
        match name.trim_ascii().to_ascii_lowercase().as_slice() {
            b"warc-type" => {
                self.kind = match value.to_ascii_lowercase().as_str() {
                    "response" => Kind::Response,
                    "resource" => Kind::Resource,
                    "conversion" => Kind::Conversion,
                    _ => Kind::Other,
                }
            }
            b"content-length" => self.length = value.parse().ok(),
            b"content-type" => self.content_type = value,
            b"warc-date" => self.date = value,
            b"warc-record-id" => self.id = value,
            b"warc-truncated" => self.truncated = true,
            // Some programs write it in angle brackets.
            b"warc-target-uri" => self.uri = value.trim_matches(['<', '>']).to_owned(),
            _ => {}
        }
    }

    fn is_wanted(&self, format: Format) -> bool {
        match self.kind {
            Kind::Conversion => true,
            Kind::Response | Kind::Resource => format == Format::Warc,
            Kind::Other => false,
        }
    }
}

pub(super) fn read(stream: impl Read, reading: &Reading<'_>, out: &mut Outlet<'_>) -> Flow {
    let stream = BufReader::with_capacity(256 << 10, stream);
    let mut cutter = Cutter { stream, reading, byte: 0, number: 0, records: Vec::new(), bytes: 0 };
    let end = cutter.run(out);
    match end {
        Ok(flow) => flow,
        Err(error) => {
            cutter.hand_out(out)?;
            out.bad(BadRecord::broken(reading.place(At::Byte(cutter.byte)), error))
        }
    }
}

struct Cutter<'a, 'r, R> {
    stream: BufReader<R>,
    reading: &'a Reading<'r>,
    /// Where we are in the decompressed stream.
    byte: u64,
    /// The current record, from 1.
    number: u64,
    /// Records on their way into a chunk.
    records: Vec<Record>,
    bytes: usize,
}

impl<R: Read> Cutter<'_, '_, R> {
    fn run(&mut self, out: &mut Outlet<'_>) -> io::Result<Flow> {
        // After damage, what lies before the next record is no news.
        let mut lost = false;
        loop {
            let start = self.byte;
            let line = self.line()?;
            if line.is_empty() {
                return Ok(self.hand_out(out));
            }
            if line.trim_ascii().is_empty() {
                continue;
            }
            if line.starts_with(b"WARC/") {
                lost = false;
                match self.record(out)? {
                    Ok(true) => {}
                    Ok(false) => lost = true,
                    Err(closed) => return Ok(Err(closed)),
                }
            } else if !std::mem::replace(&mut lost, true) {
                let problem = "no WARC record begins here; skipping to the next one";
                let bad = BadRecord::new(self.reading.place(At::Byte(start)), problem);
                if let Err(closed) = self.bad(bad, out) {
                    return Ok(Err(closed));
                }
            }
        }
    }

    /// Reads a record after its first line; false if its end is unknown.
    fn record(&mut self, out: &mut Outlet<'_>) -> io::Result<Result<bool, chunk::Closed>> {
        self.number += 1;
        let place = self.reading.place(At::Record(self.number));
        let (head, length) = match self.head()? {
            Some(head @ Head { length: Some(length), .. }) => (head, length),
            Some(_) => {
                let bad = BadRecord::new(place, "the record has no valid Content-Length");
                return Ok(self.bad(bad, out).map(|()| false));
            }
            None => {
                let bad = BadRecord::new(place, "the head of the record is damaged or cut short");
                return Ok(self.bad(bad, out).map(|()| false));
            }
        };
        let most = self.reading.options.max_document_bytes;
        if !head.is_wanted(self.reading.format) {
            self.skip(length)?;
            return Ok(Ok(true));
        }
        if length > most {
            let problem = format!("the record says it has {length} bytes, more than {most}");
            let bad = BadRecord::new(place, problem).hint("raise --max-document-bytes");
            let flow = self.bad(bad, out);
            self.skip(length)?;
            return Ok(flow.map(|()| true));
        }
        let mut block = Vec::new();
        self.stream.by_ref().take(length).read_to_end(&mut block)?;
        self.byte += block.len() as u64;
        let got = block.len() as u64;
        if got < length {
            let problem = format!("the record is cut short: {got} of {length} bytes");
            return Ok(self.bad(BadRecord::broken(place, problem), out).map(|()| true));
        }
        Ok(self.push(Record { place, head, block }, out).map(|()| true))
    }

    /// The header fields up to the empty line; `None` if there is none.
    fn head(&mut self) -> io::Result<Option<Head>> {
        let mut head = Head::default();
        for _ in 0..MOST_HEADER_LINES {
            let line = self.line()?;
            if !line.ends_with(b"\n") {
                return Ok(None);
            }
            if line.trim_ascii().is_empty() {
                return Ok(Some(head));
            }
            if let Some(colon) = memchr::memchr(b':', &line) {
                head.set(&line[..colon], &line[colon + 1..]);
            }
        }
        Ok(None)
    }

    /// A line with its end; what is too long comes in pieces. Empty at the end of the stream.
    fn line(&mut self) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        self.stream.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)?;
        self.byte += line.len() as u64;
        Ok(line)
    }

    fn skip(&mut self, length: u64) -> io::Result<()> {
        self.byte += io::copy(&mut self.stream.by_ref().take(length), &mut io::sink())?;
        Ok(())
    }

    fn bad(&mut self, bad: BadRecord, out: &mut Outlet<'_>) -> Flow {
        self.hand_out(out)?;
        out.bad(bad)
    }

    fn push(&mut self, record: Record, out: &mut Outlet<'_>) -> Flow {
        self.bytes += record.block.len();
        self.records.push(record);
        if self.bytes >= CHUNK_BYTES { self.hand_out(out) } else { Ok(()) }
    }

    fn hand_out(&mut self, out: &mut Outlet<'_>) -> Flow {
        self.bytes = 0;
        let records = std::mem::take(&mut self.records);
        if records.is_empty() { Ok(()) } else { out.put(Body::Web(records)) }
    }
}

pub(super) fn parse(
    records: Vec<Record>,
    options: &Options,
    tally: &Tally,
    found: &mut Vec<chunk::Record>,
) {
    for record in records {
        match document(record, options) {
            Ok(Some(document)) => found.push(Ok(document)),
            Ok(None) => {
                tally.records.fetch_add(1, Ordering::Relaxed);
            }
            Err(bad) => found.push(Err(bad)),
        }
    }
}

/// The document of a record; `None` if it is neither HTML nor text, or tells of a failure.
fn document(record: Record, options: &Options) -> Result<Option<Document>, BadRecord> {
    let Record { place, head, block } = record;
    let (content_type, body) = match head.kind {
        Kind::Response if is_http(&head, &block) => {
            let bad = |problem: String| {
                BadRecord::new(place.clone(), format!("{}: {problem}", shown(&head.uri)))
            };
            let response = Response::parse(&block).map_err(bad)?;
            let no_text = !response.content_type.is_empty()
                && media_of(&response.content_type, &[]).is_none();
            if no_text || !response.is_success() {
                return Ok(None);
            }
            let limit =
                http::Limit { most: options.max_document_bytes, may_be_cut: head.truncated };
            let body = response.decoded_body(limit).map_err(bad)?;
            (response.content_type, body)
        }
        _ => (head.content_type, block),
    };
    let Some(media) = media_of(&content_type, &body) else { return Ok(None) };
    let text = match (media, head.kind) {
        // Extracted texts are UTF-8 by definition.
        (Media::Plain, Kind::Conversion) => text::plain(body, &place)?,
        _ => html::decoded(body, Some(&content_type)),
    };
    let id = match (&*head.uri, &*head.id) {
        ("", "") => place.to_id(),
        ("", id) => id.to_owned(),
        (uri, _) => uri.to_owned(),
    };
    let mut payload = Map::new();
    if options.payload {
        let fields = [("url", head.uri), ("date", head.date), ("content_type", content_type)];
        let known = fields.into_iter().filter(|(_, value)| !value.is_empty());
        payload.extend(known.map(|(name, value)| (name.to_owned(), Value::from(value))));
    }
    Ok(Some(Document { id, text, media, payload }))
}

fn is_http(head: &Head, block: &[u8]) -> bool {
    head.content_type.to_ascii_lowercase().starts_with("application/http")
        || block.starts_with(b"HTTP/")
}

/// HTML or text, by the type the server gave; without one, by the looks.
fn media_of(content_type: &str, body: &[u8]) -> Option<Media> {
    let essence = content_type.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    match essence.as_str() {
        "text/html" | "application/xhtml+xml" => Some(Media::Html),
        "text/plain" | "text/markdown" | "text/x-markdown" => Some(Media::Plain),
        "" => {
            let start = body.trim_ascii_start();
            let start = start[..start.len().min(14)].to_ascii_lowercase();
            (start.starts_with(b"<!doctype html") || start.starts_with(b"<html"))
                .then_some(Media::Html)
        }
        _ => None,
    }
}

fn shown(uri: &str) -> &str {
    if uri.is_empty() { "a record without URI" } else { uri }
}
