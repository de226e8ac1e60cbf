//! Collections against a simple model of them: whatever is done to them, they answer as the model does.
#![cfg(feature = "collection")]

mod common;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use common::Random;
use lookalike::{
    Signature, Signatures,
    collection::{
        Ask, Asking, By, ClusterSettings, Collection, Entry, Filter, IfExists, Keeps, Put, Seen,
        Settings, StoredIn,
    },
    index::Promise,
    search::Question,
};
use serde_json::{Value, json};

/// What a collection should have: its records by id, and in which order they came.
#[derive(Default)]
struct Model {
    records: BTreeMap<String, (u64, Entry)>,
    clock: u64,
}

impl Model {
    fn put(&mut self, entry: &Entry, if_exists: IfExists) -> Option<Put> {
        let there = self.records.contains_key(&entry.id);
        match (there, if_exists) {
            (true, IfExists::Skip) => return Some(Put::Skipped),
            (true, IfExists::Error) => return None,
            _ => {}
        }
        self.clock += 1;
        self.records.insert(entry.id.clone(), (self.clock, entry.clone()));
        Some(if there { Put::Replaced } else { Put::Added })
    }

    fn near(&self, query: &Signature) -> Vec<(u32, u64, &Entry)> {
        let mut near: Vec<_> = self
            .records
            .values()
            .map(|(clock, entry)| (distance(query, &entry.signature), *clock, entry))
            .collect();
        near.sort_by_key(|(distance, clock, _)| (*distance, *clock));
        near
    }

    fn seen(&mut self, entry: &Entry, radius: u32) -> Seen {
        let near =
            self.near(&entry.signature).first().map(|(distance, _, of)| (*distance, of.id.clone()));
        match near {
            Some((distance, id)) if distance <= radius => Seen::Before { id, distance },
            _ => {
                self.put(entry, IfExists::Replace);
                Seen::Added
            }
        }
    }
}

fn distance(a: &Signature, b: &Signature) -> u32 {
    a.words().iter().zip(b.words()).map(|(a, b)| (a ^ b).count_ones()).sum()
}

fn payload(entry: &Entry) -> Value {
    entry.payload.as_deref().map_or(Value::Null, |text| serde_json::from_str(text).unwrap())
}

/// Entries whose signatures are near each other, now and then; ids come again.
fn entry(random: &mut Random, bits: u32, ids: usize) -> Entry {
    let near = random.below(8);
    let mut words: Vec<u64> =
        (0..bits / 64).map(|word| [0, !0, 0x5555][near % 3] ^ u64::from(word)).collect();
    if near > 4 {
        words.iter_mut().for_each(|word| *word = random.next());
    }
    for _ in 0..random.below(6) {
        let bit = random.below(bits as usize);
        words[bit / 64] ^= 1 << (bit % 64);
    }
    let lang = ["en", "de", "fr"][random.below(3)];
    let payload = json!({
        "lang": lang, "year": 2000 + random.below(25), "source": random.below(5),
    });
    Entry {
        margins: Some((0..bits).map(|_| random.next() as u8).collect()),
        payload: (random.below(10) > 0).then(|| payload.to_string()),
        text: (random.below(3) > 0).then(|| format!("text {}", random.next())),
        ..Entry::new(
            format!("doc/{}", random.below(ids)),
            Signature::from_words(bits, words).unwrap(),
        )
    }
}

/// A collection and its model, which are to agree.
struct Pair {
    folder: PathBuf,
    collection: Option<Collection>,
    model: Model,
    random: Random,
    bits: u32,
}

const FILTERS: [&str; 6] = [
    r#"lang = "en""#,
    r#"lang in ("de", "fr") and year >= 2010"#,
    r#"not (year < 2020) or lang starts with "f""#,
    r#"source != 3"#,
    r#"id starts with "doc/1""#,
    r#"lang = "none""#,
];

impl Pair {
    fn collection(&self) -> &Collection {
        self.collection.as_ref().unwrap()
    }

    fn entries(&mut self, most: usize) -> Vec<Entry> {
        let (count, ids) = (self.random.below(most + 1), 1 + self.model.records.len() * 2 + most);
        (0..count).map(|_| entry(&mut self.random, self.bits, ids)).collect()
    }

