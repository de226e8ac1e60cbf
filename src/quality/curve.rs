//! What each radius finds.

use rayon::prelude::*;

use super::Score;
use crate::{Result, Signatures, hamming};

/// How many pairs there are at each distance, and how many of them belong together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Curve {
    /// Pairs that count, at each distance.
    pub found: Vec<u64>,
    /// Pairs that belong together, at each distance.
    pub both: Vec<u64>,
    /// All pairs that belong together, those without a distance included.
    pub wanted: u64,
}

/// What is wanted of a radius.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Goal {
    /// The best F1.
    F1,
    /// The best recall with at least this precision.
    Precision(f64),
    /// The best precision with at least this recall.
    Recall(f64),
}

impl Curve {
    /// What each radius finds, from 0 on.
    pub fn scores(&self) -> Vec<Score> {
        let mut sum = Score { wanted: self.wanted, ..Score::default() };
        let at = |(&found, &both): (&u64, &u64)| {
            sum.found += found;
            sum.both += both;
            sum
        };
        self.found.iter().zip(&self.both).map(at).collect()
    }

    /// The radius that is best for a goal, and what it finds; the smallest of several. Nothing if none reaches the goal.
    pub fn best(&self, goal: Goal) -> Option<(u32, Score)> {
        let mut best: Option<(u32, Score)> = None;
        for (radius, score) in (0..).zip(self.scores()) {
            let better = best.is_none_or(|(_, best)| goal.value(&score) > goal.value(&best));
            if goal.admits(&score) && better {
                best = Some((radius, score));
            }
        }
        best
    }
}

impl Goal {
    /// Whether a score is good enough.
    pub fn admits(self, score: &Score) -> bool {
        match self {
            Goal::F1 => true,
            // To find nothing is precise, and no use.
            Goal::Precision(least) => score.both > 0 && score.precision() >= least,
            Goal::Recall(least) => score.recall() >= least,
        }
    }

    /// How good a score is that is good enough: the more the better.
    pub fn value(self, score: &Score) -> f64 {
        match self {
            Goal::F1 => score.f1(),
            Goal::Precision(_) => score.recall(),
            Goal::Recall(_) => score.precision(),
        }
    }
}

/// How many pairs there are at each distance: the rows of `first`, each with all rows behind it.
pub fn histogram(rows: &Signatures, first: &[u32]) -> Result<Vec<u64>> {
    let kernel = hamming::kernel()?;
    let (stride, bins) = (rows.stride(), rows.bits() as usize + 1);
    let add = |(mut sums, mut distances): (Vec<u64>, Vec<u32>), &row: &u32| {
        let behind = &rows.words()[(row as usize + 1) * stride..];
        distances.resize(behind.len() / stride, 0);
        kernel.distances(rows.row(row as usize), behind, &mut distances);
        distances.iter().for_each(|&distance| sums[distance as usize] += 1);
        (sums, distances)
    };
    let sums = first.par_iter().fold(|| (vec![0; bins], Vec::new()), add).map(|(sums, _)| sums);
    let join = |mut a: Vec<u64>, b: Vec<u64>| {
        a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        a
    };
    Ok(sums.reduce(|| vec![0; bins], join))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_has_its_distance() {
        let rows = Signatures::from_words(64, vec![0, 1, 3, 0]).unwrap();
        // 0-1 1, 0-3 2, 0-0 0, 1-3 1, 1-0 1, 3-0 2.
        let all = histogram(&rows, &[0, 1, 2, 3]).unwrap();
        assert_eq!((all.len(), &all[..4]), (65, &[1, 3, 2, 0][..]));
        assert_eq!(&histogram(&rows, &[1]).unwrap()[..3], [0, 2, 0]);
    }

    /// Scores by radius: 2/2 of 8, 5/7, 6/12, 7/107.
    #[test]
    fn radii_are_chosen_by_the_goal() {
        let curve = Curve { found: vec![2, 5, 5, 95], both: vec![2, 3, 1, 1], wanted: 8 };
        assert_eq!(curve.best(Goal::F1), Some((1, Score { both: 5, found: 7, wanted: 8 })));
        assert_eq!(curve.best(Goal::Precision(0.9)).unwrap().0, 0);
        assert_eq!(curve.best(Goal::Precision(0.5)).unwrap().0, 2);
        assert_eq!(curve.best(Goal::Recall(0.75)).unwrap().0, 2);
        assert_eq!(curve.best(Goal::Recall(0.8)).unwrap().0, 3);
        assert_eq!(curve.best(Goal::Recall(0.9)), None);
        let nothing = Curve { found: vec![0, 3], both: vec![0, 0], wanted: 2 };
        assert_eq!(nothing.best(Goal::Precision(0.9)), None);
    }
}
