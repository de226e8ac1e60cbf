//! The program from outside: commands, results, errors and exit codes.
#![allow(missing_docs)]

mod common;

use std::fs;

use common::Place;
use serde_json::Value;

fn signed() -> Place {
    let place = Place::new();
    place.expect(0, "sign examples/docs.jsonl -o docs.sig --payload");
    place
}

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn signing_does_not_depend_on_threads_or_parts() {
    let place = Place::new();
    // Enough documents for many chunks, in one file and in five.
    let documents = fs::read_to_string(place.path("examples/docs.jsonl")).unwrap();
    let lines: Vec<String> = (0..20)
        .flat_map(|copy| {
            documents
                .lines()
                .map(move |l| l.replacen("\"id\": \"", &format!("\"id\": \"{copy}/"), 1))
        })
        .collect();
    place.write("all.jsonl", lines.join("\n"));
    fs::create_dir(place.path("parts")).unwrap();
    for (number, part) in lines.chunks(lines.len() / 5 + 1).enumerate() {
        place.write(&format!("parts/{number}.jsonl"), part.join("\n"));
    }
    for (name, line) in [
        ("a", "sign all.jsonl --margins --threads 1"),
        ("b", "sign all.jsonl --margins --threads 7"),
        ("c", "sign parts --margins --threads 3"),
        ("d", "sign parts/*.jsonl --margins --threads 2"),
    ] {
        place.expect(0, &format!("{line} -o {name}.sig"));
    }
    let first = fs::read(place.path("a.sig")).unwrap();
    assert!(first.len() > 800_000);
    for other in ["b.sig", "c.sig", "d.sig"] {
        assert!(first == fs::read(place.path(other)).unwrap(), "{other} differs");
    }
}

#[test]
fn every_question_is_answered() {
    let place = signed();
    let said = place.expect(0, "search docs.sig --id 2.10.x/about.md --radius 60 --format json");
    let hits = json_lines(&said.out);
    assert!(!hits.is_empty() && hits.iter().all(|hit| hit["distance"].as_u64().unwrap() <= 60));
    assert!(hits.iter().all(|hit| hit["id"] != "2.10.x/about.md" && hit["exact"] == true));
    assert!(
        hits.iter()
            .all(|hit| hit["query"] == "2.10.x/about.md" && hit["payload"]["page"].is_string())
    );

    let nearest = place.expect(0, "search docs.sig --id 2.10.x/about.md --nearest 4 --format json");
    let nearest = json_lines(&nearest.out);
    assert_eq!(nearest.len(), 4);
    assert!(nearest.is_sorted_by_key(|hit| hit["distance"].as_u64()));

    let first =
        place.expect(0, "search docs.sig --id 2.10.x/about.md --radius 256 --first --format json");
    assert_eq!(json_lines(&first.out).len(), 1);
    let ten = place.expect(0, "search docs.sig --text \"Pulsar is a messaging system\"");
    assert_eq!(ten.out.lines().count(), 10);
    place.expect(1, "search docs.sig --text \"quite another thing altogether\" --radius 0");
}

#[test]
fn a_query_file_asks_for_each_of_its_documents() {
    let place = signed();
    let documents =
        place.expect(0, "search docs.sig --queries examples/docs.jsonl --radius 0 --format json");
    let signatures = place.expect(0, "search docs.sig --queries docs.sig --radius 0 --format json");
    assert_eq!(documents.out, signatures.out);
    place.expect(0, "convert docs.sig docs.npy");
    place.expect(0, "convert docs.sig docs.hex");
    let hex = place.expect(0, "search docs.sig --queries docs.hex --radius 0 --format json");
    assert_eq!(documents.out, hex.out);
    let npy = place.expect(0, "search docs.npy --queries docs.npy --radius 0");
    assert_eq!(npy.out.lines().count(), hex.out.lines().count());
    let story =
        place.expect(0, "search docs.sig --file examples/stories/harbour.txt -k 1 --format json");
    assert_eq!(json_lines(&story.out)[0]["query"], "examples/stories/harbour.txt");
}

