//! The batched search: queries go through probe, offset, check and resolution in stages, each of which asks the memory
//! for what the next will need. A single query is a batch of one. Where keys have lines in place of offsets, their rows
//! are checked a stage earlier.

use std::{cell::Cell, ops::Range};

use super::{
    Tables,
    hits::Hits,
    looks::{Looking, Reach},
    nearest::{Tally, Wanted},
    view::View,
};
use crate::{
    hamming::{Besides, Probe, Stretch},
    index::{Answers, Queries},
};

/// Queries that go through the stages together.
pub(super) const BATCH: usize = 64;
/// Probes in a group. While the offsets of one group are on their way, so are the rows of the group before it: about as
/// many lines as a core can wait for.
const GROUP: usize = 64;
/// Fewer queries than this are not worth to take their keys together.
const MANY: usize = 8;

/// One thread's search.
pub(super) struct Engine<'a> {
    search: Search<'a>,
    /// There until the search is over.
    stages: Option<Box<Stages>>,
}

thread_local! {
    /// The memory of this thread's last search, for its next one.
    static SPARE: Cell<Option<Box<Stages>>> = const { Cell::new(None) };
}

impl Drop for Engine<'_> {
    fn drop(&mut self) {
        // After a search that found very much, memory is given back.
        if let Some(stages) = self.stages.take().filter(|stages| stages.hits.is_small()) {
            SPARE.set(Some(stages));
        }
    }
}

/// What is asked, and of whom.
pub(super) struct Search<'a> {
    pub(super) index: &'a Tables<'a>,
    pub(super) looking: &'a Looking,
    pub(super) tables: Vec<View<'a>>,
    pub(super) queries: Queries<'a>,
    /// Whether the first match of a query is enough.
    pub(super) first: bool,
    /// The queries that are being answered.
    pub(super) batch: Range<usize>,
    pub(super) reach: Reach,
    /// How near a row must be to matter, for each query of the batch, if that is not the radius.
    bounds: Option<[u32; BATCH]>,
}

impl<'a> Search<'a> {
    /// The words of a query of the batch.
    #[inline(always)]
    pub(super) fn query(&self, query: u32) -> &'a [u64] {
        self.queries.signatures().row(self.batch.start + query as usize)
    }

    /// The words of all queries of the batch.
    fn words(&self) -> &'a [u64] {
        let (queries, stride) = (self.queries.signatures(), self.queries.signatures().stride());
        &queries.words()[self.batch.start * stride..self.batch.end * stride]
    }

    /// How near a row must be to matter to a query of the batch.
    #[inline(always)]
    pub(super) fn bound(&self, query: u32) -> u32 {
        self.bounds.as_ref().map_or(self.looking.radius, |bounds| bounds[query as usize % BATCH])
    }

    fn lower_bound(&mut self, query: u32, to: u32) {
        if let Some(bounds) = &mut self.bounds {
            bounds[query as usize % BATCH] = to;
        }
    }

    /// The table of a step.
    #[inline(always)]
    pub(super) fn view(&self, step: usize) -> &View<'a> {
        &self.tables[self.looking.steps[step].table]
    }

    /// Whether the kernels leave out what an earlier step finds.
    #[inline(always)]
    pub(super) fn is_filtered(&self, step: usize) -> bool {
        self.looking.are_all_others(step) && !self.view(step).lacks_keys()
    }

    /// Whether a step finds a row that differs so from a query of the batch.
    pub(super) fn finds(&self, step: usize, query: u32, differences: &[u64]) -> bool {
        let flip = self.view(step).table.fields.take(differences) as u32;
        self.reach.finds(self.looking, step, query as usize, flip)
    }
}

impl<'a> Engine<'a> {
    pub(super) fn new(
        index: &'a Tables<'a>,
        looking: &'a Looking,
        queries: Queries<'a>,
        first: bool,
    ) -> Self {
        let tables = index.tables.iter().map(View::of).collect();
        let reach = Reach::default();
        let search =
            Search { index, looking, tables, queries, first, batch: 0..0, reach, bounds: None };
        Engine { search, stages: SPARE.take() }
    }

