//! Signatures: bit strings that change by a few bits when a document changes a little.
//!
//! Bit 0 is the *leading* bit: the most significant bit of the first word, the first bit of the first hexadecimal
//! digit, and the most significant bit of the first byte, as `numpy.packbits` has it. A width that is no multiple of 64
//! leaves the rest of its last word zero.

pub(crate) mod margins;
pub mod minhash;
mod packed;
pub(crate) mod simhash;
pub(crate) mod topsig;

pub use packed::Signatures;

use std::fmt;

use crate::{Error, Result};

/// The narrowest and the widest signature, in bits.
pub const WIDTHS: std::ops::RangeInclusive<u32> = 32..=4096;

/// Checks that `bits` is a width that we store.
pub fn check_width(bits: usize) -> Result<u32> {
    match u32::try_from(bits) {
        Ok(width) if WIDTHS.contains(&width) && width % 8 == 0 => Ok(width),
        _ => Err(Error::Width { bits }),
    }
}

/// How many 64-bit words hold `bits` bits.
pub const fn words_for(bits: u32) -> usize {
    bits.div_ceil(64) as usize
}

/// Checks that words are whole rows of `bits` bits, zero past the width: distances count every bit.
pub(crate) fn check_words(bits: u32, words: &[u64]) -> Result<()> {
    check_width(bits as usize)?;
    let bad = |problem| Err(Error::Words { words: words.len(), bits, problem });
    let stride = words_for(bits);
    if !words.len().is_multiple_of(stride) {
        return bad("the last row is cut");
    }
    let past = bits % 64;
    if past != 0 && words.chunks_exact(stride).any(|row| row[stride - 1] << past != 0) {
        return bad("bits past the width are not zero");
    }
    Ok(())
}

/// One signature.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Signature {
    bits: u32,
    words: Vec<u64>,
}

impl Signature {
    /// A signature of `bits` bits from its words; bits past the width must be zero.
    pub fn from_words(bits: u32, words: Vec<u64>) -> Result<Self> {
        check_words(bits, &words)?;
        match words.len() == words_for(bits) {
            true => Ok(Signature { bits, words }),
            false => Err(Error::Words { words: words.len(), bits, problem: "it is not one row" }),
        }
    }

    /// A signature from its bytes, leading byte first.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let bits = check_width(bytes.len() * 8)?;
        Ok(Signature { bits, words: words_of_bytes(bytes).collect() })
    }

    /// A signature from hexadecimal digits, leading digit first, with or without `0x`.
    pub fn from_hex(text: &str) -> Result<Self> {
        let bad = |problem| Error::Hex { text: text.chars().take(40).collect(), problem };
        let digits = text.strip_prefix("0x").unwrap_or(text);
        if !digits.len().is_multiple_of(2) {
            return Err(bad("it has an odd number of hexadecimal digits"));
        }
        let bytes = digits
            .as_bytes()
            .chunks_exact(2)
            .map(|pair| Some(hex_digit(pair[0])? << 4 | hex_digit(pair[1])?))
            .collect::<Option<Vec<u8>>>()
            .ok_or_else(|| bad("it has something other than the digits 0-9 and a-f"))?;
        Signature::from_bytes(&bytes)
    }

    /// The width in bits.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// The words, leading word first.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The bytes, leading byte first.
    pub fn to_bytes(&self) -> Vec<u8> {
        bytes_of_words(self.bits, &self.words).collect()
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        bytes_of_words(self.bits, &self.words).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signature({} bits, {self})", self.bits)
    }
}

/// The words of a signature whose bytes come leading byte first.
pub fn words_of_bytes(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_be_bytes(word)
    })
}

/// The bytes of a signature of `bits` bits, leading byte first.
pub fn bytes_of_words(bits: u32, words: &[u64]) -> impl Iterator<Item = u8> + '_ {
    words.iter().flat_map(|word| word.to_be_bytes()).take(bits as usize / 8)
}

fn hex_digit(digit: u8) -> Option<u8> {
    (digit as char).to_digit(16).map(|value| value as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_bytes_and_words_agree_on_the_leading_bit() {
        let signature = Signature::from_hex("8000000000000001ff").unwrap();
        assert_eq!(signature.bits(), 72);
        assert_eq!(signature.words(), [0x8000_0000_0000_0001, 0xff00_0000_0000_0000]);
        assert_eq!(signature.to_bytes(), [0x80, 0, 0, 0, 0, 0, 0, 1, 0xff]);
        assert_eq!(signature.to_string(), "8000000000000001ff");
        assert_eq!(Signature::from_bytes(&signature.to_bytes()).unwrap(), signature);
    }

    #[test]
    fn what_is_no_signature_is_refused() {
        for (text, problem) in [
            ("abc", "odd number"),
            ("zzzzzzzz", "something other"),
            ("abcd", "16 bits is not a signature width"),
            ("", "0 bits is not a signature width"),
        ] {
            let error = Signature::from_hex(text).unwrap_err().to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
        assert!(
            check_width(4104).is_err() && check_width(4096).is_ok() && check_width(33).is_err()
        );
    }
}
