//! How often does a bit of a near row differ, by the value and the margin of the query's bit? Measured, not modelled: bits
//! that are a draw (margin 0) flip less often than those with a small margin, which no smooth model says.

use crate::{
    Result, Signatures,
    index::{
        Answers, Index, Queries, Scan,
        sample::{spread, taken},
    },
};

/// One for each value of a margin.
pub(super) const MARGINS: usize = 256;
/// A unit of cost is this share of a factor e in likelihood.
const UNITS: f64 = 16.0;
/// No cost is higher: so unlikely a list is never worth its visit.
pub(super) const MOST_COST: u32 = 255;

/// What was measured, for bits of the query that are 0 and for those that are 1: a draw is 0, too, so near rows have a 0
/// more often where the query has a 1 than the other way round.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rates {
    of: [OfValue; 2],
    /// The share of ones among all bits of all rows.
    ones: f32,
}

/// The shares of bits that differ.
#[derive(Debug, Clone, PartialEq)]
struct OfValue {
    by_margin: [f32; MARGINS],
    /// The same, whatever the margin.
    mean: f32,
}

/// What bits cost: minus logarithms of likelihoods, in units.
#[derive(Debug, Clone)]
pub(super) struct Costs([CostsOfValue; 2]);

#[derive(Debug, Clone)]
struct CostsOfValue {
    by_margin: [Cost; MARGINS],
    unknown: Cost,
}

/// What one bit costs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    /// To flip it rather than not.
    pub(super) flip: u8,
    /// Not to flip it.
    pub(super) stay: f32,
}

impl Costs {
    /// Those of a bit of this value.
    #[inline]
    pub(super) fn of(&self, value: bool, margin: Option<u8>) -> Cost {
        let costs = &self.0[usize::from(value)];
        margin.map_or(costs.unknown, |margin| costs.by_margin[usize::from(margin)])
    }
}

/// Measured on 1024-bit TopSig signatures of a million documents, the ten nearest of each: draws, then small to large
/// margins. Good enough until the data are known.
const TYPICAL: [(usize, f32); 3] = [(0, 0.10), (1, 0.39), (255, 0.21)];
const TYPICAL_MEAN: f32 = 0.25;
/// A share of bits of which little is known: so many observations of the mean.
const PRIOR: f64 = 4.0;
/// Rows in which ones are counted.
const COUNTED: usize = 4096;

impl Rates {
    /// What is likely of rows of which no neighbors are known.
    pub(super) fn typical(rows: &Signatures) -> Self {
        let by_margin = std::array::from_fn(|margin| {
            let after = TYPICAL.iter().position(|&(at, _)| at >= margin).unwrap_or(0);
            let ((a, low), (b, high)) = (TYPICAL[after.saturating_sub(1)], TYPICAL[after]);
            let part = (margin - a) as f32 / (b - a).max(1) as f32;
            low + (high - low) * part
        });
        let of = OfValue { by_margin, mean: TYPICAL_MEAN };
        Rates { of: [of.clone(), of], ones: ones(rows) }
    }

    /// Measures on the `k` nearest rows of some of the queries, which must have margins; nothing if they have none.
    pub(super) fn measure(
        rows: &Signatures,
        queries: Queries<'_>,
        (most_queries, k): (usize, usize),
    ) -> Result<Option<Self>> {
        let chosen = spread(queries.len(), most_queries);
        let sample = taken(queries.signatures(), &chosen)?;
        let mut nearest = Answers::new();
        Scan::new(rows)?.nearest((&sample).into(), k, &mut nearest)?;
        let mut counts = [Counts::default(), Counts::default()];
        for (&query, neighbors) in chosen.iter().zip(nearest.iter()) {
            let Some(margins) = queries.margins(query) else { return Ok(None) };
            for neighbor in neighbors {
                let row = rows.row(neighbor.row as usize);
                count(&mut counts, margins, queries.signatures().row(query), row);
            }
        }
        let [zeros, ones_of] = counts.each_ref().map(Counts::rates);
        Ok(zeros.zip(ones_of).map(|(zero, one)| Rates { of: [zero, one], ones: ones(rows) }))
    }

    /// How many numbers they are.
    pub(super) const SHARES: usize = 2 * (MARGINS + 1) + 1;

    /// From the numbers, if they can be shares.
    pub(super) fn from_shares(shares: &[f32]) -> Option<Self> {
        if shares.len() != Self::SHARES || !shares.iter().all(|&share| share > 0.0 && share < 1.0) {
            return None;
        }
        let of = |value: usize| {
            let shares = &shares[value * (MARGINS + 1)..][..MARGINS + 1];
            OfValue {
                by_margin: std::array::from_fn(|margin| shares[margin]),
                mean: shares[MARGINS],
            }
        };
        Some(Rates { of: [of(0), of(1)], ones: shares[Self::SHARES - 1] })
    }

    /// The numbers: for zeros and for ones the share of each margin, and the mean; and the share of ones.
    pub(super) fn shares(&self) -> Vec<f32> {
        let of = self.of.iter().flat_map(|of| of.by_margin.iter().copied().chain([of.mean]));
        of.chain([self.ones]).collect()
    }

