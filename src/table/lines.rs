//! Lines: every key has a line of the cache, and most often all of its rows are in it. One line is all that a look-up
//! waits for, where offsets and rows are two.
//!
//! A line has eight words. The last is the head: the number of the key's first row, and how many rows the key has. Up to
//! seven are the words before it. Of more, six are there, and the word before the head says where the others are.

use rayon::prelude::*;

use super::{no_memory, partition::split_mut};
use crate::{
    Result,
    hamming::{Head, LINE_WORDS, READ_PAST},
    mapped::{Cells, CellsMut},
};

/// Rows in lines.
#[derive(Debug, Clone)]
pub(crate) struct Lines {
    /// A line for each key.
    pub(crate) words: Cells<u64>,
    /// The rows that lines have no room for, those of a key together, and behind the last some words that a vector may read.
    pub(crate) more: Cells<u64>,
}

/// Keys that one thread turns into lines at once.
const AT_ONCE: usize = 1 << 12;

impl Lines {
    /// Rows that offsets lead to, put into lines.
    pub(super) fn of(offsets: &[u32], rows: &[u64]) -> Result<Self> {
        let keys = offsets.len() - 1;
        let chunks = (0..keys).step_by(AT_ONCE);
        let chunks: Vec<&[u32]> =
            chunks.map(|at| &offsets[at..=(at + AT_ONCE).min(keys)]).collect();
        let elsewhere = |chunk: &&[u32]| heads(chunk).map(|head| head.elsewhere()).sum();
        let counts: Vec<usize> = chunks.par_iter().map(elsewhere).collect();
        let mut starts = vec![0];
        starts.extend(counts.iter().scan(0, |end, count| {
            *end += count;
            Some(*end)
        }));

        let mut more = CellsMut::zeroed(starts[chunks.len()] + READ_PAST / 8).map_err(no_memory)?;
        let mut words = CellsMut::zeroed(keys * LINE_WORDS).map_err(no_memory)?;
        let lines = words.as_mut_slice().par_chunks_mut(AT_ONCE * LINE_WORDS);
        let places = split_mut(more.as_mut_slice(), &starts);
        let work = lines.zip(chunks).zip(places.into_par_iter().zip(&starts));
        work.for_each(|((lines, chunk), (more, &start))| {
            let mut filled = 0;
            for (line, head) in lines.chunks_exact_mut(LINE_WORDS).zip(heads(chunk)) {
                let rows = &rows[head.number as usize..][..head.count as usize];
                let (here, elsewhere) = rows.split_at(head.here());
                line[..here.len()].copy_from_slice(here);
                if !elsewhere.is_empty() {
                    line[here.len()] = (start + filled) as u64;
                    more[filled..][..elsewhere.len()].copy_from_slice(elsewhere);
                    filled += elsewhere.len();
                }
                line[LINE_WORDS - 1] = head.to_word();
            }
        });
        let words = words.freeze().map_err(no_memory)?;
        Ok(Lines { words, more: more.freeze().map_err(no_memory)? })
    }

    /// How many rows the lines have no room for.
    pub(crate) fn elsewhere(&self) -> usize {
        self.more.as_slice().len().saturating_sub(READ_PAST / 8)
    }

    /// Whether the lines lead through so many rows, each once and in their order: what a file says may not.
    pub(crate) fn lead_through(&self, rows: usize) -> bool {
        let (mut number, mut elsewhere) = (0, 0);
        let in_order = self.words.as_slice().chunks_exact(LINE_WORDS).all(|line| {
            let head = Head::of_word(line[LINE_WORDS - 1]);
            let follows = head.elsewhere() == 0 || line[head.here()] == elsewhere as u64;
            let begins = head.number as usize == number;
            number += head.count as usize;
            elsewhere += head.elsewhere();
            begins && follows
        });
        in_order && number == rows && elsewhere == self.elsewhere()
    }

    /// How much memory they take.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(self.words.as_slice()) + size_of_val(self.more.as_slice())
    }
}

/// The heads of the lines of some keys.
fn heads(offsets: &[u32]) -> impl Iterator<Item = Head> {
    offsets.windows(2).map(|pair| Head { number: pair[0], count: pair[1] - pair[0] })
}

/// How many of the rows of a key are likely to be elsewhere, if a key has so many on average and they fall where they like:
/// the share of keys with such rows, and how many these are for each key.
pub(crate) fn expected_elsewhere(rows: f64) -> (f64, f64) {
    // Such keys are nearly all, and nearly all of their rows are elsewhere.
    if rows > 64.0 {
        return (1.0, rows - Head { number: 0, count: u32::MAX }.here() as f64);
    }
    let (mut share, mut elsewhere, mut likely) = (0.0, 0.0, (-rows).exp());
    for count in 1..256 {
        likely *= rows / f64::from(count);
        let head = Head { number: 0, count };
        if head.elsewhere() > 0 {
            share += likely;
            elsewhere += likely * head.elsewhere() as f64;
        }
    }
    (share, elsewhere)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_lead_through_all_rows_and_have_as_many_elsewhere_as_expected() {
        let (keys, mut state) = (1_usize << 12, 1_u64);
        for each in [1, 5, 12, 200] {
            let mut counts = vec![0; keys];
            for _ in 0..keys * each {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                counts[(state >> 52) as usize] += 1;
            }
            let mut offsets = vec![0];
            offsets.extend(counts.iter().scan(0, |end, count| {
                *end += count;
                Some(*end)
            }));
            let rows: Vec<u64> = (0..(keys * each) as u64).collect();
            let lines = Lines::of(&offsets, &rows).unwrap();
            assert!(lines.lead_through(rows.len()));
            assert!(!lines.lead_through(rows.len() + 1));
            let (_, expected) = expected_elsewhere(each as f64);
            let (expected, got) = (expected * keys as f64, lines.elsewhere() as f64);
            assert!((expected - got).abs() < 0.1 * expected + 30.0, "{each}: {expected} {got}");
        }
    }
}
