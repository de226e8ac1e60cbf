//! Pairs of documents in order: by the first row, then by the second. What does not fit into memory is sorted on disk.

use std::{
    fs::File,
    io::{Read, Seek, Write},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use bytemuck::{Zeroable, cast_slice, cast_slice_mut};
use rayon::prelude::*;

use super::{Pair, rows::Rows};
use crate::{Error, Result};

/// Where all threads bring the pairs that they find.
pub(super) struct Output<'a> {
    rows: &'a Rows<'a>,
    /// More pairs than this are refused.
    most: u64,
    pairs: AtomicU64,
    stopped: AtomicBool,
    /// Set by whoever does not want the pairs any more.
    stop: &'a AtomicBool,
    sorter: Mutex<Sorter>,
}

/// Pairs on their way into order: in parts, by their first row, each a chain of blocks.
struct Sorter {
    /// The pairs of a part as numbers in their order.
    pairs: Vec<u64>,
    /// Where the next pair of each part goes, unless its block is full: a multiple of the size of blocks.
    ends: Vec<usize>,
    /// Where the block before each block ends; 0 if there is none.
    before: Vec<usize>,
    /// How many bits of the first row do not tell the part.
    low: u32,
    /// How many pairs are held in memory.
    room: usize,
    /// Sorted pairs.
    runs: Vec<File>,
    error: Option<std::io::Error>,
}

/// Pairs that are handed out at a time, and read from a file.
const BATCH: usize = 1 << 14;
/// Pairs of a block.
const BLOCK: usize = 1 << 8;
/// No more parts than these, twice: more places to write to at once are slow. With them a row's other bits are 19 at most.
const MOST_PART_BITS: u32 = 12;
/// Parts that are sorted at a time, by all threads.
const PARTS: usize = 1 << 6;
/// The bits of a distance, of at most 4096, and of a row.
const DISTANCE_BITS: u32 = 13;
const ROW_BITS: u32 = 32;

impl<'a> Output<'a> {
    pub(super) fn new(rows: &'a Rows<'a>, most: u64, memory: u64, stop: &'a AtomicBool) -> Self {
        let sorter = Sorter::new(rows.len(), memory);
        let (pairs, stopped) = (AtomicU64::new(0), AtomicBool::new(false));
        Output { rows, most, pairs, stopped, stop, sorter: Mutex::new(sorter) }
    }

