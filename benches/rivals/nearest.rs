//! The k nearest by our tables and by mih-rs. Distances are compared: of rows as far as the k-th, any will do.

use std::process::ExitCode;

use lookalike::{
    Signatures,
    index::{Answers, Build, Index, Scan, Tables},
};

use crate::{cpu_seconds, data::Data, median, options::Options};

/// An index with a way to ask it: gives the rows of each query.
struct Contender<'a> {
    name: String,
    asked: String,
    ours: bool,
    build: f64,
    run: Box<dyn FnMut(&mut Vec<u32>) + 'a>,
    /// Seconds for all queries, of each repeat.
    seconds: Vec<f64>,
    same: bool,
}

impl Contender<'_> {
    fn micros(&self, queries: usize) -> f64 {
        median(&self.seconds) * 1e6 / queries as f64
    }
}

/// Measures by the CPU time of this one thread.
pub(crate) fn nearest(data: &Data, options: &Options) -> lookalike::Result<ExitCode> {
    let mut contenders = contenders(data, options)?;
    let truth = truth(data, options.k)?;
    let mut found = Vec::new();
    for _ in 0..options.repeats {
        for contender in &mut contenders {
            found.clear();
            let start = cpu_seconds();
            (contender.run)(&mut found);
            contender.seconds.push(cpu_seconds() - start);
            contender.same = distances(data, &found, options.k) == truth;
        }
    }
    print(&contenders, data, options);
    let same = contenders.iter().all(|contender| contender.same);
    Ok(if same { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn contenders<'a>(data: &'a Data, options: &'a Options) -> lookalike::Result<Vec<Contender<'a>>> {
    let mut all = Vec::new();
    let sizes = [1, options.batch];
    for method in options.methods.iter().flatten() {
        let start = cpu_seconds();
        let index: &Tables<'_> =
            Box::leak(Box::new(Tables::build(&data.rows, *method, Build::default())?));
        let build = cpu_seconds() - start;
        all.extend(sizes.map(|size| ours(data, index, method.to_string(), size, options.k, build)));
    }
    let scan: &Scan<'_> = Box::leak(Box::new(Scan::new(&data.rows)?));
    all.extend(sizes.map(|size| ours(data, scan, "scan".to_owned(), size, options.k, 0.0)));
    all.extend(options.mih_blocks.iter().map(|&blocks| mih(data, blocks, options.k)));
    Ok(all)
}

/// Ours, asked with so many queries a call.
fn ours<'a>(
    data: &'a Data,
    index: &'a dyn Index,
    name: String,
    size: usize,
    k: usize,
    build: f64,
) -> Contender<'a> {
    let mut answers = Answers::new();
    let run = move |found: &mut Vec<u32>| {
        for queries in data.queries.words().chunks(size) {
            let queries = Signatures::from_words(64, queries.to_vec()).expect("64 bits suit");
            index.nearest((&queries).into(), k, &mut answers).expect("64 bits suit");
            answers.iter().for_each(|near| found.extend(near.iter().map(|near| near.row)));
        }
    };
    let asked = if size == 1 { "one by one".to_owned() } else { format!("{size} a call") };
    contender(name, asked, true, build, run)
}

fn mih(data: &Data, blocks: Option<usize>, k: usize) -> Contender<'_> {
    let start = cpu_seconds();
    let rows = data.rows.words().to_vec();
    let index = match blocks {
        None => mih_rs::Index::new(rows),
        Some(blocks) => mih_rs::Index::with_blocks(rows, blocks),
    };
    let index = index.unwrap_or_else(|error| panic!("{error}"));
    let build = cpu_seconds() - start;
    let own = if blocks.is_none() { ", its own choice" } else { "" };
    let name = format!("mih-rs, {} blocks{own}", index.num_blocks());
    let run = move |found: &mut Vec<u32>| {
        let mut searcher = index.topk_searcher();
        for &query in data.queries.words() {
            found.extend(searcher.run(query, k));
        }
    };
    contender(name, "one by one".to_owned(), false, build, run)
}

fn contender<'a>(
    name: String,
    asked: String,
    ours: bool,
    build: f64,
    run: impl FnMut(&mut Vec<u32>) + 'a,
) -> Contender<'a> {
    Contender { name, asked, ours, build, run: Box::new(run), seconds: Vec::new(), same: false }
}

/// The distances of the true nearest, query after query.
fn truth(data: &Data, k: usize) -> lookalike::Result<Vec<u32>> {
    let mut answers = Answers::new();
    Scan::new(&data.rows)?.nearest((&data.queries).into(), k, &mut answers)?;
    Ok(answers.iter().flatten().map(|near| near.distance).collect())
}

fn distances(data: &Data, found: &[u32], k: usize) -> Vec<u32> {
    let (rows, queries) = (data.rows.words(), data.queries.words());
    let each = found.iter().enumerate();
    each.map(|(at, &row)| (rows[row as usize] ^ queries[at / k]).count_ones()).collect()
}

fn print(contenders: &[Contender<'_>], data: &Data, options: &Options) {
    let (rows, queries) = (data.rows.len(), data.queries.len());
    let kind = match options.uniform {
        true => format!("random signatures, {}% of the queries near a row", options.planted),
        false => "workload of the thesis".to_owned(),
    };
    println!("{} nearest of {rows} rows, {queries} queries, {kind}, one thread", options.k);
    println!("medians of {}, in turn, CPU time; the ratio is to each mih-rs\n", options.repeats);
    let rivals: Vec<_> = contenders.iter().filter(|contender| !contender.ours).collect();
    print!("| index | asked | build s | microseconds a query |");
    rivals.iter().for_each(|rival| print!(" times {} |", rival.name));
    println!("\n|---|---|---|---|{}", "---|".repeat(rivals.len()));
    for contender in contenders {
        let Contender { name, asked, build, same, .. } = contender;
        let micros = contender.micros(queries);
        print!("| {name} | {asked} | {build:.1} | {micros:.2} |");
        for rival in &rivals {
            match same & rival.same {
                true => print!(" {:.1} |", rival.micros(queries) / micros),
                false => print!(" NOT THE SAME |"),
            }
        }
        println!();
    }
}
