//! Which rows belong together: as pairs, or as clusters.

use std::collections::HashMap;

use crate::cluster::{join, root};

/// Pairs of rows, each once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pairs(Vec<(u32, u32)>);

/// The cluster of each row, by its number; none if the row is alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Clusters(Vec<Option<u32>>);

/// Which rows belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Links {
    /// These pairs and no others.
    Pairs(Pairs),
    /// All pairs within each cluster.
    Clusters(Clusters),
}

/// How many pairs `rows` rows have.
pub(super) fn pairs_of(rows: u64) -> u64 {
    rows * rows.saturating_sub(1) / 2
}

impl Pairs {
    /// Pairs in any order, either row first; copies count once, and a row with itself is no pair.
    pub fn new(pairs: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let ordered = pairs.into_iter().filter(|(a, b)| a != b);
        let mut pairs: Vec<_> = ordered.map(|(a, b)| (a.min(b), a.max(b))).collect();
        pairs.sort_unstable();
        pairs.dedup();
        Pairs(pairs)
    }

    /// The pairs in order, the lower row first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u32, u32)> + '_ {
        self.0.iter().copied()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether two rows are a pair.
    pub fn contains(&self, a: u32, b: u32) -> bool {
        self.0.binary_search(&(a.min(b), a.max(b))).is_ok()
    }
}

impl Clusters {
    /// Clusters from the number of each row's.
    pub fn new(clusters: impl IntoIterator<Item = Option<u32>>) -> Self {
        Clusters(clusters.into_iter().collect())
    }

    /// What pairs hold together, directly or through others: each of the `rows` rows that is in a pair has a cluster.
    pub fn connected(pairs: &Pairs, rows: usize) -> Self {
        let last = pairs.iter().map(|(_, b)| b as usize + 1).max().unwrap_or(0);
        let mut parents: Vec<u32> = (0..rows.max(last) as u32).collect();
        for (a, b) in pairs.iter() {
            join(&mut parents, a, b);
        }
        let mut clusters = vec![None; parents.len()];
        for row in pairs.iter().flat_map(|(a, b)| [a, b]) {
            clusters[row as usize] = Some(root(&mut parents, row));
        }
        Clusters(clusters)
    }

    /// The cluster of a row.
    pub fn of(&self, row: u32) -> Option<u32> {
        self.0.get(row as usize).copied().flatten()
    }

    /// The cluster of each row.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Option<u32>> + '_ {
        self.0.iter().copied()
    }

    /// How many rows each cluster has.
    pub fn sizes(&self) -> HashMap<u32, u64> {
        let mut sizes = HashMap::new();
        self.iter().flatten().for_each(|cluster| *sizes.entry(cluster).or_default() += 1);
        sizes
    }

    /// How many rows each cluster has in common with each of `other`: a contingency table.
    pub(super) fn contingency(&self, other: &Clusters) -> HashMap<(u32, u32), u64> {
        let mut cells = HashMap::new();
        let both = self.iter().zip(other.iter()).filter_map(|(a, b)| a.zip(b));
        both.for_each(|cell| *cells.entry(cell).or_default() += 1);
        cells
    }

    fn joins(&self, a: u32, b: u32) -> bool {
        a != b && self.of(a).is_some_and(|cluster| self.of(b) == Some(cluster))
    }
}

impl Links {
    /// How many pairs belong together.
    pub fn count(&self) -> u64 {
        match self {
            Links::Pairs(pairs) => pairs.len() as u64,
            Links::Clusters(clusters) => clusters.sizes().into_values().map(pairs_of).sum(),
        }
    }

    /// Whether two rows belong together.
    pub fn join(&self, a: u32, b: u32) -> bool {
        match self {
            Links::Pairs(pairs) => pairs.contains(a, b),
            Links::Clusters(clusters) => clusters.joins(a, b),
        }
    }

    /// How many pairs belong together in both.
    pub fn shared(&self, other: &Links) -> u64 {
        match (self, other) {
            (Links::Pairs(pairs), other) | (other, Links::Pairs(pairs)) => {
                pairs.iter().filter(|&(a, b)| other.join(a, b)).count() as u64
            }
            (Links::Clusters(a), Links::Clusters(b)) => {
                a.contingency(b).into_values().map(pairs_of).sum()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// All pairs of the clusters, one by one.
    fn listed(clusters: &Clusters) -> Pairs {
        let rows = 0..clusters.0.len() as u32;
        let pairs = rows.clone().flat_map(|a| rows.clone().map(move |b| (a, b)));
        Pairs::new(pairs.filter(|&(a, b)| clusters.joins(a, b)))
    }

    fn some_clusters() -> impl Strategy<Value = Clusters> {
        prop::collection::vec(prop::option::of(0..6_u32), 0..40).prop_map(Clusters)
    }

    proptest! {
        #[test]
        fn counting_is_listing(a in some_clusters(), b in some_clusters()) {
            let (listed_a, listed_b) = (Links::Pairs(listed(&a)), Links::Pairs(listed(&b)));
            let (a, b) = (Links::Clusters(a), Links::Clusters(b));
            prop_assert_eq!(a.count(), listed_a.count());
            for (one, other) in [(&a, &b), (&listed_a, &b), (&a, &listed_b), (&b, &a)] {
                prop_assert_eq!(one.shared(other), listed_a.shared(&listed_b));
            }
        }

        #[test]
        fn connected_pairs_are_the_clusters_they_came_from(a in some_clusters()) {
            let pairs = listed(&a);
            let again = Clusters::connected(&pairs, a.0.len());
            prop_assert_eq!(listed(&again), pairs);
        }
    }

    #[test]
    fn pairs_are_told_once() {
        let pairs = Pairs::new([(3, 1), (1, 3), (2, 2), (0, 1)]);
        assert_eq!(pairs.iter().collect::<Vec<_>>(), [(0, 1), (1, 3)]);
        assert!(pairs.contains(3, 1) && !pairs.contains(0, 3));
        let clusters = Clusters::connected(&pairs, 5);
        assert_eq!(clusters.0, [Some(0), Some(0), None, Some(0), None]);
    }

    #[test]
    fn a_million_rows_are_counted() {
        let million = Links::Clusters(Clusters::new(std::iter::repeat_n(Some(7), 1_000_000)));
        assert_eq!(million.count(), 499_999_500_000);
        assert_eq!(million.shared(&million), 499_999_500_000);
    }
}
