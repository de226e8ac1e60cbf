//! Scores: rows gain points in every list that they are met in, and the best of them are taken.

use rayon::prelude::*;

use super::lists::{Lists, Weakest};
use crate::{
    hamming::prefetch,
    table::{Rows, Table},
};

/// What one thread needs for a query, kept from one to the next. The scores are all 0 in between.
#[derive(Debug)]
pub(super) struct Workspace {
    scores: Vec<u16>,
    /// Room for the rows with a score, if they are few: otherwise all scores are looked through.
    touched: Vec<u32>,
    /// How many of them there are.
    met: usize,
    few: bool,
    pub(super) lists: Lists,
    pub(super) weakest: Weakest,
    pub(super) best: Vec<Candidate>,
    /// Whether no row with a score is missing from `best`.
    all_taken: bool,
}

/// A row with its score: the higher the score, the smaller the number; of equal scores, the lower the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate(u64);

impl Candidate {
    fn new(row: u32, score: u16) -> Self {
        Candidate(u64::from(!score) << 32 | u64::from(row))
    }

    pub(super) fn row(self) -> u32 {
        self.0 as u32
    }

    pub(super) fn score(self) -> u16 {
        !((self.0 >> 32) as u16)
    }
}

/// The tables of all slices, and the query's own value in each.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) tables: &'a [Table],
    pub(super) query: &'a [u64],
    pub(super) lists: &'a Lists,
}

impl Asked<'_> {
    /// Walks the lists of a slice.
    #[inline(always)]
    fn walk(self, slice: usize, flips: &[u32], take: impl FnMut(u32, u16)) {
        let table = &self.tables[slice];
        let own = table.fields.take(self.query) as u32;
        let Rows::Numbers(rows) = &table.rows else { return };
        let view = View {
            offsets: table.offsets.as_slice(),
            rows: rows.as_slice(),
            own,
            width: table.layout().width(),
        };
        view.walk(flips, take);
    }
}

/// One table, and the query's own value in it.
struct View<'a> {
    offsets: &'a [u32],
    rows: &'a [u32],
    own: u32,
    width: u32,
}

/// So many lists are on their way from memory while one is walked, and the offsets of as many more.
const AHEAD: usize = 16;

impl View<'_> {
    /// Calls `take` with every row of the lists and the points that it gains.
    #[inline(always)]
    fn walk(&self, flips: &[u32], mut take: impl FnMut(u32, u16)) {
        let mut stretches = [(0, 0); AHEAD];
        flips.iter().take(2 * AHEAD).for_each(|flip| self.ask(*flip));
        for (stretch, &flip) in stretches.iter_mut().zip(flips) {
            *stretch = self.find(flip);
        }
        for (at, flip) in flips.iter().enumerate() {
            let (start, end) = stretches[at % AHEAD];
            if let Some(&later) = flips.get(at + AHEAD) {
                stretches[at % AHEAD] = self.find(later);
            }
            if let Some(&later) = flips.get(at + 2 * AHEAD) {
                self.ask(later);
            }
            let points = (self.width - flip.count_ones()) as u16;
            self.rows[start..end].iter().for_each(|&row| take(row, points));
        }
    }

    #[inline(always)]
    fn ask(&self, flip: u32) {
        prefetch(self.offsets, (self.own ^ flip) as usize);
    }

    /// Where a list is; it is asked for.
    #[inline(always)]
    fn find(&self, flip: u32) -> (usize, usize) {
        let key = (self.own ^ flip) as usize;
        let (start, end) = (self.offsets[key] as usize, self.offsets[key + 1] as usize);
        prefetch(self.rows, start);
        (start, end)
    }
}

impl Workspace {
    pub(super) fn new(rows: usize, slices: usize) -> Self {
        Workspace {
            scores: vec![0; rows],
            touched: Vec::new(),
            met: 0,
            few: false,
            lists: Lists::default(),
            weakest: Weakest::new(slices),
            best: Vec::new(),
            all_taken: true,
        }
    }

