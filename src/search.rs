//! Searcher: a signature file and an index over it; queries in, hits with ids out.

use std::{borrow::Cow, fmt, ops::Range};

use crate::{
    Result, SignatureFile,
    index::{Answers, Index, Neighbor, Promise, Queries, Scan},
};

/// What is asked about each query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// Every row at distance <= the radius.
    Within(u32),
    /// One row at distance <= the radius, if there is one.
    First(u32),
    /// The so many nearest rows.
    Nearest(usize),
}

/// A row found, with what belongs to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit<'a> {
    /// The id of the document.
    pub id: Cow<'a, str>,
    /// How many bits differ.
    pub distance: u32,
    /// The row's number.
    pub row: u32,
    /// The bytes of the document's text that match, if documents were cut into passages.
    pub passage: Option<Range<u64>>,
    /// The document's other fields, as JSON, if they were kept.
    pub payload: Option<Cow<'a, str>>,
}

/// Any index, over rows that live as long.
pub type AnyIndex<'a> = Box<dyn Index + Send + Sync + 'a>;

/// Answers questions about one signature file.
pub struct Searcher<'a> {
    file: &'a SignatureFile,
    index: AnyIndex<'a>,
}

impl<'a> Searcher<'a> {
    /// A searcher that scans every row.
    pub fn new(file: &'a SignatureFile) -> Result<Self> {
        Ok(Searcher::with_index(file, Box::new(Scan::new(file.signatures())?)))
    }

    /// A searcher that asks an index, which must be one over the signatures of the file.
    pub fn with_index(file: &'a SignatureFile, index: AnyIndex<'a>) -> Self {
        Searcher { file, index }
    }

    /// Asks the question about each query; a hit is made of each neighbor with [`hit`](Self::hit).
    pub fn ask(
        &self,
        queries: Queries<'_>,
        question: Question,
        found: &mut Answers,
    ) -> Result<Promise> {
        match question {
            Question::Within(radius) => self.index.within(queries, radius, found),
            Question::First(radius) => self.index.first(queries, radius, found),
            Question::Nearest(k) => self.index.nearest(queries, k, found),
        }
    }

    /// What belongs to a neighbor.
    pub fn hit(&self, neighbor: Neighbor) -> Hit<'a> {
        let row = neighbor.row as usize;
        Hit {
            id: self.file.id(row),
            distance: neighbor.distance,
            row: neighbor.row,
            passage: self.file.passage(row),
            payload: self.file.payload(row),
        }
    }
}

impl fmt::Debug for Searcher<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Searcher").field("file", self.file).finish_non_exhaustive()
    }
}
