//! Rows of pairs: `id_a`, `id_b`, `distance`, and `similarity` where texts were compared.

use std::{io, path::Path, sync::Arc};

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt32Array};
use serde::Serialize;

use super::{RowFormat, RowWriter};

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

/// Where pairs are written.
pub(crate) struct PairWriter(RowWriter);

impl PairWriter {
    /// Begins a file.
    pub(crate) fn create(path: &Path, format: RowFormat, similarity: bool) -> io::Result<Self> {
        let schema = batch(&[], similarity)?.schema();
        Ok(PairWriter(RowWriter::create(path, format, &schema)?))
    }

    /// Writes to standard output: CSV, or JSON lines.
    pub(crate) fn standard(json: bool) -> io::Result<Self> {
        Ok(PairWriter(RowWriter::standard(json, &batch(&[], false)?.schema())?))
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
        self.0
            .write(lines, |lines| batch(lines, lines.iter().any(|line| line.similarity.is_some())))
    }

    /// Gives the file its name.
    pub(crate) fn complete(self) -> io::Result<()> {
        self.0.complete()
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
