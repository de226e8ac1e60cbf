//! The cells of a table as slices, for the inner loops.

use crate::{
    hamming::prefetch,
    table::{Rows, Table},
};

/// A line of the cache, in bytes.
pub(super) const LINE: usize = 64;

/// The cells of a table.
pub(super) struct View<'a> {
    pub(super) table: &'a Table,
    pub(super) offsets: &'a [u32],
    pub(super) rows: RowsView<'a>,
    /// The rows as bytes, and how many bytes a row has: where to look first.
    bytes: &'a [u8],
    row_bytes: usize,
}

#[derive(Clone, Copy)]
pub(super) enum RowsView<'a> {
    Whole(&'a [u64]),
    Split(&'a [u32], &'a [u16]),
    Numbers(&'a [u32]),
}

impl<'a> View<'a> {
    pub(super) fn of(table: &'a Table) -> Self {
        let (rows, bytes, row_bytes) = match &table.rows {
            Rows::Whole(words) => {
                let words = words.as_slice();
                (RowsView::Whole(words), bytemuck::cast_slice(words), 8)
            }
            Rows::Split(low, high) => {
                let (low, high) = (low.as_slice(), high.as_slice());
                (RowsView::Split(low, high), bytemuck::cast_slice(low), 4)
            }
            Rows::Numbers(numbers) => {
                let numbers = numbers.as_slice();
                (RowsView::Numbers(numbers), bytemuck::cast_slice(numbers), 4)
            }
        };
        View { table, offsets: table.offsets.as_slice(), rows, bytes, row_bytes }
    }

    #[inline(always)]
    pub(super) fn rows_of(&self, key: u32) -> (u32, u32) {
        let pair = &self.offsets[key as usize..key as usize + 2];
        (pair[0], pair[1])
    }

    /// What the rows of this table are compared with.
    #[inline(always)]
    pub(super) fn compare(&self, query: &[u64]) -> u64 {
        match self.rows {
            RowsView::Whole(_) => query[0],
            RowsView::Split(..) => self.table.rest.take(query),
            RowsView::Numbers(_) => 0,
        }
    }

    /// Whether rows lack their keys: then the errors in the key count beside those in the row.
    pub(super) fn lacks_keys(&self) -> bool {
        matches!(self.rows, RowsView::Split(..))
    }

    /// Asks for some rows: for the first lines of them, as the CPU notices by itself that a long stretch is read.
    #[inline(always)]
    pub(super) fn prefetch_rows(&self, start: u32, end: u32) {
        let (start, end) = (start as usize * self.row_bytes, end as usize * self.row_bytes);
        // Most often these two are all, or one and the same; to find that out costs more than to ask twice.
        prefetch(self.bytes, start);
        prefetch(self.bytes, end.saturating_sub(1));
        if end > start + LINE {
            prefetch(self.bytes, start + LINE);
            prefetch(self.bytes, start + 2 * LINE);
            prefetch(self.bytes, start + 3 * LINE);
        }
    }

    /// Whether a row has the signature, of which the first bits are known to agree.
    #[inline(always)]
    pub(super) fn is_row(&self, row: u32, word: u64) -> bool {
        match self.rows {
            RowsView::Split(_, high) => {
                u64::from(high[row as usize]) == self.table.rest.take_word(word) >> 32
            }
            RowsView::Whole(_) | RowsView::Numbers(_) => true,
        }
    }
}
