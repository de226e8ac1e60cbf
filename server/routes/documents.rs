//! Documents: added, shown, removed.

use std::{sync::Arc, time::Instant};

use axum::{
    Extension,
    body::Body,
    extract::State,
    http::HeaderMap,
    response::{IntoResponse, Response},
};
use lookalike::{
    collection::{IfExists, Put, Record, rfc3339},
    recipe::Scratch,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use crate::{
    app::{App, Permit, map_all, no_document},
    body::{Id, Media, Params, read},
    error::Problem,
    json::{Json, milliseconds},
    lines::{AnswerLine, Line, Lined, answer_lines, lines_of, put_back, take_good},
    openapi::{BodyProblems, Exists, Missing, Problems},
    parse::{parse, parse_one_or_many},
    wire::{Document, Prepared},
};

/// What becomes of a document whose id is there already.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Existing {
    /// It takes the place of what is there.
    #[default]
    Replace,
    /// It is left out.
    Skip,
    /// Nothing of the call is added.
    Error,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AddParams {
    /// What becomes of a document whose id is there already.
    #[serde(default)]
    #[param(inline)]
    if_exists: Existing,
    /// Of NDJSON, answer only the lines that are not good, for callers that do not read while they write.
    #[serde(default)]
    only_errors: bool,
}

/// What became of documents.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct Added {
    /// How many are new.
    added: usize,
    /// How many took the place of others.
    replaced: usize,
    /// How many were left out because of their ids.
    skipped: usize,
    /// How many have too few words for a signature, and were not added.
    unsigned: usize,
    /// Each, in their order.
    documents: Vec<AddedDocument>,
    /// How long it took.
    took_ms: f64,
}

/// What became of a document.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AddedDocument {
    id: String,
    outcome: Outcome,
}

#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Outcome {
    Added,
    Replaced,
    Skipped,
    Unsigned,
}

impl From<Existing> for IfExists {
    fn from(existing: Existing) -> Self {
        match existing {
            Existing::Replace => IfExists::Replace,
            Existing::Skip => IfExists::Skip,
            Existing::Error => IfExists::Error,
        }
    }
}

/// Add documents, or replace them
///
/// One document, an array of them, or NDJSON with one a line. When it is answered, it is durable.
#[utoipa::path(
    post, path = "/v1/documents", operation_id = "add_documents", tag = "documents", params(AddParams),
    request_body(content(
        (inline(OneOrManyDocuments) = "application/json"),
        (Document = "application/x-ndjson"),
    )),
    responses(
        (status = 200, description = "What became of them", content(
            (Added = "application/json"), (inline(AnswerLine<AddedDocument>) = "application/x-ndjson"))),
        Problems, BodyProblems, Exists,
    ),
)]
pub(crate) async fn add(
    State(app): State<Arc<App>>,
    Extension(permit): Extension<Permit>,
    Params(params): Params<AddParams>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    app.writer()?;
    let if_exists = params.if_exists.into();
    if Media::of(&headers, &[Media::Json, Media::Lines])? == Media::Lines {
        return Ok(answer_lines(app, permit, body, usize::MAX, move |app, permit, lines| {
            add_lines(app, permit, lines, if_exists, params.only_errors)
        }));
    }
    let started = Instant::now();
    let body = read(&headers, body, &app).await?;
    let prepared =
        app.work(&permit, move |app| prepare_body(app, &body).map(|(all, _)| all)).await?;
    let outcomes = put(&app, &permit, prepared, if_exists).await?;
    Ok(Json(Added::of(outcomes, started)).into_response())
}

/// A document, or several.
#[derive(ToSchema)]
#[schema(as = OneOrManyDocuments)]
#[allow(dead_code, reason = "says in the OpenAPI document what `parse_one_or_many` reads")]
#[serde(untagged)]
pub(crate) enum OneOrManyDocuments {
    One(Document),
    Many(Vec<Document>),
}

/// The documents of a body, ready to be written; and whether they came as an array.
pub(crate) fn prepare_body(app: &App, body: &[u8]) -> Result<(Vec<Prepared>, bool), Problem> {
    let (documents, many) = parse_one_or_many::<Document>(body, app.limits.batch)?;
    let prepare = |scratch: &mut Scratch, (at, document): (usize, Document)| {
        let inside = |problem: Problem| match many {
            true => problem.inside(&format!("[{at}]")),
            false => problem,
        };
        document.prepare(app, scratch).map_err(inside)
    };
    let texts = documents.iter().filter(|document| document.text.is_some()).count();
    let numbered = documents.into_iter().enumerate().collect();
    let all: Result<_, Problem> = map_all(numbered, texts, prepare).into_iter().collect();
    Ok((all?, many))
}

