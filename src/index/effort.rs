//! How hard must an index look, to find such a share of the nearest? Measured on a sample against the scan, and kept with
//! the index.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::{Answers, Neighbor, sample::recall_of};
use crate::{Result, index::Promise};

/// How hard an index looks for the nearest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Effort {
    /// As hard as it takes to find this share of them.
    Recall(f64),
    /// As hard as this, in the measure of the index: more finds more and takes longer.
    Level(u32),
}

/// The numbers of neighbors for which recall is measured.
const COUNTS: [usize; 3] = [1, 10, 100];
/// The most neighbors of a query of the sample.
pub(crate) const SAMPLE_NEIGHBORS: usize = COUNTS[2];
/// From this recall on one of so many of the sample are enough, if they are not too few; beyond that one there is nothing to
/// gain.
const SURE: f64 = 0.96;
const PART: usize = 4;
const FEWEST_ASKED: usize = 500;
const ENOUGH: f64 = 0.996;
/// Where nothing was found, something might be.
const LEAST_SHARE: f64 = 0.01;
/// Distances are taken together so that each share is of some neighbors.
const STEPS: u32 = 64;
/// Fewer neighbors than this say nothing of their distance.
const FEWEST: u32 = 32;

/// What an index finds, by how hard it looks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// The queries of the sample: signatures that were not in the index.
    queries: u32,
    points: Vec<Point>,
    /// The share of rows within a radius that is found by their distance, in steps of some bits.
    shares: Vec<f64>,
}

/// What one level of effort finds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The effort.
    pub level: u32,
    /// The share of the nearest that is found: of the nearest one, of ten, of a hundred.
    pub recalls: [f64; 3],
    /// How many queries of the sample were asked; 0 in files that do not tell, where it was all.
    #[serde(default)]
    asked: u32,
    /// Seconds for a query, on one thread. Files do not have it: it is that of a machine.
    #[serde(skip)]
    pub seconds: f64,
}

impl Curve {
    /// Measures levels of rising effort, until nearly all is found. `truth` has the nearest rows of each query, as many as
    /// [`SAMPLE_NEIGHBORS`]; `ask` answers the first so many queries with an effort.
    pub(crate) fn measure(
        levels: impl IntoIterator<Item = u32>,
        truth: &Answers,
        mut ask: impl FnMut(u32, usize, &mut Answers) -> Result<()>,
    ) -> Result<Self> {
        let mut curve = Curve { queries: truth.len() as u32, ..Curve::default() };
        let mut found = Answers::new();
        for level in levels {
            // What is nearly sure takes few to be measured, and long.
            let sure = curve.points.last().is_some_and(|point: &Point| point.recalls[1] > SURE);
            let enough = truth.len().div_ceil(PART).max(FEWEST_ASKED);
            let asked = if sure { truth.len().min(enough) } else { truth.len() };
            let started = Instant::now();
            ask(level, asked, &mut found)?;
            let seconds = started.elapsed().as_secs_f64() / asked.max(1) as f64;
            let recalls = COUNTS.map(|k| recall_at(&found, truth, k));
            curve.points.push(Point { level, recalls, asked: asked as u32, seconds });
            if recalls[1] > ENOUGH && recalls[2] > SURE {
                break;
            }
        }
        Ok(curve)
    }

    /// Notes which share of the sample's neighbors is found by a search within a radius, at each distance.
    pub(crate) fn note_within(&mut self, bits: u32, truth: &Answers, found: &Answers) {
        self.shares = shares(found, truth, bits);
    }

    /// What was measured, in rising effort.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// How many queries it was measured with.
    pub fn queries(&self) -> u32 {
        self.queries
    }

    /// The least effort that finds such a share of the `k` nearest, and what it is expected to find; nothing if none
    /// was measured to.
    pub fn reach(&self, recall: f64, k: usize) -> Option<Reached> {
        let column = column(k);
        let enough = |point: &&Point| self.promised(point, column) >= recall;
        let point = self.points.iter().find(enough)?;
        Some(self.reached(point, k))
    }

