//! Precision, recall and what follows from them.

use std::ops::Add;

use super::links::{Clusters, Links, Pairs, pairs_of};

/// What was found, what should have been, and what is in both.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Score {
    /// Found, and rightly so.
    pub both: u64,
    /// Found in all.
    pub found: u64,
    /// What was to be found.
    pub wanted: u64,
}

impl Score {
    /// Scores what was found against labels. Pairs of `unlabelled` of which the labels know nothing count neither as right
    /// nor as wrong.
    pub fn of(found: &Links, labels: &Links, unlabelled: &Pairs) -> Self {
        let neither =
            unlabelled.iter().filter(|&(a, b)| found.join(a, b) && !labels.join(a, b)).count();
        Score {
            both: found.shared(labels),
            found: found.count() - neither as u64,
            wanted: labels.count(),
        }
    }

    /// The share of what was found that is right; 1 if nothing was found.
    pub fn precision(&self) -> f64 {
        share(self.both, self.found)
    }

    /// The share of what was to be found that was; 1 if there was nothing to be found.
    pub fn recall(&self) -> f64 {
        share(self.both, self.wanted)
    }

    /// The harmonic mean of precision and recall.
    pub fn f1(&self) -> f64 {
        share(2 * self.both, self.found + self.wanted)
    }

    /// The interval of the precision, see [`wilson`].
    pub fn precision_interval(&self) -> (f64, f64) {
        wilson(self.both, self.found)
    }

    /// The interval of the recall, see [`wilson`].
    pub fn recall_interval(&self) -> (f64, f64) {
        wilson(self.both, self.wanted)
    }

    /// The interval of F1. With J the share of `both` in all that was found or wanted, F1 = 2 J / (1 + J), which grows
    /// with J: so the interval is that of J, seen through it.
    pub fn f1_interval(&self) -> (f64, f64) {
        let (low, high) = wilson(self.both, self.found + self.wanted - self.both);
        let f1 = |j: f64| 2.0 * j / (1.0 + j);
        (f1(low), f1(high))
    }
}

impl Add for Score {
    type Output = Score;

    fn add(self, other: Score) -> Score {
        Score {
            both: self.both + other.both,
            found: self.found + other.found,
            wanted: self.wanted + other.wanted,
        }
    }
}

fn share(part: u64, all: u64) -> f64 {
    if all == 0 { 1.0 } else { part as f64 / all as f64 }
}

/// The interval in which a share of `part` of `all` lies, 19 times out of 20 (Wilson, 1927); all of 0 to 1 if nothing was
/// counted. It takes each for independent of the others. The pairs of a cluster are not, so intervals of pairs are rather
/// too narrow.
pub fn wilson(part: u64, all: u64) -> (f64, f64) {
    if all == 0 {
        return (0.0, 1.0);
    }
    // The 97.5% point of the normal distribution.
    const Z: f64 = 1.959_963_984_540_054;
    let (n, p) = (all as f64, part as f64 / all as f64);
    let middle = p + Z * Z / (2.0 * n);
    let half = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + Z * Z / n;
    // Rounding must not exclude the share itself.
    (((middle - half) / scale).clamp(0.0, p), ((middle + half) / scale).clamp(p, 1.0))
}

/// The adjusted Rand index (Hubert and Arabie, 1985) of two ways to put `rows` rows into clusters: 1 if they are the same,
/// about 0 if they have no more in common than by chance. Rows without a cluster are alone.
pub fn ari(a: &Links, b: &Links, rows: u64) -> f64 {
    let (in_a, in_b, shared) = (a.count() as f64, b.count() as f64, a.shared(b) as f64);
    let chance = match pairs_of(rows) {
        0 => 0.0,
        all => in_a * in_b / all as f64,
    };
    let most = (in_a + in_b) / 2.0;
    // Both leave every row alone, or both make one cluster of all.
    if most == chance { 1.0 } else { (shared - chance) / (most - chance) }
}

