//! The file of all pairs that are alike.

use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::output::{PairWriter, RowFormat};

/// So many pairs are written at a time.
const BATCH: usize = 1 << 12;

/// A file of pairs being written; it has its name when it is complete.
pub(crate) struct PairFile {
    path: PathBuf,
    writer: PairWriter,
    waiting: Vec<(String, String, u32, Option<f64>)>,
}

impl PairFile {
    pub(crate) fn create(path: &Path) -> anyhow::Result<Self> {
        let writer = PairWriter::create(path, RowFormat::of(path)?, true);
        let writer = writer.with_context(|| path.display().to_string())?;
        Ok(PairFile { path: path.to_owned(), writer, waiting: Vec::new() })
    }

    pub(crate) fn push(
        &mut self,
        a: &str,
        b: &str,
        distance: u32,
        similarity: f64,
    ) -> anyhow::Result<()> {
        let similarity = (similarity * 1e6).round() / 1e6;
        self.waiting.push((a.to_owned(), b.to_owned(), distance, Some(similarity)));
        if self.waiting.len() == BATCH { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        let written = self.writer.write(&self.waiting);
        self.waiting.clear();
        written.with_context(|| self.path.display().to_string())
    }

    pub(crate) fn finish(mut self) -> anyhow::Result<()> {
        self.flush()?;
        self.writer.complete().with_context(|| self.path.display().to_string())
    }
}
