//! What things cost on this machine, measured in about a second.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::{
    Result, Signatures,
    hamming::{self, prefetch},
    index::{Answers, Build, Index, Method, Scan, Tables},
    table::Stored,
};

/// What things cost on this machine, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// The kernel they were measured with.
    pub kernel: String,
    /// A line of memory, by how much memory there is.
    pub lines: Vec<LineCost>,
    /// A call with a single query.
    pub call: f64,
    /// A query of a large batch.
    pub query: f64,
    /// A key to look up whose offsets are near.
    pub probe: f64,
    /// The same for a single query.
    pub probe_alone: f64,
    /// A key to look up whose line is near, and the check of its rows.
    pub lined: f64,
    /// The same for a single query.
    pub lined_alone: f64,
    /// A line of rows to check that is near.
    pub check: f64,
    /// A row to compare whose signature is somewhere else and near.
    pub pair: f64,
    /// A word of a row in a scan.
    pub scan: Vec<ScanCost>,
}

/// A line of the cache, read at random.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LineCost {
    /// Out of so many bytes.
    pub bytes: u64,
    /// With many others on their way.
    pub many: f64,
    /// With a few others on their way.
    pub few: f64,
}

/// A word of a row in a scan of signatures of a width.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ScanCost {
    /// The width.
    pub bits: u32,
    /// For one query, out of the cache.
    pub near: f64,
    /// For one query, out of memory.
    pub far: f64,
    /// For each query of a large batch, if the radius is a few bits.
    pub many: f64,
    /// The same if the radius is an eighth of the bits.
    pub many_wide: f64,
}

const NEAR: usize = 1 << 17;
/// Enough rows that what a batch begins with does not count.
const SOME: usize = 1 << 21;
const FAR: usize = 1 << 28;
/// A radius of a few bits.
const FEW: u32 = 2;

impl Costs {
    /// Measures this machine, on one core.
    pub fn measure() -> Result<Self> {
        let one = rayon::ThreadPoolBuilder::new().num_threads(1).build();
        match one {
            Ok(pool) => pool.install(Costs::measure_here),
            // Without a pool of its own it is measured on whatever there is.
            Err(_) => Costs::measure_here(),
        }
    }

    fn measure_here() -> Result<Self> {
        let memory = Signatures::from_words(64, random_words(FAR / 8, 1))?.in_huge_pages();
        let sizes = [NEAR, 1 << 21, 1 << 24, 1 << 26, FAR];
        let lines = sizes.map(|bytes| LineCost {
            bytes: bytes as u64,
            many: line(&memory.words()[..bytes / 8], 64),
            few: line(&memory.words()[..bytes / 8], 8),
        });
        let scan = [64, 128, 256, 1024].map(|bits| scan(bits, memory.words()));
        let scan = scan.into_iter().collect::<Result<_>>()?;
        drop(memory);
        let kernel = hamming::kernel()?.name().to_owned();
        let mut costs = Costs {
            kernel,
            lines: lines.to_vec(),
            call: 0.0,
            query: 0.0,
            probe: 0.0,
            probe_alone: 0.0,
            lined: 0.0,
            lined_alone: 0.0,
            check: 0.0,
            pair: 0.0,
            scan,
        };
        costs.measure_probes()?;
        Ok(costs)
    }

    /// Tables so small that all of it is near: what is left is the work.
    fn measure_probes(&mut self) -> Result<()> {
        let (few, many) = (random_words(1 << 9, 2), random_words(1 << 12, 2));
        let (few, many) = (Signatures::from_words(64, few)?, Signatures::from_words(64, many)?);
        let queries = Signatures::from_words(64, random_words(1 << 11, 3))?;
        let time = |rows: &Signatures, slices: u32, key_width: u32, stored: Stored| {
            let build = Build { key_width: Some(key_width), stored: Some(stored) };
            let index = Tables::build(rows, Method::Pieces { slices }, build)?;
            ask(&index, &queries, slices - 1)
        };
        // Keys of 8 bits have two rows each.
        let (one, one_alone) = time(&few, 1, 8, Stored::Whole)?;
        let (eight, eight_alone) = time(&few, 8, 8, Stored::Whole)?;
        self.probe = ((eight - one) / 7.0).max(0.1);
        self.probe_alone = ((eight_alone - one_alone) / 7.0).max(self.probe);
        self.query = (one - self.probe).max(0.1);
        self.call = (one_alone - self.probe_alone).max(self.query);
        let (one, one_alone) = time(&few, 1, 8, Stored::Lines)?;
        let (eight, eight_alone) = time(&few, 8, 8, Stored::Lines)?;
        self.lined = ((eight - one) / 7.0).max(0.1);
        self.lined_alone = ((eight_alone - one_alone) / 7.0).max(self.lined);
        // With 16 rows to a key these are two or three lines. With 256 they are 32.
        let (short, long) =
            (time(&many, 8, 8, Stored::Whole)?.0, time(&many, 8, 4, Stored::Whole)?.0);
        self.check = ((long - short) / 8.0 / 30.0).max(0.1);

        let rows = Signatures::from_words(128, random_words(1 << 12, 4))?;
        let queries = Signatures::from_words(128, random_words(1 << 9, 5))?;
        let wide = |key_width: u32| -> Result<f64> {
            let build = Build { key_width: Some(key_width), stored: None };
            Ok(ask(&Tables::build(&rows, Method::Pieces { slices: 8 }, build)?, &queries, 7)?.0)
        };
        self.pair = ((wide(4)? - wide(8)?) / 8.0 / (128.0 - 8.0)).max(0.1);
        Ok(())
    }

