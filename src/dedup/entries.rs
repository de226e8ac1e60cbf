//! Entries: documents with the same features are one.

use std::collections::HashSet;

use rayon::prelude::*;

use super::sketches::SketchFile;

/// The documents that differ, and which documents are their copies.
#[derive(Debug)]
pub(crate) struct Entries {
    /// The row of each entry, ascending: of its copies the one that is kept rather than the others.
    pub(crate) rows: Vec<u32>,
    /// How many features each entry has.
    pub(crate) sizes: Vec<u32>,
    /// The entry at each rank: those that are rather kept come first.
    pub(crate) by_rank: Vec<u32>,
    /// The rank of each entry.
    pub(crate) ranks: Vec<u32>,
    /// The entry of each row; `NONE` for documents without features.
    pub(crate) of_row: Vec<u32>,
}

/// No entry.
pub(crate) const NONE: u32 = u32::MAX;

impl Entries {
    pub(crate) fn new(sketches: &SketchFile, left_out: &HashSet<u32>) -> Self {
        let facts = sketches.facts();
        let preference = |row: u32| (facts[row as usize].preference, row);
        let mut by_set: Vec<(u64, u32)> = (0..facts.len() as u32)
            .filter(|row| facts[*row as usize].signed == 1 && !left_out.contains(row))
            .map(|row| (facts[row as usize].set_hash, row))
            .collect();
        by_set.par_sort_unstable();
        let copies = by_set.chunk_by(|a, b| a.0 == b.0);
        let best = |copies: &[(u64, u32)]| {
            copies.iter().map(|&(_, row)| row).min_by_key(|&row| preference(row))
        };
        let mut rows: Vec<u32> = copies.clone().filter_map(best).collect();
        rows.par_sort_unstable();

        let mut of_row = vec![NONE; facts.len()];
        rows.iter().enumerate().for_each(|(entry, &row)| of_row[row as usize] = entry as u32);
        for copies in copies {
            let entry = copies.iter().map(|&(_, row)| of_row[row as usize]).min().unwrap_or(NONE);
            copies.iter().for_each(|&(_, row)| of_row[row as usize] = entry);
        }
        let sizes = rows.iter().map(|&row| sketches.set_size(row as usize) as u32).collect();
        let mut by_rank: Vec<u32> = (0..rows.len() as u32).collect();
        by_rank.par_sort_unstable_by_key(|&entry| preference(rows[entry as usize]));
        let mut ranks = vec![0; rows.len()];
        by_rank.iter().enumerate().for_each(|(rank, &entry)| ranks[entry as usize] = rank as u32);
        Entries { rows, sizes, by_rank, ranks, of_row }
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn row(&self, entry: u32) -> usize {
        self.rows[entry as usize] as usize
    }
}
