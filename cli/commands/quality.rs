//! `lookalike quality`.

mod index;

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use clap::{ArgGroup, Args};
use lookalike::{
    Document, Signer,
    quality::{Clusters, Links, Pairs, Score, ari, cluster_recall},
    recipe::Scratch,
};
use serde_json::{Value, json};

use self::index::IndexQuality;
use super::{Global, Outcome};
use crate::{
    failure::hinted,
    index::parse_share,
    input::ReadArgs,
    labels::{Ids, Linked, Reader},
    output::{counted, print},
    texts::{jaccard, read_documents, set_of, word_shingles},
};

/// So many pairs of clusters are listed at most, to look at their texts.
const MOST_PAIRS: u64 = 20_000_000;
/// So many ids are named; the others are counted.
const NAMED: usize = 3;

/// Score pairs or clusters against labels, or an index against the scan
///
/// Labels are documents with their clusters (fields `id` and `cluster`; null for none), or pairs (`id_a`, `id_b`, perhaps
/// `value`; in a table without a header these are the columns). What was found is in either form, too. The files are .jsonl,
/// .csv, .tsv (also .gz or .zst) or .parquet. Precision is the share of the pairs found that the labels have, recall the
/// share of the labels' pairs that was found; the intervals hold 19 times out of 20, if pairs were independent.
///
/// With a file of signatures in place of labels, an index is scored against the scan: some rows of the file are asked for
/// their neighbors, without themselves.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").required(true).args(["labels", "file"]))]
#[command(group = ArgGroup::new("found").args(["pairs", "clusters"]))]
#[command(after_help = "\
Examples:
  lookalike quality --labels gold.jsonl --pairs pairs.csv
  lookalike quality --labels gold.jsonl.gz --clusters clusters.jsonl --ignore-above 0.8
  lookalike quality --labels gold.tsv --min-value 0.8 --pairs pairs.parquet --format json
  lookalike quality news.sig --index psm --radius 3 --queries 1000
  lookalike quality news.sig --index permuted-16 --nearest 10")]
pub(crate) struct Quality {
    /// Signatures, to score an index over them: .sig, .npy, .hex or .parquet
    #[arg(conflicts_with_all = ["pairs", "clusters"])]
    file: Option<PathBuf>,

    /// Which documents belong together
    #[arg(long, value_name = "GOLD", requires = "found")]
    labels: Option<PathBuf>,

    /// The pairs that were found
    #[arg(long, value_name = "FILE")]
    pairs: Option<PathBuf>,

    /// The clusters that were found
    #[arg(long, value_name = "FILE")]
    clusters: Option<PathBuf>,

    /// Of the labels' pairs, only those of at least this value belong together; not said, it must be above 0
    #[arg(long, value_name = "VALUE", requires = "labels")]
    min_value: Option<f64>,

    /// The field of the labels that names the cluster
    #[arg(long, value_name = "FIELD", default_value = "cluster")]
    cluster_field: String,

    /// Pairs found that the labels do not have count neither as right nor as wrong if their texts are so alike: the
    /// Jaccard of their word 3-grams is at least this
    #[arg(long, value_name = "SHARE", value_parser = parse_share, requires = "labels")]
    ignore_above: Option<f64>,

    /// Where the texts for --ignore-above are; not said, in the labels
    #[arg(long, value_name = "INPUT", requires = "ignore_above")]
    texts: Vec<String>,

    #[command(flatten)]
    index: IndexQuality,

    #[command(flatten)]
    read: ReadArgs,
}

/// All that there is to tell.
struct Report {
    score: Score,
    ignored: usize,
    ari: Option<f64>,
    cluster_recall: Option<f64>,
    documents: usize,
    only_in_labels: Vec<String>,
    only_in_found: Vec<String>,
}

impl Quality {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Outcome> {
        let found = self.pairs.as_deref().or(self.clusters.as_deref());
        match (&self.file, &self.labels, found) {
            (Some(file), ..) => return self.index.run(file, global),
            (None, Some(labels), Some(found)) => {
                let report = self.score(labels, found, global)?;
                print(if global.json() { report.json().to_string() } else { report.text() })?;
            }
            // The flags are checked already.
            _ => anyhow::bail!("there is nothing to score"),
        }
        Ok(Outcome::Done)
    }

