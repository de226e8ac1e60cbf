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
    assert_eq!(methods.len(), 13);
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
    assert_eq!(part("unbatched").len(), 3);
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

/// Signatures in clusters, as lines of hexadecimal digits: each is a center with some bits flipped.
fn clusters(rows: usize, seed: u64) -> String {
    let mut state = seed;
    let mut random = || {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    let word = |center: u64, i: u64| (center * 4 + i + 1).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let mut line = || {
        let center = random() % 300;
        let flipped =
            |i: u64| format!("{:016x}", word(center, i) ^ (random() & random() & random()));
        (0..4).map(flipped).collect::<String>() + "\n"
    };
    (0..rows).map(|_| line()).collect()
}

#[test]
fn nearest_measures_the_graph_beside_the_scan() {
    let place = Place::new();
    place.write("rows.hex", clusters(4000, 1));
    place.write("a.hex", clusters(50, 2));
    place.write("b.hex", clusters(50, 3));
    let line = "bench nearest rows.hex --queries b.hex --tune a.hex --index rows.graph --repeats 1";
    let said = place.expect(0, &format!("{line} --growth --output out --format json --quiet"));
    assert_eq!(said.err, "");
    let lines: Vec<Value> =
        said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let part = |name: &str| lines.iter().filter(|line| line["part"] == name).collect::<Vec<_>>();
    assert!(part("workload")[0]["build_seconds"].as_f64().unwrap() > 0.0);
    // The scan and 22 levels.
    let settings = part("settings");
    assert_eq!((settings.len(), &settings[0]["setting"]), (23, &"scan".into()));
    for row in &settings {
        assert!(row["ms"].as_f64().unwrap() > 0.0 && row["batch_ms"].as_f64().unwrap() > 0.0);
        assert!(row["cdr"].as_f64().unwrap() > 0.5, "{row}");
    }
    assert!(settings[22]["recall"].as_f64().unwrap() > 0.99);
    assert_eq!((part("promised").len(), part("chosen").len(), part("growth").len()), (4, 4, 5));
    assert_eq!(part("growth")[4]["rows"], 4000);
    assert!(fs::read(place.path("out/nearest.json")).unwrap().starts_with(b"{"));
    let svg = fs::read_to_string(place.path("out/nearest-growth.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("<polyline"));

    // The graph is there now, and a file for numpy has the same rows.
    let said = place.expect(0, line);
    for words in ["from its file", "| graph-64 ", "What --recall delivers", "| cdr 0.985 "] {
        assert!(said.out.contains(words), "{words}\n{}", said.out);
    }
    place.expect(0, "convert rows.hex rows.npy");
    place.expect(0, "convert b.hex b.npy");
    let line = "bench nearest rows.npy --queries b.npy --asked 20 --index rows.graph --lines";
    assert_eq!(place.expect(0, line).out.lines().count(), 22);
    let said = place.expect(0, &format!("{line} --setting graph-64"));
    let one: Value = serde_json::from_str(&said.out).unwrap();
    let names: Vec<&str> = one.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, ["setting", "ms", "recall", "cdr"]);
    assert_eq!(one["setting"], "graph-64");
}

#[test]
fn nearest_says_what_is_wrong() {
    let place = Place::new();
    place.write("rows.hex", clusters(300, 1));
    let line = "bench nearest rows.hex --queries rows.hex --asked 5 --repeats 1";
    place.expect(0, &format!("{line} --index rows.graph"));
    for (further, words) in [
        ("--index rows.graph --shape graph-16-32", "is a graph-94-192"),
        ("--index rows.graph --lines --setting graph-65", "`all`, or one of `graph-8`"),
        (
            "--index rows.graph --tune rows.hex --peers python3 --cache peers",
            "folder of the sources",
        ),
        ("--lines", "--index"),
        ("--shape graph-1", "4 to 256 neighbors"),
    ] {
        let said = place.expect(2, &format!("{line} {further}"));
        assert!(said.err.contains(words), "{words}\n{}", said.err);
    }
}
