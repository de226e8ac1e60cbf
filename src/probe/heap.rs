//! Weakest first, as the papers have it: Sood and Loguinov, Probabilistic Near-Duplicate Detection Using Simhash, and
//! Sood's thesis, chapter IV, sections A and B.
//!
//! **How likely is a flip?** Bit `j` with the vote `W_j` flips with likelihood `1 - |W_j| / |W|` (4.5), where `|W|` is the
//! Euclidean length of the votes on the whole signature. The likelihood of a combination is the product over the bits
//! that it flips (4.6); those that it leaves alone do not count, so the own value has likelihood 1. These are no
//! probabilities, only an order: it is nearly that of the sum of the margins, with strong bits pushed back a little more.
//!
//! We add logarithms, in fixed point: sums are exact, and the order is the same on every machine. The cost of a flip is
//! `-ln(1 - margin / |W|)`; a bit that is all of `|W|` would cost infinitely much, so no bit costs more than `30 ln 2`.
//!
//! **In which order?** Name a combination by the ranks of its bits, weakest = 0. Among combinations of one size the best
//! is that of the lowest ranks; every other one is the child of exactly one better one (see `children`). So a heap that
//! starts with the best combination of each size, and replaces what it gives by its children, gives all, best first.
//! Equal likelihoods: fewer bits first, then the smaller mask of ranks. Equal margins: the leading bit is the weaker.

use std::{cmp::Reverse, collections::BinaryHeap};

use super::{MOST_KEY_BITS, check_bits};

/// The cost of a likelihood of `1 / e`.
const ONE: f64 = (1_u64 << 40) as f64;
/// The least likelihood.
const UNLIKELY: f64 = 1.0 / (1 << 30) as f64;

/// The Euclidean length of margins: the `|W|` of the papers, if they are the margins of a whole signature.
pub fn norm(margins: &[u8]) -> f64 {
    let squares = margins.iter().map(|&margin| u64::from(margin).pow(2));
    libm::sqrt(squares.sum::<u64>() as f64)
}

/// The flips of one query's key from the likeliest to the least likely, each combination once; first 0, the own value.
///
/// An iterator: `heap.take(k)` are the first `k` probes, and `heap.position(|flip| flip == wanted)` is how many come
/// before a neighbor's key is reached.
#[derive(Debug, Clone)]
pub struct Heap {
    bits: u32,
    /// What it costs to flip the bit of each rank.
    costs: [u64; MOST_KEY_BITS as usize],
    /// The bit of each rank.
    flips: [u32; MOST_KEY_BITS as usize],
    waiting: BinaryHeap<Reverse<Combination>>,
}

/// Some bits of the key, compared by likelihood: the least is the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Combination {
    cost: u64,
    size: u32,
    /// Bit `r` is rank `r`. A child's mask is larger than its parent's, so ties keep the parent first, too.
    ranks: u32,
}

impl Heap {
    /// The order of a key with these margins, leading bit first, and at most `errors` flips. For want of the others, the
    /// margins of the key are taken for the whole signature's: [`Heap::with_norm`] is the order of the papers to the
    /// letter. Both find the same share of neighbors.
    ///
    /// # Panics
    ///
    /// If there are not 1 to 32 margins.
    pub fn new(margins: &[u8], errors: u32) -> Self {
        Heap::with_norm(margins, norm(margins), errors)
    }

    /// The order of a key with these margins in a signature whose margins have this [`norm`].
    ///
    /// # Panics
    ///
    /// If there are not 1 to 32 margins.
    pub fn with_norm(margins: &[u8], norm: f64, errors: u32) -> Self {
        check_bits(margins.len());
        let margins: Vec<f64> = margins.iter().map(|&margin| f64::from(margin)).collect();
        Heap::of_strengths(&margins, norm, errors)
    }

    /// The same for margins of any scale.
    pub(super) fn of_strengths(margins: &[f64], norm: f64, errors: u32) -> Self {
        let bits = check_bits(margins.len());
        let mut weakest: Vec<usize> = (0..margins.len()).collect();
        weakest.sort_by(|&a, &b| margins[a].total_cmp(&margins[b]));
        let (mut costs, mut flips) = ([0; _], [0; _]);
        for (rank, position) in weakest.into_iter().enumerate() {
            costs[rank] = cost(margins[position], norm);
            flips[rank] = 1 << (bits as usize - 1 - position);
        }
        let waiting = (0..=errors.min(bits)).map(|size| Reverse(best_of_size(size, &costs)));
        Heap { bits, costs, flips, waiting: waiting.collect() }
    }

