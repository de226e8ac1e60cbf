//! Parts: the signatures of a stretch of the log, with an index over them. What was removed since is noted beside it.

use std::{
    ops::Range,
    sync::{Arc, OnceLock},
};

use super::{
    ids::{Ids, hash_of},
    kept::{Kept, Wanted},
    segment::Name,
};
use crate::{
    Result, Signatures,
    index::{Answers, Build, Effort, Graph, Index, Promise, Scan, Tables},
    mapped::Cells,
    table::no_memory,
};

/// The seed of graphs: the same each time.
pub(super) const SEED: u64 = 1;

/// Records of a stretch of the log: those that were there when it was made. It never changes.
#[derive(Debug)]
pub(super) struct Part {
    /// The positions of the stretch.
    pub(super) stretch: Range<u64>,
    /// What was removed up to here is not in it.
    pub(super) log: u64,
    pub(super) signatures: Signatures,
    /// The position of each row, ascending.
    pub(super) positions: Cells<u64>,
    pub(super) ids: Ids,
    pub(super) index: PartIndex,
    /// The segment that it is saved in.
    pub(super) saved: OnceLock<Name>,
}

/// What finds the rows of a part.
#[derive(Debug)]
pub(super) enum PartIndex {
    /// Every row is compared.
    Scan,
    Tables(Box<Tables<'static>>),
    Graph(Box<Graph>),
}

/// Rows of the log that become a part.
#[derive(Debug, Clone)]
pub(super) struct Rows {
    pub(super) stretch: Range<u64>,
    pub(super) log: u64,
    pub(super) words: Vec<u64>,
    pub(super) positions: Vec<u64>,
    /// The hash of each id, and its row.
    ids: Vec<(u64, u32)>,
}

impl Rows {
    pub(super) fn new(stretch: Range<u64>, log: u64) -> Self {
        Rows { stretch, log, words: Vec::new(), positions: Vec::new(), ids: Vec::new() }
    }

    /// Appends a row.
    pub(super) fn push(&mut self, position: u64, id: &str, words: impl Iterator<Item = u64>) {
        self.ids.push((hash_of(id), self.positions.len() as u32));
        self.words.extend(words);
        self.positions.push(position);
    }

    /// Appends the rows that come next, and their stretch.
    pub(super) fn extend(&mut self, next: &Rows) {
        self.stretch.end = next.stretch.end;
        let before = self.positions.len() as u32;
        self.ids.extend(next.ids.iter().map(|(hash, row)| (*hash, before + row)));
        self.words.extend(&next.words);
        self.positions.extend(&next.positions);
    }

    /// Appends the rows of the next part that are there still, and its stretch.
    pub(super) fn append(&mut self, live: &LivePart) {
        let part = &live.part;
        self.stretch.end = part.stretch.end;
        let mut moved = vec![u32::MAX; part.len()];
        for (row, &position) in part.positions().iter().enumerate() {
            if !live.removed.contains(row) {
                moved[row] = self.positions.len() as u32;
                self.words.extend(part.signatures.row(row));
                self.positions.push(position);
            }
        }
        let ids = part.ids.iter().map(|(hash, row)| (hash, moved[row as usize]));
        self.ids.extend(ids.filter(|(_, row)| *row != u32::MAX));
    }
}

impl Part {
    /// Makes a part, with its index.
    pub(super) fn build(rows: Rows, bits: u32, kept: Kept) -> Result<Self> {
        let signatures = Signatures::from_words(bits, rows.words)?.in_huge_pages();
        let index = match kept.index_of(signatures.len(), bits) {
            Wanted::Scan => PartIndex::Scan,
            Wanted::Tables(method) => {
                let tables = Tables::build(signatures.clone(), method, Build::default())?;
                PartIndex::Tables(Box::new(tables))
            }
            Wanted::Graph(shape) => {
                PartIndex::Graph(Box::new(Graph::build(&signatures, shape, SEED)?))
            }
        };
        Ok(Part {
            stretch: rows.stretch,
            log: rows.log,
            signatures,
            positions: Cells::copy_of(&rows.positions).map_err(no_memory)?,
            ids: Ids::build(rows.ids)?,
            index,
            saved: OnceLock::new(),
        })
    }

    pub(super) fn len(&self) -> usize {
        self.positions().len()
    }

    pub(super) fn positions(&self) -> &[u64] {
        self.positions.as_slice()
    }

    /// The row of a record, if it is in here.
    pub(super) fn row_of(&self, position: u64) -> Option<usize> {
        self.positions().binary_search(&position).ok()
    }

