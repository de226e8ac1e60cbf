//! Searches in a collection: queries in, records out. What does not count is left out while candidates are looked at, so
//! that those that count are all there.

use std::{collections::HashMap, time::Instant};

use serde_json::Value;

use super::{
    BySql, Filter, Record,
    snapshot::{Bounds, Found, How, Sieve, Snapshot},
    store::Store,
};
use crate::{
    Error, Result,
    index::{Effort, Promise, Queries},
    search::Question,
};

/// What is asked about each query.
#[derive(Debug, Clone)]
pub struct Ask<'a> {
    /// Within a radius, or the nearest.
    pub question: Question,
    /// Only records that it matches.
    pub filter: Option<&'a Filter>,
    /// Who asks, for each query: documents that are not to find themselves or their like. May be empty.
    pub asking: &'a [Asking],
    /// Records that have the same value in one of these fields of the payload as who asks are left out.
    pub not_same: &'a [String],
    /// What finds them.
    pub by: By,
    /// No more records than this for a query, the nearest ones; [`Hits::more`] tells whether there are others.
    pub limit: usize,
    /// What is not answered by then is an error; it is looked at now and then.
    pub until: Option<Instant>,
    /// Records that have more bytes than this together are an error.
    pub most_bytes: u64,
}

impl Ask<'_> {
    /// A question without conditions.
    pub fn new(question: Question) -> Self {
        Ask {
            question,
            filter: None,
            asking: &[],
            not_same: &[],
            by: By::default(),
            limit: usize::MAX,
            until: None,
            most_bytes: u64::MAX,
        }
    }

    fn has_conditions(&self) -> bool {
        self.filter.is_some() || !self.asking.is_empty()
    }

    /// How many records a query may have, and until when.
    fn bounds(&self) -> Bounds {
        let most = match self.question {
            Question::First(_) => 1,
            _ => self.limit,
        };
        Bounds { most, until: self.until }
    }
}

/// Who asks.
#[derive(Debug, Clone, Default)]
pub struct Asking {
    /// The record of this id is left out.
    pub not_id: Option<String>,
    /// The payload, whose fields may not be those of records found.
    pub payload: Value,
}

/// What finds records.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum By {
    /// The index that the collection keeps, as long as it is exact.
    #[default]
    Index,
    /// The index that the collection keeps, if this share of the records is enough.
    Share(f64),
    /// Every signature is compared.
    Scan,
    /// The database alone: by its slices, within the radius that they guarantee.
    Sql,
    /// The database alone: by the distance to every record.
    SqlEveryRecord,
}

/// A record near a query.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// How many bits differ.
    pub distance: u32,
    /// The record.
    pub record: Record,
}

/// The records near each query, nearest first, ties by their position in the log; and what the answer is worth.
#[derive(Debug, Clone, PartialEq)]
pub struct Hits {
    /// Of each query.
    pub of: Vec<Vec<Hit>>,
    /// Whether a query has more of them than the limit.
    pub more: Vec<bool>,
    /// What the answer is worth.
    pub promise: Promise,
}

/// Asks a snapshot; records are read from the store.
pub(super) fn ask(
    snapshot: &Snapshot,
    store: &mut dyn Store,
    queries: Queries<'_>,
    ask: &Ask<'_>,
) -> Result<Hits> {
    let how = match ask.by {
        By::Index => How::Index(None),
        By::Share(share) => How::Index((share < 1.0).then_some(Effort::Recall(share))),
        By::Scan => How::Scan,
        By::Sql | By::SqlEveryRecord => return by_sql(store, queries, ask),
    };
    let mut conditions = Conditions { store, ask, known: HashMap::new() };
    let sieve = ask.has_conditions().then_some(&mut conditions as &mut dyn Sieve);
    let (found, promise) = match ask.question {
        Question::Within(radius) | Question::First(radius) => {
            snapshot.within(queries, radius, how, ask.bounds(), sieve)?
        }
        Question::Nearest(k) => snapshot.nearest(queries, k, how, ask.bounds(), sieve)?,
    };
    hits_of(store, found, ask, promise)
}

/// The records of what was found, as many as are asked for.
fn hits_of(
    store: &mut dyn Store,
    mut found: Vec<Vec<Found>>,
    ask: &Ask<'_>,
    promise: Promise,
) -> Result<Hits> {
    let most = ask.bounds().most;
    let is_limited = !matches!(ask.question, Question::First(_));
    let more = found.iter().map(|found| is_limited && found.len() > most).collect();
    found.iter_mut().for_each(|found| found.truncate(most));
    Ok(Hits { of: records_of(store, &found, ask)?, more, promise })
}

