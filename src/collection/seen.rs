//! The crawler's question: is there a lookalike? If not, add it. Answered as one step: of two lookalikes that come at the same
//! time, one is seen.

use std::collections::HashSet;

use super::{
    Change, Collection, Entry, IfExists,
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
        let texts = self.texts_of(entries)?;
        let ids: Vec<&str> = entries.iter().map(|entry| entry.id.as_str()).collect();
        let near = self.write(&ids, |changes| {
            let near = self.near_of(entries, radius)?;
            let mut batch = Batch::new(entries.len());
            for ((entry, text), near) in entries.iter().zip(texts).zip(near) {
                match batch.nearest(near) {
                    Some(seen) => batch.next(Some(seen), None),
                    None => {
                        changes.put(entry, text, IfExists::Replace)?;
                        let replaced = changes.changes.last().and_then(Change::removes);
                        batch.gone.extend(replaced);
                        batch.next(None, Some(changes.rows.log));
                    }
                }
            }
            Ok(batch.near)
        })?;
        self.seen_of(entries, &near)
    }

    /// What is within the radius of each entry: records, and entries before it.
    fn near_of(&self, entries: &[Entry], radius: u32) -> Result<Vec<Around>> {
        let mut queries = Signatures::new(self.about.bits)?;
        entries.iter().try_for_each(|entry| queries.push(&entry.signature))?;
        let snapshot = self.snapshot();
        let (found, _) = snapshot.within((&queries).into(), radius, How::Index(None), None)?;
        let alike = alike(&queries, radius)?;
        let around = found.into_iter().enumerate().map(|(at, records)| {
            let before = alike.of(at).iter().filter(|near| (near.row as usize) < at);
            Around { records, entries: before.copied().collect() }
        });
        Ok(around.collect())
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

/// What is within the radius of an entry, nearest first.
struct Around {
    records: Vec<Found>,
    /// Entries of the batch before it.
    entries: Vec<Neighbor>,
}

/// A lookalike: a record, or another entry of the batch and its distance.
#[derive(Debug, Clone, Copy)]
enum Near {
    Stored(Found),
    Entry(usize, u32),
}

/// A batch as it is worked through, entry by entry: what comes later sees what was done for those before it.
struct Batch {
    near: Vec<Option<Near>>,
    /// The position of each entry that was added.
    added: Vec<Option<u64>>,
    /// Positions of records that entries took the place of.
    gone: HashSet<u64>,
}

impl Batch {
    fn new(entries: usize) -> Self {
        let (near, added) = (Vec::with_capacity(entries), Vec::with_capacity(entries));
        Batch { near, added, gone: HashSet::new() }
    }

    /// The nearest lookalike that is there still, and of several the oldest.
    fn nearest(&self, around: Around) -> Option<Near> {
        let there = |position: &u64| !self.gone.contains(position);
        let stored = around.records.into_iter().find(|found| there(&found.position));
        let mut entries = around.entries.iter();
        let entry = entries.find(|near| self.added[near.row as usize].is_some_and(|at| there(&at)));
        let entry = entry.map(|near| Near::Entry(near.row as usize, near.distance));
        match (stored, entry) {
            // Records are older than what is added now.
            (Some(found), Some(Near::Entry(_, distance))) if distance < found.distance => entry,
            (Some(found), _) => Some(Near::Stored(found)),
            (None, entry) => entry,
        }
    }

    fn next(&mut self, near: Option<Near>, added: Option<u64>) {
        self.near.push(near);
        self.added.push(added);
    }
}

/// Which rows of a batch are within the radius of each other.
fn alike(rows: &Signatures, radius: u32) -> Result<Answers> {
    let mut found = Answers::new();
    let method = Method::usual(rows.bits(), rows.len());
    Tables::build(rows, method, Build::default())?.within(rows.into(), radius, &mut found)?;
    Ok(found)
}
