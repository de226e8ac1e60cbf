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

use super::{Pair, partition::MOST_PART_BITS, rows::Rows};
use crate::{
    Error, Result,
    table::{Parts, no_memory},
};

/// Where all threads bring the pairs that they find.
pub(super) struct Output<'a> {
    rows: &'a Rows<'a>,
    /// More pairs than this are refused.
    most: u64,
    pairs: AtomicU64,
    stopped: AtomicBool,
    sorter: Mutex<Sorter>,
}

/// Pairs on their way into order.
struct Sorter {
    pairs: Vec<Pair>,
    /// How many rows there are.
    rows: usize,
    /// How many pairs are held in memory.
    room: usize,
    /// Sorted pairs.
    runs: Vec<File>,
    error: Option<std::io::Error>,
}

/// Pairs that are handed out at a time, and read from a file.
const BATCH: usize = 1 << 14;

impl<'a> Output<'a> {
    pub(super) fn new(rows: &'a Rows<'a>, most: u64, memory: u64) -> Self {
        // A vector that grows is there twice.
        let room = (memory / 3 / size_of::<Pair>() as u64).max(BATCH as u64) as usize;
        let sorter =
            Sorter { pairs: Vec::new(), rows: rows.len(), room, runs: Vec::new(), error: None };
        let (pairs, stopped) = (AtomicU64::new(0), AtomicBool::new(false));
        Output { rows, most, pairs, stopped, sorter: Mutex::new(sorter) }
    }

    /// Whether nothing more is wanted: there are too many pairs, or the disk is full.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
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
        sorter.pairs.append(pairs);
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
        if sorter.runs.is_empty() {
            let mut parts = sorted(sorter.pairs, sorter.rows).map_err(no_memory)?;
            let parts = parts.split_mut();
            parts.into_iter().flat_map(|part| part.chunks(BATCH)).try_for_each(each)?;
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
    /// Moves the pairs into a file of their own, which goes away by itself.
    fn spill(&mut self) -> std::io::Result<()> {
        let mut file = tempfile::tempfile()?;
        let mut parts = sorted(std::mem::take(&mut self.pairs), self.rows)?;
        for part in parts.split_mut() {
            file.write_all(cast_slice(part))?;
        }
        file.rewind()?;
        self.runs.push(file);
        Ok(())
    }
}

impl Pair {
    fn order(&self) -> u64 {
        u64::from(self.a) << 32 | u64::from(self.b)
    }
}

/// Pairs that are sorted at a time, inside the cache, if every row has as many.
const PART: usize = 1 << 12;

/// Sorts pairs: those of rows that follow each other come together first.
fn sorted(pairs: Vec<Pair>, rows: usize) -> std::io::Result<Parts<Pair>> {
    let wanted = pairs.len().div_ceil(PART).next_power_of_two().min(1 << MOST_PART_BITS);
    let shift = rows.next_power_of_two().ilog2().saturating_sub(wanted.ilog2());
    let part_of = |pair: &Pair| (pair.a >> shift) as usize;
    let mut parts = Parts::new(pairs.len(), (rows >> shift) + 1, |i| pairs[i], part_of)?;
    drop(pairs);
    parts.split_mut().into_par_iter().for_each(|part| match part.len() {
        0..=BATCH => part.sort_unstable_by_key(Pair::order),
        _ => part.par_sort_unstable_by_key(Pair::order),
    });
    Ok(parts)
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
