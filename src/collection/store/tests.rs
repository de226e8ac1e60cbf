//! One suite for every store: the same questions have the same answers.

#![allow(clippy::single_range_in_vec_init, reason = "one range of positions is what is meant")]

use super::*;
#[cfg(feature = "postgres")]
use crate::collection::postgres::Postgres;
use crate::collection::{Kept, record::pack, slices_for, sqlite::Sqlite};

/// Where a test keeps its collection. Gone when the test ends.
pub(in crate::collection) enum Home {
    File(tempfile::TempDir),
    #[cfg(feature = "postgres")]
    Schema {
        url: String,
        schema: String,
    },
}

impl Home {
    fn file() -> Self {
        Home::File(tempfile::tempdir().unwrap())
    }

    /// A schema of the server that tests may use, if there is one.
    #[cfg(feature = "postgres")]
    pub(in crate::collection) fn schema() -> Option<Self> {
        use std::sync::atomic::{AtomicU32, Ordering};
        static SCHEMAS: AtomicU32 = AtomicU32::new(0);
        let Ok(url) = std::env::var("LOOKALIKE_POSTGRES") else {
            eprintln!("skipped: LOOKALIKE_POSTGRES has no URL of a server for tests");
            return None;
        };
        let number = SCHEMAS.fetch_add(1, Ordering::Relaxed);
        let schema = format!("Lookalike \"test\" {}.{number}", std::process::id());
        let home = Home::Schema { url, schema };
        home.clear();
        Some(home)
    }

    #[cfg(feature = "postgres")]
    pub(in crate::collection) fn url_and_schema(&self) -> (&str, &str) {
        match self {
            Home::File(_) => unreachable!("a file has no URL"),
            Home::Schema { url, schema } => (url, schema),
        }
    }

    fn path(&self) -> std::path::PathBuf {
        match self {
            Home::File(folder) => folder.path().join("records.db"),
            #[cfg(feature = "postgres")]
            Home::Schema { .. } => unreachable!("a schema has no path"),
        }
    }

    pub(in crate::collection) fn create(&self, about: &About) -> Box<dyn Store> {
        match self {
            Home::File(_) => Box::new(Sqlite::create(&self.path(), about).unwrap()),
            #[cfg(feature = "postgres")]
            Home::Schema { url, schema } => Box::new(Postgres::create(url, schema, about).unwrap()),
        }
    }

    fn open(&self) -> Result<Box<dyn Store>> {
        Ok(match self {
            Home::File(_) => Box::new(Sqlite::open(&self.path())?),
            #[cfg(feature = "postgres")]
            Home::Schema { url, schema } => Box::new(Postgres::open(url, schema)?),
        })
    }

    fn open_reader(&self) -> Result<Box<dyn Store>> {
        Ok(match self {
            Home::File(_) => Box::new(Sqlite::open_reader(&self.path())?),
            #[cfg(feature = "postgres")]
            Home::Schema { url, schema } => Box::new(Postgres::open_reader(url, schema)?),
        })
    }

    /// Runs SQL behind the back of the store.
    pub(in crate::collection) fn meddle(&self, sql: &str) {
        match self {
            Home::File(_) => {
                rusqlite::Connection::open(self.path()).unwrap().execute_batch(sql).unwrap();
            }
            #[cfg(feature = "postgres")]
            Home::Schema { schema, .. } => {
                let schema = schema.replace('"', "\"\"");
                self.client()
                    .batch_execute(&format!("SET search_path = \"{schema}\"; {sql}"))
                    .unwrap();
            }
        }
    }

    /// Makes the collection one of a version that is not known yet.
    fn make_newer(&self) {
        self.meddle(match self {
            Home::File(_) => "PRAGMA user_version = 99",
            #[cfg(feature = "postgres")]
            Home::Schema { .. } => "UPDATE about SET value = '99' WHERE name = 'version'",
        });
    }

