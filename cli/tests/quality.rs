//! `lookalike quality` and `lookalike calibrate`, on labels small enough to count by hand.
#![allow(missing_docs)]

mod common;

use std::{fs, path::Path};

use common::Place;
use serde_json::Value;

fn place() -> Place {
    let place = Place::new();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/quality");
    for file in fs::read_dir(fixtures).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), place.path(file.file_name().to_str().unwrap())).unwrap();
    }
    place
}

fn json(place: &Place, line: &str) -> Value {
    let said = place.expect(0, &format!("{line} --format json --quiet"));
    serde_json::from_str(said.out.lines().next().unwrap()).unwrap()
}

fn near(value: &Value, expected: f64) -> bool {
    (value.as_f64().unwrap() - expected).abs() < 1e-9
}

/// Labelled are 3 pairs of ferries and one of breads; found are two of these and three that are not.
#[test]
fn pairs_are_scored_against_clusters() {
    let place = place();
    let report = json(&place, "quality --labels gold.jsonl --pairs pairs.csv");
    assert!(near(&report["precision"], 0.4) && near(&report["recall"], 0.5), "{report}");
    assert!(near(&report["f1"], 4.0 / 9.0) && near(&report["cluster_recall"], 1.0 / 3.0));
    assert_eq!(
        (&report["only_in_labels"]["count"], &report["only_in_found"]["first"][0]),
        (&1.into(), &"moth".into())
    );
    let interval = report["recall_interval"].as_array().unwrap();
    assert!(interval[0].as_f64() < Some(0.5) && interval[1].as_f64() > Some(0.5));

    // The copy of the bread is not labelled, but alike: it does not count.
    place.write("found.csv", "id_a,id_b\nferry-1,ferry-2\nbread-1,bread-copy\nowl,bread-1\n");
    let report = json(&place, "quality --labels gold.jsonl --pairs found.csv --ignore-above 0.8");
    assert!(near(&report["precision"], 0.5) && report["ignored_pairs"] == 1, "{report}");
}

#[test]
fn clusters_are_scored_against_clusters_and_pairs() {
    let place = place();
    let report = json(&place, "quality --labels gold.jsonl --clusters clusters.jsonl");
    assert!(near(&report["precision"], 0.5) && near(&report["recall"], 0.5), "{report}");
    // 4 pairs in each, 2 in both, of 21: (2 - 16/21) / (4 - 16/21).
    assert!(near(&report["ari"], 26.0 / 68.0), "{report}");
    let ignored =
        json(&place, "quality --labels gold.jsonl --clusters clusters.jsonl --ignore-above 0.8");
    assert!(
        ignored["ignored_pairs"].as_u64() > Some(0) && ignored["precision"].as_f64() > Some(0.5)
    );

    let report = json(&place, "quality --labels gold.tsv --clusters clusters.jsonl");
    assert!(near(&report["precision"], 0.25) && near(&report["recall"], 0.5), "{report}");
    assert!(report["ari"].is_null());
    let report =
        json(&place, "quality --labels gold.tsv --min-value 0.8 --clusters clusters.jsonl");
    assert!(near(&report["recall"], 1.0) && report["labelled_pairs"] == 1, "{report}");
    let itself = json(&place, "quality --labels gold.jsonl --clusters gold.jsonl");
    assert!(
        ["precision", "recall", "f1", "ari", "cluster_recall"]
            .iter()
            .all(|name| near(&itself[name], 1.0))
    );
}

/// Four documents, three of them in English.
#[test]
fn labels_are_in_tables_of_every_kind() {
    let place = place();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    fs::copy(fixtures.join("table.parquet"), place.path("table.parquet")).unwrap();
    place.write("found.csv", "id,cluster\n10,a\n11,a\n12,\n13,\n");
    let report =
        json(&place, "quality --labels table.parquet --cluster-field lang --clusters found.csv");
    assert_eq!(
        (&report["labelled_pairs"], &report["found_pairs"]),
        (&3.into(), &1.into()),
        "{report}"
    );
    assert_eq!((&report["documents"], &report["only_in_found"]["count"]), (&4.into(), &0.into()));
}

#[test]
fn people_are_told_in_lines() {
    let place = place();
    let said = place.expect(0, "quality --labels gold.jsonl --pairs pairs.csv");
    for words in [
        "precision        0.4000",
        "2 right, of 5 found and 4 labelled",
        "only in found    1 document: moth",
    ] {
        assert!(said.out.contains(words), "{words}\n{}", said.out);
    }
}

#[test]
fn mistakes_are_named_with_the_way_out() {
    let place = place();
    place
        .write("twice.jsonl", "{\"id\": 1, \"cluster\": \"a\"}\n{\"id\": 1, \"cluster\": \"b\"}\n");
    place.write("broken.jsonl", "{\"id\": 1, \"cluster\": \"a\"}\n{\"id\": 1,\n");
    place.write("no-cluster.jsonl", "{\"id\": 1}\n");
    place.write("no-value.csv", "id_a,id_b\na,b\n");
    place.write("word.tsv", "a\tb\thigh\n");
    for (line, words) in [
        (
            "--labels twice.jsonl --pairs pairs.csv",
            "lookalike: twice.jsonl:2: `1` is in cluster `b`, but before",
        ),
        ("--labels broken.jsonl --pairs pairs.csv", "lookalike: broken.jsonl:2: "),
        (
            "--labels no-cluster.jsonl --pairs pairs.csv",
            "no-cluster.jsonl:1: there is no field `cluster`",
        ),
        (
            "--labels no-value.csv --min-value 0.5 --pairs pairs.csv",
            "no-value.csv:2: this pair has no `value`",
        ),
        ("--labels word.tsv --pairs pairs.csv", "word.tsv:1: value `high` is no number"),
        ("--labels gold.jsonl --pairs clusters.jsonl", "give them with `--clusters`"),
        ("--labels gold.jsonl --clusters pairs.csv", "give them with `--pairs`"),
        ("--labels gold.jsonl --pairs pairs.csv --ignore-above 0.8", "there is no text of `moth`"),
        ("--labels missing.jsonl --pairs pairs.csv", "missing.jsonl"),
        ("--labels examples/stories/orchard.txt --pairs pairs.csv", "hint: they are .jsonl"),
    ] {
        let said = place.expect(2, &format!("quality {line}"));
        assert!(said.err.contains(words), "{line}\n{}", said.err);
    }
    place.expect(2, "quality --labels gold.jsonl");
}

