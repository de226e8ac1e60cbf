//! One-bit MinHash (Broder 1997; Li and König 2010): for each bit the smallest hash over the set of features, and of that
//! one well-mixed bit. Two sets with Jaccard coefficient J agree in a bit with probability (1 + J) / 2.
//!
//! Beside the signature, whole minima make *band keys*: two sets have all minima of a band of r in common with
//! probability J^r. They lead to candidates that the signature's bits alone would not.

use serde::{Deserialize, Serialize};

use super::Signature;
use crate::{
    Error, Result,
    features::hash::mix,
    hamming::{Functions, Kernel, kernel},
};

/// Keys made of whole minima: `count` bands of `rows` minima each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bands {
    /// How many keys a document has.
    pub count: usize,
    /// How many minima make a key.
    pub rows: usize,
}

impl Bands {
    /// Which minima make which key: keys of different schemes have nothing to do with each other.
    pub const SCHEME: u32 = 2;

    /// The probability that two sets have a key in common.
    pub fn chance(&self, jaccard: f64) -> f64 {
        1.0 - (1.0 - jaccard.powi(self.rows as i32)).powi(self.count as i32)
    }
}

/// The hash functions of a width, ready to sign sets.
#[derive(Debug, Clone)]
pub struct MinHash {
    functions: Functions,
    kernel: Kernel,
}

/// What stands for a feature in a set: half of its hash.
pub fn element(hash: u64) -> u32 {
    (hash >> 32) as u32
}

impl MinHash {
    /// As many functions as the signature has bits.
    pub fn new(bits: u32) -> Result<Self> {
        if bits == 0 || !bits.is_multiple_of(64) {
            return Err(Error::Width { bits: bits as usize });
        }
        let word = |i: u64| mix(i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let words = (1..=u64::from(bits)).map(word);
        // An odd multiplier loses nothing: the function is a permutation.
        let (multipliers, addends) =
            words.map(|word| ((word >> 32) as u32 | 1, word as u32)).unzip();
        Ok(MinHash { functions: Functions { multipliers, addends }, kernel: kernel()? })
    }

    /// The smallest value of each function over a set, in place of what was in `minima`. Elements may repeat.
    pub fn minima(&self, set: &[u32], minima: &mut Vec<u32>) {
        minima.clear();
        minima.resize(self.functions.multipliers.len(), u32::MAX);
        self.kernel.minima(set, &self.functions, minima);
    }

    /// The signature of a set with these minima.
    pub fn signature(&self, minima: &[u32]) -> Signature {
        let mut words = vec![0; minima.len() / 64];
        self.kernel.bits_of_minima(minima, &mut words);
        Signature { bits: minima.len() as u32, words }
    }

    /// The keys of a set with these minima, which must suffice for the bands, in place of what was in `keys`.
    pub fn keys(&self, minima: &[u32], bands: Bands, keys: &mut Vec<u32>) {
        keys.clear();
        keys.resize(bands.count, 0);
        self.kernel.keys_of_minima(&minima[..bands.count * bands.rows], keys);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hamming::mix32;

    fn random(seed: u64, n: usize) -> Vec<u32> {
        (0..n as u64).map(|i| mix(seed.wrapping_mul(1 << 32).wrapping_add(i)) as u32).collect()
    }

    #[test]
    fn minima_are_as_defined_on_every_kernel() {
        let minhash = MinHash::new(192).unwrap();
        let set = random(1, 100);
        let functions = &minhash.functions;
        let expected: Vec<u32> = (0..192)
            .map(|i| {
                let value = |x: &u32| {
                    functions.multipliers[i].wrapping_mul(*x).wrapping_add(functions.addends[i])
                };
                set.iter().map(value).min().unwrap()
            })
            .collect();
        for kernel in Kernel::available() {
            let minhash = MinHash { kernel, ..minhash.clone() };
            let mut minima = Vec::new();
            minhash.minima(&set, &mut minima);
            assert_eq!(minima, expected, "{kernel:?}");
            let signature = minhash.signature(&minima);
            for (bit, &minimum) in minima.iter().enumerate() {
                let set = signature.words()[bit / 64] >> (63 - bit % 64) & 1 == 1;
                assert_eq!(set, mix32(minimum) & 1 == 1, "{kernel:?}, bit {bit}");
            }
            let (bands, mut keys) = (Bands { count: 31, rows: 6 }, vec![7]);
            minhash.keys(&minima, bands, &mut keys);
            for (band, &key) in keys.iter().enumerate() {
                let minima = (0..bands.rows).map(|row| minima[row * bands.count + band]);
                let hashed = minima.fold(0x9e37_79b9_u32, |key, minimum| {
                    (key.rotate_left(5) ^ minimum).wrapping_mul(0xcc9e_2d51)
                });
                assert_eq!(key, mix32(hashed), "{kernel:?}, band {band}");
            }
            assert_eq!(keys.len(), bands.count);
        }
    }

    /// Distance / bits estimates (1 - J) / 2, and keys agree as often as the formula says.
    #[test]
    fn distances_and_keys_follow_the_jaccard_coefficient() {
        let minhash = MinHash::new(256).unwrap();
        let bands = Bands { count: 20, rows: 6 };
        for (shared, own) in [(90, 5), (70, 15), (40, 20)] {
            let jaccard = f64::from(shared) / f64::from(shared + 2 * own);
            let (mut distance, mut met, trials) = (0, 0, 400);
            for trial in 0..trials {
                let common = random(3 * trial + 1, shared as usize);
                let sides = [2, 3].map(|side| {
                    let mut set = common.clone();
                    set.extend(random(3 * trial + side + 1_000_000, own as usize));
                    let mut minima = Vec::new();
                    minhash.minima(&set, &mut minima);
                    let mut keys = Vec::new();
                    minhash.keys(&minima, bands, &mut keys);
                    (minhash.signature(&minima), keys)
                });
                let words = |side: usize| sides[side].0.words();
                distance += minhash.kernel.distance(words(0), words(1));
                met += usize::from(sides[0].1.iter().zip(&sides[1].1).any(|(a, b)| a == b));
            }
            let mean = f64::from(distance) / trials as f64 / 256.0;
            assert!((mean - (1.0 - jaccard) / 2.0).abs() < 0.01, "J {jaccard}: {mean}");
            let met = met as f64 / trials as f64;
            assert!((met - bands.chance(jaccard)).abs() < 0.07, "J {jaccard}: {met}");
        }
    }
}
