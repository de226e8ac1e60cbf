//! Where walks begin: a sample of the nodes, whose signatures lie side by side.

use super::{nodes::View, pool::Met};
use crate::{hamming::Kernel, index::sample::spread};

/// A sample of the nodes.
#[derive(Debug, Default)]
pub(super) struct Entries {
    nodes: Vec<u32>,
    words: Vec<u64>,
}

/// How many of the sampled nodes a walk begins at.
const SEEDS: usize = 8;

impl Entries {
    /// So many of some nodes, evenly spread.
    pub(super) fn new(view: View<'_>, some: &[u32], most: usize) -> Self {
        let nodes: Vec<u32> = spread(some.len(), most).into_iter().map(|i| some[i]).collect();
        let words = nodes.iter().flat_map(|&node| view.signature(node)).copied().collect();
        Entries { nodes, words }
    }

    /// The nearest of them.
    pub(super) fn seeds(
        &self,
        kernel: Kernel,
        query: &[u64],
        distances: &mut Vec<u32>,
        seeds: &mut Vec<Met>,
    ) {
        distances.resize(self.nodes.len(), 0);
        kernel.distances(query, &self.words, distances);
        seeds.clear();
        let mut worst = u32::MAX;
        for (&distance, &node) in distances.iter().zip(&self.nodes) {
            if distance < worst {
                let met = Met::new(distance, node);
                seeds.insert(seeds.partition_point(|other| *other < met), met);
                seeds.truncate(SEEDS);
                if seeds.len() == SEEDS {
                    worst = seeds[SEEDS - 1].distance();
                }
            }
        }
    }

    /// How much memory they take.
    pub(super) fn bytes(&self) -> u64 {
        (size_of_val(&self.nodes[..]) + size_of_val(&self.words[..])) as u64
    }
}
