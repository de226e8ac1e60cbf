//! `lookalike calibrate`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;
use clap::{Args, ValueEnum};
use lookalike::{
    Document, Signer,
    features::Buffers,
    quality::{Clusters, Goal, Links, Pairs},
    sigfile::suffix_of,
};

use super::{Global, Outcome};
use crate::{
    calibrate::{
        Candidate, Corpus, Part, Trial, Tried, Truth, choose, figure, json_lines, page, recipes,
        text, thesis,
    },
    failure::hinted,
    index::parse_share,
    input::InputArgs,
    labels::{Ids, Linked, Reader},
    output::{check_place, counted, print, say},
    texts::{read_documents, word_shingles},
};

/// Thresholds of the check that are tried.
const CHECKS: [f64; 8] = [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];
/// The thesis: 3 of 64 bits correspond to a cosine of 0.9.
const THESIS_COSINE: f64 = 0.9;

/// Find the recipe, width, radius and check that suit your documents
///
/// Tries recipes of several features and widths at every radius, with and without a check of the texts (the Jaccard of their
/// word 3-grams, from 0.2 to 0.9), against labels (--labels) or, without labels, against the truly similar pairs
/// (--similarity). Takes the best F1, or what reaches --precision or --recall; of settings that are as good, to 0.001, the one
/// with the least to compare. All pairs of up to 30,000 documents are compared; of more documents, some with all others.
/// Intervals hold 19 times out of 20, if pairs were independent.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike calibrate news.jsonl --similarity 0.8
  lookalike calibrate gold.jsonl --labels gold.jsonl --precision 0.95 --split half
  lookalike calibrate news.jsonl --labels gold.tsv --min-value 0.8 -o curve.html
  lookalike calibrate news.jsonl --figure6 -o figure6.svg")]
pub(crate) struct Calibrate {
    #[command(flatten)]
    input: InputArgs,

    /// Which documents belong together: clusters or pairs, as for `quality`
    #[arg(long, value_name = "GOLD")]
    labels: Option<PathBuf>,

    /// Of the labels' pairs, only those of at least this value belong together; not said, it must be above 0
    #[arg(long, value_name = "VALUE", requires = "labels")]
    min_value: Option<f64>,

    /// The field of the labels that names the cluster
    #[arg(long, value_name = "FIELD", default_value = "cluster")]
    cluster_field: String,

    /// Pairs that the labels do not have count neither as right nor as wrong if their texts are so alike
    #[arg(long, value_name = "SHARE", value_parser = parse_share, requires = "labels")]
    ignore_above: Option<f64>,

    /// Without labels: the Jaccard of word 3-grams from which on two documents belong together
    #[arg(long, value_name = "SHARE", default_value = "0.7", value_parser = parse_similarity, conflicts_with = "labels")]
    similarity: f64,

    /// At least this precision, and the best recall with it
    #[arg(long, value_name = "SHARE", value_parser = parse_share, conflicts_with = "recall")]
    precision: Option<f64>,

    /// At least this recall, and the best precision with it
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    recall: Option<f64>,

    /// Choose on one half of the documents and score on the other: no cluster is in both
    #[arg(long, value_enum)]
    split: Option<Split>,

    /// Leave out documents of fewer words
    #[arg(long, value_name = "N", default_value_t = 0)]
    min_words: usize,

    /// Figure 6 of the PSM thesis: what radii of 64 bits are worth against a cosine of 0.9, with the thesis' features
    #[arg(long, conflicts_with_all = ["labels", "similarity", "precision", "recall", "split"])]
    figure6: bool,

    /// Draw the curve of the chosen recipe, as .svg or .html
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// How documents are divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Split {
    /// By the hash of their cluster, or of their id if they have none
    Half,
}

fn parse_similarity(text: &str) -> Result<f64, String> {
    parse_share(text)
        .ok()
        .filter(|&share| share > 0.0)
        .ok_or_else(|| "a similarity is a number above 0, and at most 1".to_owned())
}

