//! Records in SQLite: one file, no set-up, many readers and one writer at a time.

use std::{
    ffi::OsStr,
    fmt,
    ops::Range,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension, Row, backup::Backup,
    functions::FunctionFlags, params,
};

use super::{
    Entry, Record,
    record::{Checks, Columns},
    slices::{check_radius, slices},
    store::{About, BySql, Change, Counts, End, Logged, Store, known_version},
};
use crate::{Error, Result, Signature, signature::words_of_bytes};

/// The tables as each version has them more than the one before: version 1, version 2, ...
const MIGRATIONS: [&str; 2] = ["
    CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    -- A record, and a line of the change log.
    CREATE TABLE records (
        position INTEGER PRIMARY KEY,
        id TEXT NOT NULL,
        signature BLOB NOT NULL,
        margins BLOB,
        payload TEXT,
        text BLOB,
        time INTEGER NOT NULL,
        checksum INTEGER NOT NULL,
        -- The position of the change that replaced or removed it.
        removed INTEGER
    );
    CREATE UNIQUE INDEX records_id ON records (id) WHERE removed IS NULL;
    CREATE INDEX records_removed ON records (removed) WHERE removed IS NOT NULL;
", "
    -- Ids come in any order: to keep them in that of a B-tree took most of the time of a bulk add. Parts know their ids.
    DROP INDEX records_id;
"];

/// Marks a file as one of ours.
const APPLICATION: i64 = 0x6c6f_6f6b;

const COLUMNS: &str = "position, id, signature, margins, payload, time, checksum";

/// How long to wait for another process that holds a lock for a moment.
const PATIENCE: Duration = Duration::from_secs(10);
/// The page cache, in KiB.
const CACHE_KIB: i64 = 256 << 10;
/// From so many records on, reading them is worth a transaction.
const TOGETHER: usize = 4;
/// Up to so many bytes the file is mapped: a record that is read at random costs no system call.
const MAPPED: i64 = 1 << 40;
/// Pages that the log of a writer grows to before they are moved into the file, if nobody did so in the background: moving
/// the same page once rather than many times is what makes bulk writes fast.
const CHECKPOINT_PAGES: i64 = 64 << 10;

/// One page of so many may be unused without anybody minding.
const UNUSED_SHARE: i64 = 8;

/// A SQLite file with the records of a collection.
pub(super) struct Sqlite {
    connection: Connection,
    path: PathBuf,
    about: About,
    checks: Checks,
    /// Where the log ends, within a transaction that writes.
    writing: Option<u64>,
}

impl fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sqlite").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Sqlite {
    /// Makes a new file.
    pub(super) fn create(path: &Path, about: &About) -> Result<Self> {
        let connection =
            connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
        let failed = |error| failure(path, error);
        let create = || {
            connection.pragma_update(None, "application_id", APPLICATION)?;
            connection.pragma_update(None, "journal_mode", "wal")?;
            connection.execute_batch("BEGIN IMMEDIATE")?;
            migrate(&connection, 0)?;
            let insert =
                "INSERT INTO about VALUES ('collection', ?1), ('end', '0'), ('purged', '0')";
            connection.execute(insert, [about.to_json()])?;
            connection.execute_batch("COMMIT")
        };
        create().map_err(failed)?;
        Ok(Sqlite::with(connection, path, about.clone()))
    }

    /// Opens a file to read and write it; one of an older version is brought up to date.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        if version(&connection, path)? < MIGRATIONS.len() {
            let migrate = || {
                connection.execute_batch("BEGIN IMMEDIATE")?;
                // Another process may have done it by now.
                let version = connection
                    .pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))?;
                migrate(&connection, version as usize)?;
                connection.execute_batch("COMMIT")
            };
            migrate().map_err(|error| failure(path, error))?;
        }
        Sqlite::opened(connection, path)
    }

    /// Opens a file to read it.
    pub(super) fn open_reader(path: &Path) -> Result<Self> {
        // Whoever reads a file with a log beside it has to be able to write to the index of that log.
        let reader = Sqlite::reader_with(path, path.as_os_str(), OpenFlags::SQLITE_OPEN_READ_WRITE);
        let mut log = path.as_os_str().to_owned();
        log.push("-wal");
        let has_log = std::fs::metadata(&log).is_ok_and(|log| log.len() > 0);
        match reader {
            // Nobody can write there: then a file without a log stays as it is.
            Err(error) if !has_log && path.is_file() => {
                let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
                let address = address_of(path);
                Sqlite::reader_with(path, address.as_ref(), flags).map_err(|_| error)
            }
            reader => reader,
        }
    }

    fn reader_with(path: &Path, address: &OsStr, flags: OpenFlags) -> Result<Self> {
        let connection = connect_at(path, address, flags)?;
        if version(&connection, path)? < MIGRATIONS.len() {
            return Sqlite::open(path);
        }
        let set = || connection.pragma_update(None, "query_only", true);
        set().map_err(|error| failure(path, error))?;
        Sqlite::opened(connection, path)
    }

    fn opened(connection: Connection, path: &Path) -> Result<Self> {
        let read = || {
            let query = "SELECT value FROM about WHERE name = 'collection'";
            connection.query_row(query, [], |row| row.get::<_, String>(0))
        };
        let about = read().map_err(|error| failure(path, error))?;
        let about = About::from_json(&about).map_err(|problem| Error::damaged(path, problem))?;
        Ok(Sqlite::with(connection, path, about))
    }

    fn with(connection: Connection, path: &Path, about: About) -> Self {
        let checks = Checks { store: path.display().to_string(), bits: about.bits };
        Sqlite { connection, path: path.to_owned(), about, checks, writing: None }
    }

    fn failed(&self) -> impl Fn(rusqlite::Error) -> Error + '_ {
        |error| failure(&self.path, error)
    }

    /// A number that the file says of itself.
    fn number(&self, name: &str) -> Result<Option<u64>> {
        let query = "SELECT value FROM about WHERE name = ?1";
        let read = || {
            self.connection
                .prepare_cached(query)?
                .query_row([name], |row| row.get::<_, String>(0))
                .optional()
        };
        let value = read().map_err(self.failed())?;
        value
            .map(|value| value.parse())
            .transpose()
            .map_err(|_| Error::damaged(&self.path, format!("`{name}` is not a number")))
    }

    fn set_number(&self, name: &str, value: Option<u64>) -> rusqlite::Result<()> {
        match value {
            Some(value) => self.connection.execute(
                "INSERT INTO about VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                params![name, value.to_string()],
            )?,
            None => self.connection.execute("DELETE FROM about WHERE name = ?1", [name])?,
        };
        Ok(())
    }

    /// Runs `work` at one moment of the file: in the transaction that there is, or in one of its own.
    fn at_one_moment<T>(&mut self, work: impl FnOnce(&Self) -> Result<T>) -> Result<T> {
        if self.writing.is_some() {
            return work(self);
        }
        self.connection.execute_batch("BEGIN").map_err(self.failed())?;
        let result = work(self);
        // Nothing was written, so there is nothing to lose.
        let _ = self.connection.execute_batch("ROLLBACK");
        result
    }

    /// Runs `work` in a transaction that writes.
    fn in_transaction<T>(&mut self, work: impl FnOnce(&Self) -> rusqlite::Result<T>) -> Result<T> {
        self.connection.execute_batch("BEGIN IMMEDIATE").map_err(self.failed())?;
        let ended = work(self).and_then(|result| {
            self.connection.execute_batch("COMMIT")?;
            Ok(result)
        });
        if ended.is_err() {
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        ended.map_err(self.failed())
    }

    /// The last positions of records and of removals; of those that are purged, the file remembers it.
    fn read_end(&self) -> Result<End> {
        let last = |query: &str| {
            let last = self
                .connection
                .prepare_cached(query)?
                .query_row([], |row| row.get::<_, Option<i64>>(0))?;
            Ok(last.unwrap_or(0) as u64)
        };
        let added = last("SELECT max(position) FROM records").map_err(self.failed())?;
        let removed = last("SELECT max(removed) FROM records WHERE removed IS NOT NULL")
            .map_err(self.failed())?;
        let remembered = self.number("end")?.unwrap_or(0);
        let position = added.max(removed).max(remembered);
        Ok(End { position, purged: self.number("purged")?.unwrap_or(0) })
    }

    fn put(&self, position: u64, entry: &Entry, text: Option<&[u8]>, time: i64) -> Result<()> {
        self.about.check_width(&entry.signature)?;
        let mut bytes = [0; 512];
        let columns = Columns::of(entry, position, time, self.about.keeps, &mut bytes);
        let insert = || {
            let mut insert = self.connection.prepare_cached(
                "INSERT INTO records (position, id, signature, margins, payload, text, time, checksum) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?;
            insert.execute(params![
                position as i64,
                columns.id,
                columns.signature,
                columns.margins,
                columns.payload,
                text,
                time,
                columns.checksum()
            ])
        };
        insert().map(drop).map_err(self.failed())
    }

    /// Makes the file smaller if much of it is not used. That writes all of it anew.
    fn give_back_pages(&self) -> Result<()> {
        let number =
            |name| self.connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let give_back = || {
            if number("freelist_count")? * UNUSED_SHARE > number("page_count")? {
                self.connection.execute_batch("VACUUM")?;
            }
            Ok(())
        };
        give_back().map_err(self.failed())
    }

    /// Notes that a record is there no more since a position.
    fn remove(&self, record: u64, since: u64) -> Result<()> {
        let remove = || {
            let query = "UPDATE records SET removed = ?1 WHERE position = ?2 AND removed IS NULL";
            self.connection.prepare_cached(query)?.execute(params![since as i64, record as i64])
        };
        match remove().map_err(self.failed())? {
            0 => Err(self.checks.damaged(record, "is to be removed, but is not there")),
            _ => Ok(()),
        }
    }

    fn record_of(&self, row: &Row<'_>, texts: bool) -> Result<Record> {
        let columns = self.columns_of(row)?;
        let text = match texts {
            true => row
                .get_ref("text")
                .map_err(self.failed())?
                .as_blob_or_null()
                .map_err(|_| self.not_of_its_type(columns.position))?,
            false => None,
        };
        self.checks.record(&columns, text)
    }

    /// The columns of a row of [`COLUMNS`], if their checksum is right.
    fn columns_of<'a>(&self, row: &'a Row<'_>) -> Result<Columns<'a>> {
        let column = |at: usize| row.get_ref(at).map_err(self.failed());
        let position = column(0)?.as_i64().unwrap_or(0) as u64;
        let wrong = |_| self.not_of_its_type(position);
        let columns = Columns {
            position,
            id: column(1)?.as_str().map_err(wrong)?,
            signature: column(2)?.as_blob().map_err(wrong)?,
            margins: column(3)?.as_blob_or_null().map_err(wrong)?,
            payload: column(4)?.as_str_or_null().map_err(wrong)?,
            time: column(5)?.as_i64().map_err(wrong)?,
        };
        let checksum = column(6)?.as_i64().map_err(wrong)?;
        self.checks.columns(&columns, checksum)?;
        Ok(columns)
    }

    fn not_of_its_type(&self, position: u64) -> Error {
        self.checks.damaged(position, "has a column of another type: it is damaged")
    }

    /// The one record that a query finds.
    fn one(&self, query: &str, of: impl rusqlite::ToSql, texts: bool) -> Result<Option<Record>> {
        let mut query = self.connection.prepare_cached(query).map_err(self.failed())?;
        let mut rows = query.query([of]).map_err(self.failed())?;
        match rows.next().map_err(self.failed())? {
            Some(row) => self.record_of(row, texts).map(Some),
            None => Ok(None),
        }
    }

    fn read_added(
        &self,
        range: &Range<u64>,
        each: &mut dyn FnMut(Logged<'_>) -> Result<()>,
    ) -> Result<()> {
        let query = format!(
            "SELECT {COLUMNS} FROM records WHERE position >= ?1 AND position < ?2 AND removed IS NULL ORDER BY position"
        );
        let mut query = self.connection.prepare_cached(&query).map_err(self.failed())?;
        let bounds = [range.start, range.end].map(|at| at.min(i64::MAX as u64) as i64);
        let mut rows = query.query(bounds).map_err(self.failed())?;
        while let Some(row) = rows.next().map_err(self.failed())? {
            let Columns { position, id, signature, .. } = self.columns_of(row)?;
            each(Logged::Added { position, id, signature })?;
        }
        Ok(())
    }

    fn read_removed(
        &self,
        after: u64,
        each: &mut dyn FnMut(Logged<'_>) -> Result<()>,
    ) -> Result<()> {
        let query = "SELECT position FROM records WHERE removed IS NOT NULL AND removed > ?1";
        let mut query = self.connection.prepare_cached(query).map_err(self.failed())?;
        let mut rows = query.query([after as i64]).map_err(self.failed())?;
        while let Some(row) = rows.next().map_err(self.failed())? {
            each(Logged::Removed(row.get::<_, i64>(0).map_err(self.failed())? as u64))?;
        }
        Ok(())
    }
}

impl Store for Sqlite {
    fn about(&self) -> &About {
        &self.about
    }

    fn end(&mut self) -> Result<End> {
        self.at_one_moment(|this| this.read_end())
    }

    fn begin(&mut self) -> Result<End> {
        self.connection.execute_batch("BEGIN IMMEDIATE").map_err(self.failed())?;
        let end = self.read_end();
        match &end {
            Ok(end) => self.writing = Some(end.position),
            Err(_) => drop(self.connection.execute_batch("ROLLBACK")),
        }
        end
    }

    fn apply(&mut self, changes: &[Change<'_>], time: i64) -> Result<()> {
        let mut end = self.writing.expect("changes are made within a transaction");
        for change in changes {
            end += 1;
            if let Some(record) = change.removes() {
                self.remove(record, end)?;
            }
            if let Change::Put { entry, text, .. } = change {
                self.put(end, entry, text.as_deref(), time)?;
            }
        }
        self.writing = Some(end);
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        let committed = self.connection.execute_batch("COMMIT").map_err(self.failed());
        match committed {
            Ok(()) => self.writing = None,
            Err(_) => self.roll_back(),
        }
        committed
    }

    fn roll_back(&mut self) {
        if self.writing.take().is_some() {
            // SQLite may have done so by itself, when the disk was full.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }

    fn read(
        &mut self,
        ranges: &[Range<u64>],
        removed_after: u64,
        each: &mut dyn FnMut(Logged<'_>) -> Result<()>,
    ) -> Result<End> {
        self.at_one_moment(|this| {
            ranges.iter().try_for_each(|range| this.read_added(range, each))?;
            this.read_removed(removed_after, each)?;
            this.read_end()
        })
    }

    fn records(&mut self, positions: &[u64], texts: bool) -> Result<Vec<Option<Record>>> {
        let query = format!("SELECT {COLUMNS}, text FROM records WHERE position = ?1");
        if positions.len() < TOGETHER {
            return positions.iter().map(|&at| self.one(&query, at as i64, texts)).collect();
        }
        // In the order of the file, and in one transaction: otherwise each takes and leaves the lock of the file.
        let mut order: Vec<usize> = (0..positions.len()).collect();
        order.sort_unstable_by_key(|&i| positions[i]);
        let mut records = vec![None; positions.len()];
        self.at_one_moment(|this| {
            let each = |&i: &usize| {
                records[i] = this.one(&query, positions[i] as i64, texts)?;
                Ok(())
            };
            order.iter().try_for_each(each)
        })?;
        Ok(records)
    }

    fn each(&mut self, texts: bool, each: &mut dyn FnMut(Record) -> Result<()>) -> Result<()> {
        let query =
            format!("SELECT {COLUMNS}, text FROM records WHERE removed IS NULL ORDER BY position");
        self.at_one_moment(|this| {
            let mut query = this.connection.prepare(&query).map_err(this.failed())?;
            let mut rows = query.query([]).map_err(this.failed())?;
            while let Some(row) = rows.next().map_err(this.failed())? {
                each(this.record_of(row, texts)?)?;
            }
            Ok(())
        })
    }

    fn counts(&mut self) -> Result<Counts> {
        let count = |query: &str| {
            self.connection.query_row(query, [], |row| row.get::<_, i64>(0)).map_err(self.failed())
        };
        let records = count("SELECT count(*) FROM records")?;
        let removed = count("SELECT count(*) FROM records WHERE removed IS NOT NULL")?;
        Ok(Counts { records: (records - removed) as u64, removed: removed as u64 })
    }

    fn purge(&mut self, up_to: u64) -> Result<u64> {
        let end = self.end()?;
        // What is forgotten is written over.
        let secure = || self.connection.pragma_update(None, "secure_delete", true);
        secure().map_err(self.failed())?;
        let purged = self.in_transaction(|this| {
            this.set_number("end", Some(end.position))?;
            this.set_number("purged", Some(end.purged.max(up_to)))?;
            let query = "DELETE FROM records WHERE removed IS NOT NULL AND removed <= ?1";
            Ok(this.connection.execute(query, [up_to as i64])? as u64)
        })?;
        self.give_back_pages()?;
        let empty_log =
            || self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        empty_log().map_err(self.failed())?;
        Ok(purged)
    }

    fn slices(&mut self) -> Result<Option<u32>> {
        Ok(self.number("slices")?.map(|slices| slices as u32))
    }

    fn reslice(&mut self, count: Option<u32>) -> Result<()> {
        let before = self.slices()?;
        if before == count {
            return Ok(());
        }
        let bits = self.about.bits;
        self.in_transaction(|this| {
            for slice in 0..before.unwrap_or(0) {
                this.connection.execute_batch(&format!("DROP INDEX IF EXISTS slice_{slice}"))?;
            }
            for (slice, bytes) in slices(bits, count.unwrap_or(0)).enumerate() {
                let cut = cut("signature", &bytes);
                let create =
                    format!("CREATE INDEX slice_{slice} ON records ({cut}) WHERE removed IS NULL");
                this.connection.execute_batch(&create)?;
            }
            this.set_number("slices", count.map(u64::from))
        })
    }

    fn within(&mut self, query: &Signature, radius: u32, how: BySql) -> Result<Vec<(u64, u32)>> {
        self.about.check_width(query)?;
        let sql = match how {
            BySql::Slices(count) => {
                check_radius(count, radius)?;
                by_slices(self.about.bits, count)
            }
            BySql::EveryRecord => every_record(),
        };
        let read = || {
            let mut statement = self.connection.prepare_cached(&sql)?;
            let found = statement.query_map(params![query.to_bytes(), radius], |row| {
                Ok((row.get::<_, i64>(0)? as u64, row.get::<_, u32>(1)?))
            })?;
            found.collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(self.failed())
    }

    fn checkpoint(&mut self) -> Result<()> {
        let checkpoint = "PRAGMA wal_checkpoint(PASSIVE)";
        self.connection.query_row(checkpoint, [], |_| Ok(())).map_err(self.failed())
    }

    fn check(&mut self) -> Result<Vec<String>> {
        let mut problems = Vec::new();
        let read = || {
            let mut statement = self.connection.prepare("PRAGMA integrity_check(100)")?;
            let lines = statement.query_map([], |row| row.get::<_, String>(0))?;
            lines.collect::<rusqlite::Result<Vec<_>>>()
        };
        let lines = read().map_err(self.failed())?;
        problems.extend(lines.into_iter().filter(|line| line != "ok"));
        // Records that were removed are looked at, too.
        let query = format!("SELECT {COLUMNS}, text FROM records ORDER BY position");
        let mut query = self.connection.prepare(&query).map_err(self.failed())?;
        let mut rows = query.query([]).map_err(self.failed())?;
        while let Some(row) = rows.next().map_err(self.failed())? {
            if let Err(error) = self.record_of(row, true) {
                problems.push(error.to_string());
            }
        }
        Ok(problems)
    }

    fn backup(&mut self, to: &Path) -> Result<()> {
        let mut copy =
            connect(to, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
        let mut copy_all = || {
            // All pages in one step: the copy is of one moment, and readers and writers do not wait for it.
            let backup = Backup::new(&self.connection, &mut copy)?;
            backup.run_to_completion(i32::MAX, Duration::from_millis(10), None)
        };
        copy_all().map_err(|error| failure(to, error))
    }

    fn bytes(&mut self) -> Result<u64> {
        let size = |suffix: &str| {
            let mut name = self.path.as_os_str().to_owned();
            name.push(suffix);
            std::fs::metadata(PathBuf::from(name)).map_or(0, |about| about.len())
        };
        Ok(size("") + size("-wal"))
    }
}

/// The query for records that share a slice with a signature (?1) and are within a radius (?2).
fn by_slices(bits: u32, count: u32) -> String {
    let branch = |bytes: Range<u32>| {
        let (stored, given) = (cut("signature", &bytes), cut("?1", &bytes));
        format!("SELECT position FROM records WHERE removed IS NULL AND {stored} = {given}")
    };
    // Each branch looks into one index; a record that several find is compared once.
    let branches: Vec<String> = slices(bits, count).map(branch).collect();
    format!(
        "SELECT position, distance FROM (SELECT position, hamming(signature, ?1) AS distance FROM records \
         WHERE position IN ({})) WHERE distance <= ?2 ORDER BY distance, position",
        branches.join(" UNION ")
    )
}

/// The query for the distance to every record.
fn every_record() -> String {
    "SELECT position, distance FROM (SELECT position, hamming(signature, ?1) AS distance FROM records \
     WHERE removed IS NULL) WHERE distance <= ?2 ORDER BY distance, position"
        .to_owned()
}

/// Some bytes of a value, in SQL.
fn cut(of: &str, bytes: &Range<u32>) -> String {
    format!("substr({of}, {}, {})", bytes.start + 1, bytes.len())
}

/// The address of a file that nobody writes to.
fn address_of(path: &Path) -> String {
    let path = path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    format!("file:{path}?immutable=1")
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection> {
    connect_at(path, path.as_os_str(), flags)
}

/// Connects to a file, which may be named by an address.
fn connect_at(path: &Path, address: &OsStr, flags: OpenFlags) -> Result<Connection> {
    let connect = || {
        let connection =
            Connection::open_with_flags(address, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        connection.busy_timeout(PATIENCE)?;
        connection.set_prepared_statement_cache_capacity(64);
        // Commits are on the disk when they return: power may fail, not only processes.
        connection.pragma_update(None, "synchronous", "full")?;
        connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
        connection.pragma_update(None, "mmap_size", MAPPED)?;
        connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
        let flags = FunctionFlags::SQLITE_UTF8
            | FunctionFlags::SQLITE_DETERMINISTIC
            | FunctionFlags::SQLITE_INNOCUOUS;
        connection.create_scalar_function("hamming", 2, flags, |context| {
            let (a, b) = (context.get_raw(0).as_blob()?, context.get_raw(1).as_blob()?);
            Ok(distance(a, b))
        })?;
        Ok(connection)
    };
    connect().map_err(|error| failure(path, error))
}

/// In how many bits two strings of bytes differ; nothing if their lengths do.
fn distance(a: &[u8], b: &[u8]) -> Option<u32> {
    let ones = |(a, b): (u64, u64)| (a ^ b).count_ones();
    (a.len() == b.len()).then(|| words_of_bytes(a).zip(words_of_bytes(b)).map(ones).sum())
}

/// The version of a file's tables.
fn version(connection: &Connection, path: &Path) -> Result<usize> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let read = || Ok((number("application_id")?, number("user_version")?));
    let (application, version) = read().map_err(|error| failure(path, error))?;
    if application != APPLICATION {
        return Err(Error::format(path, "is no collection of lookalike"));
    }
    known_version(version, MIGRATIONS.len()).map_err(|problem| Error::format(path, problem))
}

/// Brings the tables from a version to the newest.
fn migrate(connection: &Connection, version: usize) -> rusqlite::Result<()> {
    MIGRATIONS[version..].iter().try_for_each(|step| connection.execute_batch(step))?;
    connection.pragma_update(None, "user_version", MIGRATIONS.len() as i64)
}

/// What SQLite says, as an error of ours.
fn failure(path: &Path, error: rusqlite::Error) -> Error {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            Error::damaged(path, format!("is damaged: {error}"))
        }
        _ => Error::Store { store: path.display().to_string(), source: Box::new(error) },
    }
}
