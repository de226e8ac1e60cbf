//! An index's answers against those of the scan.

use std::collections::HashSet;

use super::Score;
use crate::index::{Answers, Neighbor};

/// How many of the true neighbors were found.
pub fn neighbors_found(found: &Answers, truth: &Answers) -> Score {
    let mut score = Score::default();
    for (found, truth) in found.iter().zip(truth.iter()) {
        let rows: HashSet<u32> = truth.iter().map(|neighbor| neighbor.row).collect();
        let both = found.iter().filter(|neighbor| rows.contains(&neighbor.row)).count();
        let (found, wanted) = (found.len() as u64, truth.len() as u64);
        score = score + Score { both: both as u64, found, wanted };
    }
    score
}

/// The share of the nearest that was found. Ties count: one row is as good as another at the same distance. 1 if there are
/// none.
pub fn nearest_found(found: &Answers, truth: &Answers) -> f64 {
    let (mut good, mut wanted) = (0, 0);
    for (found, truth) in found.iter().zip(truth.iter()) {
        let farthest = truth.last().map_or(0, |neighbor| neighbor.distance);
        let near = found.iter().filter(|neighbor| neighbor.distance <= farthest).count();
        good += near.min(truth.len());
        wanted += truth.len();
    }
    if wanted > 0 { good as f64 / wanted as f64 } else { 1.0 }
}

/// The distance ratio DR(p) of one answer (Chappell, 2015): the sum of the true distances over the sum of those found, over
/// the first `p`. 0/0 is 1. What is missing is as far away as can be: `bits`.
pub fn distance_ratio(found: &[Neighbor], truth: &[Neighbor], p: usize, bits: u32) -> f64 {
    let p = p.min(truth.len());
    let sum = |neighbors: &[Neighbor]| -> u64 {
        neighbors.iter().take(p).map(|neighbor| u64::from(neighbor.distance)).sum()
    };
    let missing = p.saturating_sub(found.len()) as u64 * u64::from(bits);
    match (sum(truth), sum(found) + missing) {
        (0, 0) => 1.0,
        (truth, found) => truth as f64 / found as f64,
    }
}

/// CDR(p): the mean of DR(1) to DR(p), on average over all queries; 1 if there are none.
pub fn cdr(found: &Answers, truth: &Answers, p: usize, bits: u32) -> f64 {
    let of = |(found, truth): (&[Neighbor], &[Neighbor])| -> f64 {
        let ratios = (1..=p).map(|p| distance_ratio(found, truth, p, bits));
        ratios.sum::<f64>() / p as f64
    };
    match truth.len() {
        0 => 1.0,
        queries => found.iter().zip(truth.iter()).map(of).sum::<f64>() / queries as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn neighbors(distances: &[(u32, u32)]) -> Vec<Neighbor> {
        distances.iter().map(|&(row, distance)| Neighbor { row, distance }).collect()
    }

    /// By hand: DR(1) = 0/2, DR(2) = 4/7, DR(3) = 9/12.
    #[test]
    fn ratios_of_distances() {
        let truth = neighbors(&[(1, 0), (2, 4), (3, 5)]);
        let found = neighbors(&[(4, 2), (3, 5), (5, 5)]);
        let ratio = |p| distance_ratio(&found, &truth, p, 64);
        assert_eq!([ratio(1), ratio(2), ratio(3)], [0.0, 4.0 / 7.0, 9.0 / 12.0]);
        // There are no more than three: beyond, nothing changes.
        assert_eq!(ratio(9), ratio(3));
        assert_eq!(distance_ratio(&truth, &truth, 1, 64), 1.0);
        // One is missing: 4 / (4 + 0 + 64).
        assert_eq!(distance_ratio(&neighbors(&[(2, 4)]), &truth, 2, 64), 4.0 / 68.0);

        let answers = |lists: &[&[Neighbor]]| {
            let mut answers = Answers::new();
            lists.iter().for_each(|list| answers.push(list));
            answers
        };
        let (found, truth) = (answers(&[&found, &truth]), answers(&[&truth, &truth]));
        let expected = ((0.0 + 4.0 / 7.0 + 0.75) / 3.0 + 1.0) / 2.0;
        assert!((cdr(&found, &truth, 3, 64) - expected).abs() < 1e-12);
        let score = neighbors_found(&found, &truth);
        assert_eq!(score, Score { both: 4, found: 6, wanted: 6 });
        // The first answer has another row at distance 5: as good as the true one.
        assert_eq!((nearest_found(&found, &truth), nearest_found(&truth, &found)), (1.0, 1.0));
        let far = answers(&[&neighbors(&[(1, 0), (9, 6)]), &[]]);
        assert_eq!(nearest_found(&far, &truth), 1.0 / 6.0);
    }
}
