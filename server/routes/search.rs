//! Search: what is near a text, a signature or a document.

use std::{sync::Arc, time::Instant};

use axum::{
    Extension,
    body::Body,
    extract::State,
    http::HeaderMap,
    response::{IntoResponse, Response},
};
use lookalike::{
    Signatures,
    collection::{self, Ask, Asking, By, Filter, Hits, PartAbout, Snapshot, guarantee},
    index::{Promise, Queries},
    recipe::Scratch,
    search::Question,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use super::stats::PartStats;
use crate::{
    app::{App, Permit, map_all, no_document},
    body::{Id, Media, Params, read},
    error::Problem,
    json::{Written, milliseconds, to_json},
    lines::{AnswerLine, Line, answer_lines, lines_of, put_back, take_good},
    openapi::{BodyProblems, Missing, Problems, TooMuch},
    parse::{parse, parse_many},
    wire::{Asked, Hit, Markup, Query},
};

/// Hits of a query if `limit` does not say.
const USUAL_HITS: usize = 1000;
/// The nearest if nothing else is asked for.
const USUAL_NEAREST: usize = 10;

/// What finds documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Finder {
    /// The index that the collection keeps.
    #[default]
    Auto,
    /// Every signature is compared.
    Scan,
    /// The database alone, by its slices.
    Sql,
}

/// The question, as it is asked in a URL.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SearchParams {
    /// All documents within so many bits.
    radius: Option<u32>,
    /// The so many nearest documents.
    #[param(minimum = 1)]
    nearest: Option<usize>,
    /// Of those within the radius only the nearest.
    first: Option<bool>,
    /// Only documents whose payload is so, as `lang = "en" and year >= 2020`.
    filter: Option<String>,
    /// Not those that have the query's value in one of these fields of the payload; with commas between them.
    exclude_same: Option<String>,
    /// What finds them.
    #[param(inline)]
    index: Option<Finder>,
    /// The share that is enough, where the collection keeps an index that may miss some.
    #[param(exclusive_minimum = 0.0, maximum = 1.0)]
    recall: Option<f64>,
    /// At most so many hits a query.
    #[param(minimum = 1)]
    limit: Option<usize>,
    /// Whether to tell what was looked at, and why.
    explain: Option<bool>,
}

/// A search: one query, or many in `queries`, and the question.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Search {
    /// A text. The recipe of the collection signs it.
    text: Option<String>,
    /// What the text is written in.
    #[serde(default)]
    media: Markup,
    /// A signature: hexadecimal digits.
    #[schema(example = "00000000000000ff")]
    signature: Option<String>,
    /// The id of a document of the collection, which does not find itself.
    id: Option<String>,
    /// What a text or signature comes with, for `exclude_same`.
    #[schema(value_type = Option<Object>)]
    payload: Option<Box<RawValue>>,
    /// Many queries, in place of one.
    #[schema(value_type = Option<Vec<Query>>)]
    queries: Option<Box<RawValue>>,
    /// All documents within so many bits.
    #[schema(example = 3)]
    radius: Option<u32>,
    /// The so many nearest documents.
    #[schema(minimum = 1)]
    nearest: Option<usize>,
    /// Of those within the radius only the nearest.
    first: Option<bool>,
    /// Only documents whose payload is so, as `lang = "en" and year >= 2020`.
    filter: Option<String>,
    /// Not those that have the query's value in one of these fields of the payload.
    exclude_same: Option<Vec<String>>,
    /// What finds them.
    #[schema(inline)]
    index: Option<Finder>,
    /// The share that is enough, where the collection keeps an index that may miss some.
    #[schema(exclusive_minimum = 0.0, maximum = 1.0)]
    recall: Option<f64>,
    /// At most so many hits a query.
    #[schema(minimum = 1)]
    limit: Option<usize>,
    /// Whether to tell what was looked at, and why.
    explain: Option<bool>,
}

