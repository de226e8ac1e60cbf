//! Rows of results as CSV, JSON lines or Parquet: in a file that appears when it is complete, or on standard output.

use std::{
    io::{self, BufWriter, Write},
    path::Path,
};

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use lookalike::{partial::Partial, sigfile::suffix_of};
use parquet::{arrow::ArrowWriter, basic::Compression, file::properties::WriterProperties};
use serde::Serialize;

use crate::failure::hinted;

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowFormat {
    Csv,
    Jsonl,
    Parquet,
}

impl RowFormat {
    /// By the suffix of a file.
    pub(crate) fn of(path: &Path) -> anyhow::Result<Self> {
        match suffix_of(path).as_deref() {
            Some("csv") => Ok(RowFormat::Csv),
            Some("jsonl" | "ndjson") => Ok(RowFormat::Jsonl),
            Some("parquet") => Ok(RowFormat::Parquet),
            _ => {
                let problem = format!("{}: the suffix tells no format", path.display());
                Err(hinted(problem, "name a file that ends in .csv, .jsonl or .parquet"))
            }
        }
    }
}

/// Where rows are written.
pub(crate) enum RowWriter {
    Csv(Box<csv::Writer<Target>>),
    Jsonl(BufWriter<Target>),
    Parquet(Box<ArrowWriter<Partial>>),
}

pub(crate) enum Target {
    File(Partial),
    Standard(io::Stdout),
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Target::File(file) => file.write(bytes),
            Target::Standard(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Target::File(file) => file.flush(),
            Target::Standard(out) => out.flush(),
        }
    }
}

impl Target {
    fn complete(self) -> io::Result<()> {
        match self {
            Target::File(file) => file.complete(),
            Target::Standard(mut out) => out.flush(),
        }
    }
}

impl RowWriter {
    /// Begins a file of these columns.
    pub(crate) fn create(path: &Path, format: RowFormat, schema: &Schema) -> io::Result<Self> {
        let file = Partial::create(path)?;
        match format {
            RowFormat::Parquet => {
                let packed = WriterProperties::builder().set_compression(Compression::SNAPPY);
                let writer =
                    ArrowWriter::try_new(file, schema.clone().into(), Some(packed.build()));
                Ok(RowWriter::Parquet(Box::new(writer.map_err(io::Error::other)?)))
            }
            format => RowWriter::text(Target::File(file), format, schema),
        }
    }

    /// Writes to standard output, which takes text: CSV, or JSON lines.
    pub(crate) fn standard(json: bool, schema: &Schema) -> io::Result<Self> {
        let format = if json { RowFormat::Jsonl } else { RowFormat::Csv };
        RowWriter::text(Target::Standard(io::stdout()), format, schema)
    }

    fn text(target: Target, format: RowFormat, schema: &Schema) -> io::Result<Self> {
        if format == RowFormat::Jsonl {
            return Ok(RowWriter::Jsonl(BufWriter::new(target)));
        }
        // The header is there even if no row is.
        let mut writer = csv::WriterBuilder::new().has_headers(false).from_writer(target);
        writer.write_record(schema.fields().iter().map(|field| field.name()))?;
        Ok(RowWriter::Csv(Box::new(writer)))
    }

    /// Writes some rows; `batch` makes columns of them.
    pub(crate) fn write<R: Serialize>(
        &mut self,
        mut rows: impl Iterator<Item = R>,
        batch: impl FnOnce(&[R]) -> io::Result<RecordBatch>,
    ) -> io::Result<()> {
        match self {
            RowWriter::Csv(writer) => {
                rows.try_for_each(|row| writer.serialize(row)).map_err(io_error)
            }
            RowWriter::Jsonl(writer) => rows.try_for_each(|row| {
                serde_json::to_writer(&mut *writer, &row)?;
                writer.write_all(b"\n")
            }),
            RowWriter::Parquet(writer) => {
                let rows: Vec<R> = rows.collect();
                writer.write(&batch(&rows)?).map_err(io::Error::other)
            }
        }
    }

    /// Gives the file its name.
    pub(crate) fn complete(self) -> io::Result<()> {
        let unwritten = |error: io::IntoInnerError<BufWriter<Target>>| error.into_error();
        match self {
            RowWriter::Csv(mut writer) => {
                writer.flush()?;
                let target = writer.into_inner();
                target.map_err(|error| io::Error::other(error.to_string()))?.complete()
            }
            RowWriter::Jsonl(writer) => writer.into_inner().map_err(unwritten)?.complete(),
            RowWriter::Parquet(writer) => writer.into_inner().map_err(io::Error::other)?.complete(),
        }
    }
}

/// What the system said, so that a broken pipe is known as one.
fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}