    #[cfg(feature = "postgres")]
    pub(in crate::collection) fn client(&self) -> ::postgres::Client {
        ::postgres::Client::connect(self.url_and_schema().0, ::postgres::NoTls).unwrap()
    }

    #[cfg(feature = "postgres")]
    fn clear(&self) {
        let schema = self.url_and_schema().1.replace('"', "\"\"");
        let drop = format!("DROP SCHEMA IF EXISTS \"{schema}\" CASCADE");
        let _ = self.client().batch_execute(&drop);
    }
}

#[cfg(feature = "postgres")]
impl Drop for Home {
    fn drop(&mut self) {
        if let Home::Schema { .. } = self {
            self.clear();
        }
    }
}

/// Runs a test in every kind of store that there is here.
fn everywhere(test: impl Fn(&Home)) {
    test(&Home::file());
    #[cfg(feature = "postgres")]
    if let Some(home) = Home::schema() {
        test(&home);
    }
}

pub(in crate::collection) fn about(bits: u32) -> About {
    About {
        id: "3f2a".to_owned(),
        bits,
        recipe: None,
        keeps: Keeps { margins: true, texts: true },
        index: Kept::Auto,
        created: 1_700_000_000_000,
    }
}

/// The numbers of a seed, one after the other.
pub(in crate::collection) fn numbers(mut seed: u64) -> impl FnMut() -> u64 {
    move || {
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

pub(in crate::collection) fn random_signature(
    bits: u32,
    next: &mut impl FnMut() -> u64,
) -> Signature {
    let bytes: Vec<u8> = (0..bits / 8).map(|_| next() as u8).collect();
    Signature::from_bytes(&bytes).unwrap()
}

fn entry(id: &str, seed: u64) -> Entry {
    Entry {
        margins: Some((0..64).map(|bit| bit ^ seed as u8).collect()),
        payload: Some(format!("{{\"seed\": {seed},  \"nul\": \"\\u0000\", \"é\": null}}")),
        text: Some(format!("The text of {id}. ").repeat(5)),
        ..Entry::new(id, random_signature(64, &mut numbers(seed)))
    }
}

pub(in crate::collection) fn put(entry: &Entry) -> Change<'_> {
    replace(entry, None)
}

fn replace(entry: &Entry, replaces: Option<u64>) -> Change<'_> {
    let text = entry.text.as_deref().map(|text| pack(text).unwrap());
    Change::Put { entry, text, replaces }
}