    /// The next combination as a mask of ranks.
    pub(super) fn next_ranks(&mut self) -> Option<u32> {
        let Reverse(best) = self.waiting.pop()?;
        for raised in children(best.ranks, self.bits).into_iter().flatten() {
            let child = self.raise(best, raised);
            self.waiting.push(Reverse(child));
        }
        Some(best.ranks)
    }

    /// The combination with the next rank in the place of `rank`.
    fn raise(&self, parent: Combination, rank: u32) -> Combination {
        let step = self.costs[rank as usize + 1] - self.costs[rank as usize];
        Combination { cost: parent.cost + step, ranks: parent.ranks + (1 << rank), ..parent }
    }
}

impl Iterator for Heap {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let ranks = self.next_ranks()?;
        Some(ones(ranks).fold(0, |flip, rank| flip | self.flips[rank as usize]))
    }
}

/// The ones of a mask, lowest first.
pub(super) fn ones(mask: u32) -> impl Iterator<Item = u32> {
    (0..u32::BITS).filter(move |bit| mask >> bit & 1 == 1)
}

fn cost(margin: f64, norm: f64) -> u64 {
    let share = if norm > 0.0 { margin / norm } else { 0.0 };
    (-libm::log1p(-share.min(1.0 - UNLIKELY)) * ONE) as u64
}

/// The lowest ranks.
fn best_of_size(size: u32, costs: &[u64]) -> Combination {
    let cost = costs[..size as usize].iter().sum();
    Combination { cost, size, ranks: ((1_u64 << size) - 1) as u32 }
}

