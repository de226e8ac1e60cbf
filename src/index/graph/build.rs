//! How the graph grows: nodes come in batches. Each of a batch looks for its neighbors in the graph as it was before the batch,
//! and among the others of the batch; then all are linked. So it does not matter which thread does what.
//!
//! Those that came first chose among few. So there is a second pass, in which each node looks once more.

use rayon::prelude::*;

use super::{
    entries::Entries,
    nodes::{NONE, Nodes, View},
    pool::Met,
    prune::{Pruner, kept},
    walk::Walk,
};
use crate::{Result, hamming::Kernel};

/// Nodes that are added together.
const BATCH: usize = 1024;
/// Nodes that a thread takes at a time.
const TASK: usize = 64;
/// Entries while the graph grows: there are as many walks as nodes, and long ones.
const ENTRIES: usize = 1000;

/// What it takes to add nodes.
pub(super) struct Growth {
    pub(super) kernel: Kernel,
    /// How many of the nearest a node chooses its neighbors from.
    pub(super) beam: usize,
}

/// An edge to be added.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Link {
    from: u32,
    to: u32,
}

/// Nodes that are linked together.
#[derive(Clone, Copy)]
struct Batch<'a> {
    members: &'a [u32],
    /// Where their walks begin; nothing if there are no others yet.
    entries: Option<&'a Entries>,
    /// Whether nothing leads to them yet: then they do not meet each other on a walk.
    are_new: bool,
}

impl Growth {
    /// Links new nodes, whose signatures are there already, to the graph and to each other. If there is none yet, the first
    /// of them are where walks begin.
    pub(super) fn link(
        &self,
        nodes: &mut Nodes,
        entries: Option<&Entries>,
        new: &[u32],
    ) -> Result<()> {
        let mut first = None;
        for (i, members) in new.chunks(BATCH).enumerate() {
            let entries = entries.or(first.as_ref());
            self.link_batch(nodes, Batch { members, entries, are_new: true })?;
            if i == 0 {
                first = Some(Entries::new(nodes.view(), members, ENTRIES));
            }
        }
        Ok(())
    }

    /// Lets nodes look for their neighbors again.
    pub(super) fn relink(&self, nodes: &mut Nodes, entries: &Entries, some: &[u32]) -> Result<()> {
        some.chunks(BATCH).try_for_each(|members| {
            self.link_batch(nodes, Batch { members, entries: Some(entries), are_new: false })
        })
    }

    fn link_batch(&self, nodes: &mut Nodes, batch: Batch<'_>) -> Result<()> {
        let view = nodes.view();
        let alone = batch.members.iter().filter(|_| batch.are_new);
        let words = alone.flat_map(|&node| view.signature(node));
        let words: Vec<u64> = words.copied().collect();
        let parts = batch.members.par_chunks(TASK);
        let lists = parts.flat_map_iter(|part| Chooser::new(self, view, batch, &words).run(part));
        let lists: Vec<Vec<u32>> = lists.collect();
        let mut links = Vec::with_capacity(lists.iter().map(Vec::len).sum());
        for (&to, list) in batch.members.iter().zip(&lists) {
            links.extend(list.iter().map(|&from| Link { from, to }));
        }
        let lists: Vec<_> = batch.members.iter().copied().zip(lists).collect();
        nodes.write(&lists)?;
        let back = self.linked_back(nodes.view(), links);
        nodes.write(&back)
    }

    /// The lists of the nodes that were chosen as neighbors, with those that chose them.
    fn linked_back(&self, view: View<'_>, mut links: Vec<Link>) -> Vec<(u32, Vec<u32>)> {
        links.par_sort_unstable();
        let of_nodes: Vec<&[Link]> = links.chunk_by(|a, b| a.from == b.from).collect();
        let lists = of_nodes.par_iter().map_init(Pruner::default, |pruner, links| {
            let list = self.extended(view, pruner, links)?;
            Some((links[0].from, list))
        });
        lists.flatten().collect()
    }

    /// The neighbors of a node with new ones: if they are too many, the best. Nothing if there are no new ones.
    fn extended(&self, view: View<'_>, pruner: &mut Pruner, links: &[Link]) -> Option<Vec<u32>> {
        let node = links[0].from;
        let there = view.neighbors(node);
        let mut list = Vec::with_capacity(there.len() + links.len());
        list.extend_from_slice(there);
        list.extend(links.iter().map(|link| link.to).filter(|to| !there.contains(to)));
        match list.len() {
            same if same == there.len() => None,
            some if some <= view.degree => Some(list),
            _ => Some(pruner.best_of(view, self.kernel, node, &list)),
        }
    }
}

