//! Our self-join beside loops that ask an index for the neighbors of every row.

use std::process::ExitCode;

use lookalike::{
    Signatures,
    index::{Answers, Build, Index, Method, Tables},
    join::{JoinSettings, self_join},
};

use crate::{cpu_seconds, data::Data, median, options::Options};

/// Pairs of which the first row is among those that were asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sums {
    pairs: u64,
    checksum: u64,
}

impl Sums {
    fn add(&mut self, a: u32, b: u32) {
        let pair = u64::from(a) << 32 | u64::from(b);
        let hash = (pair ^ pair >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        self.pairs += 1;
        self.checksum = self.checksum.wrapping_add(hash ^ hash >> 32);
    }
}

/// One way to find the pairs: what it took for how many rows.
struct Way {
    name: String,
    asked: usize,
    build: f64,
    seconds: Vec<f64>,
    bytes: f64,
    sums: Sums,
}

impl Way {
    /// For all rows, with the build.
    fn all(&self, rows: usize) -> f64 {
        self.build + median(&self.seconds) * rows as f64 / self.asked as f64
    }
}

/// Measures by the CPU time of this one thread. The loop over mih-rs asks for the first `--queries` rows only, and its time is
/// scaled.
pub(crate) fn join(data: &Data, options: &Options) -> lookalike::Result<ExitCode> {
    let (rows, asked) = (&data.rows, options.queries.min(options.rows));
    let mut ways = vec![ours(rows, asked, options)?, probing(rows, asked, options)?];
    ways.extend(options.mih_blocks.iter().map(|&blocks| mih(rows, asked, blocks, options)));
    println!("self-join of {} rows within {}, one thread, CPU time", rows.len(), options.radius);
    println!("medians of {}; pairs are those of the first {asked} rows\n", options.repeats);
    println!("| method | build s | s for all rows | bytes a row | ours / this | pairs | same |");
    println!("|---|---|---|---|---|---|---|");
    for way in &ways {
        println!(
            "| {} | {:.2} | {:.2} | {:.1} | {:.1} | {} | {} |",
            way.name,
            way.build,
            way.all(rows.len()),
            way.bytes,
            way.all(rows.len()) / ways[0].all(rows.len()),
            way.sums.pairs,
            way.sums == ways[0].sums
        );
    }
    let same = ways.iter().all(|way| way.sums == ways[0].sums);
    Ok(if same { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn ours(rows: &Signatures, asked: usize, options: &Options) -> lookalike::Result<Way> {
    let (mut seconds, mut sums, mut bytes) = (Vec::new(), Sums::default(), 0);
    for _ in 0..options.repeats {
        sums = Sums::default();
        let start = cpu_seconds();
        let joined = self_join(rows, &JoinSettings::new(options.radius), |pairs| {
            let of_asked = pairs.iter().filter(|pair| (pair.a as usize) < asked);
            of_asked.for_each(|pair| sums.add(pair.a, pair.b));
            Ok(())
        })?;
        seconds.push(cpu_seconds() - start);
        bytes = joined.bytes;
    }
    let bytes = 8.0 + bytes as f64 / rows.len() as f64;
    Ok(Way { name: "join".to_owned(), asked: rows.len(), build: 0.0, seconds, bytes, sums })
}

/// Rows that are asked for in one call.
const CHUNK: usize = 1 << 16;

fn probing(rows: &Signatures, asked: usize, options: &Options) -> lookalike::Result<Way> {
    let method = Method::Multi { slices: 2, parts: 3 };
    let start = cpu_seconds();
    let tables = Tables::build(rows, method, Build::default())?;
    let build = cpu_seconds() - start;
    let (mut seconds, mut sums, mut answers) = (Vec::new(), Sums::default(), Answers::new());
    for _ in 0..options.repeats {
        sums = Sums::default();
        let start = cpu_seconds();
        for (number, words) in rows.words().chunks(CHUNK).enumerate() {
            let queries = Signatures::from_words(64, words.to_vec())?;
            tables.within((&queries).into(), options.radius, &mut answers)?;
            for (row, found) in
                (number * CHUNK..).zip(answers.iter()).take_while(|(row, _)| *row < asked)
            {
                let later = found.iter().filter(|near| near.row as usize > row);
                later.for_each(|near| sums.add(row as u32, near.row));
            }
        }
        seconds.push(cpu_seconds() - start);
    }
    let bytes = 8.0 + (tables.bytes() + tables.row_bytes()) as f64 / rows.len() as f64;
    let name = format!("{method}, batched probing");
    Ok(Way { name, asked: rows.len(), build, seconds, bytes, sums })
}

fn mih(rows: &Signatures, asked: usize, blocks: Option<usize>, options: &Options) -> Way {
    let start = cpu_seconds();
    let words = rows.words().to_vec();
    let index = match blocks {
        None => mih_rs::Index::new(words),
        Some(blocks) => mih_rs::Index::with_blocks(words, blocks),
    };
    let index = index.unwrap_or_else(|error| panic!("{error}"));
    let build = cpu_seconds() - start;
    let (mut seconds, mut sums) = (Vec::new(), Sums::default());
    for _ in 0..options.repeats {
        sums = Sums::default();
        let mut searcher = index.range_searcher();
        let start = cpu_seconds();
        for (row, &query) in (0_u32..).zip(&rows.words()[..asked]) {
            let found = searcher.run(query, options.radius as usize);
            found.iter().filter(|&&near| near > row).for_each(|&near| sums.add(row, near));
        }
        seconds.push(cpu_seconds() - start);
    }
    let name = format!("mih-rs, {} blocks, query loop", index.num_blocks());
    Way { name, asked, build, seconds, bytes: f64::NAN, sums }
}