#[test]
fn signatures_survive_every_conversion() {
    let place = signed();
    for (from, to) in [
        ("docs.sig", "a.parquet"),
        ("a.parquet", "b.hex"),
        ("b.hex", "c.sig"),
        ("c.sig", "d.npy"),
        ("d.npy", "e.sig"),
        ("docs.sig", "docs.npy"),
    ] {
        place.expect(0, &format!("convert {from} {to}"));
    }
    let info = |file: &str| {
        json_lines(&place.expect(0, &format!("info {file} --format json")).out).remove(0)
    };
    let (first, last) = (info("docs.sig"), info("e.sig"));
    assert_eq!(first["rows"], 144);
    for field in ["rows", "distinct", "bits"] {
        assert_eq!(first[field], last[field], "{field}");
    }
    let hits = |file: &str| {
        let said =
            place.expect(0, &format!("search {file} --queries docs.npy --radius 3 --format json"));
        json_lines(&said.out).iter().map(|hit| hit["distance"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(hits("docs.sig"), hits("e.sig"));
    assert_eq!(hits("a.parquet"), hits("b.hex"));
}

#[test]
fn no_signatures_survive_as_none() {
    let place = Place::new();
    place.write("x.jsonl", "");
    place.expect(0, "sign x.jsonl -o x.sig");
    for (from, to) in [("x.sig", "x.npy"), ("x.npy", "X.PARQUET"), ("X.PARQUET", "y.sig")] {
        place.expect(0, &format!("convert {from} {to}"));
    }
    let info = json_lines(&place.expect(0, "info y.sig --format json").out).remove(0);
    assert_eq!((info["rows"].as_u64(), info["bits"].as_u64()), (Some(0), Some(256)));
}

#[test]
fn topsig_needs_its_terms() {
    let place = Place::new();
    let said = place.expect(2, "sign examples/docs.jsonl --recipe topsig-1024 -o x.sig");
    assert!(said.err.contains("hint: make them with `lookalike terms"), "{}", said.err);
    assert!(!place.path("x.sig").exists());
    place.expect(0, "terms examples/docs.jsonl --recipe topsig-1024 -o docs.terms");
    place.expect(
        0,
        "sign examples/docs.jsonl --recipe topsig-1024 --terms docs.terms -o x.sig --margins",
    );
    place
        .expect(0, "search x.sig --terms docs.terms --text \"function worker state storage\" -k 3");
    // Statistics of something else give other bits, so they are refused.
    place.expect(0, "terms examples/stories --recipe topsig-1024 -o stories.terms");
    let said =
        place.expect(2, "search x.sig --terms stories.terms --text \"function worker\" -k 3");
    assert!(said.err.contains("but those given are"), "{}", said.err);
    let info = place.expect(0, "info docs.terms --format json");
    assert_eq!(json_lines(&info.out)[0]["documents"], 144);
    // Little memory gives the same statistics.
    place.expect(0, "terms examples/docs.jsonl --recipe topsig-1024 --memory 1 -o little.terms");
    assert!(
        fs::read(place.path("docs.terms")).unwrap()
            == fs::read(place.path("little.terms")).unwrap()
    );
}

#[test]
fn a_bad_record_stops_or_is_skipped_as_the_user_says() {
    let place = Place::new();
    place.write("news.jsonl", "{\"text\": \"one two three four\"}\n{\"body\": \"x\"}\n{broken\n{\"text\": \"five six seven\"}\n");
    let said = place.expect(2, "sign news.jsonl -o news.sig");
    assert!(said.err.contains("news.jsonl:2: "), "{}", said.err);
    assert!(said.err.contains("hint: ") && said.err.contains("body"), "{}", said.err);
    assert!(!place.path("news.sig").exists(), "nothing is there that is not complete");
    let said = place.expect(3, "sign news.jsonl -o news.sig --on-error skip");
    assert!(said.err.contains("skipped: 2 bad records"), "{}", said.err);
    assert!(said.err.contains("news.jsonl:3"), "{}", said.err);
    let said = place.expect(0, "search news.sig --text \"five six seven\" --radius 0");
    assert_eq!(said.out, "0\tnews.jsonl:4\n");
}

#[test]
fn documents_without_features_get_no_signature() {
    let place = Place::new();
    place.write("x.jsonl", "{\"text\": \"\"}\n{\"text\": \"... !\"}\n{\"text\": \"近似重複\"}\n{\"text\": \"مرحبا\"}\n");
    let said = place.expect(0, "sign x.jsonl -o x.sig --format json");
    let summary = &json_lines(&said.out)[0];
    assert_eq!((summary["rows"].as_u64(), summary["unsigned"].as_u64()), (Some(2), Some(2)));
    assert!(said.err.contains("2 documents, as x.jsonl:1, x.jsonl:2"), "{}", said.err);
    let info = place.expect(0, "info x.sig --format json");
    assert_eq!(json_lines(&info.out)[0]["distinct"], 2);
    let said = place.expect(2, "search x.sig --text \"!\" -k 1");
    assert!(said.err.contains("has no words"), "{}", said.err);
}

#[test]
fn mixing_recipes_is_an_error_that_names_both() {
    let place = signed();
    place.expect(0, "sign examples/docs.jsonl --recipe code -o code.sig");
    let said = place.expect(2, "search docs.sig --queries code.sig --radius 3");
    assert!(said.err.contains("`code`") && said.err.contains("`text`"), "{}", said.err);
    let said = place.expect(2, "search docs.sig --signature 00ff00ff --radius 3");
    assert!(said.err.contains("32 bits") && said.err.contains("256 bits"), "{}", said.err);
    place.expect(0, "convert docs.sig docs.npy");
    let said = place.expect(2, "search docs.npy --text \"some words\" --radius 3");
    assert!(said.err.contains("--signature"), "{}", said.err);
}

#[test]
fn mistakes_are_told_with_the_way_out() {
    let place = signed();
    for (line, problem) in [
        ("sign nowhere.jsonl -o x.sig", "nowhere.jsonl"),
        ("sign examples/docs.jsonl -o x.npy", "lookalike convert x.sig x.npy"),
        ("sign examples/docs.jsonl -o no/such/folder/x.sig", "there is no folder `no/such/folder`"),
        (
            "sign examples/docs.jsonl --recipe texts -o x.sig",
            "text, minhash-256, web, code, topsig-1024",
        ),
        ("sign examples/docs.jsonl --bits 100 -o x.sig", "multiple of 64"),
        ("sign examples/docs.jsonl --terms docs.sig -o x.sig", "does not weigh by term statistics"),
        ("search nowhere.sig --text x", "nowhere.sig"),
        ("search examples/docs.jsonl --text x", "sign them first"),
        ("sign examples/docs.jsonl -o examples/docs.jsonl", "is one of the inputs"),
        ("sign examples/docs.jsonl -o -", "standard input"),
        ("sign examples/docs.jsonl -o /dev/null", "regular file"),
        ("info examples", "is a folder"),
        ("search docs.sig --text x -k 2 --first", "cannot be used with"),
        (
            "compare examples/docs.jsonl:1 examples/docs.jsonl:999",
            "no document at examples/docs.jsonl:999",
        ),
        ("search docs.sig --id nobody --radius 3", "ids look like"),
        (
            "search docs.sig --id functions-overview.md --radius 3",
            "is it `2.11.x/functions-overview.md`?",
        ),
        ("search docs.sig --signature xyz", "xyz"),
        ("search docs.sig --text x --first", "--radius"),
        ("compare examples/docs.jsonl examples/stories/harbour.txt", "more than one document"),
        ("compare --in examples/docs.jsonl a b", "no document `a`"),
        ("convert docs.sig docs.txt", ".sig, .npy, .hex or .parquet"),
        ("info examples/README.md", "examples/README.md"),
        ("recipe nobody", "text, minhash-256, web, code"),
        ("sign examples/docs.jsonl --recipe minhash-256 --margins -o x.sig", "have no margins"),
        ("build docs.sig -o docs.npy", "name it `-o docs.idx`"),
        ("build docs.sig -o no/folder/x.idx", "there is no folder"),
        ("build docs.sig -o x.idx --index scan", "a scan needs no index file"),
        (
            "build docs.sig -o x.idx --index tree",
            "there are auto, scan, pieces, blocks, multi, psm, permuted, graph, issl",
        ),
        ("build docs.sig -o x.idx --index multi-2y4", "multi-3 or multi-2x4"),
        ("build docs.sig -o x.idx --index pieces-300", "hint: leave the numbers out"),
        ("build docs.sig -o x.idx --index blocks --radius 40", "hint: `multi` is exact"),
        ("build docs.sig -o x.idx --index permuted", "cannot be kept in a file"),
        ("build docs.sig -o x.idx --stored split", "cannot store"),
        ("build docs.sig -o x.idx --memory 1K", "hint: give it more with `--memory`"),
        ("build docs.sig -o x.idx --memory lots", "sizes are written as 500M or 4G"),
        ("build docs.sig -o x.idx --key-bits 40", "40"),
        ("build examples/docs.jsonl -o x.idx", "sign them first"),
        ("search docs.sig --text x --index tree --radius 3", "there are auto, scan"),
        ("search docs.sig --text x --memory 4X --radius 3", "500M or 4G"),
        ("search docs.sig --text x --recall 1.5 --radius 3", "a number from 0 to 1"),
        ("search docs.sig --text x --index psm --radius 30", "`--recall 0.9` says"),
        ("search docs.sig --text x --index permuted-2x9 --radius 30", "`--recall 0.9` says"),
        ("search docs.sig --text x --index permuted-2x9 -k 3", "looks at 9 of 144 rows"),
        ("search docs.sig --text x --index permuted-0 -k 3", "permuted-16 or permuted-16x512"),
        ("search docs.sig --text x --index permuted --memory 9K -k 3", "permuted-16 takes 27.6 KB"),
        ("plan docs.sig", "--radius"),
        ("plan docs.sig --radius 3 --memory 4X", "500M or 4G"),
        ("plan docs.sig --radius 3 --recall 2", "a number from 0 to 1"),
        ("plan examples/docs.jsonl --radius 3", "sign them first"),
        ("search docs.sig --text x --index multi --memory 1K --radius 3", "fits into 1.0 KB"),
    ] {
        let said = place.expect(2, line);
        assert!(said.err.contains(problem), "lookalike {line}\n{}", said.err);
        assert!(!said.err.contains("panicked"), "{}", said.err);
    }
    let mut command = place.command("info docs.sig");
    let output = command.env("LOOKALIKE_SIMD", "mmx").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("LOOKALIKE_SIMD"));
}

#[test]
fn a_damaged_signature_file_is_not_believed() {
    let place = signed();
    let mut bytes = fs::read(place.path("docs.sig")).unwrap();
    bytes[500] ^= 1;
    place.write("docs.sig", &bytes);
    let said = place.expect(2, "search docs.sig --text x -k 1");
    assert!(said.err.contains("section `signatures` does not match its checksum"), "{}", said.err);
}

/// Whatever the index, the answers are those of the scan, to the byte.
#[test]
fn an_index_answers_as_the_scan_does() {
    let place = signed();
    place.expect(0, "sign examples/docs.jsonl --recipe web -o web.sig");
    place.expect(0, "convert web.sig web.npy");
    for (sig, radius, methods) in [
        ("docs.sig", 12, &["auto", "multi", "multi-3", "pieces", "blocks", "blocks-14-2"][..]),
        ("web.sig", 3, &["auto", "multi-2x3", "pieces-4", "blocks"]),
        ("web.npy", 3, &["auto", "multi-2x4 --stored whole --key-bits 5"]),
        ("web.sig", 3, &["multi-2x4 --stored split --key-bits 20"]),
    ] {
        let ask = |file: &str, more: &str| {
            let question = format!("--queries {sig} --radius {radius} --format json {more}");
            let said = place.expect(0, &format!("search {file} {question}"));
            (said.out, said.err)
        };
        let (expected, summary) = ask(sig, "--index scan");
        assert!(summary.contains("(exact)") && expected.lines().count() > 144);
        for method in methods {
            let line = format!("build {sig} -o x.idx --radius {radius} --index {method}");
            let built = place.expect(0, &line);
            assert!(built.err.contains("x.idx: "), "{}", built.err);
            assert!(ask("x.idx", "") == (expected.clone(), summary.clone()), "{method}");
            assert!(ask("x.idx", "--index scan").0 == expected);
            if !method.contains(' ') {
                assert!(ask(sig, &format!("--index {method}")).0 == expected, "{method} in memory");
            }
        }
    }
}

#[test]
fn an_index_answers_every_question() {
    let place = signed();
    place.expect(0, "build docs.sig -o docs.idx");
    for question in [
        "--id 2.10.x/about.md --radius 60",
        "--id 2.10.x/about.md --nearest 4",
        "--text \"Pulsar is a messaging system\" -k 3",
        "--file examples/stories/harbour.txt -k 2",
    ] {
        let scan = place.expect(0, &format!("search docs.sig {question}")).out;
        assert_eq!(place.expect(0, &format!("search docs.idx {question}")).out, scan);
    }
    let first = "--id 2.10.x/about.md --radius 256 --first --format json";
    let first = place.expect(0, &format!("search docs.idx {first}")).out;
    assert_eq!(json_lines(&first).len(), 1);
}

/// What was measured, what was predicted of it, and what else there is.
#[test]
fn a_search_is_explained() {
    let place = signed();
    place.expect(0, "build docs.sig -o docs.idx");
    let explain = |rest: &str| place.expect(0, &format!("search {rest} --explain -q")).err;
    let count = |text: &str, word: &str| text.matches(word).count();
    let radius = "--id 2.10.x/about.md --radius 60";
    let opened = explain(&format!("docs.idx {radius}"));
    for line in ["index ", "why ", "opened ", "tables ", "memory ", "probes ", "search ", "query "]
    {
        assert!(opened.contains(&format!("\n{line}")) || opened.starts_with(line), "{opened}");
    }
    for words in ["multi-", "the index file has it", "queries a second", "answers      exact"] {
        assert!(opened.contains(words), "{opened}");
    }
    assert_eq!((count(&opened, "(predicted: "), count(&opened, "\ninstead ")), (2, 2), "{opened}");

    let scanned = explain(&format!("docs.sig {radius}"));
    assert!(scanned.contains("why          rows and queries are so few"), "{scanned}");
    assert_eq!((count(&scanned, "(predicted: "), count(&scanned, "\ninstead ")), (1, 2));
    assert!(!scanned.contains("instead      scan"), "{scanned}");

    let built = explain(&format!("docs.sig {radius} --index multi"));
    assert!(built.contains("the numbers are the usual ones"), "{built}");
    assert_eq!(count(&built, "(predicted: "), 3, "time, memory and time to build: {built}");

    let permuted = explain(&format!("docs.sig {radius} --index permuted-9x20 --recall 0.1"));
    assert!(permuted.contains("orders       9, a query looks at 20 rows"), "{permuted}");
    assert_eq!((count(&permuted, "(predicted: "), count(&permuted, "\ninstead ")), (0, 2));

    // The planner has nothing to say of the nearest.
    let nearest = explain("docs.sig --id 2.10.x/about.md -k 3");
    assert_eq!((count(&nearest, "predicted"), count(&nearest, "instead")), (0, 0), "{nearest}");
}

/// Signatures of 64 bits, with near-copies, enough of them for the planner to be asked.
fn many_codes(place: &Place) -> usize {
    let mix = |i: u64| (i ^ i >> 7).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let flipped = |i: u64| 1_u64 << (i % 61) | 1 << (i % 53);
    let code = |i: u64| format!("{:016x}\n", mix(i / 2) ^ (flipped(i) * (i % 2)));
    let rows = 12_000;
    place.write("codes.hex", (0..rows).map(code).collect::<String>());
    place.write("some.hex", (0..rows).step_by(29).map(code).collect::<String>());
    rows as usize
}

#[test]
fn plans_say_what_suits() {
    let place = Place::new();
    let rows = many_codes(&place);
    let plan = |rest: &str| place.expect(0, &format!("plan {rest}")).out;
    let text = plan("codes.hex --radius 3");
    assert_eq!(text.matches("  instead: ").count(), 5, "{text}");
    for words in [" a query, exact", "bytes a row", "built in ", "keys of "] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(place.path("cache/lookalike").is_dir(), "costs are kept");
    assert_eq!(plan("codes.hex --radius 3 --first"), text);

    let json = json_lines(&plan("codes.hex --radius 3 --alternatives 99 --format json"));
    assert!(json.iter().any(|plan| plan["index"] == "scan"));
    assert!(json.iter().any(|plan| plan["index"].as_str().unwrap().starts_with("multi-")));
    for plan in &json {
        assert_eq!((&plan["exact"], plan["expected_recall"].as_f64()), (&true.into(), Some(1.0)));
        let bytes = plan["bytes"].as_u64().unwrap();
        assert_eq!(bytes == 0, plan["index"] == "scan");
        let each = bytes as f64 / rows as f64;
        assert!((plan["bytes_a_row"].as_f64().unwrap() - each).abs() < 1e-6);
    }
    let bounded = plan("codes.hex --radius 3 --memory 1K --format json");
    let [scan] = &json_lines(&bounded)[..] else { panic!("{bounded}") };
    assert_eq!(scan["index"], "scan");
    let wide = plan("codes.hex --radius 64 --alternatives 18446744073709551615");
    assert!(wide.contains("scan"), "{wide}");

    // Of an index, its signatures count.
    place.expect(0, "build codes.hex -o codes.idx");
    assert_eq!(plan("codes.idx --radius 3"), text);
}

/// The machine may change what is planned, never what is found.
#[test]
fn what_is_planned_answers_as_the_scan_does() {
    let place = Place::new();
    many_codes(&place);
    let question = "--queries some.hex --radius 3 --format json";
    let ask = |rest: &str| place.expect(0, &format!("search {rest} {question}")).out;
    let expected = ask("codes.hex --index scan");
    assert!(expected.lines().count() > 600);
    for flags in ["", "--radius 3", "--radius 2 --memory 2M", "--index multi"] {
        let built = place.expect(0, &format!("build codes.hex -o codes.idx {flags}"));
        assert!(built.err.contains("exact for every radius") || flags.contains("--radius"));
        assert!(ask("codes.idx") == expected, "{flags}");
    }
    assert!(ask("codes.hex --index multi") == expected);
    let said = place.expect(2, "build codes.hex -o codes.idx --memory 9K");
    assert!(said.err.contains("no such index over 12000 signatures fits into 9.0 KB"));
}

#[test]
fn permuted_orders_are_built_for_a_search() {
    let place = signed();
    let question = "--queries docs.sig --radius 20 --format json";
    let ask = |rest: &str| place.expect(0, &format!("search docs.sig {question} {rest}"));
    let exact = ask("").out;
    // More looks than rows miss none.
    assert!(ask("--index permuted").out == exact);
    let said = ask("--index permuted-2x9 --recall 0.1");
    let hits = json_lines(&said.out);
    assert!(hits.iter().all(|hit| hit["exact"] == false && hit["distance"].as_u64() <= Some(20)));
    assert!((144..=exact.lines().count()).contains(&hits.len()));
    assert!(said.err.contains("(expected recall 0."), "{}", said.err);
    assert_eq!(ask("--index permuted-2x9 --recall 0.1 --threads 1").out, said.out);
    place.expect(0, "build docs.sig -o docs.idx");
    let said = place.expect(2, &format!("search docs.idx {question} --index permuted"));
    assert!(said.err.contains("which is not what `--index` says"), "{}", said.err);
}

#[test]
fn an_index_that_may_miss_some_says_so() {
    let place = Place::new();
    place.expect(0, "sign examples/docs.jsonl --recipe web --margins -o web.sig");
    let question = "--queries web.sig --radius 8 --format json";
    let exact = json_lines(&place.expect(0, &format!("search web.sig {question}")).out).len();
    for method in ["psm-1-2", "pieces-2"] {
        let line = format!("search web.sig {question} --index {method}");
        let said = place.expect(2, &line);
        assert!(said.err.contains("may miss hits within 8 bits"), "{}", said.err);
        let said = place.expect(0, &format!("{line} --recall 0.1"));
        let hits = json_lines(&said.out);
        assert!(hits.len() <= exact && hits.iter().all(|hit| hit["exact"] == false));
        let recall = hits[0]["expected_recall"].as_f64().unwrap();
        assert!((0.1..=1.0).contains(&recall) && said.err.contains("(expected recall 0."));
        assert!(!said.err.contains("note: "), "{}", said.err);
        let said = place.expect(0, &format!("{line} --recall 0.999"));
        assert!(said.err.contains("note: that is less than `--recall 0.999`"), "{}", said.err);

        // An index file that is not enough for the question is passed over, unless it was asked for.
        place.expect(0, &format!("build web.sig -o web.idx --index {method}"));
        let said = place.expect(0, &format!("search web.idx {question}"));
        assert_eq!(json_lines(&said.out).len(), exact);
        assert!(said.err.contains("so every row is compared"), "{}", said.err);
        place.expect(2, &format!("search web.idx {question} --index {method}"));
        place.expect(0, &format!("search web.idx {question} --recall 0.5"));
        let other = place.expect(2, &format!("search web.idx {question} --index multi"));
        assert!(other.err.contains(&format!("the index file is {method}")), "{}", other.err);
    }
}

/// Margins come with stored rows, with a document's text and with none.
#[test]
fn queries_bring_their_margins() {
    let place = Place::new();
    place.expect(0, "sign examples/docs.jsonl --recipe web --margins -o with.sig");
    place.expect(0, "sign examples/docs.jsonl --recipe web -o without.sig");
    place.expect(0, "build without.sig -o x.idx --index psm-1-3");
    let ask = |queries: &str| {
        let line =
            format!("search x.idx --queries {queries} --radius 8 --recall 0.1 --format json");
        json_lines(&place.expect(0, &line).out)
    };
    let (with, without) = (ask("with.sig"), ask("without.sig"));
    assert_eq!(with, ask("examples/docs.jsonl"), "a text is signed with its margins");
    assert_ne!(with, without, "margins change what is looked at");
    place
        .expect(0, "search with.sig --id 2.10.x/about.md --radius 20 --index psm-1-4 --recall 0.1");
}

#[test]
fn an_index_and_its_signatures_belong_together() {
    let place = signed();
    place.expect(0, "build docs.sig -o docs.idx");
    let info = json_lines(&place.expect(0, "info docs.idx --format json").out).remove(0);
    assert_eq!(
        (info["kind"].as_str(), info["signatures"].as_str()),
        (Some("index"), Some("docs.sig"))
    );
    assert_eq!((info["rows"].as_u64(), info["distinct"].as_u64()), (Some(144), Some(109)));
    let search = "search docs.idx --id 2.10.x/about.md --radius 60";
    let expected = place.expect(0, search).out;

    // Moved, together or apart.
    fs::create_dir(place.path("new")).unwrap();
    fs::rename(place.path("docs.idx"), place.path("new/docs.idx")).unwrap();
    let moved = search.replace("docs.idx", "new/docs.idx");
    let said = place.expect(2, &moved);
    assert!(
        said.err.contains("new/docs.idx belongs to new/docs.sig, which is not there"),
        "{}",
        said.err
    );
    fs::copy(place.path("docs.sig"), place.path("new/docs.sig")).unwrap();
    assert_eq!(place.expect(0, &moved).out, expected);
    place.expect(0, "build docs.sig -o new/docs.idx");
    fs::remove_file(place.path("new/docs.sig")).unwrap();
    assert_eq!(place.expect(0, &moved).out, expected, "found in its old place");

    // Others.
    place.expect(0, "sign examples/stories -o docs.sig");
    let said = place.expect(2, &moved);
    assert!(
        said.err.contains("belongs to ../docs.sig with 144 signatures of 256 bits"),
        "{}",
        said.err
    );
    assert!(said.err.contains("not to 3 signatures of 256 bits"), "{}", said.err);
    assert!(said.err.contains("hint: ") && said.err.contains("lookalike build"), "{}", said.err);
}

#[test]
fn a_damaged_index_is_not_believed() {
    let place = signed();
    place.expect(0, "build docs.sig -o docs.idx");
    let good = fs::read(place.path("docs.idx")).unwrap();
    for (at, problem) in
        [(200, "section `offsets`"), (good.len() - 9, "a damaged header"), (20, "prelude")]
    {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        place.write("docs.idx", &bytes);
        for line in ["search docs.idx --id 2.10.x/about.md -k 1", "info docs.idx"] {
            let said = place.expect(2, line);
            assert!(
                said.err.contains("docs.idx") && !said.err.contains("panicked"),
                "{}",
                said.err
            );
            assert!(said.err.contains(problem), "{}", said.err);
        }
    }
    let said = place.expect(2, "convert docs.idx docs.npy");
    assert!(said.err.contains("docs.idx"), "{}", said.err);
}

#[test]
fn standard_input_is_read() {
    let place = Place::new();
    let said = place.run_with_input(
        "sign - -o x.sig",
        b"{\"id\": 7, \"text\": \"one two three\"}\n{\"text\": \"four\"}",
    );
    assert_eq!(said.code, 0, "{}", said.err);
    let hits = place.expect(0, "search x.sig --text \"one two three\" --radius 0");
    assert_eq!(hits.out, "0\t7\n");
    let lines = place.run_with_input("sign - --lines -o y.sig", b"one two three\nfour five six\n");
    assert_eq!(lines.code, 0, "{}", lines.err);
    let hits = place.expect(0, "search y.sig --text \"four five six\" --radius 0");
    assert_eq!(hits.out, "0\t-:2\n");
}

#[test]
fn likeness_is_explained() {
    let place = Place::new();
    let line = "compare examples/stories/harbour.txt examples/stories/harbour-later.txt";
    let said = place.expect(0, line);
    assert!(said.out.contains("[-Eleven-]{+Twelve+}"), "{}", said.out);
    let said = place.expect(0, &format!("{line} --format json"));
    let likeness = &json_lines(&said.out)[0];
    let jaccard = likeness["jaccard"].as_f64().unwrap();
    assert!((0.9..1.0).contains(&jaccard));
    assert!(
        (likeness["cosine"].as_f64().unwrap() - likeness["estimated_cosine"].as_f64().unwrap())
            .abs()
            < 0.1
    );
    assert_eq!(likeness["only_a"], 6);
    // What a distance stands for depends on the signatures.
    let said = place.expect(0, &format!("{line} --recipe minhash-256 --format json"));
    let likeness = &json_lines(&said.out)[0];
    let estimated = likeness["estimated_jaccard"].as_f64().unwrap();
    assert!((likeness["jaccard"].as_f64().unwrap() - estimated).abs() < 0.1, "{likeness}");
    let said = place.expect(0, &format!("{line} --recipe minhash-256"));
    assert!(said.out.contains("as of a jaccard of "), "{}", said.out);
    let same = place.expect(0, "compare --text \"a b c\" \"A  b, c\" --format json");
    assert_eq!(json_lines(&same.out)[0]["distance"], 0);
    let lines =
        place.expect(0, "compare examples/docs.jsonl:1 examples/docs.jsonl:2 --format json");
    assert_ne!(json_lines(&lines.out)[0]["a"], json_lines(&lines.out)[0]["b"]);
}

#[test]
fn passages_point_into_their_documents() {
    let place = Place::new();
    place.write("mine.json", r#"{"name": "mine", "passages": {"from": 40, "to": 80}}"#);
    place.expect(0, "sign examples/stories --recipe mine.json -o x.sig");
    let story = fs::read_to_string(place.path("examples/stories/harbour.txt")).unwrap();
    let at = story.find("Wind speeds").unwrap() as u64;
    let query = "have to be inspected before containers could be unloaded again. Wind speeds of up to 34 metres a second were";
    let said = place.expect(0, &format!("search x.sig --text \"{query}\" -k 1 --format json"));
    let hit = &json_lines(&said.out)[0];
    assert!(hit["id"].as_str().unwrap().starts_with("examples/stories/harbour"));
    let passage =
        hit["passage"]["start"].as_u64().unwrap()..hit["passage"]["end"].as_u64().unwrap();
    assert!(passage.contains(&at) && passage.end < story.len() as u64, "{passage:?}");

    // A document is asked for as it was stored: passage by passage.
    let line = "search x.sig --file examples/stories/harbour.txt --radius 0 --format json";
    let hits = json_lines(&place.expect(0, line).out);
    assert!(hits.len() >= 3 && hits.iter().all(|hit| hit["query_passage"] == hit["passage"]));
    let queries = place.expect(0, &line.replace("--file", "--queries")).out;
    assert_eq!(json_lines(&queries), hits);
    let others =
        place.expect(0, "search x.sig --id examples/stories/harbour.txt -k 9 --format json").out;
    assert!(json_lines(&others).iter().all(|hit| hit["id"] != "examples/stories/harbour.txt"));
}

/// A line number means the line, whatever ids and blank lines there are.
#[test]
fn a_document_is_named_by_its_line() {
    let place = Place::new();
    place.write(
        "x.jsonl",
        "{\"id\": \"p\", \"text\": \"a b c\"}\n\n{\"id\": \"q\", \"text\": \"a b d\"}\n",
    );
    let said = place.expect(0, "compare x.jsonl:1 x.jsonl:3 --format json");
    assert_eq!(json_lines(&said.out)[0]["only_b"], 1);
    assert!(
        place.expect(2, "compare x.jsonl:1 x.jsonl:2").err.contains("no document at x.jsonl:2")
    );
}

#[test]
fn ids_with_tabs_and_lines_stay_on_theirs() {
    let place = Place::new();
    place.write("x.jsonl", "{\"id\": \"tab\\there\\nline\", \"text\": \"a b c\"}\n");
    place.expect(0, "sign x.jsonl -o x.sig");
    place.expect(0, "convert x.sig x.hex");
    place.expect(0, "convert x.hex y.sig");
    for file in ["x.sig", "x.hex", "y.sig"] {
        let said = place.expect(0, &format!("search {file} --queries x.sig -k 1"));
        assert_eq!(said.out, "tab\\there\\nline\t0\ttab\\there\\nline\n");
    }
}

#[test]
fn help_and_completions_are_there() {
    let place = Place::new();
    for command in [
        "sign",
        "terms",
        "build",
        "search",
        "cluster",
        "compare",
        "info",
        "plan",
        "convert",
        "recipe",
        "completions",
    ] {
        assert!(place.expect(0, &format!("{command} --help")).out.contains("Usage:"));
    }
    for shell in ["bash", "zsh", "fish"] {
        assert!(place.expect(0, &format!("completions {shell}")).out.contains("lookalike"));
    }
    let recipe = place.expect(0, "recipe web").out;
    place.write("web.json", recipe);
    place.expect(0, "sign examples/docs.jsonl --recipe web.json -o a.sig");
    place.expect(0, "sign examples/docs.jsonl --recipe web -o b.sig");
    assert!(fs::read(place.path("a.sig")).unwrap() == fs::read(place.path("b.sig")).unwrap());
}

#[test]
fn every_kernel_gives_the_same_answers() {
    let place = signed();
    let line = "search docs.sig --queries docs.sig --radius 70 --format json";
    let expected = place.expect(0, line).out;
    for level in ["scalar", "avx2", "avx512", "neon"] {
        let output = place.command(line).env("LOOKALIKE_SIMD", level).output().unwrap();
        // A level that this machine does not have is refused, never replaced by another.
        if output.status.code() == Some(0) {
            assert!(String::from_utf8(output.stdout).unwrap() == expected, "{level}");
        } else {
            assert!(String::from_utf8_lossy(&output.stderr).contains(level));
        }
    }
}