impl Nodes {
    /// Gives nodes their neighbors.
    pub(super) fn write(&mut self, lists: &[(u32, Vec<u32>)]) -> Result<()> {
        let degree = self.degree;
        let edges = self.edges.own(self.len * degree)?;
        for (node, list) in lists {
            let cells = &mut edges[*node as usize * degree..][..degree];
            cells[..list.len()].copy_from_slice(list);
            cells[list.len()..].fill(NONE);
        }
        Ok(())
    }
}

/// Walks that a thread has under way at a time: while one waits for memory, the other goes on.
const TOGETHER: usize = 2;

/// Chooses the neighbors of nodes of a batch.
struct Chooser<'a> {
    growth: &'a Growth,
    view: View<'a>,
    batch: Batch<'a>,
    /// The signatures of the batch.
    words: &'a [u64],
    walks: [Walk; TOGETHER],
    pruner: Pruner,
    near: Vec<Met>,
    distances: Vec<u32>,
    seeds: Vec<Met>,
}

impl<'a> Chooser<'a> {
    fn new(growth: &'a Growth, view: View<'a>, batch: Batch<'a>, words: &'a [u64]) -> Self {
        let (walks, pruner) = (Default::default(), Pruner::default());
        let (near, distances, seeds) = (Vec::new(), Vec::new(), Vec::new());
        Chooser { growth, view, batch, words, walks, pruner, near, distances, seeds }
    }

    fn run(mut self, nodes: &[u32]) -> Vec<Vec<u32>> {
        let mut lists = Vec::with_capacity(nodes.len());
        for together in nodes.chunks(TOGETHER) {
            self.walk(together);
            lists.extend(together.iter().enumerate().map(|(walk, &node)| self.choose(walk, node)));
        }
        lists
    }

    /// Walks to where a few nodes belong.
    fn walk(&mut self, nodes: &[u32]) {
        let Some(entries) = self.batch.entries else { return };
        let (view, kernel) = (self.view, self.growth.kernel);
        for (walk, &node) in self.walks.iter_mut().zip(nodes) {
            let query = view.signature(node);
            entries.seeds(kernel, query, &mut self.distances, &mut self.seeds);
            walk.start(view, self.growth.beam, &self.seeds);
        }
        let mut under_way = [false; TOGETHER];
        under_way[..nodes.len()].fill(true);
        while under_way.contains(&true) {
            for (walk, goes_on) in self.walks.iter_mut().zip(&mut under_way) {
                *goes_on = *goes_on && walk.ask(view);
            }
            for ((walk, &node), _) in
                self.walks.iter_mut().zip(nodes).zip(under_way).filter(|(_, goes_on)| *goes_on)
            {
                walk.hear(view, kernel, view.signature(node));
            }
        }
    }

    fn choose(&mut self, walk: usize, node: u32) -> Vec<u32> {
        let (view, kernel) = (self.view, self.growth.kernel);
        self.near.clear();
        if self.batch.entries.is_some() {
            self.walks[walk].nearest(self.growth.beam, &mut self.near);
        }
        if self.batch.are_new {
            self.add_members(view.signature(node));
        }
        self.near.sort_unstable();
        self.near.retain(|met| met.node() != node);
        self.near.truncate(self.growth.beam);
        // What it has already, if it has looked before: far ones, too, which lead elsewhere.
        self.near.extend(self.pruner.measured(view, kernel, node, view.neighbors(node)));
        self.near.sort_unstable();
        self.near.dedup();
        self.pruner.prune(view, kernel, &self.near, kept(view.degree))
    }

    /// The others of the batch, as far as they are near enough.
    fn add_members(&mut self, query: &[u64]) {
        let members = self.batch.members;
        let enough = self.near.len() >= self.growth.beam;
        let worst = self.near.last().map(|met| met.distance()).filter(|_| enough);
        self.distances.resize(members.len(), 0);
        self.growth.kernel.distances(query, self.words, &mut self.distances);
        let met = self.distances.iter().zip(members);
        let met = met.filter(|(distance, _)| worst.is_none_or(|worst| **distance < worst));
        self.near.extend(met.map(|(&distance, &node)| Met::new(distance, node)));
    }
}
