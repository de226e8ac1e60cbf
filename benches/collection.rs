//! What a collection costs: adding, opening, searching at rest and while it grows, replacing, removing, the crawler's
//! call, and the slices in SQL beside the distance to every record in the same database.
//!
//!     cargo bench --bench collection -- [TASK...] [ROWS]
//!
//! Tasks: bulk (which opens, searches, replaces and removes as well), seen, sql. All if none is named. Rows are uniform
//! signatures of 64 bits (sql: 128) with addresses as ids, in random order, and small payloads. `LOOKALIKE_POSTGRES`
//! is the address of a server for sql. Files go to the folder for temporary files, or to `LOOKALIKE_BENCH`.
#![allow(clippy::print_stdout, reason = "it is what a bench is for")]

use std::{
    error::Error,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    time::{Duration, Instant},
};

use lookalike::{
    Signature, Signatures,
    collection::{Ask, By, Collection, Entry, IfExists, Seen, Settings, StoredIn},
    search::Question,
};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Rows that are added in one transaction, as the program does.
const BATCH: usize = 50_000;
const RADIUS: u32 = 3;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rows = arguments.iter().find_map(|word| word.parse().ok());
    let tasks: Vec<&str> = arguments
        .iter()
        .map(String::as_str)
        .filter(|word| ["bulk", "seen", "sql"].contains(word))
        .collect();
    let wanted = |task: &str| tasks.is_empty() || tasks.contains(&task);
    if wanted("bulk") {
        bulk(rows.unwrap_or(10_000_000))?;
    }
    if wanted("seen") {
        seen(rows.unwrap_or(5_000_000))?;
    }
    if wanted("sql") {
        sql(rows.unwrap_or(1_000_000))?;
    }
    Ok(())
}

