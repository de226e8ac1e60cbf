//! Stores: where records are kept for good. A database that people trust, asked through one trait.
//!
//! The records are the change log. A record's position is its place in the log; a record that is replaced or removed keeps
//! its row, which notes the position of that change, until it is purged. So whoever has read the log up to a position reads
//! the rest of it as two short lists: records after it, and records that were removed after it.

use std::{fmt, ops::Range, path::Path};

use serde::{Deserialize, Serialize};

use super::{Entry, Record};
use crate::{Error, Recipe, Result, Signature};

/// What a collection says about itself, said when it is created.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// A random name, by which segments know their store.
    pub id: String,
    /// The width of the signatures.
    pub bits: u32,
    /// The recipe that makes them; none for signatures from elsewhere.
    pub recipe: Option<Recipe>,
    /// What is kept of documents beside signature and payload.
    pub keeps: Keeps,
    /// Which index its segments have.
    pub index: super::Kept,
    /// When it was created, in milliseconds since 1970.
    pub created: i64,
}

impl About {
    /// As a store keeps it.
    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("plain data becomes JSON")
    }

    /// From what a store keeps, or what is wrong with that.
    pub(super) fn from_json(json: &str) -> Result<Self, String> {
        serde_json::from_str(json)
            .map_err(|error| format!("says of itself what cannot be read: {error}"))
    }

    /// A signature of another width is refused.
    pub(super) fn check_width(&self, signature: &Signature) -> Result<()> {
        match signature.bits() == self.bits {
            true => Ok(()),
            false => Err(Error::WidthMismatch { stored: self.bits, given: signature.bits() }),
        }
    }
}

/// What is kept of documents beside signature and payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Keeps {
    /// How weak each bit is.
    pub margins: bool,
    /// The texts, compressed.
    pub texts: bool,
}

/// A change to be made. Each takes a position of the log.
#[derive(Debug, Clone)]
pub enum Change<'a> {
    /// Add a record.
    Put {
        /// What is to be kept.
        entry: &'a Entry,
        /// Its text as it is stored.
        text: Option<Vec<u8>>,
        /// The position of the record that it takes the place of; it may be one of the same batch.
        replaces: Option<u64>,
    },
    /// Remove the record at a position.
    Remove(u64),
}

impl Change<'_> {
    /// The position of the record that is there no more after it.
    pub fn removes(&self) -> Option<u64> {
        match *self {
            Change::Put { replaces, .. } => replaces,
            Change::Remove(position) => Some(position),
        }
    }
}

/// Where a log ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct End {
    /// The position of the last change; 0 if there was none.
    pub position: u64,
    /// Records that were removed up to here are gone, so whoever has read less of the log has to read all of it again.
    pub purged: u64,
}

/// A line of the log.
#[derive(Debug, Clone, Copy)]
pub enum Logged<'a> {
    /// A record that is there, in the order of positions.
    Added {
        /// Its position.
        position: u64,
        /// Its id.
        id: &'a str,
        /// The bytes of its signature.
        signature: &'a [u8],
    },
    /// The position of a record that is there no more.
    Removed(u64),
}

/// How many records there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Those that are there.
    pub records: u64,
    /// Those that were removed and not yet purged.
    pub removed: u64,
}

/// A database with the records of one collection: a connection to it. What was committed survives a crash.
///
/// Whatever is read is checked against the checksums of the records, and damage is an error.
pub trait Store: Send + fmt::Debug {
    /// What the collection says about itself.
    fn about(&self) -> &About;

    /// Where the log ends now.
    fn end(&mut self) -> Result<End>;

    /// Begins a transaction that writes, and waits for those of others. Nobody else adds to the log until it ends.
    fn begin(&mut self) -> Result<End>;

    /// Makes changes, within a transaction: the first takes the position after the end of the log, and so on. `time` is when
    /// they are made. That an id is there once is for whoever calls to know: a database that looks for each would spend
    /// most of its time on that.
    fn apply(&mut self, changes: &[Change<'_>], time: i64) -> Result<()>;

    /// Ends the transaction; when this returns, its changes are durable.
    fn commit(&mut self) -> Result<()>;

    /// Ends the transaction as if it had not been, if there is one.
    fn roll_back(&mut self);

    /// Reads parts of the log at one moment: records in ranges of positions, in order, if they are there still; and the
    /// positions of records that were removed after a position. Gives the end of the log at that moment.
    fn read(
        &mut self,
        ranges: &[Range<u64>],
        removed_after: u64,
        each: &mut dyn FnMut(Logged<'_>) -> Result<()>,
    ) -> Result<End>;

    /// The records at these positions, removed ones included as long as they are not purged.
    fn records(&mut self, positions: &[u64], texts: bool) -> Result<Vec<Option<Record>>>;

    /// Every record that is there, in the order of the log, all of one moment.
    fn each(&mut self, texts: bool, each: &mut dyn FnMut(Record) -> Result<()>) -> Result<()>;

    /// How many records there are.
    fn counts(&mut self) -> Result<Counts>;

    /// Forgets records that were removed at positions up to this one; how many they were.
    fn purge(&mut self, up_to: u64) -> Result<u64>;

    /// How many slices of signatures have a B-tree index in the database; none if there is no slice table.
    fn slices(&mut self) -> Result<Option<u32>>;

    /// Makes B-tree indexes of so many slices, or of none, in place of those that are there. Searches go on meanwhile.
    fn reslice(&mut self, slices: Option<u32>) -> Result<()>;

    /// Positions and distances of the records within the radius, found by the database alone: by its slices, or by the
    /// distance to every record. Nearest first, ties by position.
    fn within(&mut self, query: &Signature, radius: u32, how: BySql) -> Result<Vec<(u64, u32)>>;

    /// Moves what was committed from where it was logged to where it stays, as far as nobody is in the way.
    fn checkpoint(&mut self) -> Result<()> {
        Ok(())
    }

    /// Looks at the whole database; what is wrong with it.
    fn check(&mut self) -> Result<Vec<String>>;

    /// Copies the database as it is at one moment, while others write.
    fn backup(&mut self, to: &Path) -> Result<()>;

    /// How many bytes the database takes.
    fn bytes(&mut self) -> Result<u64>;
}

/// How a database finds records near a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BySql {
    /// Records that have one of so many slices as the query has it, by B-tree index; then their distances.
    Slices(u32),
    /// The distance to every record.
    EveryRecord,
}

/// The version of a store's tables, if this program knows it, or what is wrong with it.
pub(super) fn known_version(version: i64, newest: usize) -> Result<usize, String> {
    match usize::try_from(version) {
        Ok(version) if (1..=newest).contains(&version) => Ok(version),
        _ => Err(format!("has version {version}; this program reads up to version {newest}")),
    }
}

#[cfg(test)]
pub(super) mod tests;
