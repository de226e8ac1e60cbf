//! JSON is read. What is wrong with it is told with the name of the field.

use std::{cell::Cell, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{
        DeserializeOwned, DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor,
        value::MapAccessDeserializer,
    },
};

use crate::error::Problem;

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
pub(crate) fn in_words(problem: &str) -> String {
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
