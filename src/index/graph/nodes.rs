//! The nodes of a graph: each a signature and the numbers of its neighbors.

use crate::{
    Result,
    hamming::prefetch,
    mapped::{Cells, CellsMut},
    table::no_memory,
};

/// No node: behind the last neighbor of a list that is not full.
pub(super) const NONE: u32 = u32::MAX;
/// Bytes that come from memory together.
const LINE: usize = 64;

/// Cells that may have to grow: those of a file are copied before they are changed.
#[derive(Debug)]
pub(super) enum Memory<T> {
    Fixed(Cells<T>),
    Own(CellsMut<T>),
}

impl<T: bytemuck::Pod> Memory<T> {
    pub(super) fn as_slice(&self) -> &[T] {
        match self {
            Memory::Fixed(cells) => cells.as_slice(),
            Memory::Own(cells) => cells.as_slice(),
        }
    }

    /// The cells to write, at least so many.
    pub(super) fn own(&mut self, len: usize) -> Result<&mut [T]> {
        let there = self.as_slice().len();
        if there < len || matches!(self, Memory::Fixed(_)) {
            // Room for more: pages that nobody writes to cost nothing.
            let room = if there == 0 { len } else { len.max(there + there / 2) };
            let mut cells = CellsMut::zeroed(room).map_err(no_memory)?;
            cells.as_mut_slice()[..there].copy_from_slice(self.as_slice());
            *self = Memory::Own(cells);
        }
        match self {
            Memory::Own(cells) => Ok(cells.as_mut_slice()),
            Memory::Fixed(_) => unreachable!("they were copied"),
        }
    }
}

/// All nodes.
#[derive(Debug)]
pub(super) struct Nodes {
    pub(super) len: usize,
    /// Words of a signature.
    pub(super) stride: usize,
    /// The most neighbors of a node.
    pub(super) degree: usize,
    pub(super) words: Memory<u64>,
    pub(super) edges: Memory<u32>,
}

impl Nodes {
    /// Adds a node without neighbors.
    pub(super) fn push(&mut self, signature: &[u64]) -> Result<u32> {
        let node = self.len;
        self.len += 1;
        let words = self.words.own(self.len * self.stride)?;
        words[node * self.stride..][..self.stride].copy_from_slice(signature);
        let edges = self.edges.own(self.len * self.degree)?;
        edges[node * self.degree..][..self.degree].fill(NONE);
        Ok(node as u32)
    }

    /// Nodes as they are to be read.
    pub(super) fn view(&self) -> View<'_> {
        View {
            stride: self.stride,
            degree: self.degree,
            words: &self.words.as_slice()[..self.len * self.stride],
            edges: &self.edges.as_slice()[..self.len * self.degree],
        }
    }
}

/// Nodes, for the inner loops.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) stride: usize,
    pub(super) degree: usize,
    pub(super) words: &'a [u64],
    pub(super) edges: &'a [u32],
}

impl<'a> View<'a> {
    pub(super) fn len(self) -> usize {
        self.words.len() / self.stride
    }

    /// The signature of a node.
    #[inline(always)]
    pub(super) fn signature(self, node: u32) -> &'a [u64] {
        &self.words[node as usize * self.stride..][..self.stride]
    }

    /// The neighbors of a node.
    #[inline(always)]
    pub(super) fn neighbors(self, node: u32) -> &'a [u32] {
        let list = &self.edges[node as usize * self.degree..][..self.degree];
        &list[..list.partition_point(|&neighbor| neighbor != NONE)]
    }

    #[inline(always)]
    pub(super) fn prefetch_signature(self, node: u32) {
        prefetch_lines(self.words, node as usize * self.stride, self.stride);
    }

    #[inline(always)]
    pub(super) fn prefetch_neighbors(self, node: u32) {
        prefetch_lines(self.edges, node as usize * self.degree, self.degree);
    }
}

/// Asks for all lines of some cells. Most are one or two.
#[inline(always)]
fn prefetch_lines<T>(cells: &[T], start: usize, len: usize) {
    let line = LINE / size_of::<T>();
    prefetch(cells, start);
    if len > line {
        prefetch(cells, start + line);
    }
    for at in (2 * line..len).step_by(line) {
        prefetch(cells, start + at);
    }
    // Lists do not begin with a line, so they may end in one more.
    if !len.is_multiple_of(line) {
        prefetch(cells, start + len - 1);
    }
}
