//! What only PostgreSQL has to answer for; `store/tests.rs` has what all stores do.

#![allow(clippy::single_range_in_vec_init, reason = "one range of positions is what is meant")]

use std::error::Error as _;

use super::*;
use crate::collection::{
    Entry,
    store::tests::{Home, about, numbers, put, random_signature},
};

/// Runs a test with a new collection, if there is a server for tests.
fn with_collection(bits: u32, test: impl Fn(&Home, Postgres)) {
    if let Some(home) = Home::schema() {
        let (url, schema) = home.url_and_schema();
        test(&home, Postgres::create(url, schema, &about(bits)).unwrap());
    }
}

fn random_entries(count: usize, bits: u32) -> Vec<Entry> {
    let mut next = numbers(7);
    (0..count)
        .map(|i| Entry {
            payload: Some(format!("{{\"url\": \"https://news.example/{i}\"}}")),
            ..Entry::new(format!("document {i}"), random_signature(bits, &mut next))
        })
        .collect()
}

fn put_all(store: &mut Postgres, entries: &[Entry]) {
    for batch in entries.chunks(10_000) {
        let changes: Vec<Change<'_>> = batch.iter().map(put).collect();
        store.begin().unwrap();
        store.apply(&changes, 0).unwrap();
        store.commit().unwrap();
    }
}

/// What an error and its causes say.
fn said(error: &Error) -> String {
    let cause = error.source().map(ToString::to_string).unwrap_or_default();
    format!("{error}: {cause}")
}

