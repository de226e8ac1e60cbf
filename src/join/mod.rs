//! Joins: all pairs of rows within a radius, of one matrix of signatures or between two.
//!
//! ```
//! use lookalike::{Signatures, join::{JoinSettings, self_join}};
//!
//! let rows = Signatures::from_words(64, vec![0b1011, 0xffff_0000, 0b1000, 0b1011])?;
//! let mut pairs = Vec::new();
//! let joined = self_join(&rows, &JoinSettings::new(2), |some| Ok(pairs.extend_from_slice(some)))?;
//! assert_eq!(pairs.iter().map(|pair| (pair.a, pair.b, pair.distance)).collect::<Vec<_>>(),
//!     [(0, 2, 2), (0, 3, 0), (2, 3, 2)]);
//! assert!(joined.exact());
//! # Ok::<(), lookalike::Error>(())
//! ```
//!
//! A join does not ask an index: it sorts all rows by a key, some of their bits, so that near rows meet in one bucket, and
//! compares what is in each bucket, inside the cache; then by the next key ([`plan`](self) says which). A pair belongs to
//! the first key that finds it, so no set of pairs is kept. Identical signatures are one row until pairs are handed out.
//!
//! Pairs come in the order of their first row, then of their second, whatever the threads and the memory.

pub mod apart;
mod block;
mod compare;
mod output;
mod partition;
mod plan;
mod rows;
mod spread;
mod stream;
#[cfg(test)]
mod tests;

pub use self::stream::{StreamJoin, Wanted};

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64},
};

use bytemuck::{Pod, Zeroable};
use rayon::prelude::*;

use self::{
    block::{Block, View},
    compare::{Comparer, Context, Limits},
    output::{Output, copied_pairs},
    partition::{CELL_BYTES, Group, Partition, Room, part_bits},
    plan::{Mask, Plan, Task},
    rows::{Keys, Rows},
    spread::Spread,
};
use crate::{
    Error, Result, Signatures,
    hamming::{self, Batch, Workspace},
    probe,
};

/// Two rows that are near each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(C)]
pub struct Pair {
    /// The earlier row; of two matrices, the row of the first.
    pub a: u32,
    /// The later row; of two matrices, the row of the second.
    pub b: u32,
    /// How many bits differ.
    pub distance: u32,
}

/// What is joined, and with what.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JoinSettings {
    /// Pairs at most so many bits apart are found.
    pub radius: u32,
    /// The most bytes that the join takes beside the signatures; what does not fit is done in several passes over them.
    /// Pairs that do not fit are sorted in temporary files.
    pub memory: u64,
    /// The share of the pairs at the very radius that must be found where finding all takes long; nearer ones are found
    /// more often. Radii of up to 6 of 64 bits are always exact, and everything is at 1.
    pub recall: f64,
    /// More pairs than this are refused.
    pub most_pairs: u64,
}

impl JoinSettings {
    /// All pairs within the radius: 2 GB of memory, a recall of .98, at most a thousand million pairs.
    pub fn new(radius: u32) -> Self {
        JoinSettings { radius, memory: 2 << 30, recall: 0.98, most_pairs: 1_000_000_000 }
    }
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Joined {
    /// How many pairs there are.
    pub pairs: u64,
    /// The share of the pairs at the very radius that is expected to be among them, if bits differ at random; 1 if all
    /// pairs within the radius are there for sure.
    pub recall: f64,
    /// How many pairs of rows were compared.
    pub compared: u64,
    /// Rows that have the signature of an earlier row.
    pub copies: u64,
    /// The most bytes that the work took beside the signatures and the pairs.
    pub bytes: u64,
}

impl Joined {
    /// Whether every pair within the radius is there.
    pub fn exact(&self) -> bool {
        self.recall >= 1.0
    }
}

/// What a join would do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Pairs within the radius, as a sample of the rows has them.
    pub pairs: u64,
    /// Pairs of rows that are compared, if bits are spread evenly.
    pub compared: f64,
    /// As in [`Joined`].
    pub recall: f64,
    /// How often the rows are sorted; 0 if every row is compared with every other.
    pub sorts: usize,
}