    fn put(&mut self, most: usize) {
        let entries = self.entries(most);
        let if_exists =
            [IfExists::Replace, IfExists::Replace, IfExists::Skip][self.random.below(3)];
        let put = self.collection().put(&entries, if_exists).unwrap();
        let expected: Vec<Put> =
            entries.iter().map(|entry| self.model.put(entry, if_exists).unwrap()).collect();
        assert_eq!(put, expected);
    }

    /// All or nothing.
    fn put_or_error(&mut self) {
        let entries = self.entries(5);
        let ids: BTreeSet<&str> = entries.iter().map(|entry| entry.id.as_str()).collect();
        let new = ids.len() == entries.len()
            && ids.iter().all(|id| !self.model.records.contains_key(*id));
        let put = self.collection().put(&entries, IfExists::Error);
        assert_eq!(put.is_ok(), new, "{put:?}");
        if new {
            entries
                .iter()
                .for_each(|entry| assert!(self.model.put(entry, IfExists::Error).is_some()));
        }
    }

    fn remove(&mut self, most: usize) {
        let ids: Vec<String> = self.entries(most).into_iter().map(|entry| entry.id).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let removed = self.collection().remove(&ids).unwrap();
        let expected: Vec<bool> =
            ids.iter().map(|id| self.model.records.remove(*id).is_some()).collect();
        assert_eq!(removed, expected);
    }

    fn seen_or_add(&mut self) {
        let entries = self.entries(20);
        let radius = self.random.below(6) as u32;
        let seen = self.collection().seen_or_add(&entries, radius).unwrap();
        let expected: Vec<Seen> =
            entries.iter().map(|entry| self.model.seen(entry, radius)).collect();
        assert_eq!(seen, expected);
    }

    fn reopen(&mut self) {
        let collection = self.collection.take().unwrap();
        match self.random.below(2) {
            0 => collection.close().unwrap(),
            _ => drop(collection),
        }
        let segments = self.folder.join("segments");
        if self.random.below(3) == 0 {
            for file in std::fs::read_dir(&segments).unwrap() {
                std::fs::remove_file(file.unwrap().path()).unwrap();
            }
        }
        self.collection = Some(Collection::open(&self.folder).unwrap());
    }

    fn step(&mut self) {
        match self.random.below(20) {
            0..6 => self.put(30),
            6 => self.put(3000),
            7..10 => self.remove(30),
            10 => self.remove(1000),
            11..14 => self.seen_or_add(),
            14 | 15 => self.reopen(),
            16 => self.put_or_error(),
            17 => drop(self.collection().compact().unwrap()),
            18 => self.collection().settle().unwrap(),
            _ => {
                let radius = self.random.below(6) as u32;
                self.collection().reslice(Some(radius)).unwrap();
            }
        }
    }

    /// Searches of every kind agree with the model.
    fn compare(&mut self) {
        assert_eq!(self.collection().snapshot().len(), self.model.records.len());
        let asker = entry(&mut self.random, self.bits, 1 + self.model.records.len() * 2);
        let query = Signatures::from(asker.signature.clone());
        let filter: Option<Filter> =
            (self.random.below(2) == 0).then(|| FILTERS[self.random.below(6)].parse().unwrap());
        let asking = [Asking { not_id: Some(asker.id.clone()), payload: payload(&asker) }];
        let fields = ["source".to_owned()];
        let excluded = self.random.below(3) == 0;
        let asks = |entry: &Entry| {
            let value = payload(entry);
            let same = value.get("source").is_some()
                && value.get("source") == payload(&asker).get("source");
            filter.as_ref().is_none_or(|filter| filter.matches(&entry.id, &value))
                && !(excluded && (entry.id == asker.id || same))
        };
        let near = self.model.near(&asker.signature);
        let near: Vec<_> = near.into_iter().filter(|(_, _, entry)| asks(entry)).collect();
        let (radius, k) = (self.random.below(24) as u32, self.random.below(12));
        let slices = self.collection().with_reader(|store| store.slices()).unwrap();
        let mut questions = vec![
            (Question::Within(radius), By::Index),
            (Question::Within(radius), By::Scan),
            (Question::Within(radius), By::SqlEveryRecord),
            (Question::First(radius), By::Index),
            (Question::Nearest(k), By::Index),
            (Question::Nearest(k), By::Scan),
        ];
        if let Some(slices) = slices {
            questions.push((Question::Within(radius.min(slices - 1)), By::Sql));
        }
        for (question, by) in questions {
            let expected: Vec<_> = match question {
                Question::Within(radius) => {
                    near.iter().take_while(|(near, ..)| *near <= radius).collect()
                }
                Question::First(radius) => {
                    near.iter().take(1).filter(|(near, ..)| *near <= radius).collect()
                }
                Question::Nearest(k) => near.iter().take(k).collect(),
            };
            let ask = Ask {
                filter: filter.as_ref(),
                asking: if excluded { &asking } else { &[] },
                not_same: &fields,
                by,
                ..Ask::new(question)
            };
            let hits = self.collection().search((&query).into(), &ask).unwrap();
            assert_eq!(hits.promise, Promise::Exact);
            let hits: Vec<_> =
                hits.of[0].iter().map(|hit| (hit.distance, hit.record.id.as_str())).collect();
            let expected: Vec<_> =
                expected.iter().map(|(near, _, entry)| (*near, entry.id.as_str())).collect();
            assert_eq!(hits, expected, "{question:?} {by:?}");
        }
    }

