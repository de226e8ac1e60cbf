//! Collections from outside: made, filled, changed, copied and looked after by the program.
#![allow(missing_docs)]

mod common;

use std::{
    fs,
    io::Write,
    process::{Child, Stdio},
    thread,
    time::{Duration, Instant},
};

use common::{Place, Said};
use serde_json::Value;

/// A collection of the examples, all 144 of them.
fn filled() -> Place {
    let place = Place::new();
    place.expect(0, "create docs --keep-text --margins");
    place.expect(0, "add docs examples/docs.jsonl");
    place
}

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn json(said: &Said) -> Value {
    json_lines(&said.out).remove(0)
}

fn info(place: &Place, collection: &str) -> Value {
    json(&place.expect(0, &format!("info {collection} --format json")))
}

/// Words that no other text has.
fn text(number: usize) -> String {
    (0..40).map(|word| format!("word{number}x{word} ")).collect()
}

/// A collection with enough documents for an index and a segment of it.
fn many(flags: &str) -> Place {
    let place = Place::new();
    place.write(
        "many.jsonl",
        (0..5000).map(|i| document(&i.to_string(), &text(i))).collect::<String>(),
    );
    place.expect(0, &format!("create many --recipe web {flags}"));
    place.expect(0, "add many many.jsonl");
    place
}

/// A line of JSON.
fn document(id: &str, text: &str) -> String {
    format!("{{\"id\": \"{id}\", \"text\": \"{text}\"}}\n")
}

#[test]
fn a_collection_lives() {
    let place = Place::new();
    let said = place.expect(0, "create docs --keep-text --margins");
    assert!(
        said.out.is_empty() && said.err.contains("256 bits (recipe text) in sqlite"),
        "{}",
        said.err
    );
    let said = place.expect(0, "add docs examples/docs.jsonl");
    assert!(said.out.is_empty());
    assert!(said.err.contains("144 documents: 144 added; now 144 records"), "{}", said.err);

    // The same again changes nothing but positions and times.
    let again = json(&place.expect(0, "add docs examples/docs.jsonl --batch 10 --format json"));
    assert_eq!((again["documents"].as_u64(), again["replaced"].as_u64()), (Some(144), Some(144)));
    assert_eq!((again["added"].as_u64(), again["records"].as_u64()), (Some(0), Some(144)));

    let id = "2.10.x/about.md";
    let said = place.expect(0, &format!("get docs {id} nobody"));
    assert!(said.out.starts_with(&format!("id           {id}\nsignature    ")), "{}", said.out);
    assert!(said.out.contains("\npayload      {") && said.out.contains("\ntime         20"));
    assert!(!said.out.contains("\ntext"));
    assert_eq!(said.err, "there is no `nobody`\n");
    let record = json(&place.expect(0, &format!("get docs {id} --text --format json")));
    assert!(record["text"].as_str().unwrap().contains("Apache Pulsar"));
    assert!(record["payload"]["page"].is_string() && record["time_ms"].as_u64() > Some(1 << 40));
    assert_eq!(record["signature"].as_str().unwrap().len(), 64);
    place.expect(1, "get docs nobody");

    place.write("gone.txt", "2.10.x/adaptors-spark.md\n\n2.10.x/concepts-overview.md\r\n");
    let said =
        json(&place.expect(0, &format!("remove docs {id} nobody --ids gone.txt --format json")));
    assert_eq!((said["asked"].as_u64(), said["records"].as_u64()), (Some(4), Some(141)));
    assert_eq!(said["removed"], 3);
    place.expect(1, &format!("remove docs {id}"));
    place.expect(1, &format!("get docs {id}"));
    assert_eq!(info(&place, "docs")["removed"], 147);

    let said = place.expect(0, "compact docs");
    assert!(said.err.contains("141 records in 1 part; forgot 147 removed records"), "{}", said.err);
    let said = place.expect(0, "check docs");
    assert_eq!(
        (said.out.as_str(), said.err.as_str()),
        ("", "all is well: 141 records, 0 segments\n")
    );
    assert_eq!(info(&place, "docs")["removed"], 0);
}

