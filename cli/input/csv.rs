//! Tables as text. The first row names the fields; quotes hold separators and line ends, in TSV, too.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;
use std::sync::Arc;

use csv::ByteRecord;
use lookalike::Document;
use serde_json::{Map, Value};

use super::args::Options;
use super::chunk::{Body, CHUNK_BYTES, Flow, Outlet, Record};
use super::jsonl::{Field, hint_of_columns, id_or_place};
use super::lines::{BOM, utf8};
use super::original::Original;
use super::record::{At, BadRecord, Place};
use super::source::Reading;

/// Some rows of a table, with the lines where they start.
pub(super) struct Rows {
    header: Arc<Header>,
    rows: Vec<(u64, ByteRecord)>,
}

struct Header {
    file: Arc<str>,
    names: Vec<String>,
    text: usize,
    id: Option<usize>,
}

impl Rows {
    pub(super) fn file(&self) -> Arc<str> {
        Arc::clone(&self.header.file)
    }

    pub(super) fn original(self) -> Original {
        let names = self.header.names.clone();
        let rows = self.rows.into_iter().map(|(_, row)| row).collect();
        Original::Rows { file: Arc::clone(&self.header.file), names, rows }
    }
}

pub(super) fn parse(rows: Rows, options: &Options, found: &mut Vec<Record>) {
    let header = &*rows.header;
    found.extend(rows.rows.iter().map(|(line, row)| parse_row(header, *line, row, options)));
}

fn parse_row(header: &Header, line: u64, row: &ByteRecord, options: &Options) -> Record {
    let place = Place::new(&header.file, At::Line(line));
    if row.len() != header.names.len() {
        let problem = format!("{} columns where the header has {}", row.len(), header.names.len());
        let hint = "perhaps a quote is missing, or a separator stands in an unquoted field";
        return Err(BadRecord::new(place, problem).hint(hint));
    }
    let column = |i: usize| {
        utf8(&row[i], &place).map_err(|mut bad| {
            bad.problem = format!("field `{}`: {}", header.names[i], bad.problem);
            bad
        })
    };
    let text = column(header.text)?.to_owned();
    let id = match header.id {
        Some(i) => Field::Text(column(i)?.to_owned()),
        None => Field::Missing,
    };
    let mut payload = Map::new();
    if options.payload {
        let others = (0..row.len()).filter(|&i| i != header.text && Some(i) != header.id);
        for i in others {
            payload.insert(header.names[i].clone(), Value::from(column(i)?));
        }
    }
    let id = id_or_place(place.clone(), id, options)?;
    Ok(Document { id, text, payload, ..Document::default() })
}

pub(super) fn read(
    stream: impl Read,
    separator: u8,
    reading: &Reading<'_>,
    out: &mut Outlet<'_>,
) -> Flow {
    let most = reading.options.max_document_bytes;
    // Rows are read in blocks, so that less makes no sense.
    let most = most.max(CHUNK_BYTES as u64);
    let left = Rc::new(Cell::new(most));
    let ends = Rc::new(Cell::new(None));
    let limited =
        Limited { inner: stream, left: Rc::clone(&left), ends: Rc::clone(&ends), last: 0 };
    let mut table = csv::ReaderBuilder::new()
        .delimiter(separator)
        .has_headers(false)
        .flexible(true)
        .buffer_capacity(256 << 10)
        .from_reader(limited);
    let mut row = ByteRecord::new();
    let header = match table.read_byte_record(&mut row) {
        Ok(false) => return Ok(()),
        Ok(true) => header(&row, reading),
        Err(error) => Err(broken(reading, 1, error)),
    };
    match header {
        Ok(header) => {
            let skipped = u64::from(ends.get() == Some(LineEnd::CrLf));
            let rows = Batch::new(Arc::new(header), skipped);
            read_rows(table, rows, || left.set(most), reading, out)
        }
        Err(bad) => out.bad(bad),
    }
}

