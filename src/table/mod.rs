//! Tables: from a key, some of the bits of a signature, to the rows that have it.
//!
//! There is one table for all methods. Its rows are sorted by key, and `offsets[key]..offsets[key + 1]` are the rows of
//! a key. How many bits a key has follows from the number of rows: with a few rows to a key the offsets are small and
//! still lead close. With [`Stored::Lines`] there are no offsets: a key leads to a line of the cache that has its rows.

mod distinct;
mod layout;
mod lines;
mod partition;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

pub(crate) use distinct::{Copies, CopiesView, Distinct};
pub(crate) use layout::{Fields, Stretches};
pub use layout::{KeyLayout, WIDEST_KEY};
pub(crate) use lines::{Lines, expected_elsewhere};

use crate::{
    Error, Result, Signatures,
    hamming::READ_PAST,
    mapped::{Cells, CellsMut},
};
pub(crate) use partition::{Parts, chunks, places, split_mut};

/// What a table stores of each row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stored {
    /// The whole signature of one word: 8 bytes a row.
    Whole,
    /// What the key does not already say of a signature of one word: 6 bytes a row. Keys have at least
    /// `bits - `[`SPLIT_BITS`] bits.
    Split,
    /// The whole signature of one word, not behind offsets but in a line of the cache for each key: the fastest, and 64
    /// bytes a key, which have room for up to seven rows.
    Lines,
    /// The row's number: 4 bytes a row, and the signature is somewhere else.
    Numbers,
}

/// The most bits that [`Stored::Split`] has room for.
pub const SPLIT_BITS: u32 = 48;

impl Stored {
    /// Bytes for each row. In lines only those that their line has no room for take any: few, unless many share a key.
    pub fn bytes(self) -> u64 {
        match self {
            Stored::Whole | Stored::Lines => 8,
            Stored::Split => 6,
            Stored::Numbers => 4,
        }
    }

    /// Bytes for each key.
    pub fn key_bytes(self) -> u64 {
        match self {
            Stored::Whole | Stored::Split | Stored::Numbers => 4,
            Stored::Lines => 64,
        }
    }

    /// The name, as people write it.
    pub fn name(self) -> &'static str {
        match self {
            Stored::Whole => "whole",
            Stored::Split => "split",
            Stored::Lines => "lines",
            Stored::Numbers => "numbers",
        }
    }

    /// Whether a table with such a key can store rows of `bits` bits so.
    pub fn suits(self, bits: u32, key_width: u32) -> bool {
        match self {
            Stored::Whole | Stored::Lines => bits <= 64,
            Stored::Split => bits <= 64 && bits - key_width.min(bits) <= SPLIT_BITS,
            Stored::Numbers => bits > 64,
        }
    }
}

/// Rows by key.
#[derive(Debug, Clone)]
pub struct Table {
    layout: KeyLayout,
    pub(crate) fields: Fields,
    /// The bits that are not in the key.
    pub(crate) rest: Fields,
    pub(crate) offsets: Cells<u32>,
    pub(crate) rows: Rows,
}

/// The rows of a table, with some cells behind the last that a vector may read.
#[derive(Debug, Clone)]
pub(crate) enum Rows {
    Whole(Cells<u64>),
    /// The low 32 bits of what is left, and the high 16.
    Split(Cells<u32>, Cells<u16>),
    Lines(Lines),
    Numbers(Cells<u32>),
}

/// How many bits a key of a table with so many rows has: a few rows to a key.
pub fn key_width(rows: usize) -> u32 {
    (rows.max(1).ilog2()).saturating_sub(2).min(WIDEST_KEY)
}

pub(crate) fn no_memory(error: std::io::Error) -> Error {
    Error::Memory { source: error }
}

/// A row on its way into a table: its signature if that is one word, otherwise its key and its number.
type Item = u64;

impl Table {
    /// A table of the distinct ones of `rows`, built on all cores: count, fill.
    pub(crate) fn build(
        layout: KeyLayout,
        stored: Stored,
        rows: &Signatures,
        distinct: &Distinct,
    ) -> Result<Self> {
        let (fields, rest) = (layout.fields(), layout.rest(rows.bits()).fields());
        let width = layout.width();
        let item = |i: usize| match stored {
            Stored::Numbers => {
                let row = distinct.firsts[i];
                fields.take(rows.row(row as usize)) << 32 | u64::from(row)
            }
            Stored::Whole | Stored::Split | Stored::Lines => distinct.words[i],
        };
        let key = |item: &Item| match stored {
            Stored::Numbers => item >> 32,
            Stored::Whole | Stored::Split | Stored::Lines => fields.take_word(*item),
        };
        let leading = width.min(10);
        let part_of = |item: &Item| (key(item) >> (width - leading)) as usize;
        let len = distinct.firsts.len();
        let mut parts = Parts::new(len, 1 << leading, item, part_of).map_err(no_memory)?;

        let mut offsets = CellsMut::zeroed((1 << width) + 1).map_err(no_memory)?;
        let keys_of_part = 1 << (width - leading);
        let buckets = offsets.as_mut_slice()[1..].par_chunks_mut(keys_of_part);
        let mut filler = Filler::new(stored, len, &rest)?;
        let starts = parts.starts().to_vec();
        let work = parts.split_mut().into_par_iter().zip(filler.split(&starts)).zip(buckets);
        let low_key = |item: &Item| key(item) as usize & (keys_of_part - 1);
        work.zip(&starts).for_each(|(((items, mut out), ends), &start)| {
            items.iter().for_each(|item| ends[low_key(item)] += 1);
            // Each end begins as the start of its rows and moves on with every row that is placed.
            let mut end = 0;
            ends.iter_mut().for_each(|count| end += std::mem::replace(count, end));
            for item in items.iter() {
                let end = &mut ends[low_key(item)];
                out.place(*end as usize, *item);
                *end += 1;
            }
            ends.iter_mut().for_each(|end| *end += start as u32);
        });
        let rows = filler.freeze()?;
        let offsets = offsets.freeze().map_err(no_memory)?;
        let (offsets, rows) = match (stored, rows) {
            (Stored::Lines, Rows::Whole(words)) => {
                let lines = Lines::of(offsets.as_slice(), words.as_slice())?;
                (Cells::copy_of(&[]).map_err(no_memory)?, Rows::Lines(lines))
            }
            (_, rows) => (offsets, rows),
        };
        Ok(Table { layout, fields, rest, offsets, rows })
    }

