//! SimHash (Charikar 2002): every feature votes on every bit, with its weight, as its hash says.

use crate::features::{
    hash::{HashWords, stream},
    weights::{ONE, Weighted},
};

/// Sums the votes on each bit into `votes`, one number per bit of the signature, leading bit first.
///
/// The vote on a bit is the weight of the features whose hash has it, less the weight of those whose hash has not; that
/// is twice the first less the weight of all. So only the first is summed.
pub(crate) fn vote(features: &Weighted, hash_bits: u32, votes: &mut [i64]) {
    let all: u64 = features.iter().map(|(_, weight)| weight).sum();
    for (i, votes) in votes.chunks_exact_mut(64).enumerate() {
        let mut sums = [0_u64; 64];
        add_ones(&features.ones, |hash| stream(hash, i, hash_bits), &mut sums);
        add_weighted(&features.others, |hash| stream(hash, i, hash_bits), &mut sums);
        for (vote, sum) in votes.iter_mut().zip(sums) {
            *vote = 2 * sum as i64 - all as i64;
        }
    }
}

/// Adds [`ONE`] to the sum of each bit for each feature that has it.
///
/// Sixteen features at a time are added bit-sliced: a chain of full adders over whole words keeps, for all 64 bits at
/// once, the ones, twos, fours and eights of the counts, and only what carries into the sixteens is spread to counters.
fn add_ones(features: &[HashWords], word: impl Fn(HashWords) -> u64, sums: &mut [u64; 64]) {
    let mut sixteens = ByteCounters::default();
    let mut rest = ByteCounters::default();
    let [mut ones, mut twos, mut fours, mut eights] = [0; 4];
    let (blocks, tail) = features.as_chunks::<16>();
    for (number, block) in blocks.iter().enumerate() {
        let mut carries = [0; 8];
        for (carry, pair) in carries.iter_mut().zip(block.as_chunks::<2>().0) {
            (ones, *carry) = full_add(ones, word(pair[0]), word(pair[1]));
        }
        let mut carries_of_fours = [0; 4];
        for (carry, pair) in carries_of_fours.iter_mut().zip(carries.as_chunks::<2>().0) {
            (twos, *carry) = full_add(twos, pair[0], pair[1]);
        }
        let [a, b, c, d] = carries_of_fours;
        let (first, second);
        (fours, first) = full_add(fours, a, b);
        (fours, second) = full_add(fours, c, d);
        let carry;
        (eights, carry) = full_add(eights, first, second);
        sixteens.add(carry);
        // A byte holds 255.
        if number % 255 == 254 {
            sixteens.flush(16 * ONE, sums);
        }
    }
    tail.iter().for_each(|&hash| rest.add(word(hash)));
    sixteens.flush(16 * ONE, sums);
    rest.flush(ONE, sums);
    for (value, bits) in [(1, ones), (2, twos), (4, fours), (8, eights)] {
        for (bit, sum) in sums.iter_mut().enumerate() {
            *sum += (bits >> (63 - bit) & 1) * value * ONE;
        }
    }
}

/// Adds three bits at each of 64 places: the sum, and what carries.
#[inline]
fn full_add(a: u64, b: u64, c: u64) -> (u64, u64) {
    (a ^ b ^ c, (a & b) | ((a ^ b) & c))
}

/// 64 counters of a byte each, eight in a word.
#[derive(Default)]
struct ByteCounters([u64; 8]);

/// The bits of a byte as bytes of a word: the leading bit becomes the lowest byte.
static SPREAD: [u64; 256] = {
    let mut spread = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut bit = 0;
        while bit < 8 {
            spread[byte] |= ((byte as u64 >> (7 - bit)) & 1) << (8 * bit);
            bit += 1;
        }
        byte += 1;
    }
    spread
};

impl ByteCounters {
    #[inline]
    fn add(&mut self, bits: u64) {
        for (counters, byte) in self.0.iter_mut().zip(bits.to_be_bytes()) {
            *counters += SPREAD[byte as usize];
        }
    }

    fn flush(&mut self, value: u64, sums: &mut [u64; 64]) {
        for (counters, sums) in self.0.iter_mut().zip(sums.as_chunks_mut::<8>().0) {
            for (count, sum) in counters.to_le_bytes().iter().zip(sums) {
                *sum += u64::from(*count) * value;
            }
            *counters = 0;
        }
    }
}

