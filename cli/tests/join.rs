//! `lookalike join`: pairs from files of signatures.
#![allow(missing_docs)]

mod common;

use std::{collections::HashMap, fs};

use common::Place;
use serde_json::Value;

/// Five documents: two copies, one a bit away, two bits away, and one far from all.
const ROWS: &str = "\
00000000000000ff\tfirst
00000000000000ff\tcopy
00000000000000fe\tnear
f0f0f0f0f0f0f0f0\tfar
00000000000000f0\tfour
";

#[test]
fn pairs_are_written_once_in_order() {
    let place = Place::new();
    place.write("rows.hex", ROWS);
    let said = place.expect(0, "join rows.hex --radius 1");
    let pairs = "id_a,id_b,distance\nfirst,copy,0\nfirst,near,1\ncopy,near,1\n";
    assert_eq!(said.out, pairs);
    assert!(said.err.contains("3 pairs within 1 bit") && said.err.contains("all there are"));

    let said = place.expect(0, "join rows.hex -o pairs.csv --radius 1 --format json --quiet");
    assert_eq!(
        (fs::read_to_string(place.path("pairs.csv")).unwrap(), said.err),
        (pairs.into(), String::new())
    );
    let summary: Value = serde_json::from_str(&said.out).unwrap();
    for (field, value) in [("rows", 5), ("pairs", 3), ("copies", 1)] {
        assert_eq!(summary[field], value, "{summary}");
    }
    assert_eq!((&summary["exact"], &summary["expected_recall"]), (&true.into(), &1.0.into()));

    let lines = place.expect(0, "join rows.hex --radius 4 --format json --threads 2").out;
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 6);
    assert_eq!(lines[0], serde_json::json!({"id_a": "first", "id_b": "copy", "distance": 0}));
}

#[test]
fn new_is_joined_with_old() {
    let place = Place::new();
    place.write("old.hex", ROWS);
    place.write("new.hex", "f0f0f0f0f0f0f0f1\ta\nf0f0f0f0f0f0f0f1\tb\n0000000000000000\tc\n");
    let said = place.expect(0, "join new.hex old.hex --radius 4");
    assert_eq!(said.out, "id_a,id_b,distance\na,far,1\nb,far,1\nc,four,4\n");
    let said = place.expect(1, "join new.hex old.hex --radius 0");
    assert_eq!(said.out, "id_a,id_b,distance\n");
    place.expect(0, "join new.hex old.hex --radius 4 -o pairs.jsonl -q");
    assert_eq!(fs::read_to_string(place.path("pairs.jsonl")).unwrap().lines().count(), 3);
}

#[test]
fn every_format_has_the_same_pairs() {
    let place = Place::new();
    place.write("rows.hex", ROWS);
    for name in ["pairs.csv", "pairs.jsonl", "pairs.parquet"] {
        place.expect(0, &format!("join rows.hex -o {name} --radius 4 --memory 1M --quiet"));
    }
    let parquet = fs::read(place.path("pairs.parquet")).unwrap();
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    let text = |name: &str| fs::read_to_string(place.path(name)).unwrap();
    let csv: Vec<String> = text("pairs.csv").lines().skip(1).map(str::to_owned).collect();
    let jsonl: Vec<String> = text("pairs.jsonl")
        .lines()
        .map(|line| {
            let pair: Value = serde_json::from_str(line).unwrap();
            let id = |name: &str| pair[name].as_str().unwrap().to_owned();
            format!("{},{},{}", id("id_a"), id("id_b"), pair["distance"])
        })
        .collect();
    assert_eq!(csv, jsonl);
}

#[test]
fn signed_documents_are_joined_by_id() {
    let place = Place::new();
    place.expect(0, "sign examples/docs.jsonl -o news.sig --quiet");
    let out = place.expect(0, "join news.sig --radius 80").out;
    let found: Vec<&str> = out.lines().skip(1).collect();
    assert!(!found.is_empty());
    // The same pairs as the search finds.
    let search =
        place.expect(0, "search news.sig --queries news.sig --radius 80 --format json").out;
    let mut pairs: HashMap<(String, String), u64> = HashMap::new();
    for line in search.lines() {
        let hit: Value = serde_json::from_str(line).unwrap();
        let id = |name: &str| hit[name].as_str().unwrap().to_owned();
        pairs.insert((id("query"), id("id")), hit["distance"].as_u64().unwrap());
    }
    for line in &found {
        let fields: Vec<&str> = line.split(',').collect();
        let key = (fields[0].to_owned(), fields[1].to_owned());
        assert_eq!(pairs.get(&key), Some(&fields[2].parse().unwrap()), "{line}");
    }
    let twice = pairs.keys().filter(|(query, id)| query != id).count();
    assert_eq!(twice, 2 * found.len());
}

#[test]
fn mistakes_have_a_way_out() {
    let place = Place::new();
    place.write("rows.hex", ROWS);
    place.write("wide.hex", "0000000000000000ffffffffffffffff\n");
    for (line, problem, hint) in [
        ("join rows.hex -o pairs.txt --radius 1", "tells no format", ".csv, .jsonl or .parquet"),
        ("join rows.hex wide.hex --radius 1", "128 bits", "same recipe"),
        ("join rows.hex --radius 64 --at-most 3", "more than the 3", "--radius"),
        ("join rows.hex --radius 1 --memory 1K", "may only use", "--memory"),
        ("join rows.hex -o rows.hex --radius 1", "tells no format", ".csv"),
        ("join rows.hex --radius 1 --recall 2", "0.01 to 1", ""),
        ("join rows.hex", "--radius", ""),
    ] {
        let said = place.expect(2, line);
        assert!(said.err.contains(problem) && said.err.contains(hint), "{line}\n{}", said.err);
    }
    assert!(!place.path("pairs.txt").exists());
    place.expect(0, "sign examples/docs.jsonl -o text.sig --quiet");
    place.expect(0, "sign examples/docs.jsonl -o thesis.sig --recipe text --bits 512 --quiet");
    let said = place.expect(2, "join text.sig thesis.sig --radius 3");
    assert!(said.err.contains("recipe") || said.err.contains("bits"), "{}", said.err);
}

#[test]
fn the_bench_finds_the_same_both_ways() {
    let place = Place::new();
    let said = place.expect(0, "bench join --rows 20000 --repeats 1 --format json --quiet");
    let rows: Vec<Value> =
        said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0]["checksum"], rows[1]["checksum"]);
    assert!(rows[0]["pairs"].as_u64().unwrap() > 1000);
    assert!(place.expect(0, "bench join --rows 2000 --repeats 1").out.contains("times as fast"));
}
