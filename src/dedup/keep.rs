//! Which document of a cluster is kept.

use std::{fmt, str::FromStr};

use serde_json::Value;

/// The rule by which keepers are chosen; among equals the first of the input is kept.
#[derive(Debug, Clone, PartialEq)]
pub enum Keep {
    /// The first of the input.
    First,
    /// The one with the longest text.
    Longest,
    /// The one with the latest time in a field.
    Newest(String),
    /// The one with the largest number in a field.
    Max(String),
    /// The one with the smallest number in a field.
    Min(String),
    /// Those whose field has one of the values, earlier values rather.
    Prefer(String, Vec<String>),
}

const FORMS: &str =
    "first, longest, newest:FIELD, max:FIELD, min:FIELD or prefer:FIELD=VALUE,VALUE";

impl FromStr for Keep {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (rule, rest) = text.split_once([':', ' ']).unwrap_or((text, ""));
        let field = || match rest.trim() {
            "" => Err(format!("`{rule}` needs a field: keepers are chosen by {FORMS}")),
            field => Ok(field.to_owned()),
        };
        match rule {
            "first" if rest.is_empty() => Ok(Keep::First),
            "longest" if rest.is_empty() => Ok(Keep::Longest),
            "newest" => field().map(Keep::Newest),
            "max" => field().map(Keep::Max),
            "min" => field().map(Keep::Min),
            "prefer" => {
                let field = field()?;
                let (field, values) = field
                    .split_once('=')
                    .ok_or_else(|| format!("`prefer` needs FIELD=VALUE: one of {FORMS}"))?;
                let values = values.split(',').map(|value| value.trim().to_owned()).collect();
                Ok(Keep::Prefer(field.trim().to_owned(), values))
            }
            _ => Err(format!("keepers are chosen by {FORMS}")),
        }
    }
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Keep::First => f.write_str("first"),
            Keep::Longest => f.write_str("longest"),
            Keep::Newest(field) => write!(f, "newest:{field}"),
            Keep::Max(field) => write!(f, "max:{field}"),
            Keep::Min(field) => write!(f, "min:{field}"),
            Keep::Prefer(field, values) => write!(f, "prefer:{field}={}", values.join(",")),
        }
    }
}

impl Keep {
    /// The field that it looks at.
    pub fn field(&self) -> Option<&str> {
        match self {
            Keep::First | Keep::Longest => None,
            Keep::Newest(field) | Keep::Max(field) | Keep::Min(field) | Keep::Prefer(field, _) => {
                Some(field)
            }
        }
    }

    /// A number for a document, of the bytes of its text and the value that it has in the field: the smaller, the rather
    /// it is kept. A field that is missing or no number comes last.
    pub fn preference(&self, text_bytes: usize, value: Option<&Value>) -> u64 {
        let ascending = |number: Option<f64>| number.map_or(u64::MAX, ordered);
        let descending = |number: Option<f64>| number.map_or(u64::MAX, |x| !ordered(x) - 1);
        match self {
            Keep::First => 0,
            Keep::Longest => u64::MAX - text_bytes as u64,
            Keep::Newest(_) => descending(value.and_then(time_of)),
            Keep::Max(_) => descending(value.and_then(number_of)),
            Keep::Min(_) => ascending(value.and_then(number_of)),
            Keep::Prefer(_, values) => {
                let value = value.map(text_of).unwrap_or_default();
                values.iter().position(|wanted| *wanted == value).unwrap_or(values.len()) as u64
            }
        }
    }

    /// Whether a document of that preference has what the rule looks at.
    pub fn applies(&self, preference: u64) -> bool {
        match self {
            Keep::First | Keep::Longest | Keep::Prefer(..) => true,
            _ => preference != u64::MAX,
        }
    }
}

/// A value in words, as users write it.
pub fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Numbers to whole numbers that are ordered as they are.
fn ordered(number: f64) -> u64 {
    let bits = (number + 0.0).to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

fn number_of(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    number.filter(|number| !number.is_nan())
}

/// A time as seconds: a number, or a date as ISO 8601 writes it, as far as it is given.
fn time_of(value: &Value) -> Option<f64> {
    match value {
        Value::String(text) => date(text.trim()),
        other => number_of(other),
    }
}

fn date(text: &str) -> Option<f64> {
    let digits_only = text.bytes().all(|byte| byte.is_ascii_digit());
    if digits_only && ![4, 8].contains(&text.len()) {
        // Seconds since some time.
        return text.parse().ok();
    }
    let spread = |at: [&str; 3]| at.join("-");
    let written = match digits_only && text.len() == 8 {
        true => spread([&text[..4], &text[4..6], &text[6..]]),
        false => text.to_owned(),
    };
    let (day, time) = written.split_once(['T', ' ']).unwrap_or((&written, ""));
    let mut parts = day.split('-').map(|part| part.parse::<u32>().ok());
    let mut next = || parts.next().unwrap_or(Some(1));
    let (year, month, day) = (next()?, next()?, next()?);
    if day_is_wrong(year, month, day) {
        return None;
    }
    // Months of 31 days keep the order, which is all that counts.
    let days = f64::from((year * 12 + month - 1) * 31 + day - 1);
    Some(days * 86_400.0 + seconds_of(time))
}

fn day_is_wrong(year: u32, month: u32, day: u32) -> bool {
    year > 9999 || !(1..=12).contains(&month) || !(1..=31).contains(&day)
}

/// Seconds of a time of day, at the zone that it is given for.
fn seconds_of(time: &str) -> f64 {
    let clock = |text: &str| {
        let mut parts =
            text.split(':').map(|part| part.trim_end_matches('Z').parse().unwrap_or(0.0));
        let mut next = || parts.next().unwrap_or(0.0);
        next() * 3600.0 + next() * 60.0 + next()
    };
    match time.split_once(['+', '-']) {
        Some((local, zone)) if time.contains('+') => clock(local) - clock(zone),
        Some((local, zone)) => clock(local) + clock(zone),
        None => clock(time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_written_and_read() {
        for text in ["first", "longest", "newest:date", "max:score", "min:a.b", "prefer:lang=en,de"]
        {
            assert_eq!(text.parse::<Keep>().unwrap().to_string(), text);
        }
        assert_eq!("newest date".parse::<Keep>().unwrap(), Keep::Newest("date".into()));
        for text in ["", "last", "newest", "prefer:lang", "first:x"] {
            assert!(text.parse::<Keep>().is_err(), "{text}");
        }
    }

    #[test]
    fn preferences_order_documents() {
        let before = |rule: &str, a: Value, b: Value| {
            let keep: Keep = rule.parse().unwrap();
            keep.preference(9, Some(&a)) < keep.preference(9, Some(&b))
        };
        assert!(before("max:f", 2.5.into(), (-3).into()));
        assert!(before("max:f", "10".into(), 9.into()));
        assert!(before("min:f", (-3).into(), 2.into()));
        assert!(before("min:f", 1e300.into(), Value::Null));
        assert!(before("max:f", (-1e300).into(), "none".into()));
        assert!(before("newest:f", "2024-02-01".into(), "2024-01-31T23:59:59Z".into()));
        assert!(before("newest:f", "20240202".into(), "2024-02-01 10:00".into()));
        assert!(before("newest:f", "1999".into(), "yesterday".into()));
        assert!(before("newest:f", "2000000000".into(), "1500000000".into()));
        assert!(before("newest:f", "2024-01-01T23:30Z".into(), "2024-01-02T00:30:00+02:00".into()));
        assert!(before("prefer:f=de,en", "de".into(), "en".into()));
        assert!(before("prefer:f=de,en", "en".into(), "fr".into()));
    }
}