/// Reads the rows after the header; `begin` is called before each.
fn read_rows(
    mut table: csv::Reader<impl Read>,
    mut rows: Batch,
    begin: impl Fn(),
    reading: &Reading<'_>,
    out: &mut Outlet<'_>,
) -> Flow {
    let mut row = ByteRecord::new();
    loop {
        begin();
        let line = table.position().line() + rows.skipped;
        match table.read_byte_record(&mut row) {
            Ok(true) => rows.push(&row, out)?,
            Ok(false) => return rows.hand_out(out),
            Err(error) => {
                rows.hand_out(out)?;
                return out.bad(broken(reading, line, error));
            }
        }
    }
}

fn header(row: &ByteRecord, reading: &Reading<'_>) -> Result<Header, BadRecord> {
    let place = reading.place(At::Line(1));
    let mut names = Vec::with_capacity(row.len());
    for (i, name) in row.iter().enumerate() {
        let name = if i == 0 { name.strip_prefix(BOM).unwrap_or(name) } else { name };
        names.push(utf8(name, &place)?.to_owned());
    }
    let find = |wanted: &str| names.iter().position(|name| name == wanted);
    let missing = |field: &str, flag: &str| {
        BadRecord::broken(place.clone(), format!("the header has no field `{field}`"))
            .hint(hint_of_columns(names.iter().map(String::as_str), flag))
    };
    let text = find(&reading.options.text_field);
    let text = text.ok_or_else(|| missing(&reading.options.text_field, "--text-field"))?;
    let id = find(reading.options.id_path());
    match (&reading.options.id_field, id) {
        (Some(field), None) => Err(missing(field, "--id-field")),
        _ => Ok(Header { file: Arc::clone(&reading.name), text, id, names }),
    }
}

fn broken(reading: &Reading<'_>, line: u64, error: csv::Error) -> BadRecord {
    let place = reading.place(At::Line(line));
    match error.into_kind() {
        csv::ErrorKind::Io(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            BadRecord::broken(place, error)
                .hint("perhaps a quote is missing here; otherwise raise --max-document-bytes")
        }
        csv::ErrorKind::Io(error) => BadRecord::broken(place, error),
        other => BadRecord::broken(place, format!("{other:?}")),
    }
}

/// Rows on their way into a chunk.
struct Batch {
    header: Arc<Header>,
    rows: Vec<(u64, ByteRecord)>,
    bytes: usize,
    /// Lines that the reader has not counted when a row begins: it counts the second half of a CR LF with the next row.
    skipped: u64,
}

impl Batch {
    fn new(header: Arc<Header>, skipped: u64) -> Self {
        Batch { header, rows: Vec::new(), bytes: 0, skipped }
    }

    fn push(&mut self, row: &ByteRecord, out: &mut Outlet<'_>) -> Flow {
        let line = row.position().map_or(0, csv::Position::line) + self.skipped;
        self.bytes += row.as_slice().len();
        self.rows.push((line, row.clone()));
        if self.bytes >= CHUNK_BYTES { self.hand_out(out) } else { Ok(()) }
    }

    fn hand_out(&mut self, out: &mut Outlet<'_>) -> Flow {
        self.bytes = 0;
        let rows = std::mem::take(&mut self.rows);
        match rows.is_empty() {
            true => Ok(()),
            false => out.put(Body::Rows(Rows { header: Arc::clone(&self.header), rows })),
        }
    }
}

/// How lines end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineEnd {
    Lf,
    CrLf,
}

/// A quote that never closes would swallow the file into one row: this stops it. It also notes how the first line ends.
struct Limited<R> {
    inner: R,
    left: Rc<Cell<u64>>,
    ends: Rc<Cell<Option<LineEnd>>>,
    last: u8,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left.get() == 0 {
            let problem = "the row that starts here is longer than a document may be";
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
        }
        let n = self.inner.read(buffer)?;
        self.left.set(self.left.get().saturating_sub(n as u64));
        if self.ends.get().is_none() {
            let end = memchr::memchr(b'\n', &buffer[..n]);
            let before = end.map(|end| if end == 0 { self.last } else { buffer[end - 1] });
            let kind = |before| if before == b'\r' { LineEnd::CrLf } else { LineEnd::Lf };
            self.ends.set(before.map(kind));
            self.last = buffer[..n].last().copied().unwrap_or(self.last);
        }
        Ok(n)
    }
}
