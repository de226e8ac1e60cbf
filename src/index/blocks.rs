//! Blocks (Manku and others, BPHS): differences in `blocks - leading` bits leave some choice of `leading` blocks
//! untouched. Each choice is the key of a table.

use super::composition::{Looks, slice};
use crate::table::KeyLayout;

pub(super) fn compose(bits: u32, blocks: u32, leading: u32) -> (Vec<KeyLayout>, Looks) {
    let layout = |choice: u32| {
        let chosen = (0..blocks).filter(|i| choice >> i & 1 == 1);
        KeyLayout::new(chosen.map(|i| slice(0..bits, blocks, i)))
    };
    let choices = (0..1 << blocks).filter(|choice: &u32| choice.count_ones() == leading);
    (choices.map(layout).collect(), Looks::Own { guarantee: blocks - leading })
}
