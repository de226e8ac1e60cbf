//! Rows that come and go.
//!
//! New signatures are linked as those of a build are. A signature without rows stays in the graph for a while: walks pass
//! through it. When there are many, those that lead to them are linked with what they led to, and they are taken out.

use std::ops::Range;

use rayon::prelude::*;

use super::{ENTRIES, Graph, entries::Entries, lookup::Lookup, nodes::NONE, prune::Pruner};
use crate::{Error, Result, Signatures};

/// One of so many nodes may be without rows.
const REMOVED: usize = 8;

impl Graph {
    /// Adds rows; they get the next numbers.
    pub fn insert(&mut self, rows: &Signatures) -> Result<Range<u32>> {
        if rows.bits() != self.bits {
            return Err(Error::WidthMismatch { stored: self.bits, given: rows.bits() });
        }
        let first = self.owners.rows;
        if u32::try_from(first as usize + rows.len()).is_err() {
            return Err(Error::TooManyRows { rows: first as usize + rows.len() });
        }
        let before = self.nodes.len;
        rows.rows().try_for_each(|signature| self.insert_one(signature))?;
        let new: Vec<u32> = (before as u32..self.nodes.len as u32).collect();
        let entries = (before > self.removed).then_some(&self.entries);
        self.growth().link(&mut self.nodes, entries, &new)?;
        // Walks begin among new rows, too.
        if self.nodes.len >= 2 * self.sampled {
            self.sample_entries();
        }
        Ok(first..self.owners.rows)
    }

    fn insert_one(&mut self, signature: &[u64]) -> Result<()> {
        let node = match self.lookup.find(self.nodes.view(), signature) {
            Some(node) => {
                self.removed -= usize::from(self.owners.first(node).is_none());
                node
            }
            None => {
                let node = self.nodes.push(signature)?;
                self.owners.push_node(node)?;
                self.lookup.add(self.nodes.view(), node);
                node
            }
        };
        self.owners.add(node)?;
        Ok(())
    }

    /// Removes a row; whether it was there.
    pub fn remove(&mut self, row: u32) -> Result<bool> {
        let Some(node) = self.owners.remove(row, self.nodes.len)? else { return Ok(false) };
        self.removed += usize::from(self.owners.first(node).is_none());
        if self.removed * REMOVED > self.nodes.len {
            self.repair()?;
        }
        Ok(true)
    }

    /// Takes out the nodes that have no rows any more. It is done now and then by itself.
    pub fn repair(&mut self) -> Result<()> {
        if self.removed == 0 {
            return Ok(());
        }
        let gone: Vec<bool> =
            (0..self.nodes.len as u32).map(|node| self.owners.first(node).is_none()).collect();
        self.unlink(&gone)?;
        let kept: Vec<u32> =
            (0..self.nodes.len as u32).filter(|&node| !gone[node as usize]).collect();
        self.nodes.keep(&kept)?;
        self.owners.renumber(&kept)?;
        self.removed = 0;
        self.lookup = Lookup::new(self.nodes.view());
        self.sample_entries();
        Ok(())
    }

    /// Whoever led to a node that is gone leads to what that one led to, as far as it is among the best.
    fn unlink(&mut self, gone: &[bool]) -> Result<()> {
        let (view, kernel) = (self.nodes.view(), self.kernel);
        let is_gone = |&node: &u32| gone[node as usize];
        let lists = (0..view.len() as u32).into_par_iter().filter(|node| !is_gone(node));
        let lists = lists.map_init(Pruner::default, |pruner, node| {
            if !view.neighbors(node).iter().any(is_gone) {
                return None;
            }
            let mut others: Vec<u32> = Vec::new();
            for &neighbor in view.neighbors(node) {
                match is_gone(&neighbor) {
                    true => {
                        let next = view.neighbors(neighbor).iter();
                        others.extend(next.filter(|next| !is_gone(next)));
                    }
                    false => others.push(neighbor),
                }
            }
            others.sort_unstable();
            others.dedup();
            others.retain(|&other| other != node);
            Some((node, pruner.best_of(view, kernel, node, &others)))
        });
        let lists: Vec<_> = lists.flatten().collect();
        self.nodes.write(&lists)
    }

    pub(super) fn sample_entries(&mut self) {
        let view = self.nodes.view();
        let live: Vec<u32> =
            (0..view.len() as u32).filter(|&node| self.owners.first(node).is_some()).collect();
        self.entries = Entries::new(view, &live, ENTRIES);
        self.sampled = view.len();
    }
}

impl super::Nodes {
    /// Keeps only these nodes, which get new numbers in the same order; edges lead to none but them.
    fn keep(&mut self, kept: &[u32]) -> Result<()> {
        let mut new = vec![NONE; self.len];
        kept.iter().zip(0..).for_each(|(&old, number)| new[old as usize] = number);
        let (stride, degree) = (self.stride, self.degree);
        let words = self.words.own(0)?;
        for (number, &old) in kept.iter().enumerate() {
            words.copy_within(old as usize * stride..(old as usize + 1) * stride, number * stride);
        }
        let edges = self.edges.own(0)?;
        for (number, &old) in kept.iter().enumerate() {
            edges.copy_within(old as usize * degree..(old as usize + 1) * degree, number * degree);
        }
        let used = &mut edges[..kept.len() * degree];
        used.par_iter_mut()
            .filter(|edge| **edge != NONE)
            .for_each(|edge| *edge = new[*edge as usize]);
        self.len = kept.len();
        Ok(())
    }
}
