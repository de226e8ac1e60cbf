//! Which bits to flip: combinations of a query's leading bits, likeliest first (chapter IV of the thesis).
//!
//! The thesis takes 1 - |W_j| / |W| for the probability that bit `j` flips, where `W` are the votes on all bits and |W|
//! is the length of that vector, and the product for a combination; it adds logarithms instead. Margins are the votes
//! but for a factor, which cancels.
//!
//! Number the bits from the weakest, and name a combination by these numbers, in ascending order. A combination has at
//! most two children, which are no likelier; and it is the child of exactly one, so none comes twice:
//! - the first child has the last number raised by one;
//! - for the second, walk left from the last number while numbers are consecutive. Where one is missing, and only one,
//!   the number on its left is raised by one. Where more are missing there is no second child.
//!
//! A heap that starts with the best combination of each size, and in which a combination makes room for its children,
//! therefore gives all combinations in order. (The thesis prints the test for the missing number with the subtraction
//! turned round; the heaps drawn on its slides have it right.)

use std::{cmp::Ordering, collections::BinaryHeap, ops::RangeInclusive};

/// The combinations of one query after the other; an iterator over the bits to flip.
#[derive(Debug, Default)]
pub struct Flips {
    /// The leading bits, weakest first: where they are in a signature, and the logarithm of the flip's probability.
    weakest: Vec<(u64, f32)>,
    frontier: BinaryHeap<Combination>,
}

/// Bits to flip together.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Combination {
    log_probability: f32,
    /// A set: the bit of value 2^i stands for the (i + 1)th weakest.
    members: u64,
}

impl Flips {
    /// No query yet, no combinations.
    pub fn new() -> Self {
        Flips::default()
    }

    /// Starts anew: combinations of `sizes` bits of the `leading` ones of a query with these margins.
    pub fn start(&mut self, margins: &[u8; 64], leading: u32, sizes: RangeInclusive<u32>) {
        let squares = margins.iter().map(|&margin| u32::from(margin).pow(2)).sum::<u32>();
        let length = libm::sqrtf(squares.max(1) as f32);
        let mut order = [0_u16; 64];
        let order = &mut order[..leading as usize];
        for (bit, place) in order.iter_mut().enumerate() {
            *place = u16::from(margins[bit]) << 8 | bit as u16;
        }
        order.sort_unstable();
        self.weakest.clear();
        self.weakest.extend(order.iter().map(|&place| {
            let probability = 1.0 - f32::from(place >> 8) / length;
            (1 << (63 - (place & 63)), libm::logf(probability))
        }));
        self.frontier.clear();
        for size in sizes.take_while(|&size| size <= leading) {
            self.frontier.push(self.combination(u64::MAX.unbounded_shr(64 - size)));
        }
    }

    /// The next combination; its children take its place.
    fn advance(&mut self) -> Option<Combination> {
        let best = *self.frontier.peek()?;
        let [first, second] = children(best.members, self.weakest.len() as u32);
        match first {
            Some(members) => {
                let child = self.combination(members);
                // One walk through the heap instead of two.
                *self.frontier.peek_mut()? = child;
            }
            None => drop(self.frontier.pop()),
        }
        if let Some(members) = second {
            self.frontier.push(self.combination(members));
        }
        Some(best)
    }

    /// Summed anew and in order, weakest first, a child is never likelier than its parent, rounding or not.
    fn combination(&self, members: u64) -> Combination {
        let log_probability = ones(members).map(|i| self.weakest[i].1).sum();
        Combination { log_probability, members }
    }
}

impl Iterator for Flips {
    /// The bits to flip, as they are in a signature.
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let members = self.advance()?.members;
        Some(ones(members).fold(0, |bits, i| bits | self.weakest[i].0))
    }
}

/// The two children of a combination of the numbers below `end`, where they exist.
fn children(members: u64, end: u32) -> [Option<u64>; 2] {
    let Some(last) = members.checked_ilog2() else { return [None, None] };
    let first = (last + 1 < end).then(|| members ^ 0b11 << last);
    let run = (members << (63 - last)).leading_ones();
    // The number before the missing one, if it is a member.
    let second = (last + 1).checked_sub(run + 2).filter(|left| members >> left & 1 == 1);
    [first, second.map(|left| members ^ 0b11 << left)]
}

