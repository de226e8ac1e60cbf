//! Which lists does a query visit? All within some errors, or the likeliest ones.

use std::ops::Range;

use super::{
    rates::{Costs, MOST_COST},
    slices::Slices,
};
use crate::{
    index::Queries,
    probe::{count_within, within},
};

/// The flips to look up in each slice.
#[derive(Debug, Clone, Default)]
pub(super) struct Lists {
    flips: Vec<u32>,
    of: Vec<Part>,
}

/// The flips of one slice.
#[derive(Debug, Clone)]
struct Part {
    flips: Range<usize>,
    /// The first of them admit rows, the others only add to those already met.
    admitting: usize,
}

impl Lists {
    /// All within `expansion` errors; those within `admission` admit rows.
    pub(super) fn within(slices: &Slices, expansion: u32, admission: u32) -> Self {
        let mut lists = Lists::default();
        let mut known: Vec<(u32, Range<usize>)> = Vec::new();
        for &width in &slices.widths {
            let flips = known.iter().find(|(other, _)| *other == width);
            let flips = flips.map(|(_, flips)| flips.clone()).unwrap_or_else(|| {
                let start = lists.flips.len();
                lists.flips.extend(within(width, expansion));
                known.push((width, start..lists.flips.len()));
                start..lists.flips.len()
            });
            let admitting = count_within(width, admission.min(expansion)) as usize;
            lists.of.push(Part { flips, admitting });
        }
        lists
    }

    /// The flips of a slice that admit rows.
    pub(super) fn admitting(&self, slice: usize) -> &[u32] {
        let Part { flips, admitting } = &self.of[slice];
        &self.flips[flips.clone()][..*admitting]
    }

    /// Those that only add to rows already met.
    pub(super) fn adding(&self, slice: usize) -> &[u32] {
        let Part { flips, admitting } = &self.of[slice];
        &self.flips[flips.clone()][*admitting..]
    }

    /// Whether some only add.
    pub(super) fn add_only(&self) -> bool {
        self.of.iter().any(|part| part.flips.len() > part.admitting)
    }

    /// How many there are in all.
    pub(super) fn count(&self) -> usize {
        self.of.iter().map(|part| part.flips.len()).sum()
    }
}

/// How many subsets of a slice's bits have each cost.
type Counts = [u32; MOST_COST as usize + 1];

/// The likeliest lists of all slices.
///
/// A list is as likely as its flips are, times the other bits' chances to stay: costs that add up (`rates.rs`). How many lists of a
/// slice have each cost follows from adding one bit after the other; from that the highest cost that the budget allows, and
/// then all lists up to it are written down. No heap: each list takes as long as writing it.
#[derive(Debug, Clone)]
pub(super) struct Weakest {
    /// The bits of each slice, the likeliest to flip first: cost and flip.
    bits: Vec<Vec<(u32, u32)>>,
    /// What a slice costs before anything is flipped.
    bases: Vec<f32>,
    counts: Vec<Counts>,
}

impl Weakest {
    pub(super) fn new(slices: usize) -> Self {
        Weakest {
            bits: vec![Vec::new(); slices],
            bases: vec![0.0; slices],
            counts: vec![[0; MOST_COST as usize + 1]; slices],
        }
    }

