//! Weakest first for all queries at once: the heap's order depends mostly on the *ranks* of the bits by weakness and
//! little on their margins. So we run it once, on typical margins, and a query only has to rank its bits.

use std::collections::HashMap;

use super::{
    MOST_KEY_BITS, check_bits,
    heap::{Heap, ones},
};

const LANES: usize = MOST_KEY_BITS as usize;
/// What each bit of a combination costs more, in weakest margins.
const TIE_BREAK: f64 = 0.2;

/// A list of combinations of ranks, rank 0 being the weakest bit of a key, from the likeliest to the least likely.
///
/// Typical margins are those of SimHash and of every sum of many votes: normal, so that the margins are half-normal.
/// Rank `r` of a key of `p` bits stands for the margin that a share `(r + 1) / (p + 1)` of all margins is below, and a
/// fifth of the weakest one more. The fifth decides near-ties: whether the bits of rank 0 and 1 together are weaker than
/// that of rank 2 is a coin toss, so it is the fewer bits that go first. Against the heap's, recall is then at most .005
/// lower from 10 probes on, for near neighbors and far ones, and at most .008 with 6; without it, up to .02.
#[derive(Debug, Clone)]
pub struct RankList {
    bits: u32,
    /// Each combination as a mask of ranks; the first is empty, the own value.
    ranks: Vec<u32>,
    /// How each combination but the first comes from an earlier one.
    steps: Vec<Step>,
}

/// A combination is an earlier one and a rank more: without its strongest bit it is likelier, and so it was there before.
#[derive(Debug, Clone, Copy)]
struct Step {
    earlier: u32,
    rank: u32,
}

impl RankList {
    /// The `at_most` likeliest combinations of at most `errors` bits of a key of `bits` bits, the own value included;
    /// all of them, if `at_most` is [`count_within`](super::count_within) or more.
    ///
    /// # Panics
    ///
    /// If `bits` is not from 1 to 32.
    pub fn new(bits: u32, errors: u32, at_most: usize) -> Self {
        let margins = typical_margins(check_bits(bits as usize));
        let norm = libm::sqrt(margins.iter().map(|margin| margin * margin).sum());
        let mut heap = Heap::of_strengths(&margins, norm, errors);
        let ranks: Vec<u32> = std::iter::from_fn(|| heap.next_ranks()).take(at_most).collect();
        let steps = steps(&ranks);
        RankList { bits, ranks, steps }
    }

    /// The width of the key.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// How many probes the list has.
    pub fn len(&self) -> usize {
        self.ranks.len()
    }

    /// Whether there is not even the own value.
    pub fn is_empty(&self) -> bool {
        self.ranks.is_empty()
    }

    /// Fills `out` with the first flips of a query whose key has these margins, leading bit first. Of equal margins the
    /// leading one is the weaker. `out` may be shorter than the list: whoever wants fewer probes takes fewer.
    ///
    /// # Panics
    ///
    /// If there are not as many margins as key bits, or if `out` is longer than the list.
    #[inline]
    pub fn flips_into(&self, margins: &[u8], out: &mut [u32]) {
        assert!(out.len() <= self.len(), "the list has only {} probes", self.len());
        let flips = self.flip_of_each_rank(margins);
        if let Some(own) = out.first_mut() {
            *own = 0;
        }
        for i in 1..out.len() {
            let step = self.steps[i - 1];
            out[i] = out[step.earlier as usize] | flips[step.rank as usize % LANES];
        }
    }

    /// The order without margins: trailing key bits pass for the weakest.
    pub fn fixed(&self) -> &[u32] {
        // Rank r is bit r, and so a mask of ranks is a flip.
        &self.ranks
    }

    /// How many probes come before `flip` for a query with these margins; none if the list does not reach it. For
    /// measuring how many probes are enough.
    ///
    /// # Panics
    ///
    /// If there are not as many margins as key bits.
    pub fn position(&self, margins: &[u8], flip: u32) -> Option<usize> {
        let flips = self.flip_of_each_rank(margins);
        let flipped = |rank: &u32| flip & flips[*rank as usize] != 0;
        let wanted = (0..self.bits).filter(flipped).fold(0, |ranks, rank| ranks | 1 << rank);
        self.ranks.iter().position(|&ranks| ranks == wanted)
    }

    #[inline]
    fn flip_of_each_rank(&self, margins: &[u8]) -> [u32; LANES] {
        assert_eq!(margins.len(), self.bits as usize, "one margin for each key bit");
        let ranks = ranks_of(margins);
        let mut flips = [0; LANES];
        let mut flip = 1_u32 << (self.bits - 1);
        for rank in &ranks[..margins.len()] {
            flips[*rank as usize % LANES] = flip;
            flip >>= 1;
        }
        flips
    }
}

