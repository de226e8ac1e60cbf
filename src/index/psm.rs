//! PSM (Sood): the likeliest keys only, weakest bits first. One table of leading bits as in the papers, or several
//! slices: then fewer probes find as much, and with enough of them everything.

use super::composition::{Looks, slice};
use crate::table::KeyLayout;

pub(super) fn compose(bits: u32, tables: u32, probes: u32) -> (Vec<KeyLayout>, Looks) {
    let layouts = (0..tables).map(|i| KeyLayout::new([slice(0..bits, tables, i)])).collect();
    let groups = (0..tables as usize).map(|i| i..i + 1).collect();
    (layouts, Looks::Around { groups, at_most: Some(probes) })
}
