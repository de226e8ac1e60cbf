//! Chunks: what the reading thread hands out, cut cheaply; any thread may turn them into documents.

use lookalike::Document;

use super::args::Options;
use super::record::{At, BadRecord, Place};
use super::source::Tally;
use super::text::WholeFile;
use super::{csv, json, jsonl, lines, parquet, text, warc};

/// About how many bytes a chunk holds: large enough to make handing over free, small enough to keep
/// all threads busy and memory low.
pub(super) const CHUNK_BYTES: usize = 1 << 20;

/// How many small files or records share a chunk at most.
const CHUNK_FILES: usize = 256;

/// What a document or a bad record becomes.
pub(crate) type Record = Result<Document, BadRecord>;

/// A piece of input, not parsed yet.
pub(crate) struct Chunk(pub(super) Body);

pub(super) enum Body {
    JsonLines(lines::Lines),
    TextLines(lines::Lines),
    JsonValues(json::Values),
    Rows(csv::Rows),
    Files(Vec<WholeFile>),
    Web(Vec<warc::Record>),
    Batch(parquet::Batch),
    RowGroup(parquet::RowGroup),
    Bad(BadRecord),
}

impl Chunk {
    /// The documents in it and what is wrong with the others, in the order of the input.
    pub(super) fn parse(self, options: &Options, tally: &Tally) -> Vec<Record> {
        let mut found = Vec::new();
        match self.0 {
            Body::JsonLines(lines) => jsonl::parse(&lines, options, &mut found),
            Body::TextLines(lines) => text::parse_lines(&lines, options, &mut found),
            Body::JsonValues(values) => json::parse(&values, options, &mut found),
            Body::Rows(rows) => csv::parse(rows, options, &mut found),
            Body::Files(files) => found.extend(files.into_iter().map(text::parse_file)),
            Body::Web(records) => warc::parse(records, options, tally, &mut found),
            Body::Batch(batch) => parquet::parse_batch(&batch, options, &mut found),
            Body::RowGroup(group) => parquet::parse_group(&group, options, &mut found),
            Body::Bad(bad) => found.push(Err(bad)),
        }
        found
    }
}

/// Nobody wants more chunks.
#[derive(Debug)]
pub(super) struct Closed;

/// Whether to go on reading.
pub(super) type Flow = Result<(), Closed>;

/// Where readers put their chunks.
pub(super) struct Outlet<'a> {
    /// False when nobody listens any more.
    send: &'a mut dyn FnMut(Chunk) -> bool,
    /// Small files wait for each other to share a chunk.
    waiting: Vec<WholeFile>,
    waiting_bytes: usize,
}

impl<'a> Outlet<'a> {
    pub(super) fn new(send: &'a mut dyn FnMut(Chunk) -> bool) -> Self {
        Outlet { send, waiting: Vec::new(), waiting_bytes: 0 }
    }

    pub(super) fn put(&mut self, body: Body) -> Flow {
        self.flush()?;
        self.send(body)
    }

    pub(super) fn bad(&mut self, bad: BadRecord) -> Flow {
        self.put(Body::Bad(bad))
    }

    /// The stream failed at `at`: what follows is lost.
    pub(super) fn broken(
        &mut self,
        file: &std::sync::Arc<str>,
        at: At,
        error: &std::io::Error,
    ) -> Flow {
        self.bad(BadRecord::broken(Place::new(file, at), error))
    }

    pub(super) fn file(&mut self, file: WholeFile) -> Flow {
        self.waiting_bytes += file.bytes.len();
        self.waiting.push(file);
        if self.waiting_bytes >= CHUNK_BYTES || self.waiting.len() >= CHUNK_FILES {
            return self.flush();
        }
        Ok(())
    }

    pub(super) fn flush(&mut self) -> Flow {
        if self.waiting.is_empty() {
            return Ok(());
        }
        self.waiting_bytes = 0;
        let files = std::mem::take(&mut self.waiting);
        self.send(Body::Files(files))
    }

    fn send(&mut self, body: Body) -> Flow {
        if (self.send)(Chunk(body)) { Ok(()) } else { Err(Closed) }
    }
}