impl Calibrate {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Outcome> {
        self.check_output()?;
        let (corpus, outcome) = self.read(global)?;
        let truth = self.truth(&corpus, global)?;
        let (chosen_on, scored_on) = self.parts(&corpus, &truth, global)?;
        let tried = self.try_all(&truth, &chosen_on, scored_on.as_ref(), global)?;
        let (best, winner) = choose(&tried, self.goal());
        match global.json() {
            true => json_lines(&best, winner, &tried).iter().try_for_each(print)?,
            false => print(text(&best, winner, &tried))?,
        }
        if let (Some(path), Some(winner)) = (&self.output, winner) {
            self.draw(path, &best, winner, &tried)?;
        }
        Ok(match winner {
            Some(_) => outcome,
            None => Outcome::NothingFound,
        })
    }

    fn check_output(&self) -> anyhow::Result<()> {
        let Some(path) = &self.output else { return Ok(()) };
        check_place(path)?;
        match suffix_of(path).as_deref() {
            Some("svg" | "html") => Ok(()),
            _ => Err(hinted(
                format!("{}: figures are .svg or .html", path.display()),
                "name it so, as in `-o curve.svg`",
            )),
        }
    }

    fn goal(&self) -> Goal {
        match (self.precision, self.recall) {
            (Some(least), _) => Goal::Precision(least),
            (_, Some(least)) => Goal::Recall(least),
            _ => Goal::F1,
        }
    }

    /// The documents, those with too few words left out.
    fn read(&self, global: &Global) -> anyhow::Result<(Corpus, Outcome)> {
        let shingles = word_shingles()?;
        let (mut corpus, mut short) = (Corpus::default(), 0);
        let work = |document: &Document| {
            let text = Signer::text_of(document, false).into_owned();
            let words = shingles.extractor().words(&text, &mut Buffers::default()).len();
            (words >= self.min_words.max(1)).then_some(text)
        };
        let InputArgs { inputs, read } = &self.input;
        let outcome = read_documents(inputs, read, global, work, |document, text| match text {
            Some(text) => {
                corpus.ids.push(document.id);
                corpus.texts.push(text);
            }
            None => short += 1,
        })?;
        if short > 0 {
            let short = counted(short, "document");
            say(global, || format!("left out, with too few words: {short}"));
        }
        match corpus.ids.len() {
            0 | 1 => Err(hinted(
                "there are no two documents to compare",
                "look at INPUT, `--text-field` and `--min-words`",
            )),
            _ => Ok((corpus, outcome)),
        }
    }

    fn truth(&self, corpus: &Corpus, global: &Global) -> anyhow::Result<Truth> {
        if self.figure6 {
            let signer = thesis(corpus.texts.iter().map(String::as_str))?;
            return Ok(Truth::Cosine(THESIS_COSINE, Box::new(signer)));
        }
        let Some(path) = &self.labels else { return Ok(Truth::Jaccard(self.similarity)) };
        let mut ids = Ids::default();
        corpus.ids.iter().for_each(|id| {
            ids.row(id);
        });
        if ids.len() < corpus.ids.len() {
            return Err(hinted(
                "some documents have the same id, so labels do not tell which is meant",
                "name a field of ids that differ with `--id-field`",
            ));
        }
        let reader = Reader {
            id_field: self.input.read.id_field.as_deref(),
            cluster_field: Some(&self.cluster_field),
            min_value: self.min_value,
        };
        let linked = reader.read(path, &mut ids)?;
        let rows = corpus.ids.len();
        let strange = linked.rows.iter().filter(|&&row| row as usize >= rows).count() as u64;
        if strange > 0 {
            say(global, || {
                let strange = counted(strange, "document");
                format!(
                    "only in the labels, and not counted: {strange}, as {}",
                    ids.name(rows as u32)
                )
            });
        }
        Ok(labelled(&linked, corpus))
    }

