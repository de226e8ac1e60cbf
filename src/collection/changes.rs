//! Changes: what becomes of entries and ids, given what is there already.

use std::collections::HashMap;

use rayon::prelude::*;

use super::{
    Entry,
    ids::hash_of,
    part::Rows,
    snapshot::Snapshot,
    store::{Change, Store},
};
use crate::{Error, Result};

/// What becomes of an entry whose id is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IfExists {
    /// It takes the place of what is there.
    #[default]
    Replace,
    /// It is left out.
    Skip,
    /// Nothing of its batch is written.
    Error,
}

/// What became of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// It was added.
    Added,
    /// It took the place of what was there.
    Replaced,
    /// It was left out: its id is there already.
    Skipped,
}

/// Changes that follow a snapshot, and what the snapshot is to take up of them.
pub(super) struct Changes<'a> {
    pub(super) changes: Vec<Change<'a>>,
    /// The rows that are new at the end.
    pub(super) rows: Rows,
    /// The positions of records that were there before and are not at the end.
    pub(super) removed: Vec<u64>,
    /// Where ids of this batch are now; none for those that are removed.
    there: HashMap<&'a str, Option<u64>>,
    before: u64,
}

impl<'a> Changes<'a> {
    /// No changes yet. `ids` are those that changes will be about.
    pub(super) fn new(snapshot: &Snapshot, store: &mut dyn Store, ids: &[&'a str]) -> Result<Self> {
        let found = find(snapshot, store, ids)?;
        let before = snapshot.position();
        Ok(Changes {
            changes: Vec::with_capacity(ids.len()),
            rows: Rows::new(snapshot.end()..before + 1, before),
            removed: Vec::new(),
            there: ids.iter().copied().zip(found).collect(),
            before,
        })
    }

    /// Adds an entry.
    pub(super) fn put(
        &mut self,
        entry: &'a Entry,
        text: Option<Vec<u8>>,
        if_exists: IfExists,
    ) -> Result<Put> {
        let replaces = self.there.get(entry.id.as_str()).copied().flatten();
        match (replaces, if_exists) {
            (Some(_), IfExists::Skip) => return Ok(Put::Skipped),
            (Some(_), IfExists::Error) => return Err(Error::IdExists { id: entry.id.clone() }),
            _ => {}
        }
        self.make(Change::Put { entry, text, replaces });
        let position = self.rows.log;
        self.rows.push(position, &entry.id, entry.signature.words().iter().copied());
        self.there.insert(&entry.id, Some(position));
        Ok(if replaces.is_some() { Put::Replaced } else { Put::Added })
    }

    /// Removes the record of an id; whether there is one.
    pub(super) fn remove(&mut self, id: &'a str) -> bool {
        let Some(position) = self.there.insert(id, None).flatten() else { return false };
        self.make(Change::Remove(position));
        true
    }

    fn make(&mut self, change: Change<'a>) {
        self.rows.log += 1;
        self.rows.stretch.end = self.rows.log + 1;
        self.removed.extend(change.removes());
        self.changes.push(change);
    }

    /// Whether there is nothing to do.
    pub(super) fn is_empty(&self) -> bool {
        self.rows.log == self.before
    }
}

/// Fewer ids than this are sooner looked up than shared among threads.
const SHARED_FROM: usize = 4096;

/// The positions of the records of some ids.
pub(super) fn find(
    snapshot: &Snapshot,
    store: &mut dyn Store,
    ids: &[&str],
) -> Result<Vec<Option<u64>>> {
    let look = |id: &&str| snapshot.positions_of(hash_of(id));
    let mut found: Vec<Vec<u64>> = match ids.len() < SHARED_FROM {
        true => ids.iter().map(look).collect(),
        false => ids.par_iter().map(look).collect(),
    };
    // Those that have the hash: the store knows whether they have the id.
    let asked: Vec<usize> = (0..ids.len()).filter(|&at| !found[at].is_empty()).collect();
    let positions: Vec<u64> = asked.iter().flat_map(|&at| found[at].iter().copied()).collect();
    let mut records = store.records(&positions, false)?.into_iter();
    for &at in &asked {
        let count = found[at].len();
        let right = records.by_ref().take(count).flatten().filter(|record| record.id == ids[at]);
        found[at] = right.map(|record| record.position).collect();
    }
    Ok(found.into_iter().map(|positions| positions.first().copied()).collect())
}

impl Snapshot {
    /// The positions of the records whose ids have a hash.
    fn positions_of(&self, hash: u64) -> Vec<u64> {
        let parts = self.parts.iter().flat_map(|live| {
            let rows = live.part.ids.rows_of(hash).iter().map(|&row| row as usize);
            rows.filter(|&row| !live.removed.contains(row)).map(|row| live.part.positions()[row])
        });
        parts.collect()
    }
}
