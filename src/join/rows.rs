//! The rows of a join: one matrix or two, seen as one, with copies taken out.

use std::ops::Range;

use rayon::prelude::*;

use super::{
    block::{Block, View},
    partition::{CELL_BYTES, Partition, Room, part_bits},
};
use crate::{
    Error, Result, Signatures,
    hamming::prefetch,
    table::{Fields, KeyLayout, Stretches},
};

/// Rows that are joined. Those of the second matrix are numbered behind those of the first.
pub(super) struct Rows<'a> {
    bits: u32,
    stride: usize,
    /// The words of each matrix.
    words: [&'a [u64]; 2],
    is_cross: bool,
    /// How many rows the first matrix has.
    boundary: usize,
    pub(super) copies: Copies,
}

/// Rows that have the signature of an earlier row of the same matrix.
#[derive(Default)]
pub(super) struct Copies {
    /// The earliest row and its copy, sorted.
    pairs: Vec<(u32, u32)>,
    /// One bit a row; nothing if there are no copies.
    is_copy: Vec<u64>,
    has_copies: Vec<u64>,
    /// Where the pairs of 64 rows start, and the end.
    starts: Vec<u32>,
}

/// What a row's key is.
pub(super) enum Keys {
    /// Some of its bits.
    Bits(Fields),
    /// The same of rows of one word.
    Stretches(Stretches),
    /// So many bits of a hash of all of them.
    Hash(u32),
    /// Nothing: rows are compared with all others, so many at a time.
    Chunk(usize),
}

impl Keys {
    /// The bits of a key of rows of so many words.
    pub(super) fn new(layout: &KeyLayout, stride: usize) -> Self {
        let fields = layout.fields();
        match fields.stretches().filter(|_| stride == 1) {
            Some(stretches) => Keys::Stretches(stretches),
            None => Keys::Bits(fields),
        }
    }

    #[inline(always)]
    pub(super) fn of(&self, number: usize, row: &[u64]) -> u32 {
        match self {
            Keys::Bits(fields) => fields.take(row) as u32,
            Keys::Stretches(stretches) => stretches.take(row[0]) as u32,
            Keys::Hash(width) => hash(row, *width),
            Keys::Chunk(size) => (number / size) as u32,
        }
    }
}

impl<'a> Rows<'a> {
    pub(super) fn new(first: &'a Signatures, second: Option<&'a Signatures>) -> Result<Self> {
        if let Some(second) = second.filter(|second| second.bits() != first.bits()) {
            return Err(Error::WidthMismatch { stored: second.bits(), given: first.bits() });
        }
        let rows = Rows {
            bits: first.bits(),
            stride: first.stride(),
            words: [first.words(), second.map_or(&[], Signatures::words)],
            is_cross: second.is_some(),
            boundary: first.len(),
            copies: Copies::default(),
        };
        match u32::try_from(rows.len()) {
            Ok(_) => Ok(rows),
            Err(_) => Err(Error::TooManyRows { rows: rows.len() }),
        }
    }

    /// How many rows there are in both.
    pub(super) fn len(&self) -> usize {
        self.boundary + self.words[1].len() / self.stride
    }

    /// Whether the first matrix is joined with the second, and not with itself.
    pub(super) fn is_cross(&self) -> bool {
        self.is_cross
    }

    /// The sizes of the two sides; of a self-join, one side.
    pub(super) fn sides(&self) -> [usize; 2] {
        [self.boundary, self.len() - self.boundary]
    }

    pub(super) fn bits(&self) -> u32 {
        self.bits
    }

    pub(super) fn stride(&self) -> usize {
        self.stride
    }

    /// 1 for rows of the second matrix.
    #[inline(always)]
    pub(super) fn side(&self, row: u32) -> usize {
        usize::from(row as usize >= self.boundary)
    }

    /// The number that a row has in its own matrix.
    #[inline(always)]
    pub(super) fn own_number(&self, row: u32) -> u32 {
        match self.side(row) {
            0 => row,
            _ => row - self.boundary as u32,
        }
    }

