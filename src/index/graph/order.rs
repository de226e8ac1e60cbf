//! The numbers of nodes: near ones have near numbers, so that a walk stays in few pages of memory.

use rayon::prelude::*;

use crate::{Signatures, hamming::Kernel, index::sample::spread};

/// Nodes that are not parted further.
const LEAF: usize = 256;
/// Parts that nodes are divided into.
const PARTS: usize = 16;
/// Copies that differ in nothing that matters cannot be parted.
const DEEPEST: u32 = 16;

/// These rows in another order: each goes where the nearest of a few leaders is, again and again.
pub(super) fn parted(rows: &Signatures, kernel: Kernel, given: Vec<u32>) -> Vec<u32> {
    part(rows, kernel, given, 0)
}

fn part(rows: &Signatures, kernel: Kernel, given: Vec<u32>, depth: u32) -> Vec<u32> {
    if given.len() <= LEAF || depth == DEEPEST {
        return given;
    }
    let leaders = spread(given.len(), PARTS).into_iter();
    let leaders: Vec<u64> = leaders.flat_map(|i| rows.row(given[i] as usize)).copied().collect();
    let nearest = |&row: &u32| {
        let mut distances = [0; PARTS];
        kernel.distances(rows.row(row as usize), &leaders, &mut distances);
        let parts = distances.iter().zip(0_u8..);
        parts.min().expect("there are some").1
    };
    let of: Vec<u8> = given.par_iter().with_min_len(LEAF).map(nearest).collect();
    let mut parts = vec![Vec::new(); PARTS];
    for (&row, &part) in given.iter().zip(&of) {
        parts[usize::from(part)].push(row);
    }
    let parts = parts.into_par_iter();
    let parts: Vec<Vec<u32>> = parts.map(|given| part(rows, kernel, given, depth + 1)).collect();
    parts.concat()
}