    /// Every record is what was put, and nothing else is there.
    fn compare_records(&self) {
        let ids: Vec<&str> = self.model.records.keys().map(String::as_str).collect();
        let records = self.collection().get(&ids, true).unwrap();
        for (record, (_, entry)) in records.iter().zip(self.model.records.values()) {
            let record = record.as_ref().unwrap();
            assert_eq!((&record.id, &record.signature), (&entry.id, &entry.signature));
            assert_eq!((&record.payload, &record.text), (&entry.payload, &entry.text));
            assert_eq!(record.margins, entry.margins);
        }
        assert_eq!(self.collection().get(&["nobody"], true).unwrap(), [None]);
        let entries = self.model.records.values();
        let distinct: BTreeSet<&[u64]> =
            entries.map(|(_, entry)| entry.signature.words()).collect();
        assert_eq!(self.collection().count_distinct().unwrap(), distinct.len());
        let checked = self.collection().check().unwrap();
        assert_eq!((checked.problems, checked.records), (vec![], ids.len() as u64));
    }
}

fn run(folder: &Path, store: StoredIn, bits: u32, seed: u64, steps: usize) {
    let keeps = Keeps { margins: true, texts: true };
    let settings = Settings { keeps, store, ..Settings::of_bits(bits) };
    let folder = folder.join("collection");
    let collection = Some(Collection::create(&folder, settings).unwrap());
    let random = Random::new(seed);
    let mut pair = Pair { folder, collection, model: Model::default(), random, bits };
    for _ in 0..steps {
        pair.step();
        pair.compare();
    }
    pair.compare_records();
}

#[test]
fn a_collection_in_sqlite_is_as_its_model() {
    for (bits, seed) in [(64, 1), (64, 2), (128, 3), (320, 4)] {
        let place = tempfile::tempdir().unwrap();
        run(place.path(), StoredIn::Sqlite, bits, seed, 60);
    }
}

/// Where PostgreSQL is; a test that needs it is skipped where it is not.
#[cfg(feature = "postgres")]
fn postgres(schema: &str) -> Option<StoredIn> {
    let Ok(url) = std::env::var("LOOKALIKE_POSTGRES") else {
        eprintln!("skipped: LOOKALIKE_POSTGRES does not say where a server is");
        return None;
    };
    Some(StoredIn::Postgres { url, schema: format!("{schema}_{}", std::process::id()) })
}

#[cfg(feature = "postgres")]
#[test]
fn a_collection_in_postgresql_is_as_its_model() {
    for (bits, seed) in [(64, 1), (128, 2)] {
        let Some(store) = postgres(&format!("model_{bits}")) else { return };
        let place = tempfile::tempdir().unwrap();
        run(place.path(), store, bits, seed, 40);
    }
}

fn simple(id: &str, word: u64) -> Entry {
    Entry::new(id, Signature::from_words(64, vec![word]).unwrap())
}