    /// A table whose cells are already there: those of a file.
    pub(crate) fn from_cells(
        layout: KeyLayout,
        bits: u32,
        offsets: Cells<u32>,
        rows: Rows,
    ) -> Self {
        let (fields, rest) = (layout.fields(), layout.rest(bits).fields());
        Table { layout, fields, rest, offsets, rows }
    }

    /// Which bits form the key.
    pub fn layout(&self) -> &KeyLayout {
        &self.layout
    }

    /// How much memory the table takes.
    pub fn bytes(&self) -> u64 {
        let rows = match &self.rows {
            Rows::Whole(words) => size_of_val(words.as_slice()),
            Rows::Split(low, high) => size_of_val(low.as_slice()) + size_of_val(high.as_slice()),
            Rows::Lines(lines) => lines.bytes(),
            Rows::Numbers(numbers) => size_of_val(numbers.as_slice()),
        };
        (size_of_val(self.offsets.as_slice()) + rows) as u64
    }
}

/// The rows of a table while they are placed.
struct Filler<'a> {
    rows: RowsMut,
    rest: &'a Fields,
}

enum RowsMut {
    Whole(CellsMut<u64>),
    Split(CellsMut<u32>, CellsMut<u16>),
    Numbers(CellsMut<u32>),
}

/// The rows of one part.
struct Place<'a> {
    rows: PlaceRows<'a>,
    rest: &'a Fields,
}

enum PlaceRows<'a> {
    Whole(&'a mut [u64]),
    Split(&'a mut [u32], &'a mut [u16]),
    Numbers(&'a mut [u32]),
}

impl<'a> Filler<'a> {
    fn new(stored: Stored, len: usize, rest: &'a Fields) -> Result<Self> {
        let rows = match stored {
            Stored::Whole | Stored::Lines => {
                CellsMut::zeroed(len + READ_PAST / 8).map(RowsMut::Whole)
            }
            Stored::Split => CellsMut::zeroed(len + READ_PAST / 4)
                .and_then(|low| Ok(RowsMut::Split(low, CellsMut::zeroed(len)?))),
            Stored::Numbers => CellsMut::zeroed(len).map(RowsMut::Numbers),
        };
        Ok(Filler { rows: rows.map_err(no_memory)?, rest })
    }

    fn split(&mut self, starts: &[usize]) -> Vec<Place<'_>> {
        let rest = self.rest;
        let place = |rows| Place { rows, rest };
        match &mut self.rows {
            RowsMut::Whole(words) => {
                let parts = split_mut(words.as_mut_slice(), starts).into_iter();
                parts.map(|words| place(PlaceRows::Whole(words))).collect()
            }
            RowsMut::Split(low, high) => {
                let low = split_mut(low.as_mut_slice(), starts).into_iter();
                let parts = low.zip(split_mut(high.as_mut_slice(), starts));
                parts.map(|(low, high)| place(PlaceRows::Split(low, high))).collect()
            }
            RowsMut::Numbers(numbers) => {
                let parts = split_mut(numbers.as_mut_slice(), starts).into_iter();
                parts.map(|numbers| place(PlaceRows::Numbers(numbers))).collect()
            }
        }
    }

    fn freeze(self) -> Result<Rows> {
        let rows = match self.rows {
            RowsMut::Whole(words) => words.freeze().map(Rows::Whole),
            RowsMut::Split(low, high) => {
                low.freeze().and_then(|low| Ok(Rows::Split(low, high.freeze()?)))
            }
            RowsMut::Numbers(numbers) => numbers.freeze().map(Rows::Numbers),
        };
        rows.map_err(no_memory)
    }
}

impl Place<'_> {
    #[inline]
    fn place(&mut self, at: usize, item: Item) {
        match &mut self.rows {
            PlaceRows::Whole(words) => words[at] = item,
            PlaceRows::Split(low, high) => {
                let rest = self.rest.take_word(item);
                (low[at], high[at]) = (rest as u32, (rest >> 32) as u16);
            }
            PlaceRows::Numbers(numbers) => numbers[at] = item as u32,
        }
    }
}
