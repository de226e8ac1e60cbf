//! `lookalike add`.

mod batches;
mod documents;
mod signatures;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use lookalike::{
    collection::{Collection, IfExists},
    sigfile::suffix_of,
};
use serde_json::json;

use self::batches::{Batches, Durable, How};
use super::{Global, Outcome, sign::Unsigned};
use crate::{
    collection,
    failure::{check_radius, hinted},
    input::InputArgs,
    output::{counted, print, say, tell},
};

/// Add documents to a collection
///
/// Documents are signed by the collection's recipe, and kept with their other fields. They go in batch by batch; a batch
/// that is in stays in, whatever happens then, and to run the same again is safe. Signature files (.sig, .npy, .hex)
/// are added as they are.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike add news news.jsonl
  lookalike add crawl crawl/*.warc.gz --on-error skip
  lookalike add news today.parquet --text-field body --id-field meta.url --if-exists skip
  crawler | lookalike add crawl - --unless-seen 3 --format json
  lookalike add codes codes.npy")]
pub(crate) struct Add {
    /// The collection
    #[arg(value_name = "COLLECTION")]
    collection: PathBuf,

    #[command(flatten)]
    input: InputArgs,

    /// What becomes of a document whose id is there already
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = Exists::Replace)]
    if_exists: Exists,

    /// Add only documents that no other is within so many bits of, and tell of the others what they look like
    #[arg(long, value_name = "BITS", conflicts_with = "if_exists")]
    unless_seen: Option<u32>,

    /// The most documents of a batch, which is written as one
    #[arg(long, value_name = "N", default_value_t = 50_000, value_parser = clap::value_parser!(u32).range(1..))]
    batch: u32,
}

/// What becomes of a document whose id is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Exists {
    /// It takes the place of what is there
    Replace,
    /// It is left out
    Skip,
    /// Nothing of its batch is written, and the command ends
    Error,
}

impl From<Exists> for IfExists {
    fn from(exists: Exists) -> Self {
        match exists {
            Exists::Replace => IfExists::Replace,
            Exists::Skip => IfExists::Skip,
            Exists::Error => IfExists::Error,
        }
    }
}

/// What came in.
#[derive(Default)]
struct Read {
    documents: u64,
    unsigned: Unsigned,
    bad: u64,
    /// A line about how fast it went.
    rate: String,
}

impl Add {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Outcome> {
        let signatures = self.are_signatures()?;
        let durable = Durable::default();
        say_when_interrupted(&durable, &self.collection);
        let collection = collection::open(&self.collection, global)?;
        let how = match self.unless_seen {
            Some(radius) => {
                check_radius(radius, collection.about().bits)?;
                How::UnlessSeen(radius)
            }
            None => How::Put(self.if_exists.into()),
        };
        let most = self.batch as usize;
        let mut batches = Batches::new(&collection, how, most, durable.clone(), global.json());
        let added = match signatures {
            true => signatures::add(&self.input.inputs, &mut batches, global),
            false => documents::add(&self.input, &mut batches, global),
        };
        let (read, outcome) = match added {
            Ok(added) => added,
            Err(error) => {
                tell(stopped(&self.collection, &counted(durable.count(), "document")));
                return Err(error);
            }
        };
        self.tell(&batches, &read, global)?;
        collection.close()?;
        Ok(outcome)
    }

    /// Whether the inputs are signatures rather than documents.
    fn are_signatures(&self) -> anyhow::Result<bool> {
        let is_one = |name: &&String| {
            let suffix = suffix_of(Path::new(name));
            suffix.is_some_and(|suffix| ["sig", "npy", "hex"].contains(&suffix.as_str()))
        };
        let (signatures, documents): (Vec<_>, Vec<_>) = self.input.inputs.iter().partition(is_one);
        match (signatures.first(), documents.first()) {
            (Some(signatures), Some(documents)) => {
                let problem = format!("{signatures} has signatures, {documents} has documents");
                Err(hinted(problem, "add them one after the other"))
            }
            (signatures, _) => Ok(signatures.is_some()),
        }
    }

    fn tell(&self, batches: &Batches<'_>, read: &Read, global: &Global) -> anyhow::Result<()> {
        let (totals, collection) = (&batches.totals, batches.collection);
        let records = collection.snapshot().len() as u64;
        // With `--unless-seen` each document has had a line.
        if global.json() && self.unless_seen.is_none() {
            print(json!({
                "collection": self.collection.display().to_string(),
                "documents": read.documents, "added": totals.added, "replaced": totals.replaced,
                "skipped": totals.skipped, "unsigned": read.unsigned.count, "bad": read.bad, "records": records,
            }))?;
        }
        say(global, || {
            let became = [
                (totals.added, "added"),
                (totals.replaced, "replaced"),
                (totals.skipped, "there already"),
                (totals.seen, "seen before"),
            ];
            let told = |(at, (number, _)): &(usize, (u64, &str))| *at == 0 || *number > 0;
            let became = became.into_iter().enumerate().filter(told);
            let became: Vec<String> =
                became.map(|(_, (number, what))| format!("{number} {what}")).collect();
            let documents = counted(read.documents, "document");
            let records = counted(records, "record");
            let path = self.collection.display();
            let unsigned = recipe_line(collection, &read.unsigned);
            let became = became.join(", ");
            format!("{path}: {documents}: {became}; now {records}{unsigned}{}", read.rate)
        });
        Ok(())
    }
}

fn recipe_line(collection: &Collection, unsigned: &Unsigned) -> String {
    collection.about().recipe.as_ref().map_or(String::new(), |recipe| unsigned.line(recipe))
}

/// What is told when it ends before its time.
fn stopped(collection: &Path, in_it: &str) -> String {
    format!(
        "stopped: {in_it} in {}, and safe; the same again starts from the beginning",
        collection.display()
    )
}

/// Has a user who interrupts told what is in. Nothing has to be put in order: a batch is in or not.
#[cfg(unix)]
fn say_when_interrupted(durable: &Durable, collection: &Path) {
    use std::{process, thread};

    use signal_hook::{consts::SIGINT, iterator::Signals};

    // Without it, an interrupted program ends as others do: at once.
    let Ok(mut signals) = Signals::new([SIGINT]) else { return };
    let (durable, collection) = (durable.clone(), collection.to_owned());
    thread::spawn(move || {
        if signals.forever().next().is_some() {
            let durable = counted(durable.count(), "document");
            tell(format!("\n{}", stopped(&collection, &format!("at least {durable}"))));
            // What shells say of a program that was interrupted.
            process::exit(130);
        }
    });
}

#[cfg(not(unix))]
fn say_when_interrupted(_: &Durable, _: &Path) {}
