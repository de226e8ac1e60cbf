//! Does the planner choose well? Every exact composition that it prices is built and measured, one thread, and others as
//! they are built by default, and the time of its choice is compared with that of the best.
//!
//!     cargo bench --bench plan -- [ROWS...] [BITS...]
//!
//! Numbers up to 4096 are widths.
//!
//! Rows are uniform, or skewed: every bit has a bias of its own, and a tenth of the rows are near-copies of a hundred
//! templates. A quarter of the queries are near-copies of rows, the others are rows of the same kind. Whatever is
//! predicted to take more than five times as long as the choice is left out, and what looks up more than 20,000 keys.
#![allow(clippy::print_stdout, reason = "it is what a bench is for")]

use std::time::Instant;

use lookalike::{
    Result, Signatures,
    index::{Answers, Build, Graph, Index, Method, Scan, Tables},
    plan::{Choice, Costs, Plan, Sample, Task, plans},
};

fn main() -> Result<()> {
    let costs = Costs::measure()?;
    println!("costs, in nanoseconds: {}\n", serde_json::to_string(&costs).unwrap_or_default());
    let numbers: Vec<usize> = std::env::args().filter_map(|arg| arg.parse().ok()).collect();
    let (widths, sizes): (Vec<_>, Vec<_>) = numbers.into_iter().partition(|&number| number <= 4096);
    let sizes = if sizes.is_empty() { vec![10_000, 1_000_000, 10_000_000] } else { sizes };
    let widths = if widths.is_empty() { vec![64, 256] } else { widths };
    println!(
        "| rows | bits | data | radius | batch | choice | predicted us | measured us | best | us | ratio |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    let pool =
        rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a pool of one thread");
    for rows in sizes {
        for &bits in &widths {
            for skewed in [false, true] {
                let data = Data::new(rows, bits as u32, skewed);
                for radius in [1, 3, 6] {
                    pool.install(|| compare(&costs, &data, radius))?;
                }
            }
        }
    }
    Ok(())
}

struct Data {
    rows: Signatures,
    queries: Signatures,
    name: &'static str,
}

/// What was measured: microseconds for a query, alone and in batches.
struct Measured {
    index: Choice,
    alone: f64,
    batched: f64,
}

fn compare(costs: &Costs, data: &Data, radius: u32) -> Result<()> {
    let sample = Sample::of(&data.rows)?;
    let task =
        |batch| Task { radius, nearest: None, batch, queries: None, memory: None, recall: 1.0 };
    let (alone, batched) = (plans(costs, &sample, &task(1)), plans(costs, &sample, &task(1000)));
    let close = |plans: &[Plan]| -> Vec<Choice> {
        let most = plans[0].query_seconds * 5.0;
        let close = plans.iter().filter(|plan| plan.query_seconds <= most);
        close.map(|plan| plan.index).collect()
    };
    let mut measured: Vec<Measured> = Vec::new();
    let others = by_default(data.rows.bits(), radius);
    for index in close(&alone).into_iter().chain(close(&batched)).chain(others) {
        if !measured.iter().any(|other| other.index == index) {
            measured.push(measure(index, data, radius)?);
        }
    }
    report(data, radius, 1, &alone[0], &measured, |m| m.alone);
    report(data, radius, 1000, &batched[0], &measured, |m| m.batched);
    Ok(())
}

/// What one would try without a planner.
fn by_default(bits: u32, radius: u32) -> Vec<Choice> {
    let multi = |slices, parts| Method::Multi { slices, parts };
    let pieces = Method::Pieces { slices: radius + 1 };
    let blocks = Method::Blocks { blocks: radius + 2, leading: 2 };
    let methods = [
        pieces,
        blocks,
        multi(1, 1),
        multi(2, 1),
        multi(3, 1),
        multi(4, 1),
        multi(2, 3),
        multi(2, 4),
    ];
    let few =
        |method: &Method| method.compose(bits, 20).is_ok_and(|of| of.probes(radius) <= 20_000);
    methods.into_iter().filter(few).map(|method| Choice::Tables(method, Build::default())).collect()
}

fn report(
    data: &Data,
    radius: u32,
    batch: usize,
    choice: &Plan,
    measured: &[Measured],
    time: impl Fn(&Measured) -> f64,
) {
    let chosen = measured.iter().find(|m| m.index == choice.index).expect("it was measured");
    let best = measured.iter().min_by(|a, b| time(a).total_cmp(&time(b))).expect("some were");
    println!(
        "| {} | {} | {} | {radius} | {batch} | {} | {:.3} | {:.3} | {} | {:.3} | {:.2} |",
        data.rows.len(),
        data.rows.bits(),
        data.name,
        name(&choice.index),
        choice.query_seconds * 1e6,
        time(chosen),
        name(&best.index),
        time(best),
        time(chosen) / time(best),
    );
}

fn name(index: &Choice) -> String {
    match *index {
        Choice::Scan => "scan".to_owned(),
        Choice::Graph(shape) => shape.to_string(),
        Choice::Tables(method, build) => {
            let bits = build.key_width.map_or(String::new(), |bits| format!(" {bits}"));
            format!("{method}{bits} {}", build.stored.map_or("default", |stored| stored.name()))
        }
    }
}

fn measure(choice: Choice, data: &Data, radius: u32) -> Result<Measured> {
    let index: Box<dyn Index> = match choice {
        Choice::Scan => Box::new(Scan::new(&data.rows)?),
        Choice::Graph(shape) => Box::new(Graph::build(&data.rows, shape, 1)?),
        Choice::Tables(method, build) => Box::new(Tables::build(&data.rows, method, build)?),
    };
    let mut found = Answers::new();
    let singles: Vec<Signatures> = data
        .queries
        .rows()
        .map(|row| Signatures::from_words(data.rows.bits(), row.to_vec()))
        .collect::<Result<_>>()?;
    let batched = timed(data.queries.len(), || {
        index.within((&data.queries).into(), radius, &mut found).map(drop)
    })?;
    let mut next = singles.iter().cycle();
    let alone = timed(1, || {
        index.within(next.next().expect("there are queries").into(), radius, &mut found).map(drop)
    })?;
    Ok(Measured { index: choice, alone, batched })
}

/// Microseconds for a query: the median of five stretches of at least 10 ms.
fn timed(queries: usize, mut run: impl FnMut() -> Result<()>) -> Result<f64> {
    // A look at the clock is not to count for a single query.
    let together = (1000 / queries).max(1);
    run()?;
    let mut times = Vec::new();
    for _ in 0..5 {
        let (start, mut runs) = (Instant::now(), 0);
        while start.elapsed().as_millis() < 10 {
            (0..together).try_for_each(|_| run())?;
            runs += together;
        }
        times.push(start.elapsed().as_secs_f64() * 1e6 / (runs * queries) as f64);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[2])
}

impl Data {
    fn new(rows: usize, bits: u32, skewed: bool) -> Self {
        let mut random = Random(rows as u64 ^ u64::from(bits));
        let biases: Vec<u8> =
            (0..bits).map(|_| if skewed { 26 + random.below(205) as u8 } else { 128 }).collect();
        let mut words = Vec::with_capacity(rows * bits as usize / 64);
        let templates: Vec<Vec<u64>> = (0..100).map(|_| random.row(&biases)).collect();
        for _ in 0..rows {
            match skewed && random.below(10) == 0 {
                true => words.extend(random.near(&templates[random.0 as usize % 100], 8)),
                false => words.extend(random.row(&biases)),
            }
        }
        let rows = Signatures::from_words(bits, words).expect("whole rows");
        let mut words = Vec::new();
        for i in 0..1000 {
            match i % 4 {
                0 => words.extend(random.near(rows.row(random.0 as usize % rows.len()), 4)),
                _ => words.extend(random.row(&biases)),
            }
        }
        let queries = Signatures::from_words(bits, words).expect("whole rows");
        let name = if skewed { "skewed" } else { "uniform" };
        Data { rows, queries, name }
    }
}

/// splitmix64
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    fn row(&mut self, biases: &[u8]) -> Vec<u64> {
        let uniform = biases.iter().all(|&bias| bias == 128);
        let word = |biases: &[u8]| {
            if uniform {
                return self.next();
            }
            biases.chunks(8).fold(0, |word, biases| {
                let random = self.next().to_le_bytes();
                biases
                    .iter()
                    .zip(random)
                    .fold(word, |word, (&bias, byte)| word << 1 | u64::from(byte < bias))
            })
        };
        biases.chunks(64).map(word).collect()
    }

    fn near(&mut self, row: &[u64], most: u64) -> Vec<u64> {
        let mut row = row.to_vec();
        for _ in 0..self.below(most + 1) {
            let bit = self.below(row.len() as u64 * 64) as usize;
            row[bit / 64] ^= 1 << (bit % 64);
        }
        row
    }
}
