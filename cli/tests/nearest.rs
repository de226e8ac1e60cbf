//! The nearest, by indexes that find most of them: graphs and slice lists, from outside.
#![allow(missing_docs)]

mod common;

use std::{collections::BTreeSet, fs};

use common::Place;
use serde_json::Value;

const ROWS: u64 = 4000;

/// Signatures of 128 bits around some hundred of them, some of them copies, and queries that are near them.
fn codes() -> Place {
    let place = Place::new();
    let mix = |i: u64| {
        let z = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) ^ z >> 31
    };
    let code = |i: u64| {
        let noise = |i: u64| mix(i) & mix(i + 1) & mix(i + 2);
        let row = if i % 100 == 99 { i - 1 } else { i };
        let (high, low) = (mix(i % 100 / 2), mix(i % 100 / 2 + 7777));
        format!("{:016x}{:016x}\n", high ^ noise(row * 64), low ^ noise(row * 64 + 32))
    };
    place.write("codes.hex", (0..ROWS).map(code).collect::<String>());
    place.write("some.hex", (ROWS..ROWS + 300).map(code).collect::<String>());
    place
}

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Which share of these hits is there, by query and distance.
fn share(found: &str, truth: &str) -> f64 {
    let pairs = |text: &str| -> BTreeSet<(String, String)> {
        json_lines(text)
            .iter()
            .map(|hit| (hit["query"].to_string(), hit["id"].to_string()))
            .collect()
    };
    let (found, truth) = (pairs(found), pairs(truth));
    truth.intersection(&found).count() as f64 / truth.len() as f64
}

#[test]
fn a_graph_and_slice_lists_find_the_share_that_is_enough() {
    let place = codes();
    let question = "--queries some.hex --nearest 5 --format json";
    let ask = |rest: &str| place.expect(0, &format!("search {rest} {question}"));
    let exact = ask("codes.hex").out;
    for (method, kind) in [("graph-24-64", "graph"), ("issl-10", "issl")] {
        let built = place.expect(0, &format!("build codes.hex -o x.idx --index {method}"));
        assert!(built.err.contains(&format!("x.idx: {kind}-")), "{}", built.err);
        let info = json_lines(&place.expect(0, "info x.idx --format json").out).remove(0);
        assert_eq!((&info["kind"], &info["rows"]), (&kind.into(), &ROWS.into()));
        assert!(info["bytes_a_row"].as_f64() > Some(16.0) && info["bits"] == 128, "{info}");
        assert_eq!(info["distinct"].as_u64(), Some(ROWS - ROWS / 100));

        // Nobody allowed it to miss any.
        let said = ask("x.idx");
        assert!(said.out == exact && said.err.contains("may miss some, so every row is compared"));
        let said = place.expect(2, &format!("search x.idx {question} --index {kind}"));
        assert!(said.err.contains("`--recall 0.9` says that some may be missing"), "{}", said.err);

        for file in ["x.idx", "codes.hex"] {
            let index = if file == "x.idx" { kind } else { method };
            let said = ask(&format!("{file} --index {index} --recall 0.8"));
            assert!(share(&said.out, &exact) > 0.75, "{method}: {}", share(&said.out, &exact));
            assert!(said.err.contains("(expected recall 0.") || said.err.contains("(exact)"));
        }
        // So few rows are sooner compared.
        assert!(ask("x.idx --recall 0.8").out == exact);
        let said = place.expect(2, &format!("search x.idx {question} --index multi"));
        assert!(said.err.contains(&format!("the index file is {kind}-")), "{}", said.err);
    }
    // Other signatures are refused, also where the index is passed over.
    place.write("codes.hex", fs::read_to_string(place.path("some.hex")).unwrap());
    let said = place.expect(2, &format!("search x.idx {question}"));
    assert!(said.err.contains("belongs to"), "{}", said.err);
}

#[test]
fn a_graph_says_what_it_finds_and_finds_copies() {
    let place = codes();
    place.expect(0, "build codes.hex -o x.idx --index graph-24");
    let text = place.expect(0, "info x.idx").out;
    assert!(text.contains("kind         graph") && text.contains("level    8: finds "), "{text}");
    let json = json_lines(&place.expect(0, "info x.idx --format json").out).remove(0);
    let curve = json["curve"].as_array().unwrap();
    assert!(curve.iter().all(|point| point["level"].is_u64() && point["recall_10"].is_f64()));

    let walk = "search x.idx --index graph --recall 0.5 --format json";
    let hits = json_lines(&place.expect(0, &format!("{walk} --id 98 --nearest 1")).out);
    assert_eq!((&hits[0]["id"], &hits[0]["distance"]), (&"99".into(), &0.into()));
    assert_eq!(hits[0]["exact"], false);
    assert!(hits[0]["expected_recall"].as_f64() >= Some(0.5));
    let hits = json_lines(&place.expect(0, &format!("{walk} --id 98 --radius 0")).out);
    assert_eq!(hits[0]["id"], "99");
    let told = place.expect(0, &format!("{walk} --id 98 -k 1 --explain")).err;
    assert!(told.contains("walks        of ") && told.contains("graph-24-128"), "{told}");
}

