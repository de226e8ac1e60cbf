//! Documents are read and signed by all threads, and added in their order.

use lookalike::{
    Document, Signer,
    collection::{Collection, Entry},
    recipe::Scratch,
};

use super::{Read, batches::Batches};
use crate::{
    commands::{Global, Outcome},
    failure::hinted,
    input::{BadRecord, InputArgs, Record, Sources},
    output::Reading,
};

/// Adds the documents of the inputs.
pub(super) fn add(
    input: &InputArgs,
    batches: &mut Batches<'_>,
    global: &Global,
) -> anyhow::Result<(Read, Outcome)> {
    let (signer, texts) = (signer(batches.collection)?, batches.collection.about().keeps.texts);
    let sources = Sources::open(&input.inputs, &input.read, true)?;
    let mut reading = Reading::new(&sources, input.read.on_error, global);
    let mut read = Read::default();
    let work = |records: Vec<Record>| sign_records(&signer, records, texts);
    reading.run(global.threads(), work, |chunk, reading| {
        read.documents += chunk.documents;
        read.unsigned.add(&chunk.unsigned);
        chunk.entries.into_iter().try_for_each(|entry| batches.push(entry))?;
        reading.note(chunk.documents, chunk.bad)
    })?;
    batches.write()?;
    let outcome = reading.finish();
    (read.bad, read.rate) = (reading.skipped(), reading.rate());
    Ok((read, outcome))
}

fn signer(collection: &Collection) -> anyhow::Result<Signer> {
    if collection.about().recipe.is_some() {
        return Ok(collection.signer()?);
    }
    let path = collection.folder().display();
    Err(hinted(
        format!("{path} has signatures from elsewhere, and no recipe to sign documents with"),
        "add .sig, .npy or .hex files, or make another one with `lookalike create COLLECTION --recipe NAME`",
    ))
}

/// What became of a chunk of input.
#[derive(Default)]
struct SignedChunk {
    entries: Vec<Entry>,
    bad: Vec<BadRecord>,
    documents: u64,
    /// The ids of those without a signature.
    unsigned: Vec<String>,
}

fn sign_records(signer: &Signer, records: Vec<Record>, texts: bool) -> SignedChunk {
    let (mut scratch, mut chunk) = (Scratch::default(), SignedChunk::default());
    for record in records {
        match record {
            Ok(document) => chunk.sign(signer, document, texts, &mut scratch),
            Err(bad) => chunk.bad.push(bad),
        }
    }
    chunk
}

impl SignedChunk {
    fn sign(&mut self, signer: &Signer, document: Document, texts: bool, scratch: &mut Scratch) {
        self.documents += 1;
        // What is kept is the text that was signed, so that nobody has to know what it was written in.
        let text = Signer::text_of(&document, signer.recipe().html);
        let Some(signed) = signer.sign_text(&text, scratch) else {
            self.unsigned.push(document.id);
            return;
        };
        let text = texts.then(|| text.into_owned());
        let payload = (!document.payload.is_empty())
            .then(|| serde_json::Value::Object(document.payload).to_string());
        let (signature, margins) = (signed.signature, signed.margins);
        self.entries.push(Entry { id: document.id, signature, margins, payload, text });
    }
}
