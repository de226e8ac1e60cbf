//! The crawler's question: is there a lookalike? If not, add it. Answered as one step: of two lookalikes that come at the same
//! time, one is seen.

use std::collections::HashSet;

use super::{
    Applied, Collection, Entry, IfExists, apply,
    snapshot::{Found, How},
};
use crate::{
    Result, Signatures,
    index::{Answers, Build, Index, Method, Neighbor, Tables},
};

/// What became of an entry that was to be added unless it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// There is a lookalike: the nearest, and of several the oldest.
    Before {
        /// Its id.
        id: String,
        /// How many bits differ.
        distance: u32,
    },
    /// There was none, so it was added.
    Added,
}

impl Collection {
    /// Adds each entry that has no lookalike within the radius: neither in the collection nor among the entries before
    /// it. In one transaction; when this returns, those that were added are durable.
    pub fn seen_or_add(&self, entries: &[Entry], radius: u32) -> Result<Vec<Seen>> {
        entries.iter().try_for_each(|entry| self.check_entry(entry))?;
        let changes = self.changes_of(entries)?;
        let mut store = self.store();
        let mut near = Vec::new();
        let (new, applied) = self.write(store.as_mut(), |this, store| {
            this.catch_up(store)?;
            near = this.nearest_of(entries, radius)?;
            let new: Vec<usize> = (0..entries.len()).filter(|&at| near[at].is_none()).collect();
            let changes: Vec<_> = new.iter().map(|&at| changes[at].clone()).collect();
            Ok((new, apply(store, &changes, IfExists::Replace)?))
        })?;
        let mut all = vec![Applied::default(); entries.len()];
        new.into_iter().zip(applied).for_each(|(at, applied)| all[at] = applied);
        self.publish(store.as_mut(), entries, &all)?;
        drop(store);
        self.seen_of(entries, &near)
    }

    /// The nearest lookalike of each entry, in the collection or among the entries before it that have none.
    fn nearest_of(&self, entries: &[Entry], radius: u32) -> Result<Vec<Option<Near>>> {
        let mut queries = Signatures::new(self.about.bits)?;
        entries.iter().try_for_each(|entry| queries.push(&entry.signature))?;
        let snapshot = self.snapshot();
        let mut near = Vec::with_capacity(entries.len());
        let all: Vec<usize> = (0..entries.len()).collect();
        for block in all.chunks(BLOCK) {
            let block = rows_of(&queries, block)?;
            let (found, _) = snapshot.within((&block).into(), radius, How::Index(None), None)?;
            let stored = |found: &Vec<Found>| found.first().map(|found| Near::Stored(*found));
            near.extend(found.iter().map(stored));
        }
        look_into_batch(&queries, radius, &mut near)?;
        Ok(near)
    }

    fn seen_of(&self, entries: &[Entry], near: &[Option<Near>]) -> Result<Vec<Seen>> {
        let stored = near.iter().flatten().filter_map(|near| match near {
            Near::Stored(found) => Some(found.position),
            Near::Entry(..) => None,
        });
        let positions: Vec<u64> = stored.collect();
        let mut records = match positions.is_empty() {
            true => Vec::new(),
            false => self.with_reader(|store| store.records(&positions, false))?,
        }
        .into_iter();
        let seen = |near: &Option<Near>| match near {
            None => Seen::Added,
            Some(Near::Entry(at, distance)) => {
                Seen::Before { id: entries[*at].id.clone(), distance: *distance }
            }
            Some(Near::Stored(found)) => {
                let record = records.next().flatten();
                let id = record.map_or_else(String::new, |record| record.id);
                Seen::Before { id, distance: found.distance }
            }
        };
        Ok(near.iter().map(seen).collect())
    }
}

/// A lookalike: a record, or another entry of the batch and its distance.
#[derive(Debug, Clone, Copy)]
enum Near {
    Stored(Found),
    Entry(usize, u32),
}

/// So many entries are asked for at a time: a page may have very many copies, and all of them are near each.
const BLOCK: usize = 1024;

/// Entries that are new may be alike: finds the nearest one before each that is added.
fn look_into_batch(queries: &Signatures, radius: u32, near: &mut [Option<Near>]) -> Result<()> {
    let new: Vec<usize> = (0..near.len()).filter(|&at| near[at].is_none()).collect();
    // Of copies only the first can be added, so the others need not be found.
    let mut seen = HashSet::with_capacity(new.len());
    let firsts: Vec<usize> =
        new.iter().copied().filter(|&at| seen.insert(queries.row(at))).collect();
    let rows = rows_of(queries, &firsts)?;
    let method = Method::usual(rows.bits(), rows.len());
    let tables = Tables::build(&rows, method, Build::default())?;
    let mut found = Answers::new();
    for block in new.chunks(BLOCK) {
        tables.within((&rows_of(queries, block)?).into(), radius, &mut found)?;
        for (&at, alike) in block.iter().zip(found.iter()) {
            let entry = |alike: &Neighbor| (firsts[alike.row as usize], alike.distance);
            let mut earlier = alike.iter().map(entry).filter(|(entry, _)| *entry < at);
            let added = earlier.find(|(entry, _)| near[*entry].is_none());
            near[at] = added.map(|(entry, distance)| Near::Entry(entry, distance));
        }
    }
    Ok(())
}

/// Some rows of a matrix.
fn rows_of(signatures: &Signatures, rows: &[usize]) -> Result<Signatures> {
    let mut some = Signatures::new(signatures.bits())?;
    rows.iter().try_for_each(|&row| some.push_row_of(signatures, row))?;
    Ok(some)
}