/// Slice lists are exact within a radius: nothing has to be allowed.
#[test]
fn slice_lists_answer_a_radius_exactly() {
    let place = codes();
    place.expect(0, "build codes.hex -o x.idx --index issl-8");
    let question = "--queries some.hex --radius 30 --format json";
    let said = place.expect(0, &format!("search x.idx {question}"));
    assert!(said.out == place.expect(0, &format!("search codes.hex {question}")).out);
    assert!(said.err.contains("(exact)") && !said.err.contains("note: "), "{}", said.err);
}

#[test]
fn damaged_files_and_other_signatures_are_refused() {
    let place = codes();
    for (method, section) in [("graph-8-16", "section `words`"), ("issl-8", "section `offsets`")] {
        place.expect(0, &format!("build codes.hex -o x.idx --index {method}"));
        let good = fs::read(place.path("x.idx")).unwrap();
        let name = method.split('-').next().unwrap();
        let search = format!("search x.idx --index {name} --id 7 -k 3 --recall 0.5");
        for (at, problem) in [(200, section), (good.len() - 9, "a damaged header"), (20, "prelude")]
        {
            let mut bytes = good.clone();
            bytes[at] ^= 1;
            place.write("x.idx", &bytes);
            for line in [&search, "info x.idx"] {
                let said = place.expect(2, line);
                assert!(said.err.contains(problem), "{}", said.err);
                assert!(said.err.contains("x.idx") && !said.err.contains("panicked"));
            }
        }
        place.write("x.idx", &good);
        let codes = fs::read(place.path("codes.hex")).unwrap();
        fs::copy(place.path("some.hex"), place.path("codes.hex")).unwrap();
        let said = place.expect(2, &search);
        assert!(said.err.contains("not to 300 signatures of 128 bits"), "{}", said.err);
        place.write("codes.hex", codes);
    }
}

#[test]
fn the_nearest_have_a_plan() {
    let place = Place::new();
    let code = |i: u64| format!("{:016x}\n", i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    place.write("codes.hex", (0..12_000).map(code).collect::<String>());
    let plan = |rest: &str| place.expect(0, &format!("plan codes.hex --nearest 10 {rest}")).out;
    let text = plan("");
    assert!(text.contains("scan: ") && text.contains("for the 10 nearest"), "{text}");
    let plans = json_lines(&plan("--recall 0.9 --format json"));
    assert_eq!(plans.len(), 2);
    let graph = plans.iter().find(|plan| plan["index"] == "graph-94-192").unwrap();
    assert_eq!((&graph["exact"], &graph["expected_recall"]), (&false.into(), &0.9.into()));
    assert!(graph["bytes"].as_u64() > Some(12_000 * 250));
    assert_eq!(json_lines(&plan("--recall 0.9 --memory 1M --format json")).len(), 1);
    place.expect(2, "plan codes.hex --nearest 10 --radius 3");
}

#[test]
fn mistakes_are_told_with_the_way_out() {
    let place = codes();
    for (line, problem) in [
        ("search codes.hex --id 7 -k 0", "a whole number from 1 on"),
        ("search codes.hex --id 7 -k 3 --index graph", "graph-94-192 may miss hits"),
        ("search codes.hex --id 7 -k 3 --index issl", "may miss some of the nearest"),
        ("build codes.hex -o x.idx --index graph-62-x", "graph, graph-62 or graph-62-96"),
        ("build codes.hex -o x.idx --index graph-3", "needs 4 to 256 neighbors"),
        ("build codes.hex -o x.idx --index issl-40", "8 to 28 bits"),
        ("build codes.hex -o x.idx --index graph --memory 9K", "graph-94-192 takes "),
        ("build codes.hex -o x.idx --index issl --key-bits 9", "are of tables"),
    ] {
        let said = place.expect(2, line);
        assert!(said.err.contains(problem), "lookalike {line}\n{}", said.err);
    }
}