/// The share of a labelled cluster's pairs that was found, on average over the clusters of two and more: a large cluster
/// counts no more than a small one. Nothing if there is no such cluster.
pub fn cluster_recall(found: &Links, labels: &Clusters) -> Option<f64> {
    let sizes = labels.sizes();
    let share_of = |cluster: u32, found: u64| found as f64 / pairs_of(sizes[&cluster]) as f64;
    let clusters = sizes.values().filter(|&&size| size > 1).count();
    let found: f64 = match found {
        Links::Pairs(pairs) => {
            let pairs = pairs.iter().filter(|&(a, b)| labels.of(a) == labels.of(b));
            pairs.filter_map(|(a, _)| labels.of(a)).map(|cluster| share_of(cluster, 1)).sum()
        }
        Links::Clusters(clusters) => {
            let cells = labels.contingency(clusters).into_iter().filter(|&(_, rows)| rows > 1);
            // In order, as sums of shares depend on it in the last digit.
            let mut cells: Vec<_> = cells.collect();
            cells.sort_unstable();
            cells.into_iter().map(|((cluster, _), rows)| share_of(cluster, pairs_of(rows))).sum()
        }
    };
    // The sum of nothing is -0.
    (clusters > 0).then(|| found.abs() / clusters as f64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn clusters(of: &[u32]) -> Clusters {
        Clusters::new(of.iter().map(|&cluster| Some(cluster).filter(|&c| c > 0)))
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 5e-4
    }

    /// By hand: the labels have the pairs 01 02 12 34, found are 01 12 23.
    #[test]
    fn pairs_are_scored() {
        let labels = Links::Clusters(clusters(&[1, 1, 1, 2, 2]));
        let found = Links::Pairs(Pairs::new([(0, 1), (1, 2), (2, 3)]));
        let score = Score::of(&found, &labels, &Pairs::default());
        assert_eq!(score, Score { both: 2, found: 3, wanted: 4 });
        assert_eq!((score.precision(), score.recall()), (2.0 / 3.0, 0.5));
        assert_eq!(score.f1(), 4.0 / 7.0);
        // What the labels do not know does not count; what they know does.
        let unlabelled = Pairs::new([(2, 3), (0, 1), (0, 4)]);
        let score = Score::of(&found, &labels, &unlabelled);
        assert_eq!(score, Score { both: 2, found: 2, wanted: 4 });
    }

    #[test]
    fn nothing_is_perfect() {
        let nothing = Score::default();
        assert_eq!((nothing.precision(), nothing.recall(), nothing.f1()), (1.0, 1.0, 1.0));
        assert_eq!(nothing.f1_interval(), (0.0, 1.0));
        let missed = Score { wanted: 3, ..nothing };
        assert_eq!((missed.precision(), missed.recall(), missed.f1()), (1.0, 0.0, 0.0));
    }

    /// Agresti and Coull (1998) have 0 of 10 up to 0.278; Newcombe (1998) has 81 of 263 from .2553 to .3662, 15 of 148
    /// from .0624 to .1605, 0 of 20 up to .1611 and 1 of 29 from .0061 to .1718.
    #[test]
    fn intervals_are_the_published_ones() {
        for (part, all, low, high) in [
            (0, 10, 0.0, 0.2775),
            (81, 263, 0.2553, 0.3662),
            (15, 148, 0.0624, 0.1605),
            (0, 20, 0.0, 0.1611),
            (1, 29, 0.0061, 0.1718),
        ] {
            let interval = wilson(part, all);
            assert!(near(interval.0, low) && near(interval.1, high), "{part}/{all}: {interval:?}");
        }
        assert_eq!(wilson(5, 5).1, 1.0);
    }

    /// The example of scikit-learn's documentation, and that of Yeung and Ruzzo (2001): 0.313.
    #[test]
    fn ari_is_the_published_one() {
        let links = |of: &[u32]| Links::Clusters(clusters(of));
        let (a, b) = (links(&[1, 1, 2, 2]), links(&[1, 1, 2, 3]));
        assert!(near(ari(&a, &b, 4), 0.571));
        assert!(near(ari(&links(&[1, 1, 2, 2]), &links(&[1, 2, 1, 2]), 4), -0.5));
        let a = links(&[1, 1, 2, 2, 2, 2, 3, 3, 3, 3]);
        let b = links(&[1, 2, 1, 2, 2, 3, 3, 3, 3, 3]);
        assert!(near(ari(&a, &b, 10), 0.313));
        // Alone or in a cluster of one's own is the same.
        assert_eq!(ari(&links(&[1, 1, 0]), &links(&[1, 1, 2]), 3), 1.0);
        assert_eq!(ari(&links(&[0, 0]), &links(&[1, 2]), 2), 1.0);
    }

    /// By hand: of the cluster of 3 pairs one is found, of the cluster of 1 pair all.
    #[test]
    fn every_cluster_counts_the_same() {
        let labels = clusters(&[1, 1, 1, 2, 2, 3]);
        let found = Links::Clusters(clusters(&[1, 1, 2, 2, 2, 2]));
        assert_eq!(cluster_recall(&found, &labels), Some((1.0 / 3.0 + 1.0) / 2.0));
        let pairs = Links::Pairs(Pairs::new([(0, 1), (2, 3), (3, 4), (4, 5)]));
        assert_eq!(cluster_recall(&pairs, &labels), Some((1.0 / 3.0 + 1.0) / 2.0));
        assert_eq!(cluster_recall(&pairs, &clusters(&[1, 2, 3])), None);
    }

    fn some_links() -> impl Strategy<Value = Links> {
        let clusters = prop::collection::vec(prop::option::of(0..5_u32), 24);
        let pairs = prop::collection::vec((0..24_u32, 0..24_u32), 0..40);
        prop_oneof![
            clusters.prop_map(|of| Links::Clusters(Clusters::new(of))),
            pairs.prop_map(|pairs| Links::Pairs(Pairs::new(pairs))),
        ]
    }

    proptest! {
        #[test]
        fn what_is_the_same_is_perfect(a in some_links()) {
            let score = Score::of(&a, &a, &Pairs::default());
            prop_assert_eq!((score.precision(), score.recall(), score.f1()), (1.0, 1.0, 1.0));
            prop_assert_eq!(ari(&a, &a, 24), 1.0);
            if let Links::Clusters(clusters) = &a {
                prop_assert!(cluster_recall(&a, clusters).is_none_or(|recall| near(recall, 1.0)));
            }
        }

        #[test]
        fn precision_is_recall_the_other_way_round(a in some_links(), b in some_links()) {
            let one = Score::of(&a, &b, &Pairs::default());
            let other = Score::of(&b, &a, &Pairs::default());
            prop_assert_eq!(one.precision(), other.recall());
            prop_assert_eq!(one.f1(), other.f1());
            prop_assert_eq!(ari(&a, &b, 24), ari(&b, &a, 24));
            for (share, (low, high)) in [
                (one.precision(), one.precision_interval()),
                (one.recall(), one.recall_interval()),
                (one.f1(), one.f1_interval()),
            ] {
                prop_assert!(low <= share + 1e-12 && share <= high + 1e-12);
            }
        }
    }
}
