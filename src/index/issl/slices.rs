//! Which bits are in which slice?

use crate::{
    Error, Result,
    index::slice,
    table::{KeyLayout, WIDEST_KEY},
};

/// The narrowest slice: with fewer bits a list would have a good part of all rows.
pub(super) const NARROWEST: u32 = 8;
/// The rule of thumb of the paper: so many bits for a million rows, and one more each time they double.
const WIDTH_OF_A_MILLION: i64 = 16;

/// A signature cut into slices whose widths differ by at most one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Slices {
    pub(super) layouts: Vec<KeyLayout>,
    pub(super) widths: Vec<u32>,
}

impl Slices {
    /// Slices of at most `width` bits, as few as that takes.
    pub(super) fn new(bits: u32, width: u32) -> Result<Self> {
        if !(NARROWEST..=WIDEST_KEY).contains(&width) {
            let problem = format!("slices have {NARROWEST} to {WIDEST_KEY} bits");
            return Err(Error::Method { method: format!("issl-{width}"), problem });
        }
        let count = bits.div_ceil(width);
        let layout = |i| KeyLayout::new([slice(0..bits, count, i)]);
        let layouts: Vec<KeyLayout> = (0..count).map(layout).collect();
        let widths = layouts.iter().map(KeyLayout::width).collect();
        Ok(Slices { layouts, widths })
    }

    pub(super) fn len(&self) -> usize {
        self.widths.len()
    }

    /// The width of the widest.
    pub(super) fn width(&self) -> u32 {
        self.widths.iter().copied().max().unwrap_or(0)
    }
}

/// The width that suits so many rows.
pub(super) fn width_for(rows: usize) -> u32 {
    let doublings = libm::round(libm::log2(rows.max(1) as f64 / 1e6)) as i64;
    let width = WIDTH_OF_A_MILLION + doublings;
    width.clamp(i64::from(NARROWEST), i64::from(WIDEST_KEY)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_differ_by_at_most_one() {
        let widths = |bits, width| Slices::new(bits, width).unwrap().widths;
        assert_eq!(widths(1024, 16), [16; 64]);
        assert_eq!(widths(32, 8), [8; 4]);
        for (bits, width) in [(1024, 17), (1024, 26), (72, 9), (72, 11), (4096, 28), (40, 28)] {
            let widths = widths(bits, width);
            let (least, most) = (widths.iter().min().unwrap(), widths.iter().max().unwrap());
            assert_eq!(widths.len() as u32, bits.div_ceil(width));
            assert_eq!(widths.iter().sum::<u32>(), bits);
            assert!(*most <= width && most - least <= 1, "{bits} {width}: {widths:?}");
        }
        let jagged = widths(1024, 17);
        assert_eq!((jagged.len(), jagged.iter().filter(|&&width| width == 17).count()), (61, 48));
        assert!(Slices::new(64, 7).is_err() && Slices::new(64, 29).is_err());
    }

    #[test]
    fn a_bit_for_each_doubling() {
        let widths = [1_000_000, 2_000_000, 500_000, 62_500, 999_993, 500_000_000].map(width_for);
        assert_eq!(widths, [16, 17, 15, 12, 16, 25]);
        assert_eq!([0, 1, u32::MAX as usize].map(width_for), [8, 8, 28]);
    }
}
