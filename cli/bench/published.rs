//! What the thesis and its slides print, to be set beside what is measured here.

use serde::Serialize;

/// Where the figures are from, and what they were measured on.
pub(crate) const SOURCE: &str = "\
S. Sood, Probabilistic Simhash Matching, Texas A&M University, August 2011: Table 2 of its slides, 60M stored
fingerprints, 10M queries, online mode, recall .95 for PSM; AMD Phenom II, six cores, 2.8 GHz, 16 GB of memory (how many
of the cores were used is not said). Queries a second are 10M divided by the seconds, which is what the slides print; of
BPHS-10, all, only the 189K can be read for sure, which are 53 s.";

const QUERIES: f64 = 10e6;

/// A line of the thesis' Table 2.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct PublishedRow {
    /// What it is called here, where it is measured here.
    pub(crate) name: &'static str,
    /// Memory, in tables of all fingerprints.
    pub(crate) tables: f64,
    pub(crate) seconds_all: f64,
    pub(crate) seconds_first: f64,
}

impl PublishedRow {
    pub(crate) fn all(&self) -> f64 {
        QUERIES / self.seconds_all
    }

    pub(crate) fn first(&self) -> f64 {
        QUERIES / self.seconds_first
    }
}

const fn row(name: &'static str, tables: f64, all: f64, first: f64) -> PublishedRow {
    PublishedRow { name, tables, seconds_all: all, seconds_first: first }
}

/// BPHS-4 first: the others are compared with it.
pub(crate) const TABLE_2: [PublishedRow; 7] = [
    row("BPHS-4", 4.0, 65.0, 54.0),
    row("BPHS-10", 10.0, 53.0, 26.0),
    row("PSM, p = 22", 1.06, 15.5, 6.9),
    row("PSM, p = 23", 1.125, 14.4, 6.7),
    row("PSM, p = 24", 1.25, 14.4, 6.4),
    row("PSM, p = 25", 1.5, 13.5, 6.26),
    row("PSM, heap", 2.0, 13.1, 6.25),
];

/// Weak bits: at a distance, within so many flips, this share of the pairs.
pub(crate) const WEAK_BITS: [(u32, usize, f64); 5] =
    [(1, 1, 0.30), (1, 4, 0.80), (1, 17, 1.0), (2, 152, 1.0), (3, 675, 1.0)];