    /// Runs `ask` with the index of this part, or compares every row where the index finds less than is wanted: all,
    /// if nobody says that less is enough.
    pub(super) fn ask(
        &self,
        effort: Option<Effort>,
        found: &mut Answers,
        ask: impl Fn(&dyn Index, &mut Answers) -> Result<Promise>,
    ) -> Result<Promise> {
        let promise = match (&self.index, effort) {
            (PartIndex::Tables(tables), _) => ask(tables.as_ref(), found)?,
            (PartIndex::Graph(graph), Some(effort)) => ask(&graph.at(effort), found)?,
            (PartIndex::Scan | PartIndex::Graph(_), _) => ask(&self.scan()?, found)?,
        };
        let wanted = match effort {
            Some(Effort::Recall(share)) => share as f32,
            Some(Effort::Level(_)) => 0.0,
            None => 1.0,
        };
        match promise {
            Promise::Expected { recall } if recall < wanted => ask(&self.scan()?, found),
            promise => Ok(promise),
        }
    }

    /// Compares every row, whatever index there is.
    pub(super) fn scan(&self) -> Result<Scan<'_>> {
        Scan::new(&self.signatures)
    }

    /// How many bytes signatures, positions and index take.
    pub(super) fn bytes(&self) -> u64 {
        let rows = size_of_val(self.signatures.words()) + size_of_val(self.positions());
        rows as u64 + self.ids.bytes() + self.index.bytes()
    }
}

impl PartIndex {
    pub(super) fn name(&self) -> String {
        match self {
            PartIndex::Scan => "scan".to_owned(),
            PartIndex::Tables(tables) => tables.composition().method().to_string(),
            PartIndex::Graph(graph) => graph.shape().to_string(),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        match self {
            PartIndex::Scan => 0,
            PartIndex::Tables(tables) => tables.bytes() + tables.row_bytes(),
            PartIndex::Graph(graph) => graph.bytes(),
        }
    }

    /// The radius within which it finds all rows of so many bits; nothing if there is none.
    pub(super) fn exact_within(&self, bits: u32) -> Option<u32> {
        match self {
            PartIndex::Scan => Some(bits),
            PartIndex::Tables(tables) => Some(tables.guarantee()),
            PartIndex::Graph(_) => None,
        }
    }

    /// How many signatures are distinct, if it knows.
    pub(super) fn distinct(&self) -> Option<usize> {
        match self {
            PartIndex::Scan => None,
            PartIndex::Tables(tables) => Some(tables.distinct()),
            PartIndex::Graph(graph) => Some(graph.distinct()),
        }
    }
}

/// A part as it is at one moment: with what was removed from it.
#[derive(Debug, Clone)]
pub(super) struct LivePart {
    pub(super) part: Arc<Part>,
    pub(super) removed: Arc<Removed>,
}

impl LivePart {
    pub(super) fn new(part: Part) -> Self {
        LivePart { part: Arc::new(part), removed: Arc::default() }
    }

    /// How many rows are there still.
    pub(super) fn live(&self) -> usize {
        self.part.len() - self.removed.count
    }

    /// Notes that a record is there no more, if it is in here.
    pub(super) fn remove(&mut self, position: u64) -> bool {
        let Some(row) = self.part.row_of(position) else { return false };
        Arc::make_mut(&mut self.removed).insert(row, self.part.len())
    }
}

/// Which of the parts of a log, in order, has a position.
pub(super) fn part_of(parts: &[LivePart], position: u64) -> Option<usize> {
    let part = parts.partition_point(|live| live.part.stretch.end <= position);
    (part < parts.len()).then_some(part)
}

/// Rows of a part that are there no more: a bit each.
#[derive(Debug, Clone, Default)]
pub(super) struct Removed {
    words: Vec<u64>,
    pub(super) count: usize,
}

impl Removed {
    #[inline]
    pub(super) fn contains(&self, row: usize) -> bool {
        self.count > 0 && self.words[row / 64] >> (row % 64) & 1 == 1
    }

    /// Whether it is new.
    fn insert(&mut self, row: usize, rows: usize) -> bool {
        self.words.resize(rows.div_ceil(64), 0);
        let new = self.words[row / 64] >> (row % 64) & 1 == 0;
        self.words[row / 64] |= 1 << (row % 64);
        self.count += usize::from(new);
        new
    }

    /// The rows that are in here and were not in an earlier version of it.
    pub(super) fn since<'a>(&'a self, before: &'a Removed) -> impl Iterator<Item = usize> + 'a {
        let old = |word: usize| before.words.get(word).copied().unwrap_or(0);
        let new = self.words.iter().enumerate().map(move |(at, word)| (at, word & !old(at)));
        new.filter(|(_, word)| *word != 0).flat_map(|(at, word)| {
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| at * 64 + bit)
        })
    }
}
