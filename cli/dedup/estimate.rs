//! What a run will take, from the beginning of the input.

use std::{ops::ControlFlow, time::Instant};

use lookalike::{
    Signer,
    dedup::{
        Dedup, Dial, Limits,
        sketches::{Facts, SketchFile, SketchWriter, Sketches},
    },
    recipe::{Scratch, SketchSettings},
};
use serde::Serialize;

use crate::{
    input::{self, OnError, Sources},
    size,
};

/// So many chunks of about a megabyte are read.
const CHUNKS: usize = 32;

/// The estimate.
#[derive(Debug, Serialize)]
pub(crate) struct Estimate {
    /// Whether all of the input was read: then the numbers of documents and pairs are no estimates.
    pub(crate) whole: bool,
    pub(crate) documents: u64,
    /// Pairs of near-duplicates: if those of the sample are like all others, and if they are spread over the input.
    pub(crate) pairs: (u64, u64),
    pub(crate) memory: u64,
    pub(crate) disk: u64,
    pub(crate) seconds: f64,
    pub(crate) input_bytes: Option<u64>,
}

/// Signs the beginning of the input and looks for near-duplicates in it.
pub(crate) fn estimate(
    sources: &Sources,
    signer: &Signer,
    dial: Dial,
    memory: u64,
    threads: usize,
    on_error: OnError,
) -> anyhow::Result<Estimate> {
    let started = Instant::now();
    let sketch = SketchSettings { bands: Some(dial.bands), weights: dial.verify.needs_weights() };
    let shape = (signer.recipe().signature.bits, dial.bands.count);
    let sign = |number: usize, chunk| {
        let mut sketches = Sketches::default();
        let (mut scratch, mut bytes, mut bad) = (Scratch::default(), 0, None);
        if number < CHUNKS {
            for record in sources.parse(chunk) {
                let document = match record {
                    Ok(document) => document,
                    Err(record) => {
                        bad.get_or_insert(record);
                        continue;
                    }
                };
                bytes += document.text.len() as u64;
                let text = Signer::text_of(&document, signer.recipe().html);
                let sketch = signer.sketch(&text, sketch, &mut scratch);
                sketches.push(&document.id, NOTHING, sketch.as_ref(), shape);
            }
        }
        (number, sketches, bytes, bad)
    };
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("sketches");
    let mut writer = SketchWriter::create(&path, shape.0, shape.1, sketch.weights)?;
    let (mut read, mut whole, mut texts) = (0, true, 0);
    input::run(sources, threads, sign, |(number, sketches, bytes, bad)| {
        // A run would stop at it, too.
        if let (Some(bad), OnError::Stop) = (bad, on_error) {
            return Err(bad.into());
        }
        if number >= CHUNKS {
            whole = false;
            return Ok(ControlFlow::Break(()));
        }
        writer.append(&sketches)?;
        texts += bytes;
        read = sources.bytes_read();
        Ok(ControlFlow::Continue(()))
    })?;
    let documents = writer.rows();
    writer.finish(serde_json::Value::Null)?;
    let signing = started.elapsed().as_secs_f64();
    let started = Instant::now();
    let sketches = SketchFile::open(&path)?;
    let pairs =
        Dedup::new(&sketches, dial, Limits { memory: memory as usize, ..Limits::default() })?
            .forecast()?
            .pairs_expected;
    let looking = started.elapsed().as_secs_f64();
    // Readers run ahead of what was signed: a file is as much larger as its text is.
    let factor = match (whole, sources.total_bytes()) {
        (false, Some(total)) => (total as f64 / read.max(1) as f64).max(1.0),
        _ => 1.0,
    };
    let of_sketches = path.metadata().map_or(0, |about| about.len()) as f64 * factor;
    let documents_in_all = documents as f64 * factor;
    // Per document: its entry (20 bytes), its key twice (12) and columns of keys (4 each, up to 16 at once).
    let working = documents_in_all * (32.0 + 4.0 * dial.bands.count.min(16) as f64);
    let working = working.min(memory as f64);
    Ok(Estimate {
        whole,
        documents: documents_in_all as u64,
        pairs: ((pairs as f64 * factor) as u64, (pairs as f64 * factor * factor) as u64),
        memory: (working + of_sketches.min(memory as f64)) as u64,
        disk: (of_sketches + sources.total_bytes().unwrap_or(texts) as f64) as u64,
        // Writing takes about a third of the time of signing.
        seconds: (signing * 1.4 + looking) * factor,
        input_bytes: sources.total_bytes(),
    })
}

const NOTHING: Facts = Facts { set_hash: 0, preference: 0, text_bytes: 0, source: 0, signed: 0 };

impl Estimate {
    /// In words.
    pub(crate) fn summary(&self) -> String {
        let about = if self.whole { "" } else { "about " };
        let pairs = match self.pairs {
            (a, b) if a == b => format!("about {a}, by a sample"),
            (a, b) => format!(
                "between {a} (if near-duplicates are near each other) and {b} (if they are anywhere)"
            ),
        };
        let input = self.input_bytes.map_or("of unknown size".into(), size::display);
        format!(
            "input     {input}\ndocuments {about}{}\npairs     {pairs}\nmemory    about {}\ndisk      about {}\ntime      about {:.0} s",
            self.documents,
            size::display(self.memory),
            size::display(self.disk),
            self.seconds.max(1.0),
        )
    }
}
