//! The check of rows that a table led to: short stretches of rows, each against one query.

use bytemuck::{cast_slice, pod_read_unaligned};

use super::{PairTask, direct, lanes::Lanes, prefetch_address};

/// How many bytes behind the last row may be read, and must be there.
pub const READ_PAST: usize = 64;

/// Rows to compare with a query.
#[derive(Debug, Clone, Copy)]
pub struct Stretch {
    /// What the rows are compared with.
    pub query: u64,
    /// The first row.
    pub start: u32,
    /// The end of the rows.
    pub end: u32,
    /// How many bits may differ.
    pub allowed: u32,
    /// Whatever the caller wants to find the stretch by.
    pub tag: u32,
}

/// A key to look up, and what to do with its rows.
#[derive(Debug, Clone, Copy)]
pub struct Probe {
    /// What the rows are compared with.
    pub compare: u64,
    /// The key.
    pub key: u32,
    /// How many bits of a row may differ.
    pub allowed: u32,
    /// How the key differs from the query's own.
    pub flip: u32,
    /// The number of the query.
    pub query: u32,
}

/// A row that is near.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Near {
    /// The stretch it is in.
    pub stretch: u32,
    /// The row.
    pub row: u32,
}

/// A row and a query, both of several words.
#[derive(Debug, Clone, Copy)]
pub struct Pair {
    /// The number of the query.
    pub query: u32,
    /// The number of the row.
    pub row: u32,
}

/// Rows of one word, in the order of a key that is some of their bits.
#[derive(Debug, Clone, Copy)]
pub struct InOrder<'a> {
    /// The rows, and behind the last of them [`READ_PAST`] bytes that may be anything.
    pub rows: &'a [u64],
    /// The bits of the key.
    pub key: u64,
    /// How many bits may differ.
    pub radius: u32,
    /// Other keys: rows that have one of them in common are left out.
    pub others: &'a [u64],
}

/// Two rows that are near each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Met {
    /// The first row.
    pub a: u32,
    /// A later row.
    pub b: u32,
    /// How many bits differ.
    pub distance: u32,
}

impl InOrder<'_> {
    /// Whether rows that differ so have the key in common, and no other.
    #[inline(always)]
    fn takes(&self, differences: u64) -> bool {
        differences & self.key == 0 && self.others.iter().all(|other| differences & other != 0)
    }
}

impl Stretch {
    /// Where the vectors of so many lanes begin that have all its rows. They begin at multiples of their size: then they
    /// touch no line of the cache that has none of the rows.
    #[inline(always)]
    fn vectors(&self, lanes: usize) -> impl Iterator<Item = usize> + use<> {
        let first = self.start as usize & !(lanes - 1);
        let end = if self.start < self.end { self.end as usize } else { first };
        (first..end).step_by(lanes)
    }

    /// Which lanes of the vector that begins at `at`, of at most 16, are rows of the stretch.
    #[inline(always)]
    fn lanes(&self, at: usize) -> u64 {
        let (start, end) = ((self.start as usize).saturating_sub(at), self.end as usize - at);
        ((1 << end.min(63)) - 1) & (u64::MAX << start)
    }
}

/// What is done besides while rows are checked.
#[derive(Debug, Clone, Copy, Default)]
pub struct Besides<'a> {
    /// Rows that have all the bits of one of these in common with their query are left out.
    pub others: &'a [u64],
    /// Addresses that will soon be read. One is asked for with each stretch: a core that asks for many at once has to wait,
    /// and could as well check rows.
    pub ahead: &'a [usize],
}

impl Besides<'_> {
    #[inline(always)]
    fn ask_ahead(&mut self) {
        if let Some((&first, others)) = self.ahead.split_first() {
            prefetch_address(first);
            self.ahead = others;
        }
    }

    /// Asks for all that were not asked for.
    pub fn ask_for_all(&mut self) {
        while !self.ahead.is_empty() {
            self.ask_ahead();
        }
    }
}