#[test]
fn what_is_exported_goes_into_another_collection() {
    let place = filled();
    place.expect(0, "export docs -o docs.sig");
    place.expect(0, "create other --margins");
    place.expect(0, "add other docs.sig");
    let lines = |collection: &str| {
        let mut lines = json_lines(&place.expect(0, &format!("export {collection}")).out);
        for line in &mut lines {
            line.as_object_mut().unwrap().remove("time_ms");
            line.as_object_mut().unwrap().remove("text");
        }
        lines
    };
    assert_eq!(lines("docs").len(), 144);
    assert_eq!(lines("docs"), lines("other"));
    place.expect(0, "export other -o other.sig");
    assert!(
        fs::read(place.path("docs.sig")).unwrap() == fs::read(place.path("other.sig")).unwrap(),
        "the margins as well"
    );
    // The file is as `sign` would have made it.
    place.expect(0, "sign examples/docs.jsonl --margins --payload -o signed.sig");
    assert!(
        fs::read(place.path("docs.sig")).unwrap() == fs::read(place.path("signed.sig")).unwrap()
    );

    place.expect(0, "export docs -o docs.jsonl");
    let written = fs::read_to_string(place.path("docs.jsonl")).unwrap();
    assert_eq!(written, place.expect(0, "export docs").out);
    assert!(json_lines(&written).iter().all(|line| line["text"].is_string()));
}

#[test]
fn a_backup_is_a_collection() {
    let place = filled();
    let said = place.expect(0, "backup docs copies/docs");
    assert!(said.err.contains("copies/docs: 144 records"), "{}", said.err);
    place.expect(0, "remove docs 2.10.x/about.md");
    place.expect(0, "get copies/docs 2.10.x/about.md");
    place.expect(0, "check copies/docs");
    place.expect(0, "add copies/docs examples/stories");
    assert_eq!(info(&place, "copies/docs")["rows"], 147);
    let said = place.expect(2, "backup docs copies/docs");
    assert!(said.err.contains("is there already"), "{}", said.err);
}

#[test]
fn the_database_finds_by_slices_if_it_has_them() {
    let place = filled();
    assert!(info(&place, "docs")["sql_slices"].is_null());
    let said = place.expect(0, "reslice docs --radius 3");
    assert!(
        said.err.contains("4 slices, by which SQL finds all within a radius of 3"),
        "{}",
        said.err
    );
    assert_eq!(info(&place, "docs")["sql_within"], 3);
    let said = json(&place.expect(0, "reslice docs --radius 7 --format json"));
    assert_eq!((said["slices"].as_u64(), said["exact_within"].as_u64()), (Some(8), Some(7)));
    place.expect(0, "check docs");
    let said = place.expect(0, "reslice docs --none");
    assert!(said.err.contains("no slices"), "{}", said.err);
    assert!(info(&place, "docs")["sql_within"].is_null());
    let said = place.expect(2, "reslice docs --radius 32");
    assert!(said.err.contains("31 is the widest"), "{}", said.err);
    place.expect(2, "reslice docs");
    place.expect(0, "create sliced --recipe web --index sql --radius 5");
    assert_eq!(info(&place, "sliced")["sql_slices"], 6);
}

#[test]
fn info_tells_what_is_in_it() {
    let place = filled();
    let about = info(&place, "docs");
    assert_eq!((about["rows"].as_u64(), about["bits"].as_u64()), (Some(144), Some(256)));
    place.expect(0, "sign examples/docs.jsonl -o docs.sig");
    assert_eq!(about["distinct"], info(&place, "docs.sig")["distinct"]);
    assert_eq!(about["recipe_hash"], info(&place, "docs.sig")["recipe_hash"]);
    assert_eq!(about["position"], 144);
    assert_eq!(about["parts"][0]["exact_within"], 256);
    assert!(about["store_bytes"].as_u64() > Some(100_000));
    let said = place.expect(0, "info docs");
    for line in [
        "kind         collection\n",
        "rows         144\n",
        "store        sqlite\n",
        "keeps        margins, texts\n",
        "parts        scan: 144 rows, ",
        "recipe       text: ",
    ] {
        assert!(said.out.contains(line), "{line}: {}", said.out);
    }
    assert!(said.out.lines().all(|line| line.as_bytes()[12] == b' '), "{}", said.out);

    let place = many("--index pieces-4");
    let about = info(&place, "many");
    let part = &about["parts"][0];
    assert_eq!(
        (part["index"].as_str(), part["exact_within"].as_u64()),
        (Some("pieces-4"), Some(3))
    );
    assert!(part["saved"] == true && about["index_bytes"].as_u64() > Some(8 * 5000));
}