/// Weights below this are summed in 32 bits, as many of them at a time as cannot overflow.
const SMALL: u64 = 1 << 21;
const SMALL_AT_A_TIME: usize = 1 << 10;

/// Adds each feature's weight to the sum of each bit that it has.
fn add_weighted(
    features: &[(HashWords, u64)],
    word: impl Fn(HashWords) -> u64,
    sums: &mut [u64; 64],
) {
    for some in features.chunks(SMALL_AT_A_TIME) {
        let mut small = [0_u32; 64];
        for &(hash, weight) in some {
            let bits = word(hash);
            if weight < SMALL {
                let (leading, trailing) = small.split_at_mut(32);
                add_where_set((bits >> 32) as u32, weight as u32, leading);
                add_where_set(bits as u32, weight as u32, trailing);
            } else {
                let set = (0..64).filter(|bit| bits >> (63 - bit) & 1 == 1);
                set.for_each(|bit| sums[bit] += weight);
            }
        }
        sums.iter_mut().zip(small).for_each(|(sum, small)| *sum += u64::from(small));
    }
}

/// The compiler makes vector code of this: compare with a constant, mask, add.
#[inline]
fn add_where_set(bits: u32, weight: u32, sums: &mut [u32]) {
    for (bit, sum) in sums.iter_mut().take(32).enumerate() {
        *sum += if bits & (1 << (31 - bit)) != 0 { weight } else { 0 };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition, word for word.
    fn vote_plainly(features: &Weighted, hash_bits: u32, votes: &mut [i64]) {
        votes.fill(0);
        for (hash, weight) in features.iter() {
            for (bit, vote) in votes.iter_mut().enumerate() {
                let set = stream(hash, bit / 64, hash_bits) >> (63 - bit % 64) & 1 == 1;
                *vote += if set { weight as i64 } else { -(weight as i64) };
            }
        }
    }

    /// The worked example of the thesis: four bits, six features, weights in hundredths.
    #[test]
    fn worked_examples() {
        let features =
            [(0b0101, 5), (0b1101, 2), (0b0001, 1), (0b1110, 3), (0b0100, 5), (0b0011, 9_u64)];
        let votes = |dropped: &[u64]| {
            let kept = features.iter().filter(|(hash, _)| !dropped.contains(hash));
            let others = kept.map(|&(hash, weight)| ([hash << 60, 0], weight)).collect();
            let mut votes = [0; 64];
            vote(&Weighted { ones: Vec::new(), others }, 64, &mut votes);
            let bits = votes[..4].iter().fold(0, |bits, &vote| bits << 1 | u8::from(vote > 0));
            ([votes[0], votes[1], votes[2], votes[3]], bits)
        };
        assert_eq!(votes(&[]), ([-15, 5, -1, 9], 0b0101));
        assert_eq!(votes(&[0b1101, 0b0001]), ([-16, 4, 2, 6], 0b0111));
        assert_eq!(votes(&[0b0101, 0b0100]), ([-5, -5, 9, 9], 0b0011));
    }

    proptest! {
        #[test]
        fn votes_are_as_defined(
            ones in prop::collection::vec(any::<[u64; 2]>(), 0..70),
            weights in prop::collection::vec((any::<[u64; 2]>(), 1..(SMALL * 4)), 0..20),
            wide: bool,
        ) {
            let features = Weighted { ones, others: weights };
            let hash_bits = if wide { 128 } else { 64 };
            let (mut votes, mut expected) = (vec![0; 192], vec![0; 192]);
            vote(&features, hash_bits, &mut votes);
            vote_plainly(&features, hash_bits, &mut expected);
            prop_assert_eq!(votes, expected);
        }
    }

    #[test]
    fn counters_hold_many_features() {
        let ones = vec![[u64::MAX, 0]; 16 * 255 * 2 + 7];
        let others = vec![([u64::MAX, 0], SMALL - 1); 5000];
        let features = Weighted { ones, others };
        let (mut votes, mut expected) = (vec![0; 64], vec![0; 64]);
        vote(&features, 64, &mut votes);
        vote_plainly(&features, 64, &mut expected);
        assert_eq!(votes, expected);
    }
}
