//! TopSig (Geva and De Vries 2011): each term owns a sparse random vector; a document is their weighted sum.

use crate::features::{
    hash::{HashWords, mix, stream},
    weights::Weighted,
};

/// One in about this many positions of a term's vector is set.
const DENSITY: usize = 21;

/// Adds each term's vector, times its weight, to `votes`, one number per bit of the signature, leading bit first.
pub(crate) fn project(features: &Weighted, hash_bits: u32, votes: &mut [i64]) {
    votes.fill(0);
    let vectors = TermVectors::new(votes.len(), hash_bits);
    for (hash, weight) in features.iter() {
        let weight = weight as i64;
        vectors.for_each(hash, |position, positive| {
            votes[position] += if positive { weight } else { -weight };
        });
    }
}

/// The sparse vectors of terms: `set` positions of `bits`, half of them +1 and half -1.
///
/// The positions are cut into `set` strata of nearly equal size and one is drawn from each, so they are distinct without
/// a second try; strata go in pairs, one of them +1 and the other -1. (Kane and Nelson, 2014, show for vectors of this
/// block form what Achlioptas, 2003, shows for independent positions: distances survive the projection.)
struct TermVectors {
    /// Where each stratum begins, and the end.
    starts: Vec<u16>,
    hash_bits: u32,
}

impl TermVectors {
    fn new(bits: usize, hash_bits: u32) -> Self {
        let set = ((bits + DENSITY) / (2 * DENSITY) * 2).max(2);
        let starts = (0..=set).map(|stratum| (stratum * bits / set) as u16).collect();
        TermVectors { starts, hash_bits }
    }

    /// Calls `each` with every set position of the term's vector and whether it is +1.
    #[inline]
    fn for_each(&self, hash: HashWords, mut each: impl FnMut(usize, bool)) {
        // A word of randomness serves two pairs of strata, 32 bits each.
        for (i, four) in self.starts.windows(5).step_by(4).enumerate() {
            let random = self.random(hash, i);
            for pair in 0..2 {
                draw_pair(&four[2 * pair..], (random >> (32 * pair)) as u32, &mut each);
            }
        }
        let pairs = self.starts.len() / 2;
        if pairs % 2 == 1 {
            let random = self.random(hash, pairs / 2);
            draw_pair(&self.starts[2 * (pairs - 1)..], random as u32, &mut each);
        }
    }

    /// The random words are those of the hash's own stream, mixed once more: SimHash takes its bits from that stream.
    fn random(&self, hash: HashWords, i: usize) -> u64 {
        mix(stream(hash, i, self.hash_bits) ^ 0x746f_7073_6967)
    }
}

/// Draws one position of each of two strata, 15 bits of randomness each, and which of the two is +1.
#[inline]
fn draw_pair(starts: &[u16], random: u32, each: &mut impl FnMut(usize, bool)) {
    let draw = |stratum: usize, random: u32| {
        let (start, end) = (u32::from(starts[stratum]), u32::from(starts[stratum + 1]));
        (start + (random & 0x7fff) * (end - start) / 0x8000) as usize
    };
    let first_is_positive = random >> 31 == 1;
    each(draw(0, random), first_is_positive);
    each(draw(1, random >> 15), !first_is_positive);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(bits: usize, hash: u64) -> Vec<i64> {
        let mut vector = vec![0; bits];
        TermVectors::new(bits, 64).for_each([hash, 0], |position, positive| {
            assert_eq!(vector[position], 0, "positions are distinct");
            vector[position] = if positive { 1 } else { -1 };
        });
        vector
    }

    #[test]
    fn about_one_in_21_positions_is_set_half_of_them_positive() {
        for bits in (64..=4096).step_by(64) {
            let vector = vector(bits, mix(bits as u64));
            let positive = vector.iter().filter(|&&v| v == 1).count();
            let negative = vector.iter().filter(|&&v| v == -1).count();
            assert_eq!(positive, negative);
            let wanted = bits as f64 / DENSITY as f64;
            assert!(((positive + negative) as f64 - wanted).abs() <= 1.0, "{bits} bits");
        }
    }

    #[test]
    fn every_position_is_drawn_alike() {
        let bits = 1024;
        let mut drawn = vec![(0, 0); bits];
        let terms = 20_000;
        for term in 0..terms {
            for (place, value) in vector(bits, mix(term)).iter().enumerate() {
                drawn[place].0 += value.abs();
                drawn[place].1 += value;
            }
        }
        for (place, (set, sum)) in drawn.iter().enumerate() {
            let share = *set as f64 * 1024.0 / 48.0 / terms as f64;
            assert!((0.8..1.2).contains(&share), "position {place} is drawn {share} as often");
            assert!(sum.abs() < 200, "position {place} sums to {sum}");
        }
    }

    #[test]
    fn projection_adds_the_weighted_vectors() {
        let (a, b) = (mix(1), mix(2));
        let features = Weighted { ones: vec![], others: vec![([a, 0], 3), ([b, 0], 5)] };
        let mut votes = vec![7; 256];
        project(&features, 64, &mut votes);
        let expected: Vec<i64> =
            vector(256, a).iter().zip(vector(256, b)).map(|(a, b)| 3 * a + 5 * b).collect();
        assert_eq!(votes, expected);
    }
}
