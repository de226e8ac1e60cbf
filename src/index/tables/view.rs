//! The cells of a table as slices, for the inner loops.

use std::ops::Range;

use crate::{
    hamming::{Besides, Head, Kernel, LINE_WORDS, Near, Probe, Stretch, address_of, prefetch},
    table::{Lines, Rows, Table},
};

/// A line of the cache, in bytes.
pub(super) const LINE: usize = 64;
/// Of a long stretch of rows, so many lines are asked for: with those of all probes of a group they fit into the second cache.
const ASKED_LINES: usize = 32;
const _: () = assert!(LINE == 8 * LINE_WORDS);

/// The cells of a table.
pub(super) struct View<'a> {
    pub(super) table: &'a Table,
    offsets: &'a [u32],
    pub(super) rows: RowsView<'a>,
    /// What a key leads to first, as bytes, and how many bytes a key has there as a power of two.
    keys: (&'a [u8], u32),
    /// The rows as bytes, and how many bytes a row has: where to look next.
    bytes: &'a [u8],
    row_bytes: usize,
}

#[derive(Clone, Copy)]
pub(super) enum RowsView<'a> {
    Whole(&'a [u64]),
    Split(&'a [u32], &'a [u16]),
    Lines(LinesView<'a>),
    Numbers(&'a [u32]),
}

#[derive(Clone, Copy)]
pub(super) struct LinesView<'a> {
    words: &'a [u64],
    more: &'a [u64],
}

/// A row that was looked at.
#[derive(Clone, Copy)]
pub(super) struct Row {
    /// What the table has of it.
    stored: u64,
    /// Its number in the table.
    pub(super) number: u32,
}

impl<'a> View<'a> {
    pub(super) fn of(table: &'a Table) -> Self {
        let offsets = table.offsets.as_slice();
        let mut keys = (bytemuck::cast_slice(offsets), 2);
        let (rows, bytes, row_bytes) = match &table.rows {
            Rows::Whole(words) => {
                let words = words.as_slice();
                (RowsView::Whole(words), bytemuck::cast_slice(words), 8)
            }
            Rows::Split(low, high) => {
                let (low, high) = (low.as_slice(), high.as_slice());
                (RowsView::Split(low, high), bytemuck::cast_slice(low), 4)
            }
            Rows::Lines(Lines { words, more }) => {
                let (words, more) = (words.as_slice(), more.as_slice());
                keys = (bytemuck::cast_slice(words), LINE.ilog2());
                (RowsView::Lines(LinesView { words, more }), bytemuck::cast_slice(more), 8)
            }
            Rows::Numbers(numbers) => {
                let numbers = numbers.as_slice();
                (RowsView::Numbers(numbers), bytemuck::cast_slice(numbers), 4)
            }
        };
        View { table, offsets, rows, keys, bytes, row_bytes }
    }

    /// The address of what a key leads to.
    #[inline(always)]
    pub(super) fn address(&self, key: u32) -> usize {
        address_of(self.keys.0, (key as usize) << self.keys.1)
    }

    #[inline(always)]
    fn rows_of(&self, key: u32) -> (u32, u32) {
        let pair = &self.offsets[key as usize..key as usize + 2];
        (pair[0], pair[1])
    }

    /// What the rows of this table are compared with.
    #[inline(always)]
    pub(super) fn compare(&self, query: &[u64]) -> u64 {
        match self.rows {
            RowsView::Whole(_) | RowsView::Lines(_) => query[0],
            RowsView::Split(..) => self.table.rest.take(query),
            RowsView::Numbers(_) => 0,
        }
    }

    /// Whether that is the query, a word.
    pub(super) fn compares_words(&self) -> bool {
        matches!(self.rows, RowsView::Whole(_) | RowsView::Lines(_))
    }

    /// Whether keys have lines.
    pub(super) fn has_lines(&self) -> bool {
        matches!(self.rows, RowsView::Lines(_))
    }

    /// Whether rows lack their keys: then the errors in the key count beside those in the row.
    pub(super) fn lacks_keys(&self) -> bool {
        matches!(self.rows, RowsView::Split(..))
    }

    /// Asks for some rows. The CPU notices by itself that a stretch is read, but not before much of it was waited for.
    #[inline(always)]
    fn prefetch_rows(&self, start: u32, end: u32) {
        let (start, end) = (start as usize * self.row_bytes, end as usize * self.row_bytes);
        // Most often these two are all, or one and the same; to find that out costs more than to ask twice.
        prefetch(self.bytes, start);
        prefetch(self.bytes, end.saturating_sub(1));
        if end > start + LINE {
            prefetch(self.bytes, start + LINE);
            prefetch(self.bytes, start + 2 * LINE);
            prefetch(self.bytes, start + 3 * LINE);
            let end = end.min(start + ASKED_LINES * LINE);
            (start + 4 * LINE..end).step_by(LINE).for_each(|at| prefetch(self.bytes, at));
        }
    }

    /// Which rows some of the probes lead to: those to be looked at are asked for, and added to `stretches` with the probe
    /// as their tag; those that were looked at and are near, if keys have lines, are the cells in `near`.
    #[inline(always)]
    pub(super) fn look_up(
        &self,
        kernel: Kernel,
        (probes, of): (&[Probe], Range<usize>),
        and: &mut Besides<'_>,
        stretches: &mut Vec<Stretch>,
        near: &mut Vec<Near>,
    ) {
        near.clear();
        let stretch = |tag: usize, start: u32, end: u32| {
            let Probe { compare: query, allowed, .. } = probes[tag];
            Stretch { query, start, end, allowed, tag: tag as u32 }
        };
        let RowsView::Lines(lines) = self.rows else {
            return stretches.extend(of.map(|tag| {
                let (start, end) = self.rows_of(probes[tag].key);
                self.prefetch_rows(start, end);
                stretch(tag, start, end)
            }));
        };
        kernel.check_lines(&probes[of.clone()], lines.words, and, near);
        near.retain_mut(|near| {
            near.stretch += of.start as u32;
            let head = near.row as usize % LINE_WORDS == LINE_WORDS - 1;
            if head {
                let (start, end) = lines.elsewhere(near.row as usize);
                self.prefetch_rows(start, end);
                stretches.push(stretch(near.stretch as usize, start, end));
            }
            !head
        });
    }

    /// Which rows of the stretches are near, if rows are words.
    #[inline(always)]
    pub(super) fn check(
        &self,
        kernel: Kernel,
        stretches: &[Stretch],
        and: &mut Besides<'_>,
        near: &mut Vec<Near>,
    ) {
        near.clear();
        match self.rows {
            RowsView::Whole(words) => kernel.check_whole(stretches, words, and, near),
            RowsView::Split(low, high) => {
                kernel.check_halves(stretches, low, near);
                near.iter().for_each(|near| prefetch(high, near.row as usize));
            }
            RowsView::Lines(lines) => kernel.check_whole(stretches, lines.more, and, near),
            RowsView::Numbers(_) => {}
        }
    }

    /// A row of a stretch that a probe led to.
    #[inline(always)]
    pub(super) fn row(&self, probe: &Probe, stretch: &Stretch, row: u32) -> Row {
        let at = row as usize;
        match self.rows {
            RowsView::Whole(words) => Row { stored: words[at], number: row },
            RowsView::Split(low, high) => Row { stored: joined(low[at], high[at]), number: row },
            RowsView::Lines(lines) => {
                let head = lines.head(probe.key as usize * LINE_WORDS);
                let number = head.number + head.here() as u32 + (row - stretch.start);
                Row { stored: lines.more[at], number }
            }
            RowsView::Numbers(_) => Row { stored: 0, number: row },
        }
    }

    /// The row that is a word of a line.
    #[inline(always)]
    pub(super) fn row_in(&self, word: u32) -> Row {
        let (at, place) = (word as usize, word % LINE_WORDS as u32);
        match self.rows {
            RowsView::Lines(lines) => {
                Row { stored: lines.words[at], number: lines.head(at).number + place }
            }
            _ => Row { stored: 0, number: word },
        }
    }

    /// How a row differs from the query of a probe that led to it.
    #[inline(always)]
    pub(super) fn differences(&self, row: Row, probe: &Probe) -> u64 {
        let differences = row.stored ^ probe.compare;
        match self.lacks_keys() {
            false => differences,
            true => {
                let flip = self.table.fields.put_word(u64::from(probe.flip));
                self.table.rest.put_word(differences) | flip
            }
        }
    }
}

impl LinesView<'_> {
    /// The head of the line that a word is in.
    #[inline(always)]
    fn head(&self, word: usize) -> Head {
        Head::of_word(self.words[word | (LINE_WORDS - 1)])
    }

    /// Which rows the line with this head has no room for.
    #[inline(always)]
    fn elsewhere(&self, head: usize) -> (u32, u32) {
        let count = Head::of_word(self.words[head]).elsewhere() as u32;
        let start = self.words[head - 1] as u32;
        (start, start + count)
    }
}

#[inline(always)]
fn joined(low: u32, high: u16) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}
