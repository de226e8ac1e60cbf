//! Who is measured. Everybody answers all queries and copies what is found into one list, within the time.

use std::rc::Rc;

use gaoya::simhash::SimHashIndex;
use lookalike::{
    Signatures,
    index::{Answers, Build, Index, Method, Tables},
    plan::{Choice, Costs, Plan, Sample, Task, plans},
};
use lookalike_thesis::bphs::Bphs;

use crate::{cpu_seconds, data::Data};

/// An index and a way to ask it.
pub(crate) struct Contender<'a> {
    pub(crate) name: String,
    pub(crate) ours: bool,
    pub(crate) question: Question,
    pub(crate) asked: Asked,
    pub(crate) index: Built,
    pub(crate) finds: Finds,
    pub(crate) run: Box<dyn FnMut(&mut Found) + 'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Question {
    /// Every row within the radius.
    All,
    /// One of them.
    First,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// One call with all queries.
    Batch,
    /// A call for each query.
    Single,
}

/// What it took to build an index.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Built {
    pub(crate) seconds: f64,
    /// Bytes a row with the 8 of the row itself: as the index says, or by how much more memory was resident.
    pub(crate) bytes: f64,
    pub(crate) estimated: bool,
}

/// What the numbers of [`Found`] are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finds {
    Rows,
    Signatures,
}

/// What was found, query after query.
#[derive(Debug, Default)]
pub(crate) struct Found {
    items: Vec<u64>,
    ends: Vec<usize>,
}

impl Found {
    pub(crate) fn clear(&mut self) {
        self.items.clear();
        self.ends.clear();
    }

    fn push(&mut self, items: impl IntoIterator<Item = u64>) {
        self.items.extend(items);
        self.ends.push(self.items.len());
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &[u64]> {
        let start = |query| if query == 0 { 0 } else { self.ends[query - 1] };
        (0..self.ends.len()).map(move |query| &self.items[start(query)..self.ends[query]])
    }
}

const SUITS: &str = "64 bits suit";

/// Our tables.
pub(crate) fn ours(data: &Data, method: Option<Method>, radius: u32) -> Vec<Contender<'_>> {
    let (method, how) = method.map_or_else(|| planned(data, radius), |m| (m, Build::default()));
    let (index, mut built) = build(data, || Tables::build(&data.rows, method, how));
    let index = Rc::new(index.unwrap_or_else(|error| panic!("{error}")));
    let bytes = index.bytes() + index.row_bytes();
    built.bytes = 8.0 + bytes as f64 / data.rows.len() as f64;
    built.estimated = false;
    let ways = [Question::All, Question::First].into_iter();
    let ways = ways.flat_map(|question| [(question, Asked::Batch), (question, Asked::Single)]);
    ways.map(|(question, asked)| {
        let index = index.clone();
        let mut answers = Answers::new();
        let mut ask = move |queries: &Signatures, found: &mut Found| {
            let promise = match question {
                Question::All => index.within(queries.into(), radius, &mut answers),
                Question::First => index.first(queries.into(), radius, &mut answers),
            };
            promise.expect(SUITS);
            let rows = |near: &lookalike::index::Neighbor| u64::from(near.row);
            answers.iter().for_each(|answer| found.push(answer.iter().map(rows)));
        };
        let queries = &data.queries;
        let run: Box<dyn FnMut(&mut Found)> = match asked {
            Asked::Batch => Box::new(move |found| ask(queries, found)),
            Asked::Single => Box::new(move |found| {
                for &query in queries.words() {
                    ask(&Signatures::from_words(64, vec![query]).expect(SUITS), found);
                }
            }),
        };
        let how =
            [how.key_width.map(|bits| format!("{bits} bits")), how.stored.map(|s| s.name().into())];
        let name = [Some(method.to_string())].into_iter().chain(how).flatten().collect::<Vec<_>>();
        let name = name.join(" ");
        Contender { name, ours: true, question, asked, index: built, finds: Finds::Rows, run }
    })
    .collect()
}

