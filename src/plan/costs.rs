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
    /// A call, whatever is asked.
    pub call: f64,
    /// A query.
    pub query: f64,
    /// A table that is looked at, for queries that go through it together.
    pub step: f64,
    /// A key to look up whose offsets are near.
    pub probe: f64,
    /// A key to look up whose line is near, and the check of its rows.
    pub lined: f64,
    /// A line of whole rows to check that is near.
    pub check: f64,
    /// The same for each earlier table whose rows are left out.
    pub other: f64,
    /// A line of split rows to check that is near.
    pub check_split: f64,
    /// A row of 256 bits to compare whose signature is somewhere else and near.
    pub pair: f64,
    /// A row within the radius that an earlier table finds as well, where the check does not leave it out.
    pub again: f64,
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
            step: 0.0,
            probe: 0.0,
            lined: 0.0,
            check: 0.0,
            other: 0.0,
            check_split: 0.0,
            pair: 0.0,
            again: 0.0,
            scan,
        };
        costs.measure_probes()?;
        Ok(costs)
    }

    /// Tables so small that all of it is near: what is left is the work.
    fn measure_probes(&mut self) -> Result<()> {
        let few = Small::random(64, 1 << 9, 1 << 11)?;
        let many = Small::random(64, 1 << 12, 1 << 9)?;
        let wide = Small::random(256, 1 << 12, 1 << 9)?;
        let narrow = Small::random(ALIKE_BITS, 1 << 12, 1 << 9)?;
        let (alike, unlike) =
            (Small::alike()?, Small::random(ALIKE_BITS, ALIKE << ALIKE_KEY, 256)?);
        let asked = [
            // Keys of 8 bits have two rows each.
            few.asked(1, 8, Stored::Whole)?,
            few.asked(8, 8, Stored::Whole)?,
            few.asked(1, 8, Stored::Whole)?.alone(),
            few.asked(8, 8, Stored::Whole)?.alone(),
            few.asked(1, 8, Stored::Lines)?,
            few.asked(8, 8, Stored::Lines)?,
            // 16 rows to a key, or 256.
            many.asked(1, 8, Stored::Whole)?,
            many.asked(1, 4, Stored::Whole)?,
            many.asked(8, 8, Stored::Whole)?,
            many.asked(8, 4, Stored::Whole)?,
            narrow.asked(1, 8, Stored::Split)?,
            narrow.asked(1, 4, Stored::Split)?,
            wide.asked(8, 8, Stored::Numbers)?,
            wide.asked(8, 4, Stored::Numbers)?,
            // All rows of a key are near, or none of as many.
            alike.asked(ALIKE_SLICES, ALIKE_KEY, Stored::Whole)?,
            alike.asked(ALIKE_SLICES, ALIKE_KEY, Stored::Split)?,
            unlike.asked(ALIKE_SLICES, ALIKE_KEY, Stored::Whole)?,
            unlike.asked(ALIKE_SLICES, ALIKE_KEY, Stored::Split)?,
        ];
        let [one, eight, one_alone, eight_alone, one_line, eight_lines, rest @ ..] =
            in_turn(&asked)?;
        let [short, long, short_eight, long_eight, short_split, long_split, rest @ ..] = rest;
        let [short_wide, long_wide, alike_whole, alike_split, whole, split] = rest;
        let least = |time: f64| time.max(0.1);
        // Eight rows of a line, sixteen halves of one.
        self.check = least((long - short) / (240.0 / 8.0));
        self.check_split = least((long_split - short_split) / (240.0 / 16.0));
        // Seven tables come after one, six after two, and so on.
        let eight_checks = (long_eight - short_eight) / (240.0 / 8.0);
        self.other = ((eight_checks - 8.0 * self.check) / 28.0).max(0.0);
        // The rows of a key are in one line, and four others are left out of it on average.
        let checked = self.check + 4.0 * self.other;
        self.probe = least((eight - one) / 7.0 - checked);
        self.lined = least((eight_lines - one_line) / 7.0 - 4.0 * self.other);
        self.step = least((eight_alone - one_alone) / 7.0 - self.probe - checked);
        self.query = least(one - self.probe - self.check);
        self.call = least(one_alone - self.step - one);
        self.pair = least((long_wide - short_wide) / 8.0 / 240.0);
        let found_again = f64::from(ALIKE_SLICES - 1) * ALIKE as f64;
        self.again = least(((alike_split - split) - (alike_whole - whole)) / found_again);
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

/// A few rows, and queries.
struct Small {
    rows: Signatures,
    queries: Signatures,
}

/// Rows that are near each other, and the tables in which they meet: keys of so many bits at the beginning of each slice.
const ALIKE: usize = 1 << 6;
const ALIKE_BITS: u32 = 48;
const ALIKE_KEY: u32 = 5;
const ALIKE_SLICES: u32 = 6;

impl Small {
    fn random(bits: u32, rows: usize, queries: usize) -> Result<Self> {
        let random = |len: usize, seed: u64| {
            let mut words = random_words(len * bits.div_ceil(64) as usize, seed);
            // Signatures are the leading bits of their words.
            words.iter_mut().for_each(|word| *word &= u64::MAX << (64 - bits.min(64)));
            Signatures::from_words(bits, words)
        };
        Ok(Small { rows: random(rows, 2)?, queries: random(queries, 3)? })
    }

    /// Rows that have all keys in common with the others of a kind, and no key with another kind.
    fn alike() -> Result<Self> {
        let slice = ALIKE_BITS / ALIKE_SLICES;
        let row = |i: usize| {
            let (kind, which) = (i / ALIKE, i % ALIKE);
            let key = (kind as u64) << (64 - ALIKE_KEY);
            let keys = (0..ALIKE_SLICES).fold(0, |word, i| word | key >> (i * slice));
            // Two bits that are no bits of keys: so rows of a kind differ in four at most.
            let bit = |place: usize| 1_u64 << 63 >> (place / 3 * slice as usize + 5 + place % 3);
            keys | bit(which % 9) | bit(9 + which / 9)
        };
        let words: Vec<u64> = (0..ALIKE << ALIKE_KEY).map(row).collect();
        let queries = words.iter().copied().step_by(8).collect();
        let of = |words| Signatures::from_words(ALIKE_BITS, words);
        Ok(Small { rows: of(words)?, queries: of(queries)? })
    }

    /// Tables of the rows that are asked for all queries at once.
    fn asked(&self, slices: u32, key_width: u32, stored: Stored) -> Result<Asked<'_>> {
        let build = Build { key_width: Some(key_width), stored: Some(stored) };
        let index = Tables::build(&self.rows, Method::Pieces { slices }, build)?;
        Ok(Asked { index, batches: vec![self.queries.clone()], radius: slices - 1 })
    }
}