/// All pairs of rows of a matrix within a radius, handed to `each` some at a time, in order.
pub fn self_join(
    rows: &Signatures,
    settings: &JoinSettings,
    each: impl FnMut(&[Pair]) -> Result<()>,
) -> Result<Joined> {
    join(rows, None, settings, &AtomicBool::new(false), each)
}

/// All pairs of a row of `new` and a row of `old` within a radius, handed to `each` some at a time, in order.
pub fn cross_join(
    new: &Signatures,
    old: &Signatures,
    settings: &JoinSettings,
    each: impl FnMut(&[Pair]) -> Result<()>,
) -> Result<Joined> {
    join(new, Some(old), settings, &AtomicBool::new(false), each)
}

/// The same, of a matrix with itself or with another, until `stop` is set: it then ends soon, with [`Error::Stopped`].
pub fn join(
    rows: &Signatures,
    other: Option<&Signatures>,
    settings: &JoinSettings,
    stop: &AtomicBool,
    each: impl FnMut(&[Pair]) -> Result<()>,
) -> Result<Joined> {
    Join::new(rows, other, settings, Limits::default())?.run(stop, each)
}

/// What a join would do: of a matrix with itself, or with another.
pub fn estimate(
    rows: &Signatures,
    other: Option<&Signatures>,
    settings: &JoinSettings,
) -> Result<Estimate> {
    Join::new(rows, other, settings, Limits::default())?.estimate()
}

/// Rows of each side that are compared with each other before the work, to see how many pairs to expect.
const SAMPLE: usize = 4096;
/// Fewer pairs in the sample say nothing.
const TELLING: u64 = 32;
/// Half of the cells at a time: reading the rows once more is cheap, and the memory is halved.
const CELLS_A_ROW: u64 = CELL_BYTES / 2;
/// Fewer bytes of cells are not worth a second pass.
const FEW_CELLS: u64 = 32 << 20;
/// With less than this there would be more passes than rows in one.
const LEAST_CELLS: u64 = 1 << 16;
/// What sorting a large bucket again must find, if the join is not exact.
const RECALL_AGAIN: f64 = 0.995;

struct Join<'a> {
    rows: Rows<'a>,
    settings: JoinSettings,
    limits: Limits,
}

impl<'a> Join<'a> {
    fn new(
        first: &'a Signatures,
        second: Option<&'a Signatures>,
        settings: &JoinSettings,
        limits: Limits,
    ) -> Result<Self> {
        let radius = settings.radius.min(first.bits());
        let settings = JoinSettings { radius, ..*settings };
        Ok(Join { rows: Rows::new(first, second)?, settings, limits })
    }

    fn estimate(&self) -> Result<Estimate> {
        let plan = self.plan();
        let (pairs, _) = self.expected_pairs()?;
        let Plan { compared, recall, .. } = plan;
        Ok(Estimate { pairs, compared, recall, sorts: plan.masks.len() })
    }

    fn run(mut self, stop: &AtomicBool, each: impl FnMut(&[Pair]) -> Result<()>) -> Result<Joined> {
        self.check_expected()?;
        self.check_memory()?;
        let mut room = Room::default();
        self.rows.find_copies(self.cells(), &mut room)?;
        self.check_memory()?;
        let most = self.settings.most_pairs;
        let copied = if self.rows.is_cross() { 0 } else { copied_pairs(&self.rows) };
        if copied > most {
            return Err(Error::TooManyPairs { pairs: copied, most });
        }
        let plan = self.plan();
        let context = Context {
            output: Output::new(&self.rows, most, self.settings.memory / 4, stop),
            kernel: hamming::kernel()?,
            bits: self.rows.bits(),
            radius: self.settings.radius,
            recall: if plan.recall < 1.0 { RECALL_AGAIN } else { 1.0 },
            limits: self.limits,
            compared: AtomicU64::new(0),
            lossy: AtomicBool::new(false),
        };
        context.output.add_copies();
        let bytes = self.sort_and_compare(plan.masks.into(), &context, &mut room)?;
        let again = if context.lossy.into_inner() { RECALL_AGAIN } else { 1.0 };
        Ok(Joined {
            pairs: context.output.finish(each)?,
            recall: plan.recall * again,
            compared: context.compared.into_inner(),
            copies: self.rows.copies.len() as u64,
            bytes: bytes + self.rows.copies.bytes(),
        })
    }

