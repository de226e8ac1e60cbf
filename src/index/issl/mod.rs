//! ISSL: inverted signature slice lists (Chappell, Geva and Zuccon, 2015), for the nearest rows of long signatures.
//!
//! A signature is cut into slices. For each slice there is a [`Table`] from the slice's value to the rows that have it. A
//! query visits lists in every slice: those of all values within some errors of its own (the *expansion*), as published, or
//! the likeliest by its margins. A row gains `width - errors` points in each list that it is met in; those with the most
//! points are compared with the query.
//!
//! - `slices.rs`: slices of nearly equal width. `reach.rs`: how far a search goes.
//! - `lists.rs`: which lists a query visits; `rates.rs`: how likely bits are to differ, learned from the data.
//! - `score.rs`: the points; `bounds.rs`: what they say about distances, and when the nearest are proven.
//! - `updates.rs`: rows that come and go. `file.rs`: an index in a file. `recall.rs`: what an answer is worth.

mod bounds;
mod file;
mod lists;
mod nearest;
mod rates;
mod reach;
mod recall;
mod score;
mod slices;
mod updates;

use std::{
    borrow::Cow,
    ops::Range,
    sync::{Mutex, MutexGuard, PoisonError},
};

use rayon::prelude::*;

use self::{
    bounds::Bounds,
    lists::Lists,
    nearest::Nearest,
    rates::{Costs, Rates},
    reach::{RERANKED, RERANKED_OF_THE_PAPER},
    recall::Known,
    score::{Asked, Workspace},
    slices::{Slices, width_for},
    updates::Removed,
};
pub use self::{file::IsslFile, reach::Reach};
use super::{Answers, Index, Neighbor, Promise, Queries, Scan};
use crate::{
    Error, Result, Signatures,
    hamming::{self, Kernel, prefetch},
    probe::count_within,
    table::{Copies, Distinct, Stored, Table},
};

/// Lists of rows by the values of the slices of their signatures.
#[derive(Debug)]
pub struct Issl<'a> {
    /// The rows that the tables know.
    rows: Cow<'a, Signatures>,
    /// The width that was asked for; otherwise it follows from the number of rows.
    width: Option<u32>,
    slices: Slices,
    tables: Vec<Table>,
    copies: Copies,
    distinct: usize,
    /// How many rows a list has on average, seen by its rows: far more than a list on average.
    usual_list: f64,
    /// Rows that were added since.
    fresh: Signatures,
    removed: Removed,
    /// Removed rows that are still in the tables.
    unsettled: usize,
    rates: Rates,
    costs: Costs,
    kernel: Kernel,
    reach: Option<Reach>,
    workspaces: Mutex<Vec<Workspace>>,
    /// What answers were found to be worth.
    known: Mutex<Vec<Known>>,
}

/// For each query of a batch, whether its nearest rows are proven to be the nearest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proven(Vec<bool>);

impl Proven {
    /// Whether the answer to query `query` of the batch is proven.
    pub fn of(&self, query: usize) -> bool {
        self.0[query]
    }

    /// How many answers are.
    pub fn count(&self) -> usize {
        self.0.iter().filter(|proven| **proven).count()
    }

    /// Whether all answers are.
    pub fn all(&self) -> bool {
        self.0.iter().all(|proven| *proven)
    }
}

/// Queries that one thread answers before it looks for more.
const PART: usize = 16;
/// A single query is spread over threads if it visits so many lists: starting them costs as much as some hundred.
const LISTS_FOR_THREADS: usize = 4096;
/// If no more than this part of all rows will be met, they are remembered instead of looking through all scores.
const FEW_PART: usize = 32;
/// What things cost, in words of a scan: to look up a list, to score a row, and to compare one from anywhere in memory.
/// Measured at a million rows of 1024 bits.
const LIST_COST: u64 = 15;
const ROW_COST: u64 = 5;
const COMPARED_COST: u64 = 150;
/// Learning looks at so many queries, and at so many neighbors of each.
const LEARN_FROM: usize = 256;
const LEARN_NEIGHBORS: usize = 10;

