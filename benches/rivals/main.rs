//! Our tables beside other libraries: same rows, same queries, one thread, in turn. See README.md beside this file.
//!
//! ```text
//! rivals threshold [--rows 1000000] [--queries 200000] [--radius 3] [--seed 1] [--uniform] [--repeats 3]
//!     [--methods auto,multi-2x3,multi-2x4] [--mih-blocks auto,4] [--gaoya-blocks 6] [--gaoya-rows 1000000]
//! rivals join [--rows 1000000] [--queries 200000] [--radius 3] [--seed 1] [--repeats 3] [--mih-blocks auto,4]
//! rivals nearest [--rows 1000000] [--queries 2000] [--k 10] [--batch 64] [--seed 1] [--uniform] [--planted 27] [--repeats 3]
//!     [--methods multi-3,multi-4] [--mih-blocks auto,4]
//! rivals data [--rows 1000000] [--queries 200000] [--seed 1] [--uniform] [--to .]
//! ```

mod contenders;
mod data;
mod join;
mod nearest;
mod options;

use std::{error::Error, path::Path, process::ExitCode, time::Instant};

use contenders::{Asked, Contender, Finds, Found, Question};
use data::Data;
use lookalike::{Signatures, hamming, sigfile::npy};
use options::Options;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let args: Vec<String> = std::env::args().collect();
    let options = Options::from_args(&args);
    match args.get(1).map(String::as_str) {
        Some("threshold") => {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
            let data = Data::new(&options);
            Ok(pool.install(|| threshold(&data, &options))?)
        }
        Some("join") => {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
            let data = Data::new(&options);
            Ok(pool.install(|| join::join(&data, &options))?)
        }
        Some("nearest") => {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
            let data = Data::new(&options);
            Ok(pool.install(|| nearest::nearest(&data, &options))?)
        }
        Some("data") => write(&Data::new(&options), options.to.as_ref()),
        _ => Err("rivals threshold, nearest, join or data: see benches/rivals/README.md".into()),
    }
}

/// Writes rows and queries as NumPy arrays, for those who are measured elsewhere.
fn write(data: &Data, folder: &Path) -> Result<ExitCode, Box<dyn Error>> {
    for (name, signatures) in [("rows.npy", &data.rows), ("queries.npy", &data.queries)] {
        npy::write(&folder.join(name), signatures.bits(), signatures.rows())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn threshold(data: &Data, options: &Options) -> lookalike::Result<ExitCode> {
    let Options { rows, queries, seed, radius, repeats, .. } = *options;
    let kind = if options.uniform { "random signatures" } else { "workload of the thesis" };
    println!("cpu {}, one thread", cpu());
    let popcnt = if cfg!(target_feature = "popcnt") { "with" } else { "without" };
    println!("our kernel {}, the others compiled {popcnt} popcnt", hamming::kernel()?.name());
    println!("{rows} rows, {queries} queries, {kind}, seed {seed}, within {radius}");
    println!("medians of {repeats}, in turn, by CPU time\n");

    let mut contenders = contenders(data, options);
    let outcomes = measure(&mut contenders, data, repeats);
    let measured: Vec<_> = contenders.iter().zip(&outcomes).collect();
    println!("{HEADER}");
    measured.iter().for_each(|(contender, outcome)| print(contender, outcome));
    for question in [Question::All, Question::First] {
        print_ratios(&measured, question);
    }
    let wrong = measured.iter().filter(|(_, outcome)| !outcome.same).count();
    println!("\n{wrong} of {} differ from the first in what they find", measured.len());
    Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// All of them, ours first. Those whose memory has to be estimated are built before others have left holes in it.
fn contenders<'a>(data: &'a Data, options: &Options) -> Vec<Contender<'a>> {
    let radius = options.radius;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for &blocks in &options.mih_blocks {
        theirs.extend(contenders::mih(data, blocks, radius));
    }
    if options.rows > options.gaoya_rows {
        println!("without gaoya: more than {} rows\n", options.gaoya_rows);
    } else {
        for &blocks in &options.gaoya_blocks {
            theirs.extend(contenders::gaoya(data, blocks, radius));
        }
    }
    theirs.extend(contenders::bphs(data, radius));
    for &method in &options.methods {
        ours.extend(contenders::ours(data, method, radius));
    }
    ours.into_iter().chain(theirs).collect()
}

struct Outcome {
    /// Queries a second of CPU time, of each repeat.
    rates: Vec<f64>,
    /// CPU time as a share of the time on the clock.
    shares: Vec<f64>,
    matches: usize,
    /// Whether the answers are those of the first contender.
    same: bool,
}

impl Outcome {
    fn rate(&self) -> f64 {
        median(&self.rates)
    }
}

fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// What this thread has had: on a machine that others use, the clock measures them, too.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn measure(contenders: &mut [Contender<'_>], data: &Data, repeats: usize) -> Vec<Outcome> {
    let mut truth = Found::default();
    (contenders[0].run)(&mut truth);
    let order = alternate(contenders);
    let new = |_: &_| Outcome { rates: vec![], shares: vec![], matches: 0, same: true };
    let mut outcomes: Vec<Outcome> = contenders.iter().map(new).collect();
    let mut found = Found::default();
    for _ in 0..repeats {
        for &i in &order {
            let (contender, outcome) = (&mut contenders[i], &mut outcomes[i]);
            found.clear();
            let (start, cpu) = (Instant::now(), cpu_seconds());
            (contender.run)(&mut found);
            let seconds = cpu_seconds() - cpu;
            outcome.rates.push(data.queries.len() as f64 / seconds);
            outcome.shares.push(seconds / start.elapsed().as_secs_f64());
            outcome.matches = found.len();
            outcome.same &= same(contender, &found, &truth, &data.rows);
        }
    }
    outcomes
}

