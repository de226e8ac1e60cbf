//! The collection: where documents stay. Added, replaced, removed and searched at the same time, with where each comes from.
//!
//! ```
//! use lookalike::collection::{Ask, Collection, Entry, IfExists, Settings};
//! use lookalike::{Recipe, Signatures, Signer, recipe::Scratch, search::Question};
//!
//! let folder = tempfile::tempdir()?;
//! let recipe = Recipe::named("text").unwrap();
//! let collection = Collection::create(&folder.path().join("news"), Settings::of_recipe(recipe.clone()))?;
//!
//! let signer = Signer::new(recipe, None)?;
//! let sign = |text: &str| signer.sign_text(text, &mut Scratch::default()).unwrap().signature;
//! let mut entry = Entry::new("a1", sign("The harbour reopened on Monday after a storm had closed it for two days."));
//! entry.payload = Some(r#"{"source": "harbour.example"}"#.to_owned());
//! collection.put(&[entry], IfExists::Replace)?;
//!
//! let query = sign("The harbour reopened on Monday after the storm had closed it for two days.");
//! let query = Signatures::from(query);
//! let hits = collection.search((&query).into(), &Ask::new(Question::Within(80)))?;
//! assert_eq!(hits.of[0][0].record.id, "a1");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The truth is in a [`Store`], a database: what it has committed survives every crash. Everything else is derived from
//! it: parts of the log with an index each, saved in segments beside the store and merged in the background. A
//! [`Snapshot`] is the parts of one moment, and what is written meanwhile does not touch it.

mod changes;
mod check;
mod clusters;
mod filter;
mod ids;
mod kept;
mod load;
mod merge;
mod part;
mod place;
#[cfg(feature = "postgres")]
mod postgres;
mod record;
mod search;
mod seen;
mod segment;
mod slices;
mod snapshot;
mod sqlite;
mod store;
mod time;

use std::{
    fs,
    path::{Path, PathBuf},
    slice,
    sync::{Arc, Mutex, MutexGuard},
    time::{SystemTime, UNIX_EPOCH},
};

use rayon::prelude::*;

pub use changes::{IfExists, Put};
pub use check::Checked;
pub use clusters::{AboutCluster, Cluster, ClusterOrder, ClusterSettings, Clustered};
pub use filter::Filter;
pub use kept::Kept;
pub use place::StoredIn;
pub use record::{Entry, Record};
pub use search::{Ask, Asking, By, Hit, Hits};
pub use seen::Seen;
pub use slices::{guarantee, slices_for};
pub use snapshot::{Found, PartAbout, Snapshot};
pub use store::{About, BySql, Change, Counts, End, Keeps, Logged, Store};
pub use time::rfc3339;

use self::{
    changes::{Changes, find},
    load::{Loaded, load},
    merge::{Current, Merging},
    part::Rows,
    place::{Lock, Place},
    record::pack,
};
use crate::{
    Error, Recipe, Result, Signer,
    features::terms::TermStatistics,
    index::Queries,
    signature::{check_width, words_of_bytes},
    table::Distinct,
};

/// What a new collection is to be.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The width of the signatures.
    pub bits: u32,
    /// The recipe that makes them; none for signatures from elsewhere.
    pub recipe: Option<Recipe>,
    /// What is kept of documents beside signature and payload.
    pub keeps: Keeps,
    /// Which index its segments have.
    pub index: Kept,
    /// Where the records are.
    pub store: StoredIn,
}

impl Settings {
    /// A collection of documents that are signed by a recipe.
    pub fn of_recipe(recipe: Recipe) -> Self {
        Settings { bits: recipe.signature.bits, recipe: Some(recipe), ..Settings::default() }
    }

    /// A collection of signatures from elsewhere.
    pub fn of_bits(bits: u32) -> Self {
        Settings { bits, ..Settings::default() }
    }

    fn about(&self) -> Result<About> {
        check_width(self.bits as usize)?;
        self.index.check(self.bits)?;
        if self.recipe.as_ref().is_some_and(|recipe| recipe.passages.is_some()) {
            let problem = "cuts documents, and a record of a collection has one signature".into();
            return Err(Error::Recipe { field: "passages", problem });
        }
        let (keeps, index) = (self.keeps, self.index.with_shape(self.bits));
        let recipe = self.recipe.clone();
        Ok(About { id: random_name(), bits: self.bits, recipe, keeps, index, created: now() })
    }
}

/// A durable collection, open. Threads share it.
#[derive(Debug)]
pub struct Collection {
    // Dropped first: merges end before anything they need does.
    merging: Mutex<Option<Merging>>,
    place: Place,
    about: About,
    current: Arc<Current>,
    /// The connection that writes, or, of one that only reads, the one that follows the log.
    store: Mutex<Box<dyn Store>>,
    /// Connections for reading that nobody uses.
    readers: Mutex<Vec<Box<dyn Store>>>,
    /// What other processes notice that somebody writes.
    _lock: Option<Lock>,
    writes: bool,
    notes: Vec<String>,
}