impl<'a> Issl<'a> {
    /// Builds the lists of `rows` on all cores. Slices have at most `width` bits, 8 to 28; as a rule 16 for a million rows
    /// and one more each time they double.
    pub fn build(rows: &'a Signatures, width: Option<u32>) -> Result<Self> {
        if u32::try_from(rows.len()).is_err() {
            return Err(Error::TooManyRows { rows: rows.len() });
        }
        let slices = Slices::new(rows.bits(), width.unwrap_or_else(|| width_for(rows.len())))?;
        let distinct = Distinct::of(rows)?;
        let tables = build_tables(&slices, rows, &distinct)?;
        let rates = Rates::typical(rows);
        Ok(Issl {
            rows: Cow::Borrowed(rows),
            width,
            slices,
            usual_list: usual_list(&tables),
            tables,
            distinct: distinct.firsts.len(),
            copies: distinct.copies,
            fresh: Signatures::new(rows.bits())?,
            removed: Removed::default(),
            unsettled: 0,
            costs: rates.costs(),
            rates,
            kernel: hamming::kernel()?,
            reach: None,
            workspaces: Mutex::default(),
            known: Mutex::default(),
        })
    }

    /// Learns how likely bits are to differ, by margin, from some of these queries and their nearest rows. Without it,
    /// rates measured elsewhere are used; queries without margins teach nothing.
    pub fn learn(&mut self, queries: Queries<'_>) -> Result<()> {
        self.check_width(queries.bits())?;
        let amount = (LEARN_FROM, LEARN_NEIGHBORS);
        if let Some(rates) = Rates::measure(&self.rows, queries, amount)? {
            self.costs = rates.costs();
            self.rates = rates;
            self.forget();
        }
        Ok(())
    }

    /// How far [`nearest`](Index::nearest) goes from now on.
    pub fn with_reach(mut self, reach: Reach) -> Self {
        self.reach = Some(reach);
        self
    }

    /// Reaches of rising effort, for queries with margins or without.
    pub fn ladder(&self, margins: bool) -> Vec<Reach> {
        reach::ladder(self.slices.len(), self.slices.width(), margins)
    }

    /// What the paper has: all within `expansion`, 30 rows compared in the end.
    pub fn published(expansion: u32, admission: u32) -> Reach {
        Reach::Within { expansion, admission, reranked: RERANKED_OF_THE_PAPER }
    }

    /// What lists of so many rows take at most.
    pub fn most_bytes(rows: usize, bits: u32, width: Option<u32>) -> Result<u64> {
        let slices = Slices::new(bits, width.unwrap_or_else(|| width_for(rows)))?;
        let list = |width: &u32| 4 * ((1_u64 << width) + 1 + rows as u64);
        Ok(slices.widths.iter().map(list).sum::<u64>() + 4 * rows as u64)
    }

