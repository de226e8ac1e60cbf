//! Comparison: how alike two documents are, and why.

use std::{sync::Arc, time::Duration};

use axum::{Extension, body::Body, extract::State, http::HeaderMap};
use lookalike::{
    Signature, diff, hamming,
    recipe::{Scratch, SignatureKind, Signed},
    verify,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    app::{App, Permit},
    body::{Media, read},
    error::Problem,
    json::{Written, to_json},
    openapi::{BodyProblems, Missing, Problems},
    parse::{object, parse},
    wire::{Asked, Query},
};

/// Texts that are longer together are not compared word by word: nobody could look at it.
const LONGEST_DIFF: usize = 2 << 20;
/// A diff that takes longer is finished coarsely.
const DIFF_TIME: Duration = Duration::from_secs(2);
/// Features that differ, if it is not said how many.
const USUAL_DIFFERENCES: usize = 10;
/// The most of them that are told.
const MOST_DIFFERENCES: usize = 1000;

/// Two documents, each a text, a signature or a document of the collection.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Compare {
    #[serde(deserialize_with = "object")]
    a: Query,
    #[serde(deserialize_with = "object")]
    b: Query,
    /// So many of the features that differ most; 10 if it is not said.
    #[schema(maximum = 1000)]
    differences: Option<usize>,
}

/// How alike two documents are.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Compared {
    /// The width of the signatures.
    bits: u32,
    /// How many bits differ; null if a text has too few words for a signature.
    distance: Option<u32>,
    /// What the distance stands for.
    similarity: Option<f64>,
    /// What the similarity is: `cosine`, `jaccard` or `equal bits`.
    measure: &'static str,
    a: Side,
    b: Side,
    /// The bits that differ.
    differing: Vec<Bit>,
    /// What the texts are made of, if both are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    features: Option<Features>,
    /// The words of both texts in order, if both are known and not very long.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<Vec<Run>>,
}

/// One of two documents.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Side {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// Hexadecimal digits.
    signature: Option<String>,
    /// The text as it is signed, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

/// A bit that differs.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Bit {
    /// Which; 0 is the leading one.
    bit: u32,
    a: u8,
    b: u8,
    /// How sure it is: 0 is a toss-up, 255 as sure as can be.
    #[serde(skip_serializing_if = "Option::is_none")]
    margin_a: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    margin_b: Option<u8>,
}

/// What two texts are made of.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Features {
    /// The features that both have over those that either has; null if a text has none.
    jaccard: Option<f64>,
    /// The cosine of the angle between their weighted features; null if a text has none.
    cosine: Option<f64>,
    shared: usize,
    only_a: usize,
    only_b: usize,
    /// Those that differ most.
    differences: Vec<Difference>,
}

/// A feature whose weights differ.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Difference {
    feature: String,
    a: f64,
    b: f64,
}

/// Words in a row that both texts have, or one of them.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Run {
    /// `both`, `a` or `b`.
    side: &'static str,
    text: String,
}

/// Compare two documents
#[utoipa::path(
    post, path = "/v1/compare", tag = "search", request_body(content = Compare, content_type = "application/json"),
    responses((status = 200, description = "How alike they are, and why", body = Compared), Problems, BodyProblems, Missing),
)]
pub(crate) async fn compare(
    State(app): State<Arc<App>>,
    Extension(permit): Extension<Permit>,
    headers: HeaderMap,
    body: Body,
) -> Result<Written, Problem> {
    Media::of(&headers, &[Media::Json])?;
    let body = read(&headers, body, &app).await?;
    app.work(&permit, move |app| to_json(&compared(app, parse(&body)?)?)).await
}

fn compared(app: &App, Compare { a, b, differences }: Compare) -> Result<Compared, Problem> {
    let (a, b) = (asked(app, a, "a")?, asked(app, b, "b")?);
    let [x, y] = [&a, &b].map(|side| side.signed.as_ref());
    let distance = match x.zip(y) {
        Some((x, y)) => Some(hamming::kernel()?.distance(x.signature.words(), y.signature.words())),
        None => None,
    };
    let texts = a.text.as_deref().zip(b.text.as_deref());
    let most = differences.unwrap_or(USUAL_DIFFERENCES).min(MOST_DIFFERENCES);
    let features = match texts {
        Some((a, b)) => Some(features(app, a, b, most)?),
        None => None,
    };
    Ok(Compared {
        bits: app.bits(),
        distance,
        similarity: distance.map(|distance| app.similarity(distance)),
        measure: app.measure(),
        differing: x.zip(y).map_or_else(Vec::new, |(x, y)| differing(x, y)),
        features,
        diff: texts.filter(|(a, b)| a.len() + b.len() <= LONGEST_DIFF).map(|(a, b)| diff_of(a, b)),
        a: side(a),
        b: side(b),
    })
}

/// One of the two, with its text and its margins where they are known.
fn asked(app: &App, query: Query, name: &str) -> Result<Asked, Problem> {
    let mut scratch = Scratch::default();
    let in_side = |problem: Problem| problem.inside(name);
    let Some(id) = query.only_id() else {
        return query.sign(app, &mut scratch).map_err(in_side);
    };
    let mut asked = Asked::of_record(app.record(id, true).map_err(in_side)?);
    // Margins that are not kept are those of the text, if it is kept.
    if let (Some(signed), Some(text), Ok(signer)) = (&mut asked.signed, &asked.text, app.signer())
        && signed.margins.is_none()
    {
        let again = signer.sign_text(text, &mut scratch);
        let same = again.filter(|again| again.signature == signed.signature);
        signed.margins = same.and_then(|again| again.margins);
    }
    Ok(asked)
}

fn side(asked: Asked) -> Side {
    let signature = asked.signed.map(|signed| signed.signature.to_string());
    Side { id: asked.id, signature, text: asked.text }
}

fn differing(a: &Signed, b: &Signed) -> Vec<Bit> {
    let bit = |signature: &Signature, bit: u32| {
        (signature.words()[bit as usize / 64] >> (63 - bit % 64) & 1) as u8
    };
    let margin = |signed: &Signed, bit: u32| signed.margins.as_ref().map(|all| all[bit as usize]);
    let both = |at: u32| Bit {
        bit: at,
        a: bit(&a.signature, at),
        b: bit(&b.signature, at),
        margin_a: margin(a, at),
        margin_b: margin(b, at),
    };
    (0..a.signature.bits()).map(both).filter(|bit| bit.a != bit.b).collect()
}

fn features(app: &App, a: &str, b: &str, most: usize) -> Result<Features, Problem> {
    let likeness = verify::compare(app.signer()?, a, b);
    let differences = likeness.differences.into_iter().take(most);
    Ok(Features {
        jaccard: likeness.jaccard,
        cosine: likeness.cosine,
        shared: likeness.shared,
        only_a: likeness.only_first,
        only_b: likeness.only_second,
        differences: differences
            .map(|one| Difference { feature: one.feature, a: one.first, b: one.second })
            .collect(),
    })
}

fn diff_of(a: &str, b: &str) -> Vec<Run> {
    let name = |side| match side {
        diff::Side::Both => "both",
        diff::Side::First => "a",
        diff::Side::Second => "b",
    };
    let runs = diff::words(a, b, DIFF_TIME).into_iter();
    runs.map(|run| Run { side: name(run.side), text: run.text }).collect()
}

impl App {
    /// What a similarity is here.
    pub(crate) fn measure(&self) -> &'static str {
        match self.recipe().map(|recipe| recipe.signature.kind) {
            Some(SignatureKind::MinHash) => "jaccard",
            Some(_) => "cosine",
            None => "equal bits",
        }
    }
}