/// The documents near a query.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Answer<'a> {
    /// Nearest first, and of those at the same distance the oldest first.
    hits: Vec<Hit<'a>>,
    /// Whether every document that should be there is there.
    exact: bool,
    /// The share of them that is expected, if it is not exact.
    #[serde(skip_serializing_if = "Option::is_none")]
    expected_recall: Option<f64>,
    /// What found them.
    index: &'a str,
    /// How many documents were searched.
    records: usize,
    /// How long the whole call took.
    took_ms: f64,
    /// There are more hits than `limit`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    more: bool,
    /// The text has too few words for a signature.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    unsigned: bool,
    /// What was looked at, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    explain: Option<&'a Explanation>,
}

/// The documents near each of many queries.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AnswersToMany<'a> {
    /// In the order of the queries.
    answers: Vec<Answer<'a>>,
    /// How long the whole call took.
    took_ms: f64,
}

#[derive(ToSchema)]
#[allow(dead_code, reason = "says in the OpenAPI document that one query has one answer")]
#[serde(untagged)]
pub(crate) enum OneOrManyAnswers<'a> {
    One(Answer<'a>),
    Many(AnswersToMany<'a>),
}

/// What was looked at, and why.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Explanation {
    /// The index that the collection keeps.
    kept: String,
    /// Why documents were found as they were.
    why: &'static str,
    /// The parts of the collection that were asked.
    parts: Vec<PartStats>,
    /// The radius within which the database finds all by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    sql_within: Option<u32>,
}

/// A question that was understood.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    question: Question,
    filter: Option<Filter>,
    not_same: Vec<String>,
    by: By,
    limit: Option<usize>,
    explain: bool,
}

impl SearchParams {
    fn wanted(self, app: &App) -> Result<Wanted, Problem> {
        let question = match (self.radius, self.nearest, self.first.unwrap_or(false)) {
            (Some(_), Some(_), _) => {
                return Err(Problem::field("nearest", "say either `radius` or `nearest`"));
            }
            (Some(radius), None, first) => {
                app.check_radius(radius)?;
                if first { Question::First(radius) } else { Question::Within(radius) }
            }
            (None, _, true) => {
                return Err(Problem::field(
                    "first",
                    "`first` is of those within a `radius`: say which",
                ));
            }
            (None, Some(0), _) => return Err(Problem::field("nearest", "is 1 or more")),
            (None, nearest, _) => Question::Nearest(nearest.unwrap_or(USUAL_NEAREST)),
        };
        if self.limit == Some(0) {
            return Err(Problem::field("limit", "is 1 or more"));
        }
        let filter = self.filter.as_deref().map(filter_of).transpose()?;
        let not_same = self.exclude_same.iter().flat_map(|fields| fields.split(','));
        let not_same = not_same.map(|field| field.trim().to_owned()).collect();
        check_recall(self.recall.unwrap_or(1.0))?;
        let by = match (self.index.unwrap_or_default(), self.recall) {
            (Finder::Scan, _) => By::Scan,
            (Finder::Sql, _) => By::Sql,
            (Finder::Auto, Some(recall)) if recall < 1.0 => By::Share(recall),
            (Finder::Auto, _) => By::Index,
        };
        let (limit, explain) = (self.limit, self.explain.unwrap_or(false));
        Ok(Wanted { question, filter, not_same, by, limit, explain })
    }
}

/// Refuses a share that is none.
pub(crate) fn check_recall(recall: f64) -> Result<(), Problem> {
    match recall > 0.0 && recall <= 1.0 {
        true => Ok(()),
        false => Err(Problem::field("recall", "is more than 0 and at most 1")),
    }
}

/// The longest filter, in bytes: each document may be compared with all of it.
const LONGEST_FILTER: usize = 16 << 10;

fn filter_of(text: &str) -> Result<Filter, Problem> {
    match text.len() <= LONGEST_FILTER {
        true => Ok(text.parse()?),
        false => Err(Problem::field("filter", format!("has more than {LONGEST_FILTER} bytes"))),
    }
}