    fn check_memory(&self) -> Result<()> {
        let needed = 2 * (LEAST_CELLS + self.rows.copies.bytes());
        match self.settings.memory {
            given if given < needed => Err(Error::JoinMemory { needed, given }),
            _ => Ok(()),
        }
    }

    /// How many bytes of cells there may be at a time.
    fn cells(&self) -> u64 {
        let wanted = (self.rows.len() as u64 * CELLS_A_ROW).max(FEW_CELLS);
        let taken = self.rows.copies.bytes();
        wanted.min((self.settings.memory / 2).saturating_sub(taken))
    }

    fn plan(&self) -> Plan {
        let sides = self.rows.sides();
        let samples = [0, 1].map(|side| self.sample(side));
        let stride = self.rows.stride();
        let views = samples.iter().map(|(numbers, words)| View { words, numbers, stride });
        let views: Vec<View<'_>> = views.take(if self.rows.is_cross() { 2 } else { 1 }).collect();
        let spread = Spread::of(&views, self.rows.bits());
        let pairs = match self.rows.is_cross() {
            true => sides[0] as f64 * sides[1] as f64,
            false => sides[0] as f64 * (sides[0] as f64 - 1.0) / 2.0,
        };
        Plan::new(&Task {
            rows: self.rows.len() - self.rows.copies.len(),
            pairs,
            bits: self.rows.bits(),
            radius: self.settings.radius,
            recall: self.settings.recall,
            spread: &spread,
            quick: self.limits.quick,
        })
    }

    /// Some rows of a side, evenly spread.
    fn sample(&self, side: usize) -> (Vec<u32>, Vec<u64>) {
        let [first, second] = self.rows.sides();
        let (start, len) = if side == 0 { (0, first) } else { (first, second) };
        let taken = len.min(SAMPLE);
        let numbers = (0..taken).map(|i| (start + i * len / taken) as u32);
        let words = numbers.clone().flat_map(|row| self.rows.row(row as usize)).copied();
        (numbers.clone().collect(), words.collect())
    }

    /// Refuses what would be far too much before any work is done.
    fn check_expected(&self) -> Result<()> {
        let most = self.settings.most_pairs;
        match self.expected_pairs()? {
            (pairs, seen) if pairs > most && seen >= TELLING => {
                Err(Error::TooManyPairs { pairs, most })
            }
            _ => Ok(()),
        }
    }

    /// How many pairs to expect, and how many of them were seen.
    fn expected_pairs(&self) -> Result<(u64, u64)> {
        let ((numbers, left), (others, right)) = (self.sample(0), self.sample(1));
        let [first, second] = self.rows.sides().map(|rows| rows as f64);
        let (seen, all, looked_at) = match self.rows.is_cross() {
            true => {
                let looked_at = numbers.len() as f64 * others.len() as f64;
                (self.count(&left, &right)?, first * second, looked_at)
            }
            false => {
                let sample = numbers.len() as f64;
                // A row is near itself, and each pair is seen twice.
                let seen = (self.count(&left, &left)? - numbers.len() as u64) / 2;
                (seen, first * (first - 1.0), sample * (sample - 1.0))
            }
        };
        Ok(((seen as f64 * all / looked_at.max(1.0)) as u64, seen))
    }

    fn count(&self, left: &[u64], right: &[u64]) -> Result<u64> {
        let (kernel, stride) = (hamming::kernel()?, self.rows.stride());
        let count = |tile: &[u64]| {
            let batch = Batch::new(tile, stride);
            let thresholds = vec![Some(self.settings.radius); batch.len()];
            let (mut workspace, mut found) = (Workspace::default(), Vec::new());
            right.chunks(kernel.block_rows(&batch) * stride).for_each(|rows| {
                kernel.within_batch(&batch, rows, &thresholds, &mut workspace, &mut found);
            });
            found.iter().map(|matched| u64::from(matched.mask.count_ones())).sum::<u64>()
        };
        Ok(left.par_chunks(256 * stride).map(count).sum())
    }

