//! `lookalike cluster`.

mod grouped;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context;
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
};
use lookalike::{
    cluster::Linkage, collection::ClusterSettings, index::Promise, sigfile::suffix_of,
};
use serde_json::{Value, json};

use self::grouped::{Grouped, Member};
use super::{Global, Outcome, join::JoinArgs};
use crate::{
    collection,
    failure::{check_radius, hinted},
    output::{RowFormat, RowWriter, check_rows, counted, print, say},
};

/// So many rows are written at a time.
const BATCH: usize = 1 << 14;

/// Make clusters of pairs that are alike, or of the records of a collection
///
/// Writes id and cluster of each document that is in a cluster of two or more, by cluster, then by id. A cluster has the
/// name of one of its documents. Ids are in the order of their bytes.
///
/// Pairs are files as `lookalike join -o` and `lookalike dedup --pairs` write them: id_a, id_b and perhaps distance; other
/// columns do not matter, and the columns of a table without a header are id_a and id_b. A document that is in no pair is
/// in no cluster. With --linkage components, all that are connected are a cluster, through others if need be, and the
/// first id is its name. With --linkage star, ids are gone through in order: one that is paired with a keeper joins the
/// first such keeper, otherwise it is a keeper itself, and the keeper's id is the name. The order of the pairs does not
/// matter.
///
/// In a collection, documents that are at most --radius bits apart are connected, and what is connected is a cluster; the
/// oldest of its documents is its name. --memory, --recall, --exact and --at-most are for collections, too.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit code 1 if there is no cluster.

Examples:
  lookalike cluster pairs.parquet -o clusters.csv
  lookalike cluster pairs.csv --linkage star --max-distance 20
  lookalike join crawl.sig --radius 3 | lookalike cluster - -o clusters.jsonl
  lookalike cluster news/ --radius 36 --format json")]
pub(crate) struct Cluster {
    /// A file of pairs, .csv, .tsv, .jsonl (also .gz or .zst) or .parquet; `-` for CSV or JSON lines from standard input;
    /// or a collection
    #[arg(value_name = "PAIRS|COLLECTION")]
    from: PathBuf,

    /// The file to write: .csv, .jsonl or .parquet; not said, CSV goes to standard output, or JSON lines with --format json
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Which documents make a cluster: all that are connected by pairs (components), or those paired with its keeper (star)
    #[arg(long, value_name = "LINKAGE", default_value = "components", value_parser = linkage())]
    linkage: Linkage,

    /// Only pairs at most so far apart, by their column `distance`
    #[arg(long, value_name = "N", conflicts_with = "radius")]
    max_distance: Option<u32>,

    /// In a collection, documents at most so many bits apart look alike
    #[arg(long, short, value_name = "BITS")]
    radius: Option<u32>,

    #[command(flatten)]
    how: JoinArgs,

    /// Refuse a collection with more pairs than this; copies count once
    #[arg(long, value_name = "N", default_value_t = 50_000_000, requires = "radius")]
    at_most: u64,
}

/// Pairs alone do not tell which clusters are complete.
fn linkage() -> impl TypedValueParser<Value = Linkage> {
    PossibleValuesParser::new(["components", "star"]).try_map(|name| name.parse::<Linkage>())
}

impl Cluster {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Outcome> {
        let check = |output: &PathBuf| check_rows(output, &[&self.from]);
        let format = self.output.as_ref().map(check).transpose()?;
        let (grouped, promise) = match self.is_collection() {
            true => {
                self.of_collection(global).map(|(grouped, promise)| (grouped, Some(promise)))?
            }
            false => (self.of_pairs()?, None),
        };
        let place = self.output.as_deref().unwrap_or(Path::new("standard output"));
        write(&grouped, place, format, global).with_context(|| place.display().to_string())?;
        if self.output.is_some() && global.json() {
            print(summary(place, &grouped, promise))?;
        }
        say(global, || line(&grouped, promise));
        Ok(if grouped.documents() == 0 { Outcome::NothingFound } else { Outcome::Done })
    }