    /// How many rows there are, with those that were removed.
    pub fn len(&self) -> usize {
        self.rows.len() + self.fresh.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rows that the lists know: all, once the index is [settled](Self::settle).
    pub fn signatures(&self) -> &Signatures {
        &self.rows
    }

    /// How many different signatures the lists have.
    pub fn distinct(&self) -> usize {
        self.distinct
    }

    /// How many slices there are.
    pub fn slices(&self) -> usize {
        self.slices.len()
    }

    /// How many bits the widest slice has.
    pub fn width(&self) -> u32 {
        self.slices.width()
    }

    /// How much memory the lists take, with what leads from a signature to its copies.
    pub fn bytes(&self) -> u64 {
        self.tables.iter().map(Table::bytes).sum::<u64>() + self.copies.bytes()
    }

    /// All rows within this radius are met by lists within so many errors.
    pub fn guarantee(&self, expansion: u32) -> u32 {
        (self.slices.len() as u32).saturating_mul(expansion.saturating_add(1)) - 1
    }

    /// How many lists a query visits with this expansion, in all slices.
    pub fn lists(&self, expansion: u32) -> usize {
        let lists = self.slices.widths.iter().map(|&width| count_within(width, expansion));
        lists.sum::<u64>() as usize
    }

    /// How many lists a query visits with this expansion, and which share of the rows it meets in them: Table 1 of the
    /// earlier paper.
    pub fn touched(&self, query: &[u64], expansion: u32) -> (usize, f64) {
        let lists = Lists::within(&self.slices, expansion, expansion);
        let mut work = self.workspace();
        work.score(Asked { tables: &self.tables, query, lists: &lists }, false);
        let mut met = 0;
        work.take_all(|_, _| met += 1);
        self.give_back(work);
        (lists.count(), met as f64 / self.distinct.max(1) as f64)
    }

    /// The `k` nearest rows of each query that are found with this reach, and which answers are proven.
    pub fn nearest_at(
        &self,
        queries: Queries<'_>,
        k: usize,
        reach: Reach,
        found: &mut Answers,
    ) -> Result<Proven> {
        self.check_width(queries.bits())?;
        let visit = Visit::new(self, reach);
        let answers = self.for_each(queries, |work, query, spread| {
            self.nearest_of((queries, query), k, &visit, work, spread)
        });
        found.clear();
        let mut proven = Proven::default();
        for (neighbors, is_proven) in answers {
            found.push(&neighbors);
            proven.0.push(is_proven);
        }
        Ok(proven)
    }

    /// Answers every query on all cores: many are spread over the threads, a single one spreads its lists.
    fn for_each<T: Send>(
        &self,
        queries: Queries<'_>,
        answer: impl Fn(&mut Workspace, usize, bool) -> T + Sync,
    ) -> Vec<T> {
        let len = queries.len();
        let run = |part: Range<usize>| {
            let mut work = self.workspace();
            let spread = len == 1;
            let answers: Vec<T> = part.map(|query| answer(&mut work, query, spread)).collect();
            self.give_back(work);
            answers
        };
        if len == 1 {
            return run(0..1);
        }
        let part = len.div_ceil(rayon::current_num_threads()).clamp(1, PART);
        let starts: Vec<usize> = (0..len).step_by(part).collect();
        let parts = starts.into_par_iter().map(|start| run(start..(start + part).min(len)));
        parts.collect::<Vec<_>>().into_iter().flatten().collect()
    }

    /// The nearest rows of one query, and whether they are proven.
    fn nearest_of(
        &self,
        (queries, query): (Queries<'_>, usize),
        k: usize,
        visit: &Visit,
        work: &mut Workspace,
        spread: bool,
    ) -> (Vec<Neighbor>, bool) {
        let words = queries.signatures().row(query);
        let bounds = match &visit.lists {
            Some(lists) => {
                self.score(words, lists, work, spread);
                Cow::Borrowed(&visit.bounds)
            }
            None => {
                let mut lists = std::mem::take(&mut work.lists);
                let slices = (&self.slices, &self.costs);
                let reached = work.weakest.fill((queries, query), slices, visit.budget, &mut lists);
                self.score(words, &lists, work, spread);
                work.lists = lists;
                match reached {
                    0 => Cow::Borrowed(&visit.bounds),
                    reached => Cow::Owned(Bounds::new(&self.slices.widths, reached, reached)),
                }
            }
        };
        work.take_best(visit.reranked.max(k), |row| self.lead(row));
        let mut nearest = Nearest::new(k);
        let fresh = self.rows.len() as u32;
        let counts = |row: u32| !self.removed.has(row);
        nearest.offer_all((self.kernel, words), &self.fresh, fresh, counts);
        let least = self.rerank(words, work, &bounds, &mut nearest);
        let proven = nearest.worst().is_some_and(|worst| k == 0 || worst < least);
        // So few lists that there are not enough rows in them: nothing is left but to look at all.
        match nearest.len() < k {
            true => (self.scanned(words, k), true),
            false => (nearest.into_neighbors(), proven),
        }
    }

    /// The nearest rows of all.
    fn scanned(&self, query: &[u64], k: usize) -> Vec<Neighbor> {
        let mut nearest = Nearest::new(k);
        let counts = |row: u32| !self.removed.has(row);
        nearest.offer_all((self.kernel, query), &self.rows, 0, counts);
        nearest.offer_all((self.kernel, query), &self.fresh, self.rows.len() as u32, counts);
        nearest.into_neighbors()
    }

    fn score(&self, query: &[u64], lists: &Lists, work: &mut Workspace, spread: bool) {
        let asked = Asked { tables: &self.tables, query, lists };
        let (threads, count) = (rayon::current_num_threads(), lists.count());
        match spread && threads > 1 && count >= LISTS_FOR_THREADS {
            true => work.score_on_all_cores(asked, threads.min(self.slices.len())),
            false => {
                let met = count as f64 * self.usual_list;
                work.score(asked, met < (self.rows.len() / FEW_PART) as f64);
            }
        }
    }

    /// Compares the best rows with the query, best first, until none can be near enough. Gives the least distance that
    /// any other row can have.
    fn rerank(
        &self,
        query: &[u64],
        work: &Workspace,
        bounds: &Bounds,
        nearest: &mut Nearest,
    ) -> u32 {
        let unseen = bounds.optimistic(0);
        // The `k`th best is at most so far away, whatever it looks like.
        let kth = nearest.wanted().checked_sub(1).and_then(|kth| work.best.get(kth));
        let at_most = kth.map_or(u32::MAX, |kth| bounds.pessimistic(kth.score()));
        for (at, candidate) in work.best.iter().enumerate() {
            let floor = bounds.floor(candidate.score());
            if nearest.worst().map_or(at_most, |worst| worst.min(at_most)) < floor {
                return unseen.min(floor);
            }
            if let Some(later) = work.best.get(at + RERANK_AHEAD) {
                self.ask_for(later.row());
            }
            let row = candidate.row();
            let distance = self.kernel.distance(query, self.rows.row(row as usize));
            for row in self.live(row) {
                if !nearest.offer(distance, row) {
                    break;
                }
            }
        }
        // What was not taken has at most the score of the last.
        let left = work.best.last().map_or(u32::MAX, |last| bounds.floor(last.score()));
        unseen.min(if work.all_taken() { u32::MAX } else { left })
    }

    /// Asks for the words of a row.
    #[inline]
    fn ask_for(&self, row: u32) {
        let stride = self.rows.stride();
        let start = row as usize * stride;
        (start..start + stride).step_by(8).for_each(|word| prefetch(self.rows.words(), word));
    }

    /// The rows with the signature of `first` that were not removed, rising.
    fn live(&self, first: u32) -> impl Iterator<Item = u32> {
        self.copies.view().rows(first).filter(|&row| !self.removed.has(row))
    }

    /// The lowest of them.
    #[inline]
    fn lead(&self, first: u32) -> Option<u32> {
        match self.removed.count() {
            0 => Some(first),
            _ => self.live(first).next(),
        }
    }

    fn check_width(&self, given: u32) -> Result<()> {
        let stored = self.rows.bits();
        if given == stored { Ok(()) } else { Err(Error::WidthMismatch { stored, given }) }
    }

    fn workspace(&self) -> Workspace {
        let kept = locked(&self.workspaces).pop();
        kept.unwrap_or_else(|| Workspace::new(self.rows.len(), self.slices.len()))
    }

    fn give_back(&self, work: Workspace) {
        locked(&self.workspaces).push(work);
    }

    /// Forgets what was true of the rows before.
    fn forget(&mut self) {
        locked(&self.workspaces).clear();
        locked(&self.known).clear();
    }
}

/// Rows that are on their way from memory while one is compared.
const RERANK_AHEAD: usize = 24;

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn build_tables(slices: &Slices, rows: &Signatures, distinct: &Distinct) -> Result<Vec<Table>> {
    let table = |layout: &_| Table::build(Clone::clone(layout), Stored::Numbers, rows, distinct);
    slices.layouts.iter().map(table).collect()
}

/// How many rows the list of a row has on average.
fn usual_list(tables: &[Table]) -> f64 {
    let of_table = |table: &Table| {
        let offsets = table.offsets.as_slice();
        let lengths = offsets.windows(2).map(|pair| f64::from(pair[1] - pair[0]));
        let rows = offsets.last().copied().unwrap_or(0).max(1);
        lengths.map(|length| length * length).sum::<f64>() / f64::from(rows)
    };
    tables.par_iter().map(of_table).sum::<f64>() / tables.len() as f64
}

/// A reach, made ready once for all queries.
struct Visit {
    /// The same for all queries, unless margins tell.
    lists: Option<Lists>,
    budget: usize,
    reranked: usize,
    bounds: Bounds,
}

impl Visit {
    fn new(index: &Issl<'_>, reach: Reach) -> Self {
        let widths = &index.slices.widths;
        let reranked = reach.reranked();
        match reach {
            Reach::Within { expansion, admission, .. } => {
                let (expansion, admission) = (expansion.min(32), admission.min(expansion).min(32));
                Visit {
                    lists: Some(Lists::within(&index.slices, expansion, admission)),
                    budget: 0,
                    reranked,
                    bounds: Bounds::new(widths, expansion + 1, admission + 1),
                }
            }
            Reach::Weakest { lists, .. } => {
                Visit { lists: None, budget: lists, reranked, bounds: Bounds::new(widths, 0, 0) }
            }
        }
    }
}

impl Issl<'_> {
    /// The expansion that is sure to meet all rows within a radius, if its lists cost less than a scan.
    fn expansion_for(&self, radius: u32) -> Option<u32> {
        let expansion = radius / self.slices.len() as u32;
        let widths = &self.slices.widths;
        // If a row may be near that one slice alone has met, all that are met are compared.
        let bounds = Bounds::new(widths, expansion + 1, expansion + 1);
        let compared = bounds.optimistic(self.slices.width() as u16) <= radius;
        let row = if compared { ROW_COST + COMPARED_COST } else { ROW_COST };
        let list = LIST_COST.saturating_add((self.usual_list * row as f64) as u64);
        let lists = widths.iter().map(|&width| count_within(width, expansion));
        let cost = lists.fold(0, u64::saturating_add).saturating_mul(list);
        (cost < self.rows.words().len() as u64).then_some(expansion)
    }

    /// All rows within the radius of one query, met by lists that are sure to have them.
    fn within_of(
        &self,
        query: &[u64],
        radius: u32,
        (lists, bounds): (&Lists, &Bounds),
        work: &mut Workspace,
        spread: bool,
    ) -> Vec<Neighbor> {
        self.score(query, lists, work, spread);
        let mut met = Vec::new();
        work.take_all(|row, score| {
            if bounds.optimistic(score) <= radius {
                met.push(row);
            }
        });
        let mut found = Vec::new();
        for (at, &row) in met.iter().enumerate() {
            if let Some(&later) = met.get(at + RERANK_AHEAD) {
                self.ask_for(later);
            }
            let distance = self.kernel.distance(query, self.rows.row(row as usize));
            if distance <= radius {
                found.extend(self.live(row).map(|row| Neighbor { row, distance }));
            }
        }
        found
    }

    /// Adds the new rows within the radius, and puts all in order.
    fn with_fresh(&self, query: &[u64], radius: u32, found: &mut Vec<Neighbor>) {
        for (row, words) in (self.rows.len() as u32..).zip(self.fresh.rows()) {
            let distance = self.kernel.distance(query, words);
            if distance <= radius && !self.removed.has(row) {
                found.push(Neighbor { row, distance });
            }
        }
        found.sort_unstable_by_key(|neighbor| (neighbor.distance, neighbor.row));
    }

    fn within_by_lists(&self, queries: Queries<'_>, radius: u32, expansion: u32) -> Answers {
        let lists = Lists::within(&self.slices, expansion, expansion);
        let bounds = Bounds::new(&self.slices.widths, expansion + 1, expansion + 1);
        let answers = self.for_each(queries, |work, query, spread| {
            let query = queries.signatures().row(query);
            let mut found = self.within_of(query, radius, (&lists, &bounds), work, spread);
            self.with_fresh(query, radius, &mut found);
            found
        });
        let mut found = Answers::new();
        answers.iter().for_each(|neighbors| found.push(neighbors));
        found
    }

    fn within_by_scan(&self, queries: Queries<'_>, radius: u32) -> Result<Answers> {
        let mut all = Answers::new();
        Scan::with_kernel(&self.rows, self.kernel)?.within(queries, radius, &mut all)?;
        if self.fresh.is_empty() && self.removed.count() == 0 {
            return Ok(all);
        }
        let mut found = Answers::new();
        for (query, neighbors) in queries.signatures().rows().zip(all.iter()) {
            let live = neighbors.iter().copied().filter(|neighbor| !self.removed.has(neighbor.row));
            let mut live: Vec<Neighbor> = live.collect();
            self.with_fresh(query, radius, &mut live);
            found.push(&live);
        }
        Ok(found)
    }
}

impl Index for Issl<'_> {
    /// Always exact: by the lists of an expansion that is sure to meet all rows within the radius, `slices * (expansion +
    /// 1) - 1` or more, or by a scan where that costs less.
    fn within(&self, queries: Queries<'_>, radius: u32, found: &mut Answers) -> Result<Promise> {
        self.check_width(queries.bits())?;
        *found = match self.expansion_for(radius) {
            Some(expansion) => self.within_by_lists(queries, radius, expansion),
            None => self.within_by_scan(queries, radius)?,
        };
        Ok(Promise::Exact)
    }

