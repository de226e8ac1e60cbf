//! Our side of the comparison with faiss: `scan.py` starts this program and asks it, so that both are measured in turn.
//!
//! ```text
//! faiss ROWS.npy QUERIES.npy        then, a line each on standard input:
//!     within RADIUS FIRST COUNT     queries FIRST .. FIRST + COUNT as one batch
//!     nearest K FIRST COUNT
//! ```
//!
//! Each line is answered by one of JSON: the seconds, and for each query the distances and rows.
#![allow(clippy::print_stdout)]

use std::{error::Error, fs, io::BufRead, time::Instant};

use lookalike::{
    Signatures, hamming,
    index::{Answers, Index, Scan},
};

fn main() -> Result<(), Box<dyn Error>> {
    let paths: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let [rows, queries] = paths.as_slice() else {
        println!("run by benches/faiss/scan.py");
        return Ok(());
    };
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global()?;
    let (rows, queries) = (read_npy(rows)?.in_huge_pages(), read_npy(queries)?);
    println!("{}", serde_json::json!({ "kernel": hamming::kernel()?.name() }));
    for line in std::io::stdin().lock().lines() {
        println!("{}", answer(&Scan::new(&rows)?, &queries, &line?)?);
    }
    Ok(())
}

fn answer(scan: &Scan<'_>, queries: &Signatures, line: &str) -> Result<String, Box<dyn Error>> {
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
        "within" => scan.within(&queries, number.parse()?, &mut found)?,
        "nearest" => scan.nearest(&queries, number.parse()?, &mut found)?,
        _ => return Err(format!("`{question}`: not a question").into()),
    };
    let seconds = start.elapsed().as_secs_f64();
    let pairs = |near: &lookalike::index::Neighbor| (near.distance, near.row);
    let answers: Vec<Vec<_>> = found.iter().map(|all| all.iter().map(pairs).collect()).collect();
    Ok(serde_json::json!({ "seconds": seconds, "answers": answers }).to_string())
}

/// Rows of bytes from a file that numpy saved: magic, version, the length of a header in two bytes, the header, bytes.
fn read_npy(path: &str) -> Result<Signatures, Box<dyn Error>> {
    let file = fs::read(path)?;
    let header_end = 10 + usize::from(u16::from_le_bytes([file[8], file[9]]));
    let header = std::str::from_utf8(&file[10..header_end])?;
    if !file.starts_with(b"\x93NUMPY\x01") || !header.contains("'|u1'") {
        return Err(format!("{path}: not a version 1 file of bytes").into());
    }
    let shape = header.split("'shape': (").nth(1).and_then(|rest| rest.split(')').next());
    let row_bytes = shape.and_then(|shape| shape.split(", ").nth(1)).ok_or("no shape")?;
    let bits = row_bytes.parse::<u32>()? * 8;
    Ok(Signatures::from_bytes(bits, &file[header_end..])?)
}