    /// Whether nothing more is wanted: there are too many pairs, or the disk is full.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) || self.stop.load(Ordering::Relaxed)
    }

    /// These two will be expanded.
    #[inline(always)]
    pub(super) fn prefetch(&self, (x, y): (u32, u32)) {
        self.rows.copies.prefetch(x);
        self.rows.copies.prefetch(y);
    }

    /// The pairs of all documents that have these two signatures.
    #[inline(always)]
    pub(super) fn expand(&self, (x, y): (u32, u32), distance: u32, to: &mut Vec<Pair>) {
        let (of_x, of_y) = (self.rows.copies.of(x), self.rows.copies.of(y));
        if of_x.is_empty() && of_y.is_empty() {
            to.push(self.pair(x, y, distance));
            return;
        }
        if !self.has_room((of_x.len() as u64 + 1) * (of_y.len() as u64 + 1)) {
            return;
        }
        let all = |first, copies: &'a [(u32, u32)]| {
            std::iter::once(first).chain(copies.iter().map(|pair| pair.1))
        };
        for x in all(x, of_x) {
            to.extend(all(y, of_y).map(|y| self.pair(x, y, distance)));
            self.take_if_many(to);
        }
    }

    #[inline(always)]
    fn pair(&self, x: u32, y: u32, distance: u32) -> Pair {
        let (x, y) = (x.min(y), x.max(y));
        match self.rows.is_cross() {
            true => Pair { a: x, b: self.rows.own_number(y), distance },
            false => Pair { a: x, b: y, distance },
        }
    }

    /// The pairs of documents with the same signature.
    pub(super) fn add_copies(&self) {
        if self.rows.is_cross() || !self.has_room(copied_pairs(self.rows)) {
            return;
        }
        let mut pairs = Vec::new();
        for group in self.rows.copies.groups() {
            let row = |i: usize| if i == 0 { group[0].0 } else { group[i - 1].1 };
            for a in 0..group.len() {
                let others = (a + 1..=group.len()).map(row);
                pairs.extend(others.map(|b| Pair { a: row(a), b, distance: 0 }));
                self.take_if_many(&mut pairs);
            }
        }
        self.take(&mut pairs);
    }

    /// Whether so many more pairs are not too many.
    fn has_room(&self, more: u64) -> bool {
        let pairs = self.pairs.load(Ordering::Relaxed).saturating_add(more);
        if pairs > self.most {
            self.pairs.fetch_max(pairs, Ordering::Relaxed);
            self.stopped.store(true, Ordering::Relaxed);
        }
        !self.is_stopped()
    }

    #[inline(always)]
    pub(super) fn take_if_many(&self, pairs: &mut Vec<Pair>) {
        if pairs.len() >= BATCH {
            self.take(pairs);
        }
    }

    pub(super) fn take(&self, pairs: &mut Vec<Pair>) {
        if pairs.is_empty() {
            return;
        }
        if !self.has_room(pairs.len() as u64) {
            return pairs.clear();
        }
        self.pairs.fetch_add(pairs.len() as u64, Ordering::Relaxed);
        // A thread that panicked takes the whole join with it; until then its pairs are as good as any.
        let mut sorter = self.sorter.lock().unwrap_or_else(PoisonError::into_inner);
        if sorter.pairs.len() + pairs.len() > sorter.room
            && let Err(error) = sorter.spill()
        {
            sorter.error = Some(error);
            self.stopped.store(true, Ordering::Relaxed);
        }
        pairs.drain(..).for_each(|pair| sorter.push(pair));
    }

    /// Hands all pairs out in their order, and says how many there are.
    pub(super) fn finish(self, mut each: impl FnMut(&[Pair]) -> Result<()>) -> Result<u64> {
        let mut sorter = self.sorter.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = sorter.error {
            return Err(spilling(error));
        }
        let pairs = self.pairs.into_inner();
        if pairs > self.most {
            return Err(Error::TooManyPairs { pairs, most: self.most });
        }
        if self.stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped);
        }
        if sorter.runs.is_empty() {
            sorter.sorted(|part| part.chunks(BATCH).try_for_each(&mut each))?;
        } else {
            sorter.spill().map_err(spilling)?;
            merge(sorter.runs, &mut each)?;
        }
        Ok(pairs)
    }
}

/// How many pairs of documents have the same signature.
pub(super) fn copied_pairs(rows: &Rows<'_>) -> u64 {
    rows.copies.groups().map(|group| group.len() as u64 * (group.len() as u64 + 1) / 2).sum()
}

fn spilling(error: std::io::Error) -> Error {
    Error::io(&std::env::temp_dir(), error)
}

impl Sorter {
    fn new(rows: usize, memory: u64) -> Self {
        // Parts that are sorted in the cache, but not too many, and rows that leave room for the rest of a pair.
        let low = rows.max(1).ilog2().saturating_sub(MOST_PART_BITS).max(12);
        let parts = (rows >> low) + 1;
        // A vector that grows is there twice.
        let room = (memory / 3 / 8).max((BATCH + 2 * BLOCK * parts) as u64) as usize;
        let (pairs, ends) = (Vec::new(), vec![0; parts]);
        Sorter { pairs, ends, before: Vec::new(), low, room, runs: Vec::new(), error: None }
    }

