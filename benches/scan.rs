//! How near does the scan come to reading memory, and what does a batch gain? One thread, data far larger than the
//! cache: random rows, and a few planted near each query so that answers are not empty.
//!
//! ```text
//! cargo bench --bench scan -- [--mib 1024] [--bits 64,128,256,512,1024] [--kernels avx512,avx2] [--repeats 5]
//!     [--queries 256] [--huge]
//! ```
//!
//! Rates are bytes of rows compared in a second, for one query alone and for a batch. The repeats of all
//! measurements of a width are interleaved, and the medians are shown. `--huge` puts the rows in huge pages.
#![allow(clippy::print_stdout)]

use std::{collections::BTreeMap, hint::black_box, time::Instant};

use lookalike::{
    Signatures,
    hamming::Kernel,
    index::{Answers, Index, Scan},
};

const SEED: u64 = 20_261_115;
const K: usize = 10;
/// Rows planted within the small radius of each query.
const PLANTED: usize = 4;

fn main() {
    let options = Options::from_args();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a pool of one");
    println!("cpu {}, one thread, seed {SEED}", cpu());
    let pages = if options.huge { "huge" } else { "ordinary" };
    let Options { mib, queries, repeats, .. } = options;
    println!("{mib} MiB of rows in {pages} pages, batches of {queries}, medians of {repeats}");
    println!("rates in GB/s; share of the read bandwidth; batch as a multiple of one query\n");
    println!("{HEADER}");
    for &bits in &options.bits {
        pool.install(|| measure(bits, &options));
    }
}

const HEADER: &str = "\
| bits | kernel | question | one query | share | batch | batch / one | matches, one / batch |
|---|---|---|---|---|---|---|---|";

struct Options {
    mib: usize,
    bits: Vec<u32>,
    kernels: Vec<Kernel>,
    repeats: usize,
    huge: bool,
    queries: usize,
}

impl Options {
    fn from_args() -> Self {
        let args: Vec<String> = std::env::args().collect();
        let value = |name: &str| {
            let at = args.iter().position(|arg| arg == name)?;
            Some(args.get(at + 1).unwrap_or_else(|| panic!("{name} needs a value")).as_str())
        };
        let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("`{text}`: no number"));
        let names = value("--kernels").unwrap_or("avx512,avx2,neon");
        let wanted = |kernel: &Kernel| names.split(',').any(|name| name == kernel.name());
        Options {
            mib: value("--mib").map_or(1024, number),
            bits: value("--bits")
                .unwrap_or("64,128,256,512,1024")
                .split(',')
                .map(|bits| number(bits) as u32)
                .collect(),
            kernels: Kernel::available().filter(wanted).collect(),
            repeats: value("--repeats").map_or(5, number),
            queries: value("--queries").map_or(256, number),
            huge: args.iter().any(|arg| arg == "--huge"),
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Question {
    Within(u32),
    Nearest,
}

impl Question {
    fn ask(self, scan: &Scan<'_>, queries: &Signatures, found: &mut Answers) {
        match self {
            Question::Within(radius) => scan.within(queries.into(), radius, found),
            Question::Nearest => scan.nearest(queries.into(), K, found),
        }
        .expect("one width");
    }

    fn name(self) -> String {
        match self {
            Question::Within(radius) => format!("within {radius}"),
            Question::Nearest => format!("{K} nearest"),
        }
    }
}

/// The seconds of each repeat and the matches.
#[derive(Default)]
struct Timing {
    seconds: Vec<f64>,
    matches: usize,
}

impl Timing {
    fn run(&mut self, job: impl FnOnce() -> usize) {
        let start = Instant::now();
        self.matches = job();
        self.seconds.push(start.elapsed().as_secs_f64());
    }

    fn median(&self) -> f64 {
        let mut sorted = self.seconds.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    }
}

fn measure(bits: u32, options: &Options) {
    let (rows, queries) = data(bits, options);
    let one: Signatures = queries.get(0).into();
    let questions =
        [Question::Within(bits * 3 / 64), Question::Within(bits * 10 / 64), Question::Nearest];
    let mut bandwidth = Timing::default();
    let mut timings = BTreeMap::<_, [Timing; 2]>::new();
    for _ in 0..options.repeats {
        bandwidth.run(|| sum(rows.words()) as usize);
        for (k, kernel) in options.kernels.iter().enumerate() {
            let scan = Scan::with_kernel(&rows, *kernel).expect("fewer than 2^32 rows");
            for (q, question) in questions.iter().enumerate() {
                for (queries, timing) in
                    [&one, &queries].into_iter().zip(timings.entry((k, q)).or_default())
                {
                    timing.run(|| matches(*question, &scan, queries));
                }
            }
        }
    }
    let bytes = size_of_val(rows.words()) as f64 / 1e9;
    let read = bytes / bandwidth.median();
    println!("| {bits} | | read the rows | {read:.1} | 1 | | | |");
    for ((k, q), [alone, batch]) in timings {
        let (kernel, question) = (options.kernels[k].name(), questions[q].name());
        let one = bytes / alone.median();
        let many = bytes * options.queries as f64 / batch.median();
        println!(
            "| {bits} | {kernel} | {question} | {one:.1} | {:.2} | {many:.1} | {:.1} | {} / {} |",
            one / read,
            many / one,
            alone.matches,
            batch.matches
        );
    }
}

fn matches(question: Question, scan: &Scan<'_>, queries: &Signatures) -> usize {
    let mut found = Answers::new();
    question.ask(scan, queries, &mut found);
    found.iter().map(<[_]>::len).sum()
}

/// Reads all words: their sum, in lanes that the compiler keeps in vectors.
fn sum(words: &[u64]) -> u64 {
    let mut lanes = [0u64; 32];
    let (chunks, rest) = words.as_chunks::<32>();
    for chunk in chunks {
        for (lane, word) in lanes.iter_mut().zip(chunk) {
            *lane = lane.wrapping_add(*word);
        }
    }
    black_box(lanes.iter().chain(rest).fold(0, |sum: u64, lane| sum.wrapping_add(*lane)))
}

/// Random rows and queries; near each query some rows, at distances up to the small radius.
fn data(bits: u32, options: &Options) -> (Signatures, Signatures) {
    let stride = bits.div_ceil(64) as usize;
    let mut random = Random(SEED ^ u64::from(bits));
    let rows = (options.mib << 20) / 8 / stride;
    let mut words: Vec<u64> = (0..rows * stride).map(|_| random.next()).collect();
    let queries: Vec<u64> = (0..options.queries * stride).map(|_| random.next()).collect();
    for query in queries.chunks(stride) {
        for _ in 0..PLANTED {
            let row = random.next() as usize % rows;
            let row = &mut words[row * stride..][..stride];
            row.copy_from_slice(query);
            for _ in 0..random.next() % u64::from(bits * 3 / 64 + 1) {
                let bit = random.next() as usize % bits as usize;
                row[bit / 64] ^= 1 << (bit % 64);
            }
        }
    }
    let pack = |words| Signatures::from_words(bits, words).expect("a width");
    let rows = pack(words);
    (if options.huge { rows.in_huge_pages() } else { rows }, pack(queries))
}

/// splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

fn cpu() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    name.unwrap_or("unknown").to_owned()
}