#[test]
fn an_id_that_is_there_is_replaced_skipped_or_an_error() {
    let place = Place::new();
    place.write("old.jsonl", document("a", &text(1)) + &document("b", &text(2)));
    place.write("new.jsonl", document("c", &text(3)) + &document("a", &text(4)));
    place.expect(0, "create c");
    place.expect(0, "add c old.jsonl");
    let signature = |id: &str| {
        json(&place.expect(0, &format!("get c {id} --format json")))["signature"].clone()
    };
    let before = signature("a");

    let said = place.expect(2, "add c new.jsonl --if-exists error");
    assert!(said.err.contains("stopped: 0 documents in c"), "{}", said.err);
    assert!(said.err.contains("`a` is in the collection already"), "{}", said.err);
    assert!(said.err.contains("hint: `--if-exists replace`"), "{}", said.err);
    assert_eq!(info(&place, "c")["rows"], 2, "nothing of the batch is in");
    let said = place.expect(2, "add c new.jsonl --if-exists error --batch 1");
    assert!(said.err.contains("stopped: 1 document in c"), "{}", said.err);

    let said = place.expect(0, "add c new.jsonl --if-exists skip");
    assert!(said.err.contains("0 added, 2 there already"), "{}", said.err);
    assert_eq!(signature("a"), before);
    let said = json(&place.expect(0, "add c new.jsonl --if-exists replace --format json"));
    assert_eq!((said["replaced"].as_u64(), said["skipped"].as_u64()), (Some(2), Some(0)));
    assert_ne!(signature("a"), before);
}

#[test]
fn lookalikes_are_told_instead_of_added() {
    let place = Place::new();
    let near = |number: usize| text(number).replace("x39 ", "y39 ");
    let first = [("a", text(1)), ("b", near(1)), ("c", text(2)), ("d", text(1))];
    let later = [("e", near(2)), ("f", text(3)), ("g", text(3))];
    let lines = |all: &[(&str, String)]| {
        all.iter().map(|(id, text)| document(id, text)).collect::<String>()
    };
    place.write("first.jsonl", lines(&first));
    place.write("later.jsonl", lines(&later));
    place.expect(0, "create c");
    let said = place.expect(0, "add c first.jsonl --unless-seen 60");
    let told: Vec<&str> = said.out.lines().collect();
    assert_eq!(told.len(), 2, "{}", said.out);
    assert!(told[0].starts_with("b looks like a (distance "), "{}", told[0]);
    assert_eq!(told[1], "d looks like a (distance 0)");
    assert!(
        said.err.contains("4 documents: 2 added, 2 seen before; now 2 records"),
        "{}",
        said.err
    );

    let said = place.expect(0, "add c later.jsonl --unless-seen 60 --format json");
    let told = json_lines(&said.out);
    assert_eq!(told.len(), 3);
    assert_eq!((&told[0]["seen"], &told[0]["lookalike"]), (&true.into(), &"c".into()));
    assert!(told[0]["distance"].as_u64().is_some_and(|distance| (1..=60).contains(&distance)));
    assert_eq!(told[1], serde_json::json!({ "id": "f", "seen": false }));
    assert_eq!(
        told[2],
        serde_json::json!({ "id": "g", "seen": true, "lookalike": "f", "distance": 0 })
    );
    // Whatever the batches.
    place.expect(0, "create d");
    place.expect(0, "add d first.jsonl --unless-seen 60 --batch 1");
    let other = place.expect(0, "add d later.jsonl --unless-seen 60 --batch 2 --format json");
    assert_eq!(said.out, other.out);
    place.expect(2, "add c later.jsonl --unless-seen 3 --if-exists skip");
}

