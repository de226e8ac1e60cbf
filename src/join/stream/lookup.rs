//! Which queries have a key in common with a stored row? For signatures of one word.
//!
//! For each mask the queries are sorted by a hash of the bits that it keeps. Stored rows pass a filter, a bit for each hash
//! that some query has; the few that pass go into parts by the leading bits of the hash, and part after part is compared with
//! its queries inside the cache. The filter stays in the cache as well, so most rows cost no access to memory at all.

use std::ops::Range;

use rayon::prelude::*;

use super::{super::Pair, by_row, queries::Distinct};
use crate::{
    Result,
    hamming::{self, Besides, Kernel, Near, READ_PAST, Stretch, prefetch},
};

/// The queries in the order of each mask.
pub(super) struct Lookup {
    orders: Vec<Order>,
    kernel: Kernel,
    radius: u32,
    len: usize,
}

/// The queries sorted by the hash of some of their bits.
struct Order {
    mask: u64,
    filter: Option<Filter>,
    /// Leading bits of the hash that tell the part, and those that tell the slot.
    part_bits: u32,
    slot_bits: u32,
    /// Where the queries of each slot begin, and the end.
    offsets: Vec<u32>,
    /// The queries, and some bytes that vectors may read.
    words: Vec<u64>,
    numbers: Vec<u32>,
}

/// Which hashes there are.
struct Filter {
    hash_bits: u32,
    bits: Vec<u64>,
}

/// Something on its way to its part: a row of a window, or a query.
#[derive(Clone, Copy)]
struct Cell {
    word: u64,
    slot: u32,
    number: u32,
}

/// What one thread works with.
#[derive(Default)]
pub(super) struct Scratch {
    parts: Vec<Vec<Cell>>,
    stretches: Vec<Stretch>,
    near: Vec<Near>,
    /// What was found in the latest window, by row.
    pub(super) met: Vec<Pair>,
    pub(super) compared: u64,
}

/// Queries of a part, which stay in the second level of the cache.
const PART: usize = 1 << 14;
/// More places to write to at once are slow.
const MOST_PART_BITS: u32 = 10;
/// Each slot has an offset.
const MOST_SLOT_BITS: u32 = 26;
/// A filter has this many bits for each query, as long as it fits into the cache.
const FILTER_BITS_A_QUERY: usize = 16;
/// Half a megabyte.
const MOST_FILTER_BITS: u32 = 22;
/// A filter with fewer bits a query lets nearly everything pass.
const LEAST_FILTER_BITS_A_QUERY: usize = 2;
/// Rows that are filtered together.
const FILTERED: usize = 1 << 10;
/// Stretches that wait to be compared.
const WAITING: usize = 1 << 10;
/// Offsets that are on their way while one is looked at.
const AHEAD: usize = 16;
/// More queries than these for each row and mask are not compared one by one.
const CROWDED: u64 = 256;

