//! Snapshots: a collection as it was at one moment. They never change, whatever is written meanwhile.

use std::{ops::Range, sync::Arc, time::Instant};

use super::{
    By,
    kept::{INDEXED_FROM, Kept},
    part::{LivePart, Part, PartIndex, Rows, part_of},
    store::About,
};
use crate::{
    Error, Result, Signatures,
    index::{Answers, Effort, Index, Neighbor, Promise, Queries, Scan},
    plan::Sample,
};

/// A collection at one moment: the parts of its log in order, and how far they go.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub(super) bits: u32,
    pub(super) kept: Kept,
    pub(super) parts: Vec<LivePart>,
    /// The position of the last change that it knows of.
    pub(super) position: u64,
}

/// A record near a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Found {
    /// How many bits differ.
    pub distance: u32,
    /// The position of the record.
    pub position: u64,
}

/// Says which of the records near a query count. Records that do not are as if they were not there.
pub(super) trait Sieve {
    /// Leaves those that count, in their order.
    fn sieve(&mut self, query: usize, found: &mut Vec<Found>) -> Result<()>;

    /// The positions of all records of a snapshot that count for a query, ascending.
    fn all(&mut self, snapshot: &Snapshot, query: usize) -> Result<Vec<u64>>;
}

/// How far an answer may go.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// No more records than this for a query, and one more to tell that there are others.
    pub(super) most: usize,
    /// Until when.
    pub(super) until: Option<Instant>,
}

impl Bounds {
    /// As far as there is anything.
    pub(super) const NONE: Bounds = Bounds { most: usize::MAX, until: None };

    pub(super) fn check_time(self) -> Result<()> {
        match self.until.is_some_and(|until| Instant::now() > until) {
            true => Err(Error::OutOfTime),
            false => Ok(()),
        }
    }
}

/// A sieve for the queries behind some others.
struct Behind<'a> {
    before: usize,
    sieve: &'a mut dyn Sieve,
}

impl Sieve for Behind<'_> {
    fn sieve(&mut self, query: usize, found: &mut Vec<Found>) -> Result<()> {
        self.sieve.sieve(self.before + query, found)
    }

    fn all(&mut self, snapshot: &Snapshot, query: usize) -> Result<Vec<u64>> {
        self.sieve.all(snapshot, self.before + query)
    }
}

/// A part with new rows, and the one that it takes the place of.
pub(super) struct Grown {
    part: Part,
    pub(super) from: Option<Arc<Part>>,
}

/// A part grows by rows that come if it has at most so many times as many.
const GROWS: usize = 3;
/// How many of the nearest are asked for again if too few of the first counted: so many times as many.
const WIDER: usize = 8;
/// Queries that may each have very many hits are asked in groups of so many.
const FEW: usize = 16;
/// Signatures that the planner looks at.
const SAMPLED: usize = 1 << 15;
/// Queries between which it is looked whether there is time left.
const TIMED: usize = 1 << 10;
/// So many hits a query are many.
const MANY: usize = 1 << 12;
/// From so many on, what counts is found out for all records at once.
const TOO_MANY: usize = 1 << 16;

impl Snapshot {
    pub(super) fn new(about: &About) -> Self {
        Snapshot { bits: about.bits, kept: about.index, parts: Vec::new(), position: 0 }
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.parts.iter().map(LivePart::live).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The position of the last change that it knows of.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Its parts: their index, how many rows they have, and how many of those were removed.
    pub fn parts(&self) -> impl Iterator<Item = PartAbout> + '_ {
        self.parts.iter().map(|live| PartAbout {
            index: live.part.index.name(),
            rows: live.part.len(),
            distinct: live.part.index.distinct(),
            removed: live.removed.count,
            bytes: live.part.bytes(),
            saved: live.part.saved.get().is_some(),
            exact_within: live.part.index.exact_within(self.bits),
        })
    }

    /// A sample of the signatures, for the planner.
    pub fn sample(&self) -> Result<Sample> {
        let total: usize = self.parts.iter().map(|live| live.part.len()).sum();
        let mut some = Signatures::new(self.bits)?;
        for live in &self.parts {
            let share = (SAMPLED as u128 * live.part.len() as u128).div_ceil(total as u128);
            let step = live.part.len().div_ceil(share as usize).max(1);
            let mut rows = (0..live.part.len()).step_by(step);
            rows.try_for_each(|row| some.push_row_of(&live.part.signatures, row))?;
        }
        Ok(Sample::of(&some)?.out_of(self.len()))
    }

    /// The position after those that its parts have.
    pub(super) fn end(&self) -> u64 {
        self.parts.last().map_or(1, |live| live.part.stretch.end)
    }

