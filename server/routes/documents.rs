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
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use crate::{
    app::{App, Permit},
    body::{Id, Media, Params, parse, parse_one_or_many, read},
    error::Problem,
    json::{Json, milliseconds},
    lines::{AnswerLine, Line, answer_lines, push_bad_line, push_line},
    openapi::Problems,
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
        Problems,
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
        return Ok(answer_lines(app, permit, body, move |app, permit, lines| {
            add_lines(app, permit, lines, if_exists)
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
    let (documents, many) = parse_one_or_many::<Document>(body)?;
    check_batch(app, documents.len())?;
    let place = |at: usize, problem: Problem| match (many, &problem.field) {
        (true, Some(field)) => {
            let field = format!("[{at}].{field}");
            problem.about(field)
        }
        _ => problem,
    };
    let prepare = |scratch: &mut Scratch, (at, document): (usize, Document)| {
        document.prepare(app, scratch).map_err(|problem| place(at, problem))
    };
    let all: Result<_, Problem> =
        documents.into_par_iter().enumerate().map_init(Scratch::default, prepare).collect();
    Ok((all?, many))
}

pub(crate) fn check_batch(app: &App, given: usize) -> Result<(), Problem> {
    let most = app.limits.batch;
    match given <= most {
        true => Ok(()),
        false => Err(Problem::too_large(format!(
            "{given} at a time are more than the {most} of a call; NDJSON may have any number of lines"
        ))),
    }
}

/// Writes what can be written, and says what became of each.
async fn put(
    app: &App,
    permit: &Permit,
    mut prepared: Vec<Prepared>,
    if_exists: IfExists,
) -> Result<Vec<AddedDocument>, Problem> {
    let entries = Prepared::take_entries(&mut prepared);
    app.metrics.documents.inc_by(entries.len() as u64);
    let mut put = match entries.is_empty() {
        true => Vec::new(),
        false => app.in_time(app.writer()?.put(entries, if_exists, permit)).await?,
    }
    .into_iter();
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
) -> Result<Vec<Result<Prepared, (u64, Problem)>>, Problem> {
    app.work(permit, move |app| {
        let prepare = |scratch: &mut Scratch, line: Line| {
            let document = parse::<Document>(&line.json);
            let prepared = document.and_then(|document| document.prepare(app, scratch));
            prepared.map_err(|problem| (line.number, problem))
        };
        Ok(lines.into_par_iter().map_init(Scratch::default, prepare).collect())
    })
    .await
}

async fn add_lines(
    app: Arc<App>,
    permit: Permit,
    lines: Vec<Line>,
    if_exists: IfExists,
) -> Result<Vec<u8>, Problem> {
    let prepared = prepare_lines(&app, &permit, lines).await?;
    let (good, bad) = sorted_out(prepared);
    let outcomes = put(&app, &permit, good, if_exists).await?;
    Ok(lines_of(&outcomes, &bad))
}

/// What is wrong with some lines, each with its place among all of them.
pub(crate) type Bad = Vec<(usize, u64, Problem)>;

/// Those that are good, and what is wrong with the others.
pub(crate) fn sorted_out<T>(all: Vec<Result<T, (u64, Problem)>>) -> (Vec<T>, Bad) {
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for (at, one) in all.into_iter().enumerate() {
        match one {
            Ok(one) => good.push(one),
            Err((line, problem)) => bad.push((at, line, problem)),
        }
    }
    (good, bad)
}

/// A line for each, in their order.
pub(crate) fn lines_of(good: &[impl Serialize], bad: &Bad) -> Vec<u8> {
    let (mut lines, mut good, mut bad) = (Vec::new(), good.iter(), bad.iter().peekable());
    for at in 0.. {
        if let Some((_, line, problem)) = bad.next_if(|(place, ..)| *place == at) {
            push_bad_line(&mut lines, *line, problem);
        } else if let Some(answer) = good.next() {
            push_line(&mut lines, answer);
        } else {
            break;
        }
    }
    lines
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
    responses((status = 200, description = "The document", body = StoredDocument), Problems),
)]
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    Extension(permit): Extension<Permit>,
    Id(id): Id,
    Params(params): Params<ShowParams>,
) -> Result<Json<StoredDocument>, Problem> {
    let record = app.work(&permit, move |app| record(app, &id, params.text)).await?;
    Ok(Json(record.into()))
}

/// The record of an id.
pub(crate) fn record(app: &App, id: &str, text: bool) -> Result<Record, Problem> {
    let found = app.collection.get(&[id], text)?.pop().flatten();
    found.ok_or_else(|| no_document(id))
}

/// There is no document of that id.
pub(crate) fn no_document(id: &str) -> Problem {
    let id: String = id.chars().take(200).collect();
    Problem::not_found(format!("there is no document `{id}`")).about("id")
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
    responses((status = 200, description = "It is not there any more", body = Removed), Problems),
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
