//! `lookalike cluster`: clusters of pairs and of collections.
#![allow(missing_docs)]

mod common;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Write,
};

use common::Place;
use serde_json::{Value, json};

/// A chain of four in which nobody is near two others but neighbors, and a pair. Nobody comes in the order of the ids.
const CHAIN: &str = "id_a,id_b,distance\nc,d,2\nb,a,1\nz,y,30\nb,c,9\n";
const COMPONENTS: &str = "id,cluster\na,a\nb,a\nc,a\nd,a\ny,y\nz,y\n";

fn read(place: &Place, name: &str) -> String {
    fs::read_to_string(place.path(name)).unwrap()
}

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn chains_are_components_or_stars() {
    let place = Place::new();
    place.write("pairs.csv", CHAIN);
    let said = place.expect(0, "cluster pairs.csv");
    assert_eq!(said.out, COMPONENTS);
    assert_eq!(said.err, "6 documents in 2 clusters, the largest has 4\n");

    // The first is a keeper and takes the second; the third is near no keeper and takes the fourth.
    let said = place.expect(0, "cluster pairs.csv --linkage star -q");
    assert_eq!(said.out, "id,cluster\na,a\nb,a\nc,c\nd,c\ny,y\nz,y\n");
    assert_eq!(said.err, "");

    let said = place.expect(0, "cluster pairs.csv --max-distance 2");
    assert_eq!(said.out, "id,cluster\na,a\nb,a\nc,c\nd,c\n");
    assert_eq!(said.err, "4 documents in 2 clusters, the largest has 2\n");

    // The last is paired with one that is not kept: it is alone, and not named.
    place.write("hub.csv", "id_a,id_b\na,b\nb,c\n");
    assert_eq!(place.expect(0, "cluster hub.csv --linkage star").out, "id,cluster\na,a\nb,a\n");
}

#[test]
fn every_format_says_the_same() {
    let place = Place::new();
    place.expect(0, "sign examples/docs.jsonl -o docs.sig -q");
    place.expect(0, "join docs.sig -o pairs.csv --radius 40 -q");
    let expected = place.expect(0, "cluster pairs.csv").out;
    assert!(expected.lines().count() > 20);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(read(&place, "pairs.csv").as_bytes()).unwrap();
    place.write("packed.csv.gz", packed.finish().unwrap());
    place.write("tabs.tsv", read(&place, "pairs.csv").replace(',', "\t"));
    for name in ["pairs.jsonl", "pairs.parquet"] {
        place.expect(0, &format!("join docs.sig -o {name} --radius 40 -q"));
    }
    for name in ["pairs.jsonl", "pairs.parquet", "packed.csv.gz", "tabs.tsv"] {
        assert_eq!(place.expect(0, &format!("cluster {name}")).out, expected, "{name}");
    }
    for name in ["pairs.csv", "pairs.jsonl", "packed.csv.gz"] {
        let input = fs::read(place.path(name)).unwrap();
        assert_eq!(place.run_with_input("cluster -", &input).out, expected, "{name}");
    }

    let lines = place.expect(0, "cluster pairs.csv --format json").out;
    let of_json: String = json_lines(&lines)
        .iter()
        .map(|row| {
            format!("{},{}\n", row["id"].as_str().unwrap(), row["cluster"].as_str().unwrap())
        })
        .collect();
    assert_eq!(format!("id,cluster\n{of_json}"), expected);
    for name in ["clusters.csv", "clusters.jsonl", "clusters.parquet"] {
        assert_eq!(place.expect(0, &format!("cluster pairs.csv -o {name}")).out, "");
    }
    assert_eq!(read(&place, "clusters.csv"), expected);
    assert_eq!(read(&place, "clusters.jsonl"), lines);
    // Others read them.
    let quality = "quality --labels clusters.csv --clusters clusters.parquet --format json";
    let report = json_lines(&place.expect(0, quality).out).remove(0);
    assert_eq!((&report["f1"], &report["ari"]), (&json!(1.0), &json!(1.0)));
}

#[test]
fn pairs_of_dedup_are_clusters_of_dedup() {
    let place = Place::new();
    let line = "dedup examples/docs.jsonl --pairs pairs.jsonl --clusters theirs.jsonl \
                --linkage components -q";
    place.expect(0, line);
    place.expect(0, "cluster pairs.jsonl -o ours.jsonl");
    let groups = |name: &str| -> BTreeSet<BTreeSet<String>> {
        let mut groups: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for row in json_lines(&read(&place, name)) {
            let id = row["id"].as_str().unwrap().to_owned();
            groups.entry(row["cluster"].to_string()).or_default().insert(id);
        }
        groups.into_values().collect()
    };
    assert_eq!(groups("ours.jsonl"), groups("theirs.jsonl"));
}