    /// The nearest one within the radius.
    fn first(&self, queries: Queries<'_>, radius: u32, found: &mut Answers) -> Result<Promise> {
        let mut all = Answers::new();
        let promise = self.within(queries, radius, &mut all)?;
        found.clear();
        all.iter().for_each(|neighbors| found.push(&neighbors[..neighbors.len().min(1)]));
        Ok(promise)
    }

    /// With the reach that was set, or one that suits most. Exact if all answers are proven; otherwise the recall is that
    /// of a sample of queries, or of rows, which is measured once.
    fn nearest(&self, queries: Queries<'_>, k: usize, found: &mut Answers) -> Result<Promise> {
        let usual = match queries.is_empty() || queries.margins(0).is_none() {
            true => Reach::Within { expansion: 2, admission: 2, reranked: RERANKED },
            false => Reach::Weakest { lists: self.slices.len() * 128, reranked: RERANKED },
        };
        let reach = self.reach.unwrap_or(usual);
        match self.nearest_at(queries, k, reach, found)?.all() {
            true => Ok(Promise::Exact),
            false => self.expected(queries, k, reach, found),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::sample::Random;

    /// Which way is cheaper is not asked here: lists alone have to find everything within their guarantee.
    #[test]
    fn an_expansion_finds_all_within_its_guarantee() {
        let mut random = Random(3);
        let words: Vec<u64> = (0..500).flat_map(|_| [random.next(), random.next()]).collect();
        let rows = Signatures::from_words(128, words).unwrap();
        let queries = Signatures::from_words(128, rows.words()[..40].to_vec()).unwrap();
        let index = Issl::build(&rows, Some(10)).unwrap();
        let mut truth = Answers::new();
        for expansion in 0..10 {
            for radius in [index.guarantee(expansion) / 2, index.guarantee(expansion)] {
                Scan::new(&rows).unwrap().within((&queries).into(), radius, &mut truth).unwrap();
                let found = index.within_by_lists((&queries).into(), radius, expansion);
                assert_eq!(found, truth, "{expansion} errors within {radius}");
            }
        }
        assert_eq!(index.expansion_for(u32::MAX), None);
    }
}