/// The records of what was found. One that was removed and purged in the meantime is left out.
fn records_of(store: &mut dyn Store, found: &[Vec<Found>], ask: &Ask<'_>) -> Result<Vec<Vec<Hit>>> {
    let positions: Vec<u64> = found.iter().flatten().map(|found| found.position).collect();
    let (mut records, mut bytes) = (Vec::with_capacity(positions.len()), 0);
    for some in positions.chunks(READ_FOR_HITS) {
        ask.bounds().check_time()?;
        let some = store.records(some, false)?;
        bytes += some.iter().flatten().map(Record::bytes).sum::<u64>();
        if bytes > ask.most_bytes {
            return Err(Error::TooManyBytes { most: ask.most_bytes });
        }
        records.extend(some);
    }
    let mut records = records.into_iter();
    let mut hits = |found: &Vec<Found>| {
        let hits = found.iter().zip(records.by_ref());
        hits.filter_map(|(found, record)| Some(Hit { distance: found.distance, record: record? }))
            .collect()
    };
    Ok(found.iter().map(&mut hits).collect())
}

/// Asks the database itself.
fn by_sql(store: &mut dyn Store, queries: Queries<'_>, ask: &Ask<'_>) -> Result<Hits> {
    let (Question::Within(radius) | Question::First(radius)) = ask.question else {
        return Err(Error::Setting {
            name: "the index",
            problem: "of the database finds what is within a radius, not the nearest".to_owned(),
        });
    };
    let how = match ask.by {
        By::SqlEveryRecord => BySql::EveryRecord,
        _ => BySql::Slices(store.slices()?.ok_or(Error::NoSlices)?),
    };
    let mut all = Vec::new();
    for query in 0..queries.len() {
        ask.bounds().check_time()?;
        let signature = queries.signatures().get(query);
        let found = store.within(&signature, radius, how)?.into_iter();
        all.push(
            found.map(|(position, distance)| Found { distance, position }).collect::<Vec<_>>(),
        );
    }
    if ask.has_conditions() {
        let mut conditions = Conditions { store, ask, known: HashMap::new() };
        for (query, found) in all.iter_mut().enumerate() {
            conditions.sieve(query, found)?;
        }
    }
    hits_of(store, all, ask, Promise::Exact)
}

/// The conditions of a question, and the records that were looked at so far.
struct Conditions<'a> {
    store: &'a mut dyn Store,
    ask: &'a Ask<'a>,
    /// Whether the filter lets a record pass, with its id and payload for what depends on the query.
    known: HashMap<u64, Known>,
}

struct Known {
    passes: bool,
    id: String,
    payload: Value,
}

impl Known {
    fn new(ask: &Ask<'_>, record: Record) -> Self {
        let payload = record.payload_value();
        let passes = ask.filter.is_none_or(|filter| filter.matches(&record.id, &payload));
        // There may be very many, and few questions want to know more.
        let id = if ask.asking.is_empty() { String::new() } else { record.id };
        let payload = if ask.not_same.is_empty() { Value::Null } else { payload };
        Known { passes, id, payload }
    }
}

impl Conditions<'_> {
    fn know(&mut self, found: &[Found]) -> Result<()> {
        let new = found.iter().map(|found| found.position);
        let new: Vec<u64> = new.filter(|position| !self.known.contains_key(position)).collect();
        for some in new.chunks(READ_TOGETHER) {
            self.ask.bounds().check_time()?;
            let records = self.store.records(some, false)?;
            for (&position, record) in some.iter().zip(records) {
                let known = match record {
                    Some(record) => Known::new(self.ask, record),
                    None => Known { passes: false, id: String::new(), payload: Value::Null },
                };
                self.known.insert(position, known);
            }
        }
        Ok(())
    }

    fn counts(ask: &Ask<'_>, query: usize, known: &Known) -> bool {
        let Some(asking) = ask.asking.get(query) else { return known.passes };
        let same = |field: &String| {
            let (a, b) = (value_at(&asking.payload, field), value_at(&known.payload, field));
            a.is_some() && a == b
        };
        known.passes
            && asking.not_id.as_deref() != Some(known.id.as_str())
            && !ask.not_same.iter().any(same)
    }
}

/// The value at a path of names with dots between them.
fn value_at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, name| value.get(name))
}

impl Sieve for Conditions<'_> {
    fn sieve(&mut self, query: usize, found: &mut Vec<Found>) -> Result<()> {
        self.know(found)?;
        found.retain(|found| {
            self.known
                .get(&found.position)
                .is_some_and(|known| Conditions::counts(self.ask, query, known))
        });
        Ok(())
    }

    fn all(&mut self, snapshot: &Snapshot, query: usize) -> Result<Vec<u64>> {
        let mut all = Vec::new();
        let positions: Vec<u64> = snapshot.positions().collect();
        for some in positions.chunks(READ_TOGETHER) {
            self.ask.bounds().check_time()?;
            for record in self.store.records(some, false)?.into_iter().flatten() {
                let position = record.position;
                if Conditions::counts(self.ask, query, &Known::new(self.ask, record)) {
                    all.push(position);
                }
            }
        }
        Ok(all)
    }
}

/// Records that are read at a time where all are looked at.
const READ_TOGETHER: usize = 1024;
/// Records that are read at a time to be handed out: there may be more bytes of them than are allowed.
const READ_FOR_HITS: usize = 256;
