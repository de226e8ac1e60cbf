//! `lookalike bench`, at a size that takes no time.
#![allow(missing_docs)]

mod common;

use std::fs;

use common::Place;
use serde_json::Value;

#[test]
fn table2_measures_everything_and_draws_it() {
    let place = Place::new();
    let said = place.expect(
        0,
        "bench table2 --rows 20000 --queries 500 --repeats 1 --output out --format json --quiet",
    );
    assert_eq!(said.err, "");
    let lines: Vec<Value> =
        said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let part = |name: &str| lines.iter().filter(|line| line["part"] == name).collect::<Vec<_>>();

    let methods = part("methods");
    assert_eq!(methods.len(), 12);
    for method in &methods {
        for question in ["all", "first"] {
            let rate = &method[question];
            assert!(rate["queries_a_second"].as_f64().unwrap() > 0.0);
            assert!(rate["recall"].as_f64().unwrap() > 0.9, "{method}");
            assert!(method["exact"] == false || rate["recall"] == 1.0, "{method}");
        }
    }
    assert_eq!(methods[0]["all"]["times_bphs"], 1.0);
    assert_eq!(part("agreement")[0]["agree"], true);
    assert_eq!(part("unbatched").len(), 2);
    assert_eq!(part("weak_bits").len(), 3);
    assert_eq!(part("growth").len(), 16);
    assert_eq!(part("published").len(), 7);
    assert!(part("limit")[0]["share"].as_f64().unwrap() > 0.0);

    let json: Value =
        serde_json::from_slice(&fs::read(place.path("out/table2.json")).unwrap()).unwrap();
    assert_eq!(
        (&json["workload"]["rows"], &json["workload"]["queries"]),
        (&20_000.into(), &500.into())
    );
    for figure in ["weak-bits.svg", "growth.svg"] {
        let svg = fs::read_to_string(place.path("out").join(figure)).unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("<polyline"), "{figure}");
    }
}

#[test]
fn table2_tells_people_in_tables() {
    let place = Place::new();
    let said = place.expect(0, "bench table2 --rows 2000 --queries 50 --repeats 1 --threads 2");
    for words in
        ["| BPHS-4 ", "| multi-2x4 ", "Beside Table 2 of the thesis", "no independent evidence"]
    {
        assert!(said.out.contains(words), "{words}\n{}", said.out);
    }
    place.expect(2, "bench table2 --rows 10");
}

#[test]
fn batch_measures_both_questions_and_draws_them() {
    let place = Place::new();
    let said = place.expect(
        0,
        "bench batch --queries 1000,2000 --rows 10000,20000 --repeats 1 --output out --format json --quiet",
    );
    assert_eq!(said.err, "");
    let lines: Vec<Value> =
        said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // Every batch with the largest file, every file with the largest batch; five methods.
    assert_eq!(lines.len(), 3 * 5);
    for line in &lines {
        for question in ["all", "first"] {
            let rate = &line[question];
            assert!(rate["rows_a_second"].as_f64().unwrap() > 0.0);
            assert!(rate["recall"].as_f64().unwrap() > 0.9, "{line}");
            assert!(line["exact"] == false || rate["recall"] == 1.0, "{line}");
            assert_eq!(rate["wrong"], 0);
        }
    }
    for point in lines.chunks(5) {
        let of = |name: &str| point.iter().find(|line| line["name"] == name).unwrap();
        for question in ["all", "first"] {
            let checksums = ["BPHS-4", "BPHS-10", "stream join"]
                .map(|name| of(name)[question]["checksum"].as_str().unwrap());
            assert!(checksums.iter().all(|checksum| checksum == &checksums[0]), "{checksums:?}");
        }
    }
    assert!(fs::read(place.path("out/batch.json")).unwrap().starts_with(b"["));
    for figure in ["batch-queries.svg", "batch-rows.svg"] {
        let svg = fs::read_to_string(place.path("out").join(figure)).unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("<polyline"), "{figure}");
    }
}

#[test]
fn batch_tells_people_in_a_table() {
    let place = Place::new();
    let said = place.expect(0, "bench batch --queries 1000 --rows 3000 --repeats 1");
    for words in ["| stream join ", "| PSM, sorted ", "found the same pairs"] {
        assert!(said.out.contains(words), "{words}\n{}", said.out);
    }
    place.expect(2, "bench batch --rows 10");
}

#[test]
fn issl_repeats_the_tables_of_the_papers() {
    let place = Place::new();
    place.expect(0, "sign examples/docs.jsonl --recipe web --margins -o docs.sig");
    let line = "bench issl docs.sig --queries docs.sig --asked 3 --repeats 1 --output out";
    let said = place.expect(0, &format!("{line} --format json --quiet"));
    let lines: Vec<Value> =
        said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let part = |name: &str| lines.iter().filter(|line| line["part"] == name).collect::<Vec<_>>();
    assert_eq!((part("workload").len(), part("growth").len()), (1, 5));
    let published = part("published");
    assert_eq!(published.len(), 15);
    for row in published.iter().chain(&part("weakest")) {
        let within = |name: &str| (0.0..=1.0).contains(&row[name].as_f64().unwrap());
        assert!(within("cdr") && within("recall") && within("proven"), "{row}");
    }
    // The more lists, the more of the rows; in the end all.
    let met: Vec<f64> = part("touched").iter().map(|row| row["share"].as_f64().unwrap()).collect();
    assert!(met.is_sorted() && met.last() == Some(&1.0), "{met:?}");
    assert!(fs::read(place.path("out/issl.json")).unwrap().starts_with(b"{"));
    let svg = fs::read_to_string(place.path("out/issl-growth.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("<polyline"));
    let said = place.expect(0, line);
    for words in ["Table 1 of the paper of 2015", "| (2, 1) ", "Weak bits first", "Figure 3"] {
        assert!(said.out.contains(words), "{words}\n{}", said.out);
    }
    place.expect(2, "bench issl docs.sig");
}
