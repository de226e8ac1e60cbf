//! Rows by key, part after part: as many parts at a time as fit into the memory, each small enough for the cache.

use std::ops::Range;

use rayon::prelude::*;

use super::rows::{Keys, Rows, hash};
use crate::{
    Result,
    mapped::CellsMut,
    table::{chunks, no_memory, places, split_mut},
};

/// A row on its way to others with its key: the first word of its signature, its key and its number.
pub(super) type Cell = [u64; 2];

pub(super) const CELL_BYTES: u64 = size_of::<Cell>() as u64;

/// More is taken by no row, but by those of many words.
const MOST_ROW_BYTES: u64 = 128;
/// Rows of a part that stay in the second level of the cache while they are sorted and compared.
const PART_ROWS: usize = 1 << 14;
/// More places to write to at once are slow.
const MOST_PART_BITS: u32 = 11;

/// Runs an expression with what takes the key of a row, compiled for each kind of keys.
macro_rules! by_key {
    ($keys:expr, $key:ident => $run:expr) => {
        match *$keys {
            Keys::Stretches(bits) => {
                let $key = move |_: usize, row: &[u64]| bits.take(row[0]) as u32;
                $run
            }
            Keys::Hash(width) => {
                let $key = move |_: usize, row: &[u64]| hash(row, width);
                $run
            }
            ref keys => {
                let $key = |number: usize, row: &[u64]| keys.of(number, row);
                $run
            }
        }
    };
}
/// How the distinct rows are spread over parts: by the leading bits of their keys.
pub(super) struct Partition<'a> {
    rows: &'a Rows<'a>,
    keys: Keys,
    /// Bits of the key that do not tell the part.
    low: u32,
    /// Ranges of rows, each of which fits into the memory.
    chunks: Vec<Range<usize>>,
    /// Rows of each part, in each chunk.
    counts: Vec<Vec<usize>>,
}

/// Some parts, of some chunks of the rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) parts: Range<usize>,
    chunks: Range<usize>,
}

/// How many leading bits of a key of `width` bits tell the part: parts that fit into the cache, and several of them into
/// the memory.
pub(super) fn part_bits(rows: usize, width: u32, memory: u64) -> u32 {
    let for_cache = rows.div_ceil(PART_ROWS) as u64;
    let for_memory = (rows as u64 * CELL_BYTES * 8).div_ceil(memory.max(1));
    let parts = for_cache.max(for_memory).next_power_of_two();
    parts.ilog2().min(MOST_PART_BITS).min(width)
}

impl<'a> Partition<'a> {
    /// Counts the rows of each part. Keys have `width` bits, of which the first `parts` tell the part.
    pub(super) fn new(rows: &'a Rows<'a>, keys: Keys, width: u32, parts: u32, memory: u64) -> Self {
        let low = width - parts;
        let fitting = (memory / 8 / MOST_ROW_BYTES) as usize;
        let chunks: Vec<Range<usize>> = chunks(rows.len())
            .into_iter()
            .flat_map(|chunk| {
                chunk
                    .clone()
                    .step_by(fitting.max(1))
                    .map(move |start| start..(start + fitting).min(chunk.end))
            })
            .collect();
        let count = |chunk: &Range<usize>| {
            let mut counts = vec![0; 1 << parts];
            by_key!(&keys, key => rows.for_each(chunk.clone(), |number, row| {
                counts[(key(number, row) >> low) as usize] += 1;
            }));
            counts
        };
        let counts = chunks.par_iter().map(count).collect();
        Partition { rows, keys, low, chunks, counts }
    }

    pub(super) fn keys(&self) -> &Keys {
        &self.keys
    }

    pub(super) fn low_bits(&self) -> u32 {
        self.low
    }

    fn parts(&self) -> usize {
        self.counts.first().map_or(0, Vec::len)
    }

    fn rows_of(&self, part: usize) -> usize {
        self.counts.iter().map(|counts| counts[part]).sum()
    }