    /// Whether a collection is meant. What is not there is one if there is a radius, so that the error says so.
    fn is_collection(&self) -> bool {
        let is_missing = || self.from != Path::new("-") && !self.from.exists();
        self.from.is_dir() || (self.radius.is_some() && is_missing())
    }

    fn of_pairs(&self) -> anyhow::Result<Grouped> {
        let name = self.from.display();
        if matches!(suffix_of(&self.from).as_deref(), Some("sig" | "npy" | "hex")) {
            return Err(hinted(
                format!("{name} holds signatures, not pairs"),
                format!("find them first: `lookalike join {name} --radius H -o pairs.csv`"),
            ));
        }
        if self.radius.is_some() {
            return Err(hinted(
                format!("{name} is no collection, and `--radius` is for those"),
                "`--max-distance N` takes only the pairs that are at most so far apart",
            ));
        }
        Grouped::of_pairs(&self.from, self.linkage, self.max_distance)
    }

    fn of_collection(&self, global: &Global) -> anyhow::Result<(Grouped, Promise)> {
        let collection = collection::open_reader(&self.from, global)?;
        let name = self.from.display();
        let Some(radius) = self.radius else {
            return Err(hinted(
                format!("{name} is a collection, and its clusters need a radius"),
                "say how many bits apart documents look alike, as in `--radius 36`",
            ));
        };
        check_radius(radius, collection.about().bits)?;
        if self.linkage != Linkage::Components {
            return Err(hinted(
                format!("{name}: the clusters of a collection are components"),
                format!(
                    "for others, make pairs: `lookalike export {name} -o x.sig`, then \
                     `lookalike join x.sig --radius {radius} -o pairs.csv`, and cluster these"
                ),
            ));
        }
        let settings = ClusterSettings {
            radius,
            recall: self.how.recall(),
            most_pairs: self.at_most,
            memory: self.how.memory,
        };
        Ok(Grouped::of_collection(&collection, &settings)?)
    }
}

fn write(
    grouped: &Grouped,
    place: &Path,
    format: Option<RowFormat>,
    global: &Global,
) -> io::Result<()> {
    let schema = batch(&[])?.schema();
    let mut writer = match format {
        Some(format) => RowWriter::create(place, format, &schema)?,
        None => RowWriter::standard(global.json(), &schema)?,
    };
    for members in grouped.members().chunks(BATCH) {
        writer.write(members.iter().map(|&member| grouped.named(member)), batch)?;
    }
    writer.complete()
}

fn batch(members: &[Member<'_>]) -> io::Result<RecordBatch> {
    let ids = StringArray::from_iter_values(members.iter().map(|member| member.id));
    let clusters = StringArray::from_iter_values(members.iter().map(|member| member.cluster));
    let columns: [(&str, ArrayRef); 2] = [("id", Arc::new(ids)), ("cluster", Arc::new(clusters))];
    RecordBatch::try_from_iter(columns).map_err(io::Error::other)
}

fn line(grouped: &Grouped, promise: Option<Promise>) -> String {
    let worth = match promise {
        None => String::new(),
        Some(Promise::Exact) => " (exact)".to_owned(),
        Some(Promise::Expected { recall }) => {
            format!(" (not exact: {:.1}% of the pairs at the radius are expected)", recall * 100.0)
        }
    };
    let text = match grouped.documents() {
        0 => "no documents are in clusters".to_owned(),
        documents => format!(
            "{} in {}, the largest has {}",
            counted(documents as u64, "document"),
            counted(grouped.clusters() as u64, "cluster"),
            grouped.largest()
        ),
    };
    text + &worth
}

fn summary(output: &Path, grouped: &Grouped, promise: Option<Promise>) -> Value {
    let mut summary = json!({
        "output": output.display().to_string(),
        "documents": grouped.documents(),
        "clusters": grouped.clusters(),
        "largest": grouped.largest(),
    });
    if let Some(promise) = promise {
        summary["exact"] = (promise == Promise::Exact).into();
    }
    summary
}
