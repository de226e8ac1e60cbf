//! What comes in: bodies and parameters. What is wrong with them is told with the name of the field.

use std::{fmt, marker::PhantomData, ops::Deref, sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::{FromRequestParts, Path},
    http::{HeaderMap, header, request::Parts},
};
use http_body_util::BodyExt;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, MapAccess, Visitor, value::MapAccessDeserializer},
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::{app::App, error::Problem};

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

/// Some of the room that all bodies share: each may be large, but not all at a time.
#[derive(Debug)]
pub(crate) struct Room {
    all: Arc<Semaphore>,
    taken: Option<OwnedSemaphorePermit>,
}

impl Room {
    pub(crate) fn none_of(all: &Arc<Semaphore>) -> Self {
        Room { all: all.clone(), taken: None }
    }

    /// Takes so many bytes in all, more or fewer than before, if they are there.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<(), Problem> {
        let taken = self.taken.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        if bytes < taken {
            self.taken.as_mut().and_then(|all| all.split(taken - bytes));
            return Ok(());
        }
        let more = u32::try_from(bytes - taken).ok();
        let more = more.and_then(|more| self.all.clone().try_acquire_many_owned(more).ok());
        let Some(more) = more else {
            let problem = "the bodies that are being read are too many and too large at a time";
            return Err(Problem::unavailable(problem).soon_over());
        };
        match &mut self.taken {
            Some(taken) => taken.merge(more),
            None => self.taken = Some(more),
        }
        Ok(())
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

/// An object of JSON. Serde would take a list of its values for one as well.
struct Object<T>(T);

/// Some of them.
type Objects<T> = Vec<Object<T>>;

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Fields(PhantomData)).map(Object)
    }
}

struct Fields<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}

/// A field that is an object.
pub(crate) fn object<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Object::deserialize(deserializer).map(|object| object.0)
}

/// A field that is a list of objects, or null.
pub(crate) fn maybe_objects<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<T>>, D::Error> {
    let objects = Option::<Objects<T>>::deserialize(deserializer)?;
    Ok(objects.map(|objects| objects.into_iter().map(|object| object.0).collect()))
}

/// The object that some JSON is.
pub(crate) fn parse<T: DeserializeOwned>(json: &[u8]) -> Result<T, Problem> {
    parse_any(json).map(|object: Object<T>| object.0)
}

/// The value of some JSON.
fn parse_any<T: DeserializeOwned>(json: &[u8]) -> Result<T, Problem> {
    // Where an error is takes twice as long to know, and there is one only rarely.
    serde_json::from_slice(json).map_err(|error| {
        let mut json = serde_json::Deserializer::from_slice(json);
        let found: Result<T, _> = serde_path_to_error::deserialize(&mut json);
        let path = found
            .err()
            .map(|error| error.path().to_string())
            .filter(|path| path != "." && path != "?");
        let problem = match error.is_data() {
            true => Problem::refused(in_words(&error.to_string())),
            false => Problem::not_json(format!("that is not JSON as it should be: {error}")),
        };
        match path {
            Some(path) => problem.about(path),
            None => problem,
        }
    })
}

/// What is wrong with a value, without the words of the language that this is written in.
fn in_words(problem: &str) -> String {
    let whole = ["usize", "u64", "u32"].iter().fold(problem.to_owned(), |problem, name| {
        problem.replace(&format!("expected {name}"), "expected a whole number")
    });
    whole.replace("number too large to fit in target type", "the number is too large")
}

/// One, or an array of them; and whether it was an array.
pub(crate) fn parse_one_or_many<T: DeserializeOwned>(
    json: &[u8],
) -> Result<(Vec<T>, bool), Problem> {
    let first = json.iter().find(|byte| !byte.is_ascii_whitespace());
    match first == Some(&b'[') {
        true => {
            let objects: Objects<T> = parse_any(json)?;
            Ok((objects.into_iter().map(|object| object.0).collect(), true))
        }
        false => Ok((vec![parse(json)?], false)),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Document;

    #[test]
    fn problems_name_the_field() {
        let field = |json: &str| parse_one_or_many::<Document>(json.as_bytes()).unwrap_err();
        let problem = field(r#"[{"id": "a", "text": "b"}, {"id": "a", "text": 3}]"#);
        assert_eq!((problem.status, problem.field.as_deref()), (422, Some("[1].text")));
        let problem = field(r#"{"id": "a", "txt": "b"}"#);
        assert_eq!((problem.status, problem.field.as_deref()), (422, Some("txt")));
        assert_eq!(field("{").status, 400);
        assert_eq!(field(&("[".repeat(100_000))).status, 400);
        let deep = format!(r#"{{"id": "a", "payload": {{"a": {}"#, "[".repeat(100_000));
        assert_eq!(field(&deep).status, 400);
    }
}
