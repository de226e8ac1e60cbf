//! A walk through the graph: from some nodes to the nearest that the edges lead to.
//!
//! Memory answers late, but many questions at a time. So a walk goes in two halves, and what one half asks for arrives while
//! other walks go on: [`ask`](Walk::ask) reads the neighbors of the nearest nodes and asks for their signatures,
//! [`hear`](Walk::hear) compares them and asks for the neighbors of the next ones.

use super::{
    nodes::{NONE, View},
    pool::{Met, Pool, refill},
};
use crate::hamming::Kernel;

/// Nodes whose neighbors are asked for together: a walk waits for memory once for all of them.
const AT_ONCE: usize = 4;

/// What one walk has seen. Kept from query to query, for its memory.
#[derive(Debug, Default)]
pub(super) struct Walk {
    pool: Pool,
    seen: Seen,
    /// The first `len` of these were not met before.
    fresh: Vec<u32>,
    len: usize,
    distances: Vec<u32>,
}

/// Which nodes were met? Some are forgotten, and then compared once more; none is thought to be met that was not.
#[derive(Debug, Default)]
struct Seen {
    slots: Vec<u32>,
}

/// Slots for each node that is kept: a walk meets many more than it keeps.
const SLOTS: usize = 64;
const FEWEST_SLOTS: usize = 1 << 12;
const MOST_SLOTS: usize = 1 << 16;

impl Seen {
    fn clear(&mut self, width: usize) {
        let slots = (width * SLOTS).next_power_of_two().clamp(FEWEST_SLOTS, MOST_SLOTS);
        refill(&mut self.slots, slots, NONE);
    }

    /// Notes a node, and tells whether it was not noted before.
    #[inline(always)]
    fn is_new(&mut self, node: u32) -> bool {
        // Near nodes have near numbers, so those of a walk are in slots of their own more often than by any hash.
        let slot = node as usize & (self.slots.len() - 1);
        std::mem::replace(&mut self.slots[slot], node) != node
    }

    /// Notes nodes, and puts those that were not noted before into `new`. How many are they?
    #[inline(always)]
    fn take_new(&mut self, nodes: &[u32], new: &mut [u32]) -> usize {
        let mut len = 0;
        for &node in nodes {
            // Whether a node was met is hard to guess, so there is no branch for it.
            new[len] = node;
            len += usize::from(self.is_new(node));
        }
        len
    }
}

impl Walk {
    /// Begins at some nodes, and keeps so many: the effort.
    pub(super) fn start(&mut self, view: View<'_>, width: usize, seeds: &[Met]) {
        self.pool.clear(width, view.stride * 64);
        self.seen.clear(width);
        for &seed in seeds {
            self.seen.is_new(seed.node());
            self.pool.add(seed);
        }
        self.prefetch_next(view);
    }

    /// Asks for the signatures of the neighbors of the nearest nodes, or says that the walk is over.
    #[inline(always)]
    pub(super) fn ask(&mut self, view: View<'_>) -> bool {
        self.fresh.resize(AT_ONCE * view.degree, 0);
        self.len = 0;
        let mut goes_on = false;
        for _ in 0..AT_ONCE {
            let Some(node) = self.pool.take() else { break };
            goes_on = true;
            let fresh = &mut self.fresh[self.len..];
            let len = self.seen.take_new(view.neighbors(node), fresh);
            fresh[..len].iter().for_each(|&neighbor| view.prefetch_signature(neighbor));
            self.len += len;
        }
        // They may well stay the next.
        self.prefetch_next(view);
        goes_on
    }

    /// Compares with what was asked for.
    #[inline(always)]
    pub(super) fn hear(&mut self, view: View<'_>, kernel: Kernel, query: &[u64]) {
        let fresh = &self.fresh[..self.len];
        self.distances.resize(AT_ONCE * view.degree, 0);
        let distances = &mut self.distances[..self.len];
        kernel.distances_of(query, view.words, fresh, distances);
        for (&distance, &node) in distances.iter().zip(fresh) {
            self.pool.add(Met::new(distance, node));
        }
        self.prefetch_next(view);
    }

    #[inline(always)]
    fn prefetch_next(&self, view: View<'_>) {
        self.pool.peek(AT_ONCE, |node| view.prefetch_neighbors(node));
    }

    /// The nearest nodes, nearest first: so many, if there are, and those that are as near as the last of them.
    pub(super) fn nearest(&self, enough: usize, found: &mut Vec<Met>) {
        self.pool.nearest(enough, found);
    }
}
