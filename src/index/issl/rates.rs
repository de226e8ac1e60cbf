//! How often does a bit of a near row differ, by the margin of the query's bit? Measured, not modelled: bits that are a
//! draw (margin 0) flip less often than those with a small margin, which no smooth model says.

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

/// What was measured.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rates {
    /// The share of bits that differ, by margin.
    flipped: [f32; MARGINS],
    /// The same, whatever the margin.
    mean: f32,
}

/// What a bit costs: minus the logarithm of how likely it is, in units.
#[derive(Debug, Clone)]
pub(super) struct Costs {
    /// To flip it rather than not.
    pub(super) flip: [u8; MARGINS],
    /// Not to flip it.
    pub(super) stay: [f32; MARGINS],
    /// The same for bits of unknown margin.
    pub(super) unknown: (u8, f32),
}

/// Measured on 1024-bit TopSig signatures of a million documents, the ten nearest of each; margins between are
/// interpolated. Good enough until the data are known.
const TYPICAL: [(usize, f32); 8] = [
    (0, 0.18),
    (1, 0.39),
    (16, 0.36),
    (32, 0.30),
    (64, 0.20),
    (96, 0.11),
    (160, 0.03),
    (255, 0.005),
];
/// A share of bits of which nothing is known: these observations of the mean.
const PRIOR: f64 = 4.0;

impl Default for Rates {
    fn default() -> Self {
        let flipped = std::array::from_fn(|margin| {
            let after = TYPICAL.iter().position(|&(at, _)| at >= margin).unwrap_or(0);
            let ((a, low), (b, high)) = (TYPICAL[after.saturating_sub(1)], TYPICAL[after]);
            let part = (margin - a) as f32 / (b - a).max(1) as f32;
            low + (high - low) * part
        });
        Rates { flipped, mean: 0.25 }
    }
}

impl Rates {
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
        let mut counts = Counts::default();
        for (&query, neighbors) in chosen.iter().zip(nearest.iter()) {
            let Some(margins) = queries.margins(query) else { return Ok(None) };
            for neighbor in neighbors {
                counts.add(
                    margins,
                    queries.signatures().row(query),
                    rows.row(neighbor.row as usize),
                );
            }
        }
        Ok(counts.rates())
    }

    /// From the shares of each margin, if they can be shares.
    pub(super) fn from_shares(shares: &[f32]) -> Option<Self> {
        let (&mean, flipped) = shares.split_last()?;
        let possible = |share: &f32| *share > 0.0 && *share < 1.0;
        let flipped: [f32; MARGINS] = flipped.try_into().ok()?;
        (possible(&mean) && flipped.iter().all(possible)).then_some(Rates { flipped, mean })
    }

    /// The share of each margin, and the mean.
    pub(super) fn shares(&self) -> Vec<f32> {
        self.flipped.iter().copied().chain([self.mean]).collect()
    }

    pub(super) fn costs(&self) -> Costs {
        let units = |chance: f64| -libm::log(chance) * UNITS;
        let flip = |share: f32| {
            let share = f64::from(share).clamp(1e-6, 0.5);
            // A bit that is as likely to differ as not still is one error more.
            libm::round(units(share / (1.0 - share))).clamp(1.0, f64::from(MOST_COST)) as u8
        };
        let stay = |share: f32| units(1.0 - f64::from(share)) as f32;
        Costs {
            flip: self.flipped.map(flip),
            stay: self.flipped.map(stay),
            unknown: (flip(self.mean), stay(self.mean)),
        }
    }
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

impl Counts {
    fn add(&mut self, margins: &[u8], query: &[u64], row: &[u64]) {
        for (bit, &margin) in margins.iter().enumerate() {
            let differs = (query[bit / 64] ^ row[bit / 64]) << (bit % 64) >> 63;
            self.all[usize::from(margin)] += 1;
            self.flipped[usize::from(margin)] += differs;
        }
    }

    fn rates(&self) -> Option<Rates> {
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
        shares.push(mean as f32);
        Rates::from_shares(&shares)
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
        let mut counts = Counts::default();
        // Of margin 0 one in four differs, of margin 10 one in two, of margin 200 none.
        let margins: Vec<u8> = (0..64).map(|bit| [0, 10, 200, 200][bit % 4]).collect();
        let flips = (0..64).filter(|bit| bit % 8 == 1 || bit % 16 == 0);
        let row = flips.fold(0_u64, |row, bit| row | 1 << (63 - bit));
        (0..1000).for_each(|_| counts.add(&margins, &[0], &[row]));
        let rates = counts.rates().unwrap();
        let near = |margin: usize, share: f32| (rates.flipped[margin] - share).abs() < 0.01;
        assert!(near(0, 0.25) && near(10, 0.5) && near(200, 0.0), "{rates:?}");
        assert!(rates.flipped[1..].is_sorted_by(|a, b| a >= b));
        assert_eq!(Rates::from_shares(&rates.shares()), Some(rates.clone()));
        let costs = rates.costs();
        assert!(costs.flip[10] < costs.flip[0] && costs.flip[0] < costs.flip[200]);
        assert_eq!(Counts::default().rates(), None);
    }

    #[test]
    fn what_is_no_share_is_refused() {
        let shares = Rates::default().shares();
        assert_eq!(Rates::from_shares(&shares), Some(Rates::default()));
        for wrong in [0.0, 1.0, -1.0, f32::NAN] {
            let mut shares = shares.clone();
            shares[7] = wrong;
            assert_eq!(Rates::from_shares(&shares), None);
        }
        assert_eq!(Rates::from_shares(&shares[1..]), None);
    }
}