    /// Sorts the rows by each mask and compares those that meet. Says how much memory that took.
    fn sort_and_compare(
        &self,
        masks: Arc<[Mask]>,
        context: &Context<'_>,
        room: &mut Room,
    ) -> Result<u64> {
        if masks.is_empty() {
            return self.scan(context, room);
        }
        let (mut first, mut most) = (0, 0);
        while first < masks.len() && !context.output.is_stopped() {
            let (run, parts) = self.run_of_masks(&masks[first..]);
            let run = first..first + run;
            first = run.end;
            let comparer = |mask: usize| Comparer::new(context, vec![(masks.clone(), mask)]);
            let partition = self.partition(&masks[run.start], parts);
            let groups = partition.groups(self.cells(), CELL_BYTES);
            if masks[run.start].errors == 0 && !partition.has_pieces(&groups) {
                let compare_by = |mask: usize| {
                    let low = masks[mask].layout.width() - parts;
                    (self.keys(&masks[mask]), low, comparer(mask))
                };
                let comparers = || run.clone().map(compare_by).collect();
                most = most.max(self.equal(&partition, &groups, comparers, room)?);
                continue;
            }
            for mask in run {
                let (partition, errors) = (self.partition(&masks[mask], parts), masks[mask].errors);
                let bytes = self.near(&partition, Some(errors), || comparer(mask), room)?;
                most = most.max(bytes);
            }
        }
        Ok(most)
    }

    /// How many masks the rows need to be read for only once, and how many leading bits tell the part. The keys of such
    /// masks begin with the same bits.
    fn run_of_masks(&self, masks: &[Mask]) -> (usize, u32) {
        let parts = |mask: &Mask| {
            let width = mask.layout.width();
            part_bits(self.rows.len(), width, self.cells())
        };
        let (mut run, mut shared) = (1, parts(&masks[0]));
        let is_simple =
            |mask: &Mask| mask.errors == 0 && matches!(self.keys(mask), Keys::Stretches(_));
        for mask in masks[1..].iter().take_while(|mask| is_simple(&masks[0]) && is_simple(mask)) {
            let both = masks[0].layout.positions().zip(mask.layout.positions());
            let same = both.take_while(|(a, b)| a == b).count() as u32;
            // Parts may be a little larger than they should be.
            if same + 2 < shared {
                break;
            }
            (run, shared) = (run + 1, shared.min(same));
        }
        (run, shared)
    }

    fn keys(&self, mask: &Mask) -> Keys {
        Keys::new(&mask.layout, self.rows.stride())
    }

