//! Two halves of a labelled set: one to choose settings on, one to score them on.

use crate::features::hash::mix;

/// Which half something of this name is in. All documents of a cluster are in one half, by the name of the cluster.
/// FNV-1a and a mix of its bits: short to write down in any language, so that others can be scored on the same half.
pub fn half(name: &str) -> bool {
    let fnv = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    mix(name.bytes().fold(0xcbf2_9ce4_8422_2325, fnv)) >> 63 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `benches/quality/peers.py` has the same values.
    #[test]
    fn halves_are_even_and_fixed() {
        let names: Vec<String> = (0..1000).map(|i| format!("cluster {i}")).collect();
        let in_first = names.iter().filter(|name| half(name)).count();
        assert!((450..550).contains(&in_first), "{in_first}");
        let known = ["", "a", "b", "c", "d", "e", "f", "g"].map(half);
        assert_eq!(known, [true, false, false, false, false, true, true, false]);
    }
}
