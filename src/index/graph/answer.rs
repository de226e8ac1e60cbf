//! Questions to a graph.

use std::ops::Range;

use rayon::prelude::*;

use super::{FEW, Graph, pool::Met, walk::Walk};
use crate::{
    Error, Result,
    index::{Answers, Effort, Index, Neighbor, Promise, Queries},
};

/// Walks that a thread has under way at a time.
const TOGETHER: usize = 2;
/// Queries that a thread takes at a time.
const TASK: usize = 64;
/// How wide a walk is at least for questions about a radius.
pub(super) const WITHIN_WIDTH: usize = 128;
/// What is found if nobody says how much is enough.
const USUAL_RECALL: f64 = 0.95;
/// Rows that are compared at a time if all are.
const BLOCK: usize = 1024;

impl Graph {
    /// The same graph, asked with another effort.
    pub fn at(&self, effort: Effort) -> GraphSearch<'_> {
        GraphSearch { graph: self, effort }
    }

    fn check(&self, queries: Queries<'_>) -> Result<()> {
        match queries.bits() == self.bits {
            true => Ok(()),
            false => Err(Error::WidthMismatch { stored: self.bits, given: queries.bits() }),
        }
    }

    /// Answers queries on all cores. `take` makes neighbors of the nodes that a walk met.
    fn answer(
        &self,
        queries: Queries<'_>,
        reach: Reach,
        found: &mut Answers,
        take: impl Fn(&[Met], &mut Vec<Neighbor>) + Sync,
    ) {
        found.clear();
        if queries.len() <= TASK {
            return self.answer_some(queries, 0..queries.len(), reach, found, take);
        }
        let starts: Vec<usize> = (0..queries.len()).step_by(TASK).collect();
        let parts = starts.into_par_iter().map(|start| {
            let mut found = Answers::new();
            let part = start..(start + TASK).min(queries.len());
            self.answer_some(queries, part, reach, &mut found, &take);
            found
        });
        parts.collect::<Vec<_>>().iter().for_each(|part| found.append(part));
    }

    /// Answers some queries on this thread, a few at a time: while one waits for memory, another goes on.
    pub(super) fn answer_some(
        &self,
        queries: Queries<'_>,
        part: Range<usize>,
        reach: Reach,
        found: &mut Answers,
        take: impl Fn(&[Met], &mut Vec<Neighbor>),
    ) {
        let view = self.nodes.view();
        let rows = queries.signatures();
        let mut lanes: Vec<Lane> = Vec::new();
        lanes.resize_with(TOGETHER.min(part.len()), Lane::default);
        let mut left = part.clone();
        let mut neighbors = vec![Vec::new(); part.len()];
        loop {
            let mut busy = false;
            for lane in &mut lanes {
                while !lane.query.is_some_and(|_| lane.walk.ask(view)) {
                    if let Some(query) = lane.query.take() {
                        lane.walk.nearest(reach.enough, &mut lane.met);
                        take(&lane.met, &mut neighbors[query - part.start]);
                    }
                    let Some(query) = left.next() else { break };
                    self.begin(lane, rows.row(query), reach.width);
                    lane.query = Some(query);
                }
                busy |= lane.query.is_some();
            }
            if !busy {
                break;
            }
            for lane in &mut lanes {
                if let Some(query) = lane.query {
                    lane.walk.hear(view, self.kernel, rows.row(query));
                }
            }
        }
        neighbors.iter().for_each(|neighbors| found.push(neighbors));
    }

    /// Begins a walk where the nearest entries are, and at an identical signature.
    fn begin(&self, lane: &mut Lane, query: &[u64], width: usize) {
        let view = self.nodes.view();
        self.entries.seeds(self.kernel, query, &mut lane.distances, &mut lane.seeds);
        if let Some(same) = self.lookup.find(view, query) {
            lane.seeds.push(Met::new(0, same));
        }
        lane.walk.start(view, width, &lane.seeds);
    }

    /// The rows of the nearest nodes: at least `k`, if there are so many, nearest first, ties by row.
    pub(super) fn rows_of(&self, met: &[Met], k: usize, found: &mut Vec<Neighbor>) {
        for met in met {
            let distance = met.distance();
            if found.len() >= k && found.last().is_none_or(|last| last.distance < distance) {
                break;
            }
            let rows = self.owners.of(met.node());
            found.extend(rows.map(|row| Neighbor { row, distance }));
        }
        found.sort_unstable_by_key(|neighbor| (neighbor.distance, neighbor.row));
        found.truncate(k);
    }

    /// Compares with every node.
    fn scan(
        &self,
        queries: Queries<'_>,
        found: &mut Answers,
        (k, radius): (usize, u32),
    ) -> Promise {
        let answers = (0..queries.len()).into_par_iter().map(|query| {
            let met = self.scan_one(queries.signatures().row(query), k, radius);
            let mut neighbors = Vec::new();
            self.rows_of(&met, k, &mut neighbors);
            neighbors
        });
        let answers: Vec<Vec<Neighbor>> = answers.collect();
        found.clear();
        answers.iter().for_each(|neighbors| found.push(neighbors));
        Promise::Exact
    }

    /// The `k` nearest of all nodes within a radius, and any that are as near as the last of them.
    fn scan_one(&self, query: &[u64], k: usize, mut radius: u32) -> Vec<Met> {
        let view = self.nodes.view();
        let (mut met, mut distances) = (Vec::new(), [0; BLOCK]);
        for (block, words) in view.words.chunks(BLOCK * view.stride).enumerate() {
            let distances = &mut distances[..words.len() / view.stride];
            self.kernel.distances(query, words, distances);
            for (&distance, node) in distances.iter().zip((block * BLOCK) as u32..) {
                if distance <= radius && self.owners.first(node).is_some() {
                    met.push(Met::new(distance, node));
                }
            }
            // Not at each block: most bring nothing.
            if met.len() > k.saturating_mul(2).saturating_add(BLOCK) {
                radius = met.select_nth_unstable(k.max(1) - 1).1.distance();
                met.retain(|met| met.distance() <= radius);
            }
        }
        met.sort_unstable();
        met
    }

    /// Whether a walk of so many nodes would come to nearly all of them.
    fn is_small(&self, level: u32) -> bool {
        self.curve.points().is_empty() || self.nodes.len <= FEW.max(level as usize * 4)
    }
}