    /// Whether every row with a score is among the best.
    pub(super) fn all_taken(&self) -> bool {
        self.all_taken
    }

    /// Gives rows their points. `few` if it is not worth to look through all scores afterwards.
    pub(super) fn score(&mut self, asked: Asked<'_>, few: bool) {
        self.few = few;
        match few {
            true => self.admit_few(asked),
            false => {
                let scores = &mut self.scores[..];
                for slice in 0..asked.tables.len() {
                    let take = |row: u32, points| scores[row as usize] += points;
                    asked.walk(slice, asked.lists.admitting(slice), take);
                }
            }
        }
        if !asked.lists.add_only() {
            return;
        }
        self.mark_met();
        let scores = &mut self.scores[..];
        for slice in 0..asked.tables.len() {
            asked.walk(slice, asked.lists.adding(slice), |row, points| {
                let score = &mut scores[row as usize];
                *score += points & if_met(*score);
            });
        }
    }

    /// Remembers which rows are met. Whether a row is new is a coin toss, so there is no branch: each is written down, and
    /// the next over it if it was not new.
    fn admit_few(&mut self, asked: Asked<'_>) {
        // A place more than there are rows, for the one that is written over.
        self.touched.resize(self.scores.len() + 1, 0);
        let (scores, touched) = (&mut self.scores[..], &mut self.touched[..]);
        let mut met = 0;
        for slice in 0..asked.tables.len() {
            asked.walk(slice, asked.lists.admitting(slice), |row, points| {
                let score = &mut scores[row as usize];
                touched[met] = row;
                met += usize::from(*score == 0);
                *score += points;
            });
        }
        self.met = met;
    }

    /// Marks the scores of rows that are met.
    fn mark_met(&mut self) {
        match self.few {
            true => {
                let met = &self.touched[..self.met];
                met.iter().for_each(|&row| self.scores[row as usize] |= MET);
            }
            false => self.scores.iter_mut().for_each(|score| {
                *score |= if *score == 0 { 0 } else { MET };
            }),
        }
    }

    /// The same with the slices spread over all threads: each has scores of its own, which are summed.
    pub(super) fn score_on_all_cores(&mut self, asked: Asked<'_>, threads: usize) {
        self.few = false;
        let rows = self.scores.len();
        let slices = asked.tables.len();
        let parts = |thread: usize| thread * slices / threads..(thread + 1) * slices / threads;
        let admitted: Vec<Vec<u16>> = (0..threads)
            .into_par_iter()
            .map(|thread| {
                let mut scores = vec![0; rows];
                for slice in parts(thread) {
                    let take = |row: u32, points| scores[row as usize] += points;
                    asked.walk(slice, asked.lists.admitting(slice), take);
                }
                scores
            })
            .collect();
        add(&mut self.scores, &admitted);
        if !asked.lists.add_only() {
            return;
        }
        self.mark_met();
        let met = &self.scores;
        let gained: Vec<Vec<u16>> = admitted
            .into_par_iter()
            .enumerate()
            .map(|(thread, mut scores)| {
                scores.fill(0);
                for slice in parts(thread) {
                    asked.walk(slice, asked.lists.adding(slice), |row, points| {
                        scores[row as usize] += points & if_met(met[row as usize]);
                    });
                }
                scores
            })
            .collect();
        add(&mut self.scores, &gained);
    }

    /// Fills `best` with the `most` rows with the highest scores, best first, and sets all scores back to 0. `lead` is the
    /// row that stands for one, or nothing if it does not count.
    pub(super) fn take_best(&mut self, most: usize, lead: impl Fn(u32) -> Option<u32>) {
        let mut best = Selection { best: std::mem::take(&mut self.best), most, least: 1 };
        best.best.clear();
        self.drain(|rows, scores, least| {
            if scores.iter().any(|&score| score >= *least) {
                for (row, &score) in rows.zip(scores.iter()).filter(|(_, score)| **score >= *least)
                {
                    if let Some(row) = lead(row) {
                        best.offer(Candidate::new(row, score));
                    }
                }
                *least = best.least;
            }
        });
        best.cut();
        // As many as may be: others were left out, or would have been.
        self.all_taken = best.best.len() < most;
        best.best.sort_unstable();
        self.best = best.best;
    }

