//! Which bits of a signature form a key.

use std::{iter::once, ops::Range};

use serde::{Deserialize, Serialize};

/// The bits of a signature that form a table's key: ranges of bits, in key order. The first bit leads.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyLayout {
    ranges: Vec<Range<u32>>,
}

/// The widest key: its offsets take a gigabyte.
pub const WIDEST_KEY: u32 = 28;

impl KeyLayout {
    /// A key of these ranges of bits.
    pub fn new(ranges: impl IntoIterator<Item = Range<u32>>) -> Self {
        let mut joined: Vec<Range<u32>> = Vec::new();
        for range in ranges.into_iter().filter(|range| !range.is_empty()) {
            match joined.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => joined.push(range),
            }
        }
        KeyLayout { ranges: joined }
    }

    /// The same key, cut after `width` bits.
    pub fn truncated(&self, width: u32) -> Self {
        let mut left = width;
        KeyLayout::new(self.ranges.iter().map(|range| {
            let taken = left.min(range.end - range.start);
            left -= taken;
            range.start..range.start + taken
        }))
    }

    /// How many bits the key has.
    pub fn width(&self) -> u32 {
        self.ranges.iter().map(|range| range.end - range.start).sum()
    }

    /// The key's bits, in key order.
    pub fn positions(&self) -> impl Iterator<Item = u32> {
        self.ranges.iter().cloned().flatten()
    }

    /// Whether the key is the leading bits of the signature.
    pub fn is_leading(&self) -> bool {
        self.ranges.len() <= 1 && self.ranges.first().is_none_or(|range| range.start == 0)
    }

    /// The bits that are not in the key, in order: what is left to store of a row whose key is known.
    pub(crate) fn rest(&self, bits: u32) -> KeyLayout {
        let mut taken = self.ranges.clone();
        taken.sort_by_key(|range| range.start);
        let starts = once(0).chain(taken.iter().map(|range| range.end));
        let ends = taken.iter().map(|range| range.start).chain(once(bits));
        KeyLayout::new(starts.zip(ends).map(|(start, end)| start..end))
    }

    /// The same bits, ready to be taken out of rows.
    pub(crate) fn fields(&self) -> Fields {
        Fields(self.ranges.iter().cloned().flat_map(Field::of).collect())
    }
}

/// A layout, ready to be taken out of rows.
#[derive(Debug, Clone)]
pub(crate) struct Fields(Vec<Field>);

/// Bits of one word.
#[derive(Debug, Clone, Copy)]
struct Field {
    word: usize,
    /// How far the bits are from the end of the word.
    shift: u32,
    width: u32,
}

impl Field {
    /// A range of bits, cut where words end.
    fn of(range: Range<u32>) -> impl Iterator<Item = Field> {
        (range.start / 64..range.end.div_ceil(64)).map(move |word| {
            let (start, end) = (range.start.max(word * 64), range.end.min(word * 64 + 64));
            Field { word: word as usize, shift: word * 64 + 64 - end, width: end - start }
        })
    }

    #[inline(always)]
    fn take(self, row: &[u64]) -> u64 {
        row[self.word] >> self.shift & self.mask()
    }

    #[inline(always)]
    fn mask(self) -> u64 {
        u64::MAX >> (64 - self.width)
    }
}

impl Fields {
    /// The bits of a row, the first leading. There are at most 64 of them.
    #[inline(always)]
    pub(crate) fn take(&self, row: &[u64]) -> u64 {
        // Most keys are a few stretches of bits: these are worth a way of their own.
        let join = |high: u64, low: Field| high << low.width | low.take(row);
        match self.0[..] {
            [a] => a.take(row),
            [a, b] => join(a.take(row), b),
            [a, b, c] => join(join(a.take(row), b), c),
            _ => self.take_all(row),
        }
    }

    /// The same of each of some rows of so many words, for at most 32 bits.
    pub(crate) fn take_each(&self, rows: &[u64], stride: usize, taken: &mut [u32]) {
        match self.stretches() {
            Some(stretches) if stride == 1 => {
                let rows = rows.iter().zip(taken);
                rows.for_each(|(&word, taken)| *taken = stretches.take(word) as u32);
            }
            _ => {
                let rows = rows.chunks_exact(stride).zip(taken);
                rows.for_each(|(row, taken)| *taken = self.take(row) as u32);
            }
        }
    }

    fn take_all(&self, row: &[u64]) -> u64 {
        self.0.iter().fold(0, |taken, field| {
            // A shift by 64 has no meaning for the CPU; nothing is above a whole word.
            let above = taken.checked_shl(field.width).unwrap_or(0);
            above | field.take(row)
        })
    }

    /// The same for rows of one word, if the bits are a stretch or two: most keys are.
    pub(crate) fn stretches(&self) -> Option<Stretches> {
        // A field goes to its place in the key by a rotation.
        let stretch = |field: Field, below: u32| {
            ((field.shift + 64 - below) % 64, field.mask().checked_shl(below).unwrap_or(0))
        };
        match self.0[..] {
            [a] if a.word == 0 => Some(Stretches([stretch(a, 0), (0, 0)])),
            [a, b] if a.word == 0 && b.word == 0 => {
                Some(Stretches([stretch(a, b.width), stretch(b, 0)]))
            }
            _ => None,
        }
    }

    /// The bits of a row of one word.
    #[inline(always)]
    pub(crate) fn take_word(&self, word: u64) -> u64 {
        self.take(&[word])
    }

    /// The opposite of [`take_word`](Self::take_word): bits go back to their places, the other places are zero.
    pub(crate) fn put_word(&self, mut taken: u64) -> u64 {
        self.0.iter().rev().fold(0, |word, field| {
            let bits = taken & field.mask();
            taken = taken.checked_shr(field.width).unwrap_or(0);
            word | bits << field.shift
        })
    }
}

/// Bits of one word, as rotations and what is left of the word after them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stretches([(u32, u64); 2]);

impl Stretches {
    #[inline(always)]
    pub(crate) fn take(self, word: u64) -> u64 {
        let [(by, of), (by_next, of_next)] = self.0;
        word.rotate_right(by) & of | word.rotate_right(by_next) & of_next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_taken_in_its_order_and_put_back() {
        let layout = KeyLayout::new([8..16, 0..4, 4..8]);
        assert_eq!((layout.width(), layout.is_leading()), (16, false));
        assert_eq!(
            layout.positions().take(9).collect::<Vec<_>>(),
            [8, 9, 10, 11, 12, 13, 14, 15, 0]
        );
        let fields = layout.fields();
        assert_eq!(fields.take_word(0x1234_5678_9abc_def0), 0x3412);
        assert_eq!(fields.stretches().unwrap().take(0x1234_5678_9abc_def0), 0x3412);
        assert_eq!(fields.put_word(0x3412), 0x1234 << 48);
        let rest = layout.rest(64);
        assert_eq!(rest, KeyLayout::new(std::iter::once(16..64)));
        assert_eq!(rest.fields().take_word(0x1234_5678_9abc_def0), 0x5678_9abc_def0);
        assert_eq!(layout.truncated(10), KeyLayout::new([8..16, 0..2]));
        assert_eq!(KeyLayout::new(std::iter::once(0..64)).fields().take_word(!0), !0);
        assert_eq!(KeyLayout::new([]).rest(64).fields().put_word(7), 7);
    }

    #[test]
    fn a_key_may_cross_words() {
        let layout = KeyLayout::new([60..70, 127..128]);
        assert_eq!(layout.fields().take(&[0b1010, 0b11_0011 << 58 | 1]), 0b101_0110_0111);
    }
}