    #[inline(always)]
    fn push(&mut self, pair: Pair) {
        let end = &mut self.ends[(pair.a >> self.low) as usize];
        if end.is_multiple_of(BLOCK) {
            self.before.push(*end);
            *end = self.pairs.len();
            self.pairs.resize(*end + BLOCK, 0);
        }
        let rest = pair.a & ((1 << self.low) - 1);
        let row_and_distance = u64::from(pair.b) << DISTANCE_BITS | u64::from(pair.distance);
        self.pairs[*end] = u64::from(rest) << (ROW_BITS + DISTANCE_BITS) | row_and_distance;
        *end += 1;
    }

    /// The pairs of a part in their order.
    fn part(&self, part: usize) -> Vec<Pair> {
        let (mut pairs, mut end) = (Vec::new(), self.ends[part]);
        while end > 0 {
            let block = (end - 1) / BLOCK;
            pairs.extend_from_slice(&self.pairs[block * BLOCK..end]);
            end = self.before[block];
        }
        pairs.sort_unstable();
        let pair = |packed: u64| Pair {
            a: ((part as u64) << self.low | packed >> (ROW_BITS + DISTANCE_BITS)) as u32,
            b: (packed >> DISTANCE_BITS) as u32,
            distance: packed as u32 & ((1 << DISTANCE_BITS) - 1),
        };
        pairs.into_iter().map(pair).collect()
    }

    /// All of them in their order.
    fn sorted<E>(&self, mut each: impl FnMut(&[Pair]) -> Result<(), E>) -> Result<(), E> {
        for start in (0..self.ends.len()).step_by(PARTS) {
            let some = start..(start + PARTS).min(self.ends.len());
            let parts: Vec<Vec<Pair>> = some.into_par_iter().map(|part| self.part(part)).collect();
            parts.iter().try_for_each(|part| each(part))?;
        }
        Ok(())
    }

    /// Moves the pairs into a file of their own, which goes away by itself.
    fn spill(&mut self) -> std::io::Result<()> {
        let mut file = tempfile::tempfile()?;
        self.sorted(|part| file.write_all(cast_slice(part)))?;
        file.rewind()?;
        self.runs.push(file);
        self.pairs.clear();
        self.before.clear();
        self.ends.fill(0);
        Ok(())
    }
}

impl Pair {
    fn order(&self) -> u64 {
        u64::from(self.a) << 32 | u64::from(self.b)
    }
}

/// A file of sorted pairs: how many are left in it, and the next that were read.
struct Run {
    file: File,
    left: usize,
    pairs: Vec<Pair>,
}

impl Run {
    fn new(file: File) -> std::io::Result<Self> {
        let left = file.metadata()?.len() as usize / size_of::<Pair>();
        Ok(Run { file, left, pairs: Vec::new() })
    }

    fn read(&mut self) -> std::io::Result<()> {
        let held = self.pairs.len();
        let more = (BATCH - held).min(self.left);
        self.left -= more;
        self.pairs.resize(held + more, Pair::zeroed());
        self.file.read_exact(cast_slice_mut(&mut self.pairs[held..]))
    }
}

/// Takes of all runs what comes before the last pair that is held of each of them.
fn merge(files: Vec<File>, each: &mut impl FnMut(&[Pair]) -> Result<()>) -> Result<()> {
    let runs = files.into_iter().map(Run::new);
    let mut runs: Vec<Run> = runs.collect::<std::io::Result<_>>().map_err(spilling)?;
    let mut batch = Vec::new();
    loop {
        runs.iter_mut().try_for_each(Run::read).map_err(spilling)?;
        runs.retain(|run| !run.pairs.is_empty());
        let Some(end) = runs.iter().map(|run| run.pairs[run.pairs.len() - 1].order()).min() else {
            return Ok(());
        };
        for run in &mut runs {
            let taken = run.pairs.partition_point(|pair| pair.order() <= end);
            batch.extend(run.pairs.drain(..taken));
        }
        // It sees the stretches that are in order already.
        batch.sort_by_key(Pair::order);
        batch.chunks(BATCH).try_for_each(&mut *each)?;
        batch.clear();
    }
}
