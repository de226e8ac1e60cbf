//! What a run found out, as it is written to JSON.

use serde::Serialize;

use super::published::PublishedRow;

/// Everything that a run found out.
#[derive(Debug, Serialize)]
pub(crate) struct Results {
    pub(crate) workload: About,
    /// Table 2.
    pub(crate) methods: Vec<Row>,
    pub(crate) agreement: Agreement,
    pub(crate) unbatched: Vec<Unbatched>,
    pub(crate) limit: Limit,
    /// Figure 2 of the thesis.
    pub(crate) weak_bits: Vec<WeakRow>,
    /// Its figures 7 and 8.
    pub(crate) growth: Vec<GrowthRow>,
    /// Its Table 2.
    pub(crate) published: Vec<PublishedRow>,
}

/// What was searched.
#[derive(Debug, Serialize)]
pub(crate) struct About {
    pub(crate) rows: usize,
    pub(crate) distinct: usize,
    pub(crate) queries: usize,
    pub(crate) seed: u64,
    pub(crate) threads: usize,
    pub(crate) repeats: usize,
    pub(crate) kernel: &'static str,
    /// The share of the queries that have a neighbor.
    pub(crate) matched: f64,
    /// Neighbors a query.
    pub(crate) neighbors: f64,
}

/// A method.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    /// In the form that the thesis describes, or ours.
    pub(crate) form: &'static str,
    pub(crate) tables: usize,
    /// Bits of the widest key, or those that lead.
    pub(crate) key_bits: u32,
    /// Whether it finds every neighbor.
    pub(crate) exact: bool,
    pub(crate) build_seconds: f64,
    /// A stored row, the tables alone.
    pub(crate) bytes: f64,
    /// The same with what leads from signatures to rows; the thesis' form finds signatures only.
    pub(crate) bytes_with_rows: Option<f64>,
    pub(crate) all: Rate,
    pub(crate) first: Rate,
    /// What is special about it here.
    pub(crate) note: Option<String>,
}

/// How fast a question was answered, and how well.
#[derive(Debug, Serialize)]
pub(crate) struct Rate {
    /// How many queries were asked: fewer where a pass would take too long.
    pub(crate) queries: usize,
    /// For these queries: the median of the repeats.
    pub(crate) seconds: f64,
    /// The slowest repeat to the fastest.
    pub(crate) spread: f64,
    pub(crate) queries_a_second: f64,
    pub(crate) recall: f64,
    /// Times the speed of BPHS-4 in the thesis' form, which took turns with it.
    pub(crate) times_bphs: f64,
}

/// Whether all exact methods found the same.
#[derive(Debug, Serialize)]
pub(crate) struct Agreement {
    pub(crate) agree: bool,
    /// What each of them found for the queries that all of them were asked.
    pub(crate) methods: Vec<Finding>,
}

/// What an exact method found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Finding {
    pub(crate) name: String,
    pub(crate) queries: usize,
    /// Pairs of a query and a row.
    pub(crate) pairs: u64,
    /// Pairs of a query and a signature.
    pub(crate) signatures: u64,
    /// Of these, in hexadecimal digits.
    pub(crate) checksum: String,
}

/// One query a call.
#[derive(Debug, Serialize)]
pub(crate) struct Unbatched {
    pub(crate) name: String,
    pub(crate) queries: usize,
    pub(crate) queries_a_second: f64,
    pub(crate) batched_to_unbatched: f64,
}

/// What the memory gives, and what the fastest exact index uses of it.
#[derive(Debug, Serialize)]
pub(crate) struct Limit {
    pub(crate) bytes: u64,
    pub(crate) groups: Vec<Group>,
    /// With the best of these groups.
    pub(crate) lines_a_second: f64,
    pub(crate) name: String,
    /// Measured next to the memory, as the machine may be busier at another time.
    pub(crate) queries_a_second: f64,
    pub(crate) lines: Lines,
    /// The share of the limit that it uses.
    pub(crate) share: f64,
}

/// Lines that were asked for together.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Group {
    pub(crate) at_once: usize,
    pub(crate) lines_a_second: f64,
}

/// Lines of the cache that a query touches.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct Lines {
    pub(crate) offsets: f64,
    pub(crate) rows: f64,
    pub(crate) resolution: f64,
}

impl Lines {
    pub(crate) fn all(&self) -> f64 {
        self.offsets + self.rows + self.resolution
    }
}

/// How soon the bits that differ are found at a distance.
#[derive(Debug, Serialize)]
pub(crate) struct WeakRow {
    pub(crate) distance: u32,
    pub(crate) pairs: u64,
    pub(crate) shares: Vec<WeakShare>,
    /// Flips for 95% and 99% of the pairs, and for all.
    pub(crate) flips_95: usize,
    pub(crate) flips_99: usize,
    pub(crate) flips_all: usize,
    /// All there are.
    pub(crate) combinations: u64,
    /// The curve: flips, and the share found within them.
    pub(crate) curve: Vec<(f64, f64)>,
}

/// The share of the pairs that is found within a number of flips.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct WeakShare {
    pub(crate) flips: usize,
    pub(crate) thesis: f64,
    pub(crate) here: f64,
}

/// A method at a size.
#[derive(Debug, Serialize)]
pub(crate) struct GrowthRow {
    pub(crate) name: String,
    pub(crate) rows: usize,
    pub(crate) key_bits: u32,
    pub(crate) queries: usize,
    pub(crate) queries_a_second: f64,
    pub(crate) recall: f64,
    /// Speed here to speed at the smallest size.
    pub(crate) to_smallest: f64,
}
