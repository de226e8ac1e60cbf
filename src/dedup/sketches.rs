//! Sketches: all that deduplication needs of each document, so that no text is read again before it is written.

use std::{borrow::Cow, ops::Range, path::Path};

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use crate::{
    Result,
    container::{Container, ContainerWriter},
    mapped::{Cells, CellsMut},
    recipe::Sketch,
    sigfile::Strings,
    signature::words_for,
    table::no_memory,
    verify::FeatureSet,
};

const KIND: &str = "sketches";
const NAMES: [&str; 9] = [
    "elements",
    "element_ends",
    "signatures",
    "keys",
    "weights",
    "facts",
    "ids",
    "id_ends",
    "records",
];
const ELEMENTS: usize = 0;
const ENDS: usize = 1;
const SIGNATURES: usize = 2;
const KEYS: usize = 3;
const WEIGHTS: usize = 4;
const FACTS: usize = 5;
const IDS: usize = 6;
const ID_ENDS: usize = 7;
const RECORDS: usize = 8;

/// What is known of a document besides its features.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Facts {
    /// A hash of its set of features: those with the same one are copies.
    pub set_hash: u64,
    /// The smaller, the rather it is kept.
    pub preference: u64,
    /// How many bytes its text has.
    pub text_bytes: u64,
    /// The number of its source.
    pub source: u32,
    /// 1 if it has features to compare, otherwise 0.
    pub signed: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct About {
    bits: u32,
    keys: usize,
    weights: bool,
    rows: u64,
    elements: u64,
    records: u64,
    more: Value,
}

/// A file of sketches being written.
pub struct SketchWriter {
    container: ContainerWriter,
    about: About,
    id_bytes: u64,
}

impl SketchWriter {
    /// Begins a file of sketches with signatures of `bits` bits and so many keys each.
    pub fn create(path: &Path, bits: u32, keys: usize, weights: bool) -> Result<Self> {
        let container = ContainerWriter::create(path, KIND, &NAMES)?;
        let about =
            About { bits, keys, weights, rows: 0, elements: 0, records: 0, more: Value::Null };
        Ok(SketchWriter { container, about, id_bytes: 0 })
    }

    /// How many documents there are so far.
    pub fn rows(&self) -> u64 {
        self.about.rows
    }

    /// Appends many documents.
    pub fn append(&mut self, some: &Sketches) -> Result<()> {
        let container = &mut self.container;
        container.write(ELEMENTS, bytemuck::cast_slice(&some.elements))?;
        let ends: Vec<u64> = some.ends.iter().map(|end| self.about.elements + end).collect();
        container.write(ENDS, bytemuck::cast_slice(&ends))?;
        container.write(SIGNATURES, bytemuck::cast_slice(&some.words))?;
        container.write(KEYS, bytemuck::cast_slice(&some.keys))?;
        container.write(WEIGHTS, bytemuck::cast_slice(&some.weights))?;
        container.write(FACTS, bytemuck::cast_slice(&some.facts))?;
        container.write(IDS, some.ids.as_bytes())?;
        let ends: Vec<u64> = some.id_ends.iter().map(|end| self.id_bytes + end).collect();
        container.write(ID_ENDS, bytemuck::cast_slice(&ends))?;
        self.about.rows += some.facts.len() as u64;
        self.about.elements += some.elements.len() as u64;
        self.id_bytes += some.ids.len() as u64;
        Ok(())
    }

    /// Appends documents of another file of the same shape, whose sources have other numbers here.
    pub fn append_rows(
        &mut self,
        from: &SketchFile,
        rows: Range<usize>,
        sources: &[u32],
    ) -> Result<()> {
        let mut some = Sketches::default();
        for row in rows {
            some.elements.extend_from_slice(from.set(row));
            some.ends.push(some.elements.len() as u64);
            some.words.extend_from_slice(from.signature(row));
            some.keys.extend_from_slice(from.keys(row));
            some.weights.extend_from_slice(from.weights(row));
            some.facts.push(from.facts()[row]);
            some.ids.push_str(&from.id(row));
            some.id_ends.push(some.ids.len() as u64);
        }
        some.number_sources(sources);
        self.append(&some)
    }

    /// Notes numbers about the input that belong to no document.
    pub fn note(&mut self, numbers: &[u32]) -> Result<()> {
        self.about.records += numbers.len() as u64;
        self.container.write(RECORDS, bytemuck::cast_slice(numbers))
    }

