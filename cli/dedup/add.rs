//! After the last stage, if it is asked for: what was kept goes into the collection that it was compared with.

use lookalike::{
    Document, Signature, Signer,
    collection::{Collection, Entry, IfExists, Put},
    dedup::{Decision, sketches::SketchFile},
};
use serde::Serialize;
use serde_json::Value;

use super::write::PlannedChunk;
use crate::{
    commands::Global,
    input::{Chunk, OnError, Sources},
    output::Reading,
};

/// So many documents at least are added at a time: what was added is durable, and that takes its time.
const BATCH: usize = 4096;

/// Everything that decides what is added.
pub(crate) struct AddStage<'a> {
    pub(crate) collection: &'a Collection,
    pub(crate) signer: &'a Signer,
    pub(crate) sketches: &'a SketchFile,
    pub(crate) decisions: &'a [Decision],
    pub(crate) plan: Vec<PlannedChunk>,
}

/// What became of what was kept.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct Added {
    /// Documents that are in the collection now.
    pub(crate) documents: u64,
    /// How many of them took the place of one with the same id.
    pub(crate) replaced: u64,
}

impl AddStage<'_> {
    /// Reads the input once more: texts and payloads are not at hand.
    pub(crate) fn run(&self, sources: &Sources, global: &Global) -> anyhow::Result<Added> {
        let (mut added, mut waiting) = (Added::default(), Vec::new());
        // What was skipped at first is skipped again; nothing is told twice.
        let mut reading = Reading::new(sources, OnError::Skip, global);
        let work = |number: usize, chunk: Chunk| self.entries(sources, number, chunk);
        reading.run_on_chunks(global.threads(), work, |entries, reading| {
            waiting.extend(entries?);
            if waiting.len() >= BATCH {
                self.put(&mut waiting, &mut added)?;
            }
            reading.note(0, Vec::new())
        })?;
        self.put(&mut waiting, &mut added)?;
        Ok(added)
    }

    fn put(&self, waiting: &mut Vec<Entry>, added: &mut Added) -> anyhow::Result<()> {
        let put = self.collection.put(waiting, IfExists::Replace)?;
        added.documents += put.len() as u64;
        added.replaced += put.iter().filter(|put| **put == Put::Replaced).count() as u64;
        waiting.clear();
        Ok(())
    }

    /// What is added of a chunk.
    fn entries(
        &self,
        sources: &Sources,
        number: usize,
        chunk: Chunk,
    ) -> anyhow::Result<Vec<Entry>> {
        let rows = self.plan.get(number).map_or(0..0, PlannedChunk::rows);
        let documents = sources.parse(chunk).into_iter().flatten();
        let new = |row: &usize| {
            self.decisions[*row].keeper as usize == *row && self.sketches.facts()[*row].signed == 1
        };
        let new = rows.zip(documents).filter(|(row, _)| new(row));
        new.map(|(row, document)| self.entry(row, document)).collect()
    }

    fn entry(&self, row: usize, document: Document) -> anyhow::Result<Entry> {
        let words = self.sketches.signature(row).to_vec();
        let signature = Signature::from_words(self.sketches.bits(), words)?;
        let html = self.signer.recipe().html;
        let keeps = self.collection.about().keeps.texts;
        // The text as it was signed.
        let text = keeps.then(|| Signer::text_of(&document, html).into_owned());
        let payload =
            (!document.payload.is_empty()).then(|| Value::Object(document.payload).to_string());
        // As it is called in the output, which may be by its place.
        let id = self.sketches.id(row).into_owned();
        Ok(Entry { payload, text, ..Entry::new(id, signature) })
    }
}
