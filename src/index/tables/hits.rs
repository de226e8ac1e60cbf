//! The rows that probes led to: which are within the radius, and which documents have them?

use std::ops::Range;

use super::{
    engine::{BATCH, Group, Search},
    view::{LINE, Row, RowsView},
};
use crate::{
    hamming::{Besides, Near, Pair, Probe, Stretch, prefetch, prefetch_address},
    index::{Answers, Neighbor},
    table::CopiesView,
};

/// Rows of several words under way at once.
const PAIRS: usize = 64;

/// What the queries of a batch have found.
#[derive(Default)]
pub(super) struct Hits {
    /// Queries that need no more: a bit for each.
    done: u64,
    matches: Vec<Match>,
    /// Matches whose numbers are looked up, and where.
    wanted: Vec<Probe>,
    stretches: Vec<Stretch>,
    near: Vec<Near>,
    pairs: Vec<Pair>,
    near_pairs: Vec<(u32, u32)>,
    differences: Vec<u64>,
    found: Vec<(u32, Neighbor)>,
}

/// So many matches are kept memory for.
const SMALL: usize = 1 << 16;

const _: () = assert!(BATCH <= 64, "a bit for each query");

/// A row within the radius, before it is known which documents have its signature.
struct Match {
    query: u32,
    distance: u32,
    place: Place,
}

enum Place {
    /// The signature, and the number of its row in the first table once that is known.
    Word { word: u64, number: Option<u32> },
    /// The first row that has it.
    Row(u32),
}

impl Hits {
    /// Makes ready for the next batch.
    pub(super) fn begin(&mut self) {
        self.done = 0;
        self.matches.clear();
        self.found.clear();
    }

    /// Whether its memory is worth keeping.
    pub(super) fn is_small(&self) -> bool {
        self.matches.capacity() <= SMALL && self.found.capacity() <= SMALL
    }

    /// Whether a query needs no more.
    #[inline(always)]
    pub(super) fn is_done(&self, query: u32) -> bool {
        self.done >> query & 1 == 1
    }

    /// A query needs no more.
    pub(super) fn set_done(&mut self, query: u32) {
        self.done |= 1 << query;
    }

    /// How many queries need no more.
    pub(super) fn done_count(&self) -> usize {
        self.done.count_ones() as usize
    }

    /// Stage 2: which rows have these keys? They are asked for, unless they are already there.
    pub(super) fn look_up(
        &mut self,
        search: &Search<'_>,
        step: usize,
        (probes, of): (&[Probe], Range<usize>),
        and: &mut Besides<'_>,
        stretches: &mut Vec<Stretch>,
    ) {
        let mut near = std::mem::take(&mut self.near);
        let (view, asked) = (search.view(step), stretches.len());
        view.look_up(search.index.kernel, (probes, of), and, stretches, &mut near);
        let found = near.iter().map(|near| (near.stretch, view.row_in(near.row)));
        match search.first && view.has_lines() && stretches.len() > asked {
            true => {
                // The first match is that of the earliest key, so what its line has no room for does not wait for its turn.
                let mut found: Vec<(u32, Row)> = found.collect();
                let late = &stretches[asked..];
                let mut and = Besides { others: and.others, ahead: &[] };
                view.check(search.index.kernel, late, &mut and, &mut near);
                found.extend(near.iter().map(|near| {
                    let stretch = &late[near.stretch as usize];
                    let probe = &probes[stretch.tag as usize];
                    (stretch.tag, view.row(probe, stretch, near.row))
                }));
                found.sort_unstable_by_key(|&(probe, row)| (probe, row.number));
                stretches.truncate(asked);
                for (probe, row) in found {
                    self.match_word(search, step, &probes[probe as usize], row);
                }
            }
            false => found.for_each(|(probe, row)| {
                self.match_word(search, step, &probes[probe as usize], row);
            }),
        }
        self.near = near;
    }

