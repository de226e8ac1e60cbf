//! Which of the near nodes become neighbors: those that no nearer neighbor leads to.

use super::{nodes::View, pool::Met};
use crate::hamming::Kernel;

/// How many neighbors a list is cut to: with some room left, it is not cut again at each new one.
pub(super) fn kept(degree: usize) -> usize {
    (degree * 3).div_ceil(4)
}

/// Memory for the choice of neighbors.
#[derive(Debug, Default)]
pub(super) struct Pruner {
    best: Vec<u32>,
    hidden: Vec<u32>,
    distances: Vec<u32>,
}

/// Neighbors that are compared at a time.
const GROUP: usize = 8;

impl Pruner {
    /// Nodes with their distances from one.
    pub(super) fn measured(
        &mut self,
        view: View<'_>,
        kernel: Kernel,
        from: u32,
        nodes: &[u32],
    ) -> impl Iterator<Item = Met> {
        self.distances.resize(nodes.len(), 0);
        nodes.iter().for_each(|&node| view.prefetch_signature(node));
        kernel.distances_of(view.signature(from), view.words, nodes, &mut self.distances);
        nodes.iter().zip(&self.distances).map(|(&node, &distance)| Met::new(distance, node))
    }

    /// The best neighbors of a node among some others.
    pub(super) fn best_of(
        &mut self,
        view: View<'_>,
        kernel: Kernel,
        node: u32,
        others: &[u32],
    ) -> Vec<u32> {
        let mut near: Vec<Met> = self.measured(view, kernel, node, others).collect();
        near.sort_unstable();
        self.prune(view, kernel, &near, kept(view.degree))
    }

    /// At most so many of the near nodes, which are sorted: those that are nearer to the node than to any that was chosen
    /// before, so that neighbors lie in all directions; then the nearest of the others.
    pub(super) fn prune(
        &mut self,
        view: View<'_>,
        kernel: Kernel,
        near: &[Met],
        most: usize,
    ) -> Vec<u32> {
        self.best.clear();
        self.hidden.clear();
        for &met in near {
            if self.best.len() == most {
                break;
            }
            match self.is_hidden(view, kernel, met) {
                true => self.hidden.push(met.node()),
                false => self.best.push(met.node()),
            }
        }
        let left = most.saturating_sub(self.best.len()).min(self.hidden.len());
        self.best.extend_from_slice(&self.hidden[..left]);
        self.best.clone()
    }

    fn is_hidden(&self, view: View<'_>, kernel: Kernel, met: Met) -> bool {
        let signature = view.signature(met.node());
        let mut distances = [0; GROUP];
        self.best.chunks(GROUP).any(|chosen| {
            let distances = &mut distances[..chosen.len()];
            kernel.distances_of(signature, view.words, chosen, distances);
            distances.iter().any(|&distance| distance < met.distance())
        })
    }
}
