//! Documents from JSON objects. Without payload, everything but text and id is skipped unread.

use std::fmt;

use lookalike::Document;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::args::Options;
use super::chunk::Record;
use super::lines::Lines;
use super::record::{At, BadRecord, Place};

pub(super) fn parse(lines: &Lines, options: &Options, found: &mut Vec<Record>) {
    lines.parse(options, found, |place, line| parse_object(place, line, options));
}

/// The document that one JSON object describes.
pub(super) fn parse_object(place: Place, json: &str, options: &Options) -> Record {
    if !json.trim_start().starts_with('{') {
        return Err(not_an_object(place, json));
    }
    match options.payload {
        true if options.some_fields.is_none() => with_payload(place, json, options),
        _ => picked(place, json, options),
    }
}

fn picked(place: Place, json: &str, options: &Options) -> Record {
    let mut picked = Picked::default();
    let mut reader = serde_json::Deserializer::from_str(json);
    let fields = options.some_fields.as_deref().unwrap_or_default();
    let wanted = Wanted { text: Some(&options.text_field), id: Some(options.id_path()), fields };
    let read = Object { wanted, steps: 0, picked: &mut picked }.deserialize(&mut reader);
    if let Err(error) = read.and_then(|()| reader.end()) {
        return Err(broken_json(place, &error));
    }
    let text = picked.text.map_or(Field::Missing, |(_, text)| text);
    let id = match picked.id {
        Some((_, raw)) => id_of_raw(raw),
        None => Field::Missing,
    };
    let mut document =
        finish(place, text, id, options, || serde_json::from_str(json).unwrap_or_default())?;
    let values = picked.fields.into_iter();
    let values = values.filter_map(|(field, raw)| {
        Some((fields[field].clone(), serde_json::from_str(raw.get()).ok()?))
    });
    document.payload = values.collect();
    Ok(document)
}

fn with_payload(place: Place, json: &str, options: &Options) -> Record {
    let mut fields: Map<String, Value> = match serde_json::from_str(json) {
        Ok(fields) => fields,
        Err(error) => return Err(broken_json(place, &error)),
    };
    let text = take(&mut fields, &options.text_field).map_or(Field::Missing, text_of_value);
    if !matches!(text, Field::Text(_)) {
        return finish(place, text, Field::Missing, options, || fields);
    }
    // An id that is not usable stays in the payload.
    let id = match value_at(&fields, options.id_path()) {
        Some(value) => id_of_value(value),
        None => Field::Missing,
    };
    if matches!(id, Field::Text(_)) {
        take(&mut fields, options.id_path());
    }
    let mut document = finish(place, text, id, options, Map::new)?;
    document.payload = fields;
    Ok(document)
}

