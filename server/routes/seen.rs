//! The crawler's call: is there a lookalike? If not, the document is added.

use std::{sync::Arc, time::Instant};

use axum::{
    Extension,
    body::Body,
    extract::State,
    http::HeaderMap,
    response::{IntoResponse, Response},
};
use lookalike::collection::Seen;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::documents::{OneOrManyDocuments, prepare_body, prepare_lines};
use crate::{
    app::{App, Permit},
    body::{Media, Params, read},
    error::Problem,
    json::{Json, milliseconds},
    lines::{AnswerLine, Line, answer_lines, lines_of, put_back, take_good},
    openapi::{BodyProblems, Problems},
    wire::{Document, Prepared},
};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SeenParams {
    /// How many bits lookalikes differ in at most; if it is not said, that of the service.
    radius: Option<u32>,
}

/// Whether a document was seen.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SeenDocument {
    id: String,
    /// Whether there is a lookalike. If not, the document was added.
    seen: bool,
    /// The nearest, and of several the oldest.
    #[serde(skip_serializing_if = "Option::is_none")]
    lookalike: Option<String>,
    /// How many bits differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    distance: Option<u32>,
    /// What the distance stands for.
    #[serde(skip_serializing_if = "Option::is_none")]
    similarity: Option<f64>,
    /// It has too few words for a signature: neither seen nor added.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    unsigned: bool,
}

/// Whether documents were seen.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SeenDocuments {
    /// How many have a lookalike.
    seen: usize,
    /// How many have none, and were added.
    added: usize,
    /// How many have too few words for a signature.
    unsigned: usize,
    /// Each, in their order.
    documents: Vec<SeenDocument>,
    /// How long it took.
    took_ms: f64,
}

#[derive(ToSchema)]
#[allow(dead_code, reason = "says in the OpenAPI document that one is answered by one")]
#[serde(untagged)]
pub(crate) enum SeenOneOrMany {
    One(SeenDocument),
    Many(SeenDocuments),
}

/// Seen? If not, add it
///
/// One document, an array of them, or NDJSON with one a line. Of two lookalikes that come at the same time, one is seen.
/// When it is answered, it is durable.
#[utoipa::path(
    post, path = "/v1/seen", tag = "documents", params(SeenParams),
    request_body(content(
        (inline(OneOrManyDocuments) = "application/json"),
        (Document = "application/x-ndjson"),
    )),
    responses(
        (status = 200, description = "Whether they were seen", content(
            (inline(SeenOneOrMany) = "application/json"), (inline(AnswerLine<SeenDocument>) = "application/x-ndjson"))),
        Problems, BodyProblems,
    ),
)]
pub(crate) async fn seen(
    State(app): State<Arc<App>>,
    Extension(permit): Extension<Permit>,
    Params(params): Params<SeenParams>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    app.writer()?;
    let radius = params.radius.unwrap_or(app.radius);
    app.check_radius(radius)?;
    if Media::of(&headers, &[Media::Json, Media::Lines])? == Media::Lines {
        return Ok(answer_lines(app, permit, body, usize::MAX, move |app, permit, lines| {
            seen_lines(app, permit, lines, radius)
        }));
    }
    let started = Instant::now();
    let body = read(&headers, body, &app).await?;
    let (prepared, many) = app.work(&permit, move |app| prepare_body(app, &body)).await?;
    let mut documents = decide(&app, &permit, prepared, radius).await?;
    if !many && let Some(one) = documents.pop() {
        return Ok(Json(one).into_response());
    }
    Ok(Json(SeenDocuments::of(documents, started)).into_response())
}

async fn seen_lines(
    app: Arc<App>,
    permit: Permit,
    lines: Vec<Line>,
    radius: u32,
) -> Result<Vec<u8>, Problem> {
    let (good, places) = take_good(prepare_lines(&app, &permit, lines).await?);
    let decided = decide(&app, &permit, good, radius).await?;
    Ok(lines_of(&put_back(places, decided.into_iter().map(Ok))))
}

async fn decide(
    app: &App,
    permit: &Permit,
    mut prepared: Vec<Prepared>,
    radius: u32,
) -> Result<Vec<SeenDocument>, Problem> {
    let entries = Prepared::take_entries(&mut prepared);
    let count = entries.len() as u64;
    let mut seen = match entries.is_empty() {
        true => Vec::new(),
        false => app.in_time(app.writer()?.seen_or_add(entries, radius, permit)).await?,
    }
    .into_iter();
    app.metrics.documents.inc_by(count);
    let decided = |prepared| match prepared {
        Prepared::Unsigned(id) => SeenDocument { unsigned: true, ..SeenDocument::new(id) },
        Prepared::Signed(entry) => match seen.next() {
            Some(Seen::Before { id, distance }) => SeenDocument {
                seen: true,
                lookalike: Some(id),
                distance: Some(distance),
                similarity: Some(app.similarity(distance)),
                ..SeenDocument::new(entry.id)
            },
            _ => SeenDocument::new(entry.id),
        },
    };
    Ok(prepared.into_iter().map(decided).collect())
}

impl SeenDocument {
    fn new(id: String) -> Self {
        SeenDocument {
            id,
            seen: false,
            lookalike: None,
            distance: None,
            similarity: None,
            unsigned: false,
        }
    }
}

impl SeenDocuments {
    fn of(documents: Vec<SeenDocument>, started: Instant) -> Self {
        let seen = documents.iter().filter(|document| document.seen).count();
        let unsigned = documents.iter().filter(|document| document.unsigned).count();
        let added = documents.len() - seen - unsigned;
        SeenDocuments { seen, added, unsigned, documents, took_ms: milliseconds(started) }
    }
}