/// A number that depends on `i` in no way that an index could profit by.
fn mixed(i: u64) -> u64 {
    let mut z = i.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

fn entry(i: u64, bits: u32) -> Entry {
    let words = (0..u64::from(bits) / 64).map(|word| mixed(i * 64 + word)).collect();
    let signature = Signature::from_words(bits, words).expect("a width of whole words");
    Entry {
        payload: Some(format!(r#"{{"lang":"en","year":{}}}"#, 2000 + i % 25)),
        ..Entry::new(format!("https://example.org/{:016x}", mixed(!i)), signature)
    }
}

fn entries(range: std::ops::Range<u64>, bits: u32) -> Vec<Entry> {
    range.map(|i| entry(i, bits)).collect()
}

fn batches(rows: u64, batch: usize) -> impl Iterator<Item = std::ops::Range<u64>> {
    (0..rows).step_by(batch).map(move |start| start..(start + batch as u64).min(rows))
}

/// A folder that goes away at the end.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Result<Self> {
        let folder =
            std::env::var_os("LOOKALIKE_BENCH").map_or_else(std::env::temp_dir, PathBuf::from);
        Ok(Place(tempfile::tempdir_in(folder)?))
    }

    fn collection(&self) -> PathBuf {
        self.0.path().join("collection")
    }
}

fn per_second(rows: u64, took: Duration) -> f64 {
    rows as f64 / took.as_secs_f64()
}

fn bulk(rows: u64) -> Result<()> {
    println!("\n== bulk add: {rows} signatures of 64 bits, batches of {BATCH}, one process");
    let place = Place::new()?;
    let collection = Collection::create(&place.collection(), Settings::of_bits(64))?;
    let (mut took, mut last) = (Duration::ZERO, (0, Duration::ZERO));
    for range in batches(rows, BATCH) {
        let end = range.end;
        let batch = entries(range, 64);
        let started = Instant::now();
        collection.put(&batch, IfExists::Replace)?;
        took += started.elapsed();
        if end % 1_000_000 == 0 || end == rows {
            let rate = per_second(end - last.0, took - last.1);
            let parts: Vec<usize> = collection.snapshot().parts().map(|part| part.rows).collect();
            println!("{end:>9} rows: {rate:>8.0} a second for the last of them; parts {parts:?}");
            last = (end, took);
        }
    }
    println!("all: {:.0} a second", per_second(rows, took));
    let started = Instant::now();
    collection.close()?;
    println!("close: {:.2} s", started.elapsed().as_secs_f64());
    sizes(&place.collection())?;
    open(&place.collection(), rows)?;
    changes(&place.collection(), rows)
}

fn sizes(folder: &Path) -> Result<()> {
    let mut sums = [0, 0];
    for (sum, folder) in sums.iter_mut().zip([folder.to_owned(), folder.join("segments")]) {
        for file in std::fs::read_dir(folder)? {
            let about = file?.metadata()?;
            *sum += if about.is_file() { about.len() } else { 0 };
        }
    }
    println!("store {} MB, segments {} MB", sums[0] >> 20, sums[1] >> 20);
    Ok(())
}

fn open(folder: &Path, rows: u64) -> Result<()> {
    let mut times = Vec::new();
    for _ in 0..3 {
        let started = Instant::now();
        let collection = Collection::open(folder)?;
        times.push(started.elapsed());
        assert_eq!(collection.snapshot().len() as u64, rows);
        assert!(collection.notes().is_empty(), "{:?}", collection.notes());
    }
    times.sort();
    println!("open: {:.3} s (median of 3; pages of the files in memory)", times[1].as_secs_f64());
    Ok(())
}

/// Queries: half are near-copies of rows, half are of nothing.
fn queries(rows: u64, count: u64) -> Result<Vec<Signatures>> {
    let query = |i: u64| match i % 2 {
        0 => mixed(mixed(i) % rows * 64) ^ 1 << (i / 2 % 64),
        _ => mixed(i ^ 0xabcd_ef01),
    };
    let words: Vec<u64> = (0..count).map(query).collect();
    Ok(words
        .chunks(64)
        .map(|words| Signatures::from_words(64, words.to_vec()))
        .collect::<std::result::Result<_, _>>()?)
}

/// Microseconds for a query, records and all, on one thread: the median of some hundred batches of 64.
fn search(
    collection: &Collection,
    queries: &[Signatures],
    until: impl Fn(usize) -> bool + Sync,
) -> Result<f64> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    let mut times = Vec::new();
    pool.install(|| -> Result<()> {
        for (asked, batch) in
            queries.iter().cycle().enumerate().take_while(|(asked, _)| !until(*asked))
        {
            let started = Instant::now();
            let hits = collection.search(batch.into(), &Ask::new(Question::Within(RADIUS)))?;
            times.push(started.elapsed().as_secs_f64() * 1e6 / batch.len() as f64);
            assert!(asked > 0 || hits.of.iter().any(|hits| !hits.is_empty()));
        }
        Ok(())
    })?;
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

fn changes(folder: &Path, rows: u64) -> Result<()> {
    let collection = Collection::open(folder)?;
    let queries = queries(rows, 64 * 400)?;
    let at_rest = || search(&collection, &queries, |asked| asked >= 1200);
    println!(
        "search at rest: {:.2} us a query (radius {RADIUS}, batches of 64, half of them with a hit)",
        at_rest()?
    );
    let rest = at_rest()?;
    let (done, added) = (AtomicBool::new(false), AtomicU64::new(0));
    let adding = rows / 10;
    let (busy, rate) = std::thread::scope(|scope| -> Result<(f64, f64)> {
        let adder = scope.spawn(|| {
            let started = Instant::now();
            for range in batches(adding, BATCH) {
                let end = range.end;
                let batch = entries(rows + range.start..rows + range.end, 64);
                collection.put(&batch, IfExists::Replace).expect("it is added");
                added.store(end, Relaxed);
            }
            done.store(true, Relaxed);
            per_second(adding, started.elapsed())
        });
        let busy = search(&collection, &queries, |asked| asked > 0 && done.load(Relaxed))?;
        Ok((busy, adder.join().expect("the adder does not panic")))
    })?;
    println!(
        "search while {adding} rows are added at {rate:.0} a second: {busy:.2} us a query: {:.2} times",
        busy / rest
    );
    let total = rows + adding;
    let parts: Vec<usize> = collection.snapshot().parts().map(|part| part.rows).collect();
    let brief = search(&collection, &queries, |asked| asked >= 300)?;
    println!("... and when the last are in, parts {parts:?}: {brief:.2} us a query");
    collection.settle()?;
    println!("search at rest after that: {:.2} us a query", at_rest()?);

    const CHANGES: u64 = 10_000;
    const ROUNDS: u64 = 10;
    let some = |round: u64| (0..CHANGES).map(move |i| mixed(round << 32 | i) % total);
    let micros = |took: Duration| took.as_secs_f64() * 1e6 / CHANGES as f64;
    let (mut replaced, mut removed) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let entry = |i| Entry { payload: Some("{}".into()), ..entry(i, 64) };
        let batch: Vec<Entry> = some(round).map(entry).collect();
        let started = Instant::now();
        collection.put(&batch, IfExists::Replace)?;
        replaced.push(micros(started.elapsed()));
        let ids: Vec<String> = some(round + ROUNDS).map(|i| entry(i).id).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let started = Instant::now();
        collection.remove(&ids)?;
        removed.push(micros(started.elapsed()));
    }
    for (name, times) in [("replace", replaced), ("remove", removed)] {
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        let most = times.iter().copied().fold(0.0, f64::max);
        println!(
            "{name}, {ROUNDS} batches of {CHANGES} at {total} rows: {mean:.1} us each, {most:.1} in the slowest batch"
        );
    }
    Ok(collection.close()?)
}

