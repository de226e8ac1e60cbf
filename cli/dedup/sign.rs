//! The first stage: documents to sketches.

use std::{collections::HashMap, path::Path, sync::Arc};

use lookalike::{
    Signer,
    dedup::{
        Keep,
        sketches::{Facts, SketchWriter, Sketches},
        text_of,
    },
    recipe::{Scratch, SketchSettings},
};
use serde::{Deserialize, Serialize};

use crate::{
    commands::{Global, Outcome},
    input::{BadRecord, Chunk, OnError, Sources, value_at},
    output::Reading,
};

/// What the stage knows when it is done, kept with the sketches.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct SignedInput {
    pub(crate) documents: u64,
    /// Documents without features.
    pub(crate) unsigned: u64,
    pub(crate) skipped: u64,
    /// Documents without the field that keepers are chosen by.
    pub(crate) without_field: u64,
    /// Documents without the field that tells where they come from.
    #[serde(default)]
    pub(crate) without_source: u64,
    pub(crate) text_bytes: u64,
    pub(crate) sources: Vec<String>,
    pub(crate) seconds: f64,
}

/// How documents are signed.
pub(crate) struct SignStage<'a> {
    pub(crate) signer: &'a Signer,
    pub(crate) sketch: SketchSettings,
    pub(crate) keep: &'a Keep,
    pub(crate) source_field: &'a str,
    pub(crate) id_field: &'a str,
    /// Only chunks whose number leaves this remainder: part i of n.
    pub(crate) part: (usize, usize),
}

/// What became of a chunk of input.
#[derive(Default)]
struct SignedChunk {
    sketches: Sketches,
    /// How many records the chunk has, and which of them are no documents.
    records: u32,
    bad_records: Vec<u32>,
    bad: Vec<BadRecord>,
    without_field: u64,
    without_source: u64,
    text_bytes: u64,
    /// The sources of the documents, which are numbered within the chunk.
    sources: Vec<String>,
}

impl SignStage<'_> {
    pub(crate) fn run(
        &self,
        sources: &Sources,
        on_error: OnError,
        path: &Path,
        global: &Global,
    ) -> anyhow::Result<(SignedInput, Outcome)> {
        let started = std::time::Instant::now();
        let bits = self.signer.recipe().signature.bits;
        let mut writer = SketchWriter::create(path, bits, self.keys(), self.sketch.weights)?;
        let mut input = SignedInput::default();
        let mut numbers: HashMap<String, u32> = HashMap::new();
        let mut reading = Reading::new(sources, on_error, global);
        let work = |number: usize, chunk: Chunk| self.sign(sources, number, chunk);
        reading.run_on_chunks(global.threads(), work, |mut chunk, reading| {
            let of_chunk: Vec<u32> =
                chunk.sources.drain(..).map(|source| number_of(source, &mut numbers)).collect();
            chunk.sketches.number_sources(&of_chunk);
            writer.append(&chunk.sketches)?;
            writer.note(&[chunk.records, chunk.bad_records.len() as u32])?;
            writer.note(&chunk.bad_records)?;
            input.documents += chunk.sketches.len() as u64;
            input.unsigned += (chunk.sketches.len() - chunk.sketches.signed()) as u64;
            input.without_field += chunk.without_field;
            input.without_source += chunk.without_source;
            input.text_bytes += chunk.text_bytes;
            reading.note(chunk.sketches.len() as u64, chunk.bad)
        })?;
        let outcome = reading.finish();
        input.skipped = reading.skipped();
        input.sources = vec![String::new(); numbers.len()];
        numbers.into_iter().for_each(|(source, n)| input.sources[n as usize] = source);
        input.seconds = started.elapsed().as_secs_f64();
        writer.finish(serde_json::to_value(&input)?)?;
        Ok((input, outcome))
    }

    fn keys(&self) -> usize {
        self.sketch.bands.map_or(0, |bands| bands.count)
    }

    fn sign(&self, sources: &Sources, number: usize, chunk: Chunk) -> SignedChunk {
        let mut signed = SignedChunk::default();
        let (part, parts) = self.part;
        if number % parts != part {
            return signed;
        }
        let file = chunk.file().unwrap_or_else(|| Arc::from("input"));
        let mut scratch = Scratch::default();
        let mut number_of: HashMap<String, u32> = HashMap::new();
        for record in sources.parse(chunk) {
            signed.records += 1;
            let document = match record {
                Ok(mut document) => {
                    // The id is no other field, but keepers may be chosen by it.
                    if self.keep.field() == Some(self.id_field) {
                        let id = document.id.clone().into();
                        document.payload.entry(self.id_field).or_insert(id);
                    }
                    document
                }
                Err(bad) => {
                    signed.bad_records.push(signed.records - 1);
                    signed.bad.push(bad);
                    continue;
                }
            };
            let source = value_at(&document.payload, self.source_field).map(text_of);
            signed.without_source += u64::from(source.is_none());
            let source = source.unwrap_or_else(|| file.to_string());
            let value = self.keep.field().and_then(|field| value_at(&document.payload, field));
            let facts = Facts {
                set_hash: 0,
                preference: self.keep.preference(document.text.len(), value),
                text_bytes: document.text.len() as u64,
                source: self::number_of(source, &mut number_of),
                signed: 0,
            };
            signed.without_field += u64::from(!self.keep.applies(facts.preference));
            signed.text_bytes += facts.text_bytes;
            let text = Signer::text_of(&document, self.signer.recipe().html);
            let sketch = self.signer.sketch(&text, self.sketch, &mut scratch);
            let shape = (self.signer.recipe().signature.bits, self.keys());
            signed.sketches.push(&document.id, facts, sketch.as_ref(), shape);
        }
        signed.sources = vec![String::new(); number_of.len()];
        number_of.into_iter().for_each(|(source, n)| signed.sources[n as usize] = source);
        signed
    }
}

/// The number of a source; new ones get the next.
fn number_of(source: String, numbers: &mut HashMap<String, u32>) -> u32 {
    let next = numbers.len() as u32;
    *numbers.entry(source).or_insert(next)
}