    /// What counts is how much likelier a list has near rows than it has any rows: that is the number of near rows for
    /// each row met. So the odds of a near row's bit are taken against those of any row's.
    pub(super) fn costs(&self) -> Costs {
        let units = |chance: f64| -libm::log(chance) * UNITS;
        let costs = |of: &OfValue, any: f64| {
            let cost = |share: f32| {
                let near = f64::from(share);
                let flip = units(near / (1.0 - near)) - units(any / (1.0 - any));
                Cost {
                    // Even if a flip made a list likelier, it would be one more error.
                    flip: libm::round(flip).clamp(1.0, f64::from(MOST_COST)) as u8,
                    stay: (units(1.0 - near) - units(1.0 - any)) as f32,
                }
            };
            CostsOfValue { by_margin: of.by_margin.map(cost), unknown: cost(of.mean) }
        };
        let ones = f64::from(self.ones);
        Costs([costs(&self.of[0], ones), costs(&self.of[1], 1.0 - ones)])
    }
}

/// The share of ones among the bits of some rows.
fn ones(rows: &Signatures) -> f32 {
    let chosen = spread(rows.len(), COUNTED);
    let of_row = |&row: &usize| rows.row(row).iter().map(|word| word.count_ones()).sum::<u32>();
    let ones: u64 = chosen.iter().map(|row| u64::from(of_row(row))).sum();
    let bits = chosen.len() as f64 * f64::from(rows.bits());
    ((ones as f64 + 1.0) / (bits + 2.0)).clamp(0.02, 0.98) as f32
}

/// Bits of each margin, and those of them that differ.
struct Counts {
    all: [u64; MARGINS],
    flipped: [u64; MARGINS],
}

impl Default for Counts {
    fn default() -> Self {
        Counts { all: [0; MARGINS], flipped: [0; MARGINS] }
    }
}

/// Counts the bits of a query that are 0 and those that are 1, against a near row.
fn count(counts: &mut [Counts; 2], margins: &[u8], query: &[u64], row: &[u64]) {
    for (bit, &margin) in margins.iter().enumerate() {
        let of = |words: &[u64]| words[bit / 64] << (bit % 64) >> 63;
        let counts = &mut counts[of(query) as usize];
        counts.all[usize::from(margin)] += 1;
        counts.flipped[usize::from(margin)] += of(query) ^ of(row);
    }
}

impl Counts {
    fn rates(&self) -> Option<OfValue> {
        let (all, flipped): (u64, u64) = (self.all.iter().sum(), self.flipped.iter().sum());
        if all == 0 {
            return None;
        }
        let mean = ((flipped as f64 + 0.5) / (all as f64 + 1.0)).clamp(1e-4, 0.5);
        let share = |margin: usize| Pool {
            flipped: self.flipped[margin] as f64 + PRIOR * mean,
            all: self.all[margin] as f64 + PRIOR,
            margins: 1,
        };
        // A draw is not a small margin: it has a rate of its own.
        let mut shares = vec![share(0).share()];
        shares.extend(falling((1..MARGINS).map(share)));
        Some(OfValue { by_margin: std::array::from_fn(|margin| shares[margin]), mean: mean as f32 })
    }
}

/// Some margins in a row, seen as one.
struct Pool {
    flipped: f64,
    all: f64,
    margins: usize,
}

impl Pool {
    fn share(&self) -> f32 {
        (self.flipped / self.all).clamp(1e-4, 0.9) as f32
    }
}

/// Shares that do not rise: where they would, margins are pooled.
fn falling(shares: impl Iterator<Item = Pool>) -> Vec<f32> {
    let mut pools: Vec<Pool> = Vec::new();
    for mut pool in shares {
        while let Some(last) = pools.pop_if(|last| last.share() < pool.share()) {
            pool.flipped += last.flipped;
            pool.all += last.all;
            pool.margins += last.margins;
        }
        pools.push(pool);
    }
    pools.iter().flat_map(|pool| std::iter::repeat_n(pool.share(), pool.margins)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_come_from_the_bits_that_differ() {
        // Of margin 0 one in four differs, of margin 10 one in two, of margin 200 none.
        let margins: Vec<u8> = (0..64).map(|bit| [0, 10, 200, 200][bit % 4]).collect();
        let flips = (0..64).filter(|bit| bit % 8 == 1 || bit % 16 == 0);
        let row = flips.fold(0_u64, |row, bit| row | 1 << (63 - bit));
        for (query, row) in [(0, row), (!0, !row)] {
            let mut counts = [Counts::default(), Counts::default()];
            (0..1000).for_each(|_| count(&mut counts, &margins, &[query], &[row]));
            let value = query as usize & 1;
            assert!(counts[1 - value].rates().is_none());
            let rates = counts[value].rates().unwrap();
            let near = |margin: usize, share: f32| (rates.by_margin[margin] - share).abs() < 0.01;
            assert!(near(0, 0.25) && near(10, 0.5) && near(200, 0.0), "{rates:?}");
            assert!(rates.by_margin[1..].is_sorted_by(|a, b| a >= b));
            let costs = Rates { of: [rates.clone(), rates], ones: 0.5 }.costs();
            let [weak, draw, strong] = [10, 0, 200].map(|margin| costs.of(true, Some(margin)).flip);
            assert!(weak < draw && draw < strong);
        }
    }

    #[test]
    fn what_is_no_share_is_refused() {
        let rates = Rates::typical(&Signatures::from_words(64, vec![3; 100]).unwrap());
        assert!((rates.ones - 2.0 / 64.0).abs() < 0.001);
        let shares = rates.shares();
        assert_eq!(Rates::from_shares(&shares), Some(rates));
        for wrong in [0.0, 1.0, -1.0, f32::NAN] {
            let mut shares = shares.clone();
            shares[7] = wrong;
            assert_eq!(Rates::from_shares(&shares), None);
        }
        assert_eq!(Rates::from_shares(&shares[1..]), None);
    }
}
