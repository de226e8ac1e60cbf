//! Which node has exactly this signature? A walk may miss it, so it is looked up.

use std::collections::HashMap;

use rayon::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

use super::nodes::View;

fn hash(signature: &[u64]) -> u64 {
    xxh3_64(bytemuck::cast_slice(signature))
}

/// From signatures to nodes.
#[derive(Debug, Default)]
pub(super) struct Lookup {
    /// Nodes in the order of the leading bits of their hashes.
    nodes: Vec<u32>,
    /// Where those of each value of these bits begin.
    starts: Vec<u32>,
    /// Nodes that came later, by their hash.
    later: HashMap<u64, Vec<u32>>,
}

/// Nodes for each start.
const NODES: usize = 4;

impl Lookup {
    /// Looks at all nodes.
    pub(super) fn new(view: View<'_>) -> Self {
        let bits = (view.len() / NODES).max(2).ilog2();
        let nodes = (0..view.len() as u32).into_par_iter();
        let mut keyed: Vec<(u32, u32)> =
            nodes.map(|node| ((hash(view.signature(node)) >> (64 - bits)) as u32, node)).collect();
        keyed.par_sort_unstable();
        let mut starts = vec![0; (1 << bits) + 1];
        keyed.iter().for_each(|&(key, _)| starts[key as usize + 1] += 1);
        for key in 0..1 << bits {
            starts[key + 1] += starts[key];
        }
        let nodes = keyed.into_iter().map(|(_, node)| node).collect();
        Lookup { nodes, starts, later: HashMap::new() }
    }

    /// Adds a node.
    pub(super) fn add(&mut self, view: View<'_>, node: u32) {
        self.later.entry(hash(view.signature(node))).or_default().push(node);
    }

    /// The node with this signature.
    pub(super) fn find(&self, view: View<'_>, signature: &[u64]) -> Option<u32> {
        if self.starts.is_empty() {
            return None;
        }
        let hash = hash(signature);
        let bits = (self.starts.len() - 1).ilog2();
        let key = (hash >> (64 - bits)) as usize;
        let first = &self.nodes[self.starts[key] as usize..self.starts[key + 1] as usize];
        let later = if self.later.is_empty() { None } else { self.later.get(&hash) };
        let mut nodes = first.iter().chain(later.into_iter().flatten()).copied();
        nodes.find(|&node| view.signature(node) == signature)
    }

    /// How much memory it takes.
    pub(super) fn bytes(&self) -> u64 {
        let later = self.later.len() * size_of::<(u64, Vec<u32>, u32)>();
        (size_of_val(&self.nodes[..]) + size_of_val(&self.starts[..]) + later) as u64
    }
}