/// Rows of one word.
#[inline(always)]
pub(super) fn whole<L: Lanes>(
    proof: L::Proof,
    stretches: &[Stretch],
    rows: &[u64],
    and: &mut Besides<'_>,
    found: &mut Vec<Near>,
) {
    for (stretch, asked) in stretches.iter().enumerate() {
        and.ask_ahead();
        let query = L::splat(proof, asked.query);
        for at in asked.vectors(L::COUNT) {
            let words: &L::Words = &cast_slice(&rows[at..at + L::COUNT])[0];
            let differences = query.xor(L::load(proof, words));
            let near = near_lanes(proof, differences, asked.allowed, and.others);
            push(stretch, at, near & asked.lanes(at), found);
        }
    }
}

/// Rows that are looked at before what was seen is looked at again.
const LOOKED_AT: usize = 256;

/// Rows of one word with the same key. Most keys have few rows: each row is compared with a vector of those behind it,
/// whatever their keys, and with more if the last of them has its key still. Which rows are near and which keys go on is hard
/// to guess, so there is no branch for it: such rows are noted.
#[inline(always)]
pub(super) fn in_order<L: Lanes>(proof: L::Proof, task: InOrder<'_>, found: &mut Vec<Met>) {
    let rows = task.rows;
    let len = rows.len().saturating_sub(READ_PAST / 8);
    let near = |word: u64, behind: &[u64]| {
        let words: &L::Words = &cast_slice(behind)[0];
        let differences = L::splat(proof, word).xor(L::load(proof, words));
        differences.count_ones().totals().at_most(task.radius)
    };
    let same_key = |a: u64, b: u64| (a ^ b) & task.key == 0;
    let mut push = |a: usize, at: usize, mut near: u64| {
        while near != 0 {
            let b = at + near.trailing_zeros() as usize;
            let differences = rows[a] ^ rows[b];
            if b < len && task.takes(differences) {
                let distance = differences.count_ones();
                found.push(Met { a: a as u32, b: b as u32, distance });
            }
            near &= near - 1;
        }
    };
    let (mut noted, mut longer) = ([(0, 0); LOOKED_AT], [0; LOOKED_AT]);
    for start in (0..len).step_by(LOOKED_AT) {
        let end = (start + LOOKED_AT).min(len);
        let (mut some, mut more) = (0, 0);
        for (i, rows) in rows[start..end + L::COUNT].windows(1 + L::COUNT).enumerate() {
            let near = near(rows[0], &rows[1..]);
            (noted[some % LOOKED_AT], longer[more % LOOKED_AT]) =
                ((i as u32, near as u32), i as u32);
            some += usize::from(near != 0);
            more += usize::from(same_key(rows[0], rows[L::COUNT]));
        }
        for &(i, near) in &noted[..some] {
            let a = start + i as usize;
            push(a, a + 1, near.into());
        }
        for &i in &longer[..more] {
            let a = start + i as usize;
            let mut at = a + 1 + L::COUNT;
            while at < len && same_key(rows[a], rows[at - 1]) {
                push(a, at, near(rows[a], &rows[at..at + L::COUNT]));
                at += L::COUNT;
            }
        }
    }
}

/// The first 32 bits of rows whose further bits are elsewhere.
#[inline(always)]
pub(super) fn halves<L: Lanes>(
    proof: L::Proof,
    stretches: &[Stretch],
    rows: &[u32],
    found: &mut Vec<Near>,
) {
    for (stretch, asked) in stretches.iter().enumerate() {
        let half = asked.query & u64::from(u32::MAX);
        let query = L::splat(proof, half << 32 | half);
        for at in asked.vectors(2 * L::COUNT) {
            let words = pod_read_unaligned(cast_slice(&rows[at..at + 2 * L::COUNT]));
            let near = query.xor(L::load(proof, &words)).halves_at_most(asked.allowed);
            push(stretch, at, near & asked.lanes(at), found);
        }
    }
}

/// A line of the cache has so many words: rows, and a head behind them.
pub(crate) const LINE_WORDS: usize = 8;
/// So many rows have room in a line.
const ROOM: usize = LINE_WORDS - 1;

