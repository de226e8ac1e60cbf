//! Radix partition on all cores: count, then fill.

use std::ops::Range;

use bytemuck::Pod;
use rayon::prelude::*;

use crate::mapped::CellsMut;

/// Items, sorted into parts; within a part in their old order.
pub(crate) struct Parts<T> {
    items: CellsMut<T>,
    /// Where each part starts, and the end.
    starts: Vec<usize>,
}

impl<T: Pod + Send + Sync> Parts<T> {
    /// Sorts `item(0)` to `item(len - 1)` into parts, on all cores. The result does not depend on their number.
    pub(crate) fn new(
        len: usize,
        parts: usize,
        item: impl Fn(usize) -> T + Sync,
        part_of: impl Fn(&T) -> usize + Sync,
    ) -> std::io::Result<Self> {
        let chunks = chunks(len);
        let count = |chunk: &Range<usize>| {
            let mut counts = vec![0; parts];
            chunk.clone().for_each(|i| counts[part_of(&item(i))] += 1);
            counts
        };
        let counts: Vec<Vec<usize>> = chunks.par_iter().map(count).collect();

        let mut items = CellsMut::zeroed(len)?;
        let (starts, places) = places(items.as_mut_slice(), &counts, parts);
        chunks.into_par_iter().zip(places).for_each(|(chunk, mut places)| {
            let mut filled = vec![0_usize; parts];
            for item in chunk.map(&item) {
                let part = part_of(&item);
                places[part][filled[part]] = item;
                filled[part] += 1;
            }
        });
        Ok(Parts { items, starts })
    }

    /// Where each part starts, and the end.
    pub(crate) fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// The parts in order.
    pub(crate) fn split_mut(&mut self) -> Vec<&mut [T]> {
        split_mut(self.items.as_mut_slice(), &self.starts)
    }
}

/// Cuts cells at `starts`, the last of which is the end.
pub(crate) fn split_mut<'a, T>(mut cells: &'a mut [T], starts: &[usize]) -> Vec<&'a mut [T]> {
    let cut = |pair: &[usize]| {
        let (part, rest) = std::mem::take(&mut cells).split_at_mut(pair[1] - pair[0]);
        cells = rest;
        part
    };
    starts.windows(2).map(cut).collect()
}

/// Even chunks, a few for each thread.
pub(crate) fn chunks(len: usize) -> Vec<Range<usize>> {
    let size = len.div_ceil(rayon::current_num_threads() * 4).max(1 << 12);
    (0..len).step_by(size).map(|start| start..(start + size).min(len)).collect()
}

/// Where each chunk writes its items of each part: part after part, in each the chunks in order.
pub(crate) fn places<'a, T>(
    mut items: &'a mut [T],
    counts: &[Vec<usize>],
    parts: usize,
) -> (Vec<usize>, Vec<Vec<&'a mut [T]>>) {
    let mut starts = vec![0];
    let mut places: Vec<Vec<_>> = counts.iter().map(|_| Vec::with_capacity(parts)).collect();
    for part in 0..parts {
        let mut end = starts[part];
        for (counts, places) in counts.iter().zip(&mut places) {
            let (place, rest) = items.split_at_mut(counts[part]);
            items = rest;
            places.push(place);
            end += counts[part];
        }
        starts.push(end);
    }
    (starts, places)
}
