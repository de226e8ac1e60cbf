//! Does the planner choose well? Every exact composition that it prices is built and measured, one thread, and others as
//! they are built by default, and the time of its choice is compared with that of the best.
//!
//!     cargo bench --bench plan -- [ROWS...] [BITS...] [RADII...] [uniform|skewed] [each]
//!
//! Numbers up to 32 are radii, those up to 4096 are widths. `each` shows every index beside what was predicted of it.
//!
//! Rows are uniform, or skewed: every bit has a bias of its own, and a tenth of the rows are near-copies of a hundred
//! templates. A quarter of the queries are near-copies of rows, the others are rows of the same kind. There are so many
//! that what one asks for is no longer near when it is asked again. Whatever is predicted to take more than five times as
//! long as the choice is left out; of those that are built by default, whatever is predicted to take twenty times as long or
//! looks up more than 20,000 keys.
//!
//! Two names for the same tables are measured once. The fastest of the others are built again and asked the same queries
//! in turn with the choice: the ratio is the median of what these turns say.
#![allow(clippy::print_stdout, reason = "it is what a bench is for")]

use std::time::Instant;

use lookalike::{
    Result, Signatures,
    index::{Answers, Build, Graph, Index, Method, Scan, Tables},
    plan::{Choice, Costs, Plan, Sample, Task, plans, price},
    table::{KeyLayout, Stored, key_width},
};

/// Queries in all, and in a batch.
const QUERIES: usize = 128_000;
const BATCH: usize = 1000;
/// Turns that the choice and the fastest of the others take, and how many of these there are at most.
const TURNS: usize = 9;
const RIVALS: usize = 3;

fn main() -> Result<()> {
    let costs = Costs::measure()?;
    println!("costs, in nanoseconds: {}\n", serde_json::to_string(&costs).unwrap_or_default());
    let args: Vec<String> = std::env::args().skip(1).collect();
    let given = |word: &str| args.iter().any(|arg| arg == word);
    let numbers = |range: std::ops::Range<usize>, usual: &[usize]| {
        let given = args.iter().filter_map(|arg| arg.parse().ok());
        let given: Vec<usize> = given.filter(|number| range.contains(number)).collect();
        if given.is_empty() { usual.to_vec() } else { given }
    };
    let radii = numbers(0..33, &[1, 3, 6]);
    let widths = numbers(33..4097, &[64, 256]);
    let sizes = numbers(4097..usize::MAX, &[10_000, 1_000_000, 10_000_000]);
    let kinds = [(false, "uniform"), (true, "skewed")];
    let all = kinds.iter().all(|(_, name)| !given(name));
    println!(
        "| rows | bits | data | radius | batch | choice | predicted us | measured us | best | us | ratio |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    let pool =
        rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a pool of one thread");
    for rows in sizes {
        for &bits in &widths {
            for (skewed, _) in kinds.into_iter().filter(|(_, name)| all || given(name)) {
                let data = Data::new(rows, bits as u32, skewed);
                for &radius in &radii {
                    let task = Compared { data: &data, radius: radius as u32, pool: &pool };
                    task.compare(&costs, given("each"))?;
                }
            }
        }
    }
    Ok(())
}

struct Data {
    rows: Signatures,
    /// Queries alone, and in batches.
    alone: Vec<Signatures>,
    batched: Vec<Signatures>,
    name: &'static str,
}

/// Indexes for the same radius over the same rows.
struct Compared<'a> {
    data: &'a Data,
    radius: u32,
    pool: &'a rayon::ThreadPool,
}

/// What was measured: the seconds to build it, and microseconds for a query, alone and in batches.
struct Measured {
    index: Choice,
    build: f64,
    alone: f64,
    batched: f64,
}

impl Measured {
    fn time(&self, batch: usize) -> f64 {
        if batch == 1 { self.alone } else { self.batched }
    }
}