    /// What new rows become: a part of their own, or the last part with more rows, as long as to build that anew is not much
    /// more work. None if there are no rows.
    pub(super) fn grown(&self, added: &Rows) -> Result<Option<Grown>> {
        if added.positions.is_empty() {
            return Ok(None);
        }
        // What the same change removes may be among the rows: whoever reads the log from here on learns of it.
        let mut rows = Rows::new(added.stretch.clone(), self.position);
        let small = self.parts.last().filter(|last| last.grows_by(added.positions.len()));
        if let Some(small) = small {
            rows.stretch = small.part.stretch.clone();
            rows.append(small);
        }
        rows.extend(added);
        let part = Part::build(rows, self.bits, self.kept)?;
        Ok(Some(Grown { part, from: small.map(|small| small.part.clone()) }))
    }

    /// Whether what a part has grown from is the last part still.
    pub(super) fn ends_with(&self, from: &Arc<Part>) -> bool {
        self.parts.last().is_some_and(|last| Arc::ptr_eq(&last.part, from))
    }

    /// Takes up changes up to a position of the log: what the rows became, and the positions of records that are gone.
    pub(super) fn change(&mut self, position: u64, grown: Option<Grown>, removed: &[u64]) {
        self.position = position;
        if let Some(Grown { part, from }) = grown {
            self.parts.pop_if(|last| from.is_some_and(|from| Arc::ptr_eq(&last.part, &from)));
            self.parts.push(LivePart::new(part));
        }
        removed.iter().for_each(|&position| self.remove(position));
    }

    fn remove(&mut self, position: u64) {
        if let Some(part) = part_of(&self.parts, position) {
            self.parts[part].remove(position);
        }
    }

    /// Every record within the radius of each query, nearest first, ties by position. Of a query that has more than
    /// `most`, these and one more.
    pub(super) fn within(
        &self,
        queries: Queries<'_>,
        radius: u32,
        how: How,
        bounds: Bounds,
        mut sieve: Option<&mut dyn Sieve>,
    ) -> Result<(Vec<Vec<Found>>, Promise)> {
        let (mut all, mut promise) = (Vec::with_capacity(queries.len()), Promise::Exact);
        // What is to be cut is cut group by group: all of them at once may be more than there is memory for.
        let Bounds { most, .. } = bounds;
        let mut group = if most == usize::MAX { queries.len() } else { FEW };
        while all.len() < queries.len() {
            bounds.check_time()?;
            let which: Vec<usize> = (all.len()..queries.len().min(all.len() + group)).collect();
            let some = Chosen::of(queries, &which)?;
            let (found, worth) =
                self.ask(some.queries(), how, usize::MAX, |index, queries, found| {
                    index.within(queries, radius, found)
                })?;
            promise = worse(promise, worth);
            let total: usize = found.iter().map(Vec::len).sum();
            group = if total > which.len() * MANY { 1 } else { (group * 4).min(TIMED) };
            for (query, mut found) in which.into_iter().zip(found) {
                if let Some(sieve) = &mut sieve {
                    sieve.sieve(query, &mut found)?;
                }
                if found.len() > most {
                    found.truncate(most + 1);
                    found.shrink_to_fit();
                }
                all.push(found);
            }
        }
        Ok((all, promise))
    }

    /// The `k` nearest records of each query that count.
    pub(super) fn nearest(
        &self,
        queries: Queries<'_>,
        k: usize,
        how: How,
        bounds: Bounds,
        mut sieve: Option<&mut dyn Sieve>,
    ) -> Result<(Vec<Vec<Found>>, Promise)> {
        if bounds.until.is_none() || queries.len() <= TIMED {
            return self.nearest_of(queries, k, how, bounds, sieve);
        }
        let (mut all, mut promise) = (Vec::with_capacity(queries.len()), Promise::Exact);
        while all.len() < queries.len() {
            let before = all.len();
            let which: Vec<usize> = (before..queries.len().min(before + TIMED)).collect();
            let some = Chosen::of(queries, &which)?;
            let mut sieve = sieve.as_deref_mut().map(|sieve| Behind { before, sieve });
            let sieve = sieve.as_mut().map(|sieve| sieve as &mut dyn Sieve);
            let (found, worth) = self.nearest_of(some.queries(), k, how, bounds, sieve)?;
            promise = worse(promise, worth);
            all.extend(found);
        }
        Ok((all, promise))
    }