    fn partition(&self, mask: &Mask, parts: u32) -> Partition<'_> {
        let width = mask.layout.width();
        Partition::new(&self.rows, self.keys(mask), width, parts, self.cells())
    }

    /// Every row with every other, in chunks that fit into the memory.
    fn scan(&self, context: &Context<'_>, room: &mut Room) -> Result<u64> {
        let fitting = self.cells() / 16 / self.row_bytes();
        let size = (fitting as usize).clamp(1, 1 << 18).max(self.rows.len().div_ceil(1 << 12));
        let width = self.rows.len().div_ceil(size).max(1).next_power_of_two().ilog2();
        let partition = Partition::new(&self.rows, Keys::Chunk(size), width, width, self.cells());
        self.near(&partition, None, || Comparer::new(context, Vec::new()), room)
    }

    /// What a row takes while it is sorted and compared with those of other parts.
    fn row_bytes(&self) -> u64 {
        CELL_BYTES + 8 + 8 * self.rows.stride() as u64
    }

    /// Rows with the same key, for each of some masks: each part is compared by itself.
    fn equal<'c>(
        &self,
        partition: &Partition<'_>,
        groups: &[Group],
        comparers: impl Fn() -> Vec<(Keys, u32, Comparer<'c>)> + Sync,
        room: &mut Room,
    ) -> Result<u64> {
        let mut most = 0;
        for group in groups {
            let mut loaded = partition.load(group, room)?;
            most = most.max(loaded.bytes());
            let parts = loaded.split().into_par_iter();
            parts.for_each_init(
                || (Block::default(), comparers()),
                |(block, comparers), (_, cells)| {
                    for (keys, low, comparer) in comparers {
                        block.fill(&self.rows, cells, keys, *low, self.rows.is_cross());
                        comparer.within(block, &[0]);
                    }
                },
            );
        }
        Ok(most)
    }

    /// Rows whose keys differ in a few bits, or in any number of them: parts are compared with each other, too.
    fn near<'c>(
        &self,
        partition: &Partition<'_>,
        errors: Option<u32>,
        comparer: impl Fn() -> Comparer<'c> + Sync,
        room: &mut Room,
    ) -> Result<u64> {
        let low = partition.low_bits();
        let flips = |errors| if low == 0 { vec![0] } else { probe::within(low, errors) };
        let flips: Vec<Vec<u32>> = (0..=errors.unwrap_or(0)).map(flips).collect();
        // The flips of the other bits that are left if the parts differ so.
        let flips_of = |a: usize, b: usize| match errors {
            None => flips.first(),
            Some(errors) => flips.get(errors.checked_sub((a ^ b).count_ones())? as usize),
        };
        let groups = partition.groups(self.cells() / 2, self.row_bytes());
        let mut most = 0;
        for (i, group) in groups.iter().enumerate() {
            let left = self.blocks(partition, group, room)?;
            most = most.max(bytes_of(&left));
            compare_blocks(&left, None, flips_of, &comparer);
            for other in &groups[i + 1..] {
                let mut parts =
                    group.parts.clone().flat_map(|a| other.parts.clone().map(move |b| (a, b)));
                if parts.any(|(a, b)| flips_of(a, b).is_some()) {
                    let right = self.blocks(partition, other, room)?;
                    most = most.max(bytes_of(&left) + bytes_of(&right));
                    compare_blocks(&left, Some(&right), flips_of, &comparer);
                }
            }
        }
        Ok(most)
    }

    /// The parts of a group, each sorted.
    fn blocks(
        &self,
        partition: &Partition<'_>,
        group: &Group,
        room: &mut Room,
    ) -> Result<Vec<Part>> {
        let mut loaded = partition.load(group, room)?;
        let parts = loaded.split().into_par_iter().filter(|(_, cells)| !cells.is_empty());
        let sorted = parts.map(|(part, cells)| {
            let mut block = Block::default();
            let (keys, low) = (partition.keys(), partition.low_bits());
            block.fill(&self.rows, cells, keys, low, self.rows.is_cross());
            (part, block)
        });
        Ok(sorted.collect())
    }
}

/// The number of a part, and its rows in order.
type Part = (usize, Block);

fn bytes_of(parts: &[Part]) -> u64 {
    parts.iter().map(|(_, block)| block.bytes()).sum()
}

/// Compares the parts of a group with each other, or with those of another.
fn compare_blocks<'f, 'c>(
    left: &[Part],
    right: Option<&[Part]>,
    flips_of: impl Fn(usize, usize) -> Option<&'f Vec<u32>>,
    comparer: impl Fn() -> Comparer<'c> + Sync,
) {
    let others = |i: usize| right.unwrap_or(&left[i..]);
    let pairs = left.iter().enumerate().flat_map(|(i, a)| others(i).iter().map(move |b| (a, b)));
    let near = pairs.filter_map(|(a, b)| Some((a, b, flips_of(a.0, b.0)?))).collect::<Vec<_>>();
    near.into_par_iter().for_each_init(&comparer, |comparer, ((_, a), (_, b), flips)| {
        match std::ptr::eq(a, b) {
            true => comparer.within(a, flips),
            false => comparer.between(a, b, flips),
        }
    });
}