    /// A line read at random out of so many bytes.
    pub(super) fn line(&self, bytes: f64, many: bool) -> f64 {
        let cost = |line: &LineCost| if many { line.many } else { line.few };
        let Some(after) = self.lines.iter().position(|line| line.bytes as f64 >= bytes) else {
            return self.lines.last().map_or(0.0, cost);
        };
        if after == 0 {
            return cost(&self.lines[0]);
        }
        let (low, high) = (&self.lines[after - 1], &self.lines[after]);
        let share = (bytes / low.bytes as f64).ln() / (high.bytes as f64 / low.bytes as f64).ln();
        cost(low) + (cost(high) - cost(low)) * share
    }

    /// The costs of the width that is nearest to this.
    fn scan_of(&self, bits: u32) -> Option<&ScanCost> {
        let nearest = |cost: &&ScanCost| (f64::from(cost.bits) / f64::from(bits)).ln().abs() * 1e3;
        self.scan.iter().min_by_key(|cost| nearest(cost) as u64)
    }

    /// A word that is near, compared with one query.
    pub(super) fn scan_word(&self, bits: u32) -> f64 {
        self.scan_of(bits).map_or(0.0, |cost| cost.near)
    }

    /// A scan of so many rows, for each query of a batch.
    pub fn scan(&self, bits: u32, rows: f64, radius: u32, batch: usize) -> f64 {
        let Some(cost) = self.scan_of(bits) else { return f64::INFINITY };
        let words = rows * f64::from(bits.div_ceil(64));
        let is_far = words * 8.0 > (1 << 24) as f64;
        let one = if is_far { cost.far } else { cost.near };
        let wide = (f64::from(radius) * 8.0 / f64::from(bits)).min(1.0);
        let many = cost.many + (cost.many_wide - cost.many) * wide;
        let word = if batch >= 16 { many } else { one };
        self.call + words * word
    }
}

fn random_words(len: usize, seed: u64) -> Vec<u64> {
    let mix = |i: u64| {
        let z = (i ^ seed << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let z = (z ^ z >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z ^ z >> 32
    };
    (1..=len as u64).map(mix).collect()
}

/// Nanoseconds for a line out of these words, with so many on their way.
fn line(words: &[u64], under_way: usize) -> f64 {
    let lines = words.len() as u64 / 8;
    let mut places = vec![0; under_way];
    let mut state = 1_u64;
    let rounds = (1 << 17) / under_way;
    let mut sum = 0;
    let time = shortest(3, || {
        for _ in 0..rounds {
            for place in &mut places {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                *place = ((u128::from(state) * u128::from(lines)) >> 64) as usize * 8;
                prefetch(words, *place);
            }
            sum ^= places.iter().fold(0, |sum, &place| sum ^ words[place]);
        }
    });
    std::hint::black_box(sum);
    time.as_nanos() as f64 / (rounds * under_way) as f64
}

fn scan(bits: u32, memory: &[u64]) -> Result<ScanCost> {
    let words = |bytes: usize| {
        let words = bytes / 8 / (bits as usize / 64) * (bits as usize / 64);
        Signatures::from_words(bits, memory[..words].to_vec())
    };
    let (near, some, far) = (words(NEAR)?, words(SOME)?, words(FAR / 4)?);
    let query = Signatures::from_words(bits, memory[..bits as usize / 64].to_vec())?;
    let queries = Signatures::from_words(bits, memory[..bits as usize / 64 * 256].to_vec())?;
    let mut found = Answers::new();
    let mut per_word = |rows: &Signatures, queries: &Signatures, radius| -> Result<f64> {
        let scan = Scan::new(rows)?;
        let mut failed = Ok(());
        let time = shortest(3, || {
            let asked = scan.within(queries.into(), radius, &mut found).map(drop);
            failed = std::mem::replace(&mut failed, Ok(())).and(asked);
        });
        failed.map(|()| time.as_nanos() as f64 / (rows.words().len() * queries.len()) as f64)
    };
    Ok(ScanCost {
        bits,
        near: per_word(&near, &query, FEW)?,
        far: per_word(&far, &query, FEW)?,
        many: per_word(&some, &queries, FEW)?,
        many_wide: per_word(&some, &queries, bits / 8)?,
    })
}

/// Nanoseconds for each query: in a batch, and alone.
fn ask(index: &Tables<'_>, queries: &Signatures, radius: u32) -> Result<(f64, f64)> {
    let mut found = Answers::new();
    index.within(queries.into(), radius, &mut found)?;
    let alone: Vec<Signatures> = (0..256).map(|row| queries.get(row).into()).collect();
    let batched = shortest(9, || drop(index.within(queries.into(), radius, &mut found)));
    let single = shortest(9, || {
        alone.iter().for_each(|query| drop(index.within(query.into(), radius, &mut found)));
    });
    let each = |time: Duration, queries: usize| time.as_nanos() as f64 / queries as f64;
    Ok((each(batched, queries.len()), each(single, alone.len())))
}

/// The shortest of some runs: what else the machine does only makes them longer.
fn shortest(runs: usize, mut run: impl FnMut()) -> Duration {
    let time = |_| {
        let start = Instant::now();
        run();
        start.elapsed()
    };
    (0..runs).map(time).min().unwrap_or_default()
}
