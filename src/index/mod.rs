//! Indexes: which stored rows are near a query? They know rows and bits, nothing of files, ids or documents.

mod blocks;
mod composition;
pub(crate) mod effort;
mod graph;
mod issl;
mod merge;
mod multi;
mod origin;
mod permuted;
mod pieces;
mod psm;
pub(crate) mod sample;
mod scan;
mod tables;

pub use composition::{Composition, Method};
pub(crate) use composition::{Step, slice};
pub use effort::{Curve, Effort, Point, Reached, recall_at};
pub use graph::{Graph, GraphFile, GraphSearch, Shape};
pub use issl::{Issl, IsslFile, Proven, Reach};
pub use merge::merge;
pub use permuted::{Permuted, PermutedMethod};
pub use scan::Scan;
pub(crate) use tables::random_radius;
pub use tables::{Build, IndexFile, Tables};

use crate::{Error, Result, Signatures};

/// A batch of queries: their signatures and, where they are known, how weak each bit is.
#[derive(Debug, Clone, Copy)]
pub struct Queries<'a> {
    signatures: &'a Signatures,
    margins: Option<&'a [u8]>,
}

impl<'a> Queries<'a> {
    /// Queries with their margins: a byte for each bit, query after query.
    pub fn with_margins(signatures: &'a Signatures, margins: &'a [u8]) -> Result<Self> {
        let wanted = signatures.len() * signatures.bits() as usize;
        match margins.len() == wanted {
            true => Ok(Queries { signatures, margins: Some(margins) }),
            false => Err(Error::Margins { wanted, given: margins.len() }),
        }
    }

    /// The signatures.
    pub fn signatures(&self) -> &'a Signatures {
        self.signatures
    }

    /// The margins of one query, if they are known.
    pub fn margins(&self, query: usize) -> Option<&'a [u8]> {
        let bits = self.bits() as usize;
        Some(&self.margins?[query * bits..(query + 1) * bits])
    }

    /// The width in bits.
    pub fn bits(&self) -> u32 {
        self.signatures.bits()
    }

    /// How many queries there are.
    pub fn len(&self) -> usize {
        self.signatures.len()
    }

    /// Whether there are no queries.
    pub fn is_empty(&self) -> bool {
        self.signatures.is_empty()
    }
}

impl<'a> From<&'a Signatures> for Queries<'a> {
    fn from(signatures: &'a Signatures) -> Self {
        Queries { signatures, margins: None }
    }
}

/// A stored row near a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Neighbor {
    /// The row's number, from 0.
    pub row: u32,
    /// How many bits differ.
    pub distance: u32,
}

/// What an answer is worth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Promise {
    /// Every neighbor that there is, with its true distance.
    Exact,
    /// True distances, but some neighbors may be missing.
    Expected {
        /// The share of the neighbors that is expected to be found.
        recall: f32,
    },
}

/// The neighbors of each query of a batch, nearest first, ties by row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answers {
    neighbors: Vec<Neighbor>,
    /// Where the neighbors of each query end.
    ends: Vec<usize>,
}

impl Answers {
    /// No answers yet.
    pub fn new() -> Self {
        Answers::default()
    }

    /// How many queries are answered.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether no query is answered.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The neighbors of query `query` of the batch.
    pub fn of(&self, query: usize) -> &[Neighbor] {
        let start = if query == 0 { 0 } else { self.ends[query - 1] };
        &self.neighbors[start..self.ends[query]]
    }

    /// The neighbors of each query, in the order of the queries.
    pub fn iter(&self) -> impl Iterator<Item = &[Neighbor]> {
        (0..self.len()).map(|query| self.of(query))
    }

    /// Forgets all answers and keeps the memory.
    pub fn clear(&mut self) {
        self.neighbors.clear();
        self.ends.clear();
    }

    /// Adds the answer to the next query.
    pub fn push(&mut self, neighbors: &[Neighbor]) {
        self.extend(neighbors.iter().copied());
    }

    fn extend(&mut self, neighbors: impl Iterator<Item = Neighbor>) {
        self.neighbors.extend(neighbors);
        self.ends.push(self.neighbors.len());
    }

    /// Adds the answers to further queries.
    fn append(&mut self, further: &Answers) {
        let before = self.neighbors.len();
        self.neighbors.extend_from_slice(&further.neighbors);
        self.ends.extend(further.ends.iter().map(|end| before + end));
    }
}

/// Finds stored rows near queries. A single query is a batch of one.
///
/// `found` is cleared first and then holds one answer for each query, nearest first, ties by row. The radius is
/// inclusive: a neighbor has distance <= radius.
pub trait Index {
    /// Every row within the radius of each query.
    fn within(&self, queries: Queries<'_>, radius: u32, found: &mut Answers) -> Result<Promise>;

    /// One row within the radius of each query, if there is one: for "have I seen this?".
    fn first(&self, queries: Queries<'_>, radius: u32, found: &mut Answers) -> Result<Promise>;

    /// The `k` nearest rows of each query, fewer if there are fewer rows.
    fn nearest(&self, queries: Queries<'_>, k: usize, found: &mut Answers) -> Result<Promise>;
}