    /// Answers some of the queries.
    pub(super) fn run(&mut self, queries: Range<usize>, answers: &mut Answers) {
        for start in queries.clone().step_by(BATCH) {
            let batch = start..(start + BATCH).min(queries.end);
            let (search, stages) = (&mut self.search, self.stages.get_or_insert_default());
            search.reach.begin(search.looking, search.queries, batch.clone());
            search.batch = batch;
            stages.run(search);
            stages.hits.resolve(search);
            stages.hits.answer(search.batch.len(), answers);
        }
    }

    /// The nearest of some of the queries, or no rows at all where the rings would cost more than a scan.
    pub(super) fn nearest(
        &mut self,
        wanted: Wanted<'_>,
        queries: Range<usize>,
        answers: &mut Answers,
    ) {
        for start in queries.clone().step_by(BATCH) {
            let (search, stages) = (&mut self.search, self.stages.get_or_insert_default());
            search.batch = start..(start + BATCH).min(queries.end);
            search.bounds = Some([search.looking.radius; BATCH]);
            stages.nearest(search, wanted);
            stages.hits.answer_nearest(search.batch.len(), wanted.k, answers);
        }
    }
}

/// Probes on their way through the stages.
#[derive(Default)]
struct Stages {
    /// Probes whose offsets or lines are being asked for.
    asking: Group,
    /// Probes whose offsets or lines are on their way.
    keys_due: Group,
    /// Probes whose rows are on their way.
    rows_due: Group,
    hits: Hits,
    tally: Tally,
}

/// Probes that go through the stages together.
#[derive(Default)]
pub(super) struct Group {
    pub(super) probes: Vec<Probe>,
    /// Where the offsets or the line of each is.
    addresses: Vec<usize>,
    /// Which of them belong to which step: the step, and where its probes end.
    runs: Vec<(usize, usize)>,
    /// The rows that are to be looked at.
    pub(super) stretches: Vec<Stretch>,
    /// Which of them belong to which step.
    pub(super) stretch_runs: Vec<(usize, usize)>,
}

impl Stages {
    /// Lets all probes of a batch through.
    fn run(&mut self, search: &Search<'_>) {
        self.begin();
        (0..search.looking.steps.len()).for_each(|step| self.probe(search, step));
        self.finish(search);
    }

    fn begin(&mut self) {
        self.hits.begin();
        // A search that panicked may have left something.
        let groups = [&mut self.asking, &mut self.keys_due, &mut self.rows_due];
        groups.into_iter().for_each(Group::clear);
    }

    /// What is still under way comes to its end.
    fn finish(&mut self, search: &Search<'_>) {
        (0..3).for_each(|_| self.advance(search));
    }

    /// Ring after ring, until each query of a batch has enough or the next ring is not worth it.
    fn nearest(&mut self, search: &mut Search<'_>, wanted: Wanted<'_>) {
        let (rings, queries) = (wanted.rings, search.batch.len());
        self.begin();
        self.tally.begin(queries, search.looking.radius);
        let mut next = 0;
        loop {
            let open = queries - self.hits.done_count();
            let end = if open == 0 { 0 } else { rings.worth(open * wanted.batches, wanted.far) };
            if next >= end {
                break;
            }
            let level = rings.level(next, GROUP / open, end);
            next = level.end;
            level.for_each(|ring| self.probe(search, ring));
            self.finish(search);
            let new = self.hits.resolve(search);
            self.hits.found_since(new).for_each(|(query, d)| self.tally.add(query, d));
            self.settle(search, wanted.k, next as u32 - 1);
        }
    }

    /// A query that has enough rows within the radius that was looked at is done; what is farther than those it has does
    /// not matter to it.
    fn settle(&mut self, search: &mut Search<'_>, k: usize, radius: u32) {
        for query in 0..search.batch.len() as u32 {
            let Some(enough) = self.tally.radius(query, k) else { continue };
            search.lower_bound(query, enough);
            if enough <= radius {
                self.hits.set_done(query);
            }
        }
    }