#[test]
fn an_index_is_scored_against_the_scan() {
    let place = Place::new();
    place.expect(0, "sign examples/docs.jsonl --margins --bits 64 -o docs.sig");
    let exact = json(&place, "quality docs.sig --index multi --radius 5 --queries 50");
    assert!(near(&exact["recall"], 1.0) && exact["queries"] == 50, "{exact}");
    assert!(exact["neighbors"].as_u64() > Some(0));
    let psm = json(&place, "quality docs.sig --index psm-1-2 --radius 12 --queries 1000");
    assert!(psm["recall"].as_f64() < Some(1.0) && psm["precision"] == 1.0, "{psm}");
    assert_eq!(psm["queries"], 144);
    let nearest = json(&place, "quality docs.sig --index permuted-4x20 --nearest 10");
    let cdr = nearest["cdr"].as_f64().unwrap();
    assert!((0.3..=1.0).contains(&cdr), "{nearest}");
    assert!(
        place
            .expect(0, "quality docs.sig --index multi --nearest 3")
            .out
            .contains("CDR@3            1.0000")
    );
    place.expect(2, "quality docs.sig");
}

/// The pages of the examples are in several versions: the labels are there.
#[test]
fn calibration_finds_what_suits_labels() {
    let place = Place::new();
    let line = "calibrate examples/docs.jsonl --labels examples/docs.jsonl --cluster-field page";
    let lines = |line: &str| -> Vec<Value> {
        let said = place.expect(0, &format!("{line} --format json --quiet"));
        said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let all = lines(line);
    let chosen = all.last().unwrap();
    assert!(chosen["what"] == "chosen" && chosen["f1"].as_f64() > Some(0.8), "{chosen}");
    assert!(
        all.iter().all(|one| one["f1"].as_f64().unwrap() <= chosen["f1"].as_f64().unwrap() + 0.001)
    );
    // Every recipe without a check, and with one.
    assert!(all.len() >= 19 && all.iter().any(|one| one["check"].is_null()));
    assert!(chosen["held_out"].is_null());
    let points = chosen["curve"].as_array().unwrap().len() as u64;
    assert_eq!(points, chosen["bits"].as_u64().unwrap() + 1);

    let precise = lines(&format!("{line} --precision 0.97"));
    assert!(precise.last().unwrap()["precision"].as_f64() >= Some(0.97));
    let halves = lines(&format!("{line} --recall 0.9 --split half"));
    let chosen = halves.last().unwrap();
    assert!(
        chosen["recall"].as_f64() >= Some(0.9) && chosen["held_out"]["f1"].as_f64() > Some(0.5),
        "{chosen}"
    );
}

#[test]
fn calibration_labels_by_itself_and_draws() {
    let place = Place::new();
    let said = place.expect(0, "calibrate examples/docs.jsonl --similarity 0.6 -o curve.html");
    for words in ["| recipe", "chosen: ", "where it was chosen", "| radius |"] {
        assert!(said.out.contains(words), "{words}\n{}", said.out);
    }
    assert!(said.err.contains("144 documents, all compared"), "{}", said.err);
    let html = fs::read_to_string(place.path("curve.html")).unwrap();
    assert!(html.starts_with("<!doctype html>") && html.contains("<polyline"));
    // What is checked by the truth itself is never wrong.
    let checked = json_of(&place, "calibrate examples/docs.jsonl --similarity 0.65", "chosen");
    assert!(checked["f1"].as_f64() > Some(0.99) && checked["precision"] == 1.0, "{checked}");

    place.expect(0, "calibrate examples/docs.jsonl --figure6 -o six.svg");
    let svg = fs::read_to_string(place.path("six.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("cosine of 0.9"));
}

fn json_of(place: &Place, line: &str, what: &str) -> Value {
    let said = place.expect(0, &format!("{line} --format json --quiet"));
    let lines = said.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.into_iter().find(|line| line["what"] == what).unwrap()
}

#[test]
fn calibration_names_what_is_missing() {
    let place = place();
    place.write(
        "other.jsonl",
        "{\"id\": \"x\", \"cluster\": \"a\"}\n{\"id\": \"y\", \"cluster\": \"a\"}\n",
    );
    for (line, words) in [
        ("gold.jsonl --labels other.jsonl", "there is nothing to calibrate on"),
        ("gold.jsonl --min-words 1000", "there are no two documents"),
        ("gold.jsonl -o curve.png", "figures are .svg or .html"),
        ("gold.jsonl --similarity 0", "above 0"),
    ] {
        let said = place.expect(2, &format!("calibrate {line}"));
        assert!(said.err.contains(words), "{line}\n{}", said.err);
    }
    let said = place.expect(0, "calibrate gold.jsonl --labels gold.tsv --min-value 0.6");
    assert!(
        said.err.contains("7 documents, all compared: 2 pairs belong together"),
        "{}",
        said.err
    );
}
