//! A walk through the graph: from some nodes to the nearest that the edges lead to.
//!
//! A walk is bound by the latency of memory. It goes in two halves, so that what one half asks for arrives while other
//! walks go on: [`ask`](Walk::ask) reads the neighbors of the nearest node and asks for their signatures,
//! [`hear`](Walk::hear) compares them and asks for the neighbors of the next node.

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

/// How many of the nearest nodes a walk keeps, and looks at the neighbors of: the effort. It may depend on how far away the
/// [`FAR`]th nearest is, since what has no near neighbors is harder to find those of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Beam<'a> {
    width: usize,
    widening: Option<&'a Widening>,
}

/// By how much a beam is wider, by the distance of the [`FAR`]th nearest; never falling.
#[derive(Debug, Clone)]
pub(super) struct Widening {
    /// The distance at which it has the width that was asked for.
    pub(super) usual: u32,
    times: Vec<f32>,
}

/// Whether a query has near neighbors is told by this one.
pub(super) const FAR: usize = 10;
/// A beam is twice as wide if that one is farther away by so many parts of the width of signatures.
const DOUBLING: f64 = 1.0 / 10.0;
/// The widest beam is so many times the usual one, the narrowest one of so many parts of it.
const WIDEST: f32 = 16.0;
const NARROWEST: usize = 4;

impl Widening {
    /// Beams have the width that is asked for if the [`FAR`]th nearest is `usual` bits away.
    pub(super) fn new(bits: u32, usual: u32) -> Self {
        let times = |distance: u32| {
            let farther = (f64::from(distance) - f64::from(usual)) / f64::from(bits);
            ((farther / DOUBLING).exp2() as f32).min(WIDEST)
        };
        Widening { usual, times: (0..=bits).map(times).collect() }
    }
}

impl<'a> Beam<'a> {
    /// The same width for all queries.
    pub(super) fn even(width: usize) -> Self {
        Beam { width, widening: None }
    }

    /// This width for queries as they usually are.
    pub(super) fn adapted(width: usize, widening: &'a Widening) -> Self {
        Beam { width, widening: Some(widening) }
    }

    /// How wide a walk begins: it is never less.
    fn narrowest(&self) -> usize {
        let parts = if self.widening.is_some() { NARROWEST } else { 1 };
        (self.width / parts).max(FAR)
    }

    /// The width if the [`FAR`]th nearest is that far away.
    #[inline(always)]
    fn width(&self, distance: u32) -> usize {
        match self.widening {
            Some(widening) => (self.width as f32 * widening.times[distance as usize]) as usize,
            None => self.width,
        }
    }
}

/// What one walk has seen. Kept from query to query, for its memory.
#[derive(Debug, Default)]
pub(super) struct Walk {
    /// The neighbors of so many of the nearest are looked at.
    width: usize,
    /// So many are kept: some more, in case the walk is to be wider.
    kept: usize,
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
    /// Makes room for a walk of such a width.
    fn widen(&mut self, width: usize) {
        let slots = (width * SLOTS).next_power_of_two().clamp(FEWEST_SLOTS, MOST_SLOTS);
        if slots <= self.slots.len() {
            return;
        }
        let there = std::mem::take(&mut self.slots);
        self.slots.resize(slots, NONE);
        self.shift = 32 - slots.ilog2();
        for node in there.into_iter().filter(|&node| node != NONE) {
            self.insert(node);
        }
    }

    /// Notes a node; whether it is one that was not noted before.
    #[inline(always)]
    fn insert(&mut self, node: u32) -> bool {
        let slot = (node.wrapping_mul(0x9e37_79b1) >> self.shift) as usize;
        (std::mem::replace(&mut self.slots[slot], node) != node) & (node != NONE)
    }
}

impl Walk {
    /// Begins at some nodes.
    pub(super) fn start(&mut self, view: View<'_>, beam: Beam<'_>, seeds: &[Met]) {
        self.pool.clear();
        self.next = 0;
        self.seen.slots.clear();
        self.widen(beam, beam.narrowest());
        for &seed in seeds {
            self.seen.insert(seed.node());
            self.offer(view, seed);
        }
    }

    /// Asks for the signatures of the neighbors of the nearest node, or says that the walk is over.
    #[inline(always)]
    pub(super) fn ask(&mut self, view: View<'_>, beam: Beam<'_>) -> bool {
        if self.next >= self.width.min(self.pool.len()) && !self.goes_on(beam) {
            return false;
        }
        let met = &mut self.pool[self.next];
        met.0 |= 1;
        let list = view.list(met.node());
        // Whether a node was met is hard to guess, so there is no branch for it.
        self.fresh.resize(view.degree, 0);
        let mut len = 0;
        for &neighbor in list {
            self.fresh[len] = neighbor;
            len += usize::from(self.seen.insert(neighbor));
        }
        self.len = len;
        self.fresh[..len].iter().for_each(|&neighbor| view.prefetch_signature(neighbor));
        while self.pool.get(self.next).is_some_and(|met| met.is_left()) {
            self.next += 1;
        }
        // It may well stay the next.
        if let Some(met) = self.pool.get(self.next) {
            view.prefetch_neighbors(met.node());
        }
        true
    }

    /// Whether the walk has to be wider, now that it is known how near the nearest are.
    fn goes_on(&mut self, beam: Beam<'_>) -> bool {
        let far = self.pool.get(FAR - 1).or(self.pool.last());
        let wanted = far.map_or(0, |met| beam.width(met.distance()));
        if wanted > self.width {
            self.widen(beam, wanted.min(2 * self.width));
        }
        self.next < self.width.min(self.pool.len())
    }

    fn widen(&mut self, beam: Beam<'_>, width: usize) {
        self.width = width;
        self.kept = if beam.widening.is_some() { 2 * width } else { width };
        self.worst = u32::MAX;
        self.seen.widen(width);
    }

    /// Compares with what was asked for.
    #[inline(always)]
    pub(super) fn hear(&mut self, view: View<'_>, kernel: Kernel, query: &[u64]) {
        self.distances.resize(view.degree, 0);
        let len = self.len;
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
        if at == self.kept || self.pool.get(at).is_some_and(|other| other.fresh() == met) {
            return;
        }
        self.pool.truncate(self.kept - 1);
        self.pool.insert(at, met);
        if at <= self.next {
            self.next = at;
            view.prefetch_neighbors(met.node());
        }
        if self.pool.len() == self.kept {
            self.worst = self.pool[self.kept - 1].distance();
        }
    }

    /// The nearest nodes, nearest first.
    pub(super) fn nearest(&self) -> &[Met] {
        &self.pool
    }

    /// Walks to the end.
    pub(super) fn run(&mut self, view: View<'_>, kernel: Kernel, query: &[u64], beam: Beam<'_>) {
        while self.ask(view, beam) {
            self.hear(view, kernel, query);
        }
    }
}
