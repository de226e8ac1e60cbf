//! Probes: which key values of a table does a query look at, and in which order?
//!
//! A table's key has 1 to 32 bits. Key bit 0 is the leading one: in a key of `p` bits, key bit `i` is bit `p - 1 - i` of
//! a `u32`. An order of probes is a list of *flips*: masks to XOR onto the query's own key value. The first is always 0,
//! the own value.
//!
//! - [`within`]: every value that is at most so many bits from the own one, for a guarantee.
//! - [`Heap`]: weakest first, as the papers on PSM define it. A neighbor's key differs, if it does, mostly in the bits
//!   that were nearly a draw, so a few probes find most neighbors.
//! - [`RankList`]: weakest first, worked out once for all queries. The order to use; the heap says what is right.

mod heap;
mod list;
#[cfg(test)]
mod recall;
mod within;

pub use heap::{Heap, norm};
pub use list::RankList;
pub use within::{count_within, exactly, within};

/// The widest key, in bits.
pub const MOST_KEY_BITS: u32 = 32;

fn check_bits(bits: usize) -> u32 {
    assert!((1..=MOST_KEY_BITS as usize).contains(&bits), "a key has 1 to 32 bits, not {bits}");
    bits as u32
}
