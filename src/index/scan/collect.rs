//! What a scan keeps of the rows it meets: all within a radius, the first, or the nearest. Rows come in order.

use std::{
    collections::BinaryHeap,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use super::{Answers, Neighbor};

/// Keeps some of the rows of one part.
pub(super) trait Collect {
    /// How near a row must be to matter, for each query; none if no row matters any more.
    fn thresholds(&self) -> &[Option<u32>];

    /// Takes a row that was near enough when its block began.
    fn offer(&mut self, query: usize, neighbor: Neighbor);

    /// Whether no row matters to any query any more.
    fn is_done(&self) -> bool;

    /// What was kept, for each query.
    fn into_found(self) -> Vec<Vec<Neighbor>>;
}

/// Puts the parts together, in their order, and lets `finish` sort and cut the neighbors of each query.
pub(super) fn answer(
    mut parts: Vec<Vec<Vec<Neighbor>>>,
    queries: usize,
    finish: impl Fn(&mut Vec<Neighbor>),
    found: &mut Answers,
) {
    found.clear();
    let mut neighbors = Vec::new();
    for query in 0..queries {
        neighbors.clear();
        for part in &mut parts {
            neighbors.append(&mut part[query]);
        }
        finish(&mut neighbors);
        found.push(&neighbors);
    }
}

/// Nearest first, ties by row.
pub(super) fn sort(neighbors: &mut [Neighbor]) {
    neighbors.sort_unstable_by_key(|neighbor| (neighbor.distance, neighbor.row));
}

/// Every row within the radius.
pub(super) struct All {
    thresholds: Vec<Option<u32>>,
    found: Vec<Vec<Neighbor>>,
}

impl All {
    pub(super) fn new(queries: usize, radius: u32) -> Self {
        All { thresholds: vec![Some(radius); queries], found: vec![Vec::new(); queries] }
    }
}

impl Collect for All {
    fn thresholds(&self) -> &[Option<u32>] {
        &self.thresholds
    }

    fn offer(&mut self, query: usize, neighbor: Neighbor) {
        self.found[query].push(neighbor);
    }

    fn is_done(&self) -> bool {
        self.thresholds.is_empty()
    }

    fn into_found(self) -> Vec<Vec<Neighbor>> {
        self.found
    }
}

/// A number for each query that only falls, shared by the parts to spare each other work. The answers do not depend on
/// how soon a part sees another's number.
pub(super) struct Bounds(Vec<AtomicU32>);

impl Bounds {
    pub(super) fn new(queries: usize, start: u32) -> Self {
        Bounds((0..queries).map(|_| AtomicU32::new(start)).collect())
    }

    fn lower(&self, query: usize, to: u32) {
        self.0[query].fetch_min(to, Relaxed);
    }

    fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().map(|bound| bound.load(Relaxed))
    }
}

/// The first row within the radius.
pub(super) struct First<'a> {
    /// The lowest row that any part has found.
    seen: &'a Bounds,
    thresholds: Vec<Option<u32>>,
    /// Queries that still look for a row.
    open: usize,
    found: Vec<Vec<Neighbor>>,
}

impl<'a> First<'a> {
    pub(super) fn new(seen: &'a Bounds, first_row: usize, radius: u32) -> Self {
        let open = |seen: u32| (seen as usize >= first_row).then_some(radius);
        let thresholds: Vec<_> = seen.iter().map(open).collect();
        let found = vec![Vec::new(); thresholds.len()];
        First { seen, open: thresholds.iter().flatten().count(), thresholds, found }
    }
}

impl Collect for First<'_> {
    fn thresholds(&self) -> &[Option<u32>] {
        &self.thresholds
    }

    fn offer(&mut self, query: usize, neighbor: Neighbor) {
        if self.thresholds[query].take().is_some() {
            self.open -= 1;
            self.seen.lower(query, neighbor.row);
            self.found[query].push(neighbor);
        }
    }

    fn is_done(&self) -> bool {
        self.open == 0
    }

    fn into_found(self) -> Vec<Vec<Neighbor>> {
        self.found
    }
}

/// The `k` nearest rows.
pub(super) struct Nearest<'a> {
    k: usize,
    /// A distance within which some part has found `k` rows: what is farther does not matter.
    bounds: &'a Bounds,
    thresholds: Vec<Option<u32>>,
    /// Distance and row, the worst on top.
    found: Vec<BinaryHeap<(u32, u32)>>,
}

impl<'a> Nearest<'a> {
    pub(super) fn new(bounds: &'a Bounds, k: usize) -> Self {
        let thresholds: Vec<_> = bounds.iter().map(Some).collect();
        let found = vec![BinaryHeap::new(); thresholds.len()];
        Nearest { k, bounds, thresholds, found }
    }
}

impl Collect for Nearest<'_> {
    fn thresholds(&self) -> &[Option<u32>] {
        &self.thresholds
    }

    fn offer(&mut self, query: usize, neighbor: Neighbor) {
        let threshold = &mut self.thresholds[query];
        if !threshold.is_some_and(|threshold| neighbor.distance <= threshold) {
            return;
        }
        let found = &mut self.found[query];
        found.push((neighbor.distance, neighbor.row));
        if found.len() > self.k {
            found.pop();
        }
        if let (true, Some((worst, _))) = (found.len() == self.k, found.peek()) {
            // A later row at the same distance would lose the tie.
            *threshold = worst.checked_sub(1);
            self.bounds.lower(query, *worst);
        }
    }

    fn is_done(&self) -> bool {
        self.k == 0 || self.thresholds.is_empty()
    }

    fn into_found(self) -> Vec<Vec<Neighbor>> {
        let neighbor = |(distance, row)| Neighbor { row, distance };
        let neighbors = |heap: BinaryHeap<_>| heap.into_iter().map(neighbor).collect();
        self.found.into_iter().map(neighbors).collect()
    }
}
