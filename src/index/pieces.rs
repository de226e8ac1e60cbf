//! Pieces (Henzinger; AboutCode): differences in `slices - 1` bits leave one slice untouched.

use super::composition::{Looks, slice};
use crate::table::KeyLayout;

pub(super) fn compose(bits: u32, slices: u32) -> (Vec<KeyLayout>, Looks) {
    let layouts = (0..slices).map(|i| KeyLayout::new([slice(0..bits, slices, i)])).collect();
    (layouts, Looks::Own { guarantee: slices - 1 })
}