    #[inline(always)]
    pub(super) fn row(&self, row: usize) -> &'a [u64] {
        let (words, row) = match row.checked_sub(self.boundary) {
            Some(row) => (self.words[1], row),
            None => (self.words[0], row),
        };
        &words[row * self.stride..][..self.stride]
    }

    /// Each of the rows with its number, without copies.
    #[inline(always)]
    pub(super) fn for_each(&self, rows: Range<usize>, mut each: impl FnMut(usize, &'a [u64])) {
        if self.is_simple() {
            let is_copy = self.copies.tell();
            for (number, row) in rows.clone().zip(self.words[0][rows].chunks_exact(1)) {
                if !is_copy(number) {
                    each(number, row);
                }
            }
            return;
        }
        let (boundary, is_copy) = (self.boundary, self.copies.tell());
        let first = rows.start.min(boundary)..rows.end.min(boundary);
        let second = rows.start.max(boundary)..rows.end.max(boundary);
        for (words, range, start) in [(self.words[0], first, 0), (self.words[1], second, boundary)]
        {
            let of_range = (range.start - start) * self.stride..(range.end - start) * self.stride;
            for (number, row) in range.zip(words[of_range].chunks_exact(self.stride)) {
                if !is_copy(number) {
                    each(number, row);
                }
            }
        }
    }

    /// The same for those that `takes` says. Of many rows that is hard to guess: there is no branch for each.
    #[inline(always)]
    pub(super) fn for_each_of(
        &self,
        rows: Range<usize>,
        takes: impl Fn(usize, &[u64]) -> bool,
        mut each: impl FnMut(usize, &'a [u64]),
    ) {
        if !self.is_simple() {
            return self.for_each(rows, |number, row| {
                if takes(number, row) {
                    each(number, row);
                }
            });
        }
        let is_copy = self.copies.tell();
        for start in rows.clone().step_by(64) {
            let words = &self.words[0][start..(start + 64).min(rows.end)];
            let mut taken = 0_u64;
            for (i, word) in words.iter().enumerate() {
                taken |= u64::from(takes(start + i, std::slice::from_ref(word))) << i;
            }
            while taken != 0 {
                let i = taken.trailing_zeros() as usize;
                if !is_copy(start + i) {
                    each(start + i, &words[i..=i]);
                }
                taken &= taken - 1;
            }
        }
    }

    /// Whether this is the usual case, which has a form that the compiler makes quick: one matrix of one word a row.
    #[inline(always)]
    fn is_simple(&self) -> bool {
        self.stride == 1 && !self.is_cross
    }

    /// Finds the copies, with at most so many bytes at a time.
    pub(super) fn find_copies(&mut self, memory: u64, room: &mut Room) -> Result<()> {
        let width = self.len().max(2).ilog2().min(28);
        let parts = part_bits(self.len(), width, memory);
        let partition = Partition::new(self, Keys::Hash(width), width, parts, memory);
        let mut pairs = Vec::new();
        // Copies that end up in different pieces of a part are found later, as rows at distance 0.
        for group in partition.groups(memory, CELL_BYTES) {
            let mut loaded = partition.load(&group, room)?;
            let found: Vec<Vec<(u32, u32)>> = loaded
                .split()
                .into_par_iter()
                .map_init(Block::default, |block, (_, cells)| {
                    block.fill(self, cells, partition.keys(), partition.low_bits(), false);
                    let mut found = Vec::new();
                    for bucket in block.slots().map(|slot| block.bucket(slot)) {
                        match bucket.len() {
                            0 | 1 => {}
                            2..=FEW => self.copies_among_few(block.view(bucket), &mut found),
                            _ => self.copies_among_many(block.view(bucket), &mut found),
                        }
                    }
                    found
                })
                .collect();
            pairs.extend(found.into_iter().flatten());
        }
        pairs.par_sort_unstable();
        self.copies = Copies::new(pairs, self.len());
        Ok(())
    }

    fn is_same(&self, rows: View<'_>, a: usize, b: usize) -> bool {
        let (x, y) = (rows.row(a), rows.row(b));
        // The first words tell most rows apart, without a call.
        x[0] == y[0] && x == y && self.side(rows.numbers[a]) == self.side(rows.numbers[b])
    }

    fn copies_among_few(&self, rows: View<'_>, found: &mut Vec<(u32, u32)>) {
        for copy in 1..rows.len() {
            let earliest = (0..copy).find(|&row| self.is_same(rows, row, copy));
            found.extend(earliest.map(|row| (rows.numbers[row], rows.numbers[copy])));
        }
    }

    fn copies_among_many(&self, rows: View<'_>, found: &mut Vec<(u32, u32)>) {
        let mut sorted: Vec<usize> = (0..rows.len()).collect();
        // Those with one signature keep their order, and the sides theirs.
        sorted.sort_by(|&a, &b| rows.row(a).cmp(rows.row(b)));
        for group in sorted.chunk_by(|&a, &b| self.is_same(rows, a, b)) {
            let copies = group[1..].iter().map(|&row| (rows.numbers[group[0]], rows.numbers[row]));
            found.extend(copies);
        }
    }
}

/// Rows of a bucket that are quicker compared than sorted.
const FEW: usize = 8;

/// The leading bits of a multiplicative hash.
#[inline(always)]
pub(super) fn hash(row: &[u64], width: u32) -> u32 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = |hash: u64, word: &u64| ((hash ^ word) ^ (hash ^ word) >> 32).wrapping_mul(ODD);
    (row.iter().fold(0, mixed) >> (64 - width)) as u32
}