/// Tables and what they are asked.
struct Asked<'a> {
    index: Tables<'a>,
    batches: Vec<Signatures>,
    radius: u32,
}

impl Asked<'_> {
    /// The same for some of the queries, one after the other.
    fn alone(mut self) -> Self {
        let queries = &self.batches[0];
        self.batches = (0..queries.len().min(256)).map(|row| queries.get(row).into()).collect();
        self
    }

    fn ask(&self, found: &mut Answers) -> Result<()> {
        self.batches
            .iter()
            .try_for_each(|queries| self.index.within(queries.into(), self.radius, found).map(drop))
    }
}

/// Nanoseconds for each query: the shortest of some runs. All take turns, so that what else the machine does for a while does
/// not hit one of them alone.
fn in_turn<const N: usize>(asked: &[Asked<'_>; N]) -> Result<[f64; N]> {
    let (mut found, mut times) = (Answers::new(), [f64::INFINITY; N]);
    // The first run makes ready.
    for run in 0..12 {
        for (asked, shortest) in asked.iter().zip(&mut times) {
            let start = Instant::now();
            asked.ask(&mut found)?;
            let queries: usize = asked.batches.iter().map(Signatures::len).sum();
            let time = start.elapsed().as_nanos() as f64 / queries as f64;
            *shortest = if run == 0 { *shortest } else { shortest.min(time) };
        }
    }
    Ok(times)
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
