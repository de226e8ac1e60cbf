//! A graph of neighbors: from each signature edges lead to near ones, and a query walks along them to the nearest.
//!
//! It finds most of the nearest with a few thousand distances, whatever the number of rows; it is not exact. How much it
//! finds by how hard it looks is measured when it is built, on signatures that are not yet in it, and kept with it.

mod answer;
mod build;
mod entries;
mod file;
mod lookup;
mod nodes;
mod order;
mod owners;
mod pool;
mod prune;
mod update;
mod walk;

use std::{collections::BTreeMap, fmt, str::FromStr};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

pub use self::{answer::GraphSearch, file::GraphFile};
use self::{
    answer::{Reach, WITHIN_WIDTH},
    build::Growth,
    entries::Entries,
    lookup::Lookup,
    nodes::{Memory, NONE, Nodes},
    owners::Owners,
};
use super::{Answers, Curve, Index, Scan, effort::SAMPLE_NEIGHBORS, sample::taken};
use crate::{
    Error, Result, Signatures,
    features::hash::mix,
    hamming::{self, Kernel},
    mapped::CellsMut,
    table::{Distinct, no_memory},
};

/// What a graph looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Shape {
    /// The most neighbors of a node.
    pub degree: u32,
    /// How many of the nearest a node chooses its neighbors from.
    pub beam: u32,
}

/// Signatures shorter than this say less about where to go next, and want more neighbors.
const SHORT: u32 = 512;
/// The beam of a graph that is named by its neighbors alone.
const BEAM: u32 = 128;

/// Degrees and beams that make sense.
const DEGREES: std::ops::RangeInclusive<u32> = 4..=256;
const BEAMS: std::ops::RangeInclusive<u32> = 8..=1024;

impl Shape {
    /// The usual one for signatures of so many bits: 260 bytes a row, or 390 where they are short.
    pub fn usual(bits: u32) -> Self {
        match bits < SHORT {
            true => Shape { degree: 94, beam: 192 },
            false => Shape { degree: 62, beam: 96 },
        }
    }

    /// The shape that a name tells: `graph-62-96`, or `graph-62`; nothing for `graph`, which is the usual one.
    pub fn named(name: &str) -> Result<Option<Self>, String> {
        if name == "graph" { Ok(None) } else { name.parse().map(Some) }
    }

    fn check(self) -> Result<Self> {
        let method = || self.to_string();
        if !DEGREES.contains(&self.degree) {
            let problem = "needs 4 to 256 neighbors of a node".to_owned();
            return Err(Error::Method { method: method(), problem });
        }
        if !BEAMS.contains(&self.beam) {
            let problem = "needs a beam of 8 to 1024 to choose them from".to_owned();
            return Err(Error::Method { method: method(), problem });
        }
        Ok(self)
    }

    /// What a graph of so many rows takes at most, with its copy of the signatures.
    pub fn bytes(self, rows: usize, bits: u32) -> u64 {
        let each = u64::from(self.degree) * 4 + 10 + crate::signature::words_for(bits) as u64 * 8;
        each * rows as u64
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "graph-{}-{}", self.degree, self.beam)
    }
}

impl FromStr for Shape {
    type Err = String;

    /// `graph-62` or `graph-62-96`.
    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.strip_prefix("graph").map(|rest| rest.split('-').skip(1));
        let numbers = numbers.map(|numbers| numbers.map(str::parse).collect());
        let shape = match numbers {
            Some(Ok::<Vec<u32>, _>(numbers)) => match numbers[..] {
                [degree] => Some(Shape { degree, beam: BEAM }),
                [degree, beam] => Some(Shape { degree, beam }),
                _ => None,
            },
            _ => None,
        };
        let shape = shape.ok_or("a graph is written graph, graph-62 or graph-62-96")?;
        shape.check().map_err(|error| error.to_string())
    }
}

/// A graph of neighbors over distinct signatures. It has its own copy of them, in an order of its own.
#[derive(Debug)]
pub struct Graph {
    bits: u32,
    shape: Shape,
    nodes: Nodes,
    entries: Entries,
    lookup: Lookup,
    owners: Owners,
    /// Nodes that have no rows any more.
    removed: usize,
    /// How many nodes there were when the entries were taken.
    sampled: usize,
    curve: Curve,
    kernel: Kernel,
}