    fn score(&self, labels: &Path, found: &Path, global: &Global) -> anyhow::Result<Report> {
        let mut ids = Ids::default();
        let reader = Reader {
            id_field: self.read.id_field.as_deref(),
            cluster_field: Some(&self.cluster_field),
            min_value: self.min_value,
        };
        let labels = reader.read(labels, &mut ids)?;
        let found = self.read_found(found, &mut ids)?;
        let unlabelled = match self.ignore_above {
            Some(least) => {
                self.alike(&false_pairs(&found.links, &labels.links)?, &ids, least, global)?
            }
            None => Pairs::default(),
        };
        Ok(report(&found, &labels, &unlabelled, &ids))
    }

    fn read_found(&self, path: &Path, ids: &mut Ids) -> anyhow::Result<Linked> {
        let found = Reader::default().read(path, ids)?;
        match (&found.links, &self.pairs) {
            (Links::Clusters(_), Some(_)) => Err(hinted(
                format!("{}: these are clusters, not pairs", path.display()),
                "give them with `--clusters`",
            )),
            // An empty file is one of clusters, too.
            (Links::Pairs(pairs), None) if !pairs.is_empty() => Err(hinted(
                format!("{}: these are pairs, not clusters", path.display()),
                "give them with `--pairs`",
            )),
            _ => Ok(found),
        }
    }

    /// Those of the pairs whose texts are at least so alike.
    fn alike(
        &self,
        pairs: &Pairs,
        ids: &Ids,
        least: f64,
        global: &Global,
    ) -> anyhow::Result<Pairs> {
        let labels = self.labels.iter().map(|labels| labels.display().to_string());
        let inputs = if self.texts.is_empty() { labels.collect() } else { self.texts.clone() };
        let signer = word_shingles()?;
        let mut sets: HashMap<u32, Option<Vec<u64>>> =
            pairs.iter().flat_map(|(a, b)| [(a, None), (b, None)]).collect();
        let wanted = |id: &str| ids.find(id).filter(|row| sets.contains_key(row));
        let mut made = Vec::new();
        let work = |document: &Document| {
            let text = Signer::text_of(document, false);
            let set = || Some(set_of(&signer, &text, &mut Scratch::default()));
            wanted(&document.id).map(|row| (row, set()))
        };
        read_documents(&inputs, &self.read, global, work, |_, set| made.extend(set))?;
        sets.extend(made);
        if let Some((&missing, _)) = sets.iter().find(|(_, set)| set.is_none()) {
            return Err(hinted(
                format!("{}: there is no text of `{}`", inputs.join(", "), ids.name(missing)),
                "`--ignore-above` looks at the texts of all documents that were found; say where they are with `--texts`",
            ));
        }
        let set = |row: u32| sets[&row].as_deref().unwrap_or_default();
        let alike = pairs.iter().filter(|&(a, b)| jaccard(set(a), set(b)) >= least);
        Ok(Pairs::new(alike))
    }
}

/// The pairs that were found and that the labels do not have, one by one.
fn false_pairs(found: &Links, labels: &Links) -> anyhow::Result<Pairs> {
    let clusters = match found {
        Links::Pairs(pairs) => {
            return Ok(Pairs::new(pairs.iter().filter(|&(a, b)| !labels.join(a, b))));
        }
        Links::Clusters(clusters) => clusters,
    };
    let count = found.count() - found.shared(labels);
    if count > MOST_PAIRS {
        return Err(hinted(
            format!(
                "{count} pairs of these clusters are not in the labels: too many to compare their texts"
            ),
            "leave `--ignore-above` out",
        ));
    }
    let mut members: HashMap<u32, Vec<u32>> = HashMap::new();
    for (row, cluster) in (0..).zip(clusters.iter()) {
        members.entry(cluster.unwrap_or(u32::MAX)).or_default().push(row);
    }
    members.remove(&u32::MAX);
    let pairs = members.values().flat_map(|rows| {
        let behind = |at: usize| rows[at + 1..].iter().copied();
        rows.iter().enumerate().flat_map(move |(at, &a)| behind(at).map(move |b| (a, b)))
    });
    Ok(Pairs::new(pairs.filter(|&(a, b)| !labels.join(a, b))))
}