/// What our planner chooses for these rows.
fn planned(data: &Data, radius: u32) -> (Method, Build) {
    let batch = data.queries.len();
    let task = Task { radius, nearest: None, batch, queries: None, memory: None, recall: 1.0 };
    let costs = Costs::measure().expect("a kernel");
    let sample = Sample::of(&data.rows).expect(SUITS);
    let tables = |plan: Plan| match plan.index {
        Choice::Tables(method, build) => Some((method, build)),
        Choice::Scan | Choice::Graph(_) => None,
    };
    plans(&costs, &sample, &task).into_iter().find_map(tables).expect("tables of some kind")
}

/// Multi-index hashing of mih-rs. Its radius is inclusive.
pub(crate) fn mih(data: &Data, blocks: Option<usize>, radius: u32) -> Vec<Contender<'_>> {
    let (index, built) = build(data, || {
        let rows = data.rows.words().to_vec();
        match blocks {
            None => mih_rs::Index::new(rows),
            Some(blocks) => mih_rs::Index::with_blocks(rows, blocks),
        }
    });
    let index = index.unwrap_or_else(|error| panic!("{error}"));
    let own = if blocks.is_none() { ", its own choice" } else { "" };
    let name = format!("mih-rs, {} blocks{own}", index.num_blocks());
    let run = move |found: &mut Found| {
        let mut searcher = index.range_searcher();
        for &query in data.queries.words() {
            found.push(searcher.run(query, radius as usize).iter().map(|&row| u64::from(row)));
        }
    };
    vec![rival(name, Question::All, built, Finds::Rows, run)]
}

/// Manku's blocks in the hash maps of gaoya. Its radius is strict, and a block is spent on the bit that this adds.
/// For the first, it finds all and takes the nearest.
pub(crate) fn gaoya(data: &Data, blocks: usize, radius: u32) -> Vec<Contender<'_>> {
    let (index, built) = build(data, || {
        let mut index = SimHashIndex::<u64, u32>::new(blocks, radius as usize + 1);
        (0..).zip(data.rows.words()).for_each(|(row, &signature)| index.insert(row, signature));
        index
    });
    let (name, index) = (format!("gaoya, {blocks} blocks"), Rc::new(index));
    let for_first = index.clone();
    let all = move |found: &mut Found| {
        for query in data.queries.words() {
            found.push(index.query(query).into_iter().map(|&row| u64::from(row)));
        }
    };
    let first = move |found: &mut Found| {
        for query in data.queries.words() {
            found.push(for_first.query_one(query).map(|(&row, _)| u64::from(row)));
        }
    };
    vec![
        rival(name.clone(), Question::All, built, Finds::Rows, all),
        rival(name, Question::First, built, Finds::Rows, first),
    ]
}

/// Block-permuted Hamming search as the thesis describes it, a table for each block. It finds signatures.
pub(crate) fn bphs(data: &Data, radius: u32) -> Vec<Contender<'_>> {
    let (index, mut built) = build(data, || Bphs::build(data.rows.words(), radius + 1, 1));
    built.bytes = index.bytes();
    built.estimated = false;
    let (name, index) = (format!("BPHS-{} of the thesis", index.tables()), Rc::new(index));
    let for_first = index.clone();
    let mut near = Vec::new();
    let all = move |found: &mut Found| {
        for &query in data.queries.words() {
            index.all(query, radius, &mut near);
            found.push(near.iter().copied());
        }
    };
    let first = move |found: &mut Found| {
        for &query in data.queries.words() {
            found.push(for_first.first(query, radius));
        }
    };
    vec![
        rival(name.clone(), Question::All, built, Finds::Signatures, all),
        rival(name, Question::First, built, Finds::Signatures, first),
    ]
}

/// A rival: all of them are asked for one query after the other.
fn rival<'a>(
    name: String,
    question: Question,
    index: Built,
    finds: Finds,
    run: impl FnMut(&mut Found) + 'a,
) -> Contender<'a> {
    let (asked, run) = (Asked::Single, Box::new(run));
    Contender { name, ours: false, question, asked, index, finds, run }
}

fn build<T>(data: &Data, index: impl FnOnce() -> T) -> (T, Built) {
    let (before, start) = (resident(), cpu_seconds());
    let index = index();
    let seconds = cpu_seconds() - start;
    let bytes = (resident() - before) / data.rows.len() as f64;
    (index, Built { seconds, bytes, estimated: true })
}

/// The memory of this process in bytes; not a number where there is no `/proc`.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
    kilobytes.map_or(f64::NAN, |kilobytes: f64| kilobytes * 1024.0)
}