/// The last word of a key's line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head {
    /// The number of the key's first row.
    pub(crate) number: u32,
    /// How many rows the key has.
    pub(crate) count: u32,
}

impl Head {
    pub(crate) fn to_word(self) -> u64 {
        u64::from(self.number) << 32 | u64::from(self.count)
    }

    #[inline(always)]
    pub(crate) fn of_word(word: u64) -> Self {
        Head { number: (word >> 32) as u32, count: word as u32 }
    }

    /// How many of the rows are in the line. If that is not all, the word behind them says where the others are.
    #[inline(always)]
    pub(crate) fn here(self) -> usize {
        if self.count as usize <= ROOM { self.count as usize } else { ROOM - 1 }
    }

    /// How many of the rows are elsewhere.
    #[inline(always)]
    pub(crate) fn elsewhere(self) -> usize {
        self.count as usize - self.here()
    }
}

/// Lines that are looked at before what was seen is looked at again.
const LINES_AT_ONCE: usize = 16;

/// Rows of one word in the lines of their keys.
#[inline(always)]
pub(super) fn lines<L: Lanes>(
    proof: L::Proof,
    probes: &[Probe],
    lines: &[u64],
    and: &mut Besides<'_>,
    found: &mut Vec<Near>,
) {
    let mut noted = [(0, 0); LINES_AT_ONCE];
    for (part, probes) in probes.chunks(LINES_AT_ONCE).enumerate() {
        let mut some = 0;
        for (i, probe) in probes.iter().enumerate() {
            and.ask_ahead();
            let start = probe.key as usize * LINE_WORDS;
            let line = &lines[start..start + LINE_WORDS];
            let query = L::splat(proof, probe.compare);
            let mut near = 0;
            for at in (0..LINE_WORDS).step_by(L::COUNT) {
                let words: &L::Words = &cast_slice(&line[at..at + L::COUNT])[0];
                let differences = query.xor(L::load(proof, words));
                near |= near_lanes(proof, differences, probe.allowed, and.others) << at;
            }
            let head = Head::of_word(line[ROOM]);
            let is_longer = head.count as usize > ROOM;
            near = near & ((1 << head.here()) - 1) | u64::from(is_longer) << ROOM;
            // Which lines have something near is hard to guess, so there is no branch for it.
            noted[some % LINES_AT_ONCE] = (i as u32, near as u32);
            some += usize::from(near != 0);
        }
        for &(i, near) in &noted[..some] {
            let start = probes[i as usize].key as usize * LINE_WORDS;
            push(part * LINES_AT_ONCE + i as usize, start, near.into(), found);
        }
    }
}

/// Which rows that differ so from a query are within what is allowed, and have a bit of each of the other keys among the
/// differences.
#[inline(always)]
fn near_lanes<L: Lanes>(proof: L::Proof, differences: L, allowed: u32, others: &[u64]) -> u64 {
    let mut near = differences.count_ones().totals().at_most(allowed);
    for &other in others {
        near &= !differences.and(L::splat(proof, other)).zeros();
    }
    near
}

/// Rows of several words, each with its own query.
#[inline(always)]
pub(super) fn pairs<L: Lanes>(proof: L::Proof, task: PairTask<'_>) {
    let PairTask { pairs, queries, rows, stride, radius, found } = task;
    for (i, pair) in pairs.iter().enumerate() {
        let query = &queries[pair.query as usize * stride..][..stride];
        let row = &rows[pair.row as usize * stride..][..stride];
        let distance = direct::distance::<L>(proof, query, row);
        if distance <= radius {
            found.push((i as u32, distance));
        }
    }
}

#[inline(always)]
fn push(stretch: usize, start: usize, mut near: u64, found: &mut Vec<Near>) {
    while near != 0 {
        let row = start as u32 + near.trailing_zeros();
        found.push(Near { stretch: stretch as u32, row });
        near &= near - 1;
    }
}
