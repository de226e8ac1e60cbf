//! Rings: for the nearest, the keys around a query's own are looked at in turns, ever farther out.
//!
//! Each ring is the keys of one table that differ in so many bits from the query's own. The tables share no bit of their
//! keys, so a row that none of the first `n` rings leads to has at least `n` errors: they find all within `n - 1`.

use std::ops::Range;

use super::{Tables, looks::Looking};
use crate::{
    index::{Composition, Step},
    probe::count_within,
    table::Stored,
};

/// The rings of an index that may be worth their cost, in turn.
#[derive(Debug)]
pub(super) struct Rings {
    pub(super) looking: Looking,
    /// How many keys each ring has.
    keys: Vec<u64>,
    /// What a query pays for the rings up to each.
    costs: Vec<f64>,
    scan: ScanCost,
}

/// What a query pays for a scan: alone, and among many.
#[derive(Debug, Clone, Copy)]
struct ScanCost {
    alone: f64,
    among_many: f64,
}

// Nanoseconds. They only have to tell where rings begin to cost more than a scan, and near that point it matters little.
const PROBE: f64 = 14.0;
const WORD: f64 = 0.5;
const ROW_ELSEWHERE: f64 = 8.0;
const SCANNED_WORD_ALONE: f64 = 0.3;
const SCANNED_WORD: f64 = 0.1;
/// A scan compares a row with so many queries at once.
const MANY: usize = 16;
/// Random queries that the rings do not reach are few in most collections; where they are many, so much of a scan is
/// lost for each.
const HOPE: f64 = 0.25;
/// More keys than this are never kept ready.
const MOST_KEYS: u64 = 1 << 20;

impl Rings {
    pub(super) fn of(index: &Tables<'_>) -> Self {
        let words = index.rows.words().len() as f64;
        let scan = ScanCost { alone: words * SCANNED_WORD_ALONE, among_many: words * SCANNED_WORD };
        let row = if index.stored == Stored::Numbers { ROW_ELSEWHERE } else { WORD };
        let composition = &index.composition;
        let mut next: Vec<Step> =
            disjoint(composition).map(|table| Step { table, errors: 0, at_most: None }).collect();
        let width = |step: &Step| composition.layouts()[step.table].width();
        let cost = |step: &Step| {
            let rows = index.distinct as f64 / (1_u64 << width(step)) as f64;
            keys_of(width(step), step.errors) as f64 * (PROBE + rows * row)
        };
        let (mut steps, mut keys, mut costs) = (Vec::new(), Vec::new(), Vec::new());
        let mut spent = 0.0;
        let mut kept = 0;
        // Any table may take the next error: the one where that is cheapest.
        while let Some(step) = next.iter_mut().min_by(|a, b| cost(a).total_cmp(&cost(b))) {
            let count = keys_of(width(step), step.errors);
            (spent, kept) = (spent + cost(step), kept + count);
            if spent > scan.alone || kept > MOST_KEYS {
                break;
            }
            steps.push(*step);
            keys.push(count);
            costs.push(spent);
            if step.errors == width(step) {
                break;
            }
            step.errors += 1;
        }
        Rings { looking: Looking::rings(composition, steps), keys, costs, scan }
    }

    /// How many rings are worth it for so many queries that still lack neighbors, if random rows have enough of them
    /// within `far`.
    pub(super) fn worth(&self, queries: usize, far: u32) -> usize {
        let scan = if queries < MANY { self.scan.alone } else { self.scan.among_many };
        let within = |cost: f64| self.costs.partition_point(|&spent| spent <= cost);
        match within(scan) {
            rings if rings > far as usize => rings,
            _ => within(scan * HOPE),
        }
    }

    /// Rings from `first` on that are looked at before it is asked what they found: those with as many errors, as long
    /// as they are few keys.
    pub(super) fn level(&self, first: usize, few: usize, end: usize) -> Range<usize> {
        let errors = |ring: usize| self.looking.steps[ring].errors;
        let mut keys = self.keys[first];
        let mut last = first + 1;
        while last < end && errors(last) == errors(first) && keys < few as u64 {
            keys += self.keys[last];
            last += 1;
        }
        first..last
    }
}

/// Tables that share no bit of their keys.
fn disjoint(composition: &Composition) -> impl Iterator<Item = usize> {
    let mut taken = vec![false; composition.bits as usize];
    composition.layouts().iter().enumerate().filter_map(move |(table, layout)| {
        let free = !layout.positions().any(|bit| taken[bit as usize]);
        if free {
            layout.positions().for_each(|bit| taken[bit as usize] = true);
        }
        free.then_some(table)
    })
}

fn keys_of(width: u32, errors: u32) -> u64 {
    let fewer = errors.checked_sub(1).map_or(0, |fewer| count_within(width, fewer));
    count_within(width, errors) - fewer
}

/// Within which distance a query has `k` of so many random rows.
pub(super) fn random_radius(bits: u32, rows: usize, k: usize) -> u32 {
    let share = k as f64 / rows.max(1) as f64;
    let (mut of_distance, mut within) = ((-f64::from(bits)).exp2(), 0.0);
    for distance in 0..bits {
        within += of_distance;
        if within >= share {
            return distance;
        }
        of_distance *= f64::from(bits - distance) / f64::from(distance + 1);
    }
    bits
}
