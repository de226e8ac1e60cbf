//! What the orders are worth: the share of true neighbors that k probes of a key reach.

use super::{Heap, RankList, heap::norm};
use crate::signature::margins::margins_of;

const PAIRS: usize = 20_000;
const RADIUS: u32 = 3;
const PROBES: [usize; 4] = [6, 10, 15, 23];
/// How far a neighbor's votes are from the query's, in standard deviations of the votes. They flip about one, two and
/// four bits of 64, and pairs past the radius are left out.
const NOISES: [f64; 3] = [0.05, 0.1, 0.2];

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Twelve uniform numbers have variance 1 together, and are as good as normal.
    fn normal(&mut self) -> f64 {
        let uniform = |bits: u64| (bits >> 11) as f64 / (1_u64 << 53) as f64;
        (0..12).map(|_| uniform(self.next())).sum::<f64>() - 6.0
    }
}

/// A query's margins, and the bits in which a neighbor's signature differs.
struct Pair {
    margins: Vec<u8>,
    flipped: u64,
}

impl Pair {
    /// Votes of a 64-bit SimHash and those of a slightly edited document.
    fn random(random: &mut Random, noise: f64) -> Pair {
        let votes: Vec<f64> = (0..64).map(|_| random.normal()).collect();
        let flipped = votes.iter().fold(0, |bits, vote| {
            let edited = vote + noise * random.normal();
            bits << 1 | u64::from((edited > 0.0) != (*vote > 0.0))
        });
        let whole: Vec<i64> = votes.iter().map(|vote| (vote * 1e6) as i64).collect();
        Pair { margins: margins_of(&whole), flipped }
    }

    fn neighbors(noise: f64) -> Vec<Pair> {
        let mut random = Random(7);
        std::iter::repeat_with(|| Pair::random(&mut random, noise))
            .filter(|pair| (1..=RADIUS).contains(&pair.flipped.count_ones()))
            .take(PAIRS)
            .collect()
    }

    /// The flip that reaches the neighbor in a table on the leading bits.
    fn flip(&self, bits: u32) -> u32 {
        (self.flipped >> (64 - bits)) as u32
    }

    fn key(&self, bits: u32) -> &[u8] {
        &self.margins[..bits as usize]
    }
}

/// The share of pairs found with each number of probes.
fn recall(pairs: &[Pair], position: impl Fn(&Pair) -> Option<usize>) -> [f64; 4] {
    let positions: Vec<usize> = pairs.iter().filter_map(position).collect();
    PROBES.map(|probes| {
        let found = positions.iter().filter(|position| **position < probes).count();
        found as f64 / pairs.len() as f64
    })
}

/// Recalls of weakest first by the heap, by the papers' heap, by the list, and of the fixed order.
fn recalls(pairs: &[Pair], bits: u32) -> [[f64; 4]; 4] {
    let most = PROBES[3];
    let list = RankList::new(bits, RADIUS, most);
    let reached =
        |heap: Heap, pair: &Pair| heap.take(most).position(|flip| flip == pair.flip(bits));
    [
        recall(pairs, |pair| reached(Heap::new(pair.key(bits), RADIUS), pair)),
        recall(pairs, |pair| {
            let norm = norm(&pair.margins);
            reached(Heap::with_norm(pair.key(bits), norm, RADIUS), pair)
        }),
        recall(pairs, |pair| list.position(pair.key(bits), pair.flip(bits))),
        recall(pairs, |pair| list.fixed().iter().position(|flip| *flip == pair.flip(bits))),
    ]
}

#[test]
fn heap_and_list_find_the_same_share() {
    for noise in NOISES {
        let pairs = Pair::neighbors(noise);
        for bits in [22, 26] {
            let [heap, papers, list, fixed] = recalls(&pairs, bits);
            for (i, probes) in PROBES.into_iter().enumerate() {
                let place = format!("noise {noise}, {bits} bits, {probes} probes");
                // With so few, the last one is a toss between two that are equally likely on typical margins.
                let close = if probes < 10 { 0.01 } else { 0.005 };
                assert!((heap[i] - list[i]).abs() < close, "{place}: {} {}", heap[i], list[i]);
                assert!((heap[i] - papers[i]).abs() < 0.001, "{place}: {} {}", heap[i], papers[i]);
                assert!(list[i] - fixed[i] > 0.3, "{place}: {} {}", list[i], fixed[i]);
            }
        }
    }
}
