//! The queries without copies, and which of them are still asked.

use rayon::prelude::*;

use crate::{Error, Result, Signatures};

/// The distinct signatures of the queries, sorted.
pub(super) struct Distinct {
    signatures: Signatures,
    /// Where the numbers of each begin, and the end.
    starts: Vec<u32>,
    /// The numbers that queries were given by, ascending for each signature.
    numbers: Vec<u32>,
    /// One bit for each that has left.
    gone: Vec<u64>,
    left: usize,
}

impl Distinct {
    pub(super) fn new(queries: &Signatures) -> Result<Self> {
        let Ok(len) = u32::try_from(queries.len()) else {
            return Err(Error::TooManyRows { rows: queries.len() });
        };
        let numbers: Vec<u32> = match queries.stride() {
            1 => {
                // With the word at hand, so that sorting does not look it up.
                let numbered = queries.words().par_iter().copied().zip(0..len);
                let mut numbered: Vec<(u64, u32)> = numbered.collect();
                numbered.par_sort_unstable();
                numbered.into_par_iter().map(|(_, number)| number).collect()
            }
            _ => {
                let mut numbers: Vec<u32> = (0..len).collect();
                let row = |number: u32| queries.row(number as usize);
                numbers.par_sort_unstable_by(|&a, &b| row(a).cmp(row(b)).then(a.cmp(&b)));
                numbers
            }
        };
        let mut signatures = Vec::with_capacity(queries.words().len());
        let mut starts = Vec::with_capacity(queries.len() + 1);
        for (place, &number) in (0..).zip(&numbers) {
            let row = queries.row(number as usize);
            if !signatures.ends_with(row) || starts.is_empty() {
                signatures.extend_from_slice(row);
                starts.push(place);
            }
        }
        let left = starts.len();
        starts.push(len);
        let signatures = Signatures::from_words(queries.bits(), signatures)?;
        Ok(Distinct { signatures, starts, numbers, gone: vec![0; left.div_ceil(64)], left })
    }

    pub(super) fn signatures(&self) -> &Signatures {
        &self.signatures
    }

    /// Queries that have the signature of another.
    pub(super) fn copies(&self) -> usize {
        self.numbers.len() - self.signatures.len()
    }

    /// How many are still asked.
    pub(super) fn left(&self) -> usize {
        self.left
    }

    #[inline]
    pub(super) fn has_left(&self, query: u32) -> bool {
        self.gone[query as usize / 64] >> (query % 64) & 1 == 1
    }

    /// Whether it was there until now.
    pub(super) fn leave(&mut self, query: u32) -> bool {
        let was_there = !self.has_left(query);
        self.gone[query as usize / 64] |= 1 << (query % 64);
        self.left -= usize::from(was_there);
        was_there
    }

    /// The numbers that the queries with this signature were given by.
    pub(super) fn numbers(&self, query: u32) -> &[u32] {
        let query = query as usize;
        &self.numbers[self.starts[query] as usize..self.starts[query + 1] as usize]
    }

    /// Those that are still asked, and which they are.
    pub(super) fn those_left(&self) -> Result<(Signatures, Vec<u32>)> {
        let all = 0..self.signatures.len() as u32;
        let which: Vec<u32> = all.filter(|&query| !self.has_left(query)).collect();
        let words = which.iter().flat_map(|&query| self.signatures.row(query as usize)).copied();
        Ok((Signatures::from_words(self.signatures.bits(), words.collect())?, which))
    }
}
