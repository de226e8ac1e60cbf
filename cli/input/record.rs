//! What reading yields beside documents: records that are none, with place, problem and way out.

use std::fmt;
use std::sync::Arc;

/// Where in the input something is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The file as the user wrote it or as the folder was walked; `-` is standard input; a member of
    /// an archive is `archive.tar/member`.
    pub(crate) file: Arc<str>,
    /// Where in that file.
    pub(crate) at: At,
}

/// Where in a file something is. All counts are from 1, bytes from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    /// The file as a whole.
    File,
    /// A line of text.
    Line(u64),
    /// A row of a table.
    Row(u64),
    /// A record of a web archive.
    Record(u64),
    /// A byte, after decompression.
    Byte(u64),
}

impl Place {
    pub(crate) fn new(file: &Arc<str>, at: At) -> Self {
        Place { file: Arc::clone(file), at }
    }

    /// The id of a document that has none of its own.
    pub(crate) fn to_id(&self) -> String {
        match self.at {
            At::File => self.file.to_string(),
            At::Line(n) | At::Row(n) | At::Record(n) | At::Byte(n) => format!("{}:{n}", self.file),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = &self.file;
        match self.at {
            At::File => write!(f, "{file}"),
            At::Line(line) => write!(f, "{file}:{line}"),
            At::Row(row) => write!(f, "{file}: row {row}"),
            At::Record(record) => write!(f, "{file}: record {record}"),
            At::Byte(byte) => write!(f, "{file}: byte {byte}"),
        }
    }
}

/// A piece of input that is no document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BadRecord {
    pub(crate) place: Place,
    /// What is wrong, without the place.
    pub(crate) problem: String,
    /// What the user may do about it.
    pub(crate) hint: Option<String>,
    /// Whether nothing after this place could be read from the file.
    pub(crate) rest_lost: bool,
}

impl BadRecord {
    pub(crate) fn new(place: Place, problem: impl Into<String>) -> Self {
        BadRecord { place, problem: problem.into(), hint: None, rest_lost: false }
    }

    /// The file cannot be read any further.
    pub(crate) fn broken(place: Place, problem: impl fmt::Display) -> Self {
        let problem = match place.at {
            At::File => problem.to_string(),
            _ => format!("{problem}; the rest of the file is lost"),
        };
        BadRecord { rest_lost: true, ..BadRecord::new(place, problem) }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for BadRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.problem)
    }
}

impl std::error::Error for BadRecord {}

/// Inputs that cannot be opened at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InputError {
    pub(crate) problem: String,
    /// What the user may do about it.
    pub(crate) hint: Option<String>,
}

impl InputError {
    pub(crate) fn new(problem: impl Into<String>) -> Self {
        InputError { problem: problem.into(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)
    }
}

impl std::error::Error for InputError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_record_names_its_place() {
        let file = Arc::from("news.jsonl");
        let bad = BadRecord::new(Place::new(&file, At::Line(17)), "no field `text`");
        assert_eq!(bad.to_string(), "news.jsonl:17: no field `text`");
        let broken = BadRecord::broken(Place::new(&file, At::Byte(9)), "the gzip data is damaged");
        assert_eq!(
            broken.to_string(),
            "news.jsonl: byte 9: the gzip data is damaged; the rest of the file is lost"
        );
    }
}
