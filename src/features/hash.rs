//! The hash of a feature. Part of the recipe: another hash gives other bits, so these never change.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128_with_seed};

/// Which hash function turns a feature's bytes into bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HashFunction {
    /// XXH3, in its 64-bit or 128-bit form: fast on short words.
    Xxh3,
    /// MurmurHash3_x64_128, the family that the PSM thesis used; 64 bits are its first half.
    Murmur3,
}

/// A hash function, its width and its seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FeatureHash {
    /// The function.
    pub function: HashFunction,
    /// 64 or 128: how many bits of a feature's hash are told apart.
    pub bits: u32,
    /// The seed; for Murmur3 its lower 32 bits.
    pub seed: u64,
}

impl Default for FeatureHash {
    fn default() -> Self {
        FeatureHash { function: HashFunction::Xxh3, bits: 64, seed: 0 }
    }
}

/// A feature's hash: the first word tells features apart, the second is 0 for hashes of 64 bits.
pub type HashWords = [u64; 2];

impl FeatureHash {
    /// The hash of a feature's bytes.
    #[inline]
    pub fn of(&self, feature: &[u8]) -> HashWords {
        let (low, high) = match (self.function, self.bits) {
            (HashFunction::Xxh3, 64) => (xxh3_64_with_seed(feature, self.seed), 0),
            (HashFunction::Xxh3, _) => halves(xxh3_128_with_seed(feature, self.seed)),
            (HashFunction::Murmur3, 64) => (halves(murmur3(feature, self.seed as u32)).0, 0),
            (HashFunction::Murmur3, _) => halves(murmur3(feature, self.seed as u32)),
        };
        [low, high]
    }
}

fn halves(hash: u128) -> (u64, u64) {
    (hash as u64, (hash >> 64) as u64)
}

/// Bits from a feature's hash without end: `stream(hash, i)` is its `i`th word.
///
/// The hash itself comes first, so that a signature of 64 bits (128 with a hash of 128) is made of nothing but the
/// stated hash. What follows is SplitMix64's output function (Steele, Lea and Flood, 2014) on a Weyl sequence that
/// starts at the hash.
#[inline]
pub fn stream(hash: HashWords, i: usize, hash_bits: u32) -> u64 {
    match (i, hash_bits) {
        (0, _) => hash[0],
        (1, 128) => hash[1],
        _ => mix(hash[0].wrapping_add((i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)) ^ hash[1]),
    }
}

/// SplitMix64's output function: every bit of the input reaches every bit of the output.
#[inline]
pub fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// MurmurHash3_x64_128 by Austin Appleby (public domain), its first word in the lower half.
fn murmur3(bytes: &[u8], seed: u32) -> u128 {
    const C1: u64 = 0x87c3_7b91_1142_53d5;
    const C2: u64 = 0x4cf5_ad43_2745_937f;
    let scramble1 = |k: u64| k.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2);
    let scramble2 = |k: u64| k.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1);
    let (mut h1, mut h2) = (u64::from(seed), u64::from(seed));

    let (blocks, tail) = bytes.as_chunks::<16>();
    for block in blocks {
        let (k1, k2) = halves(u128::from_le_bytes(*block));
        h1 = (h1 ^ scramble1(k1)).rotate_left(27).wrapping_add(h2);
        h1 = h1.wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 = (h2 ^ scramble2(k2)).rotate_left(31).wrapping_add(h1);
        h2 = h2.wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    let mut last = [0; 16];
    last[..tail.len()].copy_from_slice(tail);
    let (k1, k2) = halves(u128::from_le_bytes(last));
    h1 ^= scramble1(k1) ^ bytes.len() as u64;
    h2 ^= scramble2(k2) ^ bytes.len() as u64;

    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    (h1, h2) = (avalanche(h1), avalanche(h2));
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    u128::from(h2) << 64 | u128::from(h1)
}

fn avalanche(mut k: u64) -> u64 {
    k = (k ^ (k >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    k = (k ^ (k >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    k ^ (k >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Published values: SMHasher's verification of MurmurHash3_x64_128, and xxHash's sanity checks.
    #[test]
    fn hashes_are_the_published_ones() {
        let fox = b"The quick brown fox jumps over the lazy dog";
        assert_eq!(murmur3(b"", 0), 0);
        assert_eq!(halves(murmur3(fox, 0)), (0xe34b_bc7b_bc07_1b6c, 0x7a43_3ca9_c49a_9347));
        let xxh3 = FeatureHash::default();
        assert_eq!(xxh3.of(b""), [0x2d06_8005_38d3_94c2, 0]);
        let wide = FeatureHash { bits: 128, ..xxh3 };
        assert_eq!(wide.of(b""), [0x6001_c324_468d_497f, 0x99aa_06d3_0147_98d8]);
    }

    /// The check of the reference test suite: hash of the hashes of growing keys.
    #[test]
    fn murmur3_passes_the_reference_verification() {
        let mut hashes = Vec::new();
        let key: Vec<u8> = (0..=255).collect();
        for length in 0..256_usize {
            let hash = murmur3(&key[..length], 256 - length as u32);
            hashes.extend_from_slice(&hash.to_le_bytes());
        }
        assert_eq!(murmur3(&hashes, 0) as u32, 0x6384_ba69);
    }

    #[test]
    fn the_first_words_of_the_stream_are_the_hash() {
        let hash = [1, 2];
        assert_eq!(stream(hash, 0, 64), 1);
        assert_eq!(stream(hash, 1, 128), 2);
        assert_ne!(stream([1, 0], 1, 64), 0);
        assert_ne!(stream([1, 0], 1, 64), stream([1, 0], 2, 64));
    }
}