/// The places of the ones, lowest first.
fn ones(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = (set != 0).then_some(set.trailing_zeros() as usize)?;
        set &= set - 1;
        Some(place)
    })
}

impl Eq for Combination {}

impl Ord for Combination {
    /// The greatest is the likeliest; of equals the smaller set, so that the order is always the same.
    fn cmp(&self, other: &Self) -> Ordering {
        let by_set = || other.members.cmp(&self.members);
        self.log_probability.total_cmp(&other.log_probability).then_with(by_set)
    }
}

impl PartialOrd for Combination {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn set(numbers: &[u32]) -> u64 {
        numbers.iter().fold(0, |set, number| set | 1 << (number - 1))
    }

    /// The heaps drawn on the slides of the thesis.
    #[test]
    fn children_are_those_of_the_figures() {
        let examples: &[(&[u32], &[u32], &[u32])] = &[
            (&[1], &[2], &[]),
            (&[1, 2], &[1, 3], &[]),
            (&[1, 3], &[1, 4], &[2, 3]),
            (&[1, 4], &[1, 5], &[]),
            (&[2, 3], &[2, 4], &[]),
            (&[2, 4], &[2, 5], &[3, 4]),
            (&[1, 2, 3], &[1, 2, 4], &[]),
            (&[1, 2, 4], &[1, 2, 5], &[1, 3, 4]),
            (&[1, 2, 5], &[1, 2, 6], &[]),
            (&[1, 3, 4], &[1, 3, 5], &[2, 3, 4]),
            (&[1, 3, 5], &[1, 3, 6], &[1, 4, 5]),
            (&[2, 3, 4], &[2, 3, 5], &[]),
        ];
        for (parent, first, second) in examples {
            let second = (!second.is_empty()).then(|| set(second));
            assert_eq!(children(set(parent), 64), [Some(set(first)), second], "{parent:?}");
        }
        assert_eq!(children(set(&[2, 4]), 4), [None, Some(set(&[3, 4]))]);
        assert_eq!(children(set(&[62, 64]), 64), [None, Some(set(&[63, 64]))]);
        assert_eq!(children(set(&[63, 64]), 64), [None, None]);
    }

    proptest! {
        #[test]
        fn every_combination_comes_once_likeliest_first(
            margins in prop::collection::vec(any::<u8>(), 64),
            leading in 1..=16_u32,
            radius in 0..=4_u32,
        ) {
            let margins: [u8; 64] = margins.try_into().unwrap();
            let mut flips = Flips::new();
            flips.start(&margins, leading, 1..=radius);
            let mut order = Vec::new();
            while let Some(combination) = flips.advance() {
                order.push(combination);
            }
            prop_assert!(order.is_sorted_by(|a, b| a.log_probability >= b.log_probability));

            flips.start(&margins, leading, 1..=radius);
            let mut bits: Vec<u64> = flips.collect();
            bits.sort_unstable();
            let wanted = |set: &u64| (1..=radius).contains(&set.count_ones());
            let all: Vec<u64> = (0..1 << leading).filter(wanted).collect();
            prop_assert_eq!(bits, all.iter().map(|set| set << (64 - leading)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn probabilities_are_those_of_the_thesis() {
        // The length of the votes is 5 x 32 = 160: 64 bits of 20.
        let mut margins = [20; 64];
        let mut flips = Flips::new();
        flips.start(&margins, 3, 2..=2);
        let pair = flips.advance().unwrap();
        assert!((pair.log_probability - 2.0 * (1.0 - 20.0 / 160.0_f32).ln()).abs() < 1e-6);
        // The weakest first; of equals the leading one. Zero margins alone are no trouble.
        (margins[2], margins[1]) = (3, 4);
        flips.start(&margins, 64, 1..=3);
        let bit = |bit: u32| 1_u64 << (63 - bit);
        assert_eq!(flips.by_ref().take(3).collect::<Vec<_>>(), [bit(2), bit(1), bit(2) | bit(1)]);
        flips.start(&[0; 64], 2, 1..=3);
        assert_eq!(flips.collect::<Vec<_>>(), [bit(0), bit(1), bit(0) | bit(1)]);
    }
}