    /// Stage 1: which keys?
    fn probe(&mut self, search: &Search<'_>, step: usize) {
        let many = search.batch.len() >= MANY && self.hits.done_count() == 0;
        match many && search.looking.is_own(step) {
            true => self.probe_own(search, step),
            false => self.probe_around(search, step),
        }
        self.asking.close_run(step);
    }

    /// The own keys of all queries.
    fn probe_own(&mut self, search: &Search<'_>, step: usize) {
        let view = search.view(step);
        let mut own = [0; BATCH];
        let own = &mut own[..search.batch.len()];
        let (words, allowed) = (search.words(), search.looking.radius);
        view.table.fields.take_each(words, search.queries.signatures().stride(), own);
        let mut query = 0;
        while query < own.len() {
            let Group { probes, addresses, .. } = &mut self.asking;
            let of = query..own.len().min(query + GROUP - probes.len());
            query = of.end;
            addresses.extend(own[of.clone()].iter().map(|&key| view.address(key)));
            let probe = |query: usize, compare: u64| Probe {
                compare,
                key: own[query],
                allowed,
                flip: 0,
                query: query as u32,
            };
            match view.compares_words() {
                true => probes.extend(of.map(|query| probe(query, words[query]))),
                false => probes
                    .extend(of.map(|query| probe(query, view.compare(search.query(query as u32))))),
            }
            self.advance_if_full(search, step);
        }
    }

    /// Keys around the queries' own, for the queries that need more.
    fn probe_around(&mut self, search: &Search<'_>, step: usize) {
        let view = search.view(step);
        let lacks_keys = view.lacks_keys();
        for query in 0..search.batch.len() as u32 {
            let own = view.table.fields.take(search.query(query)) as u32;
            let (compare, bound) = (view.compare(search.query(query)), search.bound(query));
            for &flip in search.reach.flips(search.looking, step, query as usize) {
                if self.hits.is_done(query) {
                    break;
                }
                let key = own ^ flip;
                self.asking.addresses.push(view.address(key));
                let errors = if lacks_keys { flip.count_ones() } else { 0 };
                let allowed = bound.saturating_sub(errors);
                self.asking.probes.push(Probe { compare, key, allowed, flip, query });
                self.advance_if_full(search, step);
            }
        }
    }

    #[inline(always)]
    fn advance_if_full(&mut self, search: &Search<'_>, step: usize) {
        if self.asking.probes.len() == GROUP {
            self.asking.close_run(step);
            self.advance(search);
        }
    }

    /// Each group moves on by a stage. What the keys of the newest lead to is asked for while the others are looked at.
    fn advance(&mut self, search: &Search<'_>) {
        let ahead = self.hits.check(search, &self.rows_due, &self.asking.addresses);
        let Group { probes, runs, stretches, stretch_runs, .. } = &mut self.keys_due;
        let (mut from, mut and) = (0, Besides { others: &[], ahead });
        for &(step, end) in runs.iter() {
            and.others = search.looking.others(step);
            self.hits.look_up(search, step, (probes, from..end), &mut and, stretches);
            stretch_runs.push((step, stretches.len()));
            from = end;
        }
        and.ask_for_all();
        self.rows_due.clear();
        std::mem::swap(&mut self.rows_due, &mut self.keys_due);
        std::mem::swap(&mut self.keys_due, &mut self.asking);
    }
}

impl Group {
    /// Says to which step the latest probes belong.
    fn close_run(&mut self, step: usize) {
        let end = self.probes.len();
        match self.runs.last_mut() {
            Some(run) if run.0 == step => run.1 = end,
            _ => self.runs.push((step, end)),
        }
    }

    fn clear(&mut self) {
        self.probes.clear();
        self.addresses.clear();
        self.runs.clear();
        self.stretches.clear();
        self.stretch_runs.clear();
    }
}
