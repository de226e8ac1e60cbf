//! The crawler's question: is there a lookalike? If not, add it. Answered as one step: of two lookalikes that come at the same
//! time, one is seen.

use std::collections::{HashMap, HashSet};

use super::{
    Change, Collection, Entry, IfExists,
    snapshot::{Bounds, Found, How, Snapshot},
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
        self.check_entries(entries)?;
        let texts = self.texts_of(entries)?;
        let ids: Vec<&str> = entries.iter().map(|entry| entry.id.as_str()).collect();
        let near = self.write(&ids, |changes| {
            let snapshot = self.snapshot();
            let mut batch = Batch::new(self.about.bits, entries, radius)?;
            let mut coming = entries.iter().zip(texts);
            for start in (0..entries.len()).step_by(BLOCK) {
                for around in batch.around(&snapshot, start)? {
                    let Some((entry, text)) = coming.next() else { break };
                    let near = batch.nearest(&snapshot, &around)?;
                    if near.is_none() {
                        changes.put(entry, text, IfExists::Replace)?;
                        batch.added(changes.rows.log, changes.changes.last());
                    }
                    batch.near.push(near);
                }
            }
            Ok(batch.near)
        })?;
        self.seen_of(entries, &near)
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

/// So many entries are asked for at a time: a page may have very many copies, and all of them are near each.
const BLOCK: usize = 1024;

/// What is within the radius of an entry.
struct Around {
    /// The nearest record.
    record: Option<Found>,
    /// Which of the different signatures of the batch.
    signatures: Vec<Neighbor>,
}

/// A lookalike: a record, or another entry of the batch and its distance.
#[derive(Debug, Clone, Copy)]
enum Near {
    Stored(Found),
    Entry(usize, u32),
}

/// A batch as it is worked through, entry by entry: what comes later sees what was done for those before it.
struct Batch {
    queries: Signatures,
    radius: u32,
    /// The different signatures: of copies at most one is there at a time.
    distinct: Tables<'static>,
    /// Which of them each entry has.
    which: Vec<usize>,
    /// Of each of them the entry that was added with it last, and its position.
    there: Vec<Option<(usize, u64)>>,
    /// Positions of records that entries took the place of.
    gone: HashSet<u64>,
    /// The lookalike of each entry so far.
    near: Vec<Option<Near>>,
}

impl Batch {
    fn new(bits: u32, entries: &[Entry], radius: u32) -> Result<Self> {
        let (mut queries, mut distinct) = (Signatures::new(bits)?, Signatures::new(bits)?);
        let (mut known, mut which) = (HashMap::new(), Vec::with_capacity(entries.len()));
        for entry in entries {
            queries.push(&entry.signature)?;
            let next = known.len();
            let number = *known.entry(entry.signature.words()).or_insert(next);
            which.push(number);
            if number == next {
                distinct.push(&entry.signature)?;
            }
        }
        let method = Method::usual(bits, distinct.len());
        Ok(Batch {
            queries,
            radius,
            which,
            there: vec![None; distinct.len()],
            distinct: Tables::build(distinct, method, Build::default())?,
            gone: HashSet::new(),
            near: Vec::with_capacity(entries.len()),
        })
    }

    /// What is around each entry of the block that begins with one.
    fn around(&self, snapshot: &Snapshot, start: usize) -> Result<Vec<Around>> {
        let mut block = Signatures::new(self.queries.bits())?;
        let rows = start..(start + BLOCK).min(self.queries.len());
        rows.into_iter().try_for_each(|row| block.push_row_of(&self.queries, row))?;
        let records = snapshot.nearest_within((&block).into(), self.radius)?;
        let mut signatures = Answers::new();
        self.distinct.within((&block).into(), self.radius, &mut signatures)?;
        let around = records.into_iter().zip(signatures.iter());
        Ok(around.map(|(record, near)| Around { record, signatures: near.to_vec() }).collect())
    }

    /// The nearest lookalike of the next entry that is there still, and of several the oldest.
    fn nearest(&self, snapshot: &Snapshot, around: &Around) -> Result<Option<Near>> {
        let is_there = |position: u64| !self.gone.contains(&position);
        let stored = match around.record {
            // An entry before this one took its place: which is the next?
            Some(found) if !is_there(found.position) => {
                let query = Signatures::from(self.queries.get(self.near.len()));
                let how = How::Index(None);
                let (found, _) =
                    snapshot.within((&query).into(), self.radius, how, Bounds::NONE, None)?;
                found[0].iter().copied().find(|found| is_there(found.position))
            }
            record => record,
        };
        let entries = around.signatures.iter().filter_map(|near| {
            let (entry, position) = self.there[near.row as usize]?;
            is_there(position).then_some((near.distance, entry))
        });
        Ok(match (stored, entries.min()) {
            // Records are older than what is added now.
            (Some(found), entry)
                if entry.is_none_or(|(distance, _)| found.distance <= distance) =>
            {
                Some(Near::Stored(found))
            }
            (_, entry) => entry.map(|(distance, entry)| Near::Entry(entry, distance)),
        })
    }

    /// Takes note that the next entry was added, by a change, at a position.
    fn added(&mut self, position: u64, change: Option<&Change<'_>>) {
        self.gone.extend(change.and_then(Change::removes));
        let entry = self.near.len();
        self.there[self.which[entry]] = Some((entry, position));
    }
}
