//! Records in PostgreSQL: a schema of a database, for many readers and writers on many machines.
//!
//! Writers take turns: whoever writes holds the row that says where the log ends until the changes are committed. So
//! positions become visible in their order, and whoever follows the log misses none.

mod address;
mod bits;
#[cfg(test)]
mod tests;

use std::{collections::HashMap, fmt, ops::Range, path::Path};

use postgres::{
    Client, GenericClient, Row, Statement, Transaction,
    binary_copy::BinaryCopyInWriter,
    fallible_iterator::FallibleIterator,
    types::{ToSql, Type},
};

use self::{
    address::{Access, Address, is_lost},
    bits::Bits,
};
use super::{
    Record,
    record::{Checks, Columns},
    slices::{check_radius, slices},
    store::{About, BySql, Change, Counts, End, Logged, Store, known_version},
};
use crate::{Error, Result, Signature};

/// The tables as each version has them more than the one before: version 1, version 2, ... `WIDTH` is that of signatures.
const MIGRATIONS: [&str; 1] = ["
    CREATE TABLE about (name text PRIMARY KEY, value text NOT NULL);
    -- A record, and a line of the change log.
    CREATE TABLE records (
        position bigint PRIMARY KEY,
        id text NOT NULL,
        signature bit(WIDTH) NOT NULL,
        margins bytea,
        -- JSON, but its bytes have to come back as they were.
        payload text,
        text bytea,
        time bigint NOT NULL,
        checksum bigint NOT NULL,
        -- The position of the change that replaced or removed it.
        removed bigint
    );
    -- Texts are compressed already.
    ALTER TABLE records ALTER COLUMN text SET STORAGE EXTERNAL;
    -- An id may be longer than an entry of a B-tree, its digest is not. Two ids with one digest are made by intent only, and
    -- the second is refused.
    CREATE UNIQUE INDEX records_id ON records ((md5(id)::uuid)) WHERE removed IS NULL;
    CREATE INDEX records_removed ON records (removed) WHERE removed IS NOT NULL;
"];

const COLUMNS: &str = "records.position, records.id, signature, margins, payload, time, checksum";

/// The rows at positions (`$1`).
const BY_POSITIONS: &str =
    "unnest($1) WITH ORDINALITY AS asked (position, place) JOIN records USING (position)";

/// The types of the columns that are copied in.
const COPIED: [Type; 9] = [
    Type::INT8,
    Type::TEXT,
    Type::BIT,
    Type::BYTEA,
    Type::TEXT,
    Type::BYTEA,
    Type::INT8,
    Type::INT8,
    Type::INT8,
];

/// A writer sees what the writer before it has committed; a reader sees one moment.
const BEGIN_WRITING: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";
const BEGIN_READING: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// Marks advisory locks as ours.
const APPLICATION: i32 = 0x6c6f_6f6b;

/// A value for a query, and its type.
type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// A schema of PostgreSQL with the records of a collection.
pub(super) struct Postgres {
    client: Client,
    /// Queries that were asked before on this connection.
    prepared: HashMap<String, Statement>,
    source: Source,
    access: Access,
    about: About,
    /// Whether there is a transaction. If the connection is lost, so is the transaction; without one we connect again.
    in_transaction: bool,
    /// Where the log ends, within a transaction that writes.
    writing: Option<u64>,
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres")
            .field("address", &self.source.address.shown())
            .finish_non_exhaustive()
    }
}

impl Postgres {
    /// Makes the tables of a new collection, and their schema if there is none.
    pub(super) fn create(url: &str, schema: &str, about: &About) -> Result<Self> {
        let address = Address::new(url, schema)?;
        let mut client = address.connect(Access::Write)?;
        if is_collection(&mut client, &address)? {
            return Err(address.refused("there is a collection already"));
        }
        let mut create = || {
            let mut transaction = client.transaction()?;
            make_schema(&mut transaction, &address)?;
            migrate(&mut transaction, 0, about.bits)?;
            let insert =
                "INSERT INTO about VALUES ('collection', $1), ('end', '0'), ('purged', '0')";
            transaction.execute(insert, &[&about.to_json()])?;
            transaction.commit()
        };
        create().map_err(|error| address.failure(error))?;
        Ok(Postgres::with(client, address, Access::Write, about.clone()))
    }

