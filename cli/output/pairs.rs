//! Pairs as CSV, JSON lines or Parquet: `id_a`, `id_b`, `distance`, and `similarity` where texts were compared.

use std::{
    io::{self, BufWriter, Write},
    path::Path,
    sync::Arc,
};

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt32Array};
use lookalike::{partial::Partial, sigfile::suffix_of};
use parquet::{arrow::ArrowWriter, basic::Compression, file::properties::WriterProperties};
use serde::Serialize;

use crate::failure::hinted;

/// How pairs are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PairFormat {
    Csv,
    Jsonl,
    Parquet,
}

impl PairFormat {
    /// By the suffix of a file.
    pub(crate) fn of(path: &Path) -> anyhow::Result<Self> {
        match suffix_of(path).as_deref() {
            Some("csv") => Ok(PairFormat::Csv),
            Some("jsonl" | "ndjson") => Ok(PairFormat::Jsonl),
            Some("parquet") => Ok(PairFormat::Parquet),
            _ => {
                let problem = format!("{}: the suffix tells no format", path.display());
                Err(hinted(problem, "write pairs to .csv, .jsonl or .parquet"))
            }
        }
    }
}

/// A pair as it is written.
#[derive(Debug, Serialize)]
struct Line<'a> {
    id_a: &'a str,
    id_b: &'a str,
    distance: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    similarity: Option<f64>,
}

/// Two ids, how far apart their signatures are, and how alike the texts are if that was asked for.
pub(crate) type PairLine<A, B> = (A, B, u32, Option<f64>);

/// Where pairs are written: a file that appears when it is complete, or standard output.
pub(crate) enum PairWriter {
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

impl PairWriter {
    /// Begins a file.
    pub(crate) fn create(path: &Path, format: PairFormat, similarity: bool) -> io::Result<Self> {
        let file = Partial::create(path)?;
        match format {
            PairFormat::Parquet => {
                let packed = WriterProperties::builder().set_compression(Compression::SNAPPY);
                let schema = batch(&[], similarity)?.schema();
                let writer = ArrowWriter::try_new(file, schema, Some(packed.build()));
                Ok(PairWriter::Parquet(Box::new(writer.map_err(io::Error::other)?)))
            }
            format => PairWriter::text(Target::File(file), format, similarity),
        }
    }

    /// Writes to standard output, which takes text.
    pub(crate) fn standard(format: PairFormat) -> io::Result<Self> {
        PairWriter::text(Target::Standard(io::stdout()), format, false)
    }

    fn text(target: Target, format: PairFormat, similarity: bool) -> io::Result<Self> {
        if format == PairFormat::Jsonl {
            return Ok(PairWriter::Jsonl(BufWriter::new(target)));
        }
        // The header is there even if no pair is.
        let mut writer = csv::WriterBuilder::new().has_headers(false).from_writer(target);
        let names = ["id_a", "id_b", "distance", "similarity"];
        writer.write_record(&names[..3 + usize::from(similarity)])?;
        Ok(PairWriter::Csv(Box::new(writer)))
    }

    /// Writes some pairs, with similarities if the file has them.
    pub(crate) fn write<A, B>(&mut self, pairs: &[PairLine<A, B>]) -> io::Result<()>
    where
        A: AsRef<str>,
        B: AsRef<str>,
    {
        if pairs.is_empty() {
            return Ok(());
        }
        let lines = pairs.iter().map(|(a, b, distance, similarity)| Line {
            id_a: a.as_ref(),
            id_b: b.as_ref(),
            distance: *distance,
            similarity: *similarity,
        });
        match self {
            PairWriter::Csv(writer) => {
                for line in lines {
                    writer.serialize(line).map_err(io_error)?;
                }
                Ok(())
            }
            PairWriter::Jsonl(writer) => {
                for line in lines {
                    serde_json::to_writer(&mut *writer, &line)?;
                    writer.write_all(b"\n")?;
                }
                Ok(())
            }
            PairWriter::Parquet(writer) => {
                let lines: Vec<Line<'_>> = lines.collect();
                let similarity = lines.iter().any(|line| line.similarity.is_some());
                let batch = batch(&lines, similarity)?;
                writer.write(&batch).map_err(io::Error::other)
            }
        }
    }

    /// Gives the file its name.
    pub(crate) fn complete(self) -> io::Result<()> {
        let unwritten = |error: io::IntoInnerError<BufWriter<Target>>| error.into_error();
        match self {
            PairWriter::Csv(mut writer) => {
                writer.flush()?;
                let target = writer.into_inner();
                target.map_err(|error| io::Error::other(error.to_string()))?.complete()
            }
            PairWriter::Jsonl(writer) => writer.into_inner().map_err(unwritten)?.complete(),
            PairWriter::Parquet(writer) => {
                writer.into_inner().map_err(io::Error::other)?.complete()
            }
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

fn batch(lines: &[Line<'_>], similarity: bool) -> io::Result<RecordBatch> {
    let a = StringArray::from_iter_values(lines.iter().map(|line| line.id_a));
    let b = StringArray::from_iter_values(lines.iter().map(|line| line.id_b));
    let distances = UInt32Array::from_iter_values(lines.iter().map(|line| line.distance));
    let mut columns: Vec<(&str, ArrayRef)> =
        vec![("id_a", Arc::new(a)), ("id_b", Arc::new(b)), ("distance", Arc::new(distances))];
    if similarity {
        let similarities = lines.iter().map(|line| line.similarity.unwrap_or_default());
        columns.push(("similarity", Arc::new(Float64Array::from_iter_values(similarities))));
    }
    RecordBatch::try_from_iter(columns).map_err(io::Error::other)
}
