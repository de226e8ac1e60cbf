//! The native side of the Python package's rates: `rates.py` starts this program and asks it, so that both are measured in
//! turn, on the same data and on all cores.
//!
//! ```text
//! python TEXTS.json ROWS.npy QUERIES.npy METHOD    then, a line each on standard input:
//!     sign              all texts
//!     within RADIUS     all queries as one batch
//! ```
//!
//! Each line is answered by one of JSON: the seconds, and how many were found.
#![allow(missing_docs, clippy::print_stdout)]

use std::{error::Error, fs, hint::black_box, io::BufRead, time::Instant};

use lookalike::{
    Recipe, Signatures, Signer,
    index::{Answers, Build, Index, Scan, Tables},
    recipe::Scratch,
    sigfile::npy,
};
use rayon::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let [texts, rows, queries, method] = args.as_slice() else {
        println!("run by benches/python/rates.py");
        return Ok(());
    };
    let texts: Vec<String> = serde_json::from_slice(&fs::read(texts)?)?;
    let (rows, queries) = (npy::read(rows.as_ref())?, npy::read(queries.as_ref())?);
    let index: Box<dyn Index> = match method.as_str() {
        "scan" => Box::new(Scan::new(&rows)?),
        method => Box::new(Tables::build(&rows, method.parse()?, Build::default())?),
    };
    println!("ready");
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let start = Instant::now();
        let found = match line.strip_prefix("within ") {
            Some(radius) => within(&*index, &queries, radius.parse()?)?,
            None => sign(&texts)?,
        };
        let seconds = start.elapsed().as_secs_f64();
        println!("{}", serde_json::json!({ "seconds": seconds, "found": found }));
    }
    Ok(())
}

fn within(index: &dyn Index, queries: &Signatures, radius: u32) -> Result<usize, Box<dyn Error>> {
    let mut found = Answers::new();
    index.within(queries.into(), radius, &mut found)?;
    Ok(found.iter().map(<[_]>::len).sum())
}

/// Signs every text, and keeps the signatures, as one would.
fn sign(texts: &[String]) -> Result<usize, Box<dyn Error>> {
    let signer = Signer::new(Recipe::default(), None)?;
    let sign = |scratch: &mut Scratch, texts: &[String]| -> Vec<_> {
        texts.iter().map(|text| signer.sign_text(text, scratch)).collect()
    };
    let signed: Vec<Vec<_>> = texts.par_chunks(16).map_init(Scratch::default, sign).collect();
    Ok(black_box(signed).iter().flatten().flatten().count())
}