    /// Whether the schema has a collection.
    pub(super) fn exists(url: &str, schema: &str) -> Result<bool> {
        let address = Address::new(url, schema)?;
        is_collection(&mut address.connect(Access::Read)?, &address)
    }

    /// Opens a collection to read and write it; one of an older version is brought up to date.
    pub(super) fn open(url: &str, schema: &str) -> Result<Self> {
        Postgres::open_at(Address::new(url, schema)?, Access::Write)
    }

    /// Opens a collection to read it.
    pub(super) fn open_reader(url: &str, schema: &str) -> Result<Self> {
        Postgres::open_at(Address::new(url, schema)?, Access::Read)
    }

    fn open_at(address: Address, access: Access) -> Result<Self> {
        let mut client = address.connect(access)?;
        if !is_collection(&mut client, &address)? {
            return Err(address.refused("there is no collection of lookalike"));
        }
        let version = version(&mut client, &address)?;
        let about = value(&mut client, "collection").map_err(|error| address.failure(error))?;
        let about = About::from_json(&about.unwrap_or_default())
            .map_err(|problem| address.refused(problem))?;
        if version < MIGRATIONS.len() {
            bring_up_to_date(&address, about.bits)?;
        }
        Ok(Postgres::with(client, address, access, about))
    }

    fn with(client: Client, address: Address, access: Access, about: About) -> Self {
        let checks = Checks { store: address.shown().to_owned(), bits: about.bits };
        let source = Source { address, checks };
        let prepared = HashMap::new();
        Postgres { client, prepared, source, access, about, in_transaction: false, writing: None }
    }

