//! What finds the nearest? A scan, tables where signatures are short and rows are many, or a graph where some of the nearest
//! are enough.

use std::cell::{OnceCell, RefCell};

use super::{Choice, Costs, Plan, Pricing, Sample, Task, Work};
use crate::index::{Method, Shape, random_radius};

/// Tables are worth it from so many rows on: at a million they are as fast as a scan, at ten millions five times as fast.
pub const TABLES_FROM: usize = 4_000_000;
/// In longer signatures the nearest of random rows are too far apart for keys.
pub const TABLES_BITS: u32 = 128;
/// The tables of the nearest: they share no bit.
const SLICES: u32 = 4;

/// So few rows a graph compares with each query.
const FEW_ROWS: usize = 10_000;
/// A row's share in the building of a graph, in nanoseconds on one core, for each neighbor and each place of the beam: 10 to 15
/// over a million rows of 256 and 1024 bits.
const BUILD_EDGE: f64 = 13.0;
/// How many nodes a walk keeps to find a share of the ten nearest: measured over a million texts of 1024 bits. What it really
/// takes is measured when a graph is built; more than the last is not promised before.
const LEVELS: [(f64, f64); 6] =
    [(0.7, 24.0), (0.8, 48.0), (0.85, 96.0), (0.9, 192.0), (0.95, 768.0), (0.96, 1536.0)];
/// Of the neighbors of a node, so many were not met before.
const FRESH: f64 = 0.4;
/// Nodes that a walk is compared with to find where to begin; they are near.
const ENTRIES: f64 = 1024.0;

/// Everything that could find the `k` nearest and fits into the memory.
pub(super) fn plans(costs: &Costs, sample: &Sample, task: &Task, k: usize) -> Vec<Plan> {
    let (bits, rows) = (sample.bits(), sample.total());
    // Random rows are the hardest: there, so many are that near, and all of them have to be looked at.
    let radius = if bits <= TABLES_BITS { random_radius(bits, rows, k) } else { bits / 8 };
    let priced = Task { radius, ..*task };
    let pricing =
        Pricing { costs, sample, task: &priced, shares: RefCell::default(), near: OnceCell::new() };
    let tables = (bits <= TABLES_BITS && rows >= TABLES_FROM)
        .then(|| pricing.best_build(Method::Multi { slices: SLICES, parts: 1 }));
    [Some(pricing.scan()), tables.flatten(), graph(costs, sample, task, k)]
        .into_iter()
        .flatten()
        .collect()
}

/// What a graph would cost, if less than all are enough and it fits.
fn graph(costs: &Costs, sample: &Sample, task: &Task, k: usize) -> Option<Plan> {
    let (bits, rows) = (sample.bits(), sample.total());
    let shape = Shape::usual(bits);
    let bytes = shape.bytes(rows, bits);
    if rows < FEW_ROWS || task.memory.is_some_and(|memory| bytes > memory) {
        return None;
    }
    let level = LEVELS.iter().find(|(recall, _)| task.recall <= *recall)?.1.max(k as f64);
    let words = f64::from(bits.div_ceil(64));
    let degree = f64::from(shape.degree);
    let met = level * degree * FRESH;
    let lines = met * (words / 8.0).max(1.0) + level * degree / 16.0;
    let near = costs.scan(bits, ENTRIES, bits, 1);
    // A walk knows where to go next only when it is there: few lines are under way.
    let line = costs.line(bytes as f64, false);
    let compare = costs.pair + words * costs.scan_word(bits);
    Some(Plan {
        index: Choice::Graph(shape),
        exact: false,
        expected_recall: task.recall,
        bytes,
        build_seconds: rows as f64 * degree * f64::from(shape.beam) * BUILD_EDGE / 1e9,
        query_seconds: (near + met * compare + lines * line) / 1e9,
        work: Work { probes: level, rows: met + ENTRIES, lines },
    })
}