/// How many connections wait for the next reader.
const MOST_READERS: usize = 16;

impl Collection {
    /// Makes a new collection in a folder that is not there yet, or empty. If the database has one of that name already,
    /// made with the same recipe, it is joined.
    pub fn create(folder: &Path, settings: Settings) -> Result<Self> {
        let (place, store) = Place::create(folder, &settings.store, &settings.about()?)?;
        Collection::opened(place, store, true)
    }

    /// Whether a folder is a collection.
    pub fn is_in(folder: &Path) -> bool {
        Place::is_in(folder)
    }

    /// Opens a collection to read and write it. With SQLite, one process at a time does.
    pub fn open(folder: &Path) -> Result<Self> {
        let place = Place::open(folder)?;
        let store = place.store()?;
        Collection::opened(place, store, true)
    }

    /// Opens a collection to read it, while others may write.
    pub fn open_reader(folder: &Path) -> Result<Self> {
        let place = Place::open(folder)?;
        let store = place.reader()?;
        Collection::opened(place, store, false)
    }

    fn opened(place: Place, mut store: Box<dyn Store>, writes: bool) -> Result<Self> {
        let lock = if writes { place.lock()? } else { None };
        if writes && lock.is_none() && *place.stored_in() == StoredIn::Sqlite {
            return Err(Error::Locked { path: place.folder().to_owned() });
        }
        let about = store.about().clone();
        let segments = place.segments();
        let Loaded { snapshot, refused, read } = load(store.as_mut(), &segments)?;
        let mut notes: Vec<String> = refused.iter().map(|(_, error)| error.to_string()).collect();
        if !notes.is_empty() {
            notes.push(format!("{read} records were read from the store instead"));
        }
        if lock.is_some() {
            refused.iter().for_each(|(name, _)| name.delete());
        }
        let current = Current::new(snapshot, &about, lock.as_ref().map(|_| segments));
        let merging =
            if writes { Some(current.merge_in_background(|| place.reader())?) } else { None };
        Ok(Collection {
            merging: Mutex::new(merging),
            place,
            about,
            current,
            store: Mutex::new(store),
            readers: Mutex::default(),
            _lock: lock,
            writes,
            notes,
        })
    }

