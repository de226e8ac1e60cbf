//! Entries go into a collection batch by batch.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use lookalike::collection::{Collection, Entry, IfExists, Put, Seen};
use serde_json::json;

use crate::output::print;

/// How entries are added.
#[derive(Debug, Clone, Copy)]
pub(super) enum How {
    Put(IfExists),
    /// If there is nothing within the radius.
    UnlessSeen(u32),
}

/// Entries that wait to be written together, and what became of those before them.
pub(super) struct Batches<'a> {
    pub(super) collection: &'a Collection,
    pub(super) totals: Totals,
    how: How,
    /// The most entries of a batch.
    most: usize,
    json: bool,
    waiting: Vec<Entry>,
    waiting_bytes: usize,
    durable: Durable,
}

/// How many entries are in for good, for all threads to see.
#[derive(Debug, Clone, Default)]
pub(super) struct Durable(Arc<AtomicU64>);

impl Durable {
    pub(super) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self, entries: usize) {
        self.0.fetch_add(entries as u64, Ordering::Relaxed);
    }
}

/// What became of all entries.
#[derive(Debug, Default)]
pub(super) struct Totals {
    pub(super) added: u64,
    pub(super) replaced: u64,
    /// Their ids were there already.
    pub(super) skipped: u64,
    /// There were lookalikes.
    pub(super) seen: u64,
}

/// A batch of more bytes than this is written, however few entries they are.
const MOST_BYTES: usize = 64 << 20;

impl<'a> Batches<'a> {
    pub(super) fn new(
        collection: &'a Collection,
        how: How,
        most: usize,
        durable: Durable,
        json: bool,
    ) -> Self {
        Batches {
            collection,
            totals: Totals::default(),
            how,
            most,
            json,
            waiting: Vec::new(),
            waiting_bytes: 0,
            durable,
        }
    }

    pub(super) fn push(&mut self, entry: Entry) -> anyhow::Result<()> {
        self.waiting_bytes += bytes_of(&entry);
        self.waiting.push(entry);
        match self.waiting.len() >= self.most || self.waiting_bytes >= MOST_BYTES {
            true => self.write(),
            false => Ok(()),
        }
    }

    /// Writes what waits.
    pub(super) fn write(&mut self) -> anyhow::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let entries = std::mem::take(&mut self.waiting);
        self.waiting_bytes = 0;
        match self.how {
            How::Put(if_exists) => {
                let put = self.collection.put(&entries, if_exists)?;
                self.durable.add(entries.len());
                put.into_iter().for_each(|put| self.totals.note(put));
                Ok(())
            }
            How::UnlessSeen(radius) => {
                let seen = self.collection.seen_or_add(&entries, radius)?;
                self.durable.add(entries.len());
                self.tell_seen(&entries, &seen)
            }
        }
    }

    /// A line for each document, or for people, for each that was seen.
    fn tell_seen(&mut self, entries: &[Entry], seen: &[Seen]) -> anyhow::Result<()> {
        let mut lines = Vec::new();
        for (Entry { id, .. }, seen) in entries.iter().zip(seen) {
            match seen {
                Seen::Added => self.totals.added += 1,
                Seen::Before { .. } => self.totals.seen += 1,
            }
            match (seen, self.json) {
                (Seen::Added, true) => lines.push(json!({ "id": id, "seen": false }).to_string()),
                (Seen::Added, false) => {}
                (Seen::Before { id: other, distance }, true) => {
                    let line =
                        json!({ "id": id, "seen": true, "lookalike": other, "distance": distance });
                    lines.push(line.to_string());
                }
                (Seen::Before { id: other, distance }, false) => {
                    lines.push(format!("{id} looks like {other} (distance {distance})"));
                }
            }
        }
        match lines.is_empty() {
            true => Ok(()),
            false => print(lines.join("\n")),
        }
    }
}

impl Totals {
    fn note(&mut self, put: Put) {
        match put {
            Put::Added => self.added += 1,
            Put::Replaced => self.replaced += 1,
            Put::Skipped => self.skipped += 1,
        }
    }
}

/// About what an entry takes while it waits.
fn bytes_of(entry: &Entry) -> usize {
    let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let margins = entry.margins.as_ref().map_or(0, Vec::len);
    let signature = entry.signature.bits() as usize / 8;
    entry.id.len() + signature + margins + length(&entry.payload) + length(&entry.text)
}