/// What is written later does not touch what was.
#[test]
fn a_snapshot_stays_as_it_was() {
    let place = tempfile::tempdir().unwrap();
    let collection = Collection::create(&place.path().join("c"), Settings::of_bits(64)).unwrap();
    let entries: Vec<Entry> = (0..5000).map(|i| simple(&i.to_string(), i << 32)).collect();
    collection.put(&entries, IfExists::Replace).unwrap();
    let before = collection.snapshot();
    let query = Signatures::from_words(64, vec![7 << 32]).unwrap();
    let ask = Ask::new(Question::Within(0));
    let ids = |snapshot: &_| -> Vec<String> {
        let hits = collection.search_in(snapshot, (&query).into(), &ask).unwrap();
        hits.of[0].iter().map(|hit| hit.record.id.clone()).collect()
    };
    collection.remove(&["7"]).unwrap();
    collection.put(&[simple("8", 7 << 32)], IfExists::Replace).unwrap();
    collection.settle().unwrap();
    assert_eq!(ids(&before), ["7"]);
    assert_eq!(ids(&collection.snapshot()), ["8"]);
}

/// Clusters are of a snapshot: what was removed or replaced is in none.
#[test]
fn records_that_look_alike_are_in_clusters() {
    let place = tempfile::tempdir().unwrap();
    let collection = Collection::create(&place.path().join("c"), Settings::of_bits(64)).unwrap();
    let strangers =
        (1..3000).map(|i: u64| simple(&i.to_string(), i.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    collection.put(&strangers.collect::<Vec<_>>(), IfExists::Replace).unwrap();
    let alike = [("a", 0), ("b", 0b1), ("c", 0b11), ("d", 0), ("e", 0b111), ("f", 0)];
    let alike = alike.map(|(id, word)| simple(id, word));
    collection.put(&alike, IfExists::Replace).unwrap();
    collection.remove(&["f"]).unwrap();
    collection.put(&[simple("a", !0)], IfExists::Replace).unwrap();
    let snapshot = collection.snapshot();
    let clustered = snapshot.clusters(&ClusterSettings::new(1)).unwrap();
    let cluster = clustered.cluster(clustered.len() - 1);
    let records = collection.with_reader(|store| store.records(cluster.members, false)).unwrap();
    let ids: Vec<String> = records.into_iter().flatten().map(|record| record.id).collect();
    assert_eq!(ids, ["b", "c", "d", "e"]);
    let about = clustered.about(clustered.of(cluster.members[2]).unwrap());
    assert_eq!((about.keeper, about.longest_chain, about.farthest), (cluster.members[0], 2, 3));
    assert_eq!((clustered.position, clustered.records), (snapshot.position(), snapshot.len()));
}

/// One writes, the others read, in processes of their own or in one.
#[test]
fn there_is_one_writer_and_readers_follow() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("c");
    let writer = Collection::create(&folder, Settings::of_bits(64)).unwrap();
    let problem = Collection::open(&folder).unwrap_err().to_string();
    assert!(problem.contains("another process is writing"), "{problem}");
    let reader = Collection::open_reader(&folder).unwrap();
    assert!(reader.put(&[simple("a", 1)], IfExists::Replace).is_err());
    for round in 0..3 {
        let batch: Vec<Entry> =
            (0..3000).map(|i| simple(&format!("{round}/{i}"), (round << 20 | i) << 8)).collect();
        writer.put(&batch, IfExists::Replace).unwrap();
        writer.remove(&[&format!("{round}/7")]).unwrap();
        assert!(reader.refresh().unwrap() && !reader.refresh().unwrap());
        assert_eq!(reader.snapshot().len(), writer.snapshot().len());
        assert!(reader.get(&[&format!("{round}/8")], false).unwrap()[0].is_some());
        assert!(reader.get(&[&format!("{round}/7")], false).unwrap()[0].is_none());
        // What the log no longer has is read again.
        writer.compact().unwrap();
    }
    drop(writer);
    assert_eq!(Collection::open(&folder).unwrap().snapshot().len(), 3 * 2999);
}

#[test]
fn entries_that_cannot_be_kept_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let collection = Collection::create(&place.path().join("c"), Settings::of_bits(64)).unwrap();
    let wide = Entry::new("a", Signature::from_words(128, vec![1, 2]).unwrap());
    let array = Entry { payload: Some("[1]".into()), ..simple("a", 1) };
    let broken = Entry { payload: Some("{".into()), ..simple("a", 1) };
    for (entry, problem) in [
        (wide, "128 bits"),
        (array, "JSON object"),
        (broken, "JSON object"),
        (simple("", 1), "no id"),
    ] {
        let error =
            collection.put(&[simple("b", 1), entry], IfExists::Replace).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
    assert!(collection.snapshot().is_empty());
    assert!(Collection::create(&place.path().join("c"), Settings::of_bits(64)).is_err());
    assert!(Collection::create(&place.path().join("d"), Settings::of_bits(60)).is_err());
    assert!(Collection::open(&place.path().join("d")).is_err());
}

/// The blocks of a language in a page of the documentation.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    let blocks = page.split(&fence).skip(1);
    blocks.map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

/// What docs/sql.md says to do by hand, done by hand.
#[test]
fn the_slices_of_sqlite_are_found_by_hand() {
    let place = tempfile::tempdir().unwrap();
    let collection = Collection::create(&place.path().join("news"), Settings::of_bits(64)).unwrap();
    collection.reslice(Some(3)).unwrap();
    let entries = [simple("a", 0), simple("b", 0b111), simple("c", 0b1111), simple("d", 1 << 63)];
    collection.put(&entries, IfExists::Replace).unwrap();
    let page = include_str!("../docs/sql.md");
    let program = blocks(page, "python").remove(0);
    let mut python = std::process::Command::new("python3");
    let Ok(said) = python.args(["-c", &program]).current_dir(place.path()).output() else {
        eprintln!("skipped: there is no python3 here");
        return;
    };
    let (out, err) = (String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
    assert_eq!(out.trim(), "[('a', 0, None), ('d', 1, None), ('b', 3, None)]", "{err}");
}

#[cfg(feature = "postgres")]
#[test]
fn the_slices_of_postgresql_are_found_by_hand() {
    let Some(store) = postgres("by_hand") else { return };
    let StoredIn::Postgres { url, schema } = store.clone() else { unreachable!() };
    let place = tempfile::tempdir().unwrap();
    let settings = Settings { store, ..Settings::of_bits(128) };
    let collection = Collection::create(&place.path().join("news"), settings).unwrap();
    collection.reslice(Some(3)).unwrap();
    let entry = |id: &str, word| Entry::new(id, Signature::from_words(128, vec![word, 7]).unwrap());
    let entries = [entry("a17", 0), entry("b", 0b111), entry("c", 0b1111), entry("d", 1 << 63)];
    collection.put(&entries, IfExists::Replace).unwrap();
    let page = include_str!("../docs/sql.md");
    let query = blocks(page, "sql").remove(0).replace("TO news;", &format!("TO {schema};"));
    let mut client = postgres::Client::connect(&url, postgres::NoTls).unwrap();
    let rows = client.simple_query(&query).unwrap();
    let found: Vec<String> = rows
        .iter()
        .filter_map(|row| match row {
            postgres::SimpleQueryMessage::Row(row) => {
                Some(format!("{} {}", row.get(0)?, row.get(1)?))
            }
            _ => None,
        })
        .collect();
    assert_eq!(found, ["a17 0", "d 1", "b 3"]);
}

/// A collection of the first version of the tables, which had an index of ids, and with records that were replaced and
/// removed: it opens, is brought up to date, and goes on.
#[test]
fn an_old_collection_opens() {
    let place = tempfile::tempdir().unwrap();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/collection-1");
    for name in ["collection.json", "records.sqlite"] {
        std::fs::copy(fixture.join(name), place.path().join(name)).unwrap();
    }
    // A reader brings it up to date as well as a writer does.
    drop(Collection::open_reader(place.path()).unwrap());
    let collection = Collection::open(place.path()).unwrap();
    assert_eq!(collection.about().recipe.as_ref().unwrap().name, "web");
    assert_eq!(collection.snapshot().len(), 8);
    let records = collection.get(&["story 1", "story 3", "story 9"], true).unwrap();
    assert!(records[0].is_none() && records[2].is_some());
    let three = records[1].as_ref().unwrap();
    assert_eq!(three.payload_value(), json!({"edition": 2}));
    assert!(three.text.as_deref().unwrap().starts_with("Story 3, second edition"));
    let signed = collection
        .signer()
        .unwrap()
        .sign_text(three.text.as_deref().unwrap(), &mut lookalike::recipe::Scratch::default());
    assert_eq!(signed.unwrap().signature, three.signature);
    let query = Signatures::from(three.signature.clone());
    let hits = collection.search((&query).into(), &Ask::new(Question::Within(0))).unwrap();
    assert_eq!(hits.of[0][0].record.id, "story 3");
    collection.put(&[Entry::new("new", three.signature.clone())], IfExists::Error).unwrap();
    assert_eq!(collection.check().unwrap().problems, Vec::<String>::new());
}

/// Whatever is replaced or removed while parts grow, are merged and are saved: what is saved does not come back.
#[test]
fn what_was_replaced_does_not_come_back_from_a_segment() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("c");
    let collection = Collection::create(&folder, Settings::of_bits(64)).unwrap();
    let word = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // An id twice in a batch that is saved; then one that grows over replaced rows.
    let mut batch: Vec<Entry> = (0..5000).map(|i| simple(&i.to_string(), word(i))).collect();
    batch.push(simple("7", word(90_007)));
    collection.put(&batch, IfExists::Replace).unwrap();
    let again: Vec<Entry> = (0..3000).map(|i| simple(&i.to_string(), word(50_000 + i))).collect();
    collection.put(&again, IfExists::Replace).unwrap();
    collection.close().unwrap();
    for round in 0..3 {
        let collection = Collection::open(&folder).unwrap();
        assert_eq!(collection.snapshot().len(), 5000);
        let found = collection.get(&["7", "4000"], false).unwrap();
        assert_eq!(found[0].as_ref().unwrap().signature.words(), [word(50_007)]);
        assert_eq!(found[1].as_ref().unwrap().signature.words(), [word(4000)]);
        assert_eq!(collection.check().unwrap().problems, Vec::<String>::new());
        collection.put(&[simple("7", word(50_007))], IfExists::Replace).unwrap();
        if round == 1 {
            collection.compact().unwrap();
        }
        collection.close().unwrap();
    }
}

/// The same few ids over and over, in small batches: parts shrink as they are merged, and nobody waits for ever.
#[test]
fn ids_that_come_again_and_again_do_not_hold_it_up() {
    let place = tempfile::tempdir().unwrap();
    let collection = Collection::create(&place.path().join("c"), Settings::of_bits(64)).unwrap();
    for batch in 0..200_u64 {
        let ids = (0..1000).map(|i| (batch * 1000 + i) % 2500);
        let entries: Vec<Entry> = ids
            .map(|id| simple(&id.to_string(), (id << 32 | batch).wrapping_mul(0x9e37_79b9)))
            .collect();
        collection.put(&entries, IfExists::Replace).unwrap();
    }
    assert_eq!(collection.snapshot().len(), 2500);
    assert_eq!(collection.check().unwrap().problems, Vec::<String>::new());
}

/// However many of the rows are gone, and however many are asked for.
#[test]
fn the_nearest_are_all_there_where_most_are_removed() {
    let place = tempfile::tempdir().unwrap();
    let collection = Collection::create(&place.path().join("c"), Settings::of_bits(64)).unwrap();
    let mut random = Random::new(3);
    let mut put = |from: u64, to: u64| {
        let entries: Vec<Entry> =
            (from..to).map(|i| simple(&i.to_string(), random.next())).collect();
        collection.put(&entries, IfExists::Replace).unwrap();
    };
    put(0, 4096);
    let ids: Vec<String> = (0..4000).map(|i| i.to_string()).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    collection.remove(&ids).unwrap();
    put(4096, 4596);
    let query = Signatures::from_words(64, vec![77]).unwrap();
    let ask = |k, by| {
        let ask = Ask { by, ..Ask::new(Question::Nearest(k)) };
        let hits = collection.search((&query).into(), &ask).unwrap();
        hits.of[0].iter().map(|hit| (hit.distance, hit.record.position)).collect::<Vec<_>>()
    };
    let all = ask(10_000, By::Scan);
    assert_eq!(all.len(), 596);
    for k in [1, 5, 95, 96, 97, 400, 596, 2038, 2039, 2040, 2041, 4095, 4096, 4097, usize::MAX] {
        assert_eq!(ask(k, By::Index), all[..k.min(596)], "{k}");
    }
}

/// A filter that lets few of very many records pass: they are found all the same.
#[test]
fn few_of_many_are_found_by_a_filter() {
    let place = tempfile::tempdir().unwrap();
    let collection = Collection::create(&place.path().join("c"), Settings::of_bits(64)).unwrap();
    let mut random = Random::new(4);
    let entries: Vec<Entry> = (0..150_000)
        .map(|i| {
            let payload = Some(format!(r#"{{"rare": {}}}"#, i % 50_000 == 49_999));
            Entry { payload, ..simple(&i.to_string(), random.next()) }
        })
        .collect();
    collection.put(&entries, IfExists::Replace).unwrap();
    let filter: Filter = "rare = true".parse().unwrap();
    let query = Signatures::from_words(64, vec![5]).unwrap();
    let ask = Ask { filter: Some(&filter), ..Ask::new(Question::Nearest(5)) };
    let hits = collection.search((&query).into(), &ask).unwrap();
    let mut ids: Vec<&str> = hits.of[0].iter().map(|hit| hit.record.id.as_str()).collect();
    assert!(hits.of[0].is_sorted_by_key(|hit| hit.distance));
    ids.sort_unstable();
    assert_eq!(ids, ["149999", "49999", "99999"]);
}

/// An index that is exact only up to a radius is not believed beyond it.
#[test]
fn beyond_its_guarantee_an_index_is_not_asked() {
    let place = tempfile::tempdir().unwrap();
    let settings = Settings { index: "pieces-4".parse().unwrap(), ..Settings::of_bits(64) };
    let collection = Collection::create(&place.path().join("c"), settings).unwrap();
    let mut random = Random::new(5);
    let words: Vec<u64> = (0..5000).map(|_| random.next()).collect();
    let entries: Vec<Entry> =
        words.iter().enumerate().map(|(i, word)| simple(&i.to_string(), *word)).collect();
    collection.put(&entries, IfExists::Replace).unwrap();
    // Two bits in every byte: no slice is as it was.
    let near: Vec<Entry> = words[..50]
        .iter()
        .enumerate()
        .map(|(i, word)| simple(&format!("near {i}"), word ^ 0x0101_0101_0101_0101))
        .collect();
    let query = Signatures::from(near[7].signature.clone());
    let hits = collection.search((&query).into(), &Ask::new(Question::Within(8))).unwrap();
    assert_eq!((hits.promise, hits.of[0][0].record.id.as_str()), (Promise::Exact, "7"));
    let seen = collection.seen_or_add(&near, 8).unwrap();
    assert!(seen.iter().all(|seen| matches!(seen, Seen::Before { distance: 8, .. })));
}

/// What is left after most is removed and compacted is too little to be saved; nothing old is in its way.
#[test]
fn little_is_left_after_a_compact() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("c");
    let collection = Collection::create(&folder, Settings::of_bits(64)).unwrap();
    let entries: Vec<Entry> = (0..10_000).map(|i| simple(&i.to_string(), i * 77)).collect();
    collection.put(&entries, IfExists::Replace).unwrap();
    collection.close().unwrap();
    let collection = Collection::open(&folder).unwrap();
    let ids: Vec<String> = (0..9000).map(|i| i.to_string()).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    collection.remove(&ids).unwrap();
    assert_eq!(collection.compact().unwrap(), 9000);
    assert_eq!(collection.check().unwrap().problems, Vec::<String>::new());
    collection.close().unwrap();
    let collection = Collection::open_reader(&folder).unwrap();
    assert!(collection.notes().is_empty(), "{:?}", collection.notes());
    assert_eq!(collection.snapshot().len(), 1000);
}

#[test]
fn a_killed_create_is_not_in_the_way() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("c");
    std::fs::create_dir_all(folder.join("segments")).unwrap();
    std::fs::write(folder.join("records.sqlite"), "half of it").unwrap();
    let collection = Collection::create(&folder, Settings::of_bits(64)).unwrap();
    collection.put(&[simple("a", 1)], IfExists::Replace).unwrap();
    // But what is somebody's stays.
    let other = place.path().join("d");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("thesis.txt"), "years of work").unwrap();
    assert!(Collection::create(&other, Settings::of_bits(64)).is_err());
    assert!(other.join("thesis.txt").exists());
}