impl Search {
    /// The queries, whether there may be many, and the question; what the body leaves open is as the URL says.
    fn split(
        self,
        url: SearchParams,
        most: usize,
    ) -> Result<(Vec<Query>, bool, SearchParams), Problem> {
        let params = SearchParams {
            radius: self.radius.or(url.radius),
            nearest: self.nearest.or(url.nearest),
            first: self.first.or(url.first),
            filter: self.filter.or(url.filter),
            exclude_same: url.exclude_same,
            index: self.index.or(url.index),
            recall: self.recall.or(url.recall),
            limit: self.limit.or(url.limit),
            explain: self.explain.or(url.explain),
        };
        let Search { text, media, signature, id, payload, .. } = self;
        let one = Query { text, media, signature, id, payload };
        match self.queries {
            None => Ok((vec![one], false, params)),
            Some(_) if one.text.is_some() || one.signature.is_some() || one.id.is_some() => {
                Err(Problem::field("queries", "say either one query or many in `queries`"))
            }
            Some(queries) => {
                let queries = parse_many(queries.get().as_bytes(), most);
                let inside = |problem: Problem| problem.inside("queries");
                Ok((queries.map_err(inside)?, true, params))
            }
        }
    }
}

/// Search
///
/// A JSON object with one query or many; NDJSON with a query a line; or a document itself, as text or HTML. For the
/// latter two the question is in the URL.
#[utoipa::path(
    post, path = "/v1/search", tag = "search", params(SearchParams),
    request_body(content(
        (Search = "application/json"),
        (Query = "application/x-ndjson"),
        (String = "text/plain"),
        (String = "text/html"),
    )),
    responses(
        (status = 200, description = "What is near", content(
            (inline(OneOrManyAnswers) = "application/json"), (inline(AnswerLine<Answer>) = "application/x-ndjson"))),
        Problems, BodyProblems, Missing,
    ),
)]
pub(crate) async fn search(
    State(app): State<Arc<App>>,
    Extension(permit): Extension<Permit>,
    Params(params): Params<SearchParams>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let media = Media::of(&headers, &[Media::Json, Media::Lines, Media::Text, Media::Html])?;
    if media == Media::Lines {
        let wanted = Arc::new(params.wanted(&app)?);
        // A line is answered as if it were alone, whatever comes with it; so few of them come together.
        let limit = wanted.limit_of(&app, 1)?;
        let together = app.limits.hits / wanted.most_hits(limit).max(1);
        return Ok(answer_lines(app, permit, body, together, move |app, permit, lines| {
            search_lines(app, permit, lines, wanted.clone())
        }));
    }
    let started = Instant::now();
    let body = read(&headers, body, &app).await?;
    let answer = app.work(&permit, move |app| answer_body(app, media, &body, params, started));
    Ok(answer.await?.into_response())
}

fn answer_body(
    app: &App,
    media: Media,
    body: &[u8],
    params: SearchParams,
    started: Instant,
) -> Result<Written, Problem> {
    let mut not_same = None;
    let (queries, many, params) = match media {
        Media::Json => {
            let mut search = parse::<Search>(body)?;
            not_same = search.exclude_same.take();
            search.split(params, app.limits.batch)?
        }
        media => (vec![query_of_text(body, media)?], false, params),
    };
    let mut wanted = params.wanted(app)?;
    wanted.not_same = not_same.unwrap_or(wanted.not_same);
    let asked = sign(app, queries)?.into_iter().enumerate();
    let in_many = |at: usize, problem: Problem| match many {
        true => problem.inside(&format!("queries[{at}]")),
        false => problem,
    };
    let asked: Result<Vec<Asked>, Problem> =
        asked.map(|(at, asked)| asked.map_err(|problem| in_many(at, problem))).collect();
    let asked = asked?;
    let limit = wanted.limit_of(app, asked.len())?;
    let found = Found::new(app, asked, &wanted, limit, started)?;
    let mut answers = found.answers();
    match many {
        true => to_json(&AnswersToMany { answers, took_ms: found.took_ms }),
        false => to_json(&answers.pop()),
    }
}

fn query_of_text(body: &[u8], media: Media) -> Result<Query, Problem> {
    let text = std::str::from_utf8(body)
        .map_err(|error| Problem::not_json(format!("the text is not UTF-8: {error}")))?;
    let markup = if media == Media::Html { Markup::Html } else { Markup::Plain };
    Ok(Query { text: Some(text.to_owned()), media: markup, ..Query::default() })
}