fn seen(rows: u64) -> Result<()> {
    const BATCH: usize = 8192;
    println!(
        "\n== seen_or_add: from empty to {rows}, radius {RADIUS}, durable in batches of {BATCH}"
    );
    let place = Place::new()?;
    let collection = Collection::create(&place.collection(), Settings::of_bits(64))?;
    let (mut took, mut last, mut asked, mut seen) = (Duration::ZERO, (0, Duration::ZERO), 0, 0);
    for range in batches(rows, BATCH) {
        let mut batch = entries(range.clone(), 64);
        // Each tenth looks like one that came before.
        for i in range.clone().filter(|i| i % 10 == 9) {
            let near = mixed(mixed(i) % i * 64) ^ 1 << (i % 64);
            batch[(i - range.start) as usize].signature = Signature::from_words(64, vec![near])?;
        }
        let started = Instant::now();
        let answers = collection.seen_or_add(&batch, RADIUS)?;
        took += started.elapsed();
        asked += batch.len() as u64;
        seen += answers.iter().filter(|answer| **answer != Seen::Added).count();
        if asked / 500_000 > last.0 / 500_000 || asked == rows {
            let rate = per_second(asked - last.0, took - last.1);
            println!("{asked:>9}: {rate:>8.0} a second for the last of them");
            last = (asked, took);
        }
    }
    println!("all: {:.0} a second; {seen} were seen", per_second(rows, took));
    Ok(collection.close()?)
}

fn sql(rows: u64) -> Result<()> {
    let mut stores = vec![("SQLite", StoredIn::Sqlite)];
    if let Ok(url) = std::env::var("LOOKALIKE_POSTGRES") {
        let schema = format!("bench_{}", std::process::id());
        stores.push(("PostgreSQL", StoredIn::Postgres { url, schema }));
    }
    for (name, store) in stores {
        println!("\n== slices in {name}: {rows} signatures of 128 bits, radius {RADIUS}");
        let place = Place::new()?;
        let settings = Settings { store, ..Settings::of_bits(128) };
        let collection = Collection::create(&place.collection(), settings)?;
        let started = Instant::now();
        for range in batches(rows, BATCH) {
            collection.put(&entries(range, 128), IfExists::Replace)?;
        }
        println!("added: {:.0} a second", per_second(rows, started.elapsed()));
        let started = Instant::now();
        collection.reslice(Some(RADIUS))?;
        println!("sliced in {:.1} s", started.elapsed().as_secs_f64());
        let mut times = Vec::new();
        for (by, count) in [(By::Sql, 400), (By::SqlEveryRecord, 5)] {
            times.push(ask_one_by_one(&collection, rows, by, count)?);
        }
        println!(
            "by slices {:.3} ms, by every record {:.1} ms a query: {:.0} times",
            times[0],
            times[1],
            times[1] / times[0]
        );
        collection.close()?;
    }
    Ok(())
}

/// Milliseconds for a query, asked alone: the median.
fn ask_one_by_one(collection: &Collection, rows: u64, by: By, count: u64) -> Result<f64> {
    let mut times = Vec::new();
    for i in 0..count {
        let at = mixed(i) % rows;
        let words = vec![mixed(at * 64) ^ 1 << (i % 64), mixed(at * 64 + 1)];
        let query = Signatures::from_words(128, words)?;
        let started = Instant::now();
        let hits = collection
            .search((&query).into(), &Ask { by, ..Ask::new(Question::Within(RADIUS)) })?;
        times.push(started.elapsed().as_secs_f64() * 1e3);
        assert!(hits.of[0].iter().any(|hit| hit.record.id == entry(at, 128).id));
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}