/// Makes changes, in one transaction.
fn change(store: &mut dyn Store, changes: &[Change<'_>]) -> Result<()> {
    store.begin()?;
    let applied = store.apply(changes, 1_700_000_000_001).and_then(|()| store.commit());
    if applied.is_err() {
        store.roll_back();
    }
    applied
}

fn put_all(store: &mut dyn Store, entries: &[Entry]) {
    let changes: Vec<Change<'_>> = entries.iter().map(put).collect();
    change(store, &changes).unwrap();
}

/// Ten records, `0` to `9`, at positions 1 to 10.
fn put_ten(store: &mut dyn Store) -> Vec<Entry> {
    let entries: Vec<Entry> = (0..10).map(|i| entry(&i.to_string(), i)).collect();
    put_all(store, &entries);
    entries
}

/// Positions of records that are there, in ranges, and of those that were removed.
fn log(
    store: &mut dyn Store,
    ranges: &[Range<u64>],
    removed_after: u64,
) -> (Vec<u64>, Vec<u64>, End) {
    let (mut there, mut gone) = (Vec::new(), Vec::new());
    let end = store.read(ranges, removed_after, &mut |line| {
        match line {
            Logged::Added { position, .. } => there.push(position),
            Logged::Removed(position) => gone.push(position),
        }
        Ok(())
    });
    gone.sort_unstable();
    (there, gone, end.unwrap())
}

fn assert_is(record: &Record, entry: &Entry, position: u64) {
    assert_eq!((record.position, record.time), (position, 1_700_000_000_001));
    let Record { id, signature, margins, payload, text, .. } = record.clone();
    assert_eq!(&Entry { id, signature, margins, payload, text }, entry);
}

#[test]
fn what_is_put_comes_back() {
    everywhere(|home| {
        let mut store = home.create(&about(64));
        let mut entries = vec![
            entry("plain", 1),
            entry("", 2),
            entry("sm\u{f6}rg\u{e5}s \u{1f967} ' \" \\ \n", 3),
            Entry::new("bare", random_signature(64, &mut numbers(4))),
        ];
        // Longer than any index likes, and not to be compressed.
        let mut next = numbers(5);
        entries.push(entry(
            &(0..20_000).map(|_| (b'a' + (next() % 26) as u8) as char).collect::<String>(),
            5,
        ));
        put_all(&mut *store, &entries);
        let records = store.records(&[1, 2, 3, 4, 5], true).unwrap();
        for ((record, entry), position) in records.iter().zip(&entries).zip(1..) {
            assert_is(record.as_ref().unwrap(), entry, position);
        }
        // In the order asked for, more than once, and what is not there.
        let records = store.records(&[4, 9, 2, 4, u64::MAX], false).unwrap();
        let found: Vec<_> = records.iter().flatten().map(|record| record.position).collect();
        assert_eq!(
            (found, records[1].is_none(), records[4].is_none()),
            (vec![4, 2, 4], true, true)
        );
        assert!(records.iter().flatten().all(|record| record.text.is_none()));

        let mut each = Vec::new();
        store
            .each(true, &mut |record| {
                each.push(record);
                Ok(())
            })
            .unwrap();
        assert_eq!(each.len(), 5);
        each.iter()
            .zip(&entries)
            .zip(1..)
            .for_each(|((record, entry), at)| assert_is(record, entry, at));
        assert_eq!(store.counts().unwrap(), Counts { records: 5, removed: 0 });
        assert!(store.bytes().unwrap() > 0);
        assert_eq!(store.check().unwrap(), Vec::<String>::new());
    });
}

#[test]
fn records_are_replaced_and_removed() {
    everywhere(|home| {
        let mut store = home.create(&about(64));
        put_ten(&mut *store);
        let (three, new) = (entry("3", 33), entry("new", 34));
        change(&mut *store, &[replace(&three, Some(4)), Change::Remove(6), put(&new)]).unwrap();
        assert_is(store.records(&[11], true).unwrap()[0].as_ref().unwrap(), &three, 11);
        let (there, gone, end) = log(&mut *store, &[0..u64::MAX], 10);
        assert_eq!(there, [1, 2, 3, 5, 7, 8, 9, 10, 11, 13]);
        assert_eq!((gone, end.position), (vec![4, 6], 13));
        // What is not there any more cannot be removed, and nothing of the batch is done.
        let five = entry("5", 55);
        assert!(change(&mut *store, &[put(&five), Change::Remove(6)]).is_err());
        assert_eq!(store.end().unwrap(), End { position: 13, purged: 0 });
        // An id that was removed is free.
        change(&mut *store, &[put(&five)]).unwrap();
        assert_eq!(store.counts().unwrap(), Counts { records: 11, removed: 2 });
    });
}

/// What comes later sees what a transaction has done before, in one batch or in several.
#[test]
fn an_id_may_come_again_in_a_transaction() {
    everywhere(|home| {
        let mut store = home.create(&about(64));
        let (a, b, c) = (entry("a", 1), entry("b", 2), entry("a", 3));
        assert_eq!(store.begin().unwrap(), End::default());
        store.apply(&[put(&a), put(&b), replace(&c, Some(1))], 7).unwrap();
        store.apply(&[replace(&a, Some(3)), Change::Remove(2)], 8).unwrap();
        store.apply(&[], 8).unwrap();
        assert_eq!(log(&mut *store, &[0..u64::MAX], 0).0, [4]);
        store.commit().unwrap();
        let (there, gone, end) = log(&mut *store, &[0..u64::MAX], 0);
        assert_eq!((there, gone, end.position), (vec![4], vec![1, 2, 3], 5));
        assert_eq!(store.records(&[4], false).unwrap()[0].as_ref().unwrap().time, 8);
    });
}

#[test]
fn positions_never_come_again() {
    everywhere(|home| {
        let mut store = home.create(&about(64));
        put_ten(&mut *store);
        change(&mut *store, &[Change::Remove(10), Change::Remove(9)]).unwrap();
        assert_eq!(store.purge(12).unwrap(), 2);
        assert_eq!(store.end().unwrap(), End { position: 12, purged: 12 });
        drop(store);
        let mut store = home.open().unwrap();
        assert_eq!(store.end().unwrap(), End { position: 12, purged: 12 });
        let again = entry("9", 99);
        put_all(&mut *store, &[again]);
        assert_eq!(store.end().unwrap().position, 13);
        assert_eq!(store.purge(5).unwrap(), 0);
        assert_eq!(store.end().unwrap(), End { position: 13, purged: 12 });
        assert_eq!(store.check().unwrap(), Vec::<String>::new());
    });
}

#[test]
fn the_log_is_read_in_ranges() {
    everywhere(|home| {
        let mut store = home.create(&about(64));
        let entries = put_ten(&mut *store);
        change(&mut *store, &[Change::Remove(2)]).unwrap();
        change(&mut *store, &[Change::Remove(5)]).unwrap();
        let (there, gone, end) = log(&mut *store, &[1..4, 5..7, 10..u64::MAX], 0);
        assert_eq!((there, gone, end.position), (vec![1, 3, 6, 10], vec![2, 5], 12));
        assert_eq!(log(&mut *store, &[], 11).1, [5]);
        assert!(log(&mut *store, &[], 12).1.is_empty());

        let mut signatures = Vec::new();
        store
            .read(&[6..8], 12, &mut |line| {
                if let Logged::Added { signature, .. } = line {
                    signatures.push(Signature::from_bytes(signature).unwrap());
                }
                Ok(())
            })
            .unwrap();
        assert_eq!(signatures, [entries[5].signature.clone(), entries[6].signature.clone()]);

        // Whoever reads may stop, and read again.
        let stopped = store.read(&[0..u64::MAX], 0, &mut |_| Err(Error::TooManyRows { rows: 1 }));
        assert!(matches!(stopped, Err(Error::TooManyRows { rows: 1 })));
        assert_eq!(log(&mut *store, &[0..3], 12).0, [1]);
    });
}

#[test]
fn removed_records_stay_until_they_are_purged() {
    everywhere(|home| {
        let mut store = home.create(&about(64));
        let entries = put_ten(&mut *store);
        change(&mut *store, &[Change::Remove(2), Change::Remove(3)]).unwrap();
        assert_is(store.records(&[2], true).unwrap()[0].as_ref().unwrap(), &entries[1], 2);
        assert_eq!(store.purge(11).unwrap(), 1);
        let records = store.records(&[2, 3], true).unwrap();
        assert!(records[0].is_none() && records[1].is_some());
        assert_eq!(log(&mut *store, &[], 0).1, [3]);
        assert_eq!(store.counts().unwrap(), Counts { records: 8, removed: 1 });
    });
}

#[test]
fn slices_find_what_every_record_finds() {
    for (bits, radius) in [(64, 3), (128, 5), (72, 8), (72, 0)] {
        everywhere(|home| {
            let mut store = home.create(&about(bits));
            let mut next = numbers(u64::from(bits));
            let centre = random_signature(bits, &mut next);
            // Around the centre at every distance, some of them twice.
            let entries: Vec<Entry> = (0..400)
                .map(|i| {
                    let mut bytes = centre.to_bytes();
                    (0..i % 12).for_each(|_| {
                        bytes[next() as usize % bits as usize / 8] ^= 1 << (next() % 8)
                    });
                    Entry::new(i.to_string(), Signature::from_bytes(&bytes).unwrap())
                })
                .collect();
            put_all(&mut *store, &entries);
            change(&mut *store, &[Change::Remove(1), Change::Remove(14)]).unwrap();

            let slices = slices_for(bits, radius).unwrap();
            store.reslice(Some(slices)).unwrap();
            assert_eq!(store.slices().unwrap(), Some(slices));
            for query in [&centre, &entries[11].signature, &random_signature(bits, &mut next)] {
                let found = store.within(query, radius, BySql::Slices(slices)).unwrap();
                assert_eq!(found, naive(&entries, query, radius));
                assert_eq!(found, store.within(query, radius, BySql::EveryRecord).unwrap());
            }
            let wide = store.within(&centre, 10, BySql::EveryRecord).unwrap();
            assert_eq!(wide, naive(&entries, &centre, 10));
            let error = store.within(&centre, radius + 1, BySql::Slices(slices)).unwrap_err();
            assert!(matches!(error, Error::BeyondSlices { .. }));
        });
    }
}

/// What is within a radius, of entries at positions from 1 of which `0` and `13` are removed.
fn naive(entries: &[Entry], query: &Signature, radius: u32) -> Vec<(u64, u32)> {
    let distance = |entry: &Entry| -> u32 {
        let words = entry.signature.words().iter().zip(query.words());
        words.map(|(a, b)| (a ^ b).count_ones()).sum()
    };
    let all = entries.iter().zip(1..).filter(|(entry, _)| entry.id != "0" && entry.id != "13");
    let mut near: Vec<(u64, u32)> = all
        .map(|(entry, position)| (position, distance(entry)))
        .filter(|(_, distance)| *distance <= radius)
        .collect();
    near.sort_by_key(|&(position, distance)| (distance, position));
    near
}

#[test]
fn slices_change_while_a_reader_is_open() {
    everywhere(|home| {
        let mut store = home.create(&about(64));
        let entries = put_ten(&mut *store);
        let mut reader = home.open_reader().unwrap();
        let query = &entries[4].signature;
        for slices in [Some(4), Some(4), Some(2), None, Some(8)] {
            store.reslice(slices).unwrap();
            assert_eq!((store.slices().unwrap(), reader.slices().unwrap()), (slices, slices));
            // A reader that has not noticed finds the same.
            assert_eq!(reader.within(query, 1, BySql::Slices(2)).unwrap(), [(5, 0)]);
        }
        put_all(&mut *store, &[Entry::new("later", query.clone())]);
        assert_eq!(reader.within(query, 0, BySql::Slices(8)).unwrap(), [(5, 0), (11, 0)]);
    });
}

#[test]
fn what_is_rolled_back_has_not_been() {
    everywhere(|home| {
        let mut store = home.create(&about(64));
        put_ten(&mut *store);
        let (three, new) = (entry("3", 33), entry("new", 34));
        assert_eq!(store.begin().unwrap().position, 10);
        store.apply(&[replace(&three, Some(4)), put(&new), Change::Remove(2)], 0).unwrap();
        store.roll_back();
        store.roll_back();
        assert_eq!(store.end().unwrap().position, 10);
        let (there, gone, _) = log(&mut *store, &[0..u64::MAX], 0);
        assert_eq!((there.len(), gone.len()), (10, 0));
        put_all(&mut *store, &[new]);
        assert_eq!(store.end().unwrap().position, 11);
    });
}

#[test]
fn readers_see_what_is_committed() {
    everywhere(|home| {
        let mut store = home.create(&about(64));
        put_ten(&mut *store);
        let mut reader = home.open_reader().unwrap();
        let new = entry("new", 34);
        store.begin().unwrap();
        store.apply(&[put(&new), Change::Remove(2)], 0).unwrap();
        assert_eq!(reader.end().unwrap().position, 10);
        assert_eq!(log(&mut *reader, &[0..u64::MAX], 0).0.len(), 10);
        // What is read in one go is of one moment, whatever is committed meanwhile.
        let mut seen = 0;
        reader
            .each(false, &mut |_| {
                if seen == 0 {
                    store.commit().unwrap();
                }
                seen += 1;
                Ok(())
            })
            .unwrap();
        assert_eq!(seen, 10);
        assert_eq!(reader.end().unwrap().position, 12);
        assert_eq!(log(&mut *reader, &[9..u64::MAX], 10).0, [9, 10, 11]);
        assert!(reader.begin().is_err() || reader.apply(&[Change::Remove(3)], 0).is_err());
    });
}

#[test]
fn writers_take_turns() {
    everywhere(|home| {
        drop(home.create(&about(64)));
        std::thread::scope(|scope| {
            for writer in 0..3_u64 {
                scope.spawn(move || {
                    let mut store = home.open().unwrap();
                    for batch in 0..10_u64 {
                        let ids = (0..5).map(|i| format!("{writer} {batch} {i}"));
                        let entries: Vec<Entry> = ids.map(|id| entry(&id, writer)).collect();
                        put_all(&mut *store, &entries);
                    }
                });
            }
            scope.spawn(|| {
                // Follows the log: none comes before one that was seen.
                let mut reader = home.open_reader().unwrap();
                let mut seen = 0;
                while seen < 150 {
                    let (there, _, end) = log(&mut *reader, &[seen + 1..u64::MAX], 0);
                    assert_eq!(there, (seen + 1..=end.position).collect::<Vec<_>>());
                    seen = end.position;
                }
            });
        });
        assert_eq!(home.open().unwrap().counts().unwrap().records, 150);
    });
}

#[test]
fn damage_is_noticed() {
    everywhere(|home| {
        let mut store = home.create(&about(64));
        put_ten(&mut *store);
        home.meddle(
            "UPDATE records SET payload = replace(payload, 'seed', 'sead') WHERE position = 3",
        );
        home.meddle(
            "UPDATE records SET text = substr(text, 1, length(text) - 1) WHERE position = 8",
        );
        let is_damaged = |error| matches!(error, Error::DamagedRecord { position: 3, .. });
        assert!(is_damaged(store.records(&[1, 3], false).unwrap_err()));
        assert!(is_damaged(store.each(false, &mut |_| Ok(())).unwrap_err()));
        assert!(is_damaged(store.read(&[0..9], 0, &mut |_| Ok(())).unwrap_err()));
        assert!(store.records(&[1, 2, 4], true).is_ok());
        let problems = store.check().unwrap();
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].contains("the record at position 3 does not match"), "{problems:?}");
        assert!(problems[1].contains("the record at position 8 has a text"), "{problems:?}");
    });
}

