//! `lookalike terms`.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use lookalike::{
    Signer,
    features::{
        Buffers, Extractor,
        counts::Counts,
        terms::{TermCollector, TermCounts, TermTotals},
    },
    partial::folder_of,
};

use super::{Global, Outcome, recipe::RecipeArgs};
use crate::{
    input::{BadRecord, InputArgs, Record, Sources},
    output::{Reading, check_output, counted, print, say},
    size,
};

/// Count how often each feature occurs in a collection
///
/// Recipes that weigh features by how rare they are (topsig-1024; weights `tf-idf` and `log-likelihood`) need these
/// statistics, of the collection itself or of one like it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike terms news.jsonl --recipe topsig-1024 -o news.terms
  lookalike sign news.jsonl --recipe topsig-1024 --terms news.terms -o news.sig")]
pub(crate) struct Terms {
    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    recipe: RecipeArgs,

    /// The file to write; it appears when it is complete
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,

    /// Memory for counts, as 500M or 4G; what does not fit goes to temporary files
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = size::parse)]
    memory: u64,
}

/// What became of a chunk of input.
#[derive(Default)]
struct CountedChunk {
    terms: TermCounts,
    documents: u64,
    bad: Vec<BadRecord>,
}

impl Terms {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Outcome> {
        let recipe = self.recipe.recipe()?;
        let extractor = Extractor::new(&recipe.features)?;
        let sources = Sources::open(&self.input.inputs, &self.input.read, false)?;
        check_output(&self.output, &sources)?;
        let memory = usize::try_from(self.memory).unwrap_or(usize::MAX);
        let mut collector = TermCollector::new(memory, folder_of(&self.output));
        let mut reading = Reading::new(&sources, self.input.read.on_error, global);
        let work = |records: Vec<Record>| count_records(&extractor, recipe.html, records);
        reading.run(global.threads(), work, |chunk, reading| {
            collector.add(&chunk.terms).context("temporary files beside the output")?;
            reading.note(chunk.documents, chunk.bad)
        })?;
        let totals = collector.finish(&self.output, &recipe.features)?;
        let outcome = reading.finish();
        if global.json() {
            let mut summary = serde_json::to_value(totals)?;
            summary["output"] = self.output.display().to_string().into();
            summary["skipped"] = reading.skipped().into();
            print(summary)?;
        }
        say(global, || {
            let (path, rate) = (self.output.display(), reading.rate());
            let TermTotals { distinct, documents, .. } = totals;
            let documents = counted(documents, "document");
            format!("{path}: {} of {documents}{rate}", counted(distinct, "distinct feature"))
        });
        Ok(outcome)
    }
}

fn count_records(extractor: &Extractor, html: bool, records: Vec<Record>) -> CountedChunk {
    let (mut buffers, mut counts) = (Buffers::default(), Counts::default());
    let mut chunk = CountedChunk::default();
    for record in records {
        match record {
            Ok(document) => {
                extractor.count(&Signer::text_of(&document, html), &mut buffers, &mut counts);
                chunk.terms.add(&counts);
                chunk.documents += 1;
            }
            Err(bad) => chunk.bad.push(bad),
        }
    }
    chunk
}
