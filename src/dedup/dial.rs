//! The dial: from the similarity that a user asks for follows everything else.

use serde::{Deserialize, Serialize};

use crate::{Error, Result, signature::minhash::Bands, verify::Verify};

/// Below this nearly every pair would be a candidate.
const LEAST: f64 = 0.1;
/// Of pairs a little more similar than asked for, at least this share must have a key in common.
const FOUND: f64 = 0.99;
/// Pairs just above the threshold are the hardest to find and the most frequent: the mean over this stretch of
/// similarities is what [`FOUND`] is asked of.
const STRETCH: f64 = 0.1;
/// How far beyond the expected distance a candidate may be: all but 1 in 160 pairs are within.
const DEVIATIONS: f64 = 2.5;

/// How near-duplicates of some similarity are found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Dial {
    /// The Jaccard coefficient from which on two documents are alike.
    pub similarity: f64,
    /// The keys that lead to candidates.
    pub bands: Bands,
    /// The distance up to which candidates are looked at.
    pub radius: u32,
    /// What decides.
    pub verify: Verify,
    /// The share of the pairs that really are that similar and that are promised to be found.
    pub recall: f64,
}

impl Dial {
    /// The settings for a similarity, on one-bit MinHash signatures of this width.
    pub fn new(similarity: f64, bits: u32, verify: Option<Verify>) -> Result<Self> {
        if !(LEAST..=1.0).contains(&similarity) {
            let is_percent = (100.0 * LEAST..=100.0).contains(&similarity);
            let way_out = match is_percent {
                true => format!(": {similarity}% is {}", similarity / 100.0),
                false => String::new(),
            };
            let problem = format!("is {similarity}, not between {LEAST} and 1{way_out}");
            return Err(Error::Setting { name: "similarity", problem });
        }
        let verify = verify.unwrap_or(Verify::Jaccard(similarity));
        // Without a look at the texts, the distance alone decides, so it must not be generous.
        let deviations = if verify == Verify::None { 0.0 } else { DEVIATIONS };
        Ok(Dial {
            similarity,
            bands: bands(similarity, bits as usize),
            radius: radius(similarity, bits, deviations),
            verify,
            recall: 0.98,
        })
    }

    /// The share of the pairs of this similarity that bands and radius find, if the hash functions are random.
    pub fn chance(&self, jaccard: f64, bits: u32) -> f64 {
        let p = (1.0 - jaccard) / 2.0;
        self.bands.chance(jaccard) * binomial_at_most(bits, p, self.radius)
    }
}

/// The longest bands, since those meet the fewest strangers, and of them as few as find enough.
fn bands(similarity: f64, minima: usize) -> Bands {
    let found = |bands: Bands| {
        let at = |i: usize| bands.chance((similarity + STRETCH * i as f64 / 16.0).min(1.0));
        (0..=16).map(at).sum::<f64>() / 17.0
    };
    // Longer bands need more of them: there is a point from which on that costs more than it saves.
    let most_rows = if similarity > 0.65 { 6 } else { 4 };
    for rows in (1..=most_rows).rev() {
        let mut counts = 4..=minima / rows;
        if let Some(count) = counts.find(|&count| found(Bands { count, rows }) >= FOUND) {
            return Bands { count, rows };
        }
    }
    Bands { count: minima, rows: 1 }
}

/// Where pairs of this similarity are expected, and some standard deviations more.
fn radius(similarity: f64, bits: u32, deviations: f64) -> u32 {
    let p = (1.0 - similarity) / 2.0;
    let bits = f64::from(bits);
    (bits * p + deviations * (p * (1.0 - p) * bits).sqrt()).round() as u32
}

/// The probability of at most `most` successes.
fn binomial_at_most(trials: u32, p: f64, most: u32) -> f64 {
    if p <= 0.0 {
        return 1.0;
    }
    let n = f64::from(trials);
    let mut term = n * (1.0 - p).ln();
    let mut sum = 0.0;
    for successes in 0..=most.min(trials) {
        sum += term.exp();
        let k = f64::from(successes);
        term += ((n - k) / (k + 1.0)).ln() + (p / (1.0 - p)).ln();
    }
    sum.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_follows_from_the_similarity() {
        for (similarity, radius) in [(0.8, 38), (0.7, 53), (0.5, 81)] {
            let dial = Dial::new(similarity, 256, None).unwrap();
            assert_eq!(dial.radius, radius);
            assert!(dial.bands.count * dial.bands.rows <= 256, "{dial:?}");
            assert!(dial.chance(similarity + 0.05, 256) > 0.96, "{dial:?}");
            assert!(dial.chance(1.0, 256) > 0.9999, "{dial:?}");
        }
        assert!(Dial::new(0.05, 256, None).is_err());
        assert!(Dial::new(0.2, 256, None).unwrap().chance(0.25, 256) > 0.9);
        assert!(Dial::new(1.0, 256, None).is_ok());
    }

    #[test]
    fn binomials() {
        assert!((binomial_at_most(10, 0.5, 5) - 0.623_046_875).abs() < 1e-12);
        assert_eq!(binomial_at_most(10, 0.0, 0), 1.0);
        assert!((binomial_at_most(256, 0.25, 256) - 1.0).abs() < 1e-9);
    }
}