/// The ranks that a combination's children raise by one (the papers' function `next`).
///
/// First child: the last rank. Second child: walk left from the last rank while ranks are consecutive; if the gap found
/// there is a single free rank, raise the rank before it; if it is wider, there is no second child. (The thesis prints
/// the differences of its algorithm 2 with the sign turned round; its figure 3 shows what is meant.)
fn children(ranks: u32, bits: u32) -> [Option<u32>; 2] {
    if ranks == 0 {
        return [None, None];
    }
    let last = u32::BITS - 1 - ranks.leading_zeros();
    let run = (ranks << ranks.leading_zeros()).leading_ones();
    let before_gap = (last + 1).checked_sub(run + 2);
    [
        Some(last).filter(|last| last + 1 < bits),
        before_gap.filter(|before| ranks >> before & 1 == 1),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;
    use crate::probe::{count_within, within};

    fn mask(ranks: &[u32]) -> u32 {
        ranks.iter().fold(0, |mask, rank| mask | 1 << (rank - 1))
    }

    fn children_of(ranks: &[u32], bits: u32) -> Vec<u32> {
        let mask = mask(ranks);
        children(mask, bits).into_iter().flatten().map(|rank| mask + (1 << rank)).collect()
    }

    /// Figure 2 of the slides and figure 3 of the thesis; their ranks count from 1.
    #[test]
    fn children_of_the_papers() {
        let families: [(&[u32], &[&[u32]]); 11] = [
            (&[1], &[&[2]]),
            (&[1, 2], &[&[1, 3]]),
            (&[1, 3], &[&[1, 4], &[2, 3]]),
            (&[1, 4], &[&[1, 5]]),
            (&[2, 3], &[&[2, 4]]),
            (&[2, 4], &[&[2, 5], &[3, 4]]),
            (&[1, 2, 3], &[&[1, 2, 4]]),
            (&[1, 2, 4], &[&[1, 2, 5], &[1, 3, 4]]),
            (&[1, 2, 5], &[&[1, 2, 6]]),
            (&[1, 3, 4], &[&[1, 3, 5], &[2, 3, 4]]),
            (&[1, 3, 5], &[&[1, 3, 6], &[1, 4, 5]]),
        ];
        for (parent, expected) in families {
            let expected: Vec<u32> = expected.iter().map(|ranks| mask(ranks)).collect();
            assert_eq!(children_of(parent, 32), expected, "{parent:?}");
        }
        assert!(children_of(&[], 8).is_empty() && children_of(&[7, 8], 8).is_empty());
        assert_eq!(children_of(&[6, 8], 8), [mask(&[7, 8])]);
        assert_eq!(children_of(&[30, 32], 32), [mask(&[31, 32])]);
    }

    #[test]
    fn weak_bits_come_first() {
        // 10 + 20 < 200 < 200 + 10: both weak bits together are likelier than the strong one.
        let flips: Vec<u32> = Heap::new(&[200, 10, 255, 20], 2).collect();
        assert_eq!(flips[..5], [0, 0b0100, 0b0001, 0b0101, 0b1000]);
        assert_eq!(flips.len() as u64, count_within(4, 2));
        assert_eq!(Heap::new(&[7; 4], 9).count(), 16);
    }

    #[test]
    fn ties_go_by_size_and_position() {
        assert_eq!(Heap::new(&[9; 3], 1).collect::<Vec<_>>(), [0, 0b100, 0b010, 0b001]);
        // A draw costs nothing, and still the own value is first.
        let zeros: Vec<u32> = Heap::new(&[0; 3], 2).collect();
        assert_eq!(zeros, [0, 0b100, 0b010, 0b001, 0b110, 0b101, 0b011]);
    }

    #[test]
    fn likelihoods_stay_finite() {
        assert_eq!(Heap::new(&[255], 1).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(Heap::with_norm(&[255; 32], 1.0, 32).take(1000).count(), 1000);
        assert!(cost(255.0, 255.0) == cost(255.0, 1.0) && cost(0.0, 0.0) == 0);
        let most = cost(1.0, 1.0);
        assert!(most.checked_mul(u64::from(MOST_KEY_BITS)).is_some());
        assert!((most as f64 / ONE - 30.0 * std::f64::consts::LN_2).abs() < 1e-6);
        assert_eq!(norm(&[3, 0, 4]), 5.0);
    }

    /// The product of (4.6), as it stands there.
    fn likelihood(flip: u32, margins: &[u8], norm: f64) -> f64 {
        let flipped =
            margins.iter().enumerate().filter(|(i, _)| flip >> (margins.len() - 1 - i) & 1 == 1);
        flipped.map(|(_, &margin)| 1.0 - f64::from(margin) / norm).product()
    }

    proptest! {
        #[test]
        fn likeliest_first_and_each_once(
            margins in prop::collection::vec(any::<u8>(), 1..=12),
            errors in 0_u32..=3,
            others in 1.0..400.0,
        ) {
            let bits = margins.len() as u32;
            let norm = norm(&margins) + others;
            let flips: Vec<u32> = Heap::with_norm(&margins, norm, errors).collect();
            let once: HashSet<u32> = flips.iter().copied().collect();
            prop_assert_eq!(once, within(bits, errors).into_iter().collect());
            prop_assert_eq!(flips.len() as u64, count_within(bits, errors));

            let of = |flip: &u32| likelihood(*flip, &margins, norm);
            let mut sorted: Vec<f64> = within(bits, errors).iter().map(of).collect();
            sorted.sort_by(|a, b| b.total_cmp(a));
            for (flip, expected) in flips.iter().zip(sorted) {
                prop_assert!((of(flip) - expected).abs() < 1e-9);
            }
        }

        /// Against a sort of everything, ties included: few different margins make many of them.
        #[test]
        fn ties_are_as_documented(
            margins in prop::collection::vec(0_u8..4, 1..=12),
            errors in 0_u32..=4,
        ) {
            let heap = Heap::new(&margins, errors);
            let cost = |ranks: u32| ones(ranks).map(|rank| heap.costs[rank as usize]).sum::<u64>();
            let mut expected = within(heap.bits, errors);
            expected.sort_by_key(|&ranks| (cost(ranks), ranks.count_ones(), ranks));
            let mut given = heap.clone();
            let given: Vec<u32> = std::iter::from_fn(|| given.next_ranks()).collect();
            prop_assert_eq!(given, expected);
        }
    }
}
