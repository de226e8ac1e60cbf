//! `lookalike search` in a collection: queries, questions, conditions, and what finds the records.
#![allow(missing_docs)]

mod common;

use common::Place;
use lookalike::{
    Recipe, Signature, Signer,
    collection::{Collection, Entry, IfExists, Settings},
    recipe::Scratch,
};
use serde_json::{Value, json};

const TEXTS: [&str; 3] = [
    "The harbour reopened on Monday after a storm had closed it for two days, and the ferries to the islands run again.",
    "The harbour reopened on Monday after the storm had closed it for two days, and ferries to the islands run again.",
    "An old orchard on the hill was saved from the road builders by a vote of the whole village council last night.",
];

/// Three texts: two alike from different sources, one that is not.
fn stories(place: &Place) -> Collection {
    let recipe = Recipe::named("text").unwrap();
    let signer = Signer::new(recipe.clone(), None).unwrap();
    let news = Collection::create(&place.path("news"), Settings::of_recipe(recipe)).unwrap();
    let entry = |(i, text): (usize, &&str)| {
        let signed = signer.sign_text(text, &mut Scratch::default()).unwrap();
        let payload = json!({ "source": (["one", "two", "one"][i]), "year": 2020 + i });
        Entry {
            payload: Some(payload.to_string()),
            ..Entry::new(format!("s{i}"), signed.signature)
        }
    };
    let entries: Vec<Entry> = TEXTS.iter().enumerate().map(entry).collect();
    news.put(&entries, IfExists::Replace).unwrap();
    news
}

/// A hundred codes of 64 bits, the i-th of which is i bits from zero up to 64, and their fields.
fn codes(place: &Place) -> Collection {
    let codes = Collection::create(&place.path("codes"), Settings::of_bits(64)).unwrap();
    let entry = |i: u32| {
        let word = if i >= 64 { u64::MAX } else { (1 << i) - 1 };
        let lang = ["en", "de", "fr"][i as usize % 3];
        let mut payload =
            json!({ "n": i, "lang": lang, "url": format!("https://{lang}.example/{i}") });
        if i >= 60 {
            payload["far"] = json!(true);
        }
        let signature = Signature::from_words(64, vec![word]).unwrap();
        Entry { payload: Some(payload.to_string()), ..Entry::new(format!("c{i}"), signature) }
    };
    let entries: Vec<Entry> = (0..100).map(entry).collect();
    codes.put(&entries, IfExists::Replace).unwrap();
    codes
}

const ZERO: &str = "0000000000000000";