/// What a field turned out to be.
#[derive(Debug, PartialEq)]
pub(super) enum Field {
    Missing,
    Null,
    Text(String),
    /// Something else: its kind, with article.
    Other(&'static str),
}

/// The document of a text and an id, or what is wrong with them. `fields` is asked for help only then.
fn finish(
    place: Place,
    text: Field,
    id: Field,
    options: &Options,
    fields: impl FnOnce() -> Map<String, Value>,
) -> Record {
    let field = &options.text_field;
    let problem = match text {
        Field::Text(text) => {
            let id = id_or_place(place, id, options)?;
            return Ok(Document { id, text, ..Document::default() });
        }
        Field::Missing => format!("no field `{field}`"),
        Field::Null => format!("field `{field}` is null"),
        Field::Other(kind) => format!("field `{field}` is {kind}, not a string"),
    };
    let is_missing = matches!(text, Field::Missing);
    let bad = BadRecord::new(place, problem);
    // Where the field is there, it is this record that is odd, not the name.
    Err(match is_missing.then(|| hint_of_fields(&fields(), field)).flatten() {
        Some(hint) => bad.hint(hint),
        None => bad,
    })
}

/// An id that the user asked for must be there; otherwise the place will do.
pub(super) fn id_or_place(place: Place, id: Field, options: &Options) -> Result<String, BadRecord> {
    let problem = match (id, &options.id_field) {
        (Field::Text(id), _) if !id.is_empty() => return Ok(id),
        (_, None) => return Ok(place.to_id()),
        (Field::Text(_), Some(field)) => format!("field `{field}` is empty"),
        (Field::Missing, Some(field)) => format!("no field `{field}`"),
        (Field::Null, Some(field)) => format!("field `{field}` is null"),
        (Field::Other(kind), Some(field)) => {
            format!("field `{field}` is {kind}, not a string or a number")
        }
    };
    Err(BadRecord::new(place, problem).hint("without --id-field, such documents get file and line"))
}

fn not_an_object(place: Place, json: &str) -> BadRecord {
    match serde_json::from_str::<Value>(json) {
        Ok(value) => {
            let problem = format!("{} where a JSON object should be", kind_of(&value));
            BadRecord::new(place, problem)
        }
        Err(error) => broken_json(place, &error),
    }
}

fn broken_json(place: Place, error: &serde_json::Error) -> BadRecord {
    let said = error.to_string();
    // The place of the line is ours to tell; the column is what we take from there.
    let what = said.rsplit_once(" at line ").map_or(&*said, |(what, _)| what);
    let bad = BadRecord::new(place, format!("broken JSON at column {}: {what}", error.column()));
    match bad.place.at {
        At::Line(1) => {
            bad.hint("if this is not JSON lines, say --input-format csv, text, ... or --lines")
        }
        _ => bad,
    }
}

/// Names what is there, and the likeliest field: the one with the longest string.
fn hint_of_fields(fields: &Map<String, Value>, missing: &str) -> Option<String> {
    if fields.is_empty() {
        return None;
    }
    let hint = listed(fields.keys().map(String::as_str));
    let strings = fields.iter().filter(|(name, _)| *name != missing);
    let strings = strings.filter_map(|(name, value)| Some((value.as_str()?.len(), name)));
    Some(match strings.max_by_key(|(length, _)| *length) {
        Some((_, likeliest)) => format!("{hint}; say --text-field {}", shortened(likeliest)),
        None => hint,
    })
}

/// Names the columns of a table, to choose one of them.
pub(super) fn hint_of_columns<'c>(columns: impl Iterator<Item = &'c str>, flag: &str) -> String {
    format!("{}; choose one with {flag}", listed(columns))
}

fn listed<'c>(mut names: impl Iterator<Item = &'c str>) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<_> =
        names.by_ref().take(SHOWN).map(|name| format!("`{}`", shortened(name))).collect();
    match names.count() {
        0 => format!("it has {}", shown.join(", ")),
        more => format!("it has {} and {more} more", shown.join(", ")),
    }
}

fn shortened(name: &str) -> String {
    const MOST: usize = 40;
    match name.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn text_of_value(value: Value) -> Field {
    match value {
        Value::String(text) => Field::Text(text),
        Value::Null => Field::Null,
        other => Field::Other(kind_of(&other)),
    }
}

pub(super) fn id_of_value(value: &Value) -> Field {
    match value {
        Value::String(id) => Field::Text(id.clone()),
        Value::Number(_) | Value::Bool(_) => Field::Text(value.to_string()),
        Value::Null => Field::Null,
        other => Field::Other(kind_of(other)),
    }
}

/// The digits of a number are kept as written.
fn id_of_raw(raw: &RawValue) -> Field {
    match raw.get().as_bytes().first() {
        Some(b'"') => match serde_json::from_str(raw.get()) {
            Ok(id) => Field::Text(id),
            Err(_) => Field::Other("a broken string"),
        },
        Some(b'n') => Field::Null,
        Some(b'[') => Field::Other("an array"),
        Some(b'{') => Field::Other("an object"),
        _ => Field::Text(raw.get().to_owned()),
    }
}

/// The value at a path; a key with the dots in it wins over nested keys.
pub(crate) fn value_at<'v>(fields: &'v Map<String, Value>, path: &str) -> Option<&'v Value> {
    if let Some(value) = fields.get(path) {
        return Some(value);
    }
    path.rmatch_indices('.')
        .find_map(|(dot, _)| value_at(fields.get(&path[..dot])?.as_object()?, &path[dot + 1..]))
}

/// Like [`value_at`], and removes it.
pub(super) fn take(fields: &mut Map<String, Value>, path: &str) -> Option<Value> {
    if let Some(value) = fields.shift_remove(path) {
        return Some(value);
    }
    path.rmatch_indices('.')
        .find_map(|(dot, _)| take(fields.get_mut(&path[..dot])?.as_object_mut()?, &path[dot + 1..]))
}

