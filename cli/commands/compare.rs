//! `lookalike compare`.

use std::{fmt::Write, time::Duration};

use clap::Args;
use lookalike::{
    Document, Signer,
    diff::{self, Run, Side},
    hamming,
    recipe::{Scratch, SignatureKind},
    verify::{self, Likeness},
};
use serde_json::json;

use super::{
    Global, Outcome,
    recipe::{RecipeArgs, TermsArg, signer},
};
use crate::{
    input::ReadArgs,
    output::{Paint, colour, print},
};

/// Equal text longer than this is cut to its ends in the diff.
const CONTEXT_WORDS: usize = 12;
/// A diff that takes longer is finished coarsely.
const DIFF_TIME: Duration = Duration::from_secs(3);

/// Tell how alike two documents are, and why
///
/// Shows the distance of the signatures and the cosine (of MinHash, the Jaccard) that it stands for, the true Jaccard and cosine of the features,
/// the features that differ most, and the texts' differences: [-only in A-] and {+only in B+}.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike compare a.txt b.txt
  lookalike compare news.jsonl:3 news.jsonl:17
  lookalike compare --in news.jsonl story-3 story-17
  lookalike compare --text \"one two three four\" \"one two three five\"")]
pub(crate) struct Compare {
    /// A file with one document, one of many as FILE:LINE, or an id with --in
    a: String,
    /// The other document
    b: String,

    /// A and B are ids of documents in this input
    #[arg(long = "in", value_name = "INPUT")]
    input: Option<String>,

    /// A and B are texts themselves
    #[arg(long, conflicts_with = "input")]
    text: bool,

    /// So many of the features that differ most
    #[arg(long, value_name = "N", default_value_t = 10)]
    differences: usize,

    #[command(flatten)]
    recipe: RecipeArgs,

    #[command(flatten)]
    terms: TermsArg,

    #[command(flatten)]
    read: ReadArgs,
}

/// What the signatures say.
struct Distance {
    bits: u32,
    /// Nothing if one of them has no signature.
    distance: Option<u32>,
    /// What the distance stands for: the cosine, or the Jaccard coefficient of MinHash.
    kind: SignatureKind,
}

impl Compare {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Outcome> {
        let signer = signer(self.recipe.recipe()?, self.terms.terms.as_deref())?;
        let documents = [self.document(&self.a)?, self.document(&self.b)?];
        let [a, b] =
            documents.each_ref().map(|document| Signer::text_of(document, signer.recipe().html));
        let likeness = verify::compare(&signer, &a, &b);
        let distance = distance(&signer, &a, &b)?;
        if global.json() {
            print(self.json(&documents, &distance, &likeness))?;
        } else {
            let report = self.report(&documents, &distance, &likeness)?;
            print(report + &diff(&a, &b))?;
        }
        Ok(Outcome::Done)
    }

    fn document(&self, name: &str) -> anyhow::Result<Document> {
        match &self.input {
            _ if self.text => Ok(Document::new(name, name)),
            Some(input) => self.read.document_of(input, name),
            None => self.read.one_document(name),
        }
    }

    fn json(
        &self,
        documents: &[Document; 2],
        distance: &Distance,
        likeness: &Likeness,
    ) -> serde_json::Value {
        let differences = likeness.differences.iter().take(self.differences);
        let differences: Vec<_> = differences
            .map(|d| json!({ "feature": d.feature, "a": d.first, "b": d.second }))
            .collect();
        json!({
            "a": documents[0].id, "b": documents[1].id,
            "bits": distance.bits, "distance": distance.distance,
            format!("estimated_{}", distance.measure()): distance.similarity(),
            "jaccard": likeness.jaccard, "cosine": likeness.cosine,
            "shared": likeness.shared, "only_a": likeness.only_first, "only_b": likeness.only_second,
            "differences": differences,
        })
    }

    fn report(
        &self,
        documents: &[Document; 2],
        distance: &Distance,
        likeness: &Likeness,
    ) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        writeln!(text, "A            {}\nB            {}", documents[0].id, documents[1].id)?;
        match (distance.distance, distance.similarity()) {
            (Some(bits), Some(similarity)) => {
                let (of, measure) = (distance.bits, distance.measure());
                writeln!(
                    text,
                    "distance     {bits} of {of} bits, as of a {measure} of {similarity:.3}"
                )?;
            }
            _ => writeln!(text, "distance     none: too few features for a signature")?,
        }
        let (shared, a, b) = (likeness.shared, likeness.only_first, likeness.only_second);
        let number =
            |value: Option<f64>| value.map_or("none".into(), |value| format!("{value:.3}"));
        writeln!(text, "cosine       {}", number(likeness.cosine))?;
        writeln!(text, "jaccard      {}", number(likeness.jaccard))?;
        writeln!(text, "features     {shared} in both, {a} only in A, {b} only in B\n")?;
        if !likeness.differences.is_empty() {
            let heading = "features that differ most (weight in A, in B)";
            writeln!(text, "{}", colour()(Paint::Strong, heading))?;
        }
        for d in likeness.differences.iter().take(self.differences) {
            writeln!(text, "{:>9.3} {:>9.3}  {}", d.first, d.second, d.feature)?;
        }
        if !likeness.differences.is_empty() {
            writeln!(text)?;
        }
        Ok(text)
    }
}

impl Distance {
    fn measure(&self) -> &'static str {
        if self.kind == SignatureKind::MinHash { "jaccard" } else { "cosine" }
    }

    fn similarity(&self) -> Option<f64> {
        let of = match self.kind {
            SignatureKind::MinHash => verify::jaccard_of_distance,
            SignatureKind::SimHash | SignatureKind::TopSig => verify::cosine_of_distance,
        };
        self.distance.map(|distance| of(distance, self.bits))
    }
}

fn distance(signer: &Signer, a: &str, b: &str) -> anyhow::Result<Distance> {
    let mut scratch = Scratch::default();
    let [a, b] =
        [a, b].map(|text| signer.sign_text(text, &mut scratch).map(|signed| signed.signature));
    let kernel = hamming::kernel()?;
    let distance = a.zip(b).map(|(a, b)| kernel.distance(a.words(), b.words()));
    let signature = &signer.recipe().signature;
    Ok(Distance { bits: signature.bits, distance, kind: signature.kind })
}

/// The two texts in one, with what differs marked.
fn diff(a: &str, b: &str) -> String {
    if a == b {
        return "the texts are the same".to_owned();
    }
    let paint = colour();
    let runs = diff::words(a, b, DIFF_TIME);
    let last = runs.len() - 1;
    let show = |(number, run): (usize, &Run)| match run.side {
        Side::First => paint(Paint::Removed, &format!("[-{}-]", run.text)),
        Side::Second => paint(Paint::Added, &format!("{{+{}+}}", run.text)),
        Side::Both => shortened(run, number == 0, number == last),
    };
    runs.iter().enumerate().map(show).collect()
}

/// Equal text, without its middle if that is long.
fn shortened(run: &Run, first: bool, last: bool) -> String {
    let words: Vec<&str> = run.words().collect();
    // Words and the spaces between them.
    let context = 2 * CONTEXT_WORDS;
    if words.len() <= 2 * context + 2 {
        return run.text.clone();
    }
    let start = if first { String::new() } else { words[..context].concat() };
    let end = if last { String::new() } else { words[words.len() - context..].concat() };
    let (start, end) = (start.trim_end(), end.trim_start());
    match (first, last) {
        (true, _) => format!("... {end}"),
        (_, true) => format!("{start} ..."),
        _ => format!("{start} ... {end}"),
    }
}
