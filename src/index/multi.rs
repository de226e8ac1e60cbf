//! Multi: slices, and around the query's own key all keys that the radius makes necessary. Exact for every radius.
//!
//! A slice has one table, or one for each of its parts, which leaves that part out. With 2 slices of 3 or 4 parts, a
//! radius of 3 is answered by own keys alone: one half has at most one error, and some table leaves it out.

use super::composition::{Looks, slice};
use crate::table::KeyLayout;

pub(super) fn compose(bits: u32, slices: u32, parts: u32) -> (Vec<KeyLayout>, Looks) {
    let layout = |i: u32| {
        let (range, left_out) = (slice(0..bits, slices, i / parts), i % parts);
        match parts {
            1 => KeyLayout::new([range]),
            // The last part is left out first: then the first key leads the signature.
            _ => {
                let kept = (0..parts).filter(|&part| part != parts - 1 - left_out);
                KeyLayout::new(kept.map(|part| slice(range.clone(), parts, part)))
            }
        }
    };
    let groups = (0..slices as usize).map(|i| i * parts as usize..(i + 1) * parts as usize);
    let looks = Looks::Around { groups: groups.collect(), at_most: None };
    ((0..slices * parts).map(layout).collect(), looks)
}