/// Nodes that a query is compared with to find where to begin.
const ENTRIES: usize = 1024;
/// Signatures that are held back to measure what the graph finds: so many, or one of so many if there are few.
const SAMPLE: usize = 2000;
const SAMPLED: usize = 20;
/// So few signatures are all compared.
const FEW: usize = 2000;
/// The levels of effort that are measured: how many nodes a walk keeps.
const LEVELS: [u32; 16] = [8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536];

impl Graph {
    /// A graph over rows, the same for the same rows and seed whatever the number of threads.
    pub fn build(rows: &Signatures, shape: Shape, seed: u64) -> Result<Self> {
        shape.check()?;
        if u32::try_from(rows.len()).is_err() {
            return Err(Error::TooManyRows { rows: rows.len() });
        }
        let kernel = hamming::kernel()?;
        let distinct = Distinct::of(rows)?;
        let order = order::parted(rows, kernel, distinct.firsts.clone());
        let nodes = unlinked(rows, &order, shape)?;
        let owners = owners(rows, &order, &distinct)?;
        let mut graph = Graph {
            bits: rows.bits(),
            shape,
            entries: Entries::default(),
            lookup: Lookup::default(),
            nodes,
            owners,
            removed: 0,
            sampled: 0,
            curve: Curve::default(),
            kernel,
        };
        graph.link_all(rows, seed)?;
        // Not before: what is held back to measure with must not be found.
        graph.lookup = Lookup::new(graph.nodes.view());
        Ok(graph)
    }

    /// Links all nodes, in random order: then early ones are everywhere, and lead everywhere.
    fn link_all(&mut self, rows: &Signatures, seed: u64) -> Result<()> {
        let mut sequence: Vec<u32> = (0..self.nodes.len as u32).collect();
        sequence.par_sort_by_cached_key(|&node| mix(u64::from(node) ^ mix(seed)));
        let sample = if sequence.len() < FEW { 0 } else { SAMPLE.min(sequence.len() / SAMPLED) };
        let (first, held_back) = sequence.split_at(sequence.len() - sample);
        let growth = self.growth();
        // Most of what is found in the first pass is found better in the second.
        let hasty = Growth { beam: (growth.beam * 3).div_ceil(8), ..self.growth() };
        hasty.link(&mut self.nodes, None, first)?;
        self.entries = Entries::new(self.nodes.view(), first, ENTRIES);
        // Near nodes have near numbers: one after the other they come by the same nodes, which are in the cache then.
        let mut again = first.to_vec();
        again.par_sort_unstable();
        growth.relink(&mut self.nodes, &self.entries, &again)?;
        self.calibrate(rows, held_back)?;
        growth.link(&mut self.nodes, Some(&self.entries), held_back)?;
        self.sample_entries();
        Ok(())
    }

    fn growth(&self) -> Growth {
        Growth { kernel: self.kernel, beam: self.shape.beam as usize }
    }

    /// Measures what the graph finds for signatures that are not yet in it.
    fn calibrate(&mut self, rows: &Signatures, held_back: &[u32]) -> Result<()> {
        if held_back.is_empty() {
            return Ok(());
        }
        let firsts = held_back.iter().filter_map(|&node| self.owners.first(node));
        let firsts: Vec<usize> = firsts.map(|row| row as usize).collect();
        let sample = taken(rows, &firsts)?;
        let truth = self.truth(rows, &sample, held_back)?;
        self.curve = Curve::measure(LEVELS, &truth, |level, asked, found| {
            self.walk_for(&sample, asked, level as usize, found);
            Ok(())
        })?;
        let mut found = Answers::new();
        self.walk_for(&sample, sample.len(), WITHIN_WIDTH, &mut found);
        self.curve.note_within(self.bits, &truth, &found);
        Ok(())
    }

    /// Answers the first queries of a sample on one thread, so that the time is that of one.
    fn walk_for(&self, sample: &Signatures, asked: usize, width: usize, found: &mut Answers) {
        found.clear();
        let reach = Reach { width, enough: SAMPLE_NEIGHBORS };
        self.answer_some(sample.into(), 0..asked, reach, found, |met, found| {
            self.rows_of(met, SAMPLE_NEIGHBORS, found);
        });
    }