/// The components by looking through all pairs until nothing changes any more.
fn naive(pairs: &[(String, String)]) -> String {
    let ids = pairs.iter().flat_map(|(a, b)| [&**a, &**b]);
    let mut of: BTreeMap<&str, &str> = ids.map(|id| (id, id)).collect();
    let mut is_changing = true;
    while std::mem::take(&mut is_changing) {
        for (a, b) in pairs {
            let least = of[&**a].min(of[&**b]);
            for id in [a, b] {
                is_changing |= of.insert(id, least) != Some(least);
            }
        }
    }
    let size = |cluster: &str| of.values().filter(|&&other| other == cluster).count();
    let mut rows: Vec<(&str, &str)> =
        of.iter().map(|(&id, &cluster)| (cluster, id)).filter(|row| size(row.0) > 1).collect();
    rows.sort_unstable();
    let rows = rows.iter().map(|(cluster, id)| format!("{id},{cluster}\n"));
    std::iter::once("id,cluster\n".to_owned()).chain(rows).collect()
}

/// Numbers from a seed, the same every time.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % most
    }
}

#[test]
fn components_are_those_of_a_plain_search_whatever_the_order() {
    let place = Place::new();
    let table = |pairs: &[(String, String)]| -> String {
        pairs.iter().fold("id_a,id_b\n".to_owned(), |text, (a, b)| text + &format!("{a},{b}\n"))
    };
    let mut random = Random(7);
    for round in 0..12 {
        let (ids, count) = (20 + 15 * round, 5 + 12 * round);
        let mut id = || format!("{}é{}", random.below(3), random.below(ids));
        let mut pairs: Vec<_> = (0..count).map(|_| (id(), id())).collect();
        let expected = naive(&pairs);
        place.write("pairs.csv", table(&pairs));
        assert_eq!(place.run("cluster pairs.csv").out, expected, "round {round}");
        let star = place.run("cluster pairs.csv --linkage star").out;
        // Other orders, other sides, and some twice.
        for i in (1..pairs.len()).rev() {
            pairs.swap(i, random.below(i as u64 + 1) as usize);
        }
        pairs.iter_mut().step_by(2).for_each(|(a, b)| std::mem::swap(a, b));
        pairs.extend_from_within(..pairs.len() / 3);
        place.write("pairs.csv", table(&pairs));
        assert_eq!(place.run("cluster pairs.csv --threads 2").out, expected, "round {round}");
        assert_eq!(place.run("cluster pairs.csv --linkage star").out, star, "round {round}");
    }
}

#[test]
fn a_collection_has_clusters() {
    let place = Place::new();
    place.expect(0, "create docs");
    place.expect(0, "add docs examples/docs.jsonl");
    place.expect(0, "sign examples/docs.jsonl -o docs.sig -q");
    place.expect(0, "join docs.sig -o pairs.csv --radius 36 -q");
    let of_pairs = place.expect(0, "cluster pairs.csv --format json");
    let of_collection = place.expect(0, "cluster docs --radius 36 --format json");
    assert!(of_collection.err.contains(of_pairs.err.trim_end()), "{}", of_collection.err);
    assert!(of_collection.err.contains("(exact)"), "{}", of_collection.err);
    // The same members; the name is that of the oldest, which is the first of the file.
    let members = |text: &str| -> BTreeSet<Vec<String>> {
        let mut clusters: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for row in json_lines(text) {
            let of = |field: &str| row[field].as_str().unwrap().to_owned();
            clusters.entry(of("cluster")).or_default().push(of("id"));
        }
        clusters.into_values().collect()
    };
    assert_eq!(members(&of_collection.out), members(&of_pairs.out));
    let file = read(&place, "examples/docs.jsonl");
    let order: BTreeMap<String, usize> = json_lines(&file)
        .iter()
        .zip(0..)
        .map(|(row, at)| (row["id"].as_str().unwrap().to_owned(), at))
        .collect();
    let rows = json_lines(&of_collection.out);
    for row in &rows {
        let at = |field: &str| order[row[field].as_str().unwrap()];
        assert!(at("cluster") <= at("id"), "{row}");
    }
    let keys: Vec<(&str, &str)> = rows
        .iter()
        .map(|row| (row["cluster"].as_str().unwrap(), row["id"].as_str().unwrap()))
        .collect();
    assert!(keys.is_sorted());

    let said = place.expect(0, "cluster docs --radius 36 -o of.csv --format json -q");
    let summary = &json_lines(&said.out)[0];
    assert_eq!((&summary["documents"], &summary["exact"]), (&rows.len().into(), &true.into()));
}

