//! The graph of neighbors: how many of the nearest it finds, and how fast, by how hard it looks; single queries and batches.
//!
//! ```text
//! cargo bench --bench nearest -- --rows ROWS.sig --queries QUERIES.sig [--n 250000] [--shape graph-62-128] [--index FILE]
//! ```

use std::{fs, time::Instant};

use lookalike::{
    SignatureFile, Signatures,
    index::{Answers, Effort, Graph, Index, Queries, Scan, Shape, recall_at},
    quality::cdr,
};

/// What follows a flag, if it is there.
fn flag(name: &str) -> Option<String> {
    let mut args = std::env::args().skip_while(|arg| arg != name).skip(1);
    args.next()
}

fn number(name: &str, usual: usize) -> usize {
    flag(name).map_or(usual, |text| text.parse().expect("a number"))
}

/// So many of the rows of a file, evenly spread.
fn some(path: &str, most: usize) -> Signatures {
    let file = SignatureFile::open(path.as_ref()).expect("a signature file");
    let rows = file.signatures();
    let len = rows.len().min(most);
    let words = (0..len).flat_map(|i| rows.row(i * rows.len() / len)).copied().collect();
    Signatures::from_words(rows.bits(), words).expect("rows of one width")
}

/// The graph of a file, or a new one, which is saved in it.
fn graph(rows: &Signatures, shape: Shape) -> Graph {
    let Some(path) = flag("--index") else { return Graph::build(rows, shape, 1).unwrap() };
    if fs::exists(&path).unwrap_or(false) {
        return Graph::open(path.as_ref(), rows).unwrap().in_huge_pages().unwrap();
    }
    let graph = Graph::build(rows, shape, 1).unwrap();
    graph.save(path.as_ref(), rows, None).unwrap();
    graph
}

/// Seconds that this thread has worked: others work on the machine, too.
fn worked(started: Instant) -> f64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let worked = text.split(' ').next().and_then(|text| text.parse::<f64>().ok());
    worked.map_or(started.elapsed().as_secs_f64(), |nanoseconds| nanoseconds * 1e-9)
}

fn main() {
    let (Some(rows), Some(queries)) = (flag("--rows"), flag("--queries")) else {
        return println!("needs --rows FILE.sig and --queries FILE.sig");
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(number("--threads", 1)).build();
    pool.expect("threads").install(|| run(&rows, &queries));
}

fn run(rows: &str, queries: &str) {
    let rows = some(rows, number("--n", usize::MAX));
    let queries = some(queries, number("--nq", 500));
    let started = Instant::now();
    let mut truth = Answers::new();
    Scan::new(&rows).unwrap().nearest((&queries).into(), 10, &mut truth).unwrap();
    let shape: Shape = flag("--shape").unwrap_or("graph".into()).parse().expect("a shape");
    let before = worked(started);
    let graph = graph(&rows, shape);
    let each = |bytes: u64| bytes as f64 / rows.len() as f64;
    println!(
        "{shape} over {} rows of {} bits: {:.1} s, {:.0} bytes a row",
        rows.len(),
        rows.bits(),
        worked(started) - before,
        each(graph.bytes())
    );
    for point in graph.curve().points() {
        println!("  {:>5} {:?} {:.1} us", point.level, point.recalls, point.seconds * 1e6);
    }
    println!("{:>6} {:>8} {:>8} {:>8} {:>8}", "level", "single", "batch", "recall", "CDR");
    let singles: Vec<Signatures> = (0..queries.len()).map(|i| queries.get(i).into()).collect();
    let levels = flag("--levels").unwrap_or("8,12,16,24,32,48,64,96,128,192,256,512".into());
    for level in levels.split(',').map(|level| level.parse().expect("a level")) {
        let search = graph.at(Effort::Level(level));
        let mut found = Answers::new();
        let mut ask = |batches: &mut dyn Iterator<Item = Queries<'_>>| {
            let before = worked(started);
            batches.for_each(|queries| {
                search.nearest(queries, 10, &mut found).unwrap();
            });
            (worked(started) - before) * 1e6 / queries.len() as f64
        };
        let mut times: Vec<[f64; 2]> = Vec::new();
        for _ in 0..number("--repeats", 5) {
            let single = ask(&mut singles.iter().map(Queries::from));
            times.push([single, ask(&mut [Queries::from(&queries)].into_iter())]);
        }
        let median = |i: usize| {
            let mut all: Vec<f64> = times.iter().map(|time| time[i]).collect();
            all.sort_unstable_by(f64::total_cmp);
            all[all.len() / 2]
        };
        let (recall, cdr) = (recall_at(&found, &truth, 10), cdr(&found, &truth, 10, rows.bits()));
        println!("{level:>6} {:>8.1} {:>8.1} {recall:>8.4} {cdr:>8.4}", median(0), median(1));
    }
}
