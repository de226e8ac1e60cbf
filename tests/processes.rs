//! Collections and processes: some are killed, some follow others, a disk is full, a byte is another. Nothing that was
//! acknowledged is lost, and nothing that was removed comes back.
//!
//! `LOOKALIKE_CRASH_ROUNDS` says how often a process is killed: 200 times if it does not.
#![cfg(feature = "collection")]

mod common;

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use common::Random;
use lookalike::{
    Signature, Signatures,
    collection::{Ask, Collection, Entry, IfExists, Settings, StoredIn},
    index::Promise,
    search::Question,
};

/// What a process is started for: this test, as a child.
const CHILD: &str = "LOOKALIKE_TEST_CHILD";
const BITS: u32 = 64;
/// Ids are of so many, so that they come again.
const IDS: usize = 9000;

type Model = BTreeMap<String, u64>;

/// A step of a random life, which depends on its number and on nothing else.
enum Step {
    Put(Vec<Entry>),
    Remove(Vec<String>),
    Seen(Vec<Entry>),
    Compact,
    Reslice(u32),
    Settle,
    Reopen,
}

fn word(random: &mut Random) -> u64 {
    // Far apart, so that none is seen within the radius that is asked for.
    random.next()
}

fn step(number: u64) -> Step {
    let mut random = Random::new(number.wrapping_mul(0x1234_5677));
    let most = [3, 30, 2500][random.below(3)];
    let count = 1 + random.below(most);
    let mut ids: Vec<String> = (0..count).map(|_| format!("doc {}", random.below(IDS))).collect();
    match random.below(16) {
        0..7 => Step::Put(ids.into_iter().map(|id| entry(&id, word(&mut random))).collect()),
        7..10 => Step::Remove(ids),
        10..12 => {
            ids.truncate(30);
            Step::Seen(ids.into_iter().map(|id| entry(&id, word(&mut random))).collect())
        }
        12 => Step::Compact,
        13 => Step::Reslice(random.below(5) as u32),
        14 => Step::Settle,
        _ => Step::Reopen,
    }
}

