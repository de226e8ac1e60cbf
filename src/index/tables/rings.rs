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
const PROBE: f64 = 30.0;
const WORD: f64 = 1.5;
const ROW_ELSEWHERE: f64 = 12.0;
const SCANNED_WORD_ALONE: f64 = 0.3;
const SCANNED_WORD_NEAR: f64 = 0.16;
const SCANNED_WORD: f64 = 0.1;
/// A scan compares a row with so many queries at once.
const MANY: usize = 16;
/// So many words stay in the cache.
const NEAR_WORDS: usize = 1 << 21;
/// Where random rows are too far for the rings, a query may still have enough that are near: so much of a scan is lost
/// if it has not.
const HOPE: f64 = 0.1;
/// More keys than this are never kept ready.
const MOST_KEYS: u64 = 1 << 20;

impl ScanCost {
    fn of(words: usize) -> Self {
        let alone = if words <= NEAR_WORDS { SCANNED_WORD_NEAR } else { SCANNED_WORD_ALONE };
        ScanCost { alone: words as f64 * alone, among_many: words as f64 * SCANNED_WORD }
    }
}

impl Rings {
    pub(super) fn of(index: &Tables<'_>) -> Self {
        let (composition, scan) = (&index.composition, ScanCost::of(index.rows.words().len()));
        let (mut steps, mut keys, mut costs) = (Vec::new(), Vec::new(), Vec::new());
        let (mut spent, mut kept) = (0.0, 0);
        for (step, count, cost) in outward(index) {
            (spent, kept) = (spent + cost, kept + count);
            if spent > scan.alone || kept > MOST_KEYS {
                break;
            }
            steps.push(step);
            keys.push(count);
            costs.push(spent);
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

/// Ring after ring, each with its keys and its cost. Any table may take the next error: the one where that is cheapest
/// does. It ends where a table has been looked at as a whole.
fn outward(index: &Tables<'_>) -> impl Iterator<Item = (Step, u64, f64)> {
    let row = if index.stored == Stored::Numbers { ROW_ELSEWHERE } else { WORD };
    let ring = move |table: usize, errors: u32| {
        let width = index.composition.layouts()[table].width();
        let rows = index.distinct as f64 / (1_u64 << width) as f64;
        let keys = keys_of(width, errors);
        (Step { table, errors, at_most: None }, keys, keys as f64 * (PROBE + rows * row))
    };
    let mut next: Vec<_> = disjoint(&index.composition).map(|table| ring(table, 0)).collect();
    std::iter::from_fn(move || {
        let cheapest = next.iter_mut().min_by(|a, b| a.2.total_cmp(&b.2))?;
        let Step { table, errors, .. } = cheapest.0;
        let taken = std::mem::replace(cheapest, ring(table, errors + 1));
        (taken.1 > 0).then_some(taken)
    })
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
pub(crate) fn random_radius(bits: u32, rows: usize, k: usize) -> u32 {
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