impl Copies {
    fn new(pairs: Vec<(u32, u32)>, rows: usize) -> Self {
        if pairs.is_empty() {
            return Copies::default();
        }
        let (mut is_copy, mut has_copies) =
            (vec![0; rows.div_ceil(64)], vec![0; rows.div_ceil(64)]);
        let set = |bits: &mut [u64], row: u32| bits[row as usize / 64] |= 1 << (row % 64);
        let mut starts = vec![0; rows.div_ceil(64) + 1];
        for &(first, copy) in &pairs {
            set(&mut is_copy, copy);
            set(&mut has_copies, first);
            starts[first as usize / 64 + 1] += 1;
        }
        let mut start = 0;
        for count in &mut starts {
            start += *count;
            *count = start;
        }
        Copies { pairs, is_copy, has_copies, starts }
    }

    /// How many rows are copies.
    pub(super) fn len(&self) -> usize {
        self.pairs.len()
    }

    pub(super) fn bytes(&self) -> u64 {
        let bits = size_of_val(&self.is_copy[..]) * 2 + size_of_val(&self.starts[..]);
        (size_of_val(&self.pairs[..]) + bits) as u64
    }

    /// What tells whether a row is a copy.
    #[inline(always)]
    fn tell(&self) -> impl Fn(usize) -> bool + '_ {
        let is_copy = &self.is_copy[..];
        move |row| is_copy.get(row / 64).is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    /// The copies of a row will be asked for.
    #[inline(always)]
    pub(super) fn prefetch(&self, row: u32) {
        prefetch(&self.has_copies, row as usize / 64);
    }

    /// The copies of a row that is the earliest of its signature.
    #[inline(always)]
    pub(super) fn of(&self, first: u32) -> &[(u32, u32)] {
        let word = self.has_copies.get(first as usize / 64);
        match word.is_some_and(|word| word >> (first % 64) & 1 == 1) {
            true => self.search(first),
            false => &[],
        }
    }

    fn search(&self, first: u32) -> &[(u32, u32)] {
        let [start, end] = [0, 1].map(|next| self.starts[first as usize / 64 + next] as usize);
        let pairs = &self.pairs[start..end];
        let start = pairs.partition_point(|pair| pair.0 < first);
        let len = pairs[start..].partition_point(|pair| pair.0 == first);
        &pairs[start..start + len]
    }

    /// The earliest row of each signature that has copies, with these.
    pub(super) fn groups(&self) -> impl Iterator<Item = &[(u32, u32)]> {
        self.pairs.chunk_by(|a, b| a.0 == b.0)
    }
}