    /// What it says about itself.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        self.place.folder()
    }

    /// Where its records are.
    pub fn stored_in(&self) -> &StoredIn {
        self.place.stored_in()
    }

    /// Where the statistics of terms are that its recipe weighs by.
    pub fn terms(&self) -> PathBuf {
        self.place.terms()
    }

    /// Where its segments are: signatures and indexes, derived from the records. They may be deleted at any time.
    pub fn segments(&self) -> PathBuf {
        self.place.segments()
    }

    /// How much its segments take on the disk.
    pub fn segment_bytes(&self) -> u64 {
        let files = fs::read_dir(self.segments()).into_iter().flatten().flatten();
        files.filter_map(|file| file.metadata().ok()).map(|about| about.len()).sum()
    }

    /// How many of its signatures are distinct. They are sorted for that.
    pub fn count_distinct(&self) -> Result<usize> {
        let (signatures, _) = self.snapshot().rows()?;
        Ok(Distinct::of(&signatures)?.firsts.len())
    }

    /// What was noticed when it was opened: segments that were not to be believed.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// What signs its documents.
    pub fn signer(&self) -> Result<Signer> {
        let Some(recipe) = self.about.recipe.clone() else {
            return Err(Error::Setting {
                name: "the collection",
                problem: "has signatures from elsewhere, and no recipe to sign texts with".into(),
            });
        };
        let path = self.terms();
        let terms = path.exists().then(|| TermStatistics::open(&path)).transpose()?;
        let signer = Signer::new(recipe, terms)?;
        Ok(if self.about.keeps.margins { signer.with_margins() } else { signer })
    }

    fn store(&self) -> MutexGuard<'_, Box<dyn Store>> {
        self.store.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Runs `read` with a connection of its own, so that readers do not wait for the writer.
    pub fn with_reader<T>(&self, read: impl FnOnce(&mut dyn Store) -> Result<T>) -> Result<T> {
        let readers = || self.readers.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let idle = readers().pop();
        let mut reader = idle.map_or_else(|| self.place.reader(), Ok)?;
        let result = read(reader.as_mut());
        // One that failed may be a connection that is lost.
        let mut readers = readers();
        if result.is_ok() && readers.len() < MOST_READERS {
            readers.push(reader);
        }
        result
    }

    /// The collection as it is now; whatever is written later is not in it.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.current.snapshot()
    }

    /// Adds entries, in one transaction; when this returns, they are durable. What became of each.
    pub fn put(&self, entries: &[Entry], if_exists: IfExists) -> Result<Vec<Put>> {
        self.check_entries(entries)?;
        let texts = self.texts_of(entries)?;
        let ids: Vec<&str> = entries.iter().map(|entry| entry.id.as_str()).collect();
        self.write(&ids, |changes| {
            let entries = entries.iter().zip(texts);
            entries.map(|(entry, text)| changes.put(entry, text, if_exists)).collect()
        })
    }

    /// Removes the records of these ids, in one transaction; whether each was there.
    pub fn remove(&self, ids: &[&str]) -> Result<Vec<bool>> {
        self.write(ids, |changes| Ok(ids.iter().map(|id| changes.remove(id)).collect()))
    }

    /// The records of these ids.
    pub fn get(&self, ids: &[&str], texts: bool) -> Result<Vec<Option<Record>>> {
        let snapshot = self.snapshot();
        self.with_reader(|store| {
            let found = find(&snapshot, store, ids)?;
            let positions: Vec<u64> = found.iter().flatten().copied().collect();
            let mut records = store.records(&positions, texts)?.into_iter();
            Ok(found.iter().map(|found| found.and_then(|_| records.next().flatten())).collect())
        })
    }

    /// Asks the collection as it is now.
    pub fn search(&self, queries: Queries<'_>, ask: &Ask<'_>) -> Result<Hits> {
        self.search_in(&self.snapshot(), queries, ask)
    }

    /// Asks the collection as it was.
    pub fn search_in(
        &self,
        snapshot: &Snapshot,
        queries: Queries<'_>,
        ask: &Ask<'_>,
    ) -> Result<Hits> {
        self.check_bits(queries.bits())?;
        self.with_reader(|store| search::ask(snapshot, store, queries, ask))
    }

    /// Follows the log: takes up what other processes wrote. Whether there was anything.
    pub fn refresh(&self) -> Result<bool> {
        let mut store = self.store();
        let before = self.snapshot().position();
        self.follow(store.as_mut())?;
        let changed = self.snapshot().position() != before;
        drop(store);
        // Who follows others has parts to merge as those have.
        if changed && self.merging().is_none() {
            self.start_merging()?;
        }
        Ok(changed)
    }

    /// Makes indexes on slices in the database, so that it finds by itself all within a radius; none for none.
    pub fn reslice(&self, radius: Option<u32>) -> Result<()> {
        self.check_writes()?;
        let slices = radius.map(|radius| slices_for(self.about.bits, radius)).transpose()?;
        self.store().reslice(slices)
    }

    /// Makes one part of all, saves it, and forgets for good what was removed. How many records that were.
    pub fn compact(&self) -> Result<u64> {
        self.check_writes()?;
        let mut store = self.store();
        self.follow(store.as_mut())?;
        self.stop_merging();
        let purged = self.compact_all(store.as_mut());
        self.start_merging()?;
        purged
    }

    fn compact_all(&self, store: &mut dyn Store) -> Result<u64> {
        let snapshot = self.snapshot();
        let position = snapshot.position();
        if snapshot.parts.len() > 1 || snapshot.parts.iter().any(|live| live.part.log < position) {
            self.current.merge(&snapshot.parts, position)?;
        }
        self.current.save_all(store)?;
        let purged = store.purge(position)?;
        self.current.delete_before(position);
        Ok(purged)
    }

    /// Copies the collection, as it is at one moment, into another folder.
    pub fn backup(&self, to: &Path) -> Result<()> {
        self.with_reader(|store| self.place.backup(store, to))
    }

    /// Saves what is not saved yet, so that the next one to open it does not have to read it from the store. What was
    /// acknowledged is safe without that.
    pub fn close(self) -> Result<()> {
        self.stop_merging();
        if let Some(problem) = self.current.take_problem() {
            return Err(problem);
        }
        if self.writes {
            self.current.tidy()?;
        }
        self.current.save_all(self.store().as_mut())
    }

    /// Waits until merges have nothing left to do. Answers do not depend on it.
    pub fn settle(&self) -> Result<()> {
        self.current.settle();
        self.current.take_problem().map_or(Ok(()), Err)
    }

    fn stop_merging(&self) {
        // Taken first, and waited for without the lock.
        let merging = self.merging().take();
        drop(merging);
    }

    fn start_merging(&self) -> Result<()> {
        let merging = self.current.merge_in_background(|| self.place.reader())?;
        *self.merging() = Some(merging);
        Ok(())
    }

    fn merging(&self) -> MutexGuard<'_, Option<Merging>> {
        self.merging.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Makes changes about some ids in a transaction: all of them, or none. They are seen as soon as they are durable.
    fn write<'a, T>(
        &self,
        ids: &[&'a str],
        plan: impl FnOnce(&mut Changes<'a>) -> Result<T>,
    ) -> Result<T> {
        self.check_writes()?;
        let mut store = self.store();
        let end = store.begin()?;
        let done = self.write_after(store.as_mut(), end, ids, plan);
        if done.is_err() {
            store.roll_back();
        }
        let (done, Changes { rows, removed, .. }) = done?;
        let changed = self.current.change(rows, &removed);
        // They are committed, so they have to be seen: from the store, if there was no memory to build on.
        changed.or_else(|_| self.reload(store.as_mut()))?;
        Ok(done)
    }

    fn write_after<'a, T>(
        &self,
        store: &mut dyn Store,
        end: End,
        ids: &[&'a str],
        plan: impl FnOnce(&mut Changes<'a>) -> Result<T>,
    ) -> Result<(T, Changes<'a>)> {
        // Others may have written before.
        if end.position != self.snapshot().position() {
            self.follow(store)?;
        }
        let mut changes = Changes::new(&self.snapshot(), store, ids)?;
        let done = plan(&mut changes)?;
        match changes.is_empty() {
            true => store.roll_back(),
            false => {
                store.apply(&changes.changes, now())?;
                store.commit()?;
            }
        }
        Ok((done, changes))
    }

    fn reload(&self, store: &mut dyn Store) -> Result<()> {
        self.current.replace(load(store, &self.place.segments())?.snapshot);
        Ok(())
    }

    fn follow(&self, store: &mut dyn Store) -> Result<()> {
        let snapshot = self.snapshot();
        let end = store.end()?;
        if end.position == snapshot.position() {
            return Ok(());
        }
        if end.purged > snapshot.position() {
            return self.reload(store);
        }
        let next = snapshot.position() + 1;
        let (mut rows, mut removed) = (Rows::new(snapshot.end()..next, 0), Vec::new());
        let rest = next..u64::MAX;
        let end = store.read(slice::from_ref(&rest), snapshot.position(), &mut |logged| {
            match logged {
                Logged::Added { position, id, signature } => {
                    rows.push(position, id, words_of_bytes(signature))
                }
                Logged::Removed(position) => removed.push(position),
            }
            Ok(())
        })?;
        if end.purged > snapshot.position() {
            // Purged just now: what was removed is not in the log any more.
            return self.reload(store);
        }
        (rows.stretch.end, rows.log) = (end.position + 1, end.position);
        self.current.change(rows, &removed)
    }

    /// The texts of entries as they are stored, if they are.
    fn texts_of(&self, entries: &[Entry]) -> Result<Vec<Option<Vec<u8>>>> {
        if !self.about.keeps.texts {
            return Ok(vec![None; entries.len()]);
        }
        let pack = |entry: &Entry| entry.text.as_deref().map(pack).transpose();
        let packed: std::io::Result<_> = entries.par_iter().map(pack).collect();
        packed.map_err(|error| Error::io(self.folder(), error))
    }

    fn check_entries(&self, entries: &[Entry]) -> Result<()> {
        // With a minimum: a few are sooner checked than shared.
        entries.par_iter().with_min_len(1024).try_for_each(|entry| self.check_entry(entry))
    }

    fn check_entry(&self, entry: &Entry) -> Result<()> {
        self.check_bits(entry.signature.bits())?;
        let wanted = self.about.bits as usize;
        let given = entry.margins.as_ref().map_or(wanted, Vec::len);
        let bad = |problem: &str| {
            Err(Error::Entry {
                id: entry.id.chars().take(100).collect(),
                problem: problem.to_owned(),
            })
        };
        if given != wanted {
            return Err(Error::Margins { wanted, given });
        }
        if entry.id.is_empty() {
            return bad("is no id");
        }
        match &entry.payload {
            Some(payload) if !is_object(payload) => bad("has a payload that is not a JSON object"),
            _ => Ok(()),
        }
    }

    fn check_writes(&self) -> Result<()> {
        match self.writes {
            true => Ok(()),
            false => Err(Error::ReadOnly { path: self.folder().to_owned() }),
        }
    }

    fn check_bits(&self, given: u32) -> Result<()> {
        match given == self.about.bits {
            true => Ok(()),
            false => Err(Error::WidthMismatch { stored: self.about.bits, given }),
        }
    }
}

/// Whether a text is a JSON object, for those who will read it.
fn is_object(text: &str) -> bool {
    serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text).is_ok()
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as i64)
}

/// A name that no other collection has.
fn random_name() -> String {
    use std::hash::{BuildHasher, RandomState};
    // Each has keys of its own, from the system's randomness.
    let random = || RandomState::new().hash_one(now());
    format!("{:016x}{:016x}", random(), random())
}