    fn nearest_of(
        &self,
        queries: Queries<'_>,
        k: usize,
        how: How,
        bounds: Bounds,
        mut sieve: Option<&mut dyn Sieve>,
    ) -> Result<(Vec<Vec<Found>>, Promise)> {
        let mut answers = vec![Vec::new(); queries.len()];
        let mut open: Vec<usize> = (0..queries.len()).collect();
        let removed: usize = self.parts.iter().map(|live| live.removed.count).sum();
        let sure = sieve.is_none() && removed == 0;
        let asked = if sure { k } else { k.saturating_mul(2).saturating_add(16) };
        let (mut asked, mut promise) = (asked, Promise::Exact);
        while !open.is_empty() && k > 0 {
            bounds.check_time()?;
            if asked > TOO_MANY
                && let Some(sieve) = &mut sieve
            {
                for &query in &open {
                    let among = sieve.all(self, query)?;
                    answers[query] = self.nearest_among(queries, query, k, &among)?;
                }
                break;
            }
            let some = Chosen::of(queries, &open)?;
            let (mut found, worth) =
                self.ask(some.queries(), how, asked, |index, queries, found| {
                    index.nearest(queries, asked, found)
                })?;
            promise = worse(promise, worth);
            let mut left = Vec::new();
            for (&query, found) in open.iter().zip(&mut found) {
                if let Some(sieve) = &mut sieve {
                    sieve.sieve(query, found)?;
                }
                if found.len() < k && asked < self.most_rows() {
                    left.push(query);
                }
                found.truncate(k);
                answers[query] = std::mem::take(found);
            }
            open = left;
            asked = asked.saturating_mul(WIDER);
        }
        Ok((answers, promise))
    }

    /// The nearest record of each query within the radius. Most queries have none, and are only asked for the first.
    pub(super) fn nearest_within(
        &self,
        queries: Queries<'_>,
        radius: u32,
    ) -> Result<Vec<Option<Found>>> {
        let mut maybe = vec![false; queries.len()];
        let mut answers = Answers::new();
        for live in &self.parts {
            live.part
                .ask(None, &mut answers, |index, found| index.first(queries, radius, found))?;
            let some = maybe.iter_mut().zip(answers.iter());
            some.for_each(|(maybe, near)| *maybe |= !near.is_empty());
        }
        let which: Vec<usize> = (0..queries.len()).filter(|&query| maybe[query]).collect();
        let mut nearest = vec![None; queries.len()];
        // A few at a time: all copies of a page are listed.
        for which in which.chunks(FEW) {
            let some = Chosen::of(queries, which)?;
            let (found, _) =
                self.within(some.queries(), radius, How::Index(None), Bounds::NONE, None)?;
            for (&query, found) in which.iter().zip(found) {
                nearest[query] = found.first().copied();
            }
        }
        Ok(nearest)
    }

