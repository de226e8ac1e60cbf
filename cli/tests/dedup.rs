//! `lookalike dedup` from outside: formats, modes, safety, and runs that are stopped and go on.
#![allow(missing_docs)]

mod common;

use std::{fmt::Write, fs, process::Command};

use common::Place;
use lookalike::{
    Recipe,
    collection::{Collection, Keeps, Settings},
};
use serde_json::{Value, json};

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn report(place: &Place, output: &str) -> Value {
    let text = fs::read_to_string(place.path(output).join("report.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn read(place: &Place, name: &str) -> String {
    fs::read_to_string(place.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn ids(text: &str) -> Vec<String> {
    json_lines(text).iter().map(|object| object["id"].as_str().unwrap().to_owned()).collect()
}

/// A text of its own for each seed.
fn story(seed: usize, words: usize) -> String {
    (0..words)
        .map(|i| format!("word{}", (seed * 1009 + i * i * 31 + i) % 90_001))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Some stories, each with a near-copy and every third with a copy; fields for keepers and sources.
fn stories(n: usize) -> Vec<Value> {
    let mut stories = Vec::new();
    for i in 0..n {
        let text = story(i, 80);
        let edited = text.replacen(' ', " then ", 1);
        stories.push(json!({"id": format!("a{i}"), "text": text, "date": "2024-01-01", "score": i, "source": "one"}));
        stories.push(json!({"id": format!("b{i}"), "text": edited, "date": "2024-03-01", "score": i + 1, "source": "two"}));
        if i % 3 == 0 {
            stories.push(json!({"id": format!("c{i}"), "text": text, "date": "2024-02-01", "score": 0, "source": "three"}));
        }
        stories
            .push(json!({"id": format!("d{i}"), "text": story(10_000 + i, 60), "source": "two"}));
        stories
            .push(json!({"id": format!("e{i}"), "text": story(20_000 + i, 60), "source": "three"}));
    }
    stories
}

fn jsonl(objects: &[Value]) -> String {
    objects.iter().map(|object| format!("{object}\n")).collect()
}

#[test]
fn kept_and_removed_are_the_input_in_its_order() {
    let place = Place::new();
    let all = stories(30);
    place.write("news.jsonl", jsonl(&all));
    place.expect(0, "dedup news.jsonl -o out");
    let (kept, removed) =
        (read(&place, "out/kept/news.jsonl"), read(&place, "out/removed/news.jsonl"));
    let expected: Vec<&Value> = all
        .iter()
        .filter(|object| {
            ["a", "d", "e"].iter().any(|kind| object["id"].as_str().unwrap().starts_with(kind))
        })
        .collect();
    assert_eq!(json_lines(&kept).iter().collect::<Vec<_>>(), expected);
    for object in json_lines(&removed) {
        let id = object["id"].as_str().unwrap();
        assert_eq!(object["duplicate_of"], json!(format!("a{}", &id[1..])));
        let similarity = object["similarity"].as_f64().unwrap();
        assert!(if id.starts_with('c') {
            similarity == 1.0
        } else {
            (0.9..1.0).contains(&similarity)
        });
        assert!(object["distance"].is_u64() && object["text"].is_string());
    }
    let report = report(&place, "out");
    assert_eq!(
        (&report["documents"], &report["removed"], &report["copies"]),
        (&json!(130), &json!(40), &json!(10))
    );
    assert_eq!(report["checked"]["recall"], json!(1.0));
    assert!(!place.path("out/.work").exists());
}

#[test]
fn every_format_comes_back_in_its_own() {
    let place = Place::new();
    let all = stories(12);
    fs::create_dir(place.path("in")).unwrap();
    let table: String = all.iter().fold("id,text,source\n".into(), |mut table, object| {
        let of = |key: &str| object[key].as_str().unwrap().to_owned();
        writeln!(table, "t-{},\"{}\",{}", of("id"), of("text"), of("source")).unwrap();
        table
    });
    place.write("in/table.csv", &table);
    place.write("in/table.tsv", table.replace("t-", "tab-").replace(',', "\t"));
    place.write("news.jsonl", jsonl(&all));
    place.expect(0, "dedup in/table.csv -o csv");
    let kept = read(&place, "csv/kept/table.csv");
    assert!(kept.starts_with("id,text,source\n") && kept.lines().count() == 1 + 36, "{kept}");
    let removed = read(&place, "csv/removed/table.csv");
    assert!(removed.starts_with("id,text,source,duplicate_of,distance,similarity\n"), "{removed}");
    assert_eq!(removed.lines().count(), 1 + 16);
    place.expect(0, "dedup in/table.tsv -o tsv --mode annotate");
    let annotated = read(&place, "tsv/annotated/table.tsv");
    assert!(annotated.starts_with("id\ttext\tsource\tcluster\tkeeper\tdistance\tsimilarity\n"));
    assert_eq!(annotated.lines().count(), 1 + 52);
    // A whole folder: the same texts again, in two files.
    let said = place.expect(0, "dedup in -o both --force");
    assert!(said.err.contains("alarm"), "{}", said.err);
    assert_eq!(read(&place, "both/removed/table.tsv").lines().count(), 1 + 52);

    place.expect(0, "dedup news.jsonl -o ids --mode ids");
    assert_eq!(read(&place, "ids/kept.txt").lines().count(), 36);
    assert_eq!(json_lines(&read(&place, "ids/removed.jsonl"))[0]["duplicate_of"], json!("a0"));
    place.expect(0, "dedup news.jsonl -o annotated --mode annotate");
    let annotated = json_lines(&read(&place, "annotated/annotated/news.jsonl"));
    assert_eq!(annotated.len(), 52);
    assert_eq!((&annotated[1]["cluster"], &annotated[1]["keeper"]), (&json!(0), &json!("a0")));
    let alone = annotated.iter().find(|object| object["id"] == json!("d0")).unwrap();
    assert_eq!((&alone["cluster"], &alone["keeper"]), (&Value::Null, &json!("d0")));
}

#[test]
fn parquet_compressed_text_and_files() {
    let place = Place::new();
    let fixtures = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    for name in ["table.parquet", "news.jsonl.gz", "news.jsonl.zst"] {
        fs::copy(fixtures.join(name), place.path(name)).unwrap();
    }
    place.expect(0, "dedup table.parquet -o parquet --mode annotate");
    place.expect(0, "sign parquet/annotated/table.parquet --payload -o again.sig");
    place.expect(0, "dedup table.parquet -o removed --max-loss 100%");
    place.expect(0, "sign removed/kept/table.parquet -o kept.sig");
    for name in ["news.jsonl.gz", "news.jsonl.zst"] {
        place.expect(0, &format!("dedup {name} -o out-{name} --max-loss 100%"));
        place.expect(0, &format!("sign out-{name}/kept/{name} -o {name}.sig"));
    }
    let lines: Vec<String> =
        stories(6).iter().map(|object| object["text"].as_str().unwrap().to_owned()).collect();
    place.write("lines.txt", lines.join("\n"));
    place.expect(0, "dedup lines.txt --lines -o lines");
    assert_eq!(read(&place, "lines/kept/lines.txt").lines().count(), 18);
    assert_eq!(
        json_lines(&read(&place, "lines/removed/lines.txt.jsonl"))[0]["duplicate_of"],
        json!("lines.txt:1")
    );
    place.expect(0, "dedup examples/stories -o stories");
    assert_eq!(
        ids(&read(&place, "stories/kept/documents.jsonl")),
        ["examples/stories/harbour-later.txt", "examples/stories/orchard.txt"]
    );
    let said = place.run_with_input("dedup - -o stdin", jsonl(&stories(6)).as_bytes());
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(read(&place, "stdin/kept/stdin.jsonl").lines().count(), 18);
}

#[test]
fn keepers_are_chosen_as_asked() {
    let place = Place::new();
    place.write("news.jsonl", jsonl(&stories(9)));
    for (rule, kept) in [
        ("first", "a0"),
        ("longest", "b0"),
        ("newest:date", "b0"),
        ("max:score", "b0"),
        ("min:score", "a0"),
        ("prefer:source=three,two", "c0"),
    ] {
        place.expect(0, &format!("dedup news.jsonl --clusters clusters.jsonl --keep {rule}"));
        let clusters = json_lines(&read(&place, "clusters.jsonl"));
        let of = clusters.iter().find(|object| object["id"] == json!("a0")).unwrap();
        assert_eq!(of["keeper"], json!(kept), "{rule}");
    }
    let said = place.expect(2, "dedup news.jsonl -o out --keep best");
    assert!(said.err.contains("newest:FIELD"), "{}", said.err);
}

#[test]
fn pairs_are_written_in_three_forms() {
    let place = Place::new();
    place.write("news.jsonl", jsonl(&stories(9)));
    for name in ["pairs.csv", "pairs.jsonl", "pairs.parquet"] {
        place.expect(0, &format!("dedup news.jsonl --pairs {name}"));
    }
    let csv = read(&place, "pairs.csv");
    assert!(csv.starts_with("id_a,id_b,distance,similarity\n"));
    // Nine pairs of copies and edits, three with a copy each: one more pair with each of the two.
    assert_eq!(csv.lines().count(), 1 + 9 + 3 * 2);
    assert_eq!(json_lines(&read(&place, "pairs.jsonl")).len(), 15);
    let said = place.expect(2, "dedup news.jsonl --pairs pairs.txt");
    assert!(said.err.contains(".csv, .jsonl or .parquet"), "{}", said.err);
}

#[test]
fn whoever_would_lose_too_much_is_told_before() {
    let place = Place::new();
    place.write("same.jsonl", jsonl(&vec![json!({"text": "the same words all over again"}); 1000]));
    let said = place.expect(2, "dedup same.jsonl -o out");
    assert!(said.err.contains("would lose 999 of 1000 documents"), "{}", said.err);
    assert!(said.err.contains("--max-loss"), "{}", said.err);
    assert!(!place.path("out/kept").exists());
    // Work goes on where it was stopped: with other words, the same settings.
    place.expect(0, "dedup same.jsonl -o out --max-loss 100%");
    assert_eq!(read(&place, "out/kept/same.jsonl").lines().count(), 1);
    assert_eq!(report(&place, "out")["stages"][0]["resumed"], json!(true));
    let said = place.expect(2, "dedup same.jsonl -o out2 --max-loss 100% --max-cluster 10");
    assert!(said.err.contains("has 1000 documents"), "{}", said.err);
}

#[test]
fn ids_must_tell_documents_apart() {
    let place = Place::new();
    let all = stories(3);
    fs::create_dir(place.path("in")).unwrap();
    place.write("in/a.jsonl", jsonl(&all[..5]));
    place.write("in/b.jsonl", jsonl(&all[2..]));
    let said = place.expect(2, "dedup in -o out");
    assert!(said.err.contains("in/a.jsonl:3 and in/b.jsonl:1"), "{}", said.err);
    assert!(said.err.contains("--by-place"), "{}", said.err);
    place.expect(0, "dedup in -o out2 --by-place --force");
    let removed = json_lines(&read(&place, "out2/removed/b.jsonl"));
    assert_eq!(removed[0]["duplicate_of"], json!("in/a.jsonl:1"));
    // Other fields are there all the same, for keepers and for what is written.
    place.expect(0, "dedup in -o out3 --by-place --force --keep max:score");
    let removed = json_lines(&read(&place, "out3/removed/a.jsonl"));
    assert_eq!(removed[0]["duplicate_of"], json!("in/a.jsonl:2"));
    assert_eq!(removed[0]["source"], json!("one"));
}

#[test]
fn settings_that_say_nothing_are_refused() {
    let place = Place::new();
    place.write("news.jsonl", jsonl(&stories(20)));
    place.expect(0, "sign news.jsonl -o news.sig");
    place.expect(0, "create news");
    for (line, told) in [
        ("dedup news.jsonl --source-field sorce", "no document has a field `sorce`"),
        ("dedup news.jsonl --radius 257", "no two are 257 apart"),
        ("build news.sig -o news.idx --radius 257", "no two are 257 apart"),
        ("plan news.sig --radius 257", "no two are 257 apart"),
        ("add news news.jsonl --unless-seen 257", "no two are 257 apart"),
        ("cluster news --radius 257", "no two are 257 apart"),
        ("join new.sig --radius 3", "hint: `lookalike sign INPUT"),
        ("dedup news.jsonl --pairs x.jsonl --clusters x.jsonl", "both pairs and clusters"),
        ("dedup news.jsonl --clusters x.csv", "clusters are written as JSON lines"),
        ("dedup news.jsonl --similarity most", "a similarity is written as 0.7, or 70%"),
    ] {
        let said = place.expect(2, line);
        assert!(said.err.contains(told), "{line}: {}", said.err);
    }
    place.expect(0, "dedup news.jsonl --similarity 70% -o .hidden");
    // A field that is there is not missing: no other is better.
    place.write("odd.jsonl", "{\"id\": \"a\", \"text\": null}\n");
    let said = place.expect(2, "dedup odd.jsonl");
    assert!(said.err.contains("is null") && !said.err.contains("--text-field"), "{}", said.err);
}

#[test]
fn what_is_read_is_not_written_over() {
    let place = Place::new();
    fs::create_dir(place.path("in")).unwrap();
    place.write("in/news.jsonl", jsonl(&stories(20)));
    for (line, told) in [
        ("dedup in -o in", "is in in"),
        ("dedup in -o in/new/out", "in/new/out is in in, which is read"),
        ("dedup . -o out", "out is in ., which is read"),
        ("dedup in/news.jsonl --pairs in/news.jsonl", "would be lost"),
        ("dedup in/news.jsonl --clusters in/news.jsonl", "would be lost"),
        ("dedup in/news.jsonl in/news.jsonl -o out", "would both be written as news.jsonl"),
    ] {
        let said = place.expect(2, line);
        assert!(said.err.contains(told), "{line}: {}", said.err);
    }
    place.expect(0, "dedup in -o out");
    let said = place.expect(2, "dedup in -o out --similarity 0.9");
    assert!(said.err.contains("--overwrite"), "{}", said.err);
    let said = place.expect(2, "dedup out/kept -o out --overwrite");
    assert!(said.err.contains("is in out"), "{}", said.err);
    place.expect(0, "dedup in -o out --similarity 1 --overwrite");
    assert_eq!(read(&place, "out/removed/news.jsonl").lines().count(), 7);
    place.expect(2, "dedup in/news.jsonl -o in/news.jsonl");
    // What no run wrote is not removed.
    fs::create_dir_all(place.path("mine/kept")).unwrap();
    place.write("mine/kept/important.txt", "mine");
    let said = place.expect(2, "dedup in -o mine --overwrite");
    assert!(said.err.contains("no run wrote it"), "{}", said.err);
    assert_eq!(read(&place, "mine/kept/important.txt"), "mine");
    assert_eq!(read(&place, "in/news.jsonl").lines().count(), 87);
}

#[test]
fn fields_that_are_there_already_stay() {
    let place = Place::new();
    let mine = |mut object: Value| {
        object["cluster"] = json!("mine");
        object["distance"] = json!(99);
        object
    };
    let all: Vec<Value> = stories(12).into_iter().map(mine).collect();
    place.write("news.jsonl", jsonl(&all));
    place.expect(0, "dedup news.jsonl -o out --mode annotate");
    let annotated = json_lines(&read(&place, "out/annotated/news.jsonl"));
    assert_eq!(annotated[1]["cluster"], json!("mine"));
    assert_eq!(annotated[1]["lookalike_cluster"], json!(0));
    assert_eq!((&annotated[1]["distance"], &annotated[1]["keeper"]), (&json!(99), &json!("a0")));
}

#[test]
fn what_an_earlier_collection_has_is_not_new() {
    let place = Place::new();
    let all = stories(30);
    let (old, new): (Vec<Value>, Vec<Value>) =
        all.into_iter().partition(|object| object["id"].as_str().unwrap().starts_with('a'));
    place.write("old.jsonl", jsonl(&old));
    place.write("new.jsonl", jsonl(&new));
    let said = place.expect(2, "dedup new.jsonl -o out --against old.jsonl");
    assert!(said.err.contains("--recipe minhash-256"), "{}", said.err);
    place.expect(0, "sign old.jsonl --recipe minhash-256 -o old.sig");
    let said = place.expect(0, "dedup new.jsonl -o out --against old.sig");
    assert!(said.err.contains("--against"), "{}", said.err);
    let removed = json_lines(&read(&place, "out/removed/new.jsonl"));
    assert_eq!(removed.len(), 40);
    assert!(removed.iter().all(|object| object["duplicate_of"].as_str().unwrap().starts_with('a')));
}

/// An empty collection of the recipe that documents are deduplicated by.
fn archive(place: &Place, name: &str, texts: bool) -> Collection {
    let recipe = Recipe::named("minhash-256").unwrap();
    let keeps = Keeps { texts, margins: false };
    let settings = Settings { keeps, ..Settings::of_recipe(recipe) };
    Collection::create(&place.path(name), settings).unwrap()
}

#[test]
fn what_a_collection_has_is_not_new() {
    let place = Place::new();
    let all = stories(30);
    let (old, new): (Vec<Value>, Vec<Value>) =
        all.into_iter().partition(|object| object["id"].as_str().unwrap().starts_with('a'));
    place.write("old.jsonl", jsonl(&old));
    place.write("new.jsonl", jsonl(&new));
    for (name, texts) in [("texts", true), ("signatures", false)] {
        drop(archive(&place, name, texts));
        let said = place.expect(0, &format!("dedup old.jsonl --against {name} --add"));
        assert!(said.err.contains("30 documents added to the collection"), "{}", said.err);
        let record = Collection::open_reader(&place.path(name)).unwrap();
        let record = record.get(&["a7"], true).unwrap().remove(0).unwrap();
        assert_eq!(
            (&record.payload_value()["source"], record.text.is_some()),
            (&json!("one"), texts)
        );

        // Without --add it is only read, whoever writes to it.
        let writer = Collection::open(&place.path(name)).unwrap();
        let line = format!("dedup new.jsonl --against {name}");
        let said = place.expect(0, &format!("{line} -o {name}-out --pairs {name}.jsonl"));
        let told = if texts { "by their texts" } else { "texts were not compared" };
        assert!(said.err.contains(told), "{}", said.err);
        let removed = json_lines(&read(&place, &format!("{name}-out/removed/new.jsonl")));
        assert_eq!(removed.len(), 40);
        for object in &removed {
            let id = object["id"].as_str().unwrap();
            assert_eq!(object["duplicate_of"], json!(format!("a{}", &id[1..])));
            let similarity = object["similarity"].as_f64().unwrap();
            assert!(!texts || (id.starts_with('c') == (similarity == 1.0)), "{object}");
        }
        let pairs = json_lines(&read(&place, &format!("{name}.jsonl")));
        assert!(pairs.iter().any(|pair| pair["id_a"] == "a3" && pair["id_b"] == "c3"));
        let report = report(&place, &format!("{name}-out"));
        assert_eq!((&report["elsewhere"], &report["added"]), (&json!(40), &Value::Null));
        assert_eq!(report["elsewhere_compared"], json!(if texts { 40 } else { 0 }));
        let said = place.expect(2, &format!("{line} -o {name}-locked --add"));
        assert!(said.err.contains("another process is writing"), "{}", said.err);
        writer.close().unwrap();

        // What is added is not new the next time.
        place.expect(0, &format!("{line} -o {name}-one --add"));
        assert_eq!(report_of_added(&place, &format!("{name}-one")), json!(60));
        place.expect(0, &format!("{line} -o {name}-two --add --force"));
        assert_eq!(read(&place, &format!("{name}-two/kept/new.jsonl")), "");
        assert_eq!(report_of_added(&place, &format!("{name}-two")), json!(0));
        assert_eq!(Collection::open(&place.path(name)).unwrap().snapshot().len(), 90);
    }
}

fn report_of_added(place: &Place, output: &str) -> Value {
    report(place, output)["added"]["documents"].clone()
}

#[test]
fn texts_decide_where_signatures_are_not_enough() {
    let place = Place::new();
    let text = story(1, 80);
    // Near enough for the signatures, at a similarity of about .6.
    let other: Vec<&str> = text.split(' ').collect();
    let other = other.iter().enumerate().map(|(i, word)| if i % 16 == 8 { "other" } else { word });
    let other = other.collect::<Vec<_>>().join(" ");
    place.write("old.jsonl", jsonl(&[json!({ "id": "old", "text": text })]));
    place.write("new.jsonl", jsonl(&[json!({ "id": "new", "text": other })]));
    drop((archive(&place, "texts", true), archive(&place, "signatures", false)));
    for (name, kept) in [("texts", 1), ("signatures", 0)] {
        place.expect(0, &format!("dedup old.jsonl --against {name} --add"));
        place.expect(0, &format!("dedup new.jsonl -o {name}-out --against {name} --radius 90"));
        let lines = read(&place, &format!("{name}-out/kept/new.jsonl")).lines().count();
        assert_eq!(lines, kept, "{name}");
    }
}

#[test]
fn a_collection_must_fit() {
    let place = Place::new();
    place.write("new.jsonl", jsonl(&stories(3)));
    let settings = Settings::of_recipe(Recipe::named("text").unwrap());
    drop(Collection::create(&place.path("text"), settings).unwrap());
    let said = place.expect(2, "dedup new.jsonl --against text");
    assert!(
        said.err.contains("recipe `text`") && said.err.contains("recipe `minhash-256`"),
        "{}",
        said.err
    );
    assert!(said.err.contains("lookalike create"), "{}", said.err);
    place.expect(0, "sign new.jsonl --recipe minhash-256 -o old.sig");
    let said = place.expect(2, "dedup new.jsonl --against old.sig --add");
    assert!(said.err.contains("adds to one collection"), "{}", said.err);
    place.expect(2, "dedup new.jsonl --add");
}

#[test]
fn bad_records_are_left_out_and_told() {
    let place = Place::new();
    let mut text = jsonl(&stories(3));
    text.insert_str(0, "{broken\n\n");
    text.push_str("{\"text\": 5}\n{\"id\": \"empty\", \"text\": \"\"}\n");
    place.write("news.jsonl", &text);
    let said = place.expect(2, "dedup news.jsonl -o out");
    assert!(said.err.contains("news.jsonl:1"), "{}", said.err);
    let said = place.expect(3, "dedup news.jsonl -o out --on-error skip --restart");
    assert!(said.err.contains("skipped: 2 bad records"), "{}", said.err);
    assert!(said.err.contains("no words: 1 document"), "{}", said.err);
    let kept = ids(&read(&place, "out/kept/news.jsonl"));
    assert_eq!(kept.first().map(String::as_str), Some("a0"));
    assert_eq!(kept.last().map(String::as_str), Some("empty"));
    assert_eq!(report(&place, "out")["skipped"], json!(2));
}

#[test]
fn the_result_depends_on_nothing_but_the_input() {
    let place = Place::new();
    place.write("news.jsonl", jsonl(&stories(4000)));
    place.expect(0, "dedup news.jsonl -o one --threads 1");
    for (name, flags) in
        [("many", "--threads 7"), ("small", "--memory 1M"), ("large", "--memory 8G")]
    {
        place.expect(0, &format!("dedup news.jsonl -o {name} {flags}"));
        for file in ["kept/news.jsonl", "removed/news.jsonl"] {
            assert_eq!(
                read(&place, &format!("one/{file}")),
                read(&place, &format!("{name}/{file}")),
                "{name}"
            );
        }
    }
    for part in ["2/3", "1/3"] {
        place.expect(0, &format!("dedup news.jsonl -o parts --part {part}"));
    }
    let said = place.expect(2, "dedup news.jsonl -o parts");
    assert!(said.err.contains("part 3 of 3"), "{}", said.err);
    place.expect(0, "dedup news.jsonl -o parts --part 3/3");
    place.expect(0, "dedup news.jsonl -o parts");
    assert_eq!(read(&place, "one/removed/news.jsonl"), read(&place, "parts/removed/news.jsonl"));
    assert_eq!(report(&place, "one")["sources"], report(&place, "parts")["sources"]);
}

#[test]
fn a_killed_run_goes_on_and_other_work_is_refused() {
    let place = Place::new();
    place.write("news.jsonl", jsonl(&stories(6000)));
    place.expect(0, "dedup news.jsonl -o whole");
    for millis in [5, 20, 50, 100, 200, 400, 800] {
        let mut child = place.command("dedup news.jsonl -o killed -q --overwrite").spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(millis));
        child.kill().unwrap();
        child.wait().unwrap();
        if place.path("killed/.work/sketches").exists() {
            let said = place.expect(2, "dedup news.jsonl -o killed --similarity 0.8");
            assert!(said.err.contains("other similarity, verify"), "{}", said.err);
        }
    }
    place.expect(0, "dedup news.jsonl -o killed --overwrite");
    for file in ["kept/news.jsonl", "removed/news.jsonl"] {
        assert_eq!(read(&place, &format!("whole/{file}")), read(&place, &format!("killed/{file}")));
    }
    place.expect(2, "dedup news.jsonl -o stopped --max-loss 1%");
    fs::copy(place.path("news.jsonl"), place.path("changed.jsonl")).unwrap();
    place.write("news.jsonl", jsonl(&stories(5999)));
    let said = place.expect(2, "dedup news.jsonl -o stopped --max-loss 100%");
    assert!(said.err.contains("other input"), "{}", said.err);
    place.expect(0, "dedup news.jsonl -o stopped --max-loss 100% --restart");
}

#[test]
fn damaged_work_is_done_again() {
    let place = Place::new();
    place.write("news.jsonl", jsonl(&stories(50)));
    place.expect(2, "dedup news.jsonl -o out --max-loss 1%");
    let sketches = place.path("out/.work/sketches");
    let mut bytes = fs::read(&sketches).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&sketches, bytes).unwrap();
    place.expect(0, "dedup news.jsonl -o out --max-loss 100%");
    assert_eq!(report(&place, "out")["stages"][0]["resumed"], json!(false));
}

/// A limit on the size of files stands for a full disk: writing fails in the middle.
#[cfg(unix)]
#[test]
fn a_full_disk_is_told_and_the_run_goes_on_later() {
    let place = Place::new();
    place.write("news.jsonl", jsonl(&stories(4000)));
    let limited = |kilobytes: usize| {
        let program = env!("CARGO_BIN_EXE_lookalike");
        let script =
            format!("trap '' XFSZ; ulimit -f {kilobytes}; exec {program} dedup news.jsonl -o out");
        let out = Command::new("bash")
            .args(["-c", &script])
            .current_dir(place.path(""))
            .output()
            .unwrap();
        (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    // Not even the sketches; then the sketches, but not the output.
    let sketches = {
        place.expect(2, "dedup news.jsonl -o probe --max-loss 1%");
        fs::metadata(place.path("probe/.work/sketches")).unwrap().len() / 1024
    };
    for kilobytes in [100, sketches as usize / 2] {
        let (code, said) = limited(kilobytes);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("out/") && said.contains("File too large"), "{said}");
        assert!(!place.path("out/kept/news.jsonl").exists());
    }
    place.expect(0, "dedup news.jsonl -o out");
    place.expect(0, "dedup news.jsonl -o fine");
    assert_eq!(read(&place, "out/kept/news.jsonl"), read(&place, "fine/kept/news.jsonl"));
}

#[test]
fn a_dry_run_only_estimates() {
    let place = Place::new();
    place.write("news.jsonl", jsonl(&stories(100)));
    let said = place.expect(0, "dedup news.jsonl -o out --dry-run");
    assert!(said.out.contains("documents 434"), "{}", said.out);
    assert!(!place.path("out").exists());
    let said = place.expect(0, "dedup news.jsonl --dry-run --format json");
    assert_eq!(json_lines(&said.out)[0]["documents"], json!(434));
    // What a run would stop at stops it as well.
    let said = place.expect(2, "dedup news.jsonl --text-field body --dry-run");
    assert!(said.err.contains("news.jsonl:1") && said.err.contains("body"), "{}", said.err);
    let said = place.expect(0, "dedup news.jsonl --text-field body --dry-run --on-error skip");
    assert!(said.out.contains("documents 0"), "{}", said.out);
}

/// Slow, but people have such files.
#[test]
fn a_million_copies_and_a_very_long_document() {
    let place = Place::new();
    let mut text = String::with_capacity(60 << 20);
    for i in 0..1_000_000 {
        writeln!(text, "{{\"id\": \"{i}\", \"text\": \"one text that a million documents have\"}}")
            .unwrap();
    }
    text.push_str("{\"id\": \"other\", \"text\": \"");
    for i in 0..6_000_000 {
        write!(text, "w{} ", i * 7 % 999_983).unwrap();
    }
    text.push_str("\"}\n");
    place.write("copies.jsonl", &text);
    drop(text);
    place.expect(0, "dedup copies.jsonl -o out --max-loss 100% --mode ids");
    assert_eq!(read(&place, "out/kept.txt"), "0\nother\n");
}
