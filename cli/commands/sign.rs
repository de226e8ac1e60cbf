//! `lookalike sign`.

use std::path::PathBuf;

use clap::Args;
use lookalike::{
    Document, Recipe, Signer,
    recipe::{Scratch, Signed},
    sigfile::{Columns, Row, SignatureWriter, suffix_of},
};
use serde_json::json;

use super::{
    Global, Outcome,
    recipe::{RecipeArgs, TermsArg, check_margins, signer},
};
use crate::{
    failure::hinted,
    input::{InputArgs, Record, Sources},
    output::{Reading, check_output, counted, print, say},
};

/// Turn documents into signatures
///
/// Documents with too few features (an empty text, say) get no signature; their number is told.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike sign news.jsonl -o news.sig
  lookalike sign crawl/*.warc.gz --recipe web -o crawl.sig
  lookalike sign docs.parquet --text-field body --id-field meta.url --payload -o docs.sig
  zcat dump.jsonl.gz | lookalike sign - --on-error skip -o dump.sig")]
pub(crate) struct Sign {
    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    recipe: RecipeArgs,

    #[command(flatten)]
    terms: TermsArg,

    /// The signature file to write; it appears when it is complete
    #[arg(long, short, value_name = "FILE.sig")]
    output: PathBuf,

    /// Keep how weak each bit is, for searches that try the weakest bits first: a byte a bit
    #[arg(long)]
    margins: bool,

    /// Keep the documents' other fields; a search shows them with each hit
    #[arg(long)]
    payload: bool,
}

/// What became of a chunk of input.
struct SignedChunk {
    rows: Vec<SignedRow>,
    bad: Vec<crate::input::BadRecord>,
    documents: u64,
    /// The ids of those without a signature.
    unsigned: Vec<String>,
}

struct SignedRow {
    id: String,
    signed: Signed,
    payload: Option<String>,
}

impl Sign {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Outcome> {
        self.check_suffix()?;
        let signer = signer(self.recipe.recipe()?, self.terms.terms.as_deref())?;
        check_margins(signer.recipe(), self.margins)?;
        let signer = if self.margins { signer.with_margins() } else { signer };
        let recipe = signer.recipe();
        let sources = Sources::open(&self.input.inputs, &self.input.read, self.payload)?;
        check_output(&self.output, &sources)?;
        let columns = Columns {
            ids: true,
            margins: self.margins,
            passages: recipe.passages.is_some(),
            payloads: self.payload,
        };
        let bits = recipe.signature.bits;
        let mut writer = SignatureWriter::create(&self.output, bits, Some(recipe), columns)?;
        let mut totals = Totals::default();
        let mut reading = Reading::new(&sources, self.input.read.on_error, global);
        let work = |records: Vec<Record>| sign_records(&signer, records, self.payload);
        reading.run(global.threads(), work, |chunk, reading| {
            totals.add(&chunk);
            chunk.rows.iter().try_for_each(|row| writer.push(&row.as_row()))?;
            reading.note(chunk.documents, chunk.bad)
        })?;
        let rows = writer.rows();
        writer.finish(totals.unsigned.count)?;
        let outcome = reading.finish();
        let summary = json!({
            "documents": totals.documents, "rows": rows, "unsigned": totals.unsigned.count, "skipped": reading.skipped(),
            "bits": bits, "recipe": recipe.name, "output": self.output.display().to_string(),
        });
        if global.json() {
            print(summary)?;
        }
        say(global, || self.summary(&signer, &totals, rows, &reading.rate()));
        Ok(outcome)
    }

    fn check_suffix(&self) -> anyhow::Result<()> {
        let suffix = suffix_of(&self.output).unwrap_or_default();
        if !["npy", "hex", "parquet"].contains(&suffix.as_str()) {
            return Ok(());
        }
        let path = self.output.display();
        let ours = self.output.with_extension("sig");
        let ours = ours.display();
        Err(hinted(
            format!("`sign` writes .sig files, not .{suffix}"),
            format!("sign to {ours}, then `lookalike convert {ours} {path}`"),
        ))
    }

    fn summary(&self, signer: &Signer, totals: &Totals, rows: u64, rate: &str) -> String {
        let recipe = signer.recipe();
        let (path, bits, name) = (self.output.display(), recipe.signature.bits, &recipe.name);
        let (rows, documents) = (counted(rows, "signature"), counted(totals.documents, "document"));
        let text = format!("{path}: {rows} of {bits} bits from {documents} (recipe {name})");
        text + &totals.unsigned.line(recipe) + rate
    }
}

/// What became of all documents.
#[derive(Default)]
struct Totals {
    documents: u64,
    unsigned: Unsigned,
}

impl Totals {
    fn add(&mut self, chunk: &SignedChunk) {
        self.documents += chunk.documents;
        self.unsigned.add(&chunk.unsigned);
    }
}

/// Documents with too few features for a signature.
#[derive(Default)]
pub(super) struct Unsigned {
    pub(super) count: u64,
    /// The ids of the first few.
    first: Vec<String>,
}

impl Unsigned {
    pub(super) fn add(&mut self, ids: &[String]) {
        self.count += ids.len() as u64;
        self.first.extend(ids.iter().take(3 - self.first.len()).cloned());
    }

    /// A line of a summary, if there are any.
    pub(super) fn line(&self, recipe: &Recipe) -> String {
        if self.count == 0 {
            return String::new();
        }
        let documents = counted(self.count, "document");
        let wanted = counted(recipe.min_features as u64, "feature");
        let some = self.first.join(", ");
        format!("\nwithout a signature, for less than {wanted}: {documents}, as {some}")
    }
}

fn sign_records(signer: &Signer, records: Vec<Record>, with_payload: bool) -> SignedChunk {
    let mut scratch = Scratch::default();
    let mut chunk =
        SignedChunk { rows: Vec::new(), bad: Vec::new(), documents: 0, unsigned: Vec::new() };
    for record in records {
        match record {
            Ok(document) => chunk.sign(signer, document, with_payload, &mut scratch),
            Err(bad) => chunk.bad.push(bad),
        }
    }
    chunk
}

impl SignedChunk {
    fn sign(
        &mut self,
        signer: &Signer,
        document: Document,
        with_payload: bool,
        scratch: &mut Scratch,
    ) {
        let signatures = signer.sign(&document, scratch);
        self.documents += 1;
        if signatures.is_empty() {
            self.unsigned.push(document.id.clone());
        }
        let payload = with_payload.then(|| serde_json::Value::Object(document.payload).to_string());
        for signed in signatures {
            self.rows.push(SignedRow { id: document.id.clone(), signed, payload: payload.clone() });
        }
    }
}

impl SignedRow {
    fn as_row(&self) -> Row<'_> {
        let passage = self.signed.passage.clone();
        Row {
            words: self.signed.signature.words(),
            id: &self.id,
            margins: self.signed.margins.as_deref(),
            passage: passage.map(|range| range.start as u64..range.end as u64),
            payload: self.payload.as_deref(),
        }
    }
}
