//! A graph in a file: saved once, and mapped whenever it is needed. `docs/format.md` draws it.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use bytemuck::cast_slice;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::{Curve, Entries, Graph, Lookup, Memory, NONE, Nodes, Owners, Shape};
use crate::{
    Error, Result, Signatures,
    container::{Container, ContainerWriter, kind_of},
    hamming,
    index::origin::Origin,
    signature::{check_width, words_for},
};

const KIND: &str = "graph";

/// What the file says about itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct About {
    shape: Shape,
    bits: u32,
    rows: u64,
    /// Different signatures.
    nodes: u64,
    /// Rows that have the signature of an earlier one.
    copies: u64,
    curve: Curve,
    signatures: Origin,
}

impl Graph {
    /// Saves the graph over these rows. `of` is the file that they are in: whoever opens the graph finds them by that.
    pub fn save(&self, path: &Path, rows: &Signatures, of: Option<&Path>) -> Result<()> {
        if cfg!(target_endian = "big") {
            return Err(Error::format(path, "would be little-endian, and this machine is not"));
        }
        if (rows.bits(), rows.len()) != (self.bits, self.rows()) {
            return Err(Error::format(path, "would belong to other signatures than the graph has"));
        }
        let view = self.nodes.view();
        let mut file = ContainerWriter::in_order(path, KIND)?;
        let section = file.begin("words")?;
        file.write(section, cast_slice(view.words))?;
        let section = file.begin("edges")?;
        file.write(section, cast_slice(view.edges))?;
        let section = file.begin("firsts")?;
        file.write(section, cast_slice(&self.owners.firsts.as_slice()[..view.len()]))?;
        let section = file.begin("copies")?;
        for (&node, copies) in &self.owners.more {
            let pairs: Vec<[u32; 2]> = copies.iter().map(|&row| [node, row]).collect();
            file.write(section, cast_slice(&pairs))?;
        }
        file.finish(About {
            shape: self.shape,
            bits: self.bits,
            rows: self.rows() as u64,
            nodes: view.len() as u64,
            copies: self.owners.more.values().map(Vec::len).sum::<usize>() as u64,
            curve: self.curve.clone(),
            signatures: Origin::new(rows, path, of),
        })
    }

    /// Opens a graph over the signatures that it was built over. It stays in its file, mapped.
    pub fn open(path: &Path, rows: &Signatures) -> Result<Self> {
        GraphFile::open(path)?.graph(rows)
    }
}

/// A graph file, open, whose checksums were right.
#[derive(Debug, Clone)]
pub struct GraphFile {
    container: Container<About>,
}

impl GraphFile {
    /// Whether a file says that it holds a graph.
    pub fn is_in(path: &Path) -> bool {
        kind_of(path).as_deref() == Some(KIND)
    }

    /// Opens a file and checks every byte of it.
    pub fn open(path: &Path) -> Result<Self> {
        let container: Container<About> = Container::open(path, KIND)?;
        let damaged = |error: Error| Error::damaged(path, format!("says what cannot be: {error}"));
        let About { bits, shape, rows, .. } = container.about;
        check_width(bits as usize).map_err(damaged)?;
        shape.check().map_err(damaged)?;
        match u32::try_from(rows) {
            Ok(_) => Ok(GraphFile { container }),
            Err(_) => Err(Error::TooManyRows { rows: rows as usize }),
        }
    }

    /// What the graph looks like.
    pub fn shape(&self) -> Shape {
        self.container.about.shape
    }

    /// The width of the signatures in bits.
    pub fn bits(&self) -> u32 {
        self.container.about.bits
    }

    /// How many signatures there are.
    pub fn rows(&self) -> u64 {
        self.container.about.rows
    }

    /// How many of them are distinct.
    pub fn distinct(&self) -> u64 {
        self.container.about.nodes
    }

    /// How many bytes the file has.
    pub fn bytes(&self) -> u64 {
        self.container.bytes()
    }

    /// What it finds, by how hard it looks.
    pub fn curve(&self) -> &Curve {
        &self.container.about.curve
    }

    /// What the file of the signatures is called, as seen from the folder of the graph.
    pub fn signatures_name(&self) -> Option<&str> {
        self.container.about.signatures.file.as_deref()
    }

    /// Where the signatures are, if the graph knows: in their place, or beside it if the two were moved.
    pub fn signatures(&self) -> Option<PathBuf> {
        self.container.about.signatures.path(self.container.path())
    }

    /// The graph, over the signatures that it was built over.
    pub fn graph(&self, rows: &Signatures) -> Result<Graph> {
        self.check_rows(rows)?;
        let about = &self.container.about;
        let nodes = self.nodes()?;
        let owners = self.owners(nodes.len)?;
        let removed = (0..nodes.len as u32).filter(|&node| owners.first(node).is_none()).count();
        let mut graph = Graph {
            bits: about.bits,
            shape: about.shape,
            entries: Entries::default(),
            lookup: Lookup::new(nodes.view()),
            nodes,
            owners,
            removed,
            sampled: 0,
            curve: about.curve.clone(),
            kernel: hamming::kernel()?,
        };
        graph.sample_entries();
        Ok(graph)
    }

    /// Refuses signatures that it was not built over.
    pub fn check_rows(&self, rows: &Signatures) -> Result<()> {
        let about = &self.container.about;
        about.signatures.check(self.container.path(), (about.rows, about.bits), rows)
    }

    fn check(&self, right: bool, section: &str, problem: &str) -> Result<()> {
        match right {
            true => Ok(()),
            false => Err(self.container.damaged(section, problem)),
        }
    }

    fn nodes(&self) -> Result<Nodes> {
        let about = &self.container.about;
        let (stride, degree) = (words_for(about.bits), about.shape.degree as usize);
        let fits = about.nodes <= about.rows;
        self.check(fits, "words", "has more signatures than there are rows")?;
        let len = about.nodes as usize;
        let words = self.container.cells("words", len * stride)?;
        let edges = self.container.cells::<u32>("edges", len * degree)?;
        let leads = |list: &[u32]| {
            let end = list.iter().position(|&node| node == NONE).unwrap_or(degree);
            let (there, rest) = list.split_at(end);
            there.iter().all(|&node| (node as usize) < len) && rest.iter().all(|&node| node == NONE)
        };
        let right = edges.as_slice().par_chunks(degree.max(1)).all(leads);
        self.check(right, "edges", "leads to nodes that are not")?;
        let (words, edges) = (Memory::Fixed(words), Memory::Fixed(edges));
        Ok(Nodes { len, stride, degree, words, edges })
    }

    fn owners(&self, nodes: usize) -> Result<Owners> {
        let about = &self.container.about;
        let rows = about.rows as u32;
        let firsts = self.container.cells::<u32>("firsts", nodes)?;
        let there = |&row: &u32| row == NONE || row < rows;
        let right = firsts.as_slice().par_iter().all(there);
        self.check(right, "firsts", "names rows that are not")?;
        let copies = self.container.cells::<[u32; 2]>("copies", about.copies as usize)?;
        let mut more: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for &[node, row] in copies.as_slice() {
            let right = (node as usize) < nodes && row < rows;
            self.check(right, "copies", "names nodes or rows that are not")?;
            more.entry(node).or_default().push(row);
        }
        Ok(Owners::new(Memory::Fixed(firsts), more, rows))
    }
}
