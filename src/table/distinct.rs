//! Identical signatures are one: a million copies of a page cost one entry.

use rayon::prelude::*;

use super::partition::Parts;
use crate::{
    Result, Signatures,
    hamming::prefetch,
    mapped::{Cells, CellsMut},
    table::no_memory,
};

/// The distinct signatures among rows.
pub(crate) struct Distinct {
    /// The signatures of one word in rising order; nothing if they are wider.
    pub(crate) words: Vec<u64>,
    /// The lowest row of each: in the order of `words`, or rising if signatures are wider.
    pub(crate) firsts: Vec<u32>,
    pub(crate) copies: Copies,
}

/// From each row to the next that has the same signature.
#[derive(Debug, Clone)]
pub(crate) struct Copies(
    /// The next such row, or [`LAST`]. Absent if no signature comes twice.
    pub(crate) Option<Cells<u32>>,
);

const LAST: u32 = u32::MAX;
const LEADING: u32 = 10;

impl Distinct {
    /// Finds the copies among rows.
    pub(crate) fn of(rows: &Signatures) -> Result<Self> {
        let stride = rows.stride();
        let words = rows.words();
        let item = |row: usize| [words[row * stride], row as u64];
        let part_of = |item: &[u64; 2]| (item[0] >> (64 - LEADING)) as usize;
        let mut parts = Parts::new(rows.len(), 1 << LEADING, item, part_of).map_err(no_memory)?;
        let groups: Vec<Groups> = parts
            .split_mut()
            .into_par_iter()
            .map(|part| {
                sort(part, rows);
                Groups::of(part, rows)
            })
            .collect();
        drop(parts);
        Distinct::join(groups, rows)
    }

    fn join(groups: Vec<Groups>, rows: &Signatures) -> Result<Self> {
        let copies = Copies::of(&groups, rows.len())?;
        let mut firsts: Vec<u32> = Vec::with_capacity(groups.iter().map(|g| g.firsts.len()).sum());
        groups.iter().for_each(|group| firsts.extend(&group.firsts));
        let mut words = Vec::new();
        if rows.stride() == 1 {
            words.reserve(firsts.len());
            groups.iter().for_each(|group| words.extend(&group.words));
        } else {
            firsts.par_sort_unstable();
        }
        Ok(Distinct { words, firsts, copies })
    }
}

/// Sorts by signature, then by row.
fn sort(part: &mut [[u64; 2]], rows: &Signatures) {
    let whole = |item: &[u64; 2]| u128::from(item[0]) << 64 | u128::from(item[1]);
    match rows.stride() {
        1 => part.sort_unstable_by_key(whole),
        _ => part.sort_unstable_by(|a, b| {
            let row = |item: &[u64; 2]| rows.row(item[1] as usize);
            a[0].cmp(&b[0]).then_with(|| row(a).cmp(row(b))).then(a[1].cmp(&b[1]))
        }),
    }
}

/// What is distinct in one part.
struct Groups {
    words: Vec<u64>,
    firsts: Vec<u32>,
    /// Each copy, with the one before it.
    copies: Vec<(u32, u32)>,
}

impl Groups {
    fn of(part: &[[u64; 2]], rows: &Signatures) -> Self {
        let mut groups = Groups { words: Vec::new(), firsts: Vec::new(), copies: Vec::new() };
        groups.firsts.reserve_exact(part.len());
        let same = |a: &[u64; 2], b: &[u64; 2]| {
            a[0] == b[0]
                && (rows.stride() == 1 || rows.row(a[1] as usize) == rows.row(b[1] as usize))
        };
        for (i, item) in part.iter().enumerate() {
            match i.checked_sub(1).map(|before| &part[before]).filter(|before| same(before, item)) {
                Some(before) => groups.copies.push((before[1] as u32, item[1] as u32)),
                None => {
                    groups.firsts.push(item[1] as u32);
                    if rows.stride() == 1 {
                        groups.words.push(item[0]);
                    }
                }
            }
        }
        groups
    }
}

impl Copies {
    fn of(groups: &[Groups], rows: usize) -> Result<Self> {
        if groups.iter().all(|group| group.copies.is_empty()) {
            return Ok(Copies(None));
        }
        let mut next = CellsMut::zeroed(rows).map_err(no_memory)?;
        let cells = next.as_mut_slice();
        cells.fill(LAST);
        for &(before, copy) in groups.iter().flat_map(|group| &group.copies) {
            cells[before as usize] = copy;
        }
        Ok(Copies(Some(next.freeze().map_err(no_memory)?)))
    }

    pub(crate) fn view(&self) -> CopiesView<'_> {
        CopiesView(self.0.as_ref().map_or(&[], Cells::as_slice))
    }

    /// How many rows are copies of an earlier one, or nothing if some row leads to none or back.
    pub(crate) fn links(&self) -> Option<usize> {
        let next = self.0.as_ref().map_or(&[][..], Cells::as_slice);
        let leads = |(row, &next_row): (usize, &u32)| match next_row as usize {
            _ if next_row == LAST => Some(0),
            to if row < to && to < next.len() => Some(1),
            _ => None,
        };
        next.par_iter().enumerate().map(leads).sum()
    }

    /// How much memory they take.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.as_ref().map_or(0, |next| size_of_val(next.as_slice()) as u64)
    }
}

/// The cells of copies, for the inner loops.
#[derive(Clone, Copy)]
pub(crate) struct CopiesView<'a>(&'a [u32]);

impl<'a> CopiesView<'a> {
    /// Asks for what comes after a row.
    #[inline(always)]
    pub(crate) fn prefetch(self, row: u32) {
        prefetch(self.0, row as usize);
    }

    /// The next row that has the same signature.
    #[inline(always)]
    pub(crate) fn after(self, row: u32) -> Option<u32> {
        self.0.get(row as usize).copied().filter(|&next| next != LAST)
    }

    /// The rows from `first` on that have its signature.
    #[inline(always)]
    pub(crate) fn rows(self, first: u32) -> impl Iterator<Item = u32> + use<'a> {
        std::iter::successors(Some(first), move |&row| self.after(row))
    }
}
