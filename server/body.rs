//! What comes in: bodies and parameters. What is wrong with them is told with the name of the field.

use std::{fmt, ops::Deref, time::Duration};

use axum::{
    body::Body,
    extract::{FromRequestParts, Path},
    http::{HeaderMap, header, request::Parts},
};
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::{app::App, error::Problem, parse::in_words, room::Room};

/// What is left of a body that is too long is read for so long and thrown away, so that the answer is heard.
const DISCARDING: Duration = Duration::from_secs(5);

/// What a body is said to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Media {
    Json,
    /// JSON, an object a line.
    Lines,
    Text,
    Html,
}

impl fmt::Display for Media {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Media::Json => "application/json",
            Media::Lines => "application/x-ndjson",
            Media::Text => "text/plain",
            Media::Html => "text/html",
        })
    }
}

impl Media {
    /// What a body is said to be, if it is one of these.
    pub(crate) fn of(headers: &HeaderMap, known: &[Media]) -> Result<Media, Problem> {
        let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let name = given.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        let media = match name.to_ascii_lowercase().as_str() {
            "application/json" => Some(Media::Json),
            "application/x-ndjson" | "application/ndjson" | "application/jsonl" => {
                Some(Media::Lines)
            }
            "text/plain" => Some(Media::Text),
            "text/html" => Some(Media::Html),
            _ => None,
        };
        media.filter(|media| known.contains(media)).ok_or_else(|| {
            let known: Vec<String> = known.iter().map(Media::to_string).collect();
            let given = given.unwrap_or("not said");
            Problem::media(format!("`Content-Type` is {given}; it can be {}", known.join(", ")))
                .about("Content-Type")
        })
    }
}

/// A body, which takes room until it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    bytes: Vec<u8>,
    room: Room,
}

impl Deref for Held {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads a body as a whole, if it is not too long.
pub(crate) async fn read(headers: &HeaderMap, body: Body, app: &App) -> Result<Held, Problem> {
    let most = app.limits.body_bytes;
    let said =
        headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    let too_large = || {
        Problem::too_large(format!(
            "a body has at most {most} bytes; NDJSON may have any number of lines"
        ))
    };
    if said.is_some_and(|said: u64| said > most as u64) {
        // Whoever expects an answer first has sent nothing yet.
        if !headers.contains_key(header::EXPECT) {
            discard(body).await;
        }
        return Err(too_large());
    }
    match timeout(app.limits.time, read_at_most(body, most, app.room())).await {
        Err(_) => Err(Problem::too_slow("the body did not come in time")),
        Ok(Err(problem)) => Err(problem),
        Ok(Ok(Ok(held))) => Ok(held),
        Ok(Ok(Err(rest))) => {
            discard(rest).await;
            Err(too_large())
        }
    }
}

/// A body, or what is left of one that is longer than it may be.
async fn read_at_most(
    mut body: Body,
    most: usize,
    room: Room,
) -> Result<Result<Held, Body>, Problem> {
    let mut held = Held { bytes: Vec::new(), room };
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
        let length = held.bytes.len() + data.len();
        if length > most {
            return Ok(Err(body));
        }
        held.room.take(length)?;
        held.bytes.extend_from_slice(&data);
    }
    Ok(Ok(held))
}

/// A body that ended before its end.
pub(crate) fn broken(error: axum::Error) -> Problem {
    Problem::not_json(format!("the body broke off: {error}"))
}

async fn discard(mut body: Body) {
    let rest = async { while let Some(Ok(_)) = body.frame().await {} };
    let _ = timeout(DISCARDING, rest).await;
}

/// The parameters of the URL.
#[derive(Debug)]
pub(crate) struct Params<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let pairs = form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes());
        let found = serde_path_to_error::deserialize(serde_urlencoded::Deserializer::new(pairs));
        found.map(Params).map_err(|error| {
            let (path, problem) = (error.path().to_string(), in_words(&error.inner().to_string()));
            match path.as_str() {
                "." => Problem::refused(format!("the parameters of the URL: {problem}")),
                _ => Problem::field(path, problem),
            }
        })
    }
}

/// The id in a path.
#[derive(Debug)]
pub(crate) struct Id(pub(crate) String);

impl<S: Sync + Send> FromRequestParts<S> for Id {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let id = Path::<String>::from_request_parts(parts, state).await;
        id.map(|Path(id)| Id(id))
            .map_err(|_| Problem::field("id", "the id in the path is not UTF-8, percent-encoded"))
    }
}
