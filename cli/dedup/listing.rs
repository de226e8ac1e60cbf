//! Files of pairs: CSV, JSON lines or Parquet, by suffix.

use std::{
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt32Array};
use lookalike::{partial::Partial, sigfile::suffix_of};
use parquet::arrow::ArrowWriter;
use serde_json::json;

use crate::failure::hinted;

/// So many rows make a batch of Parquet.
const BATCH: usize = 1 << 14;

/// A file of pairs being written; it has its name when it is complete.
pub(crate) struct PairFile {
    path: PathBuf,
    form: Form,
}

enum Form {
    Csv(csv::Writer<BufWriter<Partial>>),
    Jsonl(BufWriter<Partial>),
    Parquet {
        writer: Option<ArrowWriter<BufWriter<Partial>>>,
        out: Option<BufWriter<Partial>>,
        rows: Columns,
    },
}

#[derive(Default)]
struct Columns {
    a: Vec<String>,
    b: Vec<String>,
    distance: Vec<u32>,
    similarity: Vec<f64>,
}

impl PairFile {
    /// Refuses names that tell no form.
    pub(crate) fn check(path: &Path) -> anyhow::Result<()> {
        let suffix = suffix_of(path).unwrap_or_default();
        if ["csv", "jsonl", "parquet"].contains(&suffix.as_str()) {
            return Ok(());
        }
        let problem = format!("{}: pairs are written as .csv, .jsonl or .parquet", path.display());
        Err(hinted(problem, "name the file so"))
    }

    pub(crate) fn create(path: &Path) -> anyhow::Result<Self> {
        PairFile::check(path)?;
        let name = || path.display().to_string();
        let suffix = suffix_of(path).unwrap_or_default();
        let out = BufWriter::with_capacity(1 << 20, Partial::create(path).with_context(name)?);
        let form = match suffix.as_str() {
            "csv" => {
                let mut writer = csv::Writer::from_writer(out);
                writer
                    .write_record(["id_a", "id_b", "distance", "similarity"])
                    .with_context(name)?;
                Form::Csv(writer)
            }
            "jsonl" => Form::Jsonl(out),
            _ => Form::Parquet { writer: None, out: Some(out), rows: Columns::default() },
        };
        Ok(PairFile { path: path.to_owned(), form })
    }

    pub(crate) fn push(
        &mut self,
        a: &str,
        b: &str,
        distance: u32,
        similarity: f64,
    ) -> anyhow::Result<()> {
        let similarity = (similarity * 1e6).round() / 1e6;
        match &mut self.form {
            Form::Csv(writer) => {
                writer.write_record([a, b, &distance.to_string(), &similarity.to_string()])?;
            }
            Form::Jsonl(out) => {
                let pair =
                    json!({"id_a": a, "id_b": b, "distance": distance, "similarity": similarity});
                writeln!(out, "{pair}").with_context(|| self.path.display().to_string())?;
            }
            Form::Parquet { rows, .. } => {
                rows.a.push(a.to_owned());
                rows.b.push(b.to_owned());
                rows.distance.push(distance);
                rows.similarity.push(similarity);
                if rows.a.len() == BATCH {
                    self.flush()?;
                }
            }
        }
        Ok(())
    }

    /// Writes the rows that wait.
    fn flush(&mut self) -> anyhow::Result<()> {
        let Form::Parquet { writer, out, rows } = &mut self.form else { return Ok(()) };
        let Columns { a, b, distance, similarity } = std::mem::take(rows);
        let columns: [(&str, ArrayRef); 4] = [
            ("id_a", Arc::new(StringArray::from(a))),
            ("id_b", Arc::new(StringArray::from(b))),
            ("distance", Arc::new(UInt32Array::from(distance))),
            ("similarity", Arc::new(Float64Array::from(similarity))),
        ];
        let batch = RecordBatch::try_from_iter(columns)?;
        if let Some(out) = out.take() {
            *writer = Some(ArrowWriter::try_new(out, batch.schema(), None)?);
        }
        if let Some(writer) = writer {
            writer.write(&batch).with_context(|| self.path.display().to_string())?;
        }
        Ok(())
    }

    pub(crate) fn finish(mut self) -> anyhow::Result<()> {
        self.flush()?;
        let name = || self.path.display().to_string();
        let out = match self.form {
            Form::Csv(writer) => {
                writer.into_inner().map_err(|error| error.into_error()).with_context(name)?
            }
            Form::Jsonl(out) => out,
            Form::Parquet { writer, out, .. } => match (writer, out) {
                (Some(writer), _) => writer.into_inner().with_context(name)?,
                (None, Some(out)) => out,
                (None, None) => return Ok(()),
            },
        };
        let out = out.into_inner().map_err(|error| error.into_error()).with_context(name)?;
        out.complete().with_context(name)
    }
}