    /// Fills `lists` with at most `budget` of them, or with the own values if those are more. Gives how many errors are
    /// surely covered in all slices, and one more; 0 if not even all own values are.
    pub(super) fn fill(
        &mut self,
        (queries, query): (Queries<'_>, usize),
        (slices, costs): (&Slices, &Costs),
        budget: usize,
        lists: &mut Lists,
    ) -> u32 {
        self.rank(queries.signatures().row(query), queries.margins(query), slices, costs);
        let limits = self.limits(budget);
        lists.flips.clear();
        lists.of.clear();
        let mut reached = u32::MAX;
        for (bits, limit) in self.bits.iter().zip(limits) {
            let start = lists.flips.len();
            if let Some(limit) = limit {
                write_down(bits, limit, 0, &mut lists.flips);
            }
            let flips = start..lists.flips.len();
            lists.of.push(Part { admitting: flips.len(), flips });
            reached = reached.min(limit.map_or(0, |limit| covered(bits, limit)));
        }
        reached
    }

    /// The costs of all bits, in order.
    fn rank(&mut self, query: &[u64], margins: Option<&[u8]>, slices: &Slices, costs: &Costs) {
        let mut at = 0;
        let slices = self.bits.iter_mut().zip(&mut self.bases).zip(&slices.widths);
        for ((bits, base), &width) in slices {
            bits.clear();
            *base = 0.0;
            for place in (0..width).rev() {
                let value = query[at / 64] << (at % 64) >> 63 == 1;
                let cost = costs.of(value, margins.map(|margins| margins[at]));
                bits.push((u32::from(cost.flip), 1 << place));
                *base += cost.stay;
                at += 1;
            }
            bits.sort_unstable();
        }
    }

    /// The highest cost of the flips of each slice; none if nothing of a slice is worth a look.
    fn limits(&mut self, budget: usize) -> Vec<Option<u32>> {
        let least = self.bases.iter().copied().fold(f32::INFINITY, f32::min);
        let start = |base: f32| (base - least).round() as usize;
        let mut totals = [0_u64; MOST_COST as usize + 1];
        for ((bits, counts), &base) in self.bits.iter().zip(&mut self.counts).zip(&self.bases) {
            count(bits, counts);
            let start = start(base).min(totals.len());
            let later = totals[start..].iter_mut().zip(&counts[..]);
            later.for_each(|(total, &count)| *total += u64::from(count));
        }
        let mut lists = 0;
        let affordable = totals.iter().take_while(|&&total| {
            lists += total;
            lists <= budget as u64
        });
        let limit = affordable.count().max(1) - 1;
        self.bases.iter().map(|&base| Some(limit.checked_sub(start(base))? as u32)).collect()
    }
}

/// How many subsets of these bits have each cost.
fn count(bits: &[(u32, u32)], counts: &mut Counts) {
    counts.fill(0);
    counts[0] = 1;
    for &(cost, _) in bits.iter().filter(|(cost, _)| *cost <= MOST_COST) {
        let before = *counts;
        let later = counts[cost as usize..].iter_mut().zip(&before);
        later.for_each(|(count, before)| *count += before);
    }
}

/// All subsets of the bits within a cost, `flip` and what can be added to it.
fn write_down(bits: &[(u32, u32)], limit: u32, flip: u32, flips: &mut Vec<u32>) {
    flips.push(flip);
    for (at, &(cost, bit)) in bits.iter().enumerate() {
        if cost > limit {
            break;
        }
        write_down(&bits[at + 1..], limit - cost, flip | bit, flips);
    }
}

/// How many errors are covered whichever bits they are in, and one more.
fn covered(bits: &[(u32, u32)], limit: u32) -> u32 {
    let dearest = bits.iter().rev().scan(0, |sum, (cost, _)| {
        *sum += cost;
        Some(*sum)
    });
    1 + dearest.take_while(|&sum| sum <= limit).count() as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Signatures, index::issl::rates::Rates};

    /// The lists of the papers, and twice 64 of them.
    #[test]
    fn within_visits_the_lists_of_the_papers() {
        let slices = Slices::new(1024, 16).unwrap();
        for (errors, count) in [1, 17, 137, 697, 2517, 6885, 14893].into_iter().enumerate() {
            let lists = Lists::within(&slices, errors as u32, 1);
            assert_eq!(lists.count(), 64 * count);
            let all = [lists.admitting(63), lists.adding(63)];
            assert_eq!(all.map(<[u32]>::len), [count.min(17), count - count.min(17)]);
            assert_eq!(lists.add_only(), errors > 1);
        }
        let jagged = Lists::within(&Slices::new(72, 11).unwrap(), 1, 1);
        assert_eq!(jagged.count(), 72 + 7);
    }

    /// What a list costs, by the definition.
    fn cost(bits: &[(u32, u32)], flip: u32) -> u32 {
        bits.iter().filter(|(_, bit)| flip & bit != 0).map(|(cost, _)| cost).sum()
    }

    proptest! {
        #[test]
        fn the_likeliest_lists_and_no_others(
            margins in prop::collection::vec(any::<u8>(), 40),
            budget in 1_usize..3000,
        ) {
            let slices = Slices::new(40, 10).unwrap();
            let signatures = Signatures::from_words(40, vec![0]).unwrap();
            let queries = Queries::with_margins(&signatures, &margins).unwrap();
            let (mut weakest, mut lists) = (Weakest::new(4), Lists::default());
            let costs = Rates::typical(&signatures).costs();
            let reached = weakest.fill((queries, 0), (&slices, &costs), budget, &mut lists);
            prop_assert!(lists.count() <= budget.max(4));
            prop_assert!(!lists.add_only());
            let limits = weakest.limits(budget);
            for (slice, limit) in limits.into_iter().enumerate() {
                let mut flips = lists.admitting(slice).to_vec();
                flips.sort_unstable();
                let cheap = |flip: &u32| limit.is_some_and(|limit| cost(&weakest.bits[slice], *flip) <= limit);
                let expected: Vec<u32> = (0..1 << 10).filter(cheap).collect();
                prop_assert_eq!(&flips, &expected);
                for flip in (0..1_u32 << 10).filter(|flip| flip.count_ones() < reached) {
                    prop_assert!(flips.binary_search(&flip).is_ok());
                }
            }
        }

        /// Without margins, fewest errors first.
        #[test]
        fn unknown_margins_are_all_alike(budget in 4_usize..2000) {
            let slices = Slices::new(40, 10).unwrap();
            let signatures = Signatures::from_words(40, vec![0]).unwrap();
            let (mut weakest, mut lists) = (Weakest::new(4), Lists::default());
            let costs = Rates::typical(&signatures).costs();
            let reached = weakest.fill((Queries::from(&signatures), 0), (&slices, &costs), budget, &mut lists);
            prop_assert!(reached > 0);
            prop_assert_eq!(lists.count() as u64, 4 * count_within(10, reached - 1));
        }
    }
}