    /// What a level of effort is expected to find.
    pub fn at(&self, level: u32, k: usize) -> Option<Reached> {
        let below = self.points.iter().rev().find(|point| point.level <= level);
        Some(self.reached(below.or(self.points.first())?, k))
    }

    fn reached(&self, point: &Point, k: usize) -> Reached {
        // More than were measured are found with as much more effort.
        let more = (k.max(SAMPLE_NEIGHBORS) / SAMPLE_NEIGHBORS) as u32;
        let level = point.level.saturating_mul(more);
        let recall = self.promised(point, column(k));
        Reached { level, recall, seconds: point.seconds * f64::from(more) }
    }

    /// What is promised where so much was found of a sample: less by a standard error, as if queries found all or nothing, and
    /// by one query, so that all is never promised.
    fn promised(&self, point: &Point, column: usize) -> f64 {
        let recall = point.recalls[column];
        let asked = if point.asked == 0 { self.queries } else { point.asked };
        let asked = f64::from(asked.max(1));
        (recall - (recall * (1.0 - recall) / asked).sqrt() - 1.0 / asked).max(0.0)
    }

    /// What is expected of the rows that were found within a radius.
    pub(crate) fn within(&self, bits: u32, radius: u32, found: &Answers) -> Promise {
        let share = |distance: u32| {
            let share = self.shares.get(step(distance, bits)).copied().unwrap_or(0.0);
            share.max(LEAST_SHARE)
        };
        recall_of(found, &(0..=radius.min(bits)).map(share).collect::<Vec<_>>())
    }
}

/// What an effort is expected to find.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reached {
    /// The effort.
    pub level: u32,
    /// The share of the nearest that is found.
    pub recall: f64,
    /// Seconds for a query, on one thread.
    pub seconds: f64,
}

/// The number of neighbors that was measured for `k`: the next that is not less, which is not found more easily.
fn column(k: usize) -> usize {
    COUNTS.iter().position(|&count| count >= k).unwrap_or(COUNTS.len() - 1)
}

/// The share of the `k` nearest that was found: one row is as good as another at the same distance.
pub fn recall_at(found: &Answers, truth: &Answers, k: usize) -> f64 {
    let (mut seen, mut there) = (0, 0);
    for (found, truth) in found.iter().zip(truth.iter()) {
        let truth = &truth[..truth.len().min(k)];
        let farthest = truth.last().map_or(0, |neighbor| neighbor.distance);
        let near = |neighbor: &&Neighbor| neighbor.distance <= farthest;
        seen += found.iter().take(truth.len()).filter(near).count();
        there += truth.len();
    }
    if there > 0 { seen as f64 / there as f64 } else { 1.0 }
}

fn step(distance: u32, bits: u32) -> usize {
    (distance * STEPS / (bits + 1)) as usize
}