/// One of ours, one of theirs, and so on.
fn alternate(contenders: &[Contender<'_>]) -> Vec<usize> {
    let (ours, theirs): (Vec<_>, Vec<_>) = (0..contenders.len()).partition(|&i| contenders[i].ours);
    let turns = ours.len().max(theirs.len());
    (0..turns).flat_map(|turn| [ours.get(turn), theirs.get(turn)]).flatten().copied().collect()
}

/// Whether each query has the same rows, or signatures where only these are told; or for the first, one of them.
fn same(contender: &Contender<'_>, found: &Found, truth: &Found, rows: &Signatures) -> bool {
    let sorted = |items: &[u64], finds| {
        let item = |&item: &u64| match finds {
            Finds::Rows => item,
            Finds::Signatures => rows.words()[item as usize],
        };
        let mut items: Vec<u64> = items.iter().map(item).collect();
        items.sort_unstable();
        items
    };
    let agree = |(found, truth): (&[u64], &[u64])| {
        let truth = sorted(truth, contender.finds);
        match contender.question {
            Question::All => sorted(found, Finds::Rows) == truth,
            Question::First => {
                found.len() == truth.len().min(1) && found.iter().all(|row| truth.contains(row))
            }
        }
    };
    found.iter().len() == truth.iter().len() && found.iter().zip(truth.iter()).all(agree)
}

const HEADER: &str = "\
| index | question | asked | bytes a row | build s | queries/s | CPU / clock | matches |
|---|---|---|---|---|---|---|---|";

fn print(contender: &Contender<'_>, outcome: &Outcome) {
    let Contender { name, question, asked, index, .. } = contender;
    let about = if index.estimated { "about " } else { "" };
    let differs = if outcome.same { "" } else { ", NOT THE SAME" };
    println!(
        "| {name} | {} | {} | {about}{:.0} | {:.1} | {:.0} | {:.2} | {}{differs} |",
        question.name(),
        asked.name(),
        index.bytes,
        index.seconds,
        outcome.rate(),
        median(&outcome.shares),
        outcome.matches
    );
}

/// How many times as fast each of ours is as each rival; nothing where they do not find the same.
fn print_ratios(measured: &[(&Contender<'_>, &Outcome)], question: Question) {
    let asked = measured.iter().filter(|(contender, _)| contender.question == question);
    let (ours, theirs): (Vec<_>, Vec<_>) = asked.partition(|(contender, _)| contender.ours);
    print!("\n| {}: ours / theirs |", question.name());
    ours.iter().for_each(|(ours, _)| print!(" {}, {} |", ours.name, ours.asked.name()));
    println!("\n|---|{}", "---|".repeat(ours.len()));
    for (rival, theirs) in theirs {
        print!("| {} |", rival.name);
        for (_, ours) in &ours {
            match ours.same && theirs.same {
                true => print!(" {:.1} |", ours.rate() / theirs.rate()),
                false => print!(" - |"),
            }
        }
        println!();
    }
}

impl Question {
    fn name(self) -> &'static str {
        match self {
            Question::All => "all",
            Question::First => "first",
        }
    }
}

impl Asked {
    fn name(self) -> &'static str {
        match self {
            Asked::Batch => "as a batch",
            Asked::Single => "one by one",
        }
    }
}

fn cpu() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    name.unwrap_or("unknown").to_owned()
}
