//! What comes in: bodies and parameters. What is wrong with them is told with the name of the field.

use std::{
    cell::Cell,
    fmt,
    marker::PhantomData,
    ops::Deref,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::Body,
    extract::{FromRequestParts, Path},
    http::{HeaderMap, header, request::Parts},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use serde::{
    Deserialize, Deserializer,
    de::{
        DeserializeOwned, DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor,
        value::MapAccessDeserializer,
    },
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

/// Answers that are larger take room while they are sent.
const SMALL: u64 = 64 << 10;

/// An answer that takes room until the caller has read it.
struct Sending {
    rest: Bytes,
    _room: Room,
}

impl HttpBody for Sending {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        // In parts: the next is asked for when there is a place for it.
        let part = self.rest.len().min(SMALL as usize);
        let frame = (part > 0).then(|| Ok(Frame::data(self.rest.split_to(part))));
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}

/// Makes a large answer take room until it is sent; one that finds none is not sent.
pub(crate) async fn hold(app: &App, response: Response) -> Response {
    let size = response.body().size_hint().exact().unwrap_or(0);
    if size <= SMALL {
        return response;
    }
    let mut room = app.room();
    if let Err(problem) = room.take(size as usize) {
        return problem.into_response();
    }
    let (head, body) = response.into_parts();
    match body.collect().await {
        Ok(body) => {
            Response::from_parts(head, Body::new(Sending { rest: body.to_bytes(), _room: room }))
        }
        Err(error) => Problem::failed(error.to_string()).into_response(),
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
        let path = found.err().map(|error| error.path().to_string());
        problem_of(&error, path.unwrap_or_default())
    })
}

/// What is wrong with some JSON, and where.
fn problem_of(error: &serde_json::Error, path: String) -> Problem {
    let text = error.to_string();
    if !error.is_data() {
        return Problem::not_json(format!("that is not JSON as it should be: {text}"));
    }
    let missing = text.strip_prefix("missing field `").and_then(|rest| rest.split_once('`'));
    let path = if path == "." || path == "?" { String::new() } else { path };
    let problem = Problem::refused(in_words(&text));
    match (path.as_str(), missing) {
        ("", None) => problem,
        ("", Some((name, _))) => problem.about(name),
        (path, None) => problem.about(path),
        (path, Some((name, _))) => problem.about(format!("{path}.{name}")),
    }
}

/// A list of objects, if they are not too many: what is too much is not read to its end.
struct AtMost<'a, T> {
    most: usize,
    are_more: &'a Cell<bool>,
    of: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> DeserializeSeed<'de> for AtMost<'_, T> {
    type Value = Vec<T>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<T>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for AtMost<'_, T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let mut all = Vec::new();
        while let Some(Object(one)) = list.next_element()? {
            if all.len() == self.most {
                self.are_more.set(true);
                return Err(A::Error::custom("there are more"));
            }
            all.push(one);
        }
        Ok(all)
    }
}

/// The objects of a list, if they are not too many.
pub(crate) fn parse_many<T: DeserializeOwned>(json: &[u8], most: usize) -> Result<Vec<T>, Problem> {
    let are_more = Cell::new(false);
    let list = || AtMost { most, are_more: &are_more, of: PhantomData };
    let mut reader = serde_json::Deserializer::from_slice(json);
    let found = list().deserialize(&mut reader).and_then(|all| reader.end().map(|()| all));
    found.map_err(|error| {
        if are_more.get() {
            return Problem::too_large(format!(
                "more than {most} at a time are more than a call takes; NDJSON may have any number of lines"
            ));
        }
        let (mut reader, mut track) =
            (serde_json::Deserializer::from_slice(json), serde_path_to_error::Track::new());
        let tracked = serde_path_to_error::Deserializer::new(&mut reader, &mut track);
        let _ = list().deserialize(tracked);
        problem_of(&error, track.path().to_string())
    })
}

/// What is wrong with a value, without the words of the language that this is written in.
fn in_words(problem: &str) -> String {
    let whole = ["usize", "u64", "u32"].iter().fold(problem.to_owned(), |problem, name| {
        problem.replace(&format!("expected {name}"), "expected a whole number")
    });
    let whole = whole.replace("number too large to fit in target type", "the number is too large");
    let whole = whole.replace("invalid digit found in string", "is not a whole number");
    match whole.contains("unknown field") && whole.contains("`payload`") {
        true => {
            whole + "; other fields of a document belong into `payload`, a question into the URL"
        }
        false => whole,
    }
}

/// One, or an array of them, at most so many; and whether it was an array.
pub(crate) fn parse_one_or_many<T: DeserializeOwned>(
    json: &[u8],
    most: usize,
) -> Result<(Vec<T>, bool), Problem> {
    let first = json.iter().find(|byte| !byte.is_ascii_whitespace());
    match first == Some(&b'[') {
        true => Ok((parse_many(json, most)?, true)),
        false => Ok((vec![parse(json)?], false)),
    }
}

/// The deepest that a payload may be nested: whoever reads it later goes as deep.
const DEEPEST: usize = 100;

/// A payload as it is kept: an object, on one line, its numbers as they were written.
pub(crate) fn compact_object(json: &str) -> Result<String, Problem> {
    if !json.starts_with('{') {
        return Err(Problem::field("payload", "is not an object"));
    }
    let (mut compact, mut depth, mut in_text, mut escaped) =
        (String::with_capacity(json.len()), 0, false, false);
    for sign in json.chars() {
        match sign {
            _ if in_text => {
                in_text = escaped || sign != '"';
                escaped = !escaped && sign == '\\';
            }
            '"' => in_text = true,
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            ' ' | '\t' | '\r' | '\n' => continue,
            _ => {}
        }
        if depth > DEEPEST {
            return Err(Problem::not_json(format!("a payload is nested deeper than {DEEPEST}"))
                .about("payload"));
        }
        compact.push(sign);
    }
    Ok(compact)
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
        let field = |json: &str| parse_one_or_many::<Document>(json.as_bytes(), 10).unwrap_err();
        let problem = field(r#"[{"id": "a", "text": "b"}, {"id": "a", "text": 3}]"#);
        assert_eq!((problem.status, problem.field.as_deref()), (422, Some("[1].text")));
        let problem = field(r#"{"id": "a", "txt": "b"}"#);
        assert_eq!((problem.status, problem.field.as_deref()), (422, Some("txt")));
        assert_eq!(field("{").status, 400);
        assert_eq!(field(&("[".repeat(100_000))).status, 422);
        let deep = format!(r#"{{"id": "a", "payload": {{"a": {}"#, "[".repeat(100_000));
        assert_eq!(field(&deep).status, 400);
    }

    #[test]
    fn payloads_are_kept_as_they_are_on_one_line() {
        let json = "{ \"a\" : [1e400, 123456789012345678901234567890 ],\n\"b \\\" c\": {} }";
        let kept = compact_object(json).unwrap();
        assert_eq!(kept, r#"{"a":[1e400,123456789012345678901234567890],"b \" c":{}}"#);
        assert_eq!(compact_object("[1]").unwrap_err().status, 422);
        let deep = format!("{{\"a\":{}", "[".repeat(200));
        assert_eq!(compact_object(&deep).unwrap_err().status, 400);
    }

    #[test]
    fn too_many_are_not_read_to_the_end() {
        let many = format!("[{}", r#"{"id": "a"},"#.repeat(11));
        assert_eq!(parse_many::<Document>(many.as_bytes(), 10).unwrap_err().status, 413);
    }
}