#[test]
fn what_it_says_of_itself_survives() {
    everywhere(|home| {
        let about = About { recipe: Some(crate::Recipe::named("text").unwrap()), ..about(64) };
        let mut store = home.create(&about);
        put_ten(&mut *store);
        drop(store);
        assert_eq!(home.open().unwrap().about(), &about);
        assert_eq!(home.open_reader().unwrap().about(), &about);
    });
}

#[test]
fn newer_versions_are_refused() {
    everywhere(|home| {
        drop(home.create(&about(64)));
        home.make_newer();
        for opened in [home.open(), home.open_reader()] {
            let error = opened.err().unwrap();
            let cause =
                std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
            assert!(
                format!("{error}: {cause}").contains("has version 99; this program"),
                "{error}: {cause}"
            );
        }
    });
}

#[test]
fn other_widths_are_refused() {
    everywhere(|home| {
        let mut store = home.create(&about(64));
        let wide = Entry::new("wide", random_signature(128, &mut numbers(1)));
        let error = change(&mut *store, &[put(&wide)]).unwrap_err();
        assert!(matches!(error, Error::WidthMismatch { stored: 64, given: 128 }));
        assert!(store.within(&wide.signature, 3, BySql::EveryRecord).is_err());
        assert_eq!(store.counts().unwrap(), Counts::default());
    });
}