/// How PostgreSQL would answer a query.
fn plan(store: &mut Postgres, query: &str, parameters: &[Parameter<'_>]) -> String {
    let rows = store.rows(&format!("EXPLAIN {query}"), parameters).unwrap();
    let lines: Vec<&str> = rows.iter().map(|row| row.try_get(0).unwrap()).collect();
    lines.join("\n")
}

/// Ends the connection of a store, as a server does that is restarted.
fn disconnect(home: &Home, store: &mut Postgres) {
    let process: i32 = store.rows("SELECT pg_backend_pid()", &[]).unwrap()[0].try_get(0).unwrap();
    let end = "SELECT pg_terminate_backend($1, 5000)";
    home.client().query(end, &[&process]).unwrap();
}

#[test]
fn collections_are_created_once() {
    with_collection(64, |home, _| {
        let (url, schema) = home.url_and_schema();
        assert!(Postgres::exists(url, schema).unwrap());
        assert!(!Postgres::exists(url, "public").unwrap());
        let again = Postgres::create(url, schema, &about(64)).unwrap_err();
        assert!(said(&again).contains("there is a collection already"), "{}", said(&again));
        let none = Postgres::open(url, "public").unwrap_err();
        assert!(said(&none).contains("there is no collection"), "{}", said(&none));
    });
}

#[test]
fn slices_are_found_by_their_indexes() {
    with_collection(64, |_, mut store| {
        let entries = random_entries(30_000, 64);
        put_all(&mut store, &entries);
        store.reslice(Some(4)).unwrap();
        let bytes = entries[5].signature.to_bytes();
        let parameters: [Parameter<'_>; 2] = [(&Bits(&bytes), Type::BIT), (&3_i64, Type::INT8)];
        let plan = plan(&mut store, &by_slices(64, 4), &parameters);
        assert!((0..4).all(|slice| plan.contains(&format!("slice_4_{slice}"))), "{plan}");
        assert!(!plan.contains("Seq Scan"), "{plan}");
        let found = store.within(&entries[5].signature, 3, BySql::Slices(4)).unwrap();
        assert_eq!(found[0], (6, 0));
    });
}

#[test]
fn slices_that_were_left_behind_are_dropped() {
    with_collection(64, |home, mut store| {
        store.reslice(Some(2)).unwrap();
        home.meddle("CREATE INDEX slice_mine ON records (time)");
        home.meddle("CREATE INDEX slice_7_0 ON records ((substring(signature FROM 1 FOR 8)))");
        home.meddle(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'slice_7_0'::regclass",
        );
        let named = "SELECT count(*) FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid \
            WHERE indrelid = 'records'::regclass AND relname LIKE 'slice%'";
        assert_eq!(store.count(named).unwrap(), 4);
        store.reslice(Some(2)).unwrap();
        assert_eq!(store.count(named).unwrap(), 3);
        store.reslice(Some(7)).unwrap();
        assert_eq!(store.count(named).unwrap(), 8);
        store.reslice(None).unwrap();
        assert_eq!(store.count(named).unwrap(), 1);
    });
}

#[test]
fn slices_are_made_by_one_at_a_time() {
    with_collection(64, |home, mut store| {
        let (url, schema) = home.url_and_schema();
        let mut other = Postgres::open(url, schema).unwrap();
        store
            .with_slices_locked(|_| {
                let error = other.reslice(Some(2)).unwrap_err();
                assert!(said(&error).contains("another process"), "{}", said(&error));
                Ok(())
            })
            .unwrap();
        other.reslice(Some(2)).unwrap();
    });
}

#[test]
fn what_postgres_cannot_keep_is_refused() {
    with_collection(64, |_, mut store| {
        let good = &random_entries(1, 64)[0];
        let id = Entry { id: "a\0b".to_owned(), ..good.clone() };
        let payload = Entry { payload: Some("{\"\0\": 1}".to_owned()), ..good.clone() };
        for (bad, names) in [(&id, "id of `a\\0b`"), (&payload, "payload of `document 0`")] {
            store.begin().unwrap();
            let error = store.apply(&[put(good), put(bad)], 0).unwrap_err();
            assert!(said(&error).contains(names), "{}", said(&error));
            store.commit().unwrap();
        }
        assert_eq!(store.counts().unwrap(), Counts::default());
    });
}

#[test]
fn what_failed_is_not_committed() {
    with_collection(64, |_, mut store| {
        let entry = &random_entries(1, 64)[0];
        store.begin().unwrap();
        store.apply(&[put(entry)], 0).unwrap();
        // An id is there once: PostgreSQL refuses, and with it all of the transaction.
        let twice = Entry::new("twice", entry.signature.clone());
        assert!(store.apply(&[put(&twice), put(&twice)], 0).is_err());
        assert!(store.commit().is_err());
        assert_eq!(store.counts().unwrap(), Counts::default());
        put_all(&mut store, std::slice::from_ref(entry));
        assert_eq!(store.end().unwrap().position, 1);
    });
}

#[test]
fn transactions_are_not_nested() {
    with_collection(64, |_, mut store| {
        store.begin().unwrap();
        assert!(store.begin().is_err() && store.purge(0).is_err());
        assert!(store.reslice(Some(2)).is_err());
        store.commit().unwrap();
        assert!(store.commit().is_err());
        assert_eq!(store.begin().unwrap(), End::default());
    });
}

#[test]
fn lost_connections_are_made_again() {
    with_collection(64, |home, mut store| {
        put_all(&mut store, &random_entries(10, 64));
        disconnect(home, &mut store);
        assert_eq!(store.end().unwrap().position, 10);
        disconnect(home, &mut store);
        assert_eq!(store.read(&[0..5], 0, &mut |_| Ok(())).unwrap().position, 10);
        disconnect(home, &mut store);
        assert_eq!(store.begin().unwrap().position, 10);

        // But not within a transaction, which is lost with them.
        store.apply(&[Change::Remove(2)], 0).unwrap();
        disconnect(home, &mut store);
        let error = store.commit().unwrap_err();
        assert!(said(&error).contains("connection to the database is lost"), "{}", said(&error));
        assert_eq!(store.counts().unwrap(), Counts { records: 10, removed: 0 });
        assert_eq!(store.begin().unwrap().position, 10);
    });
}

#[test]
fn a_log_that_goes_on_behind_its_end_is_noticed() {
    with_collection(64, |home, mut store| {
        put_all(&mut store, &random_entries(10, 64));
        home.meddle("UPDATE about SET value = '8' WHERE name = 'end'");
        assert_eq!(store.check().unwrap(), ["the log ends at 8, but there is a change at 10"]);
    });
}

#[test]
fn backups_are_made_by_pg_dump() {
    with_collection(64, |_, mut store| {
        let error = store.backup(Path::new("copy")).unwrap_err();
        assert!(said(&error).contains("pg_dump --schema"), "{}", said(&error));
    });
}