/// Queries with their signatures, or what is wrong with them.
fn sign(app: &App, queries: Vec<Query>) -> Result<Vec<Result<Asked, Problem>>, Problem> {
    let ids: Vec<&str> = queries.iter().filter_map(Query::only_id).collect();
    let mut stored = match ids.is_empty() {
        true => Vec::new(),
        false => app.collection.get(&ids, false)?,
    }
    .into_iter();
    let mut by_id = |id: &str| {
        let record = stored.next().flatten().ok_or_else(|| no_document(id))?;
        Ok(Asked::of_record(record))
    };
    let stored: Vec<Option<Result<Asked, Problem>>> =
        queries.iter().map(|query| query.only_id().map(&mut by_id)).collect();
    let sign = |scratch: &mut Scratch, (query, stored): (Query, Option<_>)| {
        stored.unwrap_or_else(|| query.sign(app, scratch))
    };
    let texts = queries.iter().filter(|query| query.text.is_some()).count();
    let both: Vec<_> = queries.into_iter().zip(stored).collect();
    Ok(map_all(both, texts, sign))
}

async fn search_lines(
    app: Arc<App>,
    permit: Permit,
    lines: Vec<Line>,
    wanted: Arc<Wanted>,
) -> Result<Vec<u8>, Problem> {
    app.work(&permit, move |app| {
        let started = Instant::now();
        let queries = lines.into_iter().map(|line| (line.number, parse::<Query>(&line.json)));
        let (queries, places) = take_good(queries.collect());
        let (asked, places) = take_good(put_back(places, sign(app, queries)?));
        let found = Found::new(app, asked, &wanted, wanted.limit_of(app, 1)?, started)?;
        Ok(lines_of(&put_back(places, found.answers().into_iter().map(Ok))))
    })
    .await
}

/// Show the lookalikes of a document
#[utoipa::path(
    get, path = "/v1/documents/{id}/lookalikes", operation_id = "show_lookalikes", tag = "search",
    params(("id" = String, Path, description = "Its id, percent-encoded"), SearchParams),
    responses((status = 200, description = "What is near", body = Answer), Problems, Missing, TooMuch),
)]
pub(crate) async fn lookalikes(
    State(app): State<Arc<App>>,
    Extension(permit): Extension<Permit>,
    Id(id): Id,
    Params(mut params): Params<SearchParams>,
) -> Result<Written, Problem> {
    if params.nearest.is_none() {
        params.radius = params.radius.or(Some(app.radius));
    }
    app.work(&permit, move |app| {
        let started = Instant::now();
        let wanted = params.wanted(app)?;
        let asked = Asked::of_record(app.record(&id, false)?);
        let limit = wanted.limit_of(app, 1)?;
        let found = Found::new(app, vec![asked], &wanted, limit, started)?;
        to_json(&found.answers().pop())
    })
    .await
}

/// What was found.
struct Found<'a> {
    app: &'a App,
    /// Which queries had no signature.
    unsigned: Vec<bool>,
    hits: Hits,
    index: String,
    records: usize,
    took_ms: f64,
    explanation: Option<Explanation>,
}

impl<'a> Found<'a> {
    fn new(
        app: &'a App,
        asked: Vec<Asked>,
        wanted: &Wanted,
        limit: usize,
        started: Instant,
    ) -> Result<Self, Problem> {
        let snapshot = app.collection.snapshot();
        let unsigned: Vec<bool> = asked.iter().map(|asked| asked.signed.is_none()).collect();
        let (mut queries, mut asking) = (Signatures::new(app.bits())?, Vec::new());
        let conditions =
            asked.iter().any(|asked| asked.id.is_some()) || !wanted.not_same.is_empty();
        for asked in asked {
            let Some(signed) = asked.signed else { continue };
            queries.push(&signed.signature)?;
            if conditions {
                asking.push(Asking { not_id: asked.id, payload: asked.payload });
            }
        }
        app.metrics.queries.inc_by(queries.len() as u64);
        let ask = Ask {
            filter: wanted.filter.as_ref(),
            asking: &asking,
            not_same: &wanted.not_same,
            by: wanted.by,
            limit,
            until: Some(started + app.limits.time),
            most_bytes: app.limits.answer_bytes as u64,
            ..Ask::new(wanted.question)
        };
        let hits = app.collection.search_in(&snapshot, Queries::from(&queries), &ask)?;
        let explanation = wanted.explain.then(|| explain(app, &snapshot, wanted)).transpose()?;
        Ok(Found {
            app,
            unsigned,
            hits,
            index: snapshot.asked_by(wanted.by),
            records: snapshot.len(),
            took_ms: milliseconds(started),
            explanation,
        })
    }