#[test]
fn nothing_found_is_no_error() {
    let place = Place::new();
    place.write("none.csv", "id_a,id_b,distance\n");
    place.write("empty.jsonl", "");
    place.write("itself.csv", "id_a,id_b,distance\na,a,0\n");
    place.write("far.csv", "id_a,id_b,distance\na,b,9\n");
    for line in ["none.csv", "empty.jsonl", "itself.csv", "far.csv --max-distance 8"] {
        let said = place.expect(1, &format!("cluster {line}"));
        assert_eq!(said.out, "id,cluster\n", "{line}");
        assert_eq!(said.err, "no documents are in clusters\n", "{line}");
    }
    place.expect(0, "create empty");
    place.expect(1, "cluster empty --radius 3");
}

#[test]
fn columns_are_told_by_their_names() {
    let place = Place::new();
    let tables = [
        "score,id_b,text,id_a\n0,b,\"one, two\",a\n",
        "id_a,id_b,value\na,b,0\n",
        "a,b,0\n",
        "{\"id_b\": \"b\", \"more\": {\"x\": [1]}, \"id_a\": \"a\"}\n",
    ];
    for table in tables {
        let said = place.run_with_input("cluster -", table.as_bytes());
        assert_eq!((said.code, &*said.out), (0, "id,cluster\na,a\nb,a\n"), "{table}");
    }
    let said = place.run_with_input("cluster -", b"{\"id_a\": 7, \"id_b\": \"x \\\"y\\\",\"}\n");
    assert_eq!(said.out, "id,cluster\n7,7\n\"x \"\"y\"\",\",7\n");
}

#[test]
fn mistakes_have_a_way_out() {
    let place = Place::new();
    place.write("pairs.csv", CHAIN);
    place.write("short.csv", "id_a,id_b,distance\na,b,1\nc\n");
    place.write("quote.csv", "id_a,id_b,distance\na,b,1\na,\"c,1\nd,e,1\n");
    place.write("no-id.csv", "id_a,id_b,distance\na,b,1\na,,1\n");
    place.write("broken.jsonl", "{\"id_a\": 1, \"id_b\": 2}\n{\"id_a\": 1,\n");
    place.write("clusters.csv", "id,cluster\na,a\nb,a\n");
    place.write("plain.csv", "id_a,id_b\na,b\n");
    place.write("word.csv", "id_a,id_b,distance\na,b,1\na,b,near\n");
    place.write("rows.hex", "00000000000000ff\n");
    place.expect(0, "create news");
    for (line, problem, hint) in [
        ("short.csv", "short.csv:3: 1 column where the header has 3", "a quote is missing"),
        ("quote.csv", "quote.csv:3: 2 columns where", "a quote is missing"),
        ("no-id.csv", "no-id.csv:3: there is no `id_a` with an `id_b`", "a record is a pair"),
        ("broken.jsonl", "broken.jsonl:2: ", "JSON object"),
        ("clusters.csv", "clusters.csv:2: there is no `id_a`", "a record is a pair"),
        ("plain.csv --max-distance 3", "plain.csv:2: there is no `distance`", "`distance`"),
        ("word.csv --max-distance 3", "word.csv:3: distance `near` is no number", ""),
        ("rows.hex --radius 3", "holds signatures, not pairs", "lookalike join rows.hex"),
        ("pairs.csv --radius 3", "is no collection", "--max-distance"),
        ("pairs.csv --recall 0.9", "--radius", ""),
        ("pairs.csv --linkage complete", "complete", "components, star"),
        ("pairs.csv -o pairs.csv", "would be lost", "-o"),
        ("pairs.csv -o clusters.txt", "tells no format", ".csv, .jsonl or .parquet"),
        ("pairs.txt", "pairs.txt: No such file", ""),
        ("news", "need a radius", "--radius 36"),
        ("news --radius 3 --linkage star", "are components", "lookalike export news"),
        ("news --radius 3 --max-distance 3", "cannot be used with", ""),
        ("olds --radius 3", "no such collection", "lookalike create olds"),
        ("examples", "no collection", "lookalike create"),
    ] {
        let said = place.expect(2, &format!("cluster {line}"));
        assert!(said.err.contains(problem) && said.err.contains(hint), "{line}\n{}", said.err);
        assert_eq!(said.out, "", "{line}");
    }
    assert_eq!(read(&place, "pairs.csv"), CHAIN);
    let said = place.run_with_input("cluster -", b"id_a,id_b\na\n");
    assert!(said.code == 2 && said.err.contains("-:2: 1 column"), "{}", said.err);
}

#[test]
fn documents_are_no_pairs() {
    let place = Place::new();
    place.write("documents.csv", "id,text,source\n1,a b c,x\n2,d e f,y\n");
    let said = place.expect(2, "cluster documents.csv");
    assert!(said.err.contains("`id_a`"), "{}", said.err);
}