fn report(found: &Linked, labels: &Linked, unlabelled: &Pairs, ids: &Ids) -> Report {
    let only = |one: &Linked, other: &Linked| {
        let rows = one.rows.iter().filter(|row| other.rows.binary_search(row).is_err());
        rows.map(|&row| ids.name(row).to_owned()).collect()
    };
    // Labels that are pairs do not say how many documents there are.
    let clusters = match &labels.links {
        Links::Clusters(clusters) => Some(clusters),
        Links::Pairs(_) => None,
    };
    let grouped = match &found.links {
        Links::Pairs(pairs) => Links::Clusters(Clusters::connected(pairs, ids.len())),
        clusters => clusters.clone(),
    };
    Report {
        score: Score::of(&found.links, &labels.links, unlabelled),
        ignored: unlabelled.len(),
        ari: clusters.map(|_| ari(&grouped, &labels.links, ids.len() as u64)),
        cluster_recall: clusters.and_then(|clusters| cluster_recall(&found.links, clusters)),
        documents: ids.len(),
        only_in_labels: only(labels, found),
        only_in_found: only(found, labels),
    }
}

impl Report {
    fn json(&self) -> Value {
        let Score { both, found, wanted } = self.score;
        let named = |ids: &[String]| json!({ "count": ids.len(), "first": ids.iter().take(NAMED).collect::<Vec<_>>() });
        let mut value = score_json(&self.score);
        let more = json!({
            "ari": self.ari, "cluster_recall": self.cluster_recall,
            "right_pairs": both, "found_pairs": found, "labelled_pairs": wanted, "ignored_pairs": self.ignored,
            "documents": self.documents,
            "only_in_labels": named(&self.only_in_labels), "only_in_found": named(&self.only_in_found),
        });
        if let (Some(value), Value::Object(more)) = (value.as_object_mut(), more) {
            value.extend(more);
        }
        value
    }

    fn text(&self) -> String {
        let score = &self.score;
        let share = |name: &str, share: f64, (low, high): (f64, f64)| {
            format!("{name:<16} {share:.4}   ({low:.4} to {high:.4})\n")
        };
        let number =
            |value: Option<f64>| value.map_or("none".into(), |value| format!("{value:.4}"));
        let mut text = share("precision", score.precision(), score.precision_interval());
        text += &share("recall", score.recall(), score.recall_interval());
        text += &share("f1", score.f1(), score.f1_interval());
        text += &format!("ari              {}\n", number(self.ari));
        text += &format!("cluster recall   {}\n", number(self.cluster_recall));
        let Score { both, found, wanted } = *score;
        text += &format!("pairs            {both} right, of {found} found and {wanted} labelled");
        if self.ignored > 0 {
            let ignored = counted(self.ignored as u64, "pair");
            text += &format!("\nnot counted      {ignored} that are alike but not labelled");
        }
        for (name, ids) in [("labels", &self.only_in_labels), ("found", &self.only_in_found)] {
            if !ids.is_empty() {
                let some: Vec<&str> = ids.iter().take(NAMED).map(String::as_str).collect();
                let more = if ids.len() > NAMED { ", ..." } else { "" };
                let label = format!("only in {name}");
                text += &format!(
                    "\n{label:<16} {}: {}{more}",
                    counted(ids.len() as u64, "document"),
                    some.join(", ")
                );
            }
        }
        text
    }
}

/// A score as JSON, with its intervals.
pub(crate) fn score_json(score: &Score) -> Value {
    let pair = |(low, high): (f64, f64)| json!([low, high]);
    json!({
        "precision": score.precision(), "recall": score.recall(), "f1": score.f1(),
        "precision_interval": pair(score.precision_interval()),
        "recall_interval": pair(score.recall_interval()),
        "f1_interval": pair(score.f1_interval()),
    })
}