    /// The documents to choose on, and those to score on.
    fn parts<'a>(
        &self,
        corpus: &'a Corpus,
        truth: &Truth,
        global: &Global,
    ) -> anyhow::Result<(Part<'a>, Option<Part<'a>>)> {
        let shingles = word_shingles()?;
        // Truth by similarity needs the pairs that are less alike than any check.
        let least = match truth {
            Truth::Jaccard(least) => least.min(CHECKS[0]),
            _ => self.ignore_above.unwrap_or(1.0).clamp(0.01, CHECKS[0]),
        };
        let part = |half| corpus.part(truth, half, &shingles, least);
        let parts = match self.split {
            Some(Split::Half) => (part(Some(false)), Some(part(Some(true)))),
            None => (part(None), None),
        };
        for part in [Some(&parts.0), parts.1.as_ref()].into_iter().flatten() {
            say(global, || about(part));
            if part.wanted == 0 {
                return Err(hinted(
                    "no two documents belong together: there is nothing to calibrate on",
                    "look at the labels, or take a lower `--similarity` or `--min-value`",
                ));
            }
        }
        Ok(parts)
    }

    fn try_all(
        &self,
        truth: &Truth,
        chosen_on: &Part<'_>,
        scored_on: Option<&Part<'_>>,
        global: &Global,
    ) -> anyhow::Result<Vec<Tried>> {
        let signers = match truth {
            Truth::Cosine(_, signer) => vec![signer.as_ref().clone()],
            _ => {
                let signers = recipes().into_iter().map(|recipe| Signer::new(recipe, None));
                signers.collect::<lookalike::Result<_>>()?
            }
        };
        let checks = checks(truth);
        let mut tried = Vec::new();
        for signer in signers {
            let recipe = signer.recipe().clone();
            say(global, || format!("trying {}", recipe.name));
            let try_on = |part: &Part<'_>| Trial::new(part, &signer, &checks, self.ignore_above);
            let scored_on = scored_on.map(try_on).transpose()?;
            tried.push(Tried { recipe, chosen_on: try_on(chosen_on)?, scored_on });
        }
        Ok(tried)
    }

    fn draw(
        &self,
        path: &Path,
        best: &[Candidate],
        winner: usize,
        tried: &[Tried],
    ) -> anyhow::Result<()> {
        let recipe = &best[winner].recipe;
        let title = match self.figure6 {
            true => "Pairs of a cosine of 0.9 and more, within a radius of 64 bits".to_owned(),
            false => format!("Precision and recall by the radius: {}", recipe.name),
        };
        let svg = figure(&title, &best[winner], tried);
        let drawn = match suffix_of(path).as_deref() {
            Some("html") => page(&title, &svg, &text(best, Some(winner), tried)),
            _ => svg,
        };
        fs::write(path, drawn).with_context(|| path.display().to_string())
    }
}

/// The thresholds that are tried: where the truth is one itself, that one, too.
fn checks(truth: &Truth) -> Vec<f64> {
    let mut checks = match truth {
        Truth::Labels(..) => CHECKS.to_vec(),
        Truth::Jaccard(least) => [&CHECKS[..], &[*least]].concat(),
        Truth::Cosine(..) => Vec::new(),
    };
    checks.sort_by(f64::total_cmp);
    checks.dedup();
    checks
}

fn about(part: &Part<'_>) -> String {
    let documents = counted(part.texts.len() as u64, "document");
    let pairs = counted(part.wanted, "pair");
    match part.is_sampled() {
        true => format!(
            "{documents}, of which a sample of {} is compared with all behind them: {pairs} belong together",
            part.first.len()
        ),
        false => format!("{documents}, all compared: {pairs} belong together"),
    }
}

/// Labels of the documents that are there, and the name by which each is put into a half.
fn labelled(linked: &Linked, corpus: &Corpus) -> Truth {
    let rows = corpus.ids.len() as u32;
    match &linked.links {
        Links::Clusters(clusters) => {
            let of: Vec<Option<u32>> = (0..rows).map(|row| clusters.of(row)).collect();
            let name = |(cluster, id): (&Option<u32>, &String)| {
                cluster.map_or(id, |cluster| &linked.clusters[cluster as usize]).clone()
            };
            let names = of.iter().zip(&corpus.ids).map(name).collect();
            Truth::Labels(Links::Clusters(Clusters::new(of)), names)
        }
        Links::Pairs(pairs) => {
            let pairs = Pairs::new(pairs.iter().filter(|&(_, b)| b < rows));
            let names = least_ids(&Clusters::connected(&pairs, rows as usize), &corpus.ids);
            Truth::Labels(Links::Pairs(pairs), names)
        }
    }
}

/// The least id of those that pairs connect a document with.
fn least_ids(connected: &Clusters, ids: &[String]) -> Vec<String> {
    let mut least: std::collections::HashMap<u32, &String> = Default::default();
    for (cluster, id) in connected.iter().zip(ids).filter_map(|(c, id)| Some((c?, id))) {
        least.entry(cluster).and_modify(|least| *least = id.min(*least)).or_insert(id);
    }
    let name = |(cluster, id): (Option<u32>, &String)| cluster.map_or(id, |c| least[&c]).clone();
    connected.iter().zip(ids).map(name).collect()
}