    /// An answer to each query.
    fn answers(&self) -> Vec<Answer<'_>> {
        let mut hits = self.hits.of.iter().zip(&self.hits.more);
        let answer = |unsigned: &bool| match unsigned {
            true => Answer { unsigned: true, ..self.answer(&[], false) },
            false => {
                let (hits, more) =
                    hits.next().map_or((&[][..], false), |(hits, &more)| (hits, more));
                self.answer(hits, more)
            }
        };
        self.unsigned.iter().map(answer).collect()
    }

    fn answer<'s>(&'s self, hits: &'s [collection::Hit], more: bool) -> Answer<'s> {
        let (exact, expected_recall) = match self.hits.promise {
            Promise::Exact => (true, None),
            Promise::Expected { recall } => (false, Some(f64::from(recall))),
        };
        let hit = |hit: &'s collection::Hit| Hit {
            id: &hit.record.id,
            distance: hit.distance,
            similarity: self.app.similarity(hit.distance),
            payload: hit.record.payload.as_deref().and_then(|json| serde_json::from_str(json).ok()),
            exact,
            index: &self.index,
            took_ms: self.took_ms,
        };
        Answer {
            hits: hits.iter().map(hit).collect(),
            exact,
            expected_recall,
            index: &self.index,
            records: self.records,
            took_ms: self.took_ms,
            more,
            unsigned: false,
            explain: self.explanation.as_ref(),
        }
    }
}

impl Wanted {
    /// How many hits a query has at most.
    fn most_hits(&self, limit: usize) -> usize {
        match self.question {
            Question::Nearest(k) => k.min(limit),
            Question::First(_) => 1,
            Question::Within(_) => limit,
        }
    }

    /// How many hits a query may have, of so many queries.
    fn limit_of(&self, app: &App, queries: usize) -> Result<usize, Problem> {
        let most = (app.limits.hits / queries.max(1)).max(1);
        let too_many = |field: &str, asked: usize| {
            let all = app.limits.hits;
            Problem::field(
                field,
                format!(
                    "{asked} for each of {queries} queries are more than the {all} hits of a call"
                ),
            )
        };
        match (self.question, self.limit) {
            (Question::Nearest(k), _) if k > most && k != USUAL_NEAREST => {
                Err(too_many("nearest", k))
            }
            (_, Some(limit)) if limit > most => Err(too_many("limit", limit)),
            (Question::Nearest(k), None) => Ok(k.min(most)),
            (_, limit) => Ok(limit.unwrap_or(USUAL_HITS.min(most))),
        }
    }
}

fn explain(app: &App, snapshot: &Snapshot, wanted: &Wanted) -> Result<Explanation, Problem> {
    let slices = app.collection.with_reader(|store| store.slices())?;
    Ok(Explanation {
        kept: app.collection.about().index.to_string(),
        why: why(wanted.by, snapshot),
        parts: snapshot.parts().map(|part: PartAbout| part.into()).collect(),
        sql_within: slices.map(guarantee),
    })
}

/// Why documents are found as they are.
pub(crate) fn why(by: By, snapshot: &Snapshot) -> &'static str {
    match by {
        By::Sql | By::SqlEveryRecord => "`index` says so: the database alone finds them",
        By::Scan => "`index` says so: every document is compared",
        By::Share(_) => "the collection keeps it, and `recall` allows less than all",
        By::Index if snapshot.has_graph() => {
            "a graph may miss some, which no `recall` allows, so every document is compared"
        }
        By::Index => {
            "the collection keeps it; documents that are few or new are compared one by one"
        }
    }
}