    /// Completes the file, with something to say about all of it.
    pub fn finish(self, more: Value) -> Result<()> {
        self.container.finish(About { more, ..self.about })
    }
}

/// Sketches in memory: what one thread made of a chunk of input.
#[derive(Debug, Clone, Default)]
pub struct Sketches {
    elements: Vec<u32>,
    ends: Vec<u64>,
    words: Vec<u64>,
    keys: Vec<u32>,
    weights: Vec<u32>,
    facts: Vec<Facts>,
    ids: String,
    id_ends: Vec<u64>,
}

impl Sketches {
    /// Appends a document; without a sketch it is one that has too few features.
    pub fn push(
        &mut self,
        id: &str,
        facts: Facts,
        sketch: Option<&Sketch<'_>>,
        shape: (u32, usize),
    ) {
        let (bits, keys) = shape;
        let words = self.words.len() + words_for(bits);
        let with_keys = self.keys.len() + keys;
        let mut facts = Facts { set_hash: 0, signed: 0, ..facts };
        if let Some(sketch) = sketch {
            self.elements.extend_from_slice(sketch.set);
            self.words.extend_from_slice(sketch.signature.words());
            self.keys.extend_from_slice(sketch.keys);
            self.weights.extend_from_slice(sketch.weights);
            facts.set_hash = set_hash(sketch);
            facts.signed = 1;
        }
        // Rows of one shape: those without a sketch are zero.
        self.words.resize(words, 0);
        self.keys.resize(with_keys, 0);
        self.ends.push(self.elements.len() as u64);
        self.facts.push(facts);
        self.ids.push_str(id);
        self.id_ends.push(self.ids.len() as u64);
    }

    /// Replaces the number of each document's source by what it is called from now on.
    pub fn number_sources(&mut self, numbers: &[u32]) {
        self.facts.iter_mut().for_each(|facts| facts.source = numbers[facts.source as usize]);
    }

    /// How many documents there are.
    pub fn len(&self) -> usize {
        self.facts.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.facts.is_empty()
    }

    /// What is known of each besides its features.
    pub fn facts(&self) -> &[Facts] {
        &self.facts
    }

    /// The signatures, one behind the other.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The keys of each, one behind the other.
    pub fn keys(&self) -> &[u32] {
        &self.keys
    }

    /// The features of a document.
    pub fn features(&self, row: usize) -> FeatureSet<'_> {
        let start = if row == 0 { 0 } else { self.ends[row - 1] as usize };
        let range = start..self.ends[row] as usize;
        let weights = self.weights.get(range.clone()).unwrap_or_default();
        FeatureSet { elements: &self.elements[range], weights }
    }

    /// How much memory they take.
    pub fn bytes(&self) -> usize {
        let numbers = size_of_val(&self.elements[..]) + size_of_val(&self.weights[..]);
        let rows = size_of_val(&self.words[..]) + size_of_val(&self.keys[..]);
        numbers + rows + size_of_val(&self.facts[..]) + self.ids.len() + 16 * self.len()
    }

    /// How many of them have features to compare.
    pub fn signed(&self) -> usize {
        self.facts.iter().filter(|facts| facts.signed == 1).count()
    }
}

fn set_hash(sketch: &Sketch<'_>) -> u64 {
    let set = xxh3_64(bytemuck::cast_slice(sketch.set));
    match sketch.weights.is_empty() {
        true => set,
        // Where weights count, copies have the same ones.
        false => set ^ xxh3_64(bytemuck::cast_slice(sketch.weights)).rotate_left(1),
    }
}

/// Sketches of a collection: an open file, memory-mapped, or in memory.
#[derive(Debug, Clone)]
pub struct SketchFile {
    /// What was said about all of it.
    pub about: Value,
    bits: u32,
    key_count: usize,
    elements: Cells<u32>,
    ends: Cells<u64>,
    words: Cells<u64>,
    keys: Cells<u32>,
    weights: Cells<u32>,
    facts: Cells<Facts>,
    ids: Strings,
    records: Cells<u32>,
}

impl SketchFile {
    /// Opens a file and checks every byte of it.
    pub fn open(path: &Path) -> Result<Self> {
        let container: Container<About> = Container::open(path, KIND)?;
        let (rows, elements) = (container.about.rows as usize, container.about.elements as usize);
        let (bits, key_count) = (container.about.bits, container.about.keys);
        let weights = if container.about.weights { elements } else { 0 };
        let ids = Strings::open(&container, "ids", rows)?;
        Ok(SketchFile {
            bits,
            key_count,
            elements: container.cells("elements", elements)?,
            ends: container.cells("element_ends", rows)?,
            words: container.cells("signatures", rows * words_for(bits))?,
            keys: container.cells("keys", rows * key_count)?,
            weights: container.cells("weights", weights)?,
            facts: container.cells("facts", rows)?,
            ids: ids.ok_or_else(|| container.damaged("ids", "is missing"))?,
            records: container.cells("records", container.about.records as usize)?,
            about: container.about.more,
        })
    }
}

