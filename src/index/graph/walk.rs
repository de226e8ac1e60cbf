//! A walk through the graph: from some nodes to the nearest that the edges lead to.
//!
//! A walk is bound by the latency of memory. It goes in two halves, so that what one half asks for arrives while other
//! walks go on: [`ask`](Walk::ask) reads the neighbors of the nearest nodes and asks for their signatures,
//! [`hear`](Walk::hear) compares them and asks for the neighbors of the next ones.

use super::nodes::{NONE, View};
use crate::hamming::Kernel;

/// A node that was met: its distance, its number, and whether its neighbors were looked at. Sorted by distance, then by
/// number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Met(u64);

impl Met {
    #[inline(always)]
    pub(super) fn new(distance: u32, node: u32) -> Self {
        Met(u64::from(distance) << 33 | u64::from(node) << 1)
    }

    #[inline(always)]
    pub(super) fn distance(self) -> u32 {
        (self.0 >> 33) as u32
    }

    #[inline(always)]
    pub(super) fn node(self) -> u32 {
        (self.0 >> 1) as u32
    }

    #[inline(always)]
    fn is_left(self) -> bool {
        self.0 & 1 == 1
    }

    /// The same, as if nobody had looked at its neighbors.
    #[inline(always)]
    pub(super) fn fresh(self) -> Self {
        Met(self.0 & !1)
    }
}

/// Nodes whose neighbors are asked for together: a walk waits for memory once for all of them.
const AT_ONCE: usize = 2;

/// What one walk has seen. Kept from query to query, for its memory.
#[derive(Debug, Default)]
pub(super) struct Walk {
    /// How many are kept, and their neighbors looked at: the effort.
    width: usize,
    /// The nearest so far, nearest first.
    pool: Vec<Met>,
    /// The first of them whose neighbors were not looked at.
    next: usize,
    /// The distance of the last of them, if there are as many as are kept.
    worst: u32,
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
    shift: u32,
}

/// Slots for each node that is kept: a walk meets many more than it keeps.
const SLOTS: usize = 64;
const FEWEST_SLOTS: usize = 1 << 12;
const MOST_SLOTS: usize = 1 << 16;

impl Seen {
    fn clear(&mut self, width: usize) {
        let slots = (width * SLOTS).next_power_of_two().clamp(FEWEST_SLOTS, MOST_SLOTS);
        self.slots.clear();
        self.slots.resize(slots, NONE);
        self.shift = 32 - slots.ilog2();
    }

    /// Notes nodes, and puts those that were not noted before into `new`, which has room for one more. How many are they?
    #[inline(always)]
    fn take_new(&mut self, nodes: &[u32], new: &mut [u32]) -> usize {
        let (slots, shift) = (&mut self.slots[..], self.shift);
        let mut len = 0;
        for &node in nodes {
            // Whether a node was met is hard to guess, so there is no branch for it.
            new[len] = node;
            let slot = (node.wrapping_mul(0x9e37_79b1) >> shift) as usize;
            let there = std::mem::replace(&mut slots[slot], node);
            len += usize::from((there != node) & (node != NONE));
        }
        len
    }
}

impl Walk {
    /// Begins at some nodes.
    pub(super) fn start(&mut self, view: View<'_>, width: usize, seeds: &[Met]) {
        self.width = width.max(1);
        self.pool.clear();
        self.next = 0;
        self.worst = u32::MAX;
        self.seen.clear(width);
        for &seed in seeds {
            self.seen.take_new(&[seed.node()], &mut [0; 2]);
            self.offer(view, seed);
        }
    }

    /// Asks for the signatures of the neighbors of the nearest nodes, or says that the walk is over.
    #[inline(always)]
    pub(super) fn ask(&mut self, view: View<'_>) -> bool {
        self.fresh.resize(AT_ONCE * view.degree + 1, 0);
        self.len = 0;
        let start = self.next;
        for _ in 0..AT_ONCE {
            let Some(met) = self.pool.get_mut(self.next) else { break };
            met.0 |= 1;
            let fresh = &mut self.fresh[self.len..];
            let len = self.seen.take_new(view.list(met.node()), fresh);
            fresh[..len].iter().for_each(|&neighbor| view.prefetch_signature(neighbor));
            self.len += len;
            while self.pool.get(self.next).is_some_and(|met| met.is_left()) {
                self.next += 1;
            }
        }
        // They may well stay the next.
        let left = self.pool[self.next..].iter().filter(|met| !met.is_left());
        left.take(AT_ONCE).for_each(|met| view.prefetch_neighbors(met.node()));
        self.next != start
    }

    /// Compares with what was asked for.
    #[inline(always)]
    pub(super) fn hear(&mut self, view: View<'_>, kernel: Kernel, query: &[u64]) {
        let len = self.len;
        self.distances.resize(AT_ONCE * view.degree, 0);
        kernel.distances_of(query, view.words, &self.fresh[..len], &mut self.distances[..len]);
        for i in 0..len {
            if self.distances[i] <= self.worst {
                self.offer(view, Met::new(self.distances[i], self.fresh[i]));
            }
        }
    }

    #[inline(always)]
    fn offer(&mut self, view: View<'_>, met: Met) {
        let at = self.pool.partition_point(|other| other.fresh() < met);
        if at == self.width || self.pool.get(at).is_some_and(|other| other.fresh() == met) {
            return;
        }
        self.pool.truncate(self.width - 1);
        self.pool.insert(at, met);
        if at < self.next + AT_ONCE {
            self.next = self.next.min(at);
            view.prefetch_neighbors(met.node());
        }
        if self.pool.len() == self.width {
            self.worst = self.pool[self.width - 1].distance();
        }
    }

    /// The nearest nodes, nearest first.
    pub(super) fn nearest(&self) -> &[Met] {
        &self.pool
    }
}