impl Compared<'_> {
    fn compare(&self, costs: &Costs, each: bool) -> Result<()> {
        let sample = Sample::of(&self.data.rows)?;
        let radius = self.radius;
        let task =
            |batch| Task { radius, nearest: None, batch, queries: None, memory: None, recall: 1.0 };
        let tasks = [task(1), task(BATCH)];
        let started = Instant::now();
        let planned = tasks.map(|task| plans(costs, &sample, &task));
        if each {
            println!("  planned in {:.3} s", started.elapsed().as_secs_f64());
        }
        let close = |plans: &[Plan]| -> Vec<Choice> {
            let most = plans[0].query_seconds * 5.0;
            let close = plans.iter().filter(|plan| plan.query_seconds <= most);
            close.map(|plan| plan.index).collect()
        };
        let mut measured: Vec<Measured> = Vec::new();
        let predicted = |index, task: &Task| predicted(costs, &sample, task, index);
        let is_hopeless = |index: &Choice| {
            let mut of = tasks.iter().zip(&planned);
            of.all(|(task, plans)| predicted(*index, task).0 > 20.0 * plans[0].query_seconds)
        };
        let others = self.by_default().into_iter().filter(|index| !is_hopeless(index));
        for index in planned.iter().flat_map(|plans| close(plans)).chain(others) {
            if measured.iter().any(|other| self.are_same(other.index, index)) {
                continue;
            }
            let one = self.measure(index)?;
            if each {
                let [(alone, build), (batched, _)] = tasks.map(|task| predicted(index, &task));
                let (alone, batched) = (alone * 1e6, batched * 1e6);
                println!(
                    "  {:24} alone {alone:8.3} {:8.3}  batched {batched:8.3} {:8.3}  build {build:6.3} {:6.3}",
                    name(&index),
                    one.alone,
                    one.batched,
                    one.build
                );
            }
            measured.push(one);
        }
        for (task, plans) in tasks.iter().zip(&planned) {
            self.report(task.batch, &plans[0], &measured)?;
        }
        Ok(())
    }

    /// What one would try without a planner.
    fn by_default(&self) -> Vec<Choice> {
        let (bits, radius) = (self.data.rows.bits(), self.radius);
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
        let stored = if bits <= 64 { Stored::Whole } else { Stored::Numbers };
        let key_width = Some(key_width(self.data.rows.len()));
        let build = Build { key_width, stored: Some(stored) };
        methods.into_iter().filter(few).map(|method| Choice::Tables(method, build)).collect()
    }

    /// Whether two choices are two names for the same tables and keys.
    fn are_same(&self, a: Choice, b: Choice) -> bool {
        let tables = |choice| -> Option<(Vec<KeyLayout>, u64, Option<Stored>)> {
            let Choice::Tables(method, build) = choice else { return None };
            let of = method.compose(self.data.rows.bits(), build.key_width?).ok()?;
            // A table for which there are no keys to look up makes no difference.
            Some((of.layouts().to_vec(), of.probes(self.radius), build.stored))
        };
        a == b || tables(a).is_some_and(|a| Some(a) == tables(b))
    }

    fn report(&self, batch: usize, choice: &Plan, measured: &[Measured]) -> Result<()> {
        let is_choice = |m: &&Measured| self.are_same(m.index, choice.index);
        let chosen = measured.iter().find(is_choice).expect("it was measured").time(batch);
        let is_close = |m: &&Measured| !is_choice(m) && m.time(batch) < 2.0 * chosen;
        let mut close: Vec<&Measured> = measured.iter().filter(is_close).collect();
        close.sort_by(|a, b| a.time(batch).total_cmp(&b.time(batch)));
        let rivals = close.iter().take(RIVALS).map(|m| m.index);
        let in_turn = self.in_turn(batch, choice.index, rivals.collect())?;
        let best = in_turn.iter().max_by(|a, b| a.ratio.total_cmp(&b.ratio));
        let time = in_turn.first().map_or(chosen, |turns| turns.choice);
        let (best_index, best_time, ratio) = match best.filter(|best| best.ratio > 1.0) {
            Some(best) => (best.index, best.rival, best.ratio),
            None => (choice.index, time, 1.0),
        };
        println!(
            "| {} | {} | {} | {} | {batch} | {} | {:.3} | {time:.3} | {} | {best_time:.3} | {ratio:.2} |",
            self.data.rows.len(),
            self.data.rows.bits(),
            self.data.name,
            self.radius,
            name(&choice.index),
            choice.query_seconds * 1e6,
            name(&best_index),
        );
        Ok(())
    }

    fn build(&self, choice: Choice) -> Result<Box<dyn Index + Sync + '_>> {
        let rows = &self.data.rows;
        Ok(match choice {
            Choice::Scan => Box::new(Scan::new(rows)?),
            Choice::Graph(shape) => Box::new(Graph::build(rows, shape, 1)?),
            Choice::Tables(method, build) => Box::new(Tables::build(rows, method, build)?),
        })
    }

    fn measure(&self, index: Choice) -> Result<Measured> {
        let start = Instant::now();
        let built = self.build(index)?;
        let build = start.elapsed().as_secs_f64();
        let time = |batch| self.pool.install(|| self.stretches(&*built, batch));
        Ok(Measured { index, build, alone: time(1)?, batched: time(BATCH)? })
    }

    /// Microseconds for a query: the median of three stretches of at least 10 ms.
    fn stretches(&self, index: &dyn Index, batch: usize) -> Result<f64> {
        let mut asking = Asking::new(self, batch);
        asking.ask(index, 1)?;
        let mut times = Vec::new();
        for _ in 0..3 {
            let (mut time, mut calls) = (0.0, 0);
            while time < 0.01 {
                time += asking.ask(index, BATCH / batch)?;
                calls += BATCH / batch;
            }
            times.push(time * 1e6 / (calls * batch) as f64);
        }
        Ok(median(times))
    }

    /// The choice and its rivals are asked the same queries, one after the other.
    fn in_turn(&self, batch: usize, choice: Choice, rivals: Vec<Choice>) -> Result<Vec<InTurn>> {
        if rivals.is_empty() {
            return Ok(Vec::new());
        }
        let chosen = self.build(choice)?;
        let built = rivals.iter().map(|&rival| self.build(rival)).collect::<Result<Vec<_>>>()?;
        let mut times = vec![Vec::new(); rivals.len() + 1];
        self.pool.install(|| -> Result<()> {
            let once = self.stretches(&*chosen, batch)? * BATCH as f64;
            let calls = BATCH / batch * (20_000.0 / once).ceil() as usize;
            let mut asking = Asking::new(self, batch);
            for turn in 0..=TURNS {
                let start = asking.next;
                for (index, times) in std::iter::once(&chosen).chain(&built).zip(&mut times) {
                    asking.next = start;
                    let time = asking.ask(&**index, calls)? * 1e6 / (calls * batch) as f64;
                    // The first time makes ready.
                    times.extend((turn > 0).then_some(time));
                }
            }
            Ok(())
        })?;
        let (chosen, built) = times.split_first().expect("the choice is the first");
        let ratio = |rival: &[f64]| {
            median(chosen.iter().zip(rival).map(|(a, b)| a / b).collect::<Vec<_>>())
        };
        let compared = rivals.iter().zip(built).map(|(&index, rival)| InTurn {
            index,
            choice: median(chosen.clone()),
            rival: median(rival.clone()),
            ratio: ratio(rival),
        });
        Ok(compared.collect())
    }
}