fn hits(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn ids(text: &str) -> Vec<String> {
    hits(text).iter().map(|hit| hit["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_query_is_a_text_a_file_an_id_or_many() {
    let place = Place::new();
    drop(stories(&place));
    place.write("query.txt", TEXTS[0]);
    let text = TEXTS[0];
    for query in [format!("--text \"{text}\""), "--file query.txt".to_owned()] {
        let said = place.expect(0, &format!("search news {query} --radius 90 --format json"));
        assert_eq!(ids(&said.out), ["s0", "s1"], "{query}");
        assert_eq!(hits(&said.out)[0]["distance"], json!(0));
    }
    // A document does not find itself.
    let said = place.expect(0, "search news --id s0 --radius 90 --format json");
    assert_eq!(ids(&said.out), ["s1"]);
    let hit = &hits(&said.out)[0];
    assert_eq!((&hit["query"], &hit["exact"]), (&json!("s0"), &json!(true)));
    assert_eq!((&hit["payload"]["source"], &hit["index"]), (&json!("two"), &json!("scan")));
    let said = place.expect(0, "search news --id s0 --radius 90");
    assert!(said.out.contains("\ts1\t{\"source\":\"two\""), "{}", said.out);
    assert!(
        said.err.contains("1 hit within 90 of 256 bits among 3 records (exact)"),
        "{}",
        said.err
    );
    let said = place.expect(2, "search news --id s9 --radius 90");
    assert!(
        said.err.contains("no document `s9`") && said.err.contains("like `s2`"),
        "{}",
        said.err
    );
    place.expect(1, "search news --text \"quite another matter of no concern\" --radius 3");

    let lines: String = TEXTS
        .iter()
        .enumerate()
        .map(|(i, text)| {
            format!("{}\n", json!({ "id": format!("s{i}"), "text": text, "source": "one" }))
        })
        .collect();
    place.write("new.jsonl", lines);
    let said = place.expect(0, "search news --queries new.jsonl --radius 90 --format json");
    assert_eq!(ids(&said.out), ["s0", "s1", "s1", "s0", "s2"]);
    let said =
        place.expect(0, "search news --queries new.jsonl --radius 90 --exclude-self --format json");
    assert_eq!(ids(&said.out), ["s1", "s0"]);
    let said = place.expect(
        0,
        "search news --queries new.jsonl --radius 90 --exclude-same source --format json",
    );
    assert_eq!(ids(&said.out), ["s1", "s1"]);
    // The same from signatures.
    place.expect(0, "sign new.jsonl --payload -o new.sig");
    let said =
        place.expect(0, "search news --queries new.sig --radius 90 --exclude-self --format json");
    assert_eq!(ids(&said.out), ["s1", "s0"]);
    place.expect(0, "sign new.jsonl --recipe web -o web.sig");
    let said = place.expect(2, "search news --queries web.sig --radius 3");
    assert!(said.err.contains("recipe"), "{}", said.err);
}

#[test]
fn every_question_is_answered() {
    let place = Place::new();
    drop(codes(&place));
    let ask = |flags: &str| {
        place.expect(0, &format!("search codes --signature {ZERO} {flags} --format json"))
    };
    assert_eq!(ids(&ask("--radius 2").out), ["c0", "c1", "c2"]);
    assert_eq!(ids(&ask("--radius 2 --first").out), ["c0"]);
    assert_eq!(ids(&ask("--nearest 4").out), ["c0", "c1", "c2", "c3"]);
    assert_eq!(ids(&ask("").out).len(), 10);
    let said = place.expect(0, "search codes --id c5 --nearest 2 --format json");
    assert_eq!(ids(&said.out), ["c4", "c6"]);
    let said = place.expect(0, "search codes --id c5 --radius 1 --first --format json");
    assert_eq!(ids(&said.out), ["c4"]);
    let said = place.expect(2, "search codes --signature 00000000 --radius 3");
    assert!(said.err.contains("32 bits") && said.err.contains("hint:"), "{}", said.err);
    let said = place.expect(2, "search codes --text \"words are not signed here\" --radius 3");
    assert!(said.err.contains("--signature HEX"), "{}", said.err);
    let said = place.expect(2, "search examples --text x --radius 3");
    assert!(said.err.contains("is a folder, but no collection"), "{}", said.err);
}

#[test]
fn filters_are_for_candidates_and_not_for_the_best_of_them() {
    let place = Place::new();
    drop(codes(&place));
    let ask = |flags: &[&str]| {
        let mut command = place.command(&format!("search codes --signature {ZERO} --format json"));
        let output = command.args(flags).output().unwrap();
        assert!(output.status.code() != Some(2), "{}", String::from_utf8_lossy(&output.stderr));
        ids(&String::from_utf8(output.stdout).unwrap())
    };
    for (filter, expected) in [
        ("lang = 'de'", vec!["c1", "c4"]),
        ("n >= 2 and n < 4", vec!["c2", "c3"]),
        ("lang in ('en', 'fr') and not n = 0", vec!["c2", "c3", "c5", "c6"]),
        ("url starts with 'https://fr'", vec!["c2", "c5"]),
        ("n = 1 or n = 6 or n = 50", vec!["c1", "c6"]),
        ("far exists", vec![]),
    ] {
        assert_eq!(ask(&["--radius", "6", "--filter", filter]), expected, "{filter}");
    }
    // All that match are farther than anything else.
    assert_eq!(ask(&["--nearest", "3", "--filter", "far = true"]), ["c60", "c61", "c62"]);
    assert_eq!(ask(&["--nearest", "3", "--filter", "n >= 98"]), ["c98", "c99"]);
    assert_eq!(ask(&["--radius", "9", "--first", "--filter", "lang = 'fr'"]), ["c2"]);
    let said = place.expect(2, &format!("search codes --signature {ZERO} --filter lang==en"));
    assert!(said.err.contains("at character"), "{}", said.err);
}

#[test]
fn signature_files_have_conditions_within_a_radius() {
    let place = Place::new();
    let lines: String = TEXTS
        .iter()
        .enumerate()
        .map(|(i, text)| format!("{}\n", json!({ "id": format!("s{i}"), "text": text, "n": i })))
        .collect();
    place.write("new.jsonl", lines);
    place.expect(0, "sign new.jsonl --payload -o new.sig");
    let said = place
        .expect(0, "search new.sig --queries new.jsonl --radius 90 --filter n>0 --format json");
    assert_eq!(ids(&said.out), ["s1", "s1", "s2"]);
    let said = place
        .expect(0, "search new.sig --queries new.jsonl --nearest 1 --exclude-self --format json");
    assert_eq!(ids(&said.out)[..2], ["s1", "s0"]);
    let said = place.expect(2, "search new.sig --id s0 --nearest 1 --filter n>0");
    assert!(said.err.contains("conditions need a `--radius`"), "{}", said.err);
    place.expect(0, "sign new.jsonl -o bare.sig");
    let said = place.expect(2, "search bare.sig --id s0 --radius 9 --filter n>0");
    assert!(said.err.contains("--payload"), "{}", said.err);
    let said = place.expect(2, "search bare.sig --id s0 --radius 9 --index sql");
    assert!(said.err.contains("database of a collection"), "{}", said.err);
}

#[test]
fn the_database_finds_what_its_slices_guarantee() {
    let place = Place::new();
    let collection = codes(&place);
    let query = format!("search codes --signature {ZERO} --index sql");
    let said = place.expect(2, &format!("{query} --radius 3"));
    assert!(said.err.contains("lookalike reslice codes"), "{}", said.err);
    collection.reslice(Some(3)).unwrap();
    let said = place.expect(0, &format!("{query} --radius 3 --explain --format json"));
    assert_eq!(ids(&said.out), ["c0", "c1", "c2", "c3"]);
    assert_eq!(hits(&said.out)[0]["index"], json!("sql"));
    assert!(
        said.err.contains("4 slices, by which it finds all within a radius of 3"),
        "{}",
        said.err
    );
    let said = place.expect(2, &format!("{query} --radius 4"));
    assert!(said.err.contains("--radius 4`") && said.err.contains("radius of 3"), "{}", said.err);
    let said = place.expect(2, &format!("{query} --nearest 4"));
    assert!(said.err.contains("not the nearest"), "{}", said.err);
}

#[test]
fn a_collection_is_searched_by_what_it_keeps() {
    let place = Place::new();
    drop(codes(&place));
    let query = format!("search codes --signature {ZERO} --radius 2");
    for flags in ["", "--index auto", "--index scan", "--recall 0.9", "--recall 1"] {
        assert_eq!(place.expect(0, &format!("{query} {flags}")).out.lines().count(), 3, "{flags}");
    }
    let said = place.expect(2, &format!("{query} --index multi"));
    assert!(said.err.contains("keeps the index `auto`"), "{}", said.err);
    let settings = Settings { index: "pieces-4".parse().unwrap(), ..Settings::of_bits(64) };
    let kept = Collection::create(&place.path("kept"), settings).unwrap();
    let entry = |i: u64| {
        let word = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Entry::new(i.to_string(), Signature::from_words(64, vec![word]).unwrap())
    };
    kept.put(&(0..5000).map(entry).collect::<Vec<_>>(), IfExists::Replace).unwrap();
    kept.close().unwrap();
    for index in ["auto", "pieces", "pieces-4"] {
        let said = place.expect(
            0,
            &format!(
                "search kept --signature {ZERO} --radius 3 --index {index} --explain --format json"
            ),
        );
        assert_eq!(hits(&said.out)[0]["index"], json!("pieces-4"), "{index}");
        assert!(
            said.err.contains("part         pieces-4: 5000 records, 0 removed"),
            "{}",
            said.err
        );
        assert!(said.err.contains("search ") && said.err.contains("no slices"), "{}", said.err);
    }
    place.expect(2, &format!("search kept --signature {ZERO} --radius 3 --index pieces-5"));
}

#[test]
fn readers_do_not_wait_for_writers() {
    let place = Place::new();
    let writer = codes(&place);
    let find = || {
        place.expect(0, &format!("search codes --signature {ZERO} --radius 1")).out.lines().count()
    };
    assert_eq!(find(), 2);
    let signature = Signature::from_words(64, vec![1 << 40]).unwrap();
    writer.put(&[Entry::new("new", signature)], IfExists::Error).unwrap();
    assert_eq!(find(), 3);
    writer.remove(&["c0", "c1"]).unwrap();
    assert_eq!(find(), 1);
}
