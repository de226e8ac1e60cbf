//! Records as their files have them, to be written again.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use csv::ByteRecord;

use super::chunk::{Body, Chunk, Record};
use super::lines::Lines;
use super::source::Sources;

/// A chunk, cut into records but otherwise as it is. There are as many records, in the same order, as
/// [`Sources::parse`] finds.
pub(crate) enum Original {
    /// Lines of JSON or text.
    Lines { file: Arc<str>, bytes: Vec<u8>, records: Vec<Range<usize>>, json: bool },
    /// Rows of a CSV or TSV file.
    Rows { file: Arc<str>, names: Vec<String>, rows: Vec<ByteRecord> },
    /// Rows of a Parquet file, with all of their columns; a last record may tell of lost rows.
    Batches { file: Arc<str>, batches: Vec<RecordBatch> },
    /// Everything that has no such form: files, pages, members of archives.
    Documents(Vec<Record>),
}

impl Chunk {
    /// The file that the whole chunk is of, if there is one.
    pub(crate) fn file(&self) -> Option<Arc<str>> {
        match &self.0 {
            Body::JsonLines(lines) | Body::TextLines(lines) => Some(Arc::clone(&lines.file)),
            Body::JsonValues(values) => Some(values.file()),
            Body::Rows(rows) => Some(rows.file()),
            Body::Batch(batch) => Some(batch.file()),
            Body::RowGroup(group) => Some(group.file()),
            Body::Files(_) | Body::Web(_) | Body::Bad(_) => None,
        }
    }
}

impl Sources {
    /// The records of a chunk as they are. The sources must have been opened with all fields.
    pub(crate) fn original(&self, chunk: Chunk) -> Original {
        match chunk.0 {
            Body::JsonLines(lines) => of_lines(lines, true),
            Body::TextLines(lines) => of_lines(lines, false),
            Body::Rows(rows) => rows.original(),
            Body::Batch(batch) => {
                Original::Batches { file: batch.file(), batches: vec![batch.into_rows()] }
            }
            Body::RowGroup(group) => {
                Original::Batches { file: group.file(), batches: group.batches() }
            }
            other => Original::Documents(self.parse(Chunk(other))),
        }
    }
}

fn of_lines(lines: Lines, json: bool) -> Original {
    let records = lines.records().collect();
    Original::Lines { file: lines.file, bytes: lines.bytes, records, json }
}
