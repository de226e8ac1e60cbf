//! Where a collection is: a folder that says which store has its records, and that has its segments.

use std::{
    ffi::OsStr,
    fs::{self, File, OpenOptions, TryLockError},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{
    sqlite::Sqlite,
    store::{About, Store},
};
use crate::{Error, Result};

/// The file that makes a folder a collection.
const SAYS: &str = "collection.json";
const RECORDS: &str = "records.sqlite";
const SEGMENTS: &str = "segments";
const LOCK: &str = "lock";
const TERMS: &str = "terms";
/// What a folder has before it is a collection.
const MADE_FIRST: [&str; 6] = [
    RECORDS,
    "records.sqlite-wal",
    "records.sqlite-shm",
    "records.sqlite-journal",
    ".collection.json.partial",
    TERMS,
];
/// The version of folders that this program makes and reads.
const FORMAT: u32 = 1;

/// Where the records of a collection are.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StoredIn {
    /// In a SQLite file in the folder.
    #[default]
    Sqlite,
    /// In a PostgreSQL database.
    Postgres {
        /// Its address.
        url: String,
        /// The schema that has the tables of the collection.
        schema: String,
    },
}

impl StoredIn {
    /// Its address for people to read: without a password.
    pub fn address(&self) -> String {
        match self {
            StoredIn::Sqlite => "sqlite".to_owned(),
            StoredIn::Postgres { url, schema } => {
                format!("{}, schema {schema}", without_password(url))
            }
        }
    }
}

/// A URL without its password, and without its settings, which may have one as well.
fn without_password(url: &str) -> String {
    // Who knows where the password is in `host=db.example password=...`, or where an `@` is out of place?
    let unclear = || "a PostgreSQL database".to_owned();
    let Some((scheme, rest)) = url.split_once("://") else { return unclear() };
    let (user, host) = rest.rsplit_once('@').unwrap_or(("", rest));
    let (user, host) =
        (user.split(':').next().unwrap_or(user), host.split('?').next().unwrap_or(host));
    match user {
        "" => format!("{scheme}://{host}"),
        _ if user.contains(['/', '?']) => unclear(),
        _ => format!("{scheme}://{user}@{host}"),
    }
}

/// What a folder says about itself.
#[derive(Debug, Serialize, Deserialize)]
struct Says {
    format: u32,
    store: StoredIn,
}

/// The folder of a collection.
#[derive(Debug, Clone)]
pub(super) struct Place {
    folder: PathBuf,
    store: StoredIn,
}

/// A lock that this process has.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Drop for Lock {
    /// Closing the file would not be enough: a process that is just being started has it open, too, until it is.
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

impl Place {
    /// Whether a folder is a collection.
    pub(super) fn is_in(folder: &Path) -> bool {
        folder.join(SAYS).is_file()
    }

    /// Makes the folder of a new collection and its store.
    pub(super) fn create(
        folder: &Path,
        store: &StoredIn,
        about: &About,
    ) -> Result<(Self, Box<dyn Store>)> {
        let io = |error| Error::io(folder, error);
        if Place::is_in(folder) {
            return Err(Error::format(folder, "is a collection already"));
        }
        let place = Place { folder: folder.to_owned(), store: store.clone() };
        if folder.exists() && !place.is_left_behind().map_err(io)? {
            return Err(Error::format(folder, "is there already, and is not an empty folder"));
        }
        place.undo();
        fs::create_dir_all(place.segments()).map_err(io)?;
        let made = place.create_store(about);
        let store = match made {
            Ok(store) => store,
            Err(error) => {
                place.undo();
                return Err(error);
            }
        };
        // Last: a folder that says that it is a collection is one.
        place.say()?;
        Ok((place, store))
    }

    fn create_store(&self, about: &About) -> Result<Box<dyn Store>> {
        match &self.store {
            StoredIn::Sqlite => Ok(Box::new(Sqlite::create(&self.folder.join(RECORDS), about)?)),
            #[cfg(feature = "postgres")]
            StoredIn::Postgres { url, schema } => {
                super::postgres::create_or_join(url, schema, about)
            }
            #[cfg(not(feature = "postgres"))]
            StoredIn::Postgres { .. } => Err(self.no_postgres()),
        }
    }

    #[cfg(not(feature = "postgres"))]
    fn no_postgres(&self) -> Error {
        Error::format(&self.folder, "is in PostgreSQL, which this program was built without")
    }

    /// Whether the folder has nothing but what a process leaves behind that was killed while it made a collection.
    fn is_left_behind(&self) -> std::io::Result<bool> {
        let ours = |name: &OsStr| name == SEGMENTS || MADE_FIRST.iter().any(|made| name == *made);
        let mut entries = fs::read_dir(&self.folder)?;
        entries.try_fold(true, |all, entry| Ok(all && ours(&entry?.file_name())))
    }