/// Every bit of the row reaches the leading bits of the hash.
#[inline(always)]
fn hash(word: u64) -> u64 {
    (word ^ word >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The leading bits.
#[inline(always)]
fn leading(hash: u64, bits: u32) -> usize {
    hash.unbounded_shr(64 - bits) as usize
}

impl Lookup {
    /// Sorts the queries that are still asked by each mask.
    pub(super) fn new(queries: &Distinct, masks: Vec<u64>, radius: u32) -> Result<Self> {
        let len = queries.left();
        let order = |parts: &mut Vec<Vec<Cell>>, mask| Order::new(queries, mask, parts);
        let orders = masks.into_par_iter().map_init(Vec::new, order).collect();
        Ok(Lookup { orders, kernel: hamming::kernel()?, radius, len })
    }

    pub(super) fn masks(&self) -> Vec<u64> {
        self.orders.iter().map(|order| order.mask).collect()
    }

    /// How many queries were sorted.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn bytes(&self) -> u64 {
        self.orders.iter().map(Order::bytes).sum()
    }

    /// Whether rows like these meet so many queries that comparing one by one would take too long.
    pub(super) fn is_crowded(&self, rows: &[u64]) -> bool {
        let met = self.orders.iter().flat_map(|order| {
            rows.iter().map(|&row| order.bucket(order.slot(hash(row & order.mask))).len() as u64)
        });
        met.sum::<u64>() > CROWDED * (rows.len() * self.orders.len()) as u64
    }

    /// The queries near the rows of a piece of a window, in `scratch.met`, by row. Stops where there are too many.
    pub(super) fn meet(
        &self,
        rows: &[u64],
        first: usize,
        most: u64,
        scratch: &mut Scratch,
        has_left: impl Fn(u32) -> bool,
    ) {
        scratch.met.clear();
        scratch.compared = 0;
        for (number, order) in self.orders.iter().enumerate() {
            order.scatter_rows(rows, first, &mut scratch.parts);
            let task = Task { lookup: self, order, number, has_left: &has_left };
            let mut parts = std::mem::take(&mut scratch.parts);
            for part in &mut parts {
                if scratch.met.len() as u64 <= most {
                    task.compare_part(part, scratch);
                }
                part.clear();
            }
            scratch.parts = parts;
        }
        scratch.met.sort_unstable_by_key(by_row);
    }
}

/// One mask at work.
struct Task<'a, F> {
    lookup: &'a Lookup,
    order: &'a Order,
    /// Which mask it is.
    number: usize,
    has_left: &'a F,
}

impl<F: Fn(u32) -> bool> Task<'_, F> {
    fn compare_part(&self, part: &[Cell], scratch: &mut Scratch) {
        for (i, cell) in part.iter().enumerate() {
            if let Some(later) = part.get(i + AHEAD) {
                prefetch(&self.order.offsets, later.slot as usize);
            }
            let Range { start, end } = self.order.bucket(cell.slot as usize);
            if start < end {
                // By the time that it is compared, it is there.
                prefetch(&self.order.words, start as usize);
                let (query, allowed, tag) = (cell.word, self.lookup.radius, cell.number);
                scratch.stretches.push(Stretch { query, start, end, allowed, tag });
                scratch.compared += u64::from(end - start);
                if scratch.stretches.len() >= WAITING {
                    self.compare(scratch);
                }
            }
        }
        self.compare(scratch);
    }

    /// Compares what waits. A pair belongs to the first mask that finds it.
    fn compare(&self, scratch: &mut Scratch) {
        let Scratch { stretches, near, met, .. } = scratch;
        self.lookup.kernel.check_whole(stretches, &self.order.words, &mut Besides::default(), near);
        for near in near.iter() {
            let stretch = &stretches[near.stretch as usize];
            let differences = stretch.query ^ self.order.words[near.row as usize];
            let a = self.order.numbers[near.row as usize];
            let mut earlier = self.lookup.orders[..self.number].iter();
            if earlier.all(|order| order.mask & differences != 0) && !(self.has_left)(a) {
                met.push(Pair { a, b: stretch.tag, distance: differences.count_ones() });
            }
        }
        stretches.clear();
        near.clear();
    }
}

impl Order {
    fn new(queries: &Distinct, mask: u64, parts: &mut Vec<Vec<Cell>>) -> Self {
        let len = queries.left();
        // As many slots as queries, or up to twice as many.
        let slot_bits = len.max(2).next_power_of_two().ilog2().min(MOST_SLOT_BITS);
        let part_bits = len.div_ceil(PART).next_power_of_two().ilog2().min(MOST_PART_BITS);
        let mut order = Order {
            mask,
            filter: None,
            part_bits: part_bits.min(slot_bits),
            slot_bits,
            offsets: vec![0; (1 << slot_bits) + 1],
            words: vec![0; len + READ_PAST / 8],
            numbers: vec![0; len],
        };
        order.fill(queries, parts);
        order.filter = Filter::new(&order.words[..len], mask);
        order
    }

