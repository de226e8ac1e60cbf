//! Weights: how much each feature counts.
//!
//! Weights are whole numbers of 1/4096 ([`ONE`] is 1): sums of whole numbers do not depend on their order, so a
//! signature is the same whatever the number of threads, and the logarithm is `libm`'s own, the same on every machine.

use serde::{Deserialize, Serialize};

use super::{counts::Counts, hash::HashWords, terms::TermStatistics};

/// The weight 1.
pub const ONE: u64 = 1 << 12;

/// How a feature is weighed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weight {
    /// 1, however often it occurs: the document is a set.
    One,
    /// How often it occurs. One repeated word can decide every bit: prefer `log-count`.
    Count,
    /// 1 + ln(count).
    LogCount,
    /// count × ln((documents + 1) / (documents with it + 1)), from term statistics.
    TfIdf,
    /// TopSig's: ln((count / all) × (all in the collection / count in the collection)) × (count − 0.5) where the
    /// logarithm is positive, from term statistics.
    LogLikelihood,
}

impl Weight {
    /// Whether it needs term statistics.
    pub fn needs_terms(self) -> bool {
        matches!(self, Weight::TfIdf | Weight::LogLikelihood)
    }
}

/// Features with their weights.
#[derive(Debug, Clone, Default)]
pub struct Weighted {
    /// The features of weight [`ONE`]: often all of them, and summed faster.
    pub ones: Vec<HashWords>,
    /// The others. None has weight 0.
    pub others: Vec<(HashWords, u64)>,
}

impl Weighted {
    /// How many features have a weight.
    pub fn len(&self) -> usize {
        self.ones.len() + self.others.len()
    }

    /// Whether no feature has a weight.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All features with their weights.
    pub fn iter(&self) -> impl Iterator<Item = (HashWords, u64)> + '_ {
        self.ones.iter().map(|&hash| (hash, ONE)).chain(self.others.iter().copied())
    }

    /// Weighs the features of one document in place of what was there. `terms` must be there if the weight needs it.
    pub fn weigh(&mut self, counts: &Counts, weight: Weight, terms: Option<&TermStatistics>) {
        self.ones.clear();
        self.others.clear();
        if weight == Weight::One {
            return self.ones.extend(counts.distinct().iter().map(|counted| counted.hash));
        }
        for counted in counts.distinct() {
            let weight = match (weight, terms) {
                (Weight::TfIdf, Some(terms)) => terms.tf_idf(counted.hash[0], counted.count),
                (Weight::LogLikelihood, Some(terms)) => {
                    terms.log_likelihood(counted.hash[0], counted.count, counts.total())
                }
                (Weight::LogCount, _) => log_count(counted.count),
                _ => u64::from(counted.count) * ONE,
            };
            match weight {
                0 => {}
                ONE => self.ones.push(counted.hash),
                _ => self.others.push((counted.hash, weight)),
            }
        }
    }
}

fn log_count(count: u32) -> u64 {
    if count == 1 { ONE } else { fixed(1.0 + libm::log(f64::from(count))) }
}

/// A weight as a whole number of 1/4096, nearest first; what is not positive weighs nothing.
pub(super) fn fixed(weight: f64) -> u64 {
    // `as` takes negative numbers and NaN to 0.
    libm::round(weight * ONE as f64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_weighed_as_said() {
        let mut counts = Counts::default();
        counts.reset(4);
        [1_u64, 2, 2, 3, 3, 3].iter().for_each(|&hash| counts.add([hash << 60, 0]));
        let weights = |weight| {
            let mut weighted = Weighted::default();
            weighted.weigh(&counts, weight, None);
            let mut all: Vec<u64> = weighted.iter().map(|(_, weight)| weight).collect();
            all.sort_unstable();
            all
        };
        assert_eq!(weights(Weight::One), [ONE, ONE, ONE]);
        assert_eq!(weights(Weight::Count), [ONE, 2 * ONE, 3 * ONE]);
        // 1 + ln 2 = 1.6931, 1 + ln 3 = 2.0986, times 4096.
        assert_eq!(weights(Weight::LogCount), [ONE, 6935, 8596]);
    }
}