/// One of the walks that are under way.
#[derive(Default)]
struct Lane {
    query: Option<usize>,
    walk: Walk,
    distances: Vec<u32>,
    seeds: Vec<Met>,
    met: Vec<Met>,
}

/// How far walks go.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reach {
    /// How many nodes a walk keeps.
    pub(super) width: usize,
    /// How many of them are of interest.
    pub(super) enough: usize,
}

/// A graph and how hard it looks.
#[derive(Debug, Clone, Copy)]
pub struct GraphSearch<'a> {
    graph: &'a Graph,
    effort: Effort,
}

impl GraphSearch<'_> {
    /// The effort for the `k` nearest and the share that it is expected to find; nothing if it takes a scan.
    fn reach(&self, k: usize) -> Option<(u32, f64)> {
        let curve = self.graph.curve();
        let reached = match self.effort {
            Effort::Recall(recall) => curve.reach(recall, k)?,
            Effort::Level(level) => {
                let reached = curve.at(level, k)?;
                return Some((level, reached.recall));
            }
        };
        Some((reached.level, reached.recall))
    }

    /// The nodes within a radius, with a beam that widens until it holds more than them.
    fn walk_within(
        &self,
        queries: Queries<'_>,
        radius: u32,
        k: usize,
        found: &mut Answers,
    ) -> Result<Promise> {
        let graph = self.graph;
        graph.check(queries)?;
        if graph.is_small(WITHIN_WIDTH as u32) {
            return Ok(graph.scan(queries, found, (k, radius)));
        }
        let mut width = WITHIN_WIDTH;
        loop {
            let full = std::sync::atomic::AtomicBool::new(false);
            graph.answer(queries, Reach { width, enough: usize::MAX }, found, |met, found| {
                let near = met.partition_point(|met| met.distance() <= radius);
                if near == met.len() && near >= width {
                    full.store(true, std::sync::atomic::Ordering::Relaxed);
                }
                graph.rows_of(&met[..near], k, found);
            });
            if k == 1 || !full.into_inner() {
                break;
            }
            if width >= graph.nodes.len / 8 {
                return Ok(graph.scan(queries, found, (k, radius)));
            }
            width *= 4;
        }
        Ok(graph.curve.within(graph.bits, radius, found))
    }
}

impl Index for GraphSearch<'_> {
    /// Not exact: the recall is what was measured for rows at such distances.
    fn within(&self, queries: Queries<'_>, radius: u32, found: &mut Answers) -> Result<Promise> {
        self.walk_within(queries, radius, usize::MAX, found)
    }

    /// The nearest that is found, if it is near enough.
    fn first(&self, queries: Queries<'_>, radius: u32, found: &mut Answers) -> Result<Promise> {
        self.walk_within(queries, radius, 1, found)
    }

    fn nearest(&self, queries: Queries<'_>, k: usize, found: &mut Answers) -> Result<Promise> {
        let graph = self.graph;
        graph.check(queries)?;
        match self.reach(k) {
            Some((level, recall))
                if !graph.is_small(level.max(u32::try_from(k).unwrap_or(u32::MAX))) =>
            {
                let reach = graph.reach(k, level);
                graph.answer(queries, reach, found, |met, found| graph.rows_of(met, k, found));
                Ok(Promise::Expected { recall: recall as f32 })
            }
            _ => Ok(graph.scan(queries, found, (k, graph.bits))),
        }
    }
}

/// With the effort that finds nearly all.
impl Index for Graph {
    fn within(&self, queries: Queries<'_>, radius: u32, found: &mut Answers) -> Result<Promise> {
        self.at(Effort::Recall(USUAL_RECALL)).within(queries, radius, found)
    }

    fn first(&self, queries: Queries<'_>, radius: u32, found: &mut Answers) -> Result<Promise> {
        self.at(Effort::Recall(USUAL_RECALL)).first(queries, radius, found)
    }

    fn nearest(&self, queries: Queries<'_>, k: usize, found: &mut Answers) -> Result<Promise> {
        self.at(Effort::Recall(USUAL_RECALL)).nearest(queries, k, found)
    }
}