    /// How far a walk for the `k` nearest goes, with such an effort.
    fn reach(&self, k: usize, level: u32) -> Reach {
        // What was removed takes places.
        let live = (self.nodes.len - self.removed).max(1);
        let width = (level as usize).max(k) * self.nodes.len / live;
        Reach { width, enough: if self.removed == 0 { k } else { usize::MAX } }
    }

    /// The nearest rows of the sample, without the sample itself.
    fn truth(&self, rows: &Signatures, sample: &Signatures, held_back: &[u32]) -> Result<Answers> {
        let mut hidden: Vec<u32> =
            held_back.iter().flat_map(|&node| self.owners.of(node)).collect();
        hidden.sort_unstable();
        let (mut all, mut truth) = (Answers::new(), Answers::new());
        // A few of them are in the way.
        let more = SAMPLE_NEIGHBORS + SAMPLE_NEIGHBORS / 4 + 8;
        Scan::with_kernel(rows, self.kernel)?.nearest(sample.into(), more, &mut all)?;
        for neighbors in all.iter() {
            let there = neighbors.iter().filter(|found| hidden.binary_search(&found.row).is_err());
            truth.extend(there.take(SAMPLE_NEIGHBORS).copied());
        }
        Ok(truth)
    }

    /// The same graph, moved into huge pages where the system has them: pages of a file are small ones, and finding them
    /// takes longer. Worth the copy for many queries.
    pub fn in_huge_pages(mut self) -> Result<Self> {
        self.nodes.words.own(0)?;
        self.nodes.edges.own(0)?;
        Ok(self)
    }

    /// The width of the signatures in bits.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// What it looks like.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// How many rows it has had; those that were removed keep their numbers.
    pub fn rows(&self) -> usize {
        self.owners.rows as usize
    }

    /// How many distinct signatures there are.
    pub fn distinct(&self) -> usize {
        self.nodes.len - self.removed
    }

    /// What it finds, by how hard it looks.
    pub fn curve(&self) -> &Curve {
        &self.curve
    }

    /// How much memory it takes, beside the signatures.
    pub fn bytes(&self) -> u64 {
        let edges = self.nodes.len * self.nodes.degree * size_of::<u32>();
        edges as u64 + self.owners.bytes() + self.lookup.bytes() + self.entries.bytes()
    }

    /// How much memory its copy of the signatures takes.
    pub fn signature_bytes(&self) -> u64 {
        (self.nodes.len * self.nodes.stride * size_of::<u64>()) as u64
    }
}

/// Nodes with these rows' signatures and without edges.
fn unlinked(rows: &Signatures, order: &[u32], shape: Shape) -> Result<Nodes> {
    let (len, stride, degree) = (order.len(), rows.stride(), shape.degree as usize);
    let mut words = CellsMut::zeroed(len * stride).map_err(no_memory)?;
    let cells = words.as_mut_slice().par_chunks_exact_mut(stride);
    cells.zip(order).for_each(|(cells, &row)| cells.copy_from_slice(rows.row(row as usize)));
    let mut edges = CellsMut::zeroed(len * degree).map_err(no_memory)?;
    edges.as_mut_slice().fill(NONE);
    Ok(Nodes { len, stride, degree, words: Memory::Own(words), edges: Memory::Own(edges) })
}

/// Which rows the nodes have.
fn owners(rows: &Signatures, order: &[u32], distinct: &Distinct) -> Result<Owners> {
    let mut firsts = CellsMut::zeroed(order.len()).map_err(no_memory)?;
    firsts.as_mut_slice().copy_from_slice(order);
    let mut more = BTreeMap::new();
    let copies = distinct.copies.view();
    for (node, &row) in order.iter().enumerate() {
        let further: Vec<u32> = copies.rows(row).skip(1).collect();
        if !further.is_empty() {
            more.insert(node as u32, further);
        }
    }
    Ok(Owners::new(Memory::Own(firsts), more, rows.len() as u32))
}
