//! What is measured: the thesis' methods in its form, one query at a time, and our indexes.

use lookalike::{
    Signatures,
    index::{Answers, Index, Tables},
};
use lookalike_thesis::{bphs::Bphs, psm::Psm};
use rayon::prelude::*;

use super::measure::{Chunk, Question, RADIUS, Subject};

/// Values of the leading bits that PSM looks at for a recall of .95, as the thesis has it.
pub(super) const PROBES_ALL: usize = 23;
pub(super) const PROBES_FIRST: usize = 15;

/// An index of ours.
pub(super) struct Ours<'a> {
    pub(super) tables: Tables<'a>,
    stored: &'a Signatures,
    found: Answers,
}

impl<'a> Ours<'a> {
    pub(super) fn new(tables: Tables<'a>, stored: &'a Signatures) -> Self {
        Ours { tables, stored, found: Answers::new() }
    }

    /// How many bits the longest key has.
    pub(super) fn key_bits(&self) -> u32 {
        let layouts = self.tables.composition().layouts();
        layouts.iter().map(|layout| layout.width()).max().unwrap_or(0)
    }
}

impl Subject for Ours<'_> {
    fn ask(&mut self, question: Question, chunk: &Chunk<'_>) -> lookalike::Result<()> {
        let queries = chunk.queries()?;
        match question {
            Question::All => self.tables.within(queries, RADIUS, &mut self.found)?,
            Question::First => self.tables.first(queries, RADIUS, &mut self.found)?,
        };
        Ok(())
    }

    fn found(&self, query: usize) -> impl Iterator<Item = u64> {
        let words = self.stored.words();
        self.found.of(query).iter().map(|neighbor| words[neighbor.row as usize])
    }
}

/// A method in the thesis' form.
pub(super) struct InThesisForm<M> {
    pub(super) method: M,
    found: Vec<Found>,
}

/// What one thread found for some queries, one after the other.
#[derive(Default)]
struct Found {
    signatures: Vec<u64>,
    ends: Vec<usize>,
}

/// Queries that one thread answers before it looks for more, as ours do.
const PART: usize = 1024;

/// A method that answers one query at a time.
pub(super) trait OneByOne: Send + Sync {
    /// What it needs to keep from query to query.
    type Scratch<'a>
    where
        Self: 'a;

    fn scratch(&self, question: Question) -> Self::Scratch<'_>;

    /// Replaces `found` with what is near the query.
    fn answer(
        scratch: &mut Self::Scratch<'_>,
        question: Question,
        query: (u64, &[u8; 64]),
        found: &mut Vec<u64>,
    );
}

impl<M: OneByOne> InThesisForm<M> {
    pub(super) fn new(method: M) -> Self {
        InThesisForm { method, found: Vec::new() }
    }
}

impl<M: OneByOne> Subject for InThesisForm<M> {
    fn ask(&mut self, question: Question, chunk: &Chunk<'_>) -> lookalike::Result<()> {
        let margins = chunk.margins.as_chunks::<64>().0;
        let parts = chunk.signatures.words().par_chunks(PART).zip(margins.par_chunks(PART));
        let method = &self.method;
        let answers = parts.map(|(words, margins)| {
            let (mut scratch, mut near) = (method.scratch(question), Vec::new());
            let mut found = Found::default();
            for (&query, margins) in words.iter().zip(margins) {
                M::answer(&mut scratch, question, (query, margins), &mut near);
                found.signatures.extend_from_slice(&near);
                found.ends.push(found.signatures.len());
            }
            found
        });
        self.found = answers.collect();
        Ok(())
    }

    fn found(&self, query: usize) -> impl Iterator<Item = u64> {
        let (Found { signatures, ends }, place) = (&self.found[query / PART], query % PART);
        let start = if place == 0 { 0 } else { ends[place - 1] };
        signatures[start..ends[place]].iter().copied()
    }
}

impl OneByOne for Bphs {
    type Scratch<'a> = &'a Bphs;

    fn scratch(&self, _: Question) -> &Bphs {
        self
    }

    fn answer(bphs: &mut &Bphs, question: Question, query: (u64, &[u8; 64]), found: &mut Vec<u64>) {
        match question {
            Question::All => bphs.all(query.0, RADIUS, found),
            Question::First => {
                found.clear();
                found.extend(bphs.first(query.0, RADIUS));
            }
        }
    }
}

impl OneByOne for Psm {
    type Scratch<'a> = lookalike_thesis::psm::Searcher<'a>;

    fn scratch(&self, question: Question) -> Self::Scratch<'_> {
        self.searcher(
            RADIUS,
            match question {
                Question::All => PROBES_ALL,
                Question::First => PROBES_FIRST,
            },
        )
    }

    fn answer(
        searcher: &mut Self::Scratch<'_>,
        question: Question,
        (query, margins): (u64, &[u8; 64]),
        found: &mut Vec<u64>,
    ) {
        match question {
            Question::All => searcher.all(query, margins, found),
            Question::First => {
                found.clear();
                found.extend(searcher.first(query, margins));
            }
        }
    }
}
