//! The nearest of the rows that were offered.

use std::collections::BinaryHeap;

use crate::{Signatures, hamming::Kernel, index::Neighbor};

/// The `k` nearest so far, ties by row.
pub(super) struct Nearest {
    k: usize,
    /// Distance and row, the worst on top.
    best: BinaryHeap<(u32, u32)>,
}

/// Rows whose distances are computed together.
const TOGETHER: usize = 256;

impl Nearest {
    pub(super) fn new(k: usize) -> Self {
        Nearest { k, best: BinaryHeap::new() }
    }

    /// How many are wanted.
    pub(super) fn wanted(&self) -> usize {
        self.k
    }

    pub(super) fn len(&self) -> usize {
        self.best.len()
    }

    /// The distance beyond which no row matters: that of the `k`th, if there are so many.
    pub(super) fn worst(&self) -> Option<u32> {
        match self.best.len() < self.k {
            true => None,
            false => Some(self.best.peek().map_or(0, |&(distance, _)| distance)),
        }
    }

    /// Takes a row if it is near enough; says whether it was.
    pub(super) fn offer(&mut self, distance: u32, row: u32) -> bool {
        if self.best.len() >= self.k {
            match self.best.peek() {
                Some(&worst) if (distance, row) < worst => self.best.pop(),
                _ => return false,
            };
        }
        self.best.push((distance, row));
        true
    }

    /// Compares the query with all rows that count; the first has the number `start`.
    pub(super) fn offer_all(
        &mut self,
        (kernel, query): (Kernel, &[u64]),
        rows: &Signatures,
        start: u32,
        counts: impl Fn(u32) -> bool,
    ) {
        let mut distances = [0; TOGETHER];
        let blocks = rows.words().chunks(TOGETHER * query.len());
        for (first, words) in (start..).step_by(TOGETHER).zip(blocks) {
            let distances = &mut distances[..words.len() / query.len()];
            kernel.distances(query, words, distances);
            let near = (first..).zip(distances.iter()).filter(|&(row, _)| counts(row));
            near.for_each(|(row, &distance)| {
                self.offer(distance, row);
            });
        }
    }

    /// Nearest first.
    pub(super) fn into_neighbors(self) -> Vec<Neighbor> {
        let neighbor = |(distance, row)| Neighbor { row, distance };
        self.best.into_sorted_vec().into_iter().map(neighbor).collect()
    }
}