/// Without a file.
impl SketchFile {
    /// Sketches of this shape that stay in memory.
    pub fn of(parts: &[Sketches], bits: u32, keys: usize) -> Result<Self> {
        let bytes = joined(parts, |some| some.ids.as_bytes())?;
        let ids = Strings::Mapped { bytes, ends: ends(parts, |some| &some.id_ends)? };
        Ok(SketchFile {
            bits,
            key_count: keys,
            elements: joined(parts, |some| &some.elements)?,
            ends: ends(parts, |some| &some.ends)?,
            words: joined(parts, |some| &some.words)?,
            keys: joined(parts, |some| &some.keys)?,
            weights: joined(parts, |some| &some.weights)?,
            facts: joined(parts, |some| &some.facts)?,
            ids,
            records: joined(&[], |_| &[])?,
            about: Value::Null,
        })
    }
}

/// The same part of all sketches, one behind the other.
fn joined<T: Pod>(parts: &[Sketches], part: impl Fn(&Sketches) -> &[T]) -> Result<Cells<T>> {
    let len = parts.iter().map(|some| part(some).len()).sum();
    let mut cells = CellsMut::zeroed(len).map_err(no_memory)?;
    let mut left = cells.as_mut_slice();
    for some in parts.iter().map(part) {
        let (here, behind) = left.split_at_mut(some.len());
        here.copy_from_slice(some);
        left = behind;
    }
    cells.freeze().map_err(no_memory)
}

/// Where things end if they stand one behind the other.
fn ends(parts: &[Sketches], part: impl Fn(&Sketches) -> &[u64]) -> Result<Cells<u64>> {
    let (mut all, mut before) = (Vec::new(), 0);
    for some in parts.iter().map(part) {
        all.extend(some.iter().map(|end| before + end));
        before = all.last().copied().unwrap_or(before);
    }
    Cells::copy_of(&all).map_err(no_memory)
}

impl SketchFile {
    /// How many documents there are.
    pub fn len(&self) -> usize {
        self.facts.as_slice().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The width of the signatures.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// What is known of each document.
    pub fn facts(&self) -> &[Facts] {
        self.facts.as_slice()
    }

    /// The id of a document.
    pub fn id(&self, row: usize) -> Cow<'_, str> {
        self.ids.get(row)
    }

    /// The numbers that were noted about the input.
    pub fn records(&self) -> &[u32] {
        self.records.as_slice()
    }

    /// All signatures, row after row.
    pub fn words(&self) -> &[u64] {
        self.words.as_slice()
    }

    /// The signature of a document.
    pub fn signature(&self, row: usize) -> &[u64] {
        let stride = words_for(self.bits);
        &self.words.as_slice()[row * stride..][..stride]
    }

    /// How many keys a document has.
    pub fn key_count(&self) -> usize {
        self.key_count
    }

    /// The keys of a document.
    pub fn keys(&self, row: usize) -> &[u32] {
        &self.keys.as_slice()[row * self.key_count..][..self.key_count]
    }

    fn range(&self, row: usize) -> std::ops::Range<usize> {
        let ends = self.ends.as_slice();
        let start = if row == 0 { 0 } else { ends[row - 1] as usize };
        start..ends[row] as usize
    }

    /// How many features a document has.
    pub fn set_size(&self, row: usize) -> usize {
        self.range(row).len()
    }

    /// The features of a document, ascending.
    pub fn set(&self, row: usize) -> &[u32] {
        &self.elements.as_slice()[self.range(row)]
    }

    /// The features of a document, as they are compared.
    pub fn features(&self, row: usize) -> FeatureSet<'_> {
        FeatureSet { elements: self.set(row), weights: self.weights(row) }
    }

    /// Whether features have weights.
    pub fn has_weights(&self) -> bool {
        !self.weights.as_slice().is_empty()
    }

    /// Their weights, if the file has any.
    pub fn weights(&self, row: usize) -> &[u32] {
        let weights = self.weights.as_slice();
        if weights.is_empty() { &[] } else { &weights[self.range(row)] }
    }
}
