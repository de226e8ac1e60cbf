//! How many lines of the cache a query touches in a table index.
//!
//! Each probe reads two neighboring offsets, and then the rows between them. A match that another table than the first
//! has led to is looked up in the first; then follow one line of the map from signatures to rows, and, if some
//! signatures come twice, one for each row in the map from each copy to the next. A line that is asked for and not
//! needed counts, too. A line that is still in the cache counts as if it were not, so this is rather too many. The
//! queries are read and the answers written in order, which the CPU sees coming: these do not count.

use std::collections::BTreeMap;

use lookalike::{Signatures, index::Tables, table::KeyLayout};
use rayon::prelude::*;

use super::{
    measure::{Chunk, RADIUS, Subject},
    results::Lines,
    subjects::Ours,
};

/// Bytes of a line.
const LINE: u64 = 64;
/// Bytes of an offset, and of a whole row.
const OFFSET: u64 = 4;
const ROW: u64 = 8;

/// The lines that the queries of a chunk touch, on average. The chunk is the latest that was asked, for all neighbors;
/// rows are whole, and only the own key is looked up in each table.
pub(super) fn lines(ours: &Ours<'_>, stored: &Signatures, chunk: &Chunk<'_>) -> Lines {
    let composition = ours.tables.composition();
    debug_assert_eq!(composition.probes(RADIUS), composition.layouts().len() as u64);
    let distinct = distinct(stored);
    let (mut offsets, mut rows, mut resolution) = (0, 0, 0);
    for (number, layout) in composition.layouts().iter().enumerate() {
        let table = Places::of(layout, &distinct);
        for &query in chunk.signatures.words() {
            let key = table.key.of(query);
            offsets += offset_lines(key);
            rows += table.row_lines(key);
        }
        if number == 0 {
            resolution = resolution_lines(ours, chunk, &table, has_copies(&ours.tables, stored));
        }
    }
    let [offsets, rows, resolution] =
        [offsets, rows, resolution].map(|lines| lines as f64 / chunk.len() as f64);
    Lines { offsets, rows, resolution }
}

fn has_copies(tables: &Tables<'_>, stored: &Signatures) -> bool {
    tables.distinct() < stored.len()
}

fn distinct(stored: &Signatures) -> Vec<u64> {
    let mut words = stored.words().to_vec();
    words.par_sort_unstable();
    words.dedup();
    words
}

/// The lines of all matches of a chunk, on their way from signatures to rows.
fn resolution_lines(ours: &Ours<'_>, chunk: &Chunk<'_>, leading: &Places, copies: bool) -> u64 {
    let mut lines = 0;
    for (number, &query) in chunk.signatures.words().iter().enumerate() {
        let mut rows_of = BTreeMap::new();
        ours.found(number).for_each(|row| *rows_of.entry(row).or_insert(0) += 1);
        for (row, rows) in rows_of {
            let key = leading.key.of(row);
            if key != leading.key.of(query) {
                lines += offset_lines(key) + leading.row_lines(key);
            }
            lines += 1 + if copies { rows } else { 0 };
        }
    }
    lines
}

/// Where the rows of each key are in a table.
struct Places {
    key: Key,
    offsets: Vec<u32>,
}

impl Places {
    fn of(layout: &KeyLayout, distinct: &[u64]) -> Self {
        let key = Key::of_layout(layout);
        let mut offsets = vec![0; (1 << layout.width()) + 1];
        distinct.iter().for_each(|&row| offsets[key.of(row) as usize + 1] += 1);
        let mut sum = 0;
        for offset in &mut offsets {
            sum += *offset;
            *offset = sum;
        }
        Places { key, offsets }
    }

    fn row_lines(&self, key: u64) -> u64 {
        let at = |key: u64| u64::from(self.offsets[key as usize]) * ROW;
        stretch_lines(at(key), at(key + 1))
    }
}

/// Two offsets, most often in one line.
fn offset_lines(key: u64) -> u64 {
    1 + u64::from(key * OFFSET / LINE != (key + 1) * OFFSET / LINE)
}

/// The lines of the rows from byte `start` to `end`, and those that the search asks for before it knows better: its
/// first and its last byte, and three more lines if the first is not enough.
fn stretch_lines(start: u64, end: u64) -> u64 {
    let last = end.saturating_sub(1);
    let asked = if end > start + LINE { start + 3 * LINE } else { start };
    last.max(asked) / LINE - last.min(start) / LINE + 1
}

/// Takes a key out of a signature.
struct Key {
    /// Runs of bits in key order: how far they are from the end, and how many.
    runs: Vec<(u32, u32)>,
}

impl Key {
    fn of_layout(layout: &KeyLayout) -> Self {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for bit in layout.positions() {
            let shift = 63 - bit;
            match runs.last_mut() {
                Some((last, width)) if *last == shift + 1 => (*last, *width) = (shift, *width + 1),
                _ => runs.push((shift, 1)),
            }
        }
        Key { runs }
    }

    fn of(&self, signature: u64) -> u64 {
        self.runs.iter().fold(0, |key, &(shift, width)| {
            key << width | signature >> shift & (u64::MAX >> (64 - width))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_the_bits_of_the_layout_in_its_order() {
        let key = Key::of_layout(&KeyLayout::new([4..12, 0..4, 60..64]));
        assert_eq!(key.of(0xabc0_0000_0000_000d), 0xbcad);
    }

    #[test]
    fn stretches_touch_every_line_that_is_read_or_asked_for() {
        assert_eq!(
            [(0, 64), (8, 72), (56, 64), (128, 136)].map(|(s, e)| stretch_lines(s, e)),
            [1, 2, 1, 1]
        );
        // Nothing there: the line is asked for all the same, and the one before it.
        assert_eq!([stretch_lines(72, 72), stretch_lines(64, 64), stretch_lines(0, 0)], [1, 2, 1]);
        assert_eq!([stretch_lines(0, 72), stretch_lines(0, 640)], [4, 10]);
        assert_eq!([offset_lines(0), offset_lines(15), offset_lines(16)], [1, 2, 1]);
    }

    #[test]
    fn places_are_where_rows_end_up() {
        let places = Places::of(&KeyLayout::new([0..1, 1..2]), &[0, 1, 2 << 62, 3 << 62]);
        assert_eq!(places.offsets, [0, 2, 2, 3, 4]);
    }
}