    /// What fits into the memory together, at so many bytes a row: parts in a row, or pieces of a large part.
    pub(super) fn groups(&self, memory: u64, row_bytes: u64) -> Vec<Group> {
        let (mut groups, mut start, mut taken) = (Vec::new(), 0, 0);
        let all = 0..self.chunks.len();
        for part in 0..self.parts() {
            let bytes = self.rows_of(part) as u64 * row_bytes;
            if taken + bytes > memory {
                groups.push(Group { parts: start..part, chunks: all.clone() });
                (start, taken) = (part, 0);
            }
            taken += bytes;
            if bytes > memory {
                groups.extend(self.pieces(part, memory / row_bytes));
                (start, taken) = (part + 1, 0);
            }
        }
        groups.push(Group { parts: start..self.parts(), chunks: all });
        groups.retain(|group| !group.parts.is_empty());
        groups
    }

    /// Pieces of at most so many rows of a part that is too large; none is smaller than what a chunk has of it.
    fn pieces(&self, part: usize, most: u64) -> Vec<Group> {
        let (mut pieces, mut start, mut taken) = (Vec::new(), 0, 0);
        for (chunk, counts) in self.counts.iter().enumerate() {
            let rows = counts[part] as u64;
            if taken + rows > most {
                pieces.push(Group { parts: part..part + 1, chunks: start..chunk });
                (start, taken) = (chunk, 0);
            }
            taken += rows;
        }
        pieces.push(Group { parts: part..part + 1, chunks: start..self.chunks.len() });
        pieces
    }

    /// Whether some parts are cut into pieces.
    pub(super) fn has_pieces(&self, groups: &[Group]) -> bool {
        groups.iter().any(|group| group.chunks.len() < self.chunks.len())
    }

    /// Reads all rows once, and keeps those of a group.
    pub(super) fn load<'r>(
        &self,
        Group { parts, chunks }: &Group,
        room: &'r mut Room,
    ) -> Result<Loaded<'r>> {
        let counts = self.counts[chunks.clone()].iter();
        let counts: Vec<Vec<usize>> = counts.map(|counts| counts[parts.clone()].to_vec()).collect();
        let len = counts.iter().flatten().sum();
        let cells = room.cells(len)?;
        let (starts, places) = places(&mut *cells, &counts, parts.len());
        self.chunks[chunks.clone()].par_iter().zip(places).for_each(|(chunk, places)| {
            let mut places: Vec<_> = places.into_iter().map(<[Cell]>::iter_mut).collect();
            let (low, first, len) = (self.low, parts.start, parts.len());
            let part = move |key: u32| ((key >> low) as usize).wrapping_sub(first);
            // Other groups have the other parts.
            by_key!(&self.keys, key => self.rows.for_each_of(
                chunk.clone(),
                |number, row| part(key(number, row)) < len,
                |number, row| {
                    let key = key(number, row);
                    if let Some(place) = places[part(key)].next() {
                        *place = [row[0], u64::from(key) << 32 | number as u64];
                    }
                },
            ));
        });
        Ok(Loaded { first: parts.start, cells, starts })
    }
}

/// Memory for cells, which stays from one group to the next: new memory is zeroed first.
#[derive(Default)]
pub(super) struct Room(Option<CellsMut<Cell>>);

impl Room {
    fn cells(&mut self, len: usize) -> Result<&mut [Cell]> {
        let cells = match self.0.take() {
            Some(cells) if cells.len() >= len => cells,
            // The next group may be a little larger. What is never written takes no memory.
            _ => CellsMut::zeroed(len + len / 4).map_err(no_memory)?,
        };
        Ok(&mut self.0.insert(cells).as_mut_slice()[..len])
    }
}

/// Some of the parts.
pub(super) struct Loaded<'r> {
    first: usize,
    cells: &'r mut [Cell],
    starts: Vec<usize>,
}

impl Loaded<'_> {
    /// How much memory they take.
    pub(super) fn bytes(&self) -> u64 {
        self.starts.last().map_or(0, |&cells| cells as u64 * CELL_BYTES)
    }

    /// Each part with its number.
    pub(super) fn split(&mut self) -> Vec<(usize, &[Cell])> {
        let first = self.first;
        let parts = split_mut(self.cells, &self.starts).into_iter();
        parts.enumerate().map(|(i, part)| (first + i, &*part)).collect()
    }
}