    /// Stage 3: which of the rows are within the radius? Table by table. Meanwhile some of the addresses `ahead` are asked
    /// for; those that are left are told.
    pub(super) fn check<'a>(
        &mut self,
        search: &'a Search<'_>,
        group: &Group,
        ahead: &'a [usize],
    ) -> &'a [usize] {
        let (mut from, mut and) = (0, Besides { others: &[], ahead });
        let Group { probes, stretches, stretch_runs, .. } = group;
        for &(step, end) in stretch_runs.iter() {
            let (view, stretches) = (search.view(step), &stretches[from..end]);
            from = end;
            if let RowsView::Numbers(numbers) = view.rows {
                self.check_numbers(search, step, stretches, probes, numbers);
                continue;
            }
            let mut near = std::mem::take(&mut self.near);
            and.others = search.looking.others(step);
            view.check(search.index.kernel, stretches, &mut and, &mut near);
            for &Near { stretch, row } in &near {
                let stretch = &stretches[stretch as usize];
                let probe = &probes[stretch.tag as usize];
                self.match_word(search, step, probe, view.row(probe, stretch, row));
            }
            self.near = near;
        }
        and.ahead
    }

    fn match_word(&mut self, search: &Search<'_>, step: usize, probe: &Probe, row: Row) {
        let differences = search.view(step).differences(row, probe);
        let distance = differences.count_ones();
        if distance <= search.bound(probe.query)
            && (search.is_filtered(step) || is_new(search, step, probe.query, &[differences]))
        {
            let number = (search.looking.steps[step].table == 0).then_some(row.number);
            let word = search.query(probe.query)[0] ^ differences;
            let place = Place::Word { word, number };
            self.add(search, Match { query: probe.query, distance, place });
        }
    }

    /// Stage 3 for signatures that are somewhere else: they are asked for, and then compared.
    fn check_numbers(
        &mut self,
        search: &Search<'_>,
        step: usize,
        stretches: &[Stretch],
        probes: &[Probe],
        numbers: &[u32],
    ) {
        let (rows, stride) = (search.index.rows.words(), search.index.rows.stride());
        for stretch in stretches {
            let query = probes[stretch.tag as usize].query;
            for &row in &numbers[stretch.start as usize..stretch.end as usize] {
                let at = row as usize * stride;
                (at..at + stride).step_by(LINE / 8).for_each(|at| prefetch(rows, at));
                self.pairs.push(Pair { query, row });
                if self.pairs.len() == PAIRS {
                    self.check_pairs(search, step);
                }
            }
        }
        self.check_pairs(search, step);
    }

    fn check_pairs(&mut self, search: &Search<'_>, step: usize) {
        let (rows, stride) = (&search.index.rows, search.index.rows.stride());
        let queries = &search.queries.signatures().words()[search.batch.start * stride..];
        self.near_pairs.clear();
        search.index.kernel.check_pairs(
            &self.pairs,
            (queries, rows.words()),
            stride,
            search.looking.radius,
            &mut self.near_pairs,
        );
        for i in 0..self.near_pairs.len() {
            let (pair, distance) = self.near_pairs[i];
            let Pair { query, row } = self.pairs[pair as usize];
            if distance > search.bound(query) {
                continue;
            }
            let words = rows.row(row as usize).iter().zip(search.query(query));
            self.differences.clear();
            self.differences.extend(words.map(|(a, b)| a ^ b));
            if is_new(search, step, query, &self.differences) {
                self.add(search, Match { query, distance, place: Place::Row(row) });
            }
        }
        self.pairs.clear();
    }

    fn add(&mut self, search: &Search<'_>, matched: Match) {
        if search.first {
            if self.is_done(matched.query) {
                return;
            }
            self.set_done(matched.query);
        }
        self.matches.push(matched);
    }

    /// Stage 4: which documents have these signatures? Tells where the new ones begin.
    pub(super) fn resolve(&mut self, search: &Search<'_>) -> usize {
        let new = self.found.len();
        self.number(search);
        let (firsts, copies) = (search.index.firsts.as_slice(), search.index.copies.view());
        for matched in &self.matches {
            if let Place::Word { number: Some(number), .. } = matched.place {
                prefetch(firsts, number as usize);
            }
        }
        for matched in self.matches.drain(..) {
            let row = match matched.place {
                Place::Row(row) => row,
                Place::Word { number: Some(number), .. } => firsts[number as usize],
                // Every table has the same rows, unless a file is damaged and its checksums do not tell: then this is
                // no match.
                Place::Word { number: None, .. } => continue,
            };
            copies.prefetch(row);
            self.found.push((matched.query, Neighbor { row, distance: matched.distance }));
        }
        if !search.first {
            self.add_copies(new, copies);
        }
        new
    }

    /// The queries and distances of what was found from a place on.
    pub(super) fn found_since(&self, new: usize) -> impl Iterator<Item = (u32, u32)> {
        self.found[new..].iter().map(|&(query, near)| (query, near.distance))
    }

    /// Adds the copies of what was found. Each goes to the end, so that the next of it is on its way while those before it
    /// are looked at.
    fn add_copies(&mut self, new: usize, copies: CopiesView<'_>) {
        let mut at = new;
        while let Some(&(query, Neighbor { row, distance })) = self.found.get(at) {
            if let Some(row) = copies.after(row) {
                copies.prefetch(row);
                self.found.push((query, Neighbor { row, distance }));
            }
            at += 1;
        }
    }

    /// Looks signatures up in the first table: its rows are in their order, so a row's place there is its number.
    fn number(&mut self, search: &Search<'_>) {
        let (leading, kernel) = (&search.tables[0], search.index.kernel);
        let Hits { matches, wanted, stretches, near, .. } = self;
        wanted.clear();
        for (tag, matched) in matches.iter().enumerate() {
            if let Place::Word { word, number: None } = matched.place {
                let key = leading.table.fields.take_word(word) as u32;
                prefetch_address(leading.address(key));
                let (compare, query) = (leading.compare(&[word]), tag as u32);
                wanted.push(Probe { compare, key, allowed: 0, flip: 0, query });
            }
        }
        let mut number = |probe: &Probe, row: Row| {
            if leading.differences(row, probe) == 0
                && let Place::Word { number, .. } = &mut matches[probe.query as usize].place
            {
                *number = Some(row.number);
            }
        };
        stretches.clear();
        leading.look_up(
            kernel,
            (wanted, 0..wanted.len()),
            &mut Besides::default(),
            stretches,
            near,
        );
        for near in near.iter() {
            number(&wanted[near.stretch as usize], leading.row_in(near.row));
        }
        leading.check(kernel, stretches, &mut Besides::default(), near);
        for near in near.iter() {
            let stretch = &stretches[near.stretch as usize];
            let probe = &wanted[stretch.tag as usize];
            number(probe, leading.row(probe, stretch, near.row));
        }
    }

    /// Adds the answers to the queries of the batch.
    pub(super) fn answer(&mut self, queries: usize, answers: &mut Answers) {
        self.answer_with(queries, |_| usize::MAX, answers);
    }

    /// The same with the `k` nearest of the queries that are done, and nothing for the others.
    pub(super) fn answer_nearest(&mut self, queries: usize, k: usize, answers: &mut Answers) {
        let done = self.done;
        self.answer_with(queries, |query| if done >> query & 1 == 1 { k } else { 0 }, answers);
    }

    /// The nearest of what was found, as many as each query may have.
    fn answer_with(&mut self, queries: usize, most: impl Fn(u32) -> usize, answers: &mut Answers) {
        self.found.sort_unstable_by_key(|&(query, n)| (query, n.distance, n.row));
        let mut found = &self.found[..];
        for query in 0..queries as u32 {
            let of = found.iter().take_while(|&&(other, _)| other == query).count();
            answers.extend(found[..of].iter().take(most(query)).map(|&(_, neighbor)| neighbor));
            found = &found[of..];
        }
    }
}

/// Whether no earlier step finds the same row.
fn is_new(search: &Search<'_>, step: usize, query: u32, differences: &[u64]) -> bool {
    !(0..step).any(|step| search.finds(step, query, differences))
}