    /// Calls `take` with every row that has a score, and sets all scores back to 0.
    pub(super) fn take_all(&mut self, mut take: impl FnMut(u32, u16)) {
        self.drain(|rows, scores, _| {
            let met = rows.zip(scores.iter()).filter(|(_, score)| **score > 0);
            met.for_each(|(row, &score)| take(row, score));
        });
    }

    /// Calls `take` with stretches of rows and their scores, and what it last left as the least that matters.
    fn drain(&mut self, mut take: impl FnMut(std::ops::Range<u32>, &[u16], &mut u16)) {
        let mut least = 1;
        match self.few {
            true => {
                for &row in &self.touched[..self.met] {
                    let score = std::mem::take(&mut self.scores[row as usize]) & !MET;
                    take(row..row + 1, &[score], &mut least);
                }
            }
            false => {
                for (number, scores) in self.scores.chunks_mut(BLOCK).enumerate() {
                    let start = (number * BLOCK) as u32;
                    scores.iter_mut().for_each(|score| *score &= !MET);
                    take(start..start + scores.len() as u32, scores, &mut least);
                    scores.fill(0);
                }
            }
        }
    }
}

/// Scores that are looked at together: mostly none of them matters.
const BLOCK: usize = 64;

/// The mark of a row that is met. No score is so high.
const MET: u16 = 1 << 15;

/// All ones if a row is marked. A comparison would become a branch, and be mispredicted half of the time.
#[inline(always)]
fn if_met(score: u16) -> u16 {
    (score as i16 >> 15) as u16
}

fn add(scores: &mut [u16], parts: &[Vec<u16>]) {
    const CHUNK: usize = 1 << 14;
    scores.par_chunks_mut(CHUNK).enumerate().for_each(|(chunk, scores)| {
        for part in parts {
            let part = &part[chunk * CHUNK..][..scores.len()];
            scores.iter_mut().zip(part).for_each(|(score, more)| *score += more);
        }
    });
}

/// The best candidates so far, and some more that wait to be cut.
struct Selection {
    best: Vec<Candidate>,
    most: usize,
    /// Lower scores do not matter any more.
    least: u16,
}

impl Selection {
    fn offer(&mut self, candidate: Candidate) {
        self.best.push(candidate);
        if self.best.len() > 2 * self.most + BLOCK {
            self.cut();
        }
    }

    fn cut(&mut self) {
        if self.most > 0 && self.best.len() > self.most {
            let (_, last, _) = self.best.select_nth_unstable(self.most - 1);
            self.least = last.score();
        }
        self.best.truncate(self.most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_come_first_and_ties_by_row() {
        for few in [false, true] {
            let mut work = Workspace::new(1000, 1);
            work.few = few;
            for row in 0..1000_u32 {
                work.scores[row as usize] = (row % 10) as u16;
                if row % 10 > 0 {
                    work.touched.push(row);
                    work.met += 1;
                }
            }
            work.take_best(105, |row| (row != 9).then_some(row));
            let found: Vec<(u32, u16)> = work.best.iter().map(|c| (c.row(), c.score())).collect();
            let nines = (1..100).map(|i| (i * 10 + 9, 9));
            let expected: Vec<(u32, u16)> = nines.chain((0..6).map(|i| (i * 10 + 8, 8))).collect();
            assert_eq!(found, expected);
            assert!(work.scores.iter().all(|&score| score == 0));
            work.take_best(0, Some);
            assert!(work.best.is_empty());
        }
    }
}
