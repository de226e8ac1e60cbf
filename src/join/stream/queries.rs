//! The queries without copies, and which of them are still asked.

use std::slice;

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
        if queries.stride() == 1 {
            // With the word at hand, so that nothing is looked up.
            let numbered = queries.words().par_iter().copied().zip(0..len);
            let mut numbered: Vec<(u64, u32)> = numbered.collect();
            numbered.par_sort_unstable();
            let rows = numbered.iter().map(|(word, number)| (slice::from_ref(word), *number));
            return Distinct::of_sorted(queries.bits(), rows);
        }
        let mut numbers: Vec<u32> = (0..len).collect();
        let row = |number: u32| queries.row(number as usize);
        numbers.par_sort_unstable_by(|&a, &b| row(a).cmp(row(b)).then(a.cmp(&b)));
        Distinct::of_sorted(queries.bits(), numbers.iter().map(|&number| (row(number), number)))
    }

    fn of_sorted<'a>(
        bits: u32,
        rows: impl ExactSizeIterator<Item = (&'a [u64], u32)>,
    ) -> Result<Self> {
        let len = rows.len();
        let (mut words, mut numbers) = (Vec::with_capacity(len), Vec::with_capacity(len));
        let mut starts: Vec<u32> = Vec::with_capacity(len + 1);
        for (row, number) in rows {
            if !words.ends_with(row) || starts.is_empty() {
                words.extend_from_slice(row);
                starts.push(numbers.len() as u32);
            }
            numbers.push(number);
        }
        let left = starts.len();
        starts.push(len as u32);
        let signatures = Signatures::from_words(bits, words)?;
        Ok(Distinct { signatures, starts, numbers, gone: vec![0; left.div_ceil(64)], left })
    }

    pub(super) fn bytes(&self) -> u64 {
        let words = self.signatures.words().len() + self.gone.len();
        (8 * words + 4 * (self.starts.len() + self.numbers.len())) as u64
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