    /// The positions of all records, ascending.
    pub(super) fn positions(&self) -> impl Iterator<Item = u64> + '_ {
        self.parts.iter().flat_map(|live| {
            let rows = live.part.positions().iter().enumerate();
            rows.filter(|(row, _)| !live.removed.contains(*row)).map(|(_, position)| *position)
        })
    }

    /// The signatures of all records, and the positions of these, ascending.
    pub(super) fn rows(&self) -> Result<(Signatures, Vec<u64>)> {
        let (mut words, mut positions) = (Vec::new(), Vec::with_capacity(self.len()));
        for live in &self.parts {
            let signatures = &live.part.signatures;
            words.reserve_exact(live.live() * signatures.stride());
            for (row, &position) in live.part.positions().iter().enumerate() {
                if !live.removed.contains(row) {
                    words.extend_from_slice(signatures.row(row));
                    positions.push(position);
                }
            }
        }
        Ok((Signatures::from_words(self.bits, words)?, positions))
    }

    /// The nearest of some records to a query, each compared.
    fn nearest_among(
        &self,
        queries: Queries<'_>,
        query: usize,
        k: usize,
        among: &[u64],
    ) -> Result<Vec<Found>> {
        let mut found = Vec::new();
        let one = Signatures::from(queries.signatures().get(query));
        for live in &self.parts {
            let Range { start, end } = live.part.stretch;
            let here = &among
                [among.partition_point(|&at| at < start)..among.partition_point(|&at| at < end)];
            let rows = here.iter().filter_map(|&position| live.part.row_of(position));
            let rows: Vec<usize> = rows.filter(|&row| !live.removed.contains(row)).collect();
            let mut some = Signatures::new(self.bits)?;
            rows.iter().try_for_each(|&row| some.push_row_of(&live.part.signatures, row))?;
            let mut answers = Answers::new();
            Scan::new(&some)?.nearest((&one).into(), k, &mut answers)?;
            let position = |row: u32| live.part.positions()[rows[row as usize]];
            let near = answers.of(0).iter();
            found.extend(
                near.map(|near| Found { distance: near.distance, position: position(near.row) }),
            );
        }
        found.sort_unstable();
        found.truncate(k);
        Ok(found)
    }

    /// How many rows the largest part has: to ask for as many is to ask for all.
    fn most_rows(&self) -> usize {
        self.parts.iter().map(|live| live.part.len()).max().unwrap_or(0)
    }

    /// Asks every part, and puts the answers together: nearest first, ties by position. Removed records are left out.
    /// A part that gives `most` rows may have more: what is farther than the last of them is left out, as something
    /// nearer may be missing.
    fn ask(
        &self,
        queries: Queries<'_>,
        how: How,
        most: usize,
        ask: impl Fn(&dyn Index, Queries<'_>, &mut Answers) -> Result<Promise>,
    ) -> Result<(Vec<Vec<Found>>, Promise)> {
        let mut all = vec![Vec::new(); queries.len()];
        let mut sure = vec![EVERYTHING; queries.len()];
        let (mut answers, mut promise) = (Answers::new(), Promise::Exact);
        for live in &self.parts {
            let ask = |index: &dyn Index, found: &mut Answers| ask(index, queries, found);
            let worth = match how {
                How::Scan => ask(&live.part.scan()?, &mut answers)?,
                How::Index(effort) => live.part.ask(effort, &mut answers, ask)?,
            };
            promise = worse(promise, worth);
            for ((all, sure), near) in all.iter_mut().zip(&mut sure).zip(answers.iter()) {
                let may_have_more = near.len() == most && most < live.part.len();
                if let Some(last) = near.last().filter(|_| may_have_more) {
                    *sure = live.found(last).min(*sure);
                }
                let there = near.iter().filter(|near| !live.removed.contains(near.row as usize));
                all.extend(there.map(|near| live.found(near)));
            }
        }
        for (found, sure) in all.iter_mut().zip(&sure) {
            found.sort_unstable();
            found.truncate(found.partition_point(|found| found <= sure));
        }
        Ok((all, promise))
    }

    /// What finds records that are asked for in some way, in a word for each kind of part.
    pub fn asked_by(&self, by: By) -> String {
        let mut names: Vec<String> = match by {
            By::Sql | By::SqlEveryRecord => vec!["sql".to_owned()],
            By::Scan => vec!["scan".to_owned()],
            By::Index if self.has_graph() => vec!["scan".to_owned()],
            By::Index | By::Share(_) => self.parts().map(|part| part.index).collect(),
        };
        names.dedup();
        if names.is_empty() { "scan".to_owned() } else { names.join(", ") }
    }

    /// Whether any part has an index that is not exact, which has to be allowed.
    pub fn has_graph(&self) -> bool {
        self.parts.iter().any(|live| matches!(live.part.index, PartIndex::Graph(_)))
    }
}

/// What there is to tell about a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartAbout {
    /// Its index.
    pub index: String,
    /// How many rows it has, removed ones included.
    pub rows: usize,
    /// How many signatures are distinct, if the index knows.
    pub distinct: Option<usize>,
    /// How many rows were removed.
    pub removed: usize,
    /// How much memory it takes.
    pub bytes: u64,
    /// Whether it is saved in a segment.
    pub saved: bool,
    /// The radius within which its index finds all; nothing for a graph, which promises none.
    pub exact_within: Option<u32>,
}

/// What nothing is farther than.
const EVERYTHING: Found = Found { distance: u32::MAX, position: u64::MAX };

impl LivePart {
    /// Whether it is small enough to grow by so many rows rather than to have them beside it.
    fn grows_by(&self, rows: usize) -> bool {
        self.part.len() < INDEXED_FROM || self.part.len() <= GROWS * rows
    }

    fn found(&self, near: &Neighbor) -> Found {
        Found { distance: near.distance, position: self.part.positions()[near.row as usize] }
    }
}

/// How the parts of a snapshot are asked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum How {
    /// Every row is compared.
    Scan,
    /// By what index they have; by one that is not exact only with an effort.
    Index(Option<Effort>),
}

/// Some of the queries of a batch.
enum Chosen<'a> {
    All(Queries<'a>),
    Few(Signatures),
}

impl<'a> Chosen<'a> {
    fn of(queries: Queries<'a>, which: &[usize]) -> Result<Self> {
        if which.len() == queries.len() {
            return Ok(Chosen::All(queries));
        }
        let mut some = Signatures::new(queries.bits())?;
        which.iter().try_for_each(|&query| some.push_row_of(queries.signatures(), query))?;
        Ok(Chosen::Few(some))
    }

    fn queries(&self) -> Queries<'_> {
        match self {
            Chosen::All(queries) => *queries,
            Chosen::Few(some) => some.into(),
        }
    }
}

/// What two answers are worth together.
fn worse(a: Promise, b: Promise) -> Promise {
    match (a, b) {
        (Promise::Exact, other) | (other, Promise::Exact) => other,
        (Promise::Expected { recall: a }, Promise::Expected { recall: b }) => {
            Promise::Expected { recall: a.min(b) }
        }
    }
}
