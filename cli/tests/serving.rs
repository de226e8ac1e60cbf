//! `lookalike serve` from outside: what `docs/http.md` promises, to friendly clients and to others.
#![allow(missing_docs)]
#![cfg(unix)]

mod common;
#[path = "common/http.rs"]
mod http;

use std::{
    collections::BTreeSet,
    fs,
    io::{self, Read, Write},
    net::{Shutdown, TcpStream},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant, SystemTime},
};

use common::{Place, Said};
use http::{Connection, JSON, LINES, Server, escape, head, postgres};
use serde_json::{Value, json};

const SECOND: Duration = Duration::from_secs(1);

/// A collection without documents, with all that one can keep.
fn empty(store: &str) -> Place {
    let place = Place::new();
    place.expect(0, &format!("create docs --keep-text --margins {store}"));
    place
}

/// A collection of the examples, all 144 of them.
fn filled() -> Place {
    let place = empty("");
    place.expect(0, "add docs examples/docs.jsonl");
    place
}

/// Words that no other text has.
fn text(number: usize) -> String {
    (0..40).map(|word| format!("word{number}x{word} ")).collect()
}

fn story(name: &str) -> String {
    let path = format!("{}/../examples/stories/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    fs::read_to_string(path).unwrap()
}

/// The lines of a body.
fn lines(values: &[Value]) -> String {
    values.iter().map(|value| format!("{value}\n")).collect()
}

fn json_of(said: &Said) -> Vec<Value> {
    said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The ids and distances of an answer.
fn found(answer: &Value) -> Vec<(String, u64)> {
    let hit = |hit: &Value| (hit["id"].as_str().unwrap().into(), hit["distance"].as_u64().unwrap());
    answer["hits"].as_array().unwrap_or_else(|| panic!("{answer}")).iter().map(hit).collect()
}

fn ids(answer: &Value) -> Vec<String> {
    found(answer).into_iter().map(|(id, _)| id).collect()
}

/// Waits until something is so.
#[track_caller]
fn soon(within: Duration, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < within, "not within {within:?}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// A number that is another one each time.
fn chance(below: u64) -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    now.as_nanos() as u64 / 1000 % below
}

/// How many requests are being worked on; whoever asks is not counted.
fn in_flight(server: &Server) -> u64 {
    let metrics = server.get("/metrics");
    let line = |line: &str| line.strip_prefix("lookalike_requests_in_flight ")?.parse().ok();
    metrics.text().lines().find_map(line).unwrap_or_else(|| panic!("{}", metrics.text()))
}

/// It has never had more memory than this, as far as the system tells.
#[track_caller]
fn assert_memory_below(server: &Server, megabytes: u64) {
    let most = server.most_memory();
    assert!(most.is_none_or(|most| most < megabytes), "{most:?} MB\n{}", server.log());
}

// The whole API, once through.

#[test]
fn everything_can_be_asked_for() {
    everything("");
}

#[test]
fn everything_can_be_asked_for_in_postgresql() {
    if let Some(store) = postgres("everything") {
        // A password is nobody's business, even one that nobody asks for.
        everything(&store.replace("//postgres@", "//postgres:hunter2@"));
    }
}

fn everything(store: &str) {
    let place = empty(store);
    let server = Server::start(&place, "docs");
    documents_are_added(&server);
    ids_that_are_there(&server);
    documents_are_shown(&server);
    texts_are_searched_for(&server);
    many_are_searched_for(&server);
    questions_are_understood(&server);
    documents_are_compared(&server);
    documents_are_seen(&server);
    clusters_are_listed(&server);
    documents_are_removed(&server);
    the_service_tells_about_itself(&server);
    let (code, log) = server.terminate();
    assert_eq!(code, Some(0), "{log}");
    place.expect(0, "check docs");
}

fn documents_are_added(server: &Server) {
    let payload = json!({ "source": "harbour.example", "lang": "en" });
    let one = json!({ "id": "harbour", "text": story("harbour"), "payload": payload });
    let added = server.post("/v1/documents", &one).good();
    assert_eq!(added["documents"], json!([{ "id": "harbour", "outcome": "added" }]));
    assert_eq!((&added["added"], &added["replaced"]), (&json!(1), &json!(0)));
    assert!(added["took_ms"].as_f64() > Some(0.0));

    let later = json!({ "id": "a/b c", "text": story("harbour-later"), "payload": payload });
    let orchard = json!({ "id": "orchard", "text": story("orchard"), "payload": { "lang": "de" } });
    let nothing = json!({ "id": "nothing", "text": " ... " });
    let added = server.post("/v1/documents", &json!([later, orchard, nothing])).good();
    assert_eq!((&added["added"], &added["unsigned"]), (&json!(2), &json!(1)));
    assert_eq!(added["documents"][2], json!({ "id": "nothing", "outcome": "unsigned" }));
    server.get("/v1/documents/nothing").problem(404);
    assert_eq!(server.post("/v1/documents", &json!([])).good()["added"], 0);

    // Blank lines are lines that nobody answers.
    let good = |id: &str, number: usize| json!({ "id": id, "text": text(number) }).to_string();
    let body = [
        &good("one", 1),
        "{\"id\": \"two\", ",
        "",
        &good("three", 3),
        "[]",
        r#"{"id": "x", "txt": ""}"#,
    ];
    let answers = server.post_as("/v1/documents", LINES, body.join("\n")).good_lines();
    assert_eq!(answers.len(), 5, "{answers:?}");
    assert_eq!(answers[0], json!({ "id": "one", "outcome": "added" }));
    assert_eq!((&answers[1]["line"], &answers[1]["error"]["status"]), (&json!(2), &json!(400)));
    assert_eq!(answers[2], json!({ "id": "three", "outcome": "added" }));
    assert_eq!(answers[3]["line"], 5);
    assert_eq!((&answers[4]["line"], &answers[4]["error"]["field"]), (&json!(6), &json!("txt")));

    assert!(server.post_as("/v1/documents", LINES, "\n\n").good_lines().is_empty());

    let sample = server.get("/sample.jsonl");
    assert_eq!((sample.status, sample.header("content-type")), (200, Some(LINES)));
    let answers = server.post_as("/v1/documents", LINES, &sample.body).good_lines();
    assert_eq!(answers.len(), 144);
    for (answer, line) in answers.iter().zip(sample.lines()) {
        assert_eq!(*answer, json!({ "id": line["id"], "outcome": "added" }));
    }
}

fn ids_that_are_there(server: &Server) {
    let document = json!({ "id": "one", "text": text(11) });
    let outcome = |path: &str| {
        server.post(path, &document).good()["documents"][0]["outcome"].as_str().unwrap().to_owned()
    };
    let signature = || server.get("/v1/documents/one").good()["signature"].clone();
    let before = signature();
    assert_eq!(outcome("/v1/documents?if_exists=skip"), "skipped");
    assert_eq!(signature(), before);
    assert_eq!(outcome("/v1/documents"), "replaced");
    assert_ne!(signature(), before);
    assert_eq!(outcome("/v1/documents?if_exists=replace"), "replaced");
    let problem = server.post("/v1/documents?if_exists=error", &document).problem(409);
    assert_eq!(problem["type"], "urn:lookalike:exists");
    assert!(problem["detail"].as_str().unwrap().contains("`one`"), "{problem}");
    // All of an array, or nothing.
    let both = json!([{ "id": "fresh", "text": text(12) }, document]);
    server.post("/v1/documents?if_exists=error", &both).problem(409);
    server.get("/v1/documents/fresh").problem(404);
}

fn documents_are_shown(server: &Server) {
    let shown = server.get("/v1/documents/a%2Fb%20c").good();
    assert_eq!((&shown["id"], &shown["payload"]["lang"]), (&json!("a/b c"), &json!("en")));
    assert_eq!(shown["signature"].as_str().unwrap().len(), 64);
    assert!(shown["time"].as_str().unwrap().starts_with("20"), "{shown}");
    assert!(shown.get("text").is_none());
    let shown = server.get("/v1/documents/a%2Fb%20c?text=true").good();
    assert_eq!(shown["text"], story("harbour-later"));
    let problem = server.get("/v1/documents/nobody").problem(404);
    assert_eq!(problem["field"], "id");
    assert!(server.get("/v1/documents/one").good()["payload"].is_null());
}

fn texts_are_searched_for(server: &Server) {
    let (harbour, later) = (story("harbour"), story("harbour-later"));
    let answer = server.post("/v1/search", &json!({ "text": later, "radius": 60 })).good();
    assert_eq!(ids(&answer), ["a/b c", "harbour"]);
    assert_eq!((&answer["exact"], &answer["records"]), (&json!(true), &json!(149)));
    assert!(answer.get("more").is_none() && answer.get("unsigned").is_none(), "{answer}");
    let hit = &answer["hits"][1];
    assert!((1..60).contains(&hit["distance"].as_u64().unwrap()), "{hit}");
    assert!((0.8..1.0).contains(&hit["similarity"].as_f64().unwrap()), "{hit}");
    assert_eq!(hit["payload"], json!({ "source": "harbour.example", "lang": "en" }));
    assert_eq!((&hit["exact"], &hit["index"]), (&json!(true), &answer["index"]));
    assert_eq!(hit["took_ms"], answer["took_ms"]);
    assert_eq!(
        (&answer["hits"][0]["distance"], &answer["hits"][0]["similarity"]),
        (&json!(0), &json!(1.0))
    );

    // Whichever way it is asked, it is the same answer.
    let page = format!("<html><body><h1></h1><p class=\"a\">{later}</p></body></html>");
    let signature = server.get("/v1/documents/a%2Fb%20c").good()["signature"].clone();
    let html = json!({ "text": page, "media": "html", "radius": 60 });
    for same in [
        server.post("/v1/search", &html),
        server.post("/v1/search", &json!({ "signature": signature, "radius": 60 })),
        server.post("/v1/search?radius=60", &json!({ "text": later })),
        server.post_as("/v1/search?radius=60", "text/plain; charset=utf-8", &later),
        server.post_as("/v1/search?radius=60", "text/html", &page),
        server.post_as("/v1/search?radius=60", "text/plain", later.to_uppercase()),
    ] {
        assert_eq!(found(&same.good()), found(&answer));
    }
    // A document does not find itself.
    let by_id = server.post("/v1/search", &json!({ "id": "a/b c", "radius": 60 })).good();
    assert_eq!(found(&by_id), found(&answer)[1..]);
    let lookalikes = server.get("/v1/documents/a%2Fb%20c/lookalikes?radius=60&limit=10").good();
    assert_eq!(found(&lookalikes), found(&by_id));
    let usual = server.get("/v1/documents/harbour/lookalikes").good();
    let radius = server.get("/v1/stats").good()["radius"].clone();
    let said = server.post("/v1/search", &json!({ "id": "harbour", "radius": radius })).good();
    assert_eq!(found(&usual), found(&said));
    server.get("/v1/documents/nobody/lookalikes").problem(404);
    let problem = server.post("/v1/search", &json!({ "id": "nobody" })).problem(404);
    assert_eq!(problem["field"], "id");

    let unsigned = server.post("/v1/search", &json!({ "text": "!" })).good();
    assert_eq!((&unsigned["unsigned"], &unsigned["hits"]), (&json!(true), &json!([])));
    let other = server.post("/v1/search", &json!({ "text": harbour, "radius": 0 })).good();
    assert_eq!(ids(&other), ["harbour"]);
}

fn many_are_searched_for(server: &Server) {
    let queries = [
        json!({ "text": story("orchard") }),
        json!({ "id": "harbour" }),
        json!({ "text": "" }),
        json!({ "signature": server.get("/v1/documents/three").good()["signature"] }),
    ];
    let one_by_one: Vec<Value> =
        queries.iter().map(|query| server.post("/v1/search?radius=60", query).good()).collect();
    let together = json!({ "queries": queries, "radius": 60 });
    let together = server.post("/v1/search", &together).good();
    assert!(together["took_ms"].is_number());
    let together = together["answers"].as_array().unwrap();
    let as_lines = server.post_as("/v1/search?radius=60", LINES, lines(&queries)).good_lines();
    for answers in [together, &as_lines] {
        assert_eq!(answers.len(), 4);
        for (answer, alone) in answers.iter().zip(&one_by_one) {
            assert_eq!(found(answer), found(alone));
            assert_eq!(answer.get("unsigned"), alone.get("unsigned"));
        }
    }
    assert_eq!(ids(&as_lines[0]), ["orchard"]);
    assert_eq!(as_lines[2]["unsigned"], true);

    // One that is wrong is told by its place, and is in nobody's way if it is a line.
    let bad = json!([queries[0], { "id": "nobody" }, { "signature": "12" }, queries[1]]);
    let problem = server.post("/v1/search", &json!({ "queries": bad })).problem(404);
    assert_eq!(problem["field"], "queries[1].id");
    let bad = lines(bad.as_array().unwrap());
    let answers = server.post_as("/v1/search?radius=60", LINES, bad).good_lines();
    assert_eq!(answers.len(), 4);
    assert_eq!(found(&answers[0]), found(&one_by_one[0]));
    assert_eq!((&answers[1]["line"], &answers[1]["error"]["status"]), (&json!(2), &json!(404)));
    assert_eq!(
        (&answers[2]["line"], &answers[2]["error"]["field"]),
        (&json!(3), &json!("signature"))
    );
    assert_eq!(found(&answers[3]), found(&one_by_one[1]));
}

fn questions_are_understood(server: &Server) {
    let search = |body: Value| server.post("/v1/search", &body).good();
    let id = "2.10.x/adaptors-spark.md";
    let all = search(json!({ "id": id, "radius": 80 }));
    assert!(found(&all).len() >= 2, "{all}");
    let first = search(json!({ "id": id, "radius": 80, "first": true }));
    assert_eq!(found(&first), found(&all)[..1]);
    let nearest = search(json!({ "id": id, "nearest": 2 }));
    assert_eq!(found(&nearest), found(&all)[..2]);
    let usual = search(json!({ "id": id }));
    assert_eq!(found(&usual).len(), 10);
    assert!(found(&usual).is_sorted_by_key(|(_, distance)| *distance));

    let limited = search(json!({ "id": id, "radius": 80, "limit": 1 }));
    assert_eq!((found(&limited), &limited["more"]), (found(&all)[..1].to_vec(), &json!(true)));
    let enough = search(json!({ "id": id, "radius": 80, "limit": found(&all).len() }));
    assert!(enough.get("more").is_none());

    let page = "adaptors-spark.md";
    let filter = format!("page = \"{page}\" and version != \"2.7.0\"");
    let filtered = search(json!({ "id": id, "radius": 256, "filter": filter }));
    assert_eq!(ids(&filtered), ["5.0.x/adaptors-spark.md"]);
    let in_url =
        format!("/v1/documents/{}/lookalikes?radius=256&filter={}", escape(id), escape(&filter));
    assert_eq!(found(&server.get(&in_url).good()), found(&filtered));
    let other_pages = search(json!({ "id": id, "nearest": 5, "exclude_same": ["page"] }));
    assert!(ids(&other_pages).iter().all(|id| !id.ends_with(page)), "{other_pages}");
    // A text brings what it is compared by.
    let text =
        server.get(&format!("/v1/documents/{}?text=true", escape(id))).good()["text"].clone();
    let body = json!({ "text": text, "payload": { "page": page }, "nearest": 5, "exclude_same": ["page"] });
    assert_eq!(found(&search(body)), found(&other_pages));

    let scan = search(json!({ "id": id, "radius": 80, "index": "scan", "explain": true }));
    assert_eq!((found(&scan), &scan["index"]), (found(&all), &json!("scan")));
    let explain = &scan["explain"];
    assert!(explain["why"].as_str().unwrap().contains("`index` says so"), "{explain}");
    assert_eq!(explain["kept"], "auto");
    assert!(!explain["parts"].as_array().unwrap().is_empty());
    assert!(all.get("explain").is_none());
}

fn documents_are_compared(server: &Server) {
    let (harbour, later) = (story("harbour"), story("harbour-later"));
    let signature = server.get("/v1/documents/harbour").good()["signature"].clone();
    let compare =
        |a: Value, b: Value| server.post("/v1/compare", &json!({ "a": a, "b": b })).good();
    let texts = compare(json!({ "text": harbour }), json!({ "text": later }));
    let distance = texts["distance"].as_u64().unwrap();
    assert!(distance > 0 && texts["bits"] == 256 && texts["measure"] == "cosine", "{texts}");
    assert_eq!(texts["differing"].as_array().unwrap().len() as u64, distance);
    for bit in texts["differing"].as_array().unwrap() {
        assert_eq!(bit["a"].as_u64().unwrap() + bit["b"].as_u64().unwrap(), 1, "{bit}");
        assert!(bit["bit"].as_u64() < Some(256));
        assert!(bit["margin_a"].as_u64() < Some(256) && bit["margin_b"].is_number(), "{bit}");
    }
    let features = &texts["features"];
    assert!(features["shared"].as_u64() > Some(50) && features["jaccard"].as_f64() > Some(0.5));
    assert!(!features["differences"].as_array().unwrap().is_empty());
    // The pieces of the diff, put together, are both texts.
    let side = |name: &str| -> String {
        let runs = texts["diff"].as_array().unwrap().iter();
        let own = runs.filter(|run| run["side"] == name || run["side"] == "both");
        own.map(|run| run["text"].as_str().unwrap()).collect()
    };
    assert_eq!((side("a"), side("b")), (harbour.clone(), later));
    assert!(
        texts["diff"]
            .as_array()
            .unwrap()
            .iter()
            .any(|run| run["side"] == "a" && run["text"] == "Eleven")
    );

    let by_id = compare(json!({ "id": "harbour" }), json!({ "id": "a/b c" }));
    for field in ["distance", "similarity", "features", "diff", "differing"] {
        assert_eq!(by_id[field], texts[field], "{field}");
    }
    assert_eq!((&by_id["a"]["id"], &by_id["a"]["text"]), (&json!("harbour"), &json!(harbour)));
    let by_signature = compare(json!({ "signature": signature }), json!({ "id": "a/b c" }));
    assert_eq!(by_signature["distance"], texts["distance"]);
    assert!(by_signature.get("diff").is_none() && by_signature.get("features").is_none());
    assert_eq!(by_signature["differing"].as_array().unwrap().len() as u64, distance);
    let same = compare(json!({ "id": "harbour" }), json!({ "signature": signature }));
    assert_eq!((&same["distance"], &same["differing"]), (&json!(0), &json!([])));
    let unsigned = compare(json!({ "text": "" }), json!({ "id": "harbour" }));
    assert!(unsigned["distance"].is_null() && unsigned["similarity"].is_null(), "{unsigned}");
    let problem =
        server.post("/v1/compare", &json!({ "a": { "id": "harbour" }, "b": { "id": "x" } }));
    assert_eq!(problem.problem(404)["field"], "b.id");
}

fn documents_are_seen(server: &Server) {
    let near = |number: usize| text(number).replace("x39 ", "y39 ");
    let document = |id: &str, text: String| json!({ "id": id, "text": text });
    let new = server.post("/v1/seen?radius=60", &document("s1", text(100))).good();
    assert_eq!(new, json!({ "id": "s1", "seen": false }));
    let again = server.post("/v1/seen?radius=60", &document("s2", near(100))).good();
    assert_eq!((&again["seen"], &again["lookalike"]), (&json!(true), &json!("s1")));
    assert!((1..=60).contains(&again["distance"].as_u64().unwrap()), "{again}");
    assert!(again["similarity"].as_f64() > Some(0.7), "{again}");
    server.get("/v1/documents/s2").problem(404);

    // Those of a call see each other.
    let many = json!([
        document("s3", text(101)),
        document("s4", text(101)),
        document("s5", String::new()),
        document("s6", near(100)),
    ]);
    let many = server.post("/v1/seen?radius=60", &many).good();
    let counts = ["seen", "added", "unsigned"].map(|name| many[name].as_u64().unwrap());
    assert_eq!(counts, [2, 1, 1], "{many}");
    assert_eq!(many["documents"][1]["lookalike"], "s3");
    assert_eq!(many["documents"][2], json!({ "id": "s5", "seen": false, "unsigned": true }));
    assert_eq!(many["documents"][3]["lookalike"], "s1");

    let body = format!(
        "{}\n{{}}\n{}\n",
        document("s7", text(102)),
        json!({ "id": "s8", "text": format!("<p>{}</p>", text(102)), "media": "html" })
    );
    let answers = server.post_as("/v1/seen?radius=60", LINES, body).good_lines();
    assert_eq!(answers[0], json!({ "id": "s7", "seen": false }));
    assert_eq!((&answers[1]["line"], &answers[1]["error"]["status"]), (&json!(2), &json!(422)));
    assert_eq!((&answers[2]["lookalike"], &answers[2]["distance"]), (&json!("s7"), &json!(0)));
}

fn clusters_are_listed(server: &Server) {
    let radius = 40;
    let list = |query: &str| server.get(&format!("/v1/clusters?radius={radius}&{query}")).good();
    let largest = list("order=largest&limit=1000");
    assert_eq!((&largest["radius"], &largest["exact"]), (&json!(radius), &json!(true)));
    let clusters = largest["list"].as_array().unwrap();
    assert_eq!(clusters.len() as u64, largest["clusters"].as_u64().unwrap());
    let sizes: u64 = clusters.iter().map(|cluster| cluster["size"].as_u64().unwrap()).sum();
    assert_eq!(sizes, largest["clustered"].as_u64().unwrap());
    let pairs = largest["pairs_by_distance"].as_array().unwrap();
    assert_eq!(pairs.len(), radius + 1);
    for (order, field) in
        [("largest", "size"), ("chain", "longest_chain"), ("farthest", "farthest")]
    {
        let ordered = list(&format!("order={order}&limit=1000"));
        let ordered = ordered["list"].as_array().unwrap();
        assert_eq!(ordered.len(), clusters.len());
        let values = ordered.iter().map(|cluster| cluster[field].as_u64().unwrap());
        assert!(values.rev().is_sorted(), "{order}");
        let page = list(&format!("order={order}&offset=2&limit=3"));
        assert_eq!(page["list"].as_array().unwrap()[..], ordered[2..5]);
    }

    let summary = &clusters[0];
    let id = summary["id"].as_str().unwrap();
    let one = server.get(&format!("/v1/clusters/{}?radius={radius}", escape(id))).good();
    for field in ["id", "size", "distinct", "longest_chain", "farthest", "min_similarity"] {
        assert_eq!(one[field], summary[field], "{field}");
    }
    let members = one["members"].as_array().unwrap();
    assert_eq!(members.len() as u64, one["size"].as_u64().unwrap());
    assert!(members[0]["keeper"] == true && members[0]["distance"] == 0 && members[0]["id"] == id);
    assert!(members[1..].iter().all(|member| member["keeper"] == false));
    assert_eq!(one["more"], false);
    for edge in one["edges"].as_array().unwrap() {
        let [a, b] =
            ["a", "b"].map(|end| members[edge[end].as_u64().unwrap() as usize]["id"].clone());
        let pair = json!({ "a": { "id": a }, "b": { "id": b } });
        assert_eq!(server.post("/v1/compare", &pair).good()["distance"], edge["distance"]);
    }
    // Asked for by another member, it is the same.
    let other = escape(members.last().unwrap()["id"].as_str().unwrap());
    let other = server.get(&format!("/v1/clusters/{other}?radius={radius}&limit=1")).good();
    assert_eq!((&other["id"], &other["more"]), (&one["id"], &json!(true)));
    assert_eq!(other["members"].as_array().unwrap().len(), 1);
    server.get("/v1/clusters/orchard?radius=0").problem(404);
    server.get("/v1/clusters/nobody").problem(404);
}

fn documents_are_removed(server: &Server) {
    let removed = server.delete("/v1/documents/a%2Fb%20c").good();
    assert_eq!(removed, json!({ "id": "a/b c", "removed": true }));
    server.get("/v1/documents/a%2Fb%20c").problem(404);
    server.delete("/v1/documents/a%2Fb%20c").problem(404);
    let body = json!({ "text": story("harbour-later"), "radius": 60 });
    assert_eq!(ids(&server.post("/v1/search", &body).good()), ["harbour"]);
    let cluster = server.get("/v1/clusters/harbour?radius=60");
    assert_eq!(cluster.status, 404, "{}", cluster.text());
}

fn the_service_tells_about_itself(server: &Server) {
    let stats = server.get("/v1/stats").good();
    // The stories, the sample, what was seen for the first time, and what NDJSON brought; one was removed.
    assert_eq!(stats["records"], 2 + 2 + 144 + 3);
    assert_eq!((&stats["name"], &stats["bits"]), (&json!("docs"), &json!(256)));
    assert_eq!((&stats["recipe_name"], &stats["measure"]), (&json!("text"), &json!("cosine")));
    assert_eq!(stats["keeps"], json!({ "texts": true, "margins": true }));
    assert_eq!((&stats["read_only"], &stats["limits"]["batch"]), (&json!(false), &json!(10_000)));
    assert!(stats["writes"]["documents"].as_u64() > Some(150), "{stats}");
    assert!(stats["searches"]["queries"].as_u64() > Some(20) && stats["parts"].is_array());
    assert!(!stats.to_string().contains("hunter2"), "{stats}");

    let plan = server.get("/v1/plan?radius=3&recall=0.9&batch=10").good();
    assert!(!plan["plans"].as_array().unwrap().is_empty() && plan["asked"].is_string(), "{plan}");
    assert!(plan["plans"][0]["query_seconds"].as_f64() > Some(0.0));
    assert!(server.get("/v1/plan?nearest=10").good()["asked"].as_str().unwrap().contains("10"));

    assert_eq!(server.get("/healthz").good(), json!({ "status": "ok" }));
    assert_eq!(server.get("/readyz").good(), json!({ "status": "ok" }));
    let metrics = server.get("/metrics");
    assert!(metrics.header("content-type").unwrap().starts_with("application/openmetrics-text"));
    for line in [
        "\nlookalike_requests_total{route=\"/v1/search\",method=\"POST\",status=\"200\"} ",
        "\nlookalike_request_duration_seconds_bucket{le=\"0.001\",route=\"/v1/documents\"} ",
        "\nlookalike_documents_total ",
        "\nlookalike_queries_total ",
        "\nlookalike_connections ",
        "\nlookalike_requests_in_flight ",
        "\nlookalike_records 151\n",
    ] {
        assert!(metrics.text().contains(line), "{line}\n{}", metrics.text());
    }
    let document = server.get("/v1/openapi.json").good();
    assert!(document["openapi"].as_str().unwrap().starts_with("3."));
    for path in ["/v1/documents", "/v1/documents/{id}", "/v1/search", "/v1/seen", "/v1/compare"] {
        assert!(document["paths"][path].is_object(), "{path}");
    }
    let page = server.get("/");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let ask = server.ask("HEAD", "/healthz", &[], b"");
    assert_eq!((ask.status, ask.body.len()), (200, 0));
}

// The service, the program and the library answer alike.

/// The hits of a search by the program.
fn search_by_program(place: &Place, line: &str) -> (Vec<(String, u64)>, bool) {
    let said = place.run(&format!("search {line} --format json"));
    assert!(said.code <= 1, "{line}: {}", said.err);
    let hits = json!({ "hits": json_of(&said) });
    (found(&hits), !said.out.contains("\"exact\":false"))
}

#[test]
fn answers_are_those_of_the_command_line() {
    let place = filled();
    let server = Server::start(&place, "docs");
    let ids = ["2.10.x/about.md", "2.10.x/adaptors-spark.md", "5.0.x/functions-worker-corun.md"];
    for id in ids {
        for (question, body) in [
            ("--radius 0", json!({ "id": id, "radius": 0 })),
            ("--radius 36", json!({ "id": id, "radius": 36 })),
            ("--radius 90", json!({ "id": id, "radius": 90 })),
            ("--nearest 7", json!({ "id": id, "nearest": 7 })),
            ("--radius 90 --first", json!({ "id": id, "radius": 90, "first": true })),
            (
                "--nearest 5 --exclude-same version",
                json!({ "id": id, "nearest": 5, "exclude_same": ["version"] }),
            ),
        ] {
            let (hits, exact) = search_by_program(&place, &format!("docs --id {id} {question}"));
            let answer = server.post("/v1/search", &body).good();
            assert_eq!(
                (found(&answer), &answer["exact"]),
                (hits, &json!(exact)),
                "{id} {question}"
            );
        }
    }
    for (a, b) in [(ids[0], "2.7.0/about.md"), (ids[0], ids[1]), (ids[1], ids[1])] {
        let said =
            place.expect(0, &format!("compare --in examples/docs.jsonl {a} {b} --format json"));
        let program = &json_of(&said)[0];
        let body = json!({ "a": { "id": a }, "b": { "id": b } });
        let service = server.post("/v1/compare", &body).good();
        assert_eq!(program["distance"], service["distance"], "{a} {b}");
        assert_eq!(program["bits"], service["bits"]);
        for field in ["jaccard", "cosine", "shared", "only_a", "only_b", "differences"] {
            assert_eq!(program[field], service["features"][field], "{field}");
        }
    }
}

#[test]
fn answers_by_an_index_are_those_of_the_command_line() {
    let place = Place::new();
    place.expect(0, "create codes --bits 64 --index pieces-4");
    let server = Server::start(&place, "codes");
    // Groups of signatures that are a few bits apart.
    let word = |i: u64| (i / 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (0b1011 << (i % 4 * 9));
    let documents: Vec<Value> = (0..6000)
        .map(|i| json!({ "id": format!("s{i}"), "signature": format!("{:016x}", word(i)) }))
        .collect();
    assert_eq!(server.post("/v1/documents", &json!(documents)).good()["added"], 6000);
    soon(20 * SECOND, || server.get("/v1/stats").good()["parts"][0]["index"] == "pieces-4");
    for id in ["s0", "s77", "s5999"] {
        for radius in [2, 3, 6, 12] {
            let (hits, exact) =
                search_by_program(&place, &format!("codes --id {id} --radius {radius}"));
            let answer = server.post("/v1/search", &json!({ "id": id, "radius": radius })).good();
            assert_eq!((found(&answer), &answer["exact"]), (hits, &json!(exact)), "{id} {radius}");
        }
    }
}

// What is wrong is told.

#[test]
fn mistakes_are_told_by_status_and_field() {
    mistakes(&empty(""));
}

#[test]
fn mistakes_are_told_by_status_and_field_in_postgresql() {
    if let Some(store) = postgres("mistakes") {
        mistakes(&empty(&store));
    }
}

/// What is asked, how it is refused, and the field that is named, if any.
type Refusal<'a> = (&'a str, u16, &'a str);

const BAD_DOCUMENTS: &[Refusal<'_>] = &[
    (r#"{"id": "a""#, 400, ""),
    ("", 400, ""),
    (r#"{"text": "a b c"}"#, 422, "id"),
    ("3", 422, ""),
    (r#"{"id": "a", "txt": "a b c"}"#, 422, "txt"),
    (r#"{"id": 3, "text": "a b c"}"#, 422, "id"),
    (r#"{"id": "a", "text": 3}"#, 422, "text"),
    (r#"{"id": "a", "text": "b", "payload": 3}"#, 422, "payload"),
    (r#"{"id": "a", "text": "b", "media": "pdf"}"#, 422, "media"),
    (r#"{"id": "", "text": "a b c"}"#, 422, "id"),
    (r#"{"id": "a\u0000", "text": "a b c"}"#, 422, "id"),
    (r#"{"id": "a", "text": "b", "signature": "00"}"#, 422, "text"),
    (r#"{"id": "a"}"#, 422, "text"),
    (r#"{"id": "a", "signature": "00ff"}"#, 422, "signature"),
    (r#"{"id": "a", "signature": "xyz"}"#, 422, "signature"),
    (r#"[{"id": "a", "text": "b"}, {"id": "b"}]"#, 422, "[1].text"),
    (r#"[{"id": "a", "text": "b"}, {"id": 1}]"#, 422, "[1].id"),
];

const BAD_SEARCHES: &[Refusal<'_>] = &[
    ("what?", 400, ""),
    (r#"{"text": "a", "radius": "#, 400, ""),
    ("{}", 422, "text"),
    (r#"{"text": "a", "id": "b"}"#, 422, "text"),
    (r#"{"signature": "00ff"}"#, 422, "signature"),
    (r#"{"signature": "0g"}"#, 422, "signature"),
    (r#"{"text": "a", "radius": 257}"#, 422, "radius"),
    (r#"{"text": "a", "radius": -1}"#, 422, "radius"),
    (r#"{"text": "a", "radius": "3"}"#, 422, "radius"),
    (r#"{"text": "a", "radius": 3, "nearest": 3}"#, 422, "nearest"),
    (r#"{"text": "a", "nearest": 0}"#, 422, "nearest"),
    (r#"{"text": "a", "limit": 0}"#, 422, "limit"),
    (r#"{"text": "a", "first": true}"#, 422, "first"),
    (r#"{"text": "a", "recall": 1.5}"#, 422, "recall"),
    (r#"{"text": "a", "index": "tree"}"#, 422, "index"),
    (r#"{"text": "a b c", "index": "sql", "radius": 3}"#, 422, "index"),
    (r#"{"text": "a", "filter": "lang ="}"#, 422, "filter"),
    (r#"{"text": "a", "radios": 3}"#, 422, "radios"),
    (r#"{"text": "a", "queries": []}"#, 422, "queries"),
    (r#"{"queries": [{"text": 3}]}"#, 422, "queries[0].text"),
    (r#"{"id": "\u0000"}"#, 404, "id"),
];

const BAD_COMPARISONS: &[Refusal<'_>] = &[
    (r#"{"a": {}, "b": {}} more"#, 400, ""),
    (r#"{"a": {"text": "a"}}"#, 422, "b"),
    (r#"{"a": {"text": "a"}, "b": {}}"#, 422, "b.text"),
    (r#"{"a": {"signature": "1"}, "b": {"text": ""}}"#, 422, "a.signature"),
    (r#"{"a": {"text": "a"}, "b": {"id": "nobody"}}"#, 404, "b.id"),
];

const BAD_URLS: &[Refusal<'_>] = &[
    ("POST /v1/documents?if_exists=maybe", 422, "if_exists"),
    ("POST /v1/documents?radius=3", 422, "radius"),
    ("POST /v1/seen?radius=257", 422, "radius"),
    ("POST /v1/seen?radius=x", 422, "radius"),
    ("POST /v1/search?radius=many", 422, "radius"),
    ("POST /v1/search?nearest=1&nearest=2", 422, ""),
    ("GET /v1/documents/a?text=yes", 422, "text"),
    ("GET /v1/documents/a?txt=true", 422, "txt"),
    ("GET /v1/documents/%ff", 422, "id"),
    ("GET /v1/documents/%00", 404, "id"),
    ("GET /v1/documents/%00/lookalikes", 404, "id"),
    ("GET /v1/clusters/%00", 404, "id"),
    ("DELETE /v1/documents/%00", 404, "id"),
    ("GET /v1/clusters?order=smallest", 422, "order"),
    ("GET /v1/clusters?limit=0", 422, "limit"),
    ("GET /v1/clusters?radius=1000", 422, "radius"),
    ("GET /v1/plan?recall=0", 422, "recall"),
    ("GET /v1/plan?batch=0", 422, "batch"),
    ("GET /v1/plan?radius=1&nearest=1", 422, "nearest"),
    ("GET /v1/plan?radius=99999999999999999999", 422, "radius"),
    ("GET /v1/nothing", 404, ""),
    ("GET /../etc/passwd", 404, ""),
    ("GET /v1/documents/a/b", 404, ""),
    ("GET /v1/search", 405, ""),
    ("PUT /v1/documents/a", 405, ""),
    ("DELETE /", 405, ""),
    ("BREW /v1/seen", 405, ""),
];

/// What a path takes none of.
const BAD_MEDIA: &[Refusal<'_>] = &[
    ("/v1/search application/pdf", 415, "Content-Type"),
    ("/v1/documents text/plain", 415, "Content-Type"),
    ("/v1/compare application/x-ndjson", 415, "Content-Type"),
    ("/v1/seen not/known", 415, "Content-Type"),
    ("/v1/seen ;;;", 415, "Content-Type"),
];

fn mistakes(place: &Place) {
    let server = Server::start(place, "docs");
    // All of them over one connection: what was wrong with one is in nobody's way.
    let mut connection = server.connect();
    let mut wrong = Vec::new();
    let mut refused =
        |method: &str, path: &str, media: &str, body: &str, (asked, status, field)| {
            let headers = [("Content-Type", media)];
            let answer = connection.request(method, path, &headers, body.as_bytes()).unwrap();
            let problem = answer.problem(answer.status);
            let named = problem["field"].as_str().unwrap_or_default();
            let allows = answer.header("allow").is_some();
            if (answer.status, named, allows) != (status, field, status == 405) {
                wrong.push(format!(
                    "{method} {path} {asked}\nnot {status} {field:?}, but {problem}"
                ));
            }
        };
    for (path, bad) in [
        ("/v1/documents", BAD_DOCUMENTS),
        ("/v1/seen", BAD_DOCUMENTS),
        ("/v1/search", BAD_SEARCHES),
        ("/v1/compare", BAD_COMPARISONS),
    ] {
        bad.iter().for_each(|refusal| refused("POST", path, JSON, refusal.0, *refusal));
    }
    for refusal in BAD_URLS {
        let (method, path) = refusal.0.split_once(' ').unwrap();
        refused(method, path, JSON, if method == "POST" { "[]" } else { "" }, *refusal);
    }
    for refusal in BAD_MEDIA {
        let (path, media) = refusal.0.split_once(' ').unwrap();
        refused("POST", path, media, "{}", *refusal);
    }
    // Before lines are answered, the question is looked at.
    refused("POST", "/v1/search?filter=lang+%3D", LINES, "{}", ("", 422, "filter"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    server.ask("POST", "/v1/seen", &[], b"{}").problem(415);
    assert_eq!(server.ask("PUT", "/v1/search", &[], b"").header("allow"), Some("POST"));
    assert_eq!(server.get("/v1/stats").good()["records"], 0, "nothing of all that was added");
    assert!(!server.log().contains("panicked"), "{}", server.log());
}

/// Documents and questions are objects, and nothing else that could be read as one.
#[test]
fn lists_of_fields_are_not_taken_for_objects() {
    let place = empty("");
    let server = Server::start(&place, "docs");
    let document = json!(["a", "one two three", "plain", null, null]);
    server.post("/v1/documents", &json!([document])).problem(422);
    let query = json!(["one two three", "plain", null, null, null]);
    server.post("/v1/search", &json!({ "queries": [query] })).problem(422);
    server.post("/v1/compare", &json!({ "a": query, "b": query })).problem(422);
    let answers = server.post_as("/v1/documents", LINES, document.to_string()).good_lines();
    assert_eq!(answers[0]["error"]["status"], 422, "{answers:?}");
    assert_eq!(server.get("/v1/stats").good()["records"], 0);
}

/// In a URL commas are between fields; in a body they may be in the name of one.
#[test]
fn names_of_fields_may_have_commas() {
    let place = empty("");
    let server = Server::start(&place, "docs");
    let document = |id: &str| json!({ "id": id, "text": text(1), "payload": { "a,b": 7, "c": 8 } });
    server.post("/v1/documents", &json!([document("x"), document("y")])).good();
    for (fields, count) in [(json!(["a", "b"]), 1), (json!(["c"]), 0), (json!(["a,b"]), 0)] {
        let body = json!({ "id": "x", "radius": 3, "exclude_same": fields });
        assert_eq!(found(&server.post("/v1/search", &body).good()).len(), count, "{fields}");
    }
}

/// What a database may not be able to keep is kept, or refused; never is it the server's failure.
fn odd_documents(place: &Place) {
    let server = Server::start(place, "docs");
    let long = "i".repeat(4096);
    for (id, document) in [
        ("nul", json!({ "id": "nul", "text": "one two three \0 four" })),
        (
            "payload",
            json!({ "id": "payload", "text": "one two three", "payload": { "a\0": "\0" } }),
        ),
        (
            "large",
            json!({ "id": "large", "text": "one two three", "payload": { "a": 1e300, "b": -0.0 } }),
        ),
        (
            "𝄞\u{202e}\u{fffd}",
            json!({ "id": "𝄞\u{202e}\u{fffd}", "text": "𝄞 \u{301} one two three" }),
        ),
        ("..", json!({ "id": "..", "text": "one two three" })),
        (
            "'; drop table records; --",
            json!({ "id": "'; drop table records; --", "text": "one two three" }),
        ),
        (&long, json!({ "id": long, "text": "one two three" })),
    ] {
        let answer = server.post("/v1/documents", &document);
        if answer.status != 200 {
            answer.problem(422);
            continue;
        }
        let shown = server.get(&format!("/v1/documents/{}?text=true", escape(id))).good();
        for field in ["id", "text", "payload"] {
            assert_eq!(shown[field], document[field], "{id}");
        }
        let body = json!({ "id": id, "radius": 256, "filter": "a != 3" });
        server.post("/v1/search", &body).good();
        assert_eq!(server.delete(&format!("/v1/documents/{}", escape(id))).good()["id"], id);
    }
    let longer = json!({ "id": "i".repeat(4097), "text": "one two three" });
    assert_eq!(server.post("/v1/documents", &longer).problem(422)["field"], "id");
    // As ids in questions they are just not there.
    let path = format!("/v1/documents/{}", "i".repeat(5000));
    server.get(&path).problem(404);
    assert_eq!(server.get("/v1/stats").good()["records"], 0);
}

#[test]
fn odd_documents_are_kept_or_refused() {
    odd_documents(&empty(""));
}

#[test]
fn odd_documents_are_kept_or_refused_in_postgresql() {
    if let Some(store) = postgres("odd") {
        odd_documents(&empty(&store));
    }
}

// Hostile input.

#[test]
fn what_is_not_json_is_told() {
    let place = empty("");
    let mut server = Server::start(&place, "docs");
    let depth = 100_000;
    let nested = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let objects = format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
    let payload = format!("{{\"id\": \"a\", \"text\": \"b\", \"payload\": {objects}}}");
    let unknown = format!("{{\"id\": \"a\", \"text\": \"b\", \"x\": {nested}}}");
    for path in ["/v1/documents", "/v1/seen", "/v1/search", "/v1/compare"] {
        for body in [&nested, &objects, &payload, &unknown] {
            let answer = server.post_as(path, JSON, body);
            // Whichever it sees first: that it is too deep, or that there is no such field.
            assert!([400, 422].contains(&answer.status), "{path}: {}", answer.text());
            answer.problem(answer.status);
        }
        for body in [&b"\xff"[..], b"\0", b"\xef\xbb\xbf{}"] {
            server.post_as(path, JSON, body).problem(400);
        }
    }
    for (path, body) in [
        ("/v1/documents", &b"{\"id\": \"a\", \"text\": \"\xff\xfe\"}"[..]),
        ("/v1/seen", b"{\"id\": \"\xc3\x28\", \"text\": \"b\"}"),
        ("/v1/search", b"{\"text\": \"\xff\"}"),
        ("/v1/search", b"{\"text\": \"\\ud800\"}"),
        ("/v1/compare", b"{\"a\": {\"text\": \"\xff\"}, \"b\": {\"text\": \"\"}}"),
    ] {
        server.post_as(path, JSON, body).problem(400);
    }
    server.post_as("/v1/documents", JSON, &payload).problem(400);
    for media in ["text/plain", "text/html"] {
        server.post_as("/v1/search", media, b"one two \xc3\x28 three").problem(400);
    }
    // Each a bad line of its own.
    let good = br#"{"id": "a", "text": "b"}"#;
    let body = [payload.as_bytes(), b"\xff\xfe", good].join(&b'\n');
    let answers = server.post_as("/v1/documents", LINES, body).good_lines();
    let statuses: Vec<_> = answers.iter().map(|line| line["error"]["status"].as_u64()).collect();
    assert_eq!(statuses, [Some(400), Some(400), None]);
    assert!(server.is_running() && !server.log().contains("panicked"), "{}", server.log());
}

#[test]
fn deep_filters_and_pages_harm_nobody() {
    deep_filters_and_pages(&empty(""));
}

#[test]
fn deep_filters_and_pages_harm_nobody_in_postgresql() {
    if let Some(store) = postgres("deep") {
        deep_filters_and_pages(&empty(&store));
    }
}

fn deep_filters_and_pages(place: &Place) {
    place.expect(0, "reslice docs --radius 3");
    place.expect(0, "add docs examples/docs.jsonl");
    let server = Server::start(place, "docs");
    let search = |filter: String, index: &str| {
        let body =
            json!({ "id": "2.10.x/about.md", "radius": 3, "filter": filter, "index": index });
        server.post("/v1/search", &body)
    };
    let mut longest = 0;
    for index in ["auto", "scan", "sql"] {
        for nested in ["(", "not ", "(a = 1 and "] {
            let filter = nested.repeat(100_000) + "a = 1";
            let problem = search(filter, index).problem(422);
            assert_eq!(problem["field"], "filter");
            longest = longest.max(problem["detail"].as_str().unwrap().len());
        }
        // A long one is no mistake, but may be more than a database takes.
        let long = search(vec!["a = 1"; 20_000].join(" or "), index);
        assert!([200, 422].contains(&long.status), "{index}: {}", long.text());
    }
    for tag in ["<div>", "<b><i>", "<table><tr>", "<a><p>", "<!--", "&#x"] {
        let page = tag.repeat(200_000) + " one two three four five";
        assert_eq!(server.post_as("/v1/search?nearest=1", "text/html", page).status, 200, "{tag}");
    }
    assert!(longest < 2000, "all of a filter is sent back: {longest} bytes");
}

/// Whoever is refused at once hears why, even with much still to be sent.
#[test]
fn refusals_of_long_bodies_are_heard() {
    let place = filled();
    let server = Server::start_with(&place, "docs", &[("LOOKALIKE_TOKEN", TOKEN)]);
    let right = format!("Bearer {TOKEN}");
    let body = vec![b' '; 30 << 20];
    for (method, path, token, media, status) in [
        ("POST", "/v1/documents", "Bearer wrong", JSON, 401),
        ("POST", "/v1/documents", right.as_str(), "application/pdf", 415),
        ("POST", "/v1/documents?x=y", right.as_str(), JSON, 422),
        ("POST", "/v1/nowhere", right.as_str(), JSON, 404),
        ("PUT", "/v1/documents", right.as_str(), JSON, 405),
        ("POST", "/healthz", "Bearer wrong", JSON, 405),
    ] {
        for _ in 0..3 {
            let headers = [("Content-Type", media), ("Authorization", token)];
            let answer = server.connect().request(method, path, &headers, &body);
            answer.unwrap_or_else(|error| panic!("{method} {path}: {error}")).problem(status);
        }
    }
}

#[test]
fn bodies_beyond_the_limit_are_refused() {
    let place = empty("");
    let server = Server::start(&place, "docs --max-body 1M");
    let beyond = json!({ "id": "a", "text": "word ".repeat(300_000) }).to_string();
    for path in ["/v1/documents", "/v1/seen", "/v1/search", "/v1/compare"] {
        let problem = server.post_as(path, JSON, &beyond).problem(413);
        assert!(problem["detail"].as_str().unwrap().contains("1048576"), "{problem}");
    }
    let enough = json!({ "id": "a", "text": "word ".repeat(200_000) }).to_string();
    server.post_as("/v1/documents", JSON, &enough).good();

    // Nobody says how long it will be.
    let chunked = [("Content-Type", JSON), ("Transfer-Encoding", "chunked")];
    let mut connection = server.connect();
    connection.send(head("POST", "/v1/documents", &chunked).as_bytes()).unwrap();
    for _ in 0..40 {
        connection.send_chunk(&[b' '; 1 << 16]).unwrap();
    }
    connection.send(b"0\r\n\r\n").unwrap();
    connection.answer().unwrap().problem(413);

    // Whoever asks first is told before anything is sent.
    let length = (1_u64 << 40).to_string();
    let asks = [("Content-Type", JSON), ("Content-Length", &length), ("Expect", "100-continue")];
    let (mut connection, started) = (server.connect(), Instant::now());
    connection.send(head("POST", "/v1/documents", &asks).as_bytes()).unwrap();
    let answer = connection.any_head().unwrap();
    assert_eq!(answer.status, 413);
    assert!(started.elapsed() < 2 * SECOND, "{:?}", started.elapsed());

    // And may go on if it fits.
    let length = enough.len().to_string();
    let asks = [("Content-Type", JSON), ("Content-Length", &length), ("Expect", "100-continue")];
    let mut connection = server.connect();
    connection.send(head("POST", "/v1/documents", &asks).as_bytes()).unwrap();
    assert_eq!(connection.any_head().unwrap().status, 100);
    connection.send(enough.as_bytes()).unwrap();
    assert_eq!(connection.answer().unwrap().good()["replaced"], 1);

    // Lines have the same limit each, and no limit together.
    let line = json!({ "id": "a", "text": "word ".repeat(100_000) });
    let body = format!("{line}\n{line}\n{line}\n{beyond}\n{line}\n");
    let answers = server.post_as("/v1/documents", LINES, body).good_lines();
    assert_eq!(answers.len(), 4, "{answers:?}");
    assert_eq!(answers[2]["outcome"], "replaced");
    assert_eq!(answers[3]["error"]["status"], 413);
    assert!(answers[3]["error"]["detail"].as_str().unwrap().contains("line 4"), "{}", answers[3]);
}

/// Sends so many bytes, or as many as are taken.
fn flood(stream: &mut TcpStream, bytes: u64, block: &[u8]) -> u64 {
    let mut sent = 0;
    while sent < bytes {
        if stream.write_all(block).is_err() {
            break;
        }
        sent += block.len() as u64;
    }
    sent
}

const GIGABYTE: u64 = 1 << 30;

#[test]
fn a_gigabyte_is_refused_in_bounded_memory() {
    let place = empty("");
    let mut server = Server::start(&place, "docs");
    let length = GIGABYTE.to_string();
    let headers = [("Content-Type", JSON), ("Content-Length", length.as_str())];
    let mut connection = server.connect();
    connection.send(head("POST", "/v1/documents", &headers).as_bytes()).unwrap();
    let sent = flood(&mut connection.writer(), GIGABYTE, &[b'x'; 1 << 20]);
    connection.answer().unwrap().problem(413);
    eprintln!("{} MB of a body of a gigabyte were taken", sent >> 20);
    assert_memory_below(&server, 400);

    // A single line of it; its answer is a line, too.
    let headers = [("Content-Type", LINES), ("Content-Length", length.as_str())];
    let mut connection = server.connect();
    connection.send(head("POST", "/v1/search", &headers).as_bytes()).unwrap();
    let mut writer = connection.writer();
    let writing = thread::spawn(move || flood(&mut writer, GIGABYTE, &[b'x'; 1 << 20]));
    let answers = connection.answer().unwrap().good_lines();
    assert_eq!((answers.len(), &answers[0]["error"]["status"]), (1, &json!(413)));
    connection.stream.get_ref().shutdown(Shutdown::Both).ok();
    eprintln!("{} MB of a line of a gigabyte were taken", writing.join().unwrap() >> 20);
    assert_memory_below(&server, 400);
    assert!(server.is_running());
    assert_eq!(server.get("/healthz").status, 200);
}

/// Each may be as large as is allowed, but not all at the same time.
#[test]
fn many_large_bodies_take_bounded_memory() {
    let place = filled();
    let server = Server::start(&place, "docs --max-body 8M");
    let headers = [("Content-Type", JSON), ("Content-Length", "8000000")];
    let mut held: Vec<Connection> = (0..60).map(|_| server.connect()).collect();
    let refused = AtomicUsize::new(0);
    thread::scope(|scope| {
        for connection in &mut held {
            scope.spawn(|| {
                connection.send(head("POST", "/v1/search", &headers).as_bytes()).unwrap();
                // All but the end of it.
                flood(&mut connection.writer(), 7_500_000, &[b' '; 100_000]);
                connection.stream.get_ref().set_read_timeout(Some(2 * SECOND)).unwrap();
                if let Ok(answer) = connection.answer() {
                    answer.problem(503);
                    assert!(answer.header("retry-after").is_some());
                    refused.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let refused = refused.into_inner();
    eprintln!("{refused} of 60 large bodies were refused, {:?} MB", server.most_memory());
    assert!((20..60).contains(&refused), "{refused}");
    assert_memory_below(&server, 400);
    // Small ones find room, and large ones as well when the others are gone.
    server.post("/v1/search", &json!({ "id": "2.10.x/about.md" })).good();
    drop(held);
    let large = json!({ "text": "word ".repeat(1_500_000) });
    soon(5 * SECOND, || server.post("/v1/search", &large).status == 200);
}

/// Sends a body of lines and reads the answers meanwhile; how many lines answered.
fn stream_lines(server: &Server, path: &str, block: String, times: usize) -> usize {
    let headers = [("Content-Type", LINES), ("Transfer-Encoding", "chunked")];
    let mut connection = server.connect();
    connection.send(head("POST", path, &headers).as_bytes()).unwrap();
    let mut writer = connection.writer();
    let writing = thread::spawn(move || {
        let chunk = format!("{:x}\r\n{block}\r\n", block.len());
        for _ in 0..times {
            writer.write_all(chunk.as_bytes()).unwrap();
        }
        writer.write_all(b"0\r\n\r\n").unwrap();
    });
    assert_eq!(connection.answer_head().unwrap().status, 200);
    let mut answers = 0;
    while let Some(chunk) = connection.chunk().unwrap() {
        answers += chunk.iter().filter(|&&byte| byte == b'\n').count();
        assert!(!String::from_utf8_lossy(&chunk).contains("\"error\""));
    }
    writing.join().unwrap();
    answers
}

#[test]
fn lines_of_any_number_take_bounded_memory() {
    let place = filled();
    let server = Server::start(&place, "docs");
    // 150 MB that have no words, and 150 MB of queries: 300 times a megabyte.
    let unsigned = json!({ "id": "a", "text": " - ".repeat(1300) }).to_string() + "\n";
    let block = unsigned.repeat((1 << 20) / unsigned.len());
    let lines = block.lines().count();
    assert_eq!(stream_lines(&server, "/v1/documents", block, 150), 150 * lines);
    let id = "2.10.x/about.md";
    let signature =
        server.get(&format!("/v1/documents/{}", escape(id))).good()["signature"].clone();
    let query =
        json!({ "signature": signature, "payload": { "a": "x".repeat(1000) } }).to_string() + "\n";
    let block = query.repeat((1 << 20) / query.len());
    let lines = block.lines().count();
    assert_eq!(stream_lines(&server, "/v1/search?radius=3", block, 150), 150 * lines);
    assert_memory_below(&server, 400);
    assert_eq!(server.get("/v1/stats").good()["records"], 144);
}

#[test]
fn every_limit_is_told() {
    let place = filled();
    let server = Server::start(&place, "docs --max-batch 3 --max-text 1K --max-hits 100");
    let document = |id: usize| json!({ "id": format!("d{id}"), "text": text(id) });
    let four: Vec<Value> = (0..4).map(document).collect();
    for path in ["/v1/documents", "/v1/seen"] {
        let problem = server.post(path, &json!(four)).problem(413);
        assert!(problem["detail"].as_str().unwrap().contains("NDJSON"), "{problem}");
        server.post(path, &json!(four[..3])).good();
        assert_eq!(server.post_as(path, LINES, lines(&four)).good_lines().len(), 4);
    }
    let query = json!({ "text": "one two three" });
    server.post("/v1/search", &json!({ "queries": vec![&query; 4] })).problem(413);
    server.post("/v1/search", &json!({ "queries": vec![&query; 3] })).good();

    let long = "word ".repeat(300);
    for (path, body, field) in [
        ("/v1/documents", json!({ "id": "a", "text": long }), "text"),
        ("/v1/documents", json!([document(1), { "id": "a", "text": long }]), "[1].text"),
        ("/v1/seen", json!({ "id": "a", "text": long, "media": "html" }), "text"),
        ("/v1/search", json!({ "text": long }), "text"),
        ("/v1/search", json!({ "queries": [query, { "text": long }] }), "queries[1].text"),
        ("/v1/compare", json!({ "a": query, "b": { "text": long } }), "b.text"),
    ] {
        assert_eq!(server.post(path, &body).problem(413)["field"], field, "{path}");
    }
    assert_eq!(server.post_as("/v1/search", "text/plain", &long).problem(413)["field"], "text");

    for (question, field) in [
        (json!({ "nearest": 101 }), "nearest"),
        (json!({ "radius": 3, "limit": 101 }), "limit"),
        (json!({ "nearest": 10, "limit": u64::MAX }), "limit"),
        (json!({ "nearest": u64::MAX }), "nearest"),
    ] {
        let mut body = question.clone();
        body["text"] = json!("one two three");
        assert_eq!(server.post("/v1/search", &body).problem(422)["field"], field, "{question}");
    }
    let mut many = json!({ "queries": vec![&query; 3], "nearest": 34 });
    assert_eq!(server.post("/v1/search", &many).problem(422)["field"], "nearest");
    many["nearest"] = json!(33);
    server.post("/v1/search", &many).good();
    let all = server.post("/v1/search", &json!({ "text": "one two three", "radius": 256 })).good();
    assert_eq!((found(&all).len(), &all["more"]), (100, &json!(true)));
}

/// A line is answered as it would be alone, whichever others come with it.
#[test]
fn lines_do_not_share_a_limit() {
    let place = filled();
    let server = Server::start(&place, "docs --max-hits 1000");
    let query = json!({ "id": "2.10.x/about.md" });
    let body = lines(&vec![query.clone(); 200]);
    for question in ["nearest=50", "radius=256", "radius=256&limit=100"] {
        let path = format!("/v1/search?{question}");
        let alone = server.post(&path, &query).good();
        let answers = server.post_as(&path, LINES, &body).good_lines();
        assert_eq!(answers.len(), 200, "{question}: {}", answers[0]);
        for answer in &answers {
            assert_eq!(found(answer).len(), found(&alone).len(), "{question}");
            assert_eq!(answer.get("more"), alone.get("more"), "{question}");
        }
    }
}

/// What is asked for is what comes, also where it is many.
#[test]
fn as_many_as_are_asked_for_come() {
    let place = Place::new();
    let rows: String = (0..3000_u64).map(|row| format!("{:016x}\n", row * 0x9e37_79b9)).collect();
    place.write("rows.hex", rows);
    place.expect(0, "create docs --bits 64");
    place.expect(0, "add docs rows.hex");
    let server = Server::start(&place, "docs");
    let asked = |question: Value| {
        let mut search = json!({ "signature": "0000000000000000" });
        search.as_object_mut().unwrap().extend(question.as_object().unwrap().clone());
        server.post("/v1/search", &search).good()
    };
    let answer = asked(json!({ "nearest": 2500 }));
    assert_eq!((found(&answer).len(), answer.get("more")), (2500, None));
    let answer = asked(json!({ "radius": 64 }));
    assert_eq!((found(&answer).len(), answer["more"].as_bool()), (1000, Some(true)));
    let answer = asked(json!({ "radius": 64, "limit": 3000 }));
    assert_eq!((found(&answer).len(), answer.get("more")), (3000, None));
}

/// Lines whose answers are very long take no more memory than one of them.
#[test]
fn long_answers_take_bounded_memory() {
    let place = Place::new();
    let rows: String = (0..20_000_u64).map(|row| format!("{row:016x}\n")).collect();
    place.write("rows.hex", rows);
    place.expect(0, "create docs --bits 64");
    place.expect(0, "add docs rows.hex");
    let server = Server::start(&place, "docs");
    let queries = lines(&vec![json!({ "signature": "0000000000000000" }); 60]);
    let answers = server.post_as("/v1/search?radius=64&limit=20000", LINES, queries);
    let hits: usize = answers.good_lines().iter().map(|answer| found(answer).len()).sum();
    assert_eq!(hits, 60 * 20_000);
    assert!(server.most_memory().is_none_or(|memory| memory < 400), "{:?}", server.most_memory());
}

/// What is found may be too much, and what is given may be too much to look at.
#[test]
fn large_payloads_and_long_filters_are_bounded() {
    let place = empty("");
    let server = Server::start(&place, "docs --max-answer 1M");
    let payload = json!({ "long": "x".repeat(300_000) });
    for number in 0..8 {
        let document = json!({ "id": number.to_string(), "text": text(1), "payload": payload });
        server.post("/v1/documents", &document).good();
    }
    let problem = server.post("/v1/search", &json!({ "text": text(1), "radius": 3 })).problem(413);
    assert_eq!(problem["field"], "limit");
    let few = server.post("/v1/search", &json!({ "text": text(1), "radius": 3, "limit": 3 }));
    assert_eq!(found(&few.good()).len(), 3);
    let filter = format!("year in ({}1)", "1, ".repeat(20_000));
    let problem = server.post("/v1/search", &json!({ "text": text(1), "filter": filter }));
    assert_eq!(problem.problem(422)["field"], "filter");
    let many = format!("{{\"queries\": [{}{{}}]}}", "{}, ".repeat(3_000_000));
    server.post_as("/v1/search", JSON, many).problem(413);
    assert!(server.most_memory().is_none_or(|memory| memory < 400), "{:?}", server.most_memory());
}

/// Payloads come back as they were written, on one line.
#[test]
fn payloads_come_back_as_they_were() {
    let place = empty("");
    let server = Server::start(&place, "docs");
    let body = format!(
        "{{\"id\": \"a\", \"text\": \"{}\", \"payload\": {{\n \"n\" : 123456789012345678901234567890}}}}",
        text(1)
    );
    server.post_as("/v1/documents", JSON, body).good();
    let answer = server.get("/v1/documents/a");
    assert!(answer.text().contains(r#""payload":{"n":123456789012345678901234567890}"#));
}

/// Of lines with ids that are not to be there, those that are there are told of, each at its place.
#[test]
fn lines_that_exist_are_told_of_one_by_one() {
    let place = empty("");
    let server = Server::start(&place, "docs");
    server.post("/v1/documents", &json!({ "id": "2", "text": text(2) })).good();
    let document = |id: usize| json!({ "id": id.to_string(), "text": text(id) });
    let body = lines(&[document(1), document(2), json!({ "id": 3 }), document(4)]);
    let answers = server.post_as("/v1/documents?if_exists=error", LINES, &body).good_lines();
    assert_eq!(answers[0], json!({ "id": "1", "outcome": "added" }));
    assert_eq!((&answers[1]["line"], &answers[1]["error"]["status"]), (&json!(2), &json!(409)));
    assert_eq!((&answers[2]["line"], &answers[2]["error"]["status"]), (&json!(3), &json!(422)));
    assert_eq!(answers[3], json!({ "id": "4", "outcome": "added" }));
    let errors = server.post_as("/v1/documents?only_errors=true", LINES, &body).good_lines();
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0]["line"], 3);
}

/// Clusters are kept for a while, but what is said of a document is true now.
#[test]
fn clusters_of_new_and_removed_documents_are_right() {
    let place = filled();
    let server = Server::start(&place, "docs");
    server.get("/v1/clusters").good();
    for id in ["a", "b", "c"] {
        server.post("/v1/documents", &json!({ "id": id, "text": text(7) })).good();
    }
    let members = |cluster: &Value| cluster["members"].as_array().unwrap().len();
    assert_eq!(members(&server.get("/v1/clusters/b").good()), 3);
    server.delete("/v1/documents/b").good();
    assert_eq!(members(&server.get("/v1/clusters/a").good()), 2);
    server.get("/v1/clusters/b").problem(404);
}

/// A stream of lines that waits for more is told when the server ends.
#[test]
fn a_stream_is_told_that_the_server_ends() {
    let place = filled();
    let server = Server::start(&place, "docs");
    let mut connection = server.connect();
    let headers = [("Content-Type", LINES), ("Transfer-Encoding", "chunked")];
    connection.send(head("POST", "/v1/search", &headers).as_bytes()).unwrap();
    connection.send_chunk(lines(&[json!({ "id": "2.10.x/about.md" })]).as_bytes()).unwrap();
    assert_eq!(connection.answer_head().unwrap().status, 200);
    connection.chunk().unwrap().unwrap();
    server.tell_to_end();
    let last: Value = serde_json::from_slice(&connection.chunk().unwrap().unwrap()).unwrap();
    assert_eq!(last["error"]["status"], 503);
    drop(connection);
    assert_eq!(server.ended().0, Some(0));
}

#[test]
fn garbage_is_refused_and_harms_nobody() {
    let place = empty("");
    let mut server = Server::start(&place, "docs");
    let long_header =
        format!("GET /healthz HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(1 << 20));
    let many_headers = format!("GET /healthz HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(10_000));
    let long_path = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(1 << 20));
    for garbage in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\x00\x00\x00\x00\x00\x00\x00\x00\r\n\r\n"[..],
        b"\r\n\r\n\r\n hello \r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /healthz\r\n\r\n",
        b"GET /healthz HTTP/9.9\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nno colon here\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nX\0: y\r\n\r\n",
        b"GET /heal thz HTTP/1.1\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"POST /v1/search HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/search HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"POST /v1/search HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        b"POST /v1/search HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, x\r\n\r\n",
        long_header.as_bytes(),
        many_headers.as_bytes(),
        long_path.as_bytes(),
    ] {
        let mut connection = server.connect();
        let _ = connection.send(garbage);
        let start = String::from_utf8_lossy(&garbage[..garbage.len().min(60)]).into_owned();
        match connection.answer_head() {
            Ok(answer) => assert!((400..500).contains(&answer.status), "{start:?}: {answer:?}"),
            Err(error) => assert_ne!(error.kind(), io::ErrorKind::WouldBlock, "{start:?}"),
        }
        assert!(connection.closes_within(5 * SECOND), "{start:?}");
    }
    // A body that is not chunked as it says, and one that breaks off.
    let chunked = [("Content-Type", JSON), ("Transfer-Encoding", "chunked")];
    let mut connection = server.connect();
    connection.send((head("POST", "/v1/search", &chunked) + "zz\r\nhello\r\n").as_bytes()).unwrap();
    connection.answer().unwrap().problem(400);
    let long = [("Content-Type", JSON), ("Content-Length", "100")];
    let mut connection = server.connect();
    connection.send((head("POST", "/v1/documents", &long) + "{\"id\": \"a\"").as_bytes()).unwrap();
    connection.stream.get_ref().shutdown(Shutdown::Write).unwrap();
    if let Ok(answer) = connection.answer() {
        answer.problem(400);
    }
    // The start of a body is no request, whatever it looks like.
    let smuggled = "GET /v1/stats HTTP/1.1\r\nHost: a\r\n\r\n";
    let length = smuggled.len().to_string();
    let mut connection = server.connect();
    let headers = [("Content-Type", "application/pdf"), ("Content-Length", length.as_str())];
    connection.send((head("POST", "/v1/search", &headers) + smuggled).as_bytes()).unwrap();
    connection.answer().unwrap().problem(415);
    connection.send(head("GET", "/healthz", &[]).as_bytes()).ok();
    if let Ok(answer) = connection.answer() {
        assert_eq!(answer.json(), json!({ "status": "ok" }));
    }
    assert!(server.is_running() && !server.log().contains("panicked"), "{}", server.log());
    assert_eq!(server.get("/healthz").status, 200);
}

/// Whoever makes up methods and paths does not fill the memory with what is counted of them.
#[test]
fn what_is_counted_is_bounded() {
    let place = empty("");
    let server = Server::start(&place, "docs");
    let mut connection = server.connect();
    let count = || server.get("/metrics").text().lines().count();
    connection.request("M", "/v1/search", &[], b"").unwrap().problem(405);
    connection.request("M", "/nowhere", &[], b"").unwrap().problem(404);
    let before = count();
    for number in 0..300 {
        connection.request(&format!("M{number}"), "/v1/search", &[], b"").unwrap().problem(405);
        let path = format!("/nowhere{number}");
        connection.request(&format!("M{number}"), &path, &[], b"").unwrap().problem(404);
    }
    let after = count();
    assert!(after < before + 100, "{before} lines have become {after}");
}

#[test]
fn an_answer_that_nobody_reads_is_given_up() {
    let place = filled();
    let server = Server::start(&place, "docs --max-time 2 --max-requests 4");
    let headers = [("Content-Type", LINES), ("Transfer-Encoding", "chunked")];
    let mut connection = server.connect();
    connection.send(head("POST", "/v1/search?radius=256", &headers).as_bytes()).unwrap();
    let line = json!({ "text": "one two three" }).to_string() + "\n";
    let chunk = line.repeat(1000);
    // Answers are much longer than queries; at some point nobody takes any more, and then it is over.
    let started = Instant::now();
    while connection.send_chunk(chunk.as_bytes()).is_ok() {
        assert!(started.elapsed() < 30 * SECOND);
    }
    soon(20 * SECOND, || in_flight(&server) == 0);
    assert_memory_below(&server, 400);
    assert_eq!(server.get("/v1/stats").good()["records"], 144);
}

// Slow clients, and many of them.

/// A request whose body does not come, although it is waited for already.
fn held(server: &Server, path: &str, media: &str) -> Connection {
    let mut connection = server.connect();
    let headers = [("Content-Type", media), ("Content-Length", "1000"), ("Expect", "100-continue")];
    connection.send(head("POST", path, &headers).as_bytes()).unwrap();
    if media == JSON {
        assert_eq!(connection.any_head().unwrap().status, 100);
    }
    connection
}

/// Sends a byte now and then, until nobody takes it any more or the time is over.
fn trickle(connection: &Connection, time: Duration) {
    let (mut writer, started) = (connection.writer(), Instant::now());
    thread::spawn(move || {
        while started.elapsed() < time && writer.write_all(b" ").is_ok() {
            thread::sleep(Duration::from_millis(200));
        }
    });
}

#[test]
fn a_body_that_trickles_is_not_waited_for() {
    let place = filled();
    let server = Server::start(&place, "docs --max-time 1");
    let mut slow: Vec<Connection> = (0..50).map(|_| held(&server, "/v1/documents", JSON)).collect();
    slow.iter().for_each(|connection| trickle(connection, 5 * SECOND));
    // Others do not wait for them.
    for _ in 0..10 {
        let started = Instant::now();
        server.post("/v1/search", &json!({ "id": "2.10.x/about.md" })).good();
        assert!(started.elapsed() < SECOND, "{:?}", started.elapsed());
    }
    for connection in &mut slow {
        let problem = connection.answer().unwrap().problem(408);
        assert_eq!(problem["type"], "urn:lookalike:too-slow");
    }
}

/// Bytes are not lines: a line has the time of a request to come.
#[test]
fn a_line_that_trickles_is_not_waited_for() {
    let place = filled();
    let server = Server::start(&place, "docs --max-time 1");
    let mut silent = held(&server, "/v1/documents", LINES);
    let mut slow = held(&server, "/v1/documents", LINES);
    trickle(&slow, 20 * SECOND);
    for (connection, name) in [(&mut silent, "silent"), (&mut slow, "slow")] {
        connection.stream.get_ref().set_read_timeout(Some(6 * SECOND)).unwrap();
        let answers = connection.answer().expect(name).good_lines();
        assert_eq!(answers.last().unwrap()["error"]["status"], 408);
    }
}

/// The head of a request has ten seconds to come.
#[test]
fn a_head_that_never_ends_is_not_waited_for() {
    let place = empty("");
    let server = Server::start(&place, "docs");
    let mut slow: Vec<Connection> = (0..50).map(|_| server.connect()).collect();
    for connection in &mut slow {
        connection.send(b"GET /healthz HTTP/1.1\r\nX: ").unwrap();
    }
    trickle(&slow[0], 20 * SECOND);
    let started = Instant::now();
    server.get("/v1/stats").good();
    assert!(started.elapsed() < SECOND, "{:?}", started.elapsed());
    assert!(slow[0].closes_within(15 * SECOND), "it is still open");
    assert!(slow[49].closes_within(3 * SECOND), "it is still open");
}

#[test]
fn more_requests_than_allowed_are_told_to_come_again() {
    let place = filled();
    let server = Server::start(&place, "docs --max-requests 2");
    let mut first = held(&server, "/v1/search", JSON);
    let mut second = held(&server, "/v1/documents", LINES);
    // Lines are answered from the start.
    assert_eq!(second.answer_head().unwrap().status, 200);
    let search = || server.post("/v1/search", &json!({ "id": "2.10.x/about.md" }));
    let started = Instant::now();
    let refused = search();
    assert_eq!(refused.problem(429)["type"], "urn:lookalike:too-many");
    assert!(refused.header("retry-after").unwrap().parse::<u32>().unwrap() >= 1);
    assert!(started.elapsed() < SECOND, "{:?}", started.elapsed());
    // Whoever watches is not one of them.
    assert_eq!(server.get("/healthz").status, 200);
    assert_eq!(server.get("/").status, 200);

    first.send(&[b' '; 1000]).unwrap();
    first.answer().unwrap().problem(400);
    soon(SECOND, || search().status == 200);
    // Whoever goes away is not waited for.
    drop(second);
    let third = held(&server, "/v1/search", JSON);
    soon(2 * SECOND, || search().status == 200);
    drop(third);
}

#[test]
fn more_connections_than_allowed_are_told_to_come_again() {
    let place = filled();
    let server = Server::start(&place, "docs --max-connections 3");
    let mut held: Vec<Connection> = (0..3).map(|_| server.connect()).collect();
    for connection in &mut held {
        let answer = connection.request("GET", "/healthz", &[], b"").unwrap();
        assert_eq!(answer.status, 200);
    }
    for _ in 0..5 {
        let refused = server.get("/healthz");
        refused.problem(503);
        assert!(refused.header("retry-after").is_some());
    }
    // Those that are there are served on.
    assert_eq!(held[0].request("GET", "/readyz", &[], b"").unwrap().status, 200);
    held.pop();
    soon(2 * SECOND, || server.get("/healthz").status == 200);
}

/// So many requests in all, from so many clients, each of which sends some before it reads.
const TINY: usize = 1_000_000;
const CLIENTS: usize = 4;
const TOGETHER: usize = 500;

#[test]
fn a_million_requests_are_answered() {
    let place = empty("");
    let server = Server::start(&place, "docs");
    let started = Instant::now();
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| ask_many(&server, TINY / CLIENTS));
        }
    });
    eprintln!("{TINY} requests in {:?}, {:?} MB", started.elapsed(), server.most_memory());
    assert_memory_below(&server, 200);
    let metrics = server.get("/metrics");
    let counted = format!("{{route=\"/healthz\",method=\"GET\",status=\"200\"}} {TINY}\n");
    assert!(metrics.text().contains(&counted), "{}", metrics.text());
}

fn ask_many(server: &Server, count: usize) {
    let request = head("GET", "/healthz", &[]);
    let block = request.repeat(TOGETHER);
    let mut connection = server.connect();
    let mut answer = Vec::new();
    for _ in 0..count / TOGETHER {
        connection.send(block.as_bytes()).unwrap();
        let mut missing = TOGETHER;
        // All answers are equally long; how long, the first one tells.
        if answer.is_empty() {
            let first = connection.answer_head().unwrap();
            let headers = first.headers.iter().map(|(name, value)| name.len() + value.len() + 4);
            let body = "{\"status\":\"ok\"}".len();
            answer = vec![0; "HTTP/1.1 200 OK\r\n".len() + headers.sum::<usize>() + 2 + body];
            connection.stream.read_exact(&mut vec![0; body]).unwrap();
            missing -= 1;
        }
        for _ in 0..missing {
            connection.stream.read_exact(&mut answer).unwrap();
            assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n"));
            assert!(answer.ends_with(b"\r\n\r\n{\"status\":\"ok\"}"));
        }
    }
}

// Who may ask.

const TOKEN: &str = "write-0123456789abcdef";
const READ_TOKEN: &str = "read-fedcba9876543210";

#[test]
fn tokens_open_what_they_should() {
    let place = filled();
    let variables = [("LOOKALIKE_TOKEN", TOKEN), ("LOOKALIKE_READ_TOKEN", READ_TOKEN)];
    let by_variables = Server::start_with(&place, "docs --log-level trace", &variables);
    tokens_are_asked_for(by_variables);
    place.write("token", format!("{TOKEN}\n"));
    place.write("read-token", READ_TOKEN);
    let files = "docs --token-file token --read-token-file read-token --log-level trace";
    // What a file says is said; the environment is for those who have none.
    let by_files = Server::start_with(&place, files, &[("LOOKALIKE_TOKEN", "another")]);
    tokens_are_asked_for(by_files);
}

fn tokens_are_asked_for(server: Server) {
    let document = json!({ "id": "a", "text": text(1) }).to_string();
    let status = |token: Option<&str>, method: &str, path: &str, body: &str| {
        let bearer = format!("Bearer {}", token.unwrap_or_default());
        let mut headers = vec![("Content-Type", JSON)];
        headers.extend(token.map(|_| ("Authorization", bearer.as_str())));
        server.ask(method, path, &headers, body.as_bytes())
    };
    let query = "{\"id\": \"2.10.x/about.md\"}";
    for (method, path, body, writes) in [
        ("GET", "/v1/stats", "", false),
        ("GET", "/v1/documents/2.10.x%2Fabout.md", "", false),
        ("GET", "/v1/clusters", "", false),
        ("GET", "/metrics", "", false),
        ("POST", "/v1/search", query, false),
        ("POST", "/v1/compare", "{\"a\": {\"text\": \"\"}, \"b\": {\"text\": \"\"}}", false),
        ("POST", "/v1/documents", document.as_str(), true),
        ("POST", "/v1/seen", document.as_str(), true),
        ("DELETE", "/v1/documents/a", "", true),
    ] {
        for token in [None, Some("wrong-token-1234"), Some(""), Some(&TOKEN[1..])] {
            let answer = status(token, method, path, body);
            answer.problem(401);
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{path}");
        }
        let reader = status(Some(READ_TOKEN), method, path, body);
        match writes {
            true => drop(reader.problem(403)),
            false => assert_eq!(reader.status, 200, "{path}: {}", reader.text()),
        }
        let writer = status(Some(TOKEN), method, path, body);
        assert_eq!(writer.status, 200, "{path}: {}", writer.text());
    }
    for open in ["/healthz", "/readyz", "/", "/style.css", "/v1/openapi.json"] {
        assert_eq!(server.get(open).status, 200, "{open}");
    }
    // Whatever else there is of a token is none.
    let basic = [("Authorization", "Basic d3JpdGU="), ("Content-Type", JSON)];
    server.ask("GET", "/v1/stats", &basic, b"").problem(401);
    server.get(&format!("/v1/stats?token={TOKEN}")).problem(401);

    let (code, log) = server.terminate();
    assert_eq!(code, Some(0));
    assert!(log.contains("answered") && log.contains("/v1/search"), "{log}");
    for token in [TOKEN, READ_TOKEN, &TOKEN[1..], "wrong-token-1234", "another"] {
        assert!(!log.contains(token), "{token} is in the log");
    }
}

#[test]
fn nobody_is_let_in_by_mistake() {
    let place = empty("");
    place.write("blank", "\n");
    let refused = |flags: &str, variables: &[(&str, &str)]| {
        let output = http::command(&place, flags, variables).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{flags}: {said}");
        assert!(said.contains("hint: "), "{flags}: {said}");
        said
    };
    for listen in ["0.0.0.0:0", "[::]:0"] {
        let said = refused(&format!("docs --listen {listen}"), &[]);
        assert!(said.contains("can be reached from elsewhere"), "{said}");
        assert!(said.contains("--token-file") && said.contains("--insecure"), "{said}");
    }
    refused("docs", &[("LOOKALIKE_READ_TOKEN", READ_TOKEN)]);
    refused("docs --token-file nowhere", &[]);
    refused("docs --token-file blank", &[]);
    refused("docs", &[("LOOKALIKE_TOKEN", "with space")]);
    refused("docs", &[("LOOKALIKE_TOKEN", "")]);
    refused("docs --radius 257", &[]);
    refused("nowhere", &[]);

    let server = Server::start(&place, "docs --listen 0.0.0.0:0 --insecure");
    server.get("/v1/stats").good();
    // One writes, and one listens at an address.
    let said = refused("docs", &[]);
    assert!(said.contains("another process is writing"), "{said}");
    let said = refused(&format!("docs --read-only --listen {}", server.address), &[]);
    assert!(said.contains("cannot listen"), "{said}");
    let tokens = [("LOOKALIKE_TOKEN", TOKEN)];
    drop(server);
    let server = Server::start_with(&place, "docs --listen 0.0.0.0:0", &tokens);
    server.get("/v1/stats").problem(401);
}

/// A page from elsewhere may lead a browser here by a name of its own; it learns nothing by that.
#[test]
fn other_names_than_those_of_this_machine_are_not_answered() {
    let place = filled();
    let server = Server::start(&place, "docs");
    let ask = |host: &str| {
        let mut connection = server.connect();
        let request = format!("GET /v1/stats HTTP/1.1\r\nHost: {host}\r\n\r\n");
        connection.send(request.as_bytes()).unwrap();
        connection.answer().unwrap()
    };
    for host in [
        "harbour.example",
        "harbour.example:8080",
        "localhost.harbour.example",
        "127.0.0.1.example",
    ] {
        assert_eq!(ask(host).problem(403)["type"], "urn:lookalike:not-allowed");
    }
    let port = server.address.port();
    for host in ["localhost", "127.0.0.1", "[::1]"] {
        ask(&format!("{host}:{port}")).good();
    }
    // Where a token is needed, or everybody is welcome, any name will do.
    drop(server);
    let server = Server::start(&place, "docs --insecure");
    let headers = [("Host", "harbour.example")];
    let mut connection = server.connect();
    let request = head("GET", "/v1/stats", &headers).replace("Host: localhost\r\n", "");
    connection.send(request.as_bytes()).unwrap();
    connection.answer().unwrap().good();
}

// What is acknowledged stays.

/// What clients were told is in.
#[derive(Default)]
struct Told {
    ids: Mutex<Vec<String>>,
    next: AtomicUsize,
}

impl Told {
    /// A document that nobody has sent yet.
    fn document(&self) -> Value {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        json!({ "id": format!("d{number}"), "text": text(number) })
    }

    /// Notes those that an answer says are in.
    fn note(&self, answers: &[Value]) {
        let is_in = |answer: &&Value| answer["outcome"] == "added" || answer["seen"] == false;
        let ids = answers.iter().filter(is_in).map(|answer| answer["id"].as_str().unwrap().into());
        self.ids.lock().unwrap().extend(ids);
    }

    fn len(&self) -> usize {
        self.ids.lock().unwrap().len()
    }
}

/// Posts documents until the server is gone.
fn post_one_by_one(server: &Server, told: &Told, path: &str, batch: usize) -> io::Result<()> {
    let mut connection = server.connect();
    loop {
        let documents: Vec<Value> = (0..batch).map(|_| told.document()).collect();
        let body = if batch == 1 { documents[0].to_string() } else { json!(documents).to_string() };
        let headers = [("Content-Type", JSON)];
        let answer = connection.request("POST", path, &headers, body.as_bytes())?.good();
        match answer["documents"].as_array() {
            Some(answers) => told.note(answers),
            None => told.note(&[answer]),
        }
    }
}

/// Posts lines until the server is gone.
fn post_lines(server: &Server, told: &Told, path: &str) -> io::Result<()> {
    let mut connection = server.connect();
    let headers = [("Content-Type", LINES), ("Transfer-Encoding", "chunked")];
    connection.send(head("POST", path, &headers).as_bytes())?;
    let mut answers = Vec::new();
    connection.send_chunk((told.document().to_string() + "\n").as_bytes())?;
    assert_eq!(connection.answer_head()?.status, 200);
    loop {
        let documents: Vec<Value> = (0..20).map(|_| told.document()).collect();
        connection.send_chunk(lines(&documents).as_bytes())?;
        answers.extend(connection.chunk()?.unwrap_or_default());
        // Of the last line only a part may have come.
        let whole = answers.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let rest = answers.split_off(whole);
        let text = String::from_utf8(std::mem::replace(&mut answers, rest)).unwrap();
        let noted: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        told.note(&noted);
    }
}

fn killed(store: &str) {
    let place = Place::new();
    place.expect(0, &format!("create docs {store}"));
    let told = Told::default();
    for round in 0..5 {
        let mut server = Server::start(&place, "docs");
        let before = told.len();
        let id = server.id().to_string();
        thread::scope(|scope| {
            let (server, told) = (&server, &told);
            for _ in 0..2 {
                scope.spawn(|| post_one_by_one(server, told, "/v1/documents", 1));
            }
            scope.spawn(|| post_one_by_one(server, told, "/v1/documents", 50));
            scope.spawn(|| post_one_by_one(server, told, "/v1/seen?radius=3", 1));
            scope.spawn(|| post_one_by_one(server, told, "/v1/seen?radius=3", 10));
            scope.spawn(|| post_lines(server, told, "/v1/documents"));
            scope.spawn(|| post_lines(server, told, "/v1/seen?radius=3"));
            soon(20 * SECOND, || told.len() > before);
            thread::sleep(Duration::from_millis(chance(600)));
            let status = std::process::Command::new("kill").args(["-KILL", &id]).status();
            assert!(status.unwrap().success());
        });
        server.kill();
        place.expect(0, "check docs");
        let there: BTreeSet<String> = json_of(&place.expect(0, "export docs"))
            .iter()
            .map(|record| record["id"].as_str().unwrap().to_owned())
            .collect();
        let told = told.ids.lock().unwrap();
        let lost: Vec<&String> = told.iter().filter(|id| !there.contains(*id)).collect();
        eprintln!("round {round}: {} told, {} there", told.len(), there.len());
        assert!(lost.is_empty(), "round {round}: {} of {} lost: {lost:?}", lost.len(), told.len());
    }
    assert!(told.len() > 100, "{}", told.len());
}

#[test]
fn a_killed_server_loses_nothing() {
    killed("");
}

#[test]
fn a_killed_server_loses_nothing_in_postgresql() {
    if let Some(store) = postgres("killed") {
        killed(&store);
    }
}

#[test]
fn a_server_that_is_told_to_end_finishes_its_work() {
    let place = Place::new();
    place.expect(0, "create many --recipe web");
    let server = Server::start(&place, "many");
    let documents: Vec<Value> = (0..5000)
        .map(|i: u64| {
            let word = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            json!({ "id": i.to_string(), "signature": format!("{word:016x}") })
        })
        .collect();
    assert_eq!(server.post("/v1/documents", &json!(documents)).good()["added"], 5000);

    // Three are under way: one that writes, one that reads, one of lines; and one that is idle.
    let body = json!({ "id": "late", "text": text(1) }).to_string();
    let query = json!({ "id": "7", "radius": 0 }).to_string();
    let start = |path: &str, media: &str, body: &str| {
        let length = body.len().to_string();
        let mut connection = server.connect();
        let headers = [("Content-Type", media), ("Content-Length", length.as_str())];
        connection.send((head("POST", path, &headers) + &body[..10]).as_bytes()).unwrap();
        connection
    };
    let mut writes = start("/v1/documents", JSON, &body);
    let mut reads = start("/v1/search", JSON, &query);
    let mut lines = start("/v1/search?radius=0", LINES, "{\"id\": \"8\"}\n");
    let mut idle = server.connect();
    assert_eq!(idle.request("GET", "/readyz", &[], b"").unwrap().status, 200);
    // Only requests that have begun are finished.
    soon(5 * SECOND, || in_flight(&server) == 3);

    server.tell_to_end();
    soon(5 * SECOND, || Connection::open(server.address).is_err());
    assert!(idle.closes_within(5 * SECOND));
    thread::sleep(SECOND / 5);
    writes.send(&body.as_bytes()[10..]).unwrap();
    assert_eq!(writes.answer().unwrap().good()["added"], 1);
    reads.send(&query.as_bytes()[10..]).unwrap();
    assert_eq!(reads.answer().unwrap().good()["exact"], true);
    lines.send(b"}\n").unwrap();
    assert_eq!(lines.answer().unwrap().good_lines().len(), 1);
    let started = Instant::now();
    let (code, log) = server.ended();
    assert_eq!(code, Some(0), "{log}");
    assert!(started.elapsed() < 10 * SECOND, "{:?}", started.elapsed());
    assert!(log.contains("ended") && !log.contains("cut off"), "{log}");

    let info = json_of(&place.expect(0, "info many --format json")).remove(0);
    assert_eq!(info["rows"], 5001);
    assert!(info["parts"].as_array().unwrap().iter().any(|part| part["saved"] == true), "{info}");
    place.expect(0, "check many");
    let server = Server::start(&place, "many");
    assert!(!server.log().contains("note: "), "{}", server.log());
    let parts = server.get("/v1/stats").good()["parts"].clone();
    assert!(parts.as_array().unwrap().iter().any(|part| part["saved"] == true), "{parts}");
    server.get("/v1/documents/late").good();
}

/// Whoever keeps it waiting is not waited for longer than ever.
#[test]
fn a_server_that_is_told_to_end_does_not_wait_for_ever() {
    let place = filled();
    let server = Server::start(&place, "docs --max-time 1");
    let _held = [
        held(&server, "/v1/documents", JSON),
        held(&server, "/v1/documents", LINES),
        server.connect(),
    ];
    soon(5 * SECOND, || in_flight(&server) == 2);
    let started = Instant::now();
    let (code, log) = server.terminate();
    assert_eq!(code, Some(0), "{log}");
    assert!(started.elapsed() < 10 * SECOND, "{:?}", started.elapsed());
}

// Several at a time.

#[test]
fn what_one_server_adds_another_finds_in_postgresql() {
    let Some(store) = postgres("two") else { return };
    let place = Place::new();
    place.expect(0, &format!("create here --keep-text {store}"));
    place.expect(0, &format!("create there {store}"));
    let servers = [Server::start(&place, "here"), Server::start(&place, "there")];
    for (number, [from, to]) in [[0, 1], [1, 0], [0, 1]].into_iter().enumerate() {
        let (from, to) = (&servers[from], &servers[to]);
        let id = format!("n{number}");
        from.post("/v1/documents", &json!({ "id": id, "text": text(number) })).good();
        let query = json!({ "text": text(number), "radius": 0 });
        soon(2 * SECOND, || ids(&to.post("/v1/search", &query).good()) == [id.as_str()]);
        // Whoever asks whether it was seen is told the truth at once.
        let fresh = 100 + number;
        from.post("/v1/documents", &json!({ "id": format!("f{number}"), "text": text(fresh) }))
            .good();
        let seen = to.post("/v1/seen?radius=3", &json!({ "id": "x", "text": text(fresh) })).good();
        assert_eq!(seen["lookalike"], format!("f{number}"));
        from.delete(&format!("/v1/documents/{id}")).good();
        soon(2 * SECOND, || ids(&to.post("/v1/search", &query).good()).is_empty());
    }
    exactly_one_is_added(&[&servers[0], &servers[1]]);
}

#[test]
fn a_reader_follows_a_writer_and_does_not_write() {
    let place = filled();
    let writer = Server::start(&place, "docs");
    let reader = Server::start(&place, "docs --read-only");
    assert_eq!(reader.get("/v1/stats").good()["read_only"], true);
    writer.post("/v1/documents", &json!({ "id": "new", "text": text(1) })).good();
    let query = json!({ "text": text(1), "radius": 0 });
    soon(2 * SECOND, || ids(&reader.post("/v1/search", &query).good()) == ["new"]);

    let document = json!({ "id": "other", "text": text(2) });
    for path in ["/v1/documents", "/v1/seen"] {
        let problem = reader.post(path, &document).problem(403);
        assert!(problem["detail"].as_str().unwrap().contains("only reads"), "{problem}");
        reader.post_as(path, LINES, document.to_string()).problem(403);
    }
    reader.delete("/v1/documents/new").problem(403);
    assert_eq!(reader.get("/readyz").status, 200);
    writer.delete("/v1/documents/new").good();
    soon(2 * SECOND, || reader.get("/v1/documents/new").status == 404);
    soon(2 * SECOND, || ids(&reader.post("/v1/search", &query).good()).is_empty());
    // The writer may go, and the reader answers on.
    assert_eq!(writer.terminate().0, Some(0));
    assert_eq!(reader.get("/v1/stats").good()["records"], 144);
    assert_eq!(reader.terminate().0, Some(0));
}

/// One line is sent and its answer read before the next one.
#[test]
fn lines_are_answered_as_they_come() {
    let place = filled();
    let server = Server::start(&place, "docs");
    let headers = [("Content-Type", LINES), ("Transfer-Encoding", "chunked")];
    for path in ["/v1/documents", "/v1/search?radius=0", "/v1/seen?radius=0"] {
        let mut connection = server.connect();
        connection.send(head("POST", path, &headers).as_bytes()).unwrap();
        for number in 0..20 {
            let line = match path.contains("search") {
                true => json!({ "text": text(number) }),
                false => json!({ "id": format!("{path}{number}"), "text": text(number) }),
            };
            let line = line.to_string() + "\n";
            // Lines need not come in one piece.
            let (start, end) = line.split_at(number);
            if number > 0 {
                connection.send_chunk(start.as_bytes()).unwrap();
            }
            connection.send_chunk(end.as_bytes()).unwrap();
            if number == 0 {
                assert_eq!(connection.answer_head().unwrap().status, 200);
            }
            let answer = connection.chunk().unwrap().unwrap();
            let answer: Value = serde_json::from_slice(&answer).unwrap();
            assert!(answer.get("error").is_none(), "{answer}");
        }
        connection.send(b"0\r\n\r\n").unwrap();
        assert_eq!(connection.chunk().unwrap(), None);
        // And then the next request.
        assert_eq!(connection.request("GET", "/healthz", &[], b"").unwrap().status, 200);
    }
}

#[test]
fn of_lookalikes_at_the_same_time_one_is_added() {
    let place = empty("");
    let server = Server::start(&place, "docs");
    exactly_one_is_added(&[&server]);
    assert_eq!(server.get("/v1/stats").good()["records"], 10);
}

/// Many ask at the same time for the same text, several times.
fn exactly_one_is_added(servers: &[&Server]) {
    for round in 0..10 {
        let added = Mutex::new(Vec::new());
        let lookalikes = Mutex::new(BTreeSet::new());
        thread::scope(|scope| {
            for client in 0..16 {
                let (added, lookalikes) = (&added, &lookalikes);
                scope.spawn(move || {
                    let document =
                        json!({ "id": format!("{round}/{client}"), "text": text(500 + round) });
                    let server = servers[client % servers.len()];
                    let answer = server.post("/v1/seen?radius=3", &document).good();
                    match answer["lookalike"].as_str() {
                        Some(id) => drop(lookalikes.lock().unwrap().insert(id.to_owned())),
                        None => {
                            added.lock().unwrap().push(answer["id"].as_str().unwrap().to_owned())
                        }
                    }
                });
            }
        });
        let (added, lookalikes) = (added.into_inner().unwrap(), lookalikes.into_inner().unwrap());
        assert_eq!(added.len(), 1, "round {round}: {added:?}");
        assert_eq!(lookalikes.into_iter().collect::<Vec<_>>(), added);
    }
}
