//! The words of ASCII text, 64 bytes at a time: each class of characters becomes a mask of bits, word boundaries follow from
//! a few operations on masks, and words are copied whole. No branch is taken for a single byte.

use super::words::WordRule;

/// The classes of UAX #29 as far as ASCII has them: bit `i` stands for byte `i` of a block.
#[derive(Debug, Clone, Copy, Default)]
struct Masks {
    letters: u64,
    digits: u64,
    underscores: u64,
    /// Join two letters, or two digits.
    mid_both: u64,
    /// Join two letters.
    mid_letter: u64,
    /// Join two digits.
    mid_digit: u64,
}

/// Bytes in a block.
const BLOCK: usize = 64;
/// Words are copied in pieces of so many bytes, past their ends if need be.
pub(super) const PIECE: usize = 16;

/// Calls `each` with the start and end of every word of `text`, which is ASCII.
#[inline]
pub(super) fn for_each_word(text: &[u8], rule: WordRule, mut each: impl FnMut(usize, usize)) {
    let mut before = Masks::default();
    let mut this = Masks::of(text, 0, rule);
    let mut open: Option<usize> = None;
    for start in (0..text.len()).step_by(BLOCK) {
        let next = Masks::of(text, start + BLOCK, rule);
        let words = this.words(&before, &next);
        // A bit where a word begins or ends.
        let mut edges = words ^ (words << 1 | u64::from(open.is_some()));
        while edges != 0 {
            let at = start + edges.trailing_zeros() as usize;
            edges &= edges - 1;
            open = match open {
                None => Some(at),
                Some(begin) => {
                    each(begin, at);
                    None
                }
            };
        }
        (before, this) = (this, next);
    }
    if let Some(begin) = open {
        each(begin, text.len());
    }
}

impl Masks {
    /// The masks of the block at `start`; of nothing, past the end.
    #[inline]
    fn of(text: &[u8], start: usize, rule: WordRule) -> Self {
        match text.get(start..start + BLOCK) {
            Some(block) => Masks::of_block(block.try_into().expect("a whole block"), rule),
            None if start >= text.len() => Masks::default(),
            None => {
                let rest = &text[start..];
                let mut block = [0; BLOCK];
                block[..rest.len()].copy_from_slice(rest);
                Masks::of_block(&block, rule)
            }
        }
    }

    #[inline]
    fn of_block(block: &[u8; BLOCK], rule: WordRule) -> Self {
        let mut masks = Masks::default();
        for (i, bytes) in block.as_chunks::<8>().0.iter().enumerate() {
            let bytes = u64::from_le_bytes(*bytes);
            let set = |mask: &mut u64, found: u64| *mask |= gather(found) << (8 * i);
            set(&mut masks.letters, in_range(bytes | splat(0x20), b'a', b'z'));
            set(&mut masks.digits, in_range(bytes, b'0', b'9'));
            set(&mut masks.underscores, equal(bytes, b'_'));
            if rule == WordRule::Unicode {
                set(&mut masks.mid_both, equal(bytes, b'.') | equal(bytes, b'\''));
                set(&mut masks.mid_letter, equal(bytes, b':'));
                set(&mut masks.mid_digit, equal(bytes, b',') | equal(bytes, b';'));
            }
        }
        masks
    }

    /// The bytes that stand in words: letters, digits and underscores, and what joins two letters or two digits (rules
    /// WB6, WB7, WB11 and WB12).
    #[inline]
    fn words(&self, before: &Masks, after: &Masks) -> u64 {
        let between = |this: u64, before: u64, after: u64| {
            (this << 1 | before >> 63) & (this >> 1 | after << 63)
        };
        let letters = between(self.letters, before.letters, after.letters);
        let digits = between(self.digits, before.digits, after.digits);
        let joins =
            (self.mid_both | self.mid_letter) & letters | (self.mid_both | self.mid_digit) & digits;
        self.letters | self.digits | self.underscores | joins
    }
}

const fn splat(byte: u8) -> u64 {
    byte as u64 * 0x0101_0101_0101_0101
}

/// The top bit of each byte that is in the range. All bytes are ASCII, so sums do not carry into the next one.
#[inline]
fn in_range(bytes: u64, first: u8, last: u8) -> u64 {
    let from_first = bytes + splat(0x80 - first);
    let past_last = bytes + splat(0x7f - last);
    from_first & !past_last & splat(0x80)
}

/// The top bit of each byte that is this one.
#[inline]
fn equal(bytes: u64, byte: u8) -> u64 {
    !((bytes ^ splat(byte)) + splat(0x7f)) & splat(0x80)
}

/// The top bits of eight bytes, the first byte's lowest.
#[inline]
fn gather(top_bits: u64) -> u64 {
    (top_bits >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// Copies `from[start..end]` to `to[at..]`, and perhaps some bytes more: both have [`PIECE`] bytes to spare.
#[inline]
pub(super) fn copy(from: &[u8], start: usize, end: usize, to: &mut [u8], at: usize) {
    let piece = |offset: usize| -> [u8; PIECE] {
        from[start + offset..start + offset + PIECE].try_into().expect("a whole piece")
    };
    to[at..at + PIECE].copy_from_slice(&piece(0));
    for offset in (PIECE..end - start).step_by(PIECE) {
        to[at + offset..at + offset + PIECE].copy_from_slice(&piece(offset));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_those_of_each_byte() {
        for byte in 0..128_u8 {
            for place in 0..8 {
                let bytes = u64::from(byte) << (8 * place);
                let gathered = |found: u64| gather(found) >> place & 1 == 1;
                assert_eq!(
                    gathered(in_range(bytes | splat(0x20), b'a', b'z')),
                    byte.is_ascii_alphabetic()
                );
                assert_eq!(gathered(in_range(bytes, b'0', b'9')), byte.is_ascii_digit());
                assert_eq!(gathered(equal(bytes, b'_')), byte == b'_');
            }
        }
        assert_eq!(gather(0x8000_8000_0080_0080), 0b1010_0101);
    }

    #[test]
    fn words_and_joins_cross_blocks() {
        for offset in 55..75 {
            let text = " ".repeat(offset) + "can't 3.14 a.1 long_word_across x:y";
            let mut words = Vec::new();
            for_each_word(text.as_bytes(), WordRule::Unicode, |start, end| {
                words.push(&text[start..end])
            });
            assert_eq!(words, ["can't", "3.14", "a", "1", "long_word_across", "x:y"]);
        }
    }
}