    fn failed(&self) -> impl Fn(postgres::Error) -> Error + '_ {
        |error| self.source.failure(error)
    }

    fn refused(&self, problem: impl Into<String>) -> Error {
        self.source.address.refused(problem.into())
    }

    fn reconnect(&mut self) -> Result<()> {
        self.client = self.source.address.connect(self.access)?;
        self.prepared.clear();
        Ok(())
    }

    /// All rows of a query that reads. It is asked again if the connection was lost meanwhile.
    fn rows(&mut self, query: &str, parameters: &[Parameter<'_>]) -> Result<Vec<Row>> {
        let mut rows = self.ask(query, parameters);
        if !self.in_transaction && rows.as_ref().is_err_and(is_lost) {
            self.reconnect()?;
            rows = self.ask(query, parameters);
        }
        rows.map_err(self.failed())
    }

    /// A query is planned once for each connection: to plan one takes longer than to find a few records.
    fn ask(
        &mut self,
        query: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, postgres::Error> {
        let statement = match self.prepared.get(query) {
            Some(statement) => statement.clone(),
            None => {
                let types: Vec<Type> = parameters.iter().map(|(_, of)| of.clone()).collect();
                let statement = self.client.prepare_typed(query, &types)?;
                self.prepared.insert(query.to_owned(), statement.clone());
                statement
            }
        };
        let values: Vec<&(dyn ToSql + Sync)> = parameters.iter().map(|(value, _)| *value).collect();
        self.client.query(&statement, &values)
    }

    /// A number that a query gives; 0 for none.
    fn count(&mut self, query: &str) -> Result<u64> {
        let rows = self.rows(query, &[])?;
        let count = rows.first().map(|row| row.try_get::<_, Option<i64>>(0)).transpose();
        Ok(count.map_err(self.failed())?.flatten().unwrap_or(0) as u64)
    }

    /// Gives each row of a query as it comes: there may be more of them than fit into memory.
    fn stream(
        &mut self,
        query: &str,
        parameters: &[i64],
        each: &mut dyn FnMut(&Source, &Row) -> Result<()>,
    ) -> Result<()> {
        let failed = |error| self.source.failure(error);
        let parameters = parameters.iter().map(|parameter| (parameter, Type::INT8));
        let mut rows = self.client.query_typed_raw(query, parameters).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            each(&self.source, &row)?;
        }
        Ok(())
    }

    /// Runs statements that take no parameters.
    fn execute(&mut self, statements: &str) -> Result<()> {
        self.client.batch_execute(statements).map_err(self.failed())
    }

    /// Runs a statement that writes; how many rows it has changed.
    fn change(&mut self, statement: &str, parameters: &[Parameter<'_>]) -> Result<u64> {
        self.client.execute_typed(statement, parameters).map_err(self.failed())
    }

    /// Begins a transaction.
    fn start(&mut self, begin: &str) -> Result<()> {
        // PostgreSQL would only warn, and the inner end would be that of both.
        if self.in_transaction {
            return Err(self.refused("there is a transaction already"));
        }
        let mut begun = self.client.batch_execute(begin);
        if begun.as_ref().is_err_and(is_lost) {
            self.reconnect()?;
            begun = self.client.batch_execute(begin);
        }
        begun.map_err(self.failed())?;
        self.in_transaction = true;
        Ok(())
    }

    /// Runs `work` at one moment: in the transaction that there is, or in one of its own.
    fn at_one_moment<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.in_transaction {
            return work(self);
        }
        self.start(BEGIN_READING)?;
        let result = work(self);
        self.roll_back();
        result
    }

    /// Numbers that the collection says of itself, all of one moment.
    fn numbers<const N: usize>(&mut self, names: [&str; N]) -> Result<[Option<u64>; N]> {
        let query = "SELECT name, value FROM about WHERE name = ANY($1)";
        let rows = self.rows(query, &[(&names.as_slice(), Type::TEXT_ARRAY)])?;
        let mut numbers = [None; N];
        for row in rows {
            let text = |at: usize| row.try_get::<_, &str>(at).map_err(self.failed());
            let (name, value) = (text(0)?, text(1)?);
            let number =
                value.parse().map_err(|_| self.refused(format!("`{name}` is not a number")))?;
            let places = numbers.iter_mut().zip(names).filter(|(_, asked)| *asked == name);
            places.for_each(|(place, _)| *place = Some(number));
        }
        Ok(numbers)
    }

    fn set_number(&mut self, name: &str, value: Option<u64>) -> Result<()> {
        let name = (&name as &(dyn ToSql + Sync), Type::TEXT);
        match value {
            Some(value) => {
                let set = "INSERT INTO about VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value";
                self.change(set, &[name, (&value.to_string(), Type::TEXT)])?
            }
            None => self.change("DELETE FROM about WHERE name = $1", &[name])?,
        };
        Ok(())
    }

    /// Every writer leaves the end of the log behind, so that it is known when the last records are purged.
    fn read_end(&mut self) -> Result<End> {
        let [position, purged] = self.numbers(["end", "purged"])?;
        Ok(End { position: position.unwrap_or(0), purged: purged.unwrap_or(0) })
    }

    /// Waits until no other transaction writes, and keeps others from it.
    fn lock_end(&mut self) -> Result<End> {
        self.rows("SELECT FROM about WHERE name = 'end' FOR UPDATE", &[])?;
        self.read_end()
    }

    /// What PostgreSQL cannot keep is refused before anything is written.
    fn check_changes(&self, changes: &[Change<'_>]) -> Result<()> {
        for change in changes {
            let Change::Put { entry, .. } = change else { continue };
            self.about.check_width(&entry.signature)?;
            let payload = entry.payload.as_deref().unwrap_or_default();
            for (what, text) in [("id", entry.id.as_str()), ("payload", payload)] {
                if text.contains('\0') {
                    let id = entry.id.escape_debug();
                    let problem =
                        format!("the {what} of `{id}` has a U+0000, which PostgreSQL cannot keep");
                    return Err(self.refused(problem));
                }
            }
        }
        Ok(())
    }

    /// Notes which records are there no more, of those that were there before the changes.
    fn mark_removed(&mut self, changes: &Positioned<'_>) -> Result<()> {
        let removed = changes.iter().filter_map(|(position, change)| {
            let removed = change.removes().filter(|removed| *removed < changes.first)?;
            Some((signed(removed), signed(position)))
        });
        let (removed, by): (Vec<i64>, Vec<i64>) = removed.unzip();
        if removed.is_empty() {
            return Ok(());
        }
        let mark = "UPDATE records SET removed = change.by FROM unnest($1, $2) AS change (position, by) \
            WHERE records.position = change.position AND removed IS NULL";
        let parameters: [Parameter<'_>; 2] =
            [(&removed, Type::INT8_ARRAY), (&by, Type::INT8_ARRAY)];
        match self.change(mark, &parameters)? == removed.len() as u64 {
            true => Ok(()),
            false => Err(self.refused("records are to be removed that are not there")),
        }
    }

    /// Adds the records of the changes that add one; those that a later one of them removes are added as removed.
    fn copy_in(&mut self, changes: &Positioned<'_>, time: i64) -> Result<()> {
        let removes = changes.iter().filter_map(|(position, change)| {
            Some((change.removes().filter(|removed| *removed >= changes.first)?, signed(position)))
        });
        let removed: HashMap<u64, i64> = removes.collect();
        let keeps = self.about.keeps;
        let mut copy = || {
            let copy = "COPY records (position, id, signature, margins, payload, text, time, checksum, removed) \
                FROM STDIN BINARY";
            let mut copy = BinaryCopyInWriter::new(self.client.copy_in(copy)?, &COPIED);
            for (position, change) in changes.iter() {
                let Change::Put { entry, text, .. } = change else { continue };
                let mut bytes = [0; 512];
                let columns = Columns::of(entry, position, time, keeps, &mut bytes);
                copy.write(&[
                    &signed(position),
                    &columns.id,
                    &Bits(columns.signature),
                    &columns.margins,
                    &columns.payload,
                    text,
                    &time,
                    &columns.checksum(),
                    &removed.get(&position),
                ])?;
            }
            copy.finish()
        };
        copy().map_err(self.failed())?;
        Ok(())
    }

    /// The records of rows that begin with their place among those asked for.
    fn in_places(&self, rows: &[Row], asked: usize) -> Result<Vec<Option<Record>>> {
        let mut records = vec![None; asked];
        for row in rows {
            let at = row.try_get("place").map_err(self.failed())?;
            records[place(at)] = Some(self.source.record_of(row)?);
        }
        Ok(records)
    }

    fn read_added(
        &mut self,
        range: &Range<u64>,
        each: &mut dyn FnMut(Logged<'_>) -> Result<()>,
    ) -> Result<()> {
        let query = format!(
            "SELECT {COLUMNS} FROM records WHERE position >= $1 AND position < $2 AND removed IS NULL ORDER BY position"
        );
        let bounds = [range.start, range.end].map(signed);
        self.stream(&query, &bounds, &mut |source, row| {
            let Columns { position, id, signature, .. } = source.columns_of(row)?;
            each(Logged::Added { position, id, signature })
        })
    }

    fn read_removed(
        &mut self,
        after: u64,
        each: &mut dyn FnMut(Logged<'_>) -> Result<()>,
    ) -> Result<()> {
        let query = "SELECT position FROM records WHERE removed IS NOT NULL AND removed > $1";
        self.stream(query, &[signed(after)], &mut |source, row| {
            let position: i64 = row.try_get(0).map_err(|error| source.failure(error))?;
            each(Logged::Removed(position as u64))
        })
    }

    /// Runs `work` while nobody else makes slices.
    fn with_slices_locked(&mut self, work: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        if self.in_transaction {
            return Err(self.refused("slices are not made within a transaction"));
        }
        // Not a lock to wait for: making indexes waits for all who wait.
        let lock = "SELECT pg_try_advisory_lock($1, 'records'::regclass::oid::int)";
        let rows = self.rows(lock, &[(&APPLICATION, Type::INT4)])?;
        let locked = rows.first().map(|row| row.try_get::<_, bool>(0)).transpose();
        if !locked.map_err(self.failed())?.unwrap_or(false) {
            return Err(self.refused("another process is making slices"));
        }
        let result = work(self);
        let unlock = "SELECT pg_advisory_unlock($1, 'records'::regclass::oid::int)";
        // A lock that is lost with its connection is no lock any more.
        let _ = self.client.query_typed(unlock, &[(&APPLICATION, Type::INT4)]);
        result
    }

    /// Drops the indexes of all slices but those of one number of them. None of these statements blocks others.
    fn drop_slices_except(&mut self, kept: Option<u32>) -> Result<()> {
        let query = "SELECT indexname::text FROM pg_indexes WHERE schemaname = $1 AND tablename = 'records'";
        let schema = self.source.address.schema().to_owned();
        let rows = self.rows(query, &[(&schema, Type::TEXT)])?;
        for row in rows {
            let name: &str = row.try_get(0).map_err(self.failed())?;
            let slices = slices_of(name);
            if slices.is_some() && slices != kept {
                self.execute(&format!("DROP INDEX CONCURRENTLY IF EXISTS {name}"))?;
            }
        }
        Ok(())
    }

    /// Makes the indexes of so many slices.
    fn make_slices(&mut self, count: u32) -> Result<()> {
        for (slice, bytes) in slices(self.about.bits, count).enumerate() {
            let (name, cut) = (slice_name(count, slice), cut("signature", &bytes));
            self.execute(&format!(
                "CREATE INDEX CONCURRENTLY {name} ON records (({cut})) WHERE removed IS NULL"
            ))?;
        }
        // How many values a slice has is known to the planner only after this.
        self.execute("ANALYZE records")
    }
}

impl Store for Postgres {
    fn about(&self) -> &About {
        &self.about
    }

    fn end(&mut self) -> Result<End> {
        self.read_end()
    }

    fn begin(&mut self) -> Result<End> {
        self.start(BEGIN_WRITING)?;
        let end = self.lock_end();
        match &end {
            Ok(end) => self.writing = Some(end.position),
            Err(_) => self.roll_back(),
        }
        end
    }

    fn apply(&mut self, changes: &[Change<'_>], time: i64) -> Result<()> {
        let end = self.writing.expect("changes are made within a transaction");
        self.check_changes(changes)?;
        let changes = Positioned { first: end + 1, changes };
        // Before their successors come: an id is there once.
        self.mark_removed(&changes)?;
        if changes.iter().any(|(_, change)| matches!(change, Change::Put { .. })) {
            self.copy_in(&changes, time)?;
        }
        self.writing = Some(end + changes.changes.len() as u64);
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        let Some(end) = self.writing else { return Err(self.refused("there is no transaction")) };
        // A transaction in which something failed is refused here: its COMMIT would roll it back and succeed.
        let committed = self.set_number("end", Some(end)).and_then(|()| self.execute("COMMIT"));
        match committed {
            Ok(()) => (self.in_transaction, self.writing) = (false, None),
            Err(_) => self.roll_back(),
        }
        committed
    }

    fn roll_back(&mut self) {
        self.writing = None;
        if std::mem::take(&mut self.in_transaction) {
            // A lost connection has done so by itself.
            let _ = self.client.batch_execute("ROLLBACK");
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
        let query = format!("SELECT place, {} FROM {BY_POSITIONS}", columns(texts));
        let asked: Vec<i64> = positions.iter().copied().map(signed).collect();
        let rows = self.rows(&query, &[(&asked, Type::INT8_ARRAY)])?;
        self.in_places(&rows, positions.len())
    }

    fn each(&mut self, texts: bool, each: &mut dyn FnMut(Record) -> Result<()>) -> Result<()> {
        let query = format!(
            "SELECT {} FROM records WHERE removed IS NULL ORDER BY position",
            columns(texts)
        );
        self.at_one_moment(|this| {
            this.stream(&query, &[], &mut |source, row| each(source.record_of(row)?))
        })
    }

    fn counts(&mut self) -> Result<Counts> {
        self.at_one_moment(|this| {
            // Both are counted in indexes, which have fewer pages than the records.
            let all = this.count("SELECT count(*) FROM records")?;
            let removed = this.count("SELECT count(*) FROM records WHERE removed IS NOT NULL")?;
            Ok(Counts { records: all - removed, removed })
        })
    }

    fn purge(&mut self, up_to: u64) -> Result<u64> {
        let end = self.begin()?;
        let delete = "DELETE FROM records WHERE removed IS NOT NULL AND removed <= $1";
        let purged = self
            .set_number("purged", Some(end.purged.max(up_to)))
            .and_then(|()| self.change(delete, &[(&signed(up_to), Type::INT8)]));
        match purged {
            Ok(_) => self.commit()?,
            Err(_) => self.roll_back(),
        }
        let purged = purged?;
        // Makes their room that of new records.
        self.execute("VACUUM records")?;
        Ok(purged)
    }

    fn slices(&mut self) -> Result<Option<u32>> {
        let [slices] = self.numbers(["slices"])?;
        Ok(slices.map(|slices| slices as u32))
    }

    fn reslice(&mut self, count: Option<u32>) -> Result<()> {
        self.with_slices_locked(|this| {
            let before = this.slices()?;
            // What a process has left behind that did not come to its end.
            this.drop_slices_except(before)?;
            if before == count {
                return Ok(());
            }
            if let Some(count) = count {
                this.make_slices(count)?;
            }
            this.set_number("slices", count.map(u64::from))?;
            this.drop_slices_except(count)
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
        let bytes = query.to_bytes();
        let parameters: [Parameter<'_>; 2] =
            [(&Bits(&bytes), Type::BIT), (&i64::from(radius), Type::INT8)];
        let rows = self.rows(&sql, &parameters)?;
        let found = rows
            .iter()
            .map(|row| Ok((row.try_get::<_, i64>(0)? as u64, row.try_get::<_, i64>(1)? as u32)));
        found.collect::<Result<_, postgres::Error>>().map_err(self.failed())
    }

    fn check(&mut self) -> Result<Vec<String>> {
        self.at_one_moment(|this| {
            let mut problems = Vec::new();
            let end = this.read_end()?.position;
            let last = this.count("SELECT greatest(max(position), max(removed)) FROM records")?;
            if last > end {
                problems.push(format!("the log ends at {end}, but there is a change at {last}"));
            }
            // Records that were removed are looked at, too.
            let query = format!("SELECT {} FROM records ORDER BY position", columns(true));
            this.stream(&query, &[], &mut |source, row| {
                problems.extend(source.record_of(row).err().map(|error| error.to_string()));
                Ok(())
            })?;
            Ok(problems)
        })
    }

    fn backup(&mut self, _: &Path) -> Result<()> {
        Err(self.refused(format!(
            "collections in PostgreSQL are backed up by its own means: `pg_dump --schema '{}'`",
            self.source.address.quoted_schema()
        )))
    }

    fn bytes(&mut self) -> Result<u64> {
        self.count("SELECT pg_total_relation_size('records')")
    }
}

/// Where rows come from, and what they are checked for.
struct Source {
    address: Address,
    checks: Checks,
}

impl Source {
    fn failure(&self, error: postgres::Error) -> Error {
        self.address.failure(error)
    }

    /// The record of a row of [`columns`].
    fn record_of(&self, row: &Row) -> Result<Record> {
        let columns = self.columns_of(row)?;
        let text = row.try_get("text").map_err(|error| self.failure(error))?;
        self.checks.record(&columns, text)
    }

    /// The columns of a row of [`COLUMNS`], if their checksum is right.
    fn columns_of<'a>(&self, row: &'a Row) -> Result<Columns<'a>> {
        let read = || {
            let columns = Columns {
                position: row.try_get::<_, i64>("position")? as u64,
                id: row.try_get("id")?,
                signature: row.try_get::<_, Bits<'_>>("signature")?.0,
                margins: row.try_get("margins")?,
                payload: row.try_get("payload")?,
                time: row.try_get("time")?,
            };
            Ok((columns, row.try_get("checksum")?))
        };
        let (columns, checksum) = read().map_err(|error| self.failure(error))?;
        self.checks.columns(&columns, checksum)?;
        Ok(columns)
    }
}

/// Changes, and the position of the first; the others follow.
struct Positioned<'a> {
    first: u64,
    changes: &'a [Change<'a>],
}

impl<'a> Positioned<'a> {
    fn iter(&self) -> impl Iterator<Item = (u64, &'a Change<'a>)> {
        (self.first..).zip(self.changes)
    }
}

/// Makes the tables of a new collection, or opens those of one that is there, made as this one would be: several machines
/// share it, each with a folder of its own.
pub(super) fn create_or_join(url: &str, schema: &str, about: &About) -> Result<Box<dyn Store>> {
    if !Postgres::exists(url, schema)? {
        return Ok(Box::new(Postgres::create(url, schema, about)?));
    }
    let store = Postgres::open(url, schema)?;
    let there = store.about();
    if there.bits != about.bits {
        return Err(Error::WidthMismatch { stored: there.bits, given: about.bits });
    }
    match (&there.recipe, &about.recipe) {
        (Some(there), Some(given)) => there.check_same(given)?,
        (None, None) => {}
        _ => return Err(store.refused("there is a collection already, of another recipe")),
    }
    Ok(Box::new(store))
}

/// From the number of a row of an array, which begin at 1, to its place in ours.
fn place(ordinality: i64) -> usize {
    ordinality as usize - 1
}

/// A position as PostgreSQL has it.
fn signed(position: u64) -> i64 {
    i64::try_from(position).unwrap_or(i64::MAX)
}

/// The columns of a record; texts stay in the database if they are not asked for.
fn columns(texts: bool) -> String {
    let text = match texts {
        true => "text",
        false => "NULL::bytea AS text",
    };
    format!("{COLUMNS}, {text}")
}

/// The query for records that share a slice with a signature ($1) and are within a radius ($2).
fn by_slices(bits: u32, count: u32) -> String {
    let branch = |bytes: Range<u32>| {
        let (stored, given) = (cut("signature", &bytes), cut("$1", &bytes));
        format!("{} AND {stored} = {given}", near())
    };
    // Each branch looks into one index; a record that several find is found once.
    let branches: Vec<String> = slices(bits, count).map(branch).collect();
    format!("{} ORDER BY distance, position", branches.join(" UNION "))
}

/// The query for the distance to every record.
fn every_record() -> String {
    format!("{} ORDER BY distance, position", near())
}

/// The query for records within a radius ($2) of a signature ($1), to be narrowed down.
fn near() -> &'static str {
    "SELECT position, bit_count(signature # $1) AS distance FROM records \
     WHERE removed IS NULL AND bit_count(signature # $1) <= $2"
}

/// Some bytes of a bit string, in SQL.
fn cut(of: &str, bytes: &Range<u32>) -> String {
    format!("substring({of} FROM {} FOR {})", bytes.start * 8 + 1, bytes.len() * 8)
}

/// The name of the index of one of so many slices: an index of an unfinished number of them is known by it.
fn slice_name(count: u32, slice: usize) -> String {
    format!("slice_{count}_{slice}")
}

/// How many slices the one is of whose index has this name, if it is one of ours.
fn slices_of(name: &str) -> Option<u32> {
    let (count, slice) = name.strip_prefix("slice_")?.split_once('_')?;
    let (count, slice) = (count.parse().ok()?, slice.parse().ok()?);
    (slice_name(count, slice) == name).then_some(count)
}

/// Whether the schema of a connection has the tables of a collection.
fn is_collection(client: &mut Client, address: &Address) -> Result<bool> {
    let query = "SELECT to_regclass('about') IS NOT NULL AND to_regclass('records') IS NOT NULL";
    client
        .query_typed_one(query, &[])
        .and_then(|row| row.try_get(0))
        .map_err(|error| address.failure(error))
}

/// What a collection says of itself under a name.
fn value(client: &mut Client, name: &str) -> Result<Option<String>, postgres::Error> {
    let query = "SELECT value FROM about WHERE name = $1";
    let row = client.query_typed_opt(query, &[(&name, Type::TEXT)])?;
    row.map(|row| row.try_get(0)).transpose()
}

/// The version of a collection's tables.
fn version(client: &mut Client, address: &Address) -> Result<usize> {
    let version = value(client, "version").map_err(|error| address.failure(error))?;
    let version = version.and_then(|version| version.parse().ok()).unwrap_or(0);
    known_version(version, MIGRATIONS.len()).map_err(|problem| address.refused(problem))
}

fn make_schema(
    transaction: &mut Transaction<'_>,
    address: &Address,
) -> Result<(), postgres::Error> {
    // IF NOT EXISTS would ask for the right to make one even if there is one.
    let query = "SELECT 1 FROM pg_namespace WHERE nspname = $1";
    match transaction.query_opt(query, &[&address.schema()])? {
        Some(_) => Ok(()),
        None => transaction.batch_execute(&format!("CREATE SCHEMA {}", address.quoted_schema())),
    }
}

/// Brings the tables of a collection to the newest version, unless another process has done so meanwhile.
fn bring_up_to_date(address: &Address, bits: u32) -> Result<()> {
    let mut client = address.connect(Access::Write)?;
    let failed = |error| address.failure(error);
    client.batch_execute(BEGIN_WRITING).map_err(failed)?;
    client.batch_execute("SELECT FROM about WHERE name = 'end' FOR UPDATE").map_err(failed)?;
    let version = version(&mut client, address)?;
    migrate(&mut client, version, bits).map_err(failed)?;
    client.batch_execute("COMMIT").map_err(failed)
}

/// Brings the tables from a version to the newest.
fn migrate(
    client: &mut impl GenericClient,
    version: usize,
    bits: u32,
) -> Result<(), postgres::Error> {
    for step in &MIGRATIONS[version..] {
        client.batch_execute(&step.replace("WIDTH", &bits.to_string()))?;
    }
    let set = "INSERT INTO about VALUES ('version', $1) ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    client.execute(set, &[&MIGRATIONS.len().to_string()])?;
    Ok(())
}
