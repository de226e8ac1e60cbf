//! Which rows have the signature of a node? Mostly one; copies are more.

use std::collections::BTreeMap;

use super::nodes::{Memory, NONE};
use crate::Result;

/// From nodes to rows.
#[derive(Debug)]
pub(super) struct Owners {
    /// A row of each node, the lowest; [`NONE`] if it has none any more.
    pub(super) firsts: Memory<u32>,
    /// The further rows of nodes, rising.
    pub(super) more: BTreeMap<u32, Vec<u32>>,
    /// From rows to nodes, when somebody needed it.
    nodes: Option<Vec<u32>>,
    /// Rows so far; removed ones keep their numbers.
    pub(super) rows: u32,
}

impl Owners {
    pub(super) fn new(firsts: Memory<u32>, more: BTreeMap<u32, Vec<u32>>, rows: u32) -> Self {
        Owners { firsts, more, nodes: None, rows }
    }

    /// The rows of a node, rising.
    pub(super) fn of(&self, node: u32) -> impl Iterator<Item = u32> {
        let first = self.first(node);
        let more = if self.more.is_empty() { None } else { self.more.get(&node) };
        first.into_iter().chain(more.into_iter().flatten().copied())
    }

    pub(super) fn first(&self, node: u32) -> Option<u32> {
        Some(self.firsts.as_slice()[node as usize]).filter(|&row| row != NONE)
    }

    /// A new node, without rows.
    pub(super) fn push_node(&mut self, node: u32) -> Result<()> {
        self.firsts.own(node as usize + 1)?[node as usize] = NONE;
        Ok(())
    }

    /// How much memory they take.
    pub(super) fn bytes(&self) -> u64 {
        let more: usize = self.more.values().map(|rows| size_of_val(&rows[..]) + 40).sum();
        let of_rows = self.nodes.as_ref().map_or(0, |nodes| size_of_val(&nodes[..]));
        (size_of_val(self.firsts.as_slice()) + more + of_rows) as u64
    }

    /// Gives a node the next row.
    pub(super) fn add(&mut self, node: u32) -> Result<u32> {
        let row = self.rows;
        self.rows += 1;
        if let Some(nodes) = &mut self.nodes {
            nodes.push(node);
        }
        let firsts = self.firsts.own(node as usize + 1)?;
        match firsts[node as usize] {
            NONE => firsts[node as usize] = row,
            _ => self.more.entry(node).or_default().push(row),
        }
        Ok(row)
    }

    /// Takes a row away from its node; which it was, if there was one.
    pub(super) fn remove(&mut self, row: u32, nodes: usize) -> Result<Option<u32>> {
        if row >= self.rows {
            return Ok(None);
        }
        let of_rows = match self.nodes.take() {
            Some(nodes) => nodes,
            None => self.invert(nodes),
        };
        let node = of_rows[row as usize];
        let of_rows = self.nodes.insert(of_rows);
        if node == NONE {
            return Ok(None);
        }
        of_rows[row as usize] = NONE;
        let first = &mut self.firsts.own(nodes)?[node as usize];
        let more = self.more.entry(node).or_default();
        match *first == row {
            true if more.is_empty() => *first = NONE,
            true => *first = more.remove(0),
            false => more.retain(|&other| other != row),
        }
        if more.is_empty() {
            self.more.remove(&node);
        }
        Ok(Some(node))
    }

    fn invert(&self, nodes: usize) -> Vec<u32> {
        let mut of_rows = vec![NONE; self.rows as usize];
        for node in 0..nodes as u32 {
            self.of(node).for_each(|row| of_rows[row as usize] = node);
        }
        of_rows
    }

    /// Gives nodes new numbers: `kept` are the old ones, rising.
    pub(super) fn renumber(&mut self, kept: &[u32]) -> Result<()> {
        let firsts = self.firsts.own(0)?;
        for (new, &old) in kept.iter().enumerate() {
            firsts[new] = firsts[old as usize];
        }
        let new = |old: u32| kept.binary_search(&old).expect("a node with rows is kept") as u32;
        let more = std::mem::take(&mut self.more);
        self.more = more.into_iter().map(|(old, rows)| (new(old), rows)).collect();
        self.nodes = None;
        Ok(())
    }
}
