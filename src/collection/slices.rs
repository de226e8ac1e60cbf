//! The slice table of SQL: which bytes of a signature are a slice, and which radius so many slices are enough for.
//!
//! A database has an index on each slice of the signatures. Differences in `radius` bits touch at most so many slices, so
//! with one slice more there is one that two near signatures share. Slices are whole bytes, which every database can cut
//! out of a value by itself; their widths differ by at most one.

use std::ops::Range;

use crate::{Error, Result, index::slice};

/// The bytes of each of so many slices of signatures of `bits` bits.
pub(super) fn slices(bits: u32, count: u32) -> impl Iterator<Item = Range<u32>> {
    (0..count).map(move |i| slice(0..bits / 8, count, i))
}

/// How many slices find everything within a radius.
pub fn slices_for(bits: u32, radius: u32) -> Result<u32> {
    match radius < bits / 8 {
        true => Ok(radius + 1),
        false => Err(Error::Setting {
            name: "radius",
            problem: format!(
                "{radius} is too wide for slices in SQL: signatures of {bits} bits have {} bytes, and a slice is a byte \
                 at least, so {} is the widest",
                bits / 8,
                bits / 8 - 1
            ),
        }),
    }
}

/// The radius within which so many slices find everything.
pub fn guarantee(slices: u32) -> u32 {
    slices.saturating_sub(1)
}

/// A radius that is wider than slices guarantee is refused: they would miss some.
pub(super) fn check_radius(slices: u32, radius: u32) -> Result<()> {
    let within = guarantee(slices);
    match radius <= within {
        true => Ok(()),
        false => Err(Error::BeyondSlices { radius, guarantee: within }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_all_the_bytes() {
        for (bits, count, widths) in
            [(64, 4, vec![2, 2, 2, 2]), (64, 3, vec![2, 3, 3]), (128, 1, vec![16])]
        {
            let slices: Vec<_> = slices(bits, count).collect();
            assert_eq!(slices.iter().map(|slice| slice.len()).collect::<Vec<_>>(), widths);
            assert_eq!((slices[0].start, slices.last().unwrap().end), (0, bits / 8));
            assert!(slices.windows(2).all(|pair| pair[0].end == pair[1].start));
        }
        assert_eq!(slices_for(64, 3).unwrap(), 4);
        assert!(slices_for(64, 8).is_err());
    }
}