/// The program at `add`, waiting for input.
fn writer(place: &Place, collection: &str) -> Child {
    let mut command = place.command(&format!("add {collection} -"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let started = Instant::now();
    // It has the collection when nobody else gets it; whoever tries may have been there first.
    while place.run(&format!("remove {collection} nobody")).code == 1 {
        if child.try_wait().unwrap().is_some() {
            child = command.spawn().unwrap();
        }
        assert!(started.elapsed() < Duration::from_secs(60));
        thread::sleep(Duration::from_millis(200));
    }
    child
}

#[test]
fn one_process_writes_while_others_read() {
    let place = filled();
    let mut child = writer(&place, "docs");
    let said = place.expect(2, "add docs examples/stories");
    assert!(said.err.contains("docs: another process is writing to it"), "{}", said.err);
    assert!(said.err.contains("hint: only one process writes"), "{}", said.err);
    place.expect(0, "get docs 2.10.x/about.md");
    place.expect(0, "check docs");
    place.expect(0, "backup docs copy");
    assert_eq!(info(&place, "docs")["rows"], 144);

    child.stdin.take().unwrap().write_all(document("late", &text(1)).as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    place.expect(0, "get docs late");
    place.expect(0, "add docs examples/stories");
    assert_eq!(info(&place, "docs")["rows"], 148);
}

#[test]
#[cfg(unix)]
fn what_is_in_when_interrupted_is_told() {
    let place = filled();
    let mut child = writer(&place, "docs");
    let status =
        std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(status.unwrap().success());
    let held = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(held);
    assert_eq!(output.status.code(), Some(130));
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(err.contains("stopped: at least 0 documents in docs, and safe"), "{err}");
    place.expect(0, "check docs");
    place.expect(0, "add docs examples/docs.jsonl");
}

#[test]
fn signatures_that_do_not_belong_are_refused() {
    let place = filled();
    place.expect(0, "sign examples/docs.jsonl --recipe code -o code.sig");
    place.expect(0, "sign examples/docs.jsonl -o docs.sig");
    place.expect(0, "convert docs.sig docs.npy");
    place.expect(0, "sign examples/docs.jsonl --recipe web -o web.sig");
    place.expect(0, "convert web.sig web.npy");
    place.expect(0, "create codes --bits 64");
    for (line, problem) in [
        ("add docs code.sig", "made with recipe `code`"),
        ("add docs web.npy", "64 bits do not go with signatures of 256 bits"),
        ("add docs docs.sig examples/docs.jsonl", "add them one after the other"),
        ("add codes docs.npy", "256 bits do not go with signatures of 64 bits"),
        ("add codes examples/docs.jsonl", "no recipe to sign documents with"),
    ] {
        let said = place.expect(2, line);
        assert!(said.err.contains(problem) && said.err.contains("hint: "), "{line}: {}", said.err);
    }
    place.expect(0, "add codes web.npy");
    place.expect(0, "add docs docs.npy");
    assert_eq!(json(&place.expect(0, "get codes web.npy:7 --format json"))["id"], "web.npy:7");
    // Those of .npy have no margins, and a file has margins of all or of none.
    place.expect(0, "export docs -o all.sig");
    let columns = info(&place, "all.sig")["columns"].clone();
    assert_eq!(
        (columns, info(&place, "all.sig")["rows"].as_u64()),
        (serde_json::json!(["ids", "payloads"]), Some(288))
    );
}

#[test]
fn mistakes_are_told_with_the_way_out() {
    let place = filled();
    place.write("file", "");
    for (line, problem) in [
        ("add nowhere examples/docs.jsonl", "hint: `lookalike create nowhere` makes one"),
        ("get examples a", "is a folder, but no collection"),
        ("check file", "is a file, not a collection"),
        ("create docs", "is a collection already"),
        ("create examples", "not an empty folder"),
        ("create x --recipe nobody", "text, minhash-256, web, code"),
        ("create x --bits 100", "multiples of 8"),
        ("create x --index tree", "multi-2x4"),
        ("create x --index pieces-300", "hint: "),
        ("create x --radius 3", "--index sql"),
        ("create x --index sql --radius 64", "is the widest"),
        ("create x --store mysql://here", "postgres://USER@HOST/NAME"),
        ("create x --schema news", "`--schema` is for PostgreSQL"),
        ("create x --recipe topsig-1024", "hint: make them with `lookalike terms"),
        ("create x --recipe minhash-256 --margins", "have no margins"),
        ("add docs nowhere.jsonl", "nowhere.jsonl"),
        ("add docs nowhere.sig", "nowhere.sig"),
        ("add docs", "INPUT"),
        ("remove docs", "ID"),
        ("remove docs --ids nowhere.txt", "nowhere.txt"),
        ("export docs -o docs.npy", "hint: `lookalike convert`"),
        ("export docs -o no/folder/x.sig", "there is no folder"),
        ("info examples", "is a folder"),
    ] {
        let said = place.expect(2, line);
        assert!(said.err.contains(problem), "lookalike {line}\n{}", said.err);
        assert!(!said.err.contains("panicked"), "{}", said.err);
        assert!(!place.path("x").exists(), "nothing is left behind: {line}");
    }
    place.expect(0, "create plain");
    let said = place.expect(2, "get plain a --text");
    assert!(said.err.contains("keeps no texts"), "{}", said.err);
}

#[test]
fn bad_and_empty_documents_are_counted() {
    let place = Place::new();
    place.expect(0, "create c");
    let good = document("a", &text(1));
    place.write("x.jsonl", format!("{good}{{broken\n{{\"text\": \"...\"}}\n{{\"body\": 1}}\n"));
    let said = place.expect(2, "add c x.jsonl");
    assert!(
        said.err.contains("x.jsonl:2: ") && said.err.contains("stopped: 0 documents"),
        "{}",
        said.err
    );
    let said = place.expect(3, "add c x.jsonl --on-error skip --format json");
    let summary = json(&said);
    assert_eq!((summary["documents"].as_u64(), summary["added"].as_u64()), (Some(2), Some(1)));
    assert_eq!((summary["unsigned"].as_u64(), summary["bad"].as_u64()), (Some(1), Some(2)));
    assert!(said.err.contains("skipped: 2 bad records"), "{}", said.err);
    assert!(said.err.contains("1 document, as x.jsonl:3"), "{}", said.err);
}

#[test]
fn terms_stay_with_the_collection() {
    let place = Place::new();
    place.expect(0, "terms examples/docs.jsonl --recipe topsig-1024 -o docs.terms");
    place.expect(0, "create c --recipe topsig-1024 --terms docs.terms");
    fs::remove_file(place.path("docs.terms")).unwrap();
    place.expect(0, "add c examples/docs.jsonl");
    place.expect(0, "backup c copy");
    place.expect(0, "add copy examples/stories");
    assert_eq!(info(&place, "copy")["rows"], 147);
}

#[test]
fn damaged_records_are_told_and_not_believed() {
    let place = filled();
    let path = place.path("docs/records.sqlite");
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 6000].fill(0x5a);
    fs::write(&path, bytes).unwrap();
    let said = place.expect(2, "check docs");
    assert!(said.err.contains("hint: "), "{}", said.err);
    assert!(
        said.out.lines().count() > 0 || said.err.contains("damaged"),
        "{}{}",
        said.out,
        said.err
    );
    let said = place.expect(2, "export docs");
    assert!(said.err.contains("damaged") && said.err.contains("lookalike backup"), "{}", said.err);
}

#[test]
fn segments_can_be_deleted() {
    let place = many("");
    let before = place.expect(0, "export many").out;
    fs::remove_dir_all(place.path("many/segments")).unwrap();
    assert_eq!(place.expect(0, "export many").out, before);
    let said = place.expect(0, "check many");
    assert!(said.err.contains("5000 records, 0 segments"), "{}", said.err);
    place.expect(0, "add many examples/stories");
    let said = place.expect(0, "check many");
    assert!(said.err.contains("5003 records, 1 segment"), "{}", said.err);
}

#[test]
fn a_damaged_segment_is_told_and_made_again() {
    let place = many("");
    let segments = fs::read_dir(place.path("many/segments")).unwrap();
    for segment in segments.map(|segment| segment.unwrap().path()) {
        let mut bytes = fs::read(&segment).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&segment, bytes).unwrap();
    }
    let said = place.expect(2, "check many");
    assert!(said.out.contains("checksum"), "{}{}", said.out, said.err);
    assert!(said.err.contains("many: 1 problem\nhint: "), "{}", said.err);
    let said = place.expect(0, "compact many");
    assert!(said.err.contains("note: "), "{}", said.err);
    let said = place.expect(0, "check many");
    assert!(said.err.contains("5000 records, 1 segment"), "{}", said.err);
}

/// Two machines, as it were, with one database: what one adds the other finds, by its own index and by SQL.
#[test]
fn folders_share_a_postgresql_database() {
    let Ok(url) = std::env::var("LOOKALIKE_POSTGRES") else {
        eprintln!("skipped: LOOKALIKE_POSTGRES does not say where a server is");
        return;
    };
    let place = Place::new();
    let schema = format!("program_{}", std::process::id());
    let store = format!("--store {url} --schema {schema}");
    place.expect(0, &format!("create here --index sql --radius 3 --keep-text {store}"));
    place.expect(0, &format!("create there {store}"));
    let other = place.expect(2, &format!("create other --recipe web {store}"));
    assert!(other.err.contains("256 bits"), "{}", other.err);
    place.expect(0, "add here examples/docs.jsonl");
    let query = "--id 2.11.x/functions-overview.md --radius 3";
    let searches = ["here", "there", "there --index sql", "there --index scan"]
        .map(|search| place.run(&format!("search {search} {query}")).out);
    assert!(searches.iter().all(|out| *out == searches[0]), "{searches:?}");
    place.expect(0, "add there examples/stories");
    assert_eq!(info(&place, "here")["rows"], 147);
    assert_eq!(info(&place, "here")["sql_within"], 3);
    place.expect(0, "check there");
    let backup = place.expect(2, "backup here copy");
    assert!(backup.err.contains("pg_dump"), "{}", backup.err);
    assert!(!place.path("copy").exists());
}