/// The seconds that a query is predicted to take, and those to build the index.
fn predicted(costs: &Costs, sample: &Sample, task: &Task, index: Choice) -> (f64, f64) {
    match index {
        Choice::Tables(method, build) => price(costs, sample, task, method, build)
            .map_or((f64::INFINITY, 0.0), |plan| (plan.query_seconds, plan.build_seconds)),
        _ => {
            let rows = sample.total() as f64;
            (costs.scan(sample.bits(), rows, task.radius, task.batch) / 1e9, 0.0)
        }
    }
}

/// An index beside the choice: microseconds for a query, and how many times as long the choice takes.
struct InTurn {
    index: Choice,
    choice: f64,
    rival: f64,
    ratio: f64,
}

/// Goes through the queries.
struct Asking<'a> {
    queries: &'a [Signatures],
    radius: u32,
    next: usize,
    found: Answers,
}

impl<'a> Asking<'a> {
    fn new(of: &Compared<'a>, batch: usize) -> Self {
        let queries = if batch == 1 { &of.data.alone } else { &of.data.batched };
        Asking { queries, radius: of.radius, next: 0, found: Answers::new() }
    }

    /// The seconds that the next so many calls take.
    fn ask(&mut self, index: &dyn Index, calls: usize) -> Result<f64> {
        let start = Instant::now();
        for _ in 0..calls {
            index.within((&self.queries[self.next]).into(), self.radius, &mut self.found)?;
            self.next = (self.next + 1) % self.queries.len();
        }
        Ok(start.elapsed().as_secs_f64())
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
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
        let mut query = |i: usize| match i % 4 {
            0 => random.near(rows.row(random.0 as usize % rows.len()), 4),
            _ => random.row(&biases),
        };
        let of = |words: &[u64]| Signatures::from_words(bits, words.to_vec()).expect("whole rows");
        let queries = of(&(0..QUERIES).flat_map(&mut query).collect::<Vec<_>>());
        let alone = queries.rows().map(of).collect();
        let batched = queries.words().chunks(BATCH * queries.stride()).map(of).collect();
        let name = if skewed { "skewed" } else { "uniform" };
        Data { rows, alone, batched, name }
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