/// The share of the true neighbors at each distance that was found. Where there are too few to tell, it is that of the next
/// distance.
fn shares(found: &Answers, truth: &Answers, bits: u32) -> Vec<f64> {
    let asked = found.len();
    let count = |answers: &Answers| {
        let mut counts = vec![0; STEPS as usize];
        for (neighbors, truth) in answers.iter().zip(truth.iter()).take(asked) {
            // Beyond the last of the true ones nobody knows what there is; at its distance there may be more.
            let end = truth.last().map_or(0, |neighbor| neighbor.distance);
            let known = neighbors.iter().filter(|neighbor| neighbor.distance < end);
            known.for_each(|neighbor| counts[step(neighbor.distance, bits)] += 1);
        }
        counts
    };
    let (found, there): (Vec<u32>, Vec<u32>) = (count(found), count(truth));
    let mut shares = vec![0.0; STEPS as usize];
    let mut last = None;
    for i in (0..shares.len()).rev() {
        if there[i] >= FEWEST {
            last = Some(f64::from(found[i]) / f64::from(there[i]));
        }
        shares[i] = last.unwrap_or(0.0);
    }
    // Farther than any neighbor that was seen: as the farthest that were.
    if let Some(farthest) = shares.iter().rposition(|&share| share > 0.0) {
        let share = shares[farthest];
        shares[farthest..].fill(share);
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(lists: &[&[(u32, u32)]]) -> Answers {
        let mut answers = Answers::new();
        for list in lists {
            let neighbor = |&(row, distance): &(u32, u32)| Neighbor { row, distance };
            answers.push(&list.iter().map(neighbor).collect::<Vec<_>>());
        }
        answers
    }

    #[test]
    fn one_row_is_as_good_as_another_at_the_same_distance() {
        let truth = answers(&[&[(0, 1), (1, 4), (2, 9)]]);
        let found = answers(&[&[(0, 1), (7, 4), (8, 10)]]);
        assert_eq!(recall_at(&found, &truth, 1), 1.0);
        assert_eq!(recall_at(&found, &truth, 2), 1.0);
        assert_eq!(recall_at(&found, &truth, 3), 2.0 / 3.0);
        assert_eq!(recall_at(&answers(&[&[]]), &answers(&[&[]]), 3), 1.0);
    }

    #[test]
    fn the_least_effort_that_finds_enough_is_taken() {
        let point = |level, recall: f64| Point {
            level,
            recalls: [recall, recall - 0.1, recall - 0.2],
            asked: 0,
            seconds: 1e-6 * f64::from(level),
        };
        let points = vec![point(16, 0.8), point(32, 0.9), point(64, 0.99)];
        let curve = Curve { queries: 10_000, points, shares: Vec::new() };
        let level = |recall, k| curve.reach(recall, k).map(|reached| reached.level);
        assert_eq!([level(0.7, 1), level(0.8, 1), level(0.9, 1)], [Some(16), Some(32), Some(64)]);
        assert_eq!([level(0.8, 10), level(0.8, 2), level(0.95, 10)], [Some(64), Some(64), None]);
        // Of more than a hundred nobody measured, so they take as much more.
        assert_eq!(level(0.75, 1000), Some(640));
        assert_eq!(curve.at(40, 1).unwrap().level, 32);
        assert_eq!(curve.at(8, 1).unwrap().level, 16);
        assert_eq!(Curve::default().reach(0.0, 1), None);
    }

    #[test]
    fn a_promise_leaves_room_for_chance() {
        let point =
            |recall: f64, asked| Point { level: 8, recalls: [recall; 3], asked, seconds: 0.0 };
        let promised = |recall, asked| {
            let curve = Curve { queries: 2000, points: vec![point(recall, asked)], shares: vec![] };
            curve.at(8, 10).unwrap().recall
        };
        assert!((promised(0.8, 0) - (0.8 - 0.00894 - 0.0005)).abs() < 1e-4);
        assert!((promised(0.98, 500) - (0.98 - 0.00626 - 0.002)).abs() < 1e-4);
        assert!(promised(1.0, 2000) < 1.0 && promised(0.0, 2000) == 0.0);
        let rising: Vec<f64> = (0..=1000).map(|i| promised(f64::from(i) / 1000.0, 500)).collect();
        assert!(rising.is_sorted());
    }

    /// Half of those at 10 bits are found, and all of the nearer ones: of one found at each there are three.
    #[test]
    fn what_was_found_stands_for_what_is_there() {
        let near: Vec<(u32, u32)> = (0..40).map(|row| (row, 2)).collect();
        let far: Vec<(u32, u32)> = (40..120).map(|row| (row, 10)).collect();
        let last = (999, 30);
        let truth: Vec<_> = near.iter().chain(&far).copied().chain([last]).collect();
        let found: Vec<_> = near.iter().chain(&far[..40]).copied().collect();
        let (truth, found) = (answers(&[&truth]), answers(&[&found]));
        let mut curve = Curve::default();
        curve.note_within(64, &truth, &found);
        let promise = curve.within(64, 12, &answers(&[&[(0, 2), (1, 10)]]));
        assert_eq!(promise, Promise::Expected { recall: 2.0 / 3.0 });
    }
}
