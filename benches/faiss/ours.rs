//! Our side of the comparison with faiss: `scan.py` and `threshold.py` start this program and ask it, so that both are
//! measured in turn.
//!
//! ```text
//! faiss ROWS.npy QUERIES.npy [METHOD[:STORED]]    by a scan, or by the tables of a method; then, a line each on standard input:
//!     within RADIUS FIRST COUNT     queries FIRST .. FIRST + COUNT as one batch
//!     nearest K FIRST COUNT
//! ```
//!
//! Each line is answered by one of JSON: the seconds, and for each query the distances and rows.
#![allow(clippy::print_stdout)]

use std::{error::Error, io::BufRead, time::Instant};

use lookalike::{
    Signatures, hamming,
    index::{Answers, Build, Index, Scan, Tables},
    sigfile::npy,
    table::Stored,
};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let [rows, queries, method @ ..] = args.as_slice() else {
        println!("run by benches/faiss/scan.py and threshold.py");
        return Ok(());
    };
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global()?;
    let (rows, queries) = (npy::read(rows.as_ref())?, npy::read(queries.as_ref())?);
    // As a collection has them.
    let rows = rows.in_huge_pages();
    let start = Instant::now();
    let index: Box<dyn Index> = match method.first() {
        Some(method) => {
            // As in `multi-2x3:lines`.
            let (method, stored) = method.split_once(':').unwrap_or((method, ""));
            let all = [Stored::Whole, Stored::Split, Stored::Lines, Stored::Numbers];
            let stored = all.into_iter().find(|one| one.name() == stored);
            let build = Build { key_width: None, stored };
            Box::new(Tables::build(&rows, method.parse()?, build)?)
        }
        None => Box::new(Scan::new(&rows)?),
    };
    let build = start.elapsed().as_secs_f64();
    println!("{}", serde_json::json!({ "kernel": hamming::kernel()?.name(), "build": build }));
    for line in std::io::stdin().lock().lines() {
        println!("{}", answer(&*index, &queries, &line?)?);
    }
    Ok(())
}

fn answer(index: &dyn Index, queries: &Signatures, line: &str) -> Result<String, Box<dyn Error>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [question, number, first, count] = words[..] else {
        return Err(format!("`{line}`: not a question").into());
    };
    let (first, count): (usize, usize) = (first.parse()?, count.parse()?);
    let stride = queries.stride();
    let words = queries.words()[first * stride..(first + count) * stride].to_vec();
    let queries = Signatures::from_words(queries.bits(), words)?;
    let mut found = Answers::new();
    let start = Instant::now();
    match question {
        "within" => index.within((&queries).into(), number.parse()?, &mut found)?,
        "nearest" => index.nearest((&queries).into(), number.parse()?, &mut found)?,
        _ => return Err(format!("`{question}`: not a question").into()),
    };
    let seconds = start.elapsed().as_secs_f64();
    let pairs = |near: &lookalike::index::Neighbor| (near.distance, near.row);
    let answers: Vec<Vec<_>> = found.iter().map(|all| all.iter().map(pairs).collect()).collect();
    Ok(serde_json::json!({ "seconds": seconds, "answers": answers }).to_string())
}
