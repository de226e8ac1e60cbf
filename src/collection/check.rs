//! The check of a whole collection: are the records what they were, and do the segments agree with them?

use std::{fmt, slice};

use super::{
    Collection, Snapshot,
    ids::hash_of,
    load::{Loaded, load},
    part::{LivePart, part_of},
    store::Logged,
};
use crate::{Result, signature::words_of_bytes};

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Checked {
    /// How many records there are.
    pub records: u64,
    /// How many segments were compared with them.
    pub segments: usize,
    /// What is wrong.
    pub problems: Vec<String>,
}

/// Problems beyond this many are not listed.
const MOST_PROBLEMS: usize = 100;

impl Collection {
    /// Reads everything: the checksum of every record and of every segment, and whether segments and records agree.
    pub fn check(&self) -> Result<Checked> {
        self.with_reader(|store| {
            let mut checked = Checked { problems: store.check()?, ..Checked::default() };
            let Loaded { snapshot, refused, .. } = load(store, &self.place.segments())?;
            let refused = refused.iter().map(|(_, error)| error.to_string());
            checked.problems.extend(refused);
            let saved = snapshot.parts().filter(|part| part.saved);
            checked.segments = saved.count();
            let mut rows = Compared::new(&snapshot);
            let all = 1..snapshot.position() + 1;
            store.read(slice::from_ref(&all), snapshot.position(), &mut |logged| {
                match logged {
                    Logged::Added { position, id, signature } => {
                        checked.records += 1;
                        checked.note(rows.compare(position, id, words_of_bytes(signature)));
                    }
                    // While we read: it was right that a segment had it.
                    Logged::Removed(position) => rows.live -= usize::from(rows.has(position)),
                }
                Ok(())
            })?;
            let more = rows.live as i64 - rows.compared as i64;
            if more != 0 {
                checked.note(Some(format!(
                    "segments have {more} records that the store does not have"
                )));
            }
            Ok(checked)
        })
    }
}

impl Checked {
    fn note(&mut self, problem: Option<impl fmt::Display>) {
        if self.problems.len() < MOST_PROBLEMS {
            self.problems.extend(problem.map(|problem| problem.to_string()));
        }
    }
}

/// The rows of a snapshot as they are compared with records.
struct Compared<'a> {
    snapshot: &'a Snapshot,
    live: usize,
    compared: usize,
}

impl<'a> Compared<'a> {
    fn new(snapshot: &'a Snapshot) -> Self {
        Compared { snapshot, live: snapshot.len(), compared: 0 }
    }

    /// The part and the row of a record.
    fn row_of(&self, position: u64) -> Option<(&'a LivePart, usize)> {
        let parts = &self.snapshot.parts;
        let live = &parts[part_of(parts, position)?];
        let row = live.part.row_of(position)?;
        (!live.removed.contains(row)).then_some((live, row))
    }

    fn has(&self, position: u64) -> bool {
        self.row_of(position).is_some()
    }

    /// What is wrong with the row of a record, if anything is.
    fn compare(
        &mut self,
        position: u64,
        id: &str,
        words: impl Iterator<Item = u64>,
    ) -> Option<String> {
        let Some((live, row)) = self.row_of(position) else {
            return Some(format!("no segment has the record at position {position}"));
        };
        self.compared += 1;
        let known = live.part.ids.rows_of(hash_of(id)).contains(&(row as u32));
        let same = known && live.part.signatures.row(row).iter().copied().eq(words);
        (!same).then(|| {
            format!("a segment has another id or signature for the record at position {position}")
        })
    }
}