/// Writes what can be written, and says what became of each.
async fn put(
    app: &App,
    permit: &Permit,
    mut prepared: Vec<Prepared>,
    if_exists: IfExists,
) -> Result<Vec<AddedDocument>, Problem> {
    let entries = Prepared::take_entries(&mut prepared);
    let count = entries.len() as u64;
    let mut put = match entries.is_empty() {
        true => Vec::new(),
        false => app.in_time(app.writer()?.put(entries, if_exists, permit)).await?,
    }
    .into_iter();
    app.metrics.documents.inc_by(count);
    let outcome = |prepared| match prepared {
        Prepared::Unsigned(id) => AddedDocument { id, outcome: Outcome::Unsigned },
        Prepared::Signed(entry) => {
            let outcome = match put.next() {
                Some(Put::Replaced) => Outcome::Replaced,
                Some(Put::Skipped) => Outcome::Skipped,
                _ => Outcome::Added,
            };
            AddedDocument { id: entry.id, outcome }
        }
    };
    Ok(prepared.into_iter().map(outcome).collect())
}

impl Added {
    fn of(documents: Vec<AddedDocument>, started: Instant) -> Self {
        let mut added = Added::default();
        for document in &documents {
            match document.outcome {
                Outcome::Added => added.added += 1,
                Outcome::Replaced => added.replaced += 1,
                Outcome::Skipped => added.skipped += 1,
                Outcome::Unsigned => added.unsigned += 1,
            }
        }
        Added { documents, took_ms: milliseconds(started), ..added }
    }
}

/// The documents of lines, ready to be written, or what is wrong with them.
pub(crate) async fn prepare_lines(
    app: &Arc<App>,
    permit: &Permit,
    lines: Vec<Line>,
) -> Result<Lined<Prepared>, Problem> {
    app.work(permit, move |app| {
        let prepare = |scratch: &mut Scratch, line: Line| {
            let document = parse::<Document>(&line.json);
            (line.number, document.and_then(|document| document.prepare(app, scratch)))
        };
        let count = lines.len();
        Ok(map_all(lines, count, prepare))
    })
    .await
}

async fn add_lines(
    app: Arc<App>,
    permit: Permit,
    lines: Vec<Line>,
    if_exists: IfExists,
    only_errors: bool,
) -> Result<Vec<u8>, Problem> {
    let (good, places) = take_good(prepare_lines(&app, &permit, lines).await?);
    // One that exists is told of at its line, and is not in the way of the others.
    let is_error = if_exists == IfExists::Error;
    let if_exists = if is_error { IfExists::Skip } else { if_exists };
    let outcomes = put(&app, &permit, good, if_exists).await?.into_iter();
    let mut lined = put_back(
        places,
        outcomes.map(|document| match document.outcome {
            Outcome::Skipped if is_error => Err(exists(&document.id)),
            _ => Ok(document),
        }),
    );
    lined.retain(|(_, one)| !only_errors || one.is_err());
    Ok(lines_of(&lined))
}

fn exists(id: &str) -> Problem {
    Problem::exists(format!("`{id}` is in the collection already")).about("id")
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ShowParams {
    /// Whether its text is wanted, if the collection keeps texts.
    #[serde(default)]
    text: bool,
}

/// A document of the collection.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StoredDocument {
    id: String,
    /// Hexadecimal digits.
    signature: String,
    /// What it came with.
    #[schema(value_type = Option<Object>)]
    payload: Option<Box<RawValue>>,
    /// When it was added.
    #[schema(format = DateTime)]
    time: String,
    /// The text, if it was asked for and is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl From<Record> for StoredDocument {
    fn from(record: Record) -> Self {
        StoredDocument {
            id: record.id,
            signature: record.signature.to_string(),
            payload: record.payload.and_then(|payload| RawValue::from_string(payload).ok()),
            time: rfc3339(record.time),
            text: record.text,
        }
    }
}

/// Show a document
#[utoipa::path(
    get, path = "/v1/documents/{id}", operation_id = "show_document", tag = "documents",
    params(("id" = String, Path, description = "Its id, percent-encoded"), ShowParams),
    responses((status = 200, description = "The document", body = StoredDocument), Problems, Missing),
)]
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    Extension(permit): Extension<Permit>,
    Id(id): Id,
    Params(params): Params<ShowParams>,
) -> Result<Json<StoredDocument>, Problem> {
    let record = app.work(&permit, move |app| app.record(&id, params.text)).await?;
    Ok(Json(record.into()))
}

/// What was removed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Removed {
    id: String,
    removed: bool,
}

/// Remove a document
#[utoipa::path(
    delete, path = "/v1/documents/{id}", operation_id = "remove_document", tag = "documents",
    params(("id" = String, Path, description = "Its id, percent-encoded")),
    responses((status = 200, description = "It is not there any more", body = Removed), Problems, Missing),
)]
pub(crate) async fn remove(
    State(app): State<Arc<App>>,
    Extension(permit): Extension<Permit>,
    Id(id): Id,
) -> Result<Json<Removed>, Problem> {
    match app.in_time(app.writer()?.remove(id.clone(), &permit)).await? {
        true => Ok(Json(Removed { id, removed: true })),
        false => Err(no_document(&id)),
    }
}