    /// Queries go into parts, and each part is sorted by counting, inside the cache.
    fn fill(&mut self, queries: &Distinct, parts: &mut Vec<Vec<Cell>>) {
        let words = queries.signatures().words().iter().copied();
        let asked = (0..).zip(words).filter(|&(query, _)| !queries.has_left(query));
        self.scatter(asked, parts);
        let slots = 1 << (self.slot_bits - self.part_bits);
        let mut start = 0_u32;
        for (number, part) in parts.iter_mut().enumerate() {
            let ends = &mut self.offsets[number * slots + 1..][..slots];
            let slot = |cell: &Cell| cell.slot as usize % slots;
            part.iter().for_each(|cell| ends[slot(cell)] += 1);
            // Each end begins as the start of its slot and moves on with every query that is placed.
            let mut end = start;
            ends.iter_mut().for_each(|count| end += std::mem::replace(count, end));
            for cell in part.iter() {
                let end = &mut ends[slot(cell)];
                self.words[*end as usize] = cell.word;
                self.numbers[*end as usize] = cell.number;
                *end += 1;
            }
            start += part.len() as u32;
            part.clear();
        }
    }

    /// Puts the rows that the filter lets through into their parts.
    fn scatter_rows(&self, rows: &[u64], first: usize, parts: &mut Vec<Vec<Cell>>) {
        let Some(filter) = &self.filter else {
            return self.scatter((first as u32..).zip(rows.iter().copied()), parts);
        };
        let mut passed = [0_u16; FILTERED];
        for (block, first) in rows.chunks(FILTERED).zip((first..).step_by(FILTERED)) {
            // Nobody can foresee which rows pass: a branch for each would be guessed wrong too often.
            let mut count = 0;
            for (i, word) in (0..).zip(block) {
                passed[count % FILTERED] = i;
                count += usize::from(filter.has(hash(word & self.mask)));
            }
            let passed = passed[..count].iter();
            let rows = passed.map(|&i| (first as u32 + u32::from(i), block[usize::from(i)]));
            self.scatter(rows, parts);
        }
    }

    #[inline(always)]
    fn scatter(&self, all: impl Iterator<Item = (u32, u64)>, parts: &mut Vec<Vec<Cell>>) {
        parts.resize_with(1 << self.part_bits, Vec::new);
        for (number, word) in all {
            let hash = hash(word & self.mask);
            let slot = self.slot(hash) as u32;
            parts[leading(hash, self.part_bits)].push(Cell { word, slot, number });
        }
    }

    #[inline(always)]
    fn slot(&self, hash: u64) -> usize {
        leading(hash, self.slot_bits)
    }

    #[inline(always)]
    fn bucket(&self, slot: usize) -> Range<u32> {
        self.offsets[slot]..self.offsets[slot + 1]
    }

    fn bytes(&self) -> u64 {
        let filter = self.filter.as_ref().map_or(0, |filter| filter.bits.len());
        (8 * (self.words.len() + filter) + 4 * (self.numbers.len() + self.offsets.len())) as u64
    }
}

impl Filter {
    fn new(queries: &[u64], mask: u64) -> Option<Self> {
        let wanted = (queries.len() * FILTER_BITS_A_QUERY).max(64).next_power_of_two();
        // More bits than the mask keeps tell nothing more.
        let hash_bits = wanted.ilog2().min(MOST_FILTER_BITS).min(mask.count_ones().max(6));
        if queries.len() * LEAST_FILTER_BITS_A_QUERY > 1 << hash_bits {
            return None;
        }
        let mut bits = vec![0; 1 << (hash_bits - 6)];
        for query in queries {
            let place = leading(hash(query & mask), hash_bits);
            bits[place / 64] |= 1 << (place % 64);
        }
        Some(Filter { hash_bits, bits })
    }

    #[inline(always)]
    fn has(&self, hash: u64) -> bool {
        let place = leading(hash, self.hash_bits);
        self.bits[place / 64] >> (place % 64) & 1 == 1
    }
}

impl Scratch {
    pub(super) fn bytes(&self) -> u64 {
        let cells: usize = self.parts.iter().map(Vec::capacity).sum();
        (cells * size_of::<Cell>() + self.met.capacity() * size_of::<Pair>()) as u64
    }
}