/// How many bits are weaker than each bit; past the margins, anything.
///
/// Every bit against every bit, in lanes of a fixed number: no branches, and the compiler makes vector code of it. With
/// its position below it no margin has an equal, and all are positive in 16 signed bits, which every CPU compares. Never
/// inlined, and `take` rather than a slice: otherwise the vector code may fall apart, which costs twice the time.
#[inline(never)]
fn ranks_of(margins: &[u8]) -> [i16; LANES] {
    let mut keys = [i16::MAX; LANES];
    for (position, (key, &margin)) in keys.iter_mut().zip(margins).enumerate() {
        *key = i16::from(margin) << 5 | position as i16;
    }
    let mut ranks = [0; LANES];
    for &other in keys.iter().take(margins.len()) {
        for (rank, key) in ranks.iter_mut().zip(keys) {
            *rank += i16::from(other < key);
        }
    }
    ranks
}

fn steps(combinations: &[u32]) -> Vec<Step> {
    let mut places = HashMap::new();
    let step = |(place, &ranks): (usize, &u32)| {
        places.insert(ranks, place as u32);
        let rank = ones(ranks).last()?;
        Some(Step { earlier: places[&(ranks & !(1 << rank))], rank })
    };
    combinations.iter().enumerate().filter_map(step).collect()
}

/// Quantiles of the half-normal distribution, raised a little.
fn typical_margins(bits: u32) -> Vec<f64> {
    let quantile = |rank: u32| half_normal_quantile(f64::from(rank + 1) / f64::from(bits + 1));
    (0..bits).map(|rank| quantile(rank) + TIE_BREAK * quantile(0)).collect()
}

/// The margin that a share of all margins is below, by bisection.
fn half_normal_quantile(share: f64) -> f64 {
    let (mut low, mut high) = (0.0, 8.0);
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        match libm::erf(middle / std::f64::consts::SQRT_2) < share {
            true => low = middle,
            false => high = middle,
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::probe::{count_within, within};

    fn flips(list: &RankList, margins: &[u8]) -> Vec<u32> {
        let mut flips = vec![u32::MAX; list.len()];
        list.flips_into(margins, &mut flips);
        flips
    }

    fn sorted(mut flips: Vec<u32>) -> Vec<u32> {
        flips.sort_by_key(|flip| (flip.count_ones(), *flip));
        flips
    }

    #[test]
    fn quantiles() {
        for (share, margin) in [(0.5, 0.674_490), (0.682_689_5, 1.0), (0.954_499_7, 2.0)] {
            assert!((half_normal_quantile(share) - margin).abs() < 1e-5);
        }
        assert!(typical_margins(32).is_sorted());
    }

    #[test]
    fn weakest_first() {
        let list = RankList::new(4, 2, 4);
        assert_eq!((list.bits(), list.len(), list.is_empty()), (4, 4, false));
        assert_eq!(flips(&list, &[9, 3, 200, 4]), [0, 0b0100, 0b0001, 0b0101]);
        assert_eq!(flips(&list, &[5; 4]), [0, 0b1000, 0b0100, 0b1100], "equal margins");
        assert_eq!(list.fixed(), [0, 0b0001, 0b0010, 0b0011]);
        assert_eq!(list.position(&[9, 3, 200, 4], 0b0101), Some(3));
        assert_eq!(list.position(&[9, 3, 200, 4], 0b0010), None);
    }

    #[test]
    fn lists_of_any_length() {
        assert!(RankList::new(8, 2, 0).is_empty());
        assert_eq!(flips(&RankList::new(8, 0, 100), &[1; 8]), [0]);
        let list = RankList::new(32, 2, 600);
        assert_eq!(list.len() as u64, count_within(32, 2));
        let mut few = [9; 3];
        list.flips_into(&[7; 32], &mut few);
        assert_eq!(few, [0, 1 << 31, 1 << 30]);
        list.flips_into(&[7; 32], &mut []);
    }

    proptest! {
        #[test]
        fn ranks_are_the_stable_order(margins in prop::collection::vec(0_u8..=255, 1..=32)) {
            let mut weakest: Vec<usize> = (0..margins.len()).collect();
            weakest.sort_by_key(|&position| margins[position]);
            let ranks = ranks_of(&margins);
            for (rank, position) in weakest.into_iter().enumerate() {
                prop_assert_eq!(ranks[position] as usize, rank);
            }
        }

        /// All probes are a guarantee: the same values as `within`.
        #[test]
        fn a_long_list_has_all(
            margins in prop::collection::vec(any::<u8>(), 1..=16),
            errors in 0_u32..=4,
        ) {
            let bits = margins.len() as u32;
            let list = RankList::new(bits, errors, count_within(bits, errors) as usize);
            prop_assert_eq!(sorted(flips(&list, &margins)), within(bits, errors));
            prop_assert_eq!(sorted(list.fixed().to_vec()), within(bits, errors));
        }

        #[test]
        fn positions_are_those_of_the_flips(
            margins in prop::collection::vec(any::<u8>(), 12),
            at_most in 1_usize..80,
            flip in 0_u32..1 << 12,
        ) {
            let list = RankList::new(12, 3, at_most);
            let flips = flips(&list, &margins);
            let plain = |flip| flips.iter().position(|&other| other == flip);
            prop_assert_eq!(list.position(&margins, flip), plain(flip));
            let last = flips[at_most - 1];
            prop_assert_eq!(list.position(&margins, last), Some(at_most - 1));
        }
    }
}
