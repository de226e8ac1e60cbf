//! The crawler's question: is there a lookalike? If not, add it. Answered as one step: of two lookalikes that come at the same
//! time, one is seen.

use super::{
    Applied, Collection, Entry, IfExists, apply,
    snapshot::{Found, How},
};
use crate::{
    Result, Signatures,
    index::{Answers, Build, Index, Method, Tables},
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
        let (found, _) = snapshot.within((&queries).into(), radius, How::Index(None), None)?;
        let stored = |found: &Vec<Found>| found.first().map(|found| Near::Stored(*found));
        let mut near: Vec<Option<Near>> = found.iter().map(stored).collect();
        // Those that are new may be alike.
        let new: Vec<usize> = (0..near.len()).filter(|&at| near[at].is_none()).collect();
        let mut rows = Signatures::new(self.about.bits)?;
        new.iter().try_for_each(|&at| rows.push_row_of(&queries, at))?;
        let alike = alike(&rows, radius)?;
        for (row, &at) in new.iter().enumerate() {
            let earlier = alike.of(row).iter().filter(|near| (near.row as usize) < row);
            let mut added = earlier.filter(|earlier| near[new[earlier.row as usize]].is_none());
            let first =
                added.next().map(|first| Near::Entry(new[first.row as usize], first.distance));
            near[at] = first;
        }
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

/// Which rows of a batch are within the radius of each other.
fn alike(rows: &Signatures, radius: u32) -> Result<Answers> {
    let mut found = Answers::new();
    let method = Method::usual(rows.bits(), rows.len());
    Tables::build(rows, method, Build::default())?.within(rows.into(), radius, &mut found)?;
    Ok(found)
}