    /// Removes what was made of a collection that came to nothing.
    fn undo(&self) {
        for name in MADE_FIRST {
            let _ = fs::remove_file(self.folder.join(name));
        }
        let _ = fs::remove_dir(self.segments());
        let _ = fs::remove_dir(&self.folder);
    }

    fn say(&self) -> Result<()> {
        let path = self.folder.join(SAYS);
        let says = Says { format: FORMAT, store: self.store.clone() };
        let json = serde_json::to_vec_pretty(&says).expect("plain data becomes JSON");
        let io = |error| Error::io(&path, error);
        let mut file = crate::partial::Partial::create(&path).map_err(io)?;
        if matches!(self.store, StoredIn::Postgres { .. }) {
            // An address may have a password in it.
            file.make_private().map_err(io)?;
        }
        std::io::Write::write_all(&mut file, &json).map_err(io)?;
        file.complete().map_err(io)
    }

    /// The folder of a collection that is there.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let path = folder.join(SAYS);
        if !folder.exists() {
            return Err(Error::format(folder, "is not there"));
        }
        if !path.exists() {
            return Err(Error::format(folder, "is no collection"));
        }
        let bytes = fs::read(&path).map_err(|error| Error::io(&path, error))?;
        let says: Says = serde_json::from_slice(&bytes)
            .map_err(|error| Error::damaged(&path, format!("cannot be read: {error}")))?;
        match says.format {
            FORMAT => Ok(Place { folder: folder.to_owned(), store: says.store }),
            newer => {
                let problem = format!("has format {newer}; this program reads format {FORMAT}");
                Err(Error::format(&path, problem))
            }
        }
    }

    /// A connection that writes.
    pub(super) fn store(&self) -> Result<Box<dyn Store>> {
        match &self.store {
            StoredIn::Sqlite => Ok(Box::new(Sqlite::open(&self.folder.join(RECORDS))?)),
            #[cfg(feature = "postgres")]
            StoredIn::Postgres { url, schema } => {
                Ok(Box::new(super::postgres::Postgres::open(url, schema)?))
            }
            #[cfg(not(feature = "postgres"))]
            StoredIn::Postgres { .. } => Err(self.no_postgres()),
        }
    }

    /// A connection that reads.
    pub(super) fn reader(&self) -> Result<Box<dyn Store>> {
        match &self.store {
            StoredIn::Sqlite => Ok(Box::new(Sqlite::open_reader(&self.folder.join(RECORDS))?)),
            #[cfg(feature = "postgres")]
            StoredIn::Postgres { url, schema } => {
                Ok(Box::new(super::postgres::Postgres::open_reader(url, schema)?))
            }
            #[cfg(not(feature = "postgres"))]
            StoredIn::Postgres { .. } => Err(self.no_postgres()),
        }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn stored_in(&self) -> &StoredIn {
        &self.store
    }

    pub(super) fn segments(&self) -> PathBuf {
        self.folder.join(SEGMENTS)
    }

    /// The statistics of terms that the recipe weighs by, if it does.
    pub(super) fn terms(&self) -> PathBuf {
        self.folder.join(TERMS)
    }

    /// Takes the lock of whoever writes, as long as the file is held; nothing if another process has it.
    pub(super) fn lock(&self) -> Result<Option<Lock>> {
        let path = self.folder.join(LOCK);
        let io = |error| Error::io(&path, error);
        let open = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
        let file = open.map_err(io)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Lock(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(io(error)),
        }
    }

    /// A copy of the store in a folder of its own.
    pub(super) fn backup(&self, store: &mut dyn Store, to: &Path) -> Result<()> {
        if to.exists() {
            return Err(Error::format(to, "is there already"));
        }
        let copy = Place { folder: to.to_owned(), store: self.store.clone() };
        fs::create_dir_all(copy.segments()).map_err(|error| Error::io(to, error))?;
        let copied = store.backup(&to.join(RECORDS)).and_then(|()| match self.terms().exists() {
            true => {
                fs::copy(self.terms(), copy.terms()).map(drop).map_err(|error| Error::io(to, error))
            }
            false => Ok(()),
        });
        match copied {
            Ok(()) => copy.say(),
            Err(error) => {
                copy.undo();
                Err(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        for (url, shown) in [
            ("postgres://me:secret@host:5432/news", "postgres://me@host:5432/news"),
            ("postgres://me:s@cret@host/news", "postgres://me@host/news"),
            ("postgres://host/news?user=me&password=secret", "postgres://host/news"),
            ("postgres:///news", "postgres:///news"),
            ("postgres://me:s?c/ret@host/news?password=secret", "postgres://me@host/news"),
            ("postgres://host/news?password=s@cret", "a PostgreSQL database"),
            ("host=db user=me password=secret", "a PostgreSQL database"),
        ] {
            let store = StoredIn::Postgres { url: url.to_owned(), schema: "old".to_owned() };
            assert_eq!(store.address(), format!("{shown}, schema old"));
        }
    }
}