/// The rest of the ways to the two fields; `None` where they lead elsewhere.
#[derive(Clone, Copy)]
struct Wanted<'p> {
    text: Option<&'p str>,
    id: Option<&'p str>,
    /// Other fields of the object itself.
    fields: &'p [String],
}

/// What was found, with the number of steps into nested objects: fewer win.
#[derive(Default)]
struct Picked<'j> {
    text: Option<(usize, Field)>,
    id: Option<(usize, &'j RawValue)>,
    fields: Vec<(usize, &'j RawValue)>,
}

/// Reads an object for the wanted fields, and anything else for nothing.
struct Object<'p, 'f, 'j> {
    wanted: Wanted<'p>,
    steps: usize,
    picked: &'f mut Picked<'j>,
}

impl<'j> DeserializeSeed<'j> for Object<'_, '_, 'j> {
    type Value = ();

    fn deserialize<D: Deserializer<'j>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'j> Visitor<'j> for Object<'_, '_, 'j> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'j>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some((step, field)) = map.next_key_seed(Key(self.wanted))? {
            let fewest = |found: Option<usize>| found.is_none_or(|steps| self.steps <= steps);
            if step.text == Some("") && fewest(self.picked.text.as_ref().map(|found| found.0)) {
                self.picked.text = Some((self.steps, map.next_value_seed(Text)?));
            } else if step.id == Some("") && fewest(self.picked.id.map(|found| found.0)) {
                self.picked.id = Some((self.steps, map.next_value()?));
            } else if let Some(field) = field.filter(|_| self.steps == 0) {
                self.picked.fields.push((field, map.next_value()?));
            } else {
                let wanted = step.inside();
                if wanted.text.is_none() && wanted.id.is_none() {
                    map.next_value::<IgnoredAny>()?;
                } else {
                    let steps = self.steps + 1;
                    map.next_value_seed(Object { wanted, steps, picked: &mut *self.picked })?;
                }
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'j>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }
    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }
    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }
    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// Compares a key with the wanted paths, without copying it.
struct Key<'p>(Wanted<'p>);

impl<'p> Wanted<'p> {
    /// What is left of the paths after `key`: nothing at the goal, `.rest` before it.
    fn after(self, key: &str) -> Self {
        let rest = |path: Option<&'p str>| {
            path?.strip_prefix(key).filter(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        Wanted { text: rest(self.text), id: rest(self.id), fields: self.fields }
    }

    /// The paths inside the value of a key on the way.
    fn inside(self) -> Self {
        let inside = |rest: Option<&'p str>| rest?.strip_prefix('.');
        Wanted { text: inside(self.text), id: inside(self.id), fields: self.fields }
    }
}

impl<'j, 'p> DeserializeSeed<'j> for Key<'p> {
    type Value = (Wanted<'p>, Option<usize>);

    fn deserialize<D: Deserializer<'j>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_str(self)
    }
}

impl<'p> Visitor<'_> for Key<'p> {
    type Value = (Wanted<'p>, Option<usize>);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok((self.0.after(key), self.0.fields.iter().position(|field| field == key)))
    }
}

/// Reads the value of the text field.
struct Text;

impl<'j> DeserializeSeed<'j> for Text {
    type Value = Field;

    fn deserialize<D: Deserializer<'j>>(self, reader: D) -> Result<Field, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'j> Visitor<'j> for Text {
    type Value = Field;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E>(self, text: &str) -> Result<Field, E> {
        Ok(Field::Text(text.to_owned()))
    }
    fn visit_string<E>(self, text: String) -> Result<Field, E> {
        Ok(Field::Text(text))
    }
    fn visit_unit<E>(self) -> Result<Field, E> {
        Ok(Field::Null)
    }
    fn visit_bool<E>(self, _: bool) -> Result<Field, E> {
        Ok(Field::Other("a boolean"))
    }
    fn visit_i64<E>(self, _: i64) -> Result<Field, E> {
        Ok(Field::Other("a number"))
    }
    fn visit_u64<E>(self, _: u64) -> Result<Field, E> {
        Ok(Field::Other("a number"))
    }
    fn visit_f64<E>(self, _: f64) -> Result<Field, E> {
        Ok(Field::Other("a number"))
    }
    fn visit_seq<A: SeqAccess<'j>>(self, mut items: A) -> Result<Field, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Field::Other("an array"))
    }
    fn visit_map<A: MapAccess<'j>>(self, mut map: A) -> Result<Field, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Field::Other("an object"))
    }
}
