//! Rows in the order of their keys, with their signatures: what is compared inside the cache.

use std::ops::Range;

use super::{
    partition::Cell,
    rows::{Keys, Rows},
};
use crate::hamming::{READ_PAST, prefetch};

/// Rows sorted by slot. A slot is a key, or if two sides are joined, a key and a side.
#[derive(Default)]
pub(super) struct Block {
    /// Where the rows of each slot start, and the end.
    offsets: Vec<u32>,
    numbers: Vec<u32>,
    /// The signatures, and some bytes that vectors may read.
    words: Vec<u64>,
    stride: usize,
    /// Whether two sides are joined.
    pub(super) sided: bool,
}

/// Some rows of a block.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) words: &'a [u64],
    pub(super) numbers: &'a [u32],
    pub(super) stride: usize,
}

impl<'a> View<'a> {
    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }

    #[inline(always)]
    pub(super) fn row(&self, i: usize) -> &'a [u64] {
        &self.words[i * self.stride..][..self.stride]
    }
}

/// Rows that are on their way while one is copied.
const AHEAD: usize = 16;

impl Block {
    /// Takes the rows of a part, by the `low` last bits of their keys. Keys of rows of one word need not be those that the
    /// cells have.
    pub(super) fn fill(
        &mut self,
        rows: &Rows<'_>,
        cells: &[Cell],
        keys: &Keys,
        low: u32,
        sided: bool,
    ) {
        match *keys {
            Keys::Stretches(bits) => {
                self.fill_by(rows, cells, |cell| bits.take(cell[0]), low, sided)
            }
            _ => self.fill_by(rows, cells, |cell| cell[1] >> 32, low, sided),
        }
    }

    #[inline(always)]
    fn fill_by(
        &mut self,
        rows: &Rows<'_>,
        cells: &[Cell],
        key: impl Fn(&Cell) -> u64,
        low: u32,
        sided: bool,
    ) {
        let mask = (1_u64 << low) - 1;
        let number = |i: usize| cells[i][1] as u32;
        let key = |i: usize| (key(&cells[i]) & mask) as usize;
        self.sided = sided;
        let slots = 1 << (low + u32::from(sided));
        match (rows.stride(), sided) {
            (1, false) => {
                self.sort(1, slots, cells.len(), key, number, |i| &cells[i][..1]);
            }
            (stride, _) => {
                let slot = |i: usize| match sided {
                    true => key(i) << 1 | rows.side(number(i)),
                    false => key(i),
                };
                let words = |i: usize| match stride {
                    1 => &cells[i][..1],
                    _ => rows.row(number(i) as usize),
                };
                self.sort(stride, slots, cells.len(), slot, number, words);
            }
        }
    }

    /// Counts, then fills. The order within a slot stays.
    pub(super) fn sort<'w>(
        &mut self,
        stride: usize,
        slots: usize,
        len: usize,
        slot: impl Fn(usize) -> usize,
        number: impl Fn(usize) -> u32,
        words: impl Fn(usize) -> &'w [u64],
    ) {
        self.stride = stride;
        self.offsets.clear();
        self.offsets.resize(slots + 1, 0);
        self.numbers.resize(len, 0);
        self.words.resize(len * stride + READ_PAST / 8, 0);
        let (numbers, row_words) = (&mut self.numbers[..], &mut self.words[..]);
        let ends = &mut self.offsets[1..];
        (0..len).for_each(|i| ends[slot(i)] += 1);
        // Each end begins as the start of its rows and moves on with every row that is placed.
        let mut end = 0;
        ends.iter_mut().for_each(|count| end += std::mem::replace(count, end));
        for i in 0..len {
            if stride > 1 && i + AHEAD < len {
                prefetch(words(i + AHEAD), 0);
            }
            let end = &mut ends[slot(i)];
            let at = *end as usize;
            *end += 1;
            numbers[at] = number(i);
            match stride {
                1 => row_words[at] = words(i)[0],
                _ => row_words[at * stride..][..stride].copy_from_slice(words(i)),
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }

    pub(super) fn stride(&self) -> usize {
        self.stride
    }

    /// Whether a key has no rows.
    #[inline(always)]
    pub(super) fn is_empty(&self, key: usize) -> bool {
        let [first, last] = self.sides(key);
        first.start == last.end
    }

    /// How much memory it takes.
    pub(super) fn bytes(&self) -> u64 {
        (self.words.len() * 8 + (self.numbers.len() + self.offsets.len()) * 4) as u64
    }

    /// With what vectors may read behind the last row.
    pub(super) fn words(&self) -> &[u64] {
        &self.words
    }

    pub(super) fn slots(&self) -> Range<usize> {
        0..self.offsets.len() - 1
    }

    pub(super) fn keys(&self) -> Range<usize> {
        0..self.slots().end >> u32::from(self.sided)
    }

    #[inline(always)]
    pub(super) fn bucket(&self, slot: usize) -> Range<usize> {
        self.offsets[slot] as usize..self.offsets[slot + 1] as usize
    }

    /// Where the rows of some slots are, how many pairs these are, and how many the largest has.
    pub(super) fn pairs(&self, slots: Range<usize>) -> (Range<usize>, u64, u64) {
        let offsets = &self.offsets[slots.start..=slots.end];
        let (mut all, mut most) = (0, 0);
        for (start, end) in offsets.iter().zip(&offsets[1..]) {
            let len = u64::from(end - start);
            let pairs = len * len.saturating_sub(1) / 2;
            all += pairs;
            most = pairs.max(most);
        }
        (offsets[0] as usize..offsets[slots.len()] as usize, all, most)
    }

    /// The rows of a key: all of them, or those of each side.
    #[inline(always)]
    pub(super) fn sides(&self, key: usize) -> [Range<usize>; 2] {
        match self.sided {
            true => [self.bucket(2 * key), self.bucket(2 * key + 1)],
            false => [self.bucket(key), self.bucket(key)],
        }
    }

    pub(super) fn view(&self, rows: Range<usize>) -> View<'_> {
        View {
            words: &self.words[rows.start * self.stride..rows.end * self.stride],
            numbers: &self.numbers[rows],
            stride: self.stride,
        }
    }
}
