//! The smallest value of many hash functions over a set: what MinHash signatures are made of.
//!
//! It is no distance, but a kernel, and kernels live here.

/// So many functions stay in registers while all elements of a set pass.
const BLOCK: usize = 64;

/// The functions `x -> multiplier * x + addend` of 32 bits; as many of the one as of the other, a multiple of 64.
#[derive(Debug, Clone, Default)]
pub struct Functions {
    pub(crate) multipliers: Vec<u32>,
    pub(crate) addends: Vec<u32>,
}

/// Lowers each of `minima` to the smallest value of its function over the set.
#[inline(always)]
pub(super) fn lower(set: &[u32], functions: &Functions, minima: &mut [u32]) {
    let multipliers = functions.multipliers.as_chunks::<BLOCK>().0;
    let addends = functions.addends.as_chunks::<BLOCK>().0;
    let minima = minima.as_chunks_mut::<BLOCK>().0;
    for ((multipliers, addends), minima) in multipliers.iter().zip(addends).zip(minima) {
        let mut lowest = *minima;
        for &x in set {
            for i in 0..BLOCK {
                let value = multipliers[i].wrapping_mul(x).wrapping_add(addends[i]);
                lowest[i] = lowest[i].min(value);
            }
        }
        *minima = lowest;
    }
}

/// MurmurHash3's last step (Appleby): every bit of the input reaches every bit of the output.
#[inline(always)]
pub(crate) fn mix32(mut x: u32) -> u32 {
    x = (x ^ (x >> 16)).wrapping_mul(0x85eb_ca6b);
    x = (x ^ (x >> 13)).wrapping_mul(0xc2b2_ae35);
    x ^ (x >> 16)
}

/// One well-mixed bit of each minimum, the first as the leading bit of the first word.
#[inline(always)]
pub(super) fn bits(minima: &[u32], words: &mut [u64]) {
    for (minima, word) in minima.as_chunks::<64>().0.iter().zip(words) {
        let mut mixed = *minima;
        mixed.iter_mut().for_each(|minimum| *minimum = mix32(*minimum) & 1);
        // Each bit goes to its place by itself: so several do at a time.
        *word = (0..64).fold(0, |word, i| word | u64::from(mixed[i]) << (63 - i));
    }
}

/// The keys of bands: hashes of several minima each. A band has one of every so many as there are bands, so that those of
/// neighboring bands are side by side and several keys are made at a time.
#[inline(always)]
pub(super) fn keys(minima: &[u32], keys: &mut [u32]) {
    if keys.is_empty() {
        return;
    }
    keys.fill(0x9e37_79b9);
    for minima in minima.chunks_exact(keys.len()) {
        for (key, &minimum) in keys.iter_mut().zip(minima) {
            *key = (key.rotate_left(5) ^ minimum).wrapping_mul(0xcc9e_2d51);
        }
    }
    keys.iter_mut().for_each(|key| *key = mix32(*key));
}