fn entry(id: &str, word: u64) -> Entry {
    Entry { payload: Some(format!(r#"{{"word": {word}}}"#)), ..Entry::new(id, signature(word)) }
}

fn signature(word: u64) -> Signature {
    Signature::from_words(BITS, vec![word]).unwrap()
}

impl Step {
    fn run(self, collection: Collection, folder: &Path) -> Collection {
        match self {
            Step::Put(entries) => drop(collection.put(&entries, IfExists::Replace).unwrap()),
            Step::Remove(ids) => {
                let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
                collection.remove(&ids).unwrap();
            }
            Step::Seen(entries) => drop(collection.seen_or_add(&entries, 0).unwrap()),
            Step::Compact => drop(collection.compact().unwrap()),
            Step::Reslice(radius) => collection.reslice(Some(radius)).unwrap(),
            Step::Settle => collection.settle().unwrap(),
            Step::Reopen => {
                collection.close().unwrap();
                return Collection::open(folder).unwrap();
            }
        }
        collection
    }

    fn model(&self, model: &mut Model) {
        match self {
            Step::Put(entries) | Step::Seen(entries) => entries.iter().for_each(|entry| {
                model.insert(entry.id.clone(), entry.signature.words()[0]);
            }),
            Step::Remove(ids) => model.retain(|id, _| !ids.contains(id)),
            Step::Compact | Step::Reslice(_) | Step::Settle | Step::Reopen => {}
        }
    }
}

/// Not a test: what a child does.
#[test]
fn child() {
    let Ok(task) = std::env::var(CHILD) else { return };
    let words: Vec<&str> = task.split('\n').collect();
    match words[..] {
        ["life", folder, from] => live(Path::new(folder), from.parse().unwrap()),
        ["follow", folder, id] => follow(Path::new(folder), id),
        ["write", folder, name] => write(Path::new(folder), name),
        _ => unreachable!("{task}"),
    }
}

fn start(task: &[&str]) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["child", "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, task.join("\n"));
    command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// Says something to whoever started this process.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{text}").unwrap();
    out.flush().unwrap();
}

fn live(folder: &Path, from: u64) {
    let mut collection = Collection::open(folder).unwrap();
    for number in from.. {
        collection = step(number).run(collection, folder);
        say(&format!("done {number}"));
    }
}

/// The last step that a process said it had done, and whether that was all before it was killed.
fn kill_after(mut child: Child, time: Duration) -> Option<u64> {
    let out = BufReader::new(child.stdout.take().unwrap());
    let reading = std::thread::spawn(move || {
        let done = |line: String| line.strip_prefix("done ")?.parse::<u64>().ok();
        out.lines().map_while(Result::ok).filter_map(done).last()
    });
    std::thread::sleep(time);
    child.kill().unwrap();
    child.wait().unwrap();
    reading.join().unwrap()
}

/// Whether a collection has exactly what a model has.
fn is_like(collection: &Collection, model: &Model) -> bool {
    if collection.snapshot().len() != model.len() {
        return false;
    }
    let ids: Vec<&str> = model.keys().map(String::as_str).collect();
    let records = collection.get(&ids, false).unwrap();
    records.iter().zip(model.values()).all(|(record, &word)| {
        record.as_ref().is_some_and(|record| record.signature.words() == [word])
    })
}

/// What is searched for is found, and nothing that is gone.
fn check_searches(collection: &Collection, model: &Model, random: &mut Random) {
    let mut words: Vec<u64> = model.values().copied().take(20).collect();
    words.push(random.next());
    let queries = Signatures::from_words(BITS, words.clone()).unwrap();
    let hits = collection.search((&queries).into(), &Ask::new(Question::Within(8))).unwrap();
    assert_eq!(hits.promise, Promise::Exact);
    for (word, hits) in words.iter().zip(&hits.of) {
        let mut found: Vec<&str> = hits.iter().map(|hit| hit.record.id.as_str()).collect();
        let near = model.iter().filter(|(_, other)| (*other ^ word).count_ones() <= 8);
        let mut expected: Vec<&str> = near.map(|(id, _)| id.as_str()).collect();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected);
    }
}

fn crash(folder: &Path, store: StoredIn, rounds: u64) {
    let settings = Settings { store, ..Settings::of_bits(BITS) };
    Collection::create(folder, settings).unwrap().close().unwrap();
    let (mut model, mut next, mut random) = (Model::new(), 0, Random::new(rounds));
    let (mut steps, mut applied_without_word) = (0, 0);
    for round in 0..rounds {
        let child = start(&["life", folder.to_str().unwrap(), &next.to_string()]);
        // Now and then late enough for what is done when there is time.
        let most = if round % 20 == 7 { 900 } else { 90 };
        let done = kill_after(child, Duration::from_millis(10 + random.below(most) as u64));
        for number in next..done.map_or(next, |done| done + 1) {
            step(number).model(&mut model);
            steps += 1;
        }
        next = done.map_or(next, |done| done + 1);
        let collection = Collection::open(folder).unwrap();
        // The step that was under way is done as a whole, or not at all.
        if !is_like(&collection, &model) {
            step(next).model(&mut model);
            next += 1;
            applied_without_word += 1;
            assert!(is_like(&collection, &model), "round {round}, step {next}");
        }
        check_searches(&collection, &model, &mut random);
        if round % 20 == 0 {
            assert_eq!(collection.check().unwrap().problems, Vec::<String>::new());
        }
    }
    eprintln!(
        "{rounds} rounds, {steps} steps, {applied_without_word} of them not acknowledged but done"
    );
    assert!(steps as u64 > rounds / 2, "{steps} steps");
}

fn rounds() -> u64 {
    let rounds =
        std::env::var("LOOKALIKE_CRASH_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    rounds.unwrap_or(200)
}

#[test]
fn killed_processes_lose_nothing() {
    let place = tempfile::tempdir().unwrap();
    crash(&place.path().join("c"), StoredIn::Sqlite, rounds());
}

/// Where PostgreSQL is; a test that needs it is skipped where it is not.
fn postgres(schema: &str) -> Option<StoredIn> {
    let url = std::env::var("LOOKALIKE_POSTGRES").ok().filter(|_| cfg!(feature = "postgres"));
    if url.is_none() {
        eprintln!("skipped: LOOKALIKE_POSTGRES does not say where a server is");
    }
    Some(StoredIn::Postgres { url: url?, schema: format!("{schema}_{}", std::process::id()) })
}

#[test]
fn killed_processes_lose_nothing_in_postgresql() {
    let Some(store) = postgres("crash") else { return };
    let place = tempfile::tempdir().unwrap();
    crash(&place.path().join("c"), store, rounds() / 4);
}

fn follow(folder: &Path, id: &str) {
    let collection = Collection::open_reader(folder).unwrap();
    say("ready");
    while collection.get(&[id], false).unwrap()[0].is_none() {
        collection.refresh().unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
    say("found");
}

fn write(folder: &Path, name: &str) {
    let collection = Collection::open(folder).unwrap();
    for batch in 0..20 {
        let entries: Vec<Entry> =
            (0..100).map(|i| entry(&format!("{name} {batch} {i}"), batch << 8 | i)).collect();
        collection.put(&entries, IfExists::Error).unwrap();
        // Both write this one.
        collection.put(&[entry("shared", batch)], IfExists::Replace).unwrap();
    }
}

#[test]
fn what_one_process_adds_another_finds() {
    let Some(store) = postgres("processes") else { return };
    let place = tempfile::tempdir().unwrap();
    // Each on a machine of its own, as it were.
    let folders: Vec<PathBuf> = ["a", "b", "c"].map(|name| place.path().join(name)).to_vec();
    let open = |folder: &PathBuf| {
        let settings = Settings { store: store.clone(), ..Settings::of_bits(BITS) };
        Collection::create(folder, settings).unwrap()
    };
    let collections: Vec<Collection> = folders.iter().map(open).collect();
    let mut follower = start(&["follow", folders[1].to_str().unwrap(), "news"]);
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line == "ready"));
    let started = Instant::now();
    collections[0].put(&[entry("news", 7)], IfExists::Replace).unwrap();
    assert!(lines.any(|line| line == "found"));
    let took = started.elapsed();
    assert!(took < Duration::from_secs(1), "{took:?}");
    follower.wait().unwrap();

    // Several write at the same time.
    let writer = |folder: &PathBuf, name: &str| start(&["write", folder.to_str().unwrap(), name]);
    let writers = [writer(&folders[1], "one"), writer(&folders[2], "two")];
    for mut writer in writers {
        assert!(writer.wait().unwrap().success());
    }
    for collection in &collections {
        collection.refresh().unwrap();
        assert_eq!(collection.snapshot().len(), 2 * 20 * 100 + 2);
        let seen = collection.seen_or_add(&[entry("again", 7)], 0).unwrap();
        assert!(matches!(&seen[0], lookalike::collection::Seen::Before { id, .. } if id == "news"));
        assert_eq!(collection.check().unwrap().problems, Vec::<String>::new());
    }
    let other = Settings { store: store.clone(), ..Settings::of_bits(128) };
    assert!(Collection::create(&place.path().join("d"), other).is_err());
}

/// A small disk of its own, as far as this machine lets us make one.
struct Disk(PathBuf);

impl Disk {
    fn new(place: &Path, size: &str) -> Option<Self> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(place);
        let mounted = mount.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
        if !mounted {
            eprintln!("skipped: no small disk can be mounted here");
        }
        mounted.then(|| Disk(place.to_owned()))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_is_told_and_loses_nothing() {
    let place = tempfile::tempdir().unwrap();
    let Some(disk) = Disk::new(place.path(), "24m") else { return };
    let folder = disk.0.join("c");
    fs::write(disk.0.join("ballast"), vec![1; 8 << 20]).unwrap();
    let collection = Collection::create(&folder, Settings::of_bits(BITS)).unwrap();
    let batch = |number: u64| -> Vec<Entry> {
        (0..5000)
            .map(|i| {
                entry(
                    &format!("{number}/{i}"),
                    (number << 32 | i).wrapping_mul(0x9e37_79b9_7f4a_7c15),
                )
            })
            .collect()
    };
    let failed = (0..).find_map(|number| {
        Some((number, collection.put(&batch(number), IfExists::Replace).err()?))
    });
    let (done, error) = failed.unwrap();
    let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
    assert!(format!("{error}: {cause}").contains("full"), "{error}: {cause}");
    assert!(done > 2);
    let check = |collection: &Collection, done: u64| {
        assert_eq!(collection.snapshot().len() as u64, done * 5000);
        for number in 0..done {
            assert!(collection.get(&[&format!("{number}/77")], false).unwrap()[0].is_some());
        }
        assert!(collection.get(&[&format!("{done}/77")], false).unwrap()[0].is_none());
    };
    check(&collection, done);
    // Segments find no room, either; nobody needs them.
    let _ = collection.close();
    let collection = Collection::open(&folder).unwrap();
    check(&collection, done);
    // With room again it goes on.
    fs::remove_file(disk.0.join("ballast")).unwrap();
    collection.put(&batch(done), IfExists::Replace).unwrap();
    check(&collection, done + 1);
    assert_eq!(collection.check().unwrap().problems, Vec::<String>::new());
}

fn filled(folder: &Path, rows: u64) {
    let collection = Collection::create(folder, Settings::of_bits(BITS)).unwrap();
    let word = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let entries: Vec<Entry> = (0..rows).map(|i| entry(&format!("doc {i}"), word(i))).collect();
    collection.put(&entries, IfExists::Replace).unwrap();
    collection.close().unwrap();
}

fn files_of(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| path.is_file())
        .collect()
}

fn flip(path: &Path, at: u64) {
    let mut bytes = fs::read(path).unwrap();
    let at = (at % bytes.len() as u64) as usize;
    bytes[at] ^= 0x10;
    fs::write(path, bytes).unwrap();
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to.join("segments")).unwrap();
    for folder in ["", "segments"] {
        for file in files_of(&from.join(folder)) {
            fs::copy(&file, to.join(folder).join(file.file_name().unwrap())).unwrap();
        }
    }
}

#[test]
fn damaged_segments_are_made_anew() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("c");
    filled(&folder, 6000);
    let mut random = Random::new(5);
    for round in 0..20 {
        let segments = files_of(&folder.join("segments"));
        assert_eq!(segments.len(), 2, "{segments:?}");
        flip(&segments[round % 2], random.next());
        let reader = Collection::open_reader(&folder).unwrap();
        let noticed = !reader.notes().is_empty();
        assert_eq!(reader.snapshot().len(), 6000);
        // A byte between two sections is nobody's.
        let collection = Collection::open(&folder).unwrap();
        assert_eq!(!collection.notes().is_empty(), noticed);
        let query = Signatures::from(signature(77_u64.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        let hits = collection.search((&query).into(), &Ask::new(Question::Within(0))).unwrap();
        assert_eq!(hits.of[0][0].record.id, "doc 77");
        collection.close().unwrap();
        assert_eq!(Collection::open(&folder).unwrap().notes().len(), 0);
    }
}

/// Segments of a store that was put back to an earlier time are not believed.
#[test]
fn segments_of_another_time_are_not_believed() {
    let place = tempfile::tempdir().unwrap();
    let (folder, earlier) = (place.path().join("c"), place.path().join("earlier"));
    filled(&folder, 5000);
    copy(&folder, &earlier);
    let add = |word: u64| {
        let collection = Collection::open(&folder).unwrap();
        let entries: Vec<Entry> = (0..5000).map(|i| entry(&format!("new {i}"), word + i)).collect();
        collection.put(&entries, IfExists::Replace).unwrap();
        collection.compact().unwrap();
        collection.close().unwrap();
    };
    add(1 << 40);
    // The store of before, and other records at the same positions.
    for file in files_of(&earlier) {
        fs::copy(&file, folder.join(file.file_name().unwrap())).unwrap();
    }
    let segments = files_of(&folder.join("segments"));
    let kept = place.path().join("kept");
    fs::create_dir(&kept).unwrap();
    for file in &segments {
        fs::copy(file, kept.join(file.file_name().unwrap())).unwrap();
    }
    assert!(!Collection::open_reader(&folder).unwrap().notes().is_empty());
    add(1 << 41);
    for file in files_of(&folder.join("segments")) {
        fs::remove_file(file).unwrap();
    }
    for file in files_of(&kept) {
        fs::copy(&file, folder.join("segments").join(file.file_name().unwrap())).unwrap();
    }
    let collection = Collection::open(&folder).unwrap();
    assert!(!collection.notes().is_empty());
    let record = collection.get(&["new 7"], false).unwrap().pop().flatten().unwrap();
    assert_eq!(record.signature.words(), [(1 << 41) + 7]);
    assert_eq!(collection.check().unwrap().problems, Vec::<String>::new());
}

#[test]
fn a_damaged_store_is_reported_and_not_believed() {
    let place = tempfile::tempdir().unwrap();
    let whole = place.path().join("whole");
    filled(&whole, 3000);
    let mut random = Random::new(7);
    let (mut refused, mut found) = (0, 0);
    for round in 0..40 {
        let folder = place.path().join(round.to_string());
        copy(&whole, &folder);
        flip(&folder.join("records.sqlite"), random.next());
        // Whatever is answered is right.
        let Ok(collection) = Collection::open(&folder) else {
            refused += 1;
            continue;
        };
        for i in (0..3000_u64).step_by(10) {
            if let Ok(records) = collection.get(&[&format!("doc {i}")], false) {
                let word = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                assert!(
                    records[0].as_ref().is_some_and(|record| record.signature.words() == [word]),
                    "{round}"
                );
            }
        }
        found +=
            usize::from(collection.check().map_or(true, |checked| !checked.problems.is_empty()));
    }
    // Some bytes of a page are of no use.
    assert!(refused + found > 20, "{refused} refused, {found} found");
}
