//! Pairs of documents in order: by the first row, then by the second. What does not fit into memory is sorted on disk.

use std::{
    collections::BinaryHeap,
    fs::File,
    io::{BufReader, BufWriter, ErrorKind, Read, Seek, Write},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

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
    sorter: Mutex<Sorter>,
}

/// Pairs on their way into order.
struct Sorter {
    pairs: Vec<Pair>,
    /// How many pairs are held in memory.
    room: usize,
    /// Sorted pairs.
    runs: Vec<File>,
    error: Option<std::io::Error>,
}

/// Pairs that are handed out at a time, and read from a file.
const BATCH: usize = 1 << 14;
const PAIR_BYTES: usize = 12;

impl<'a> Output<'a> {
    pub(super) fn new(rows: &'a Rows<'a>, most: u64, memory: u64) -> Self {
        // A vector that grows is there twice.
        let room = (memory / 3 / PAIR_BYTES as u64).max(BATCH as u64) as usize;
        let sorter = Sorter { pairs: Vec::new(), room, runs: Vec::new(), error: None };
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
            sorter.pairs.par_sort_unstable_by_key(Pair::order);
            sorter.pairs.chunks(BATCH).try_for_each(each)?;
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
        self.pairs.par_sort_unstable_by_key(Pair::order);
        let mut file = BufWriter::new(tempfile::tempfile()?);
        for pair in &self.pairs {
            file.write_all(&pair.to_bytes())?;
        }
        let mut file = file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        file.rewind()?;
        self.runs.push(file);
        self.pairs.clear();
        Ok(())
    }
}

impl Pair {
    fn order(&self) -> u64 {
        u64::from(self.a) << 32 | u64::from(self.b)
    }

    fn to_bytes(self) -> [u8; PAIR_BYTES] {
        let mut bytes = [0; PAIR_BYTES];
        let numbers = [self.a, self.b, self.distance].map(u32::to_le_bytes);
        bytes.copy_from_slice(numbers.as_flattened());
        bytes
    }

    fn from_bytes(bytes: [u8; PAIR_BYTES]) -> Self {
        let (numbers, _) = bytes.as_chunks::<4>();
        let number = |i: usize| u32::from_le_bytes(numbers[i]);
        Pair { a: number(0), b: number(1), distance: number(2) }
    }
}

/// The next pair of each run, the first of them on top.
fn merge(runs: Vec<File>, each: &mut impl FnMut(&[Pair]) -> Result<()>) -> Result<()> {
    use std::cmp::Reverse;
    let mut runs: Vec<_> = runs.into_iter().map(BufReader::new).collect();
    let mut next = BinaryHeap::new();
    for (number, run) in runs.iter_mut().enumerate() {
        let pair = read(run).map_err(spilling)?;
        next.extend(pair.map(|pair| Reverse((pair.order(), pair.distance, number))));
    }
    let mut batch = Vec::with_capacity(BATCH);
    while let Some(Reverse((order, distance, number))) = next.pop() {
        batch.push(Pair { a: (order >> 32) as u32, b: order as u32, distance });
        let pair = read(&mut runs[number]).map_err(spilling)?;
        next.extend(pair.map(|pair| Reverse((pair.order(), pair.distance, number))));
        if batch.len() == BATCH {
            each(&batch)?;
            batch.clear();
        }
    }
    if batch.is_empty() { Ok(()) } else { each(&batch) }
}

/// The next pair of a run, or nothing at its end.
fn read(run: &mut impl Read) -> std::io::Result<Option<Pair>> {
    let mut bytes = [0; PAIR_BYTES];
    match run.read_exact(&mut bytes) {
        Ok(()) => Ok(Some(Pair::from_bytes(bytes))),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}
