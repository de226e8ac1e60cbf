//! Every format, from files that other programs wrote (see `fixtures/make.py`).

use std::fs;
use std::io::Cursor;

use lookalike::Media;
use serde_json::{Value, json};

use super::*;

fn news(file: &str) -> Vec<(String, String)> {
    let texts =
        ["The quick brown fox.", "Zwölf Boxkämpfer jagen\nViktor \"quer\" 🦊", "no id here"];
    let third = format!("{file}:3");
    let ids = ["a", "7", third.as_str()];
    ids.iter().zip(texts).map(|(id, text)| (id.to_string(), text.to_string())).collect()
}

#[test]
fn json_lines() {
    for file in ["news.jsonl", "news.jsonl.gz", "news.jsonl.zst"] {
        assert_eq!(texts(file, &[]), news(file));
    }
    let urls = texts("news.jsonl", &["--id-field", "meta.url", "--text-field=text"]);
    assert_eq!(urls[2], ("http://x/3".into(), "no id here".into()));
}

#[test]
fn json_arrays() {
    let mut expected = news("array.json");
    // The line where it starts.
    expected[2].0 = "array.json:20".into();
    assert_eq!(texts("array.json", &[]), expected);
}

#[test]
fn json_in_any_layout() {
    let cases: [(&str, &[&str]); 7] = [
        ("[]", &[]),
        (" \n", &[]),
        ("[{\"text\":\"a,]}\\\"\"},\n {\"text\":\"b\"}]", &["a,]}\"", "b"]),
        ("{\n\"text\": \"a\"\n}", &["a"]),
        ("{\"text\":\"a\"}{\"text\":\"b\"} {\"text\":\n\"c\"}", &["a", "b", "c"]),
        (
            "{\"text\":\"a\"}\n{broken\n{\"text\":\"b\"}",
            &["a", "x.json:2: broken JSON at column 2: key must be a string", "b"],
        ),
        (
            "[{\"text\":\"a\"},\n 5,\n {\"text\":\"b\"}",
            &[
                "a",
                "x.json:2: a number where a JSON object should be",
                "b",
                "x.json:3: the file ends inside its array of documents",
            ],
        ),
    ];
    for (json, expected) in cases {
        assert_eq!(read_bytes("x.json", json.as_bytes(), &[]), expected, "{json}");
    }
}

#[test]
fn json_payload_keeps_the_order_of_the_source() {
    let documents = with_payload("news.jsonl", &["--id-field", "meta.n"]);
    assert_eq!(documents[0].id, "1");
    let payload = Value::Object(documents[0].payload.clone()).to_string();
    assert_eq!(payload, r#"{"id":"a","lang":"en","meta":{"url":"http://x/1"}}"#);
    assert!(super::documents("news.jsonl", &[])[0].payload.is_empty());
}

#[test]
fn a_key_with_dots_wins() {
    for payload in [false, true] {
        for json in [
            r#"{"a.b":"literal","a":{"b":"nested"}}"#,
            r#"{"a":{"b":"nested"},"a.b":"literal"}"#,
            r#"{"a.b":"older","a.b":"literal"}"#,
        ] {
            let options = Options { payload, ..options(["--text-field", "a.b"]) };
            let records = Sources::of_stream(Cursor::new(json), options).records();
            assert_eq!(records[0].as_ref().unwrap().text, "literal");
        }
    }
}

#[test]
fn lines_of_all_kinds() {
    let jsonl = b"\xef\xbb\xbf{\"text\":\"a\"}\r\n\r\n   \n{\"text\":\"b\\u0000\"}\n{\"text\":\"c\",\"id\":1.50}";
    let records = Sources::of_stream(Cursor::new(jsonl.to_vec()), options([])).records();
    let found: Vec<_> = records.into_iter().map(|record| record.unwrap()).collect();
    assert_eq!(found.iter().map(|d| &*d.text).collect::<Vec<_>>(), ["a", "b\0", "c"]);
    assert_eq!(found.iter().map(|d| &*d.id).collect::<Vec<_>>(), ["-:1", "-:4", "1.50"]);
    assert_eq!(read_bytes("x.txt", b"one\r\n\ntwo", &["--lines"]), ["one", "two"]);
}

#[test]
fn standard_input_may_be_compressed() {
    let bytes = fs::read(fixture("news.jsonl.zst")).unwrap();
    let records = Sources::of_stream(Cursor::new(bytes), options([])).records();
    assert_eq!(records.len(), 3);
    assert_eq!(records[2].as_ref().unwrap().id, "-:3");
    let bytes = fs::read(fixture("table.parquet")).unwrap();
    let parquet = options(["--input-format", "parquet"]);
    assert_eq!(Sources::of_stream(Cursor::new(bytes), parquet).records().len(), 4);
}

#[test]
fn tables_as_text() {
    let expected = [("1", "plain"), ("2", "two\nlines, a \"quote\""), ("3", "Äpfel")];
    assert_eq!(texts("table.csv", &[]), expected.map(|(id, text)| (id.into(), text.into())));
    assert_eq!(texts("table.tsv", &[])[1], ("2".into(), "with\ttab".into()));
    let by_line = texts("table.csv", &["--id-field", "title"]);
    assert_eq!(by_line[1].0, "Two, \"quoted\"");
    let documents = with_payload("table.csv", &[]);
    assert_eq!(Value::Object(documents[1].payload.clone()), json!({"title": "Two, \"quoted\""}));
    assert_eq!(
        read_bytes("x.csv", b"\xef\xbb\xbftext,b\nfirst,1\n\n\"se\ncond\",2", &[]),
        ["first", "se\ncond"]
    );
}

#[test]
fn parquet() {
    let expected =
        [("10", "first text"), ("11", "zweiter Täxt"), ("12", "third"), ("13", "fourth")];
    let expected = expected.map(|(id, text)| (id.to_owned(), text.to_owned()));
    for file in ["table", "snappy", "gzip", "lz4", "brotli"] {
        assert_eq!(texts(&format!("{file}.parquet"), &[]), expected, "{file}");
    }
    let large = texts("table.parquet", &["--text-field", "large", "--id-field", "lang"]);
    assert_eq!(large[1], ("de".into(), "l2".into()));
}

#[test]
fn parquet_payload() {
    let documents = with_payload("table.parquet", &[]);
    let expected = json!({
        "page": {"body": "b1", "tags": ["x", "y"]},
        "when": "2024-01-31T12:00:00Z",
        "score": 0.5,
        "raw": "abc",
        "lang": "en",
        "large": "l1",
    });
    assert_eq!(Value::Object(documents[0].payload.clone()), expected);
    assert_eq!(documents[1].payload["raw"], "ff00");
    assert_eq!(documents[2].payload["page"], json!({"body": "b3", "tags": null}));
    assert_eq!(documents[3].payload["page"], Value::Null);
    let path = fixture("table.parquet");
    let sources = open(&args([path.to_str().unwrap()]), false);
    sources.records();
    assert_eq!(Some(sources.bytes_read()), sources.total_bytes());
}

#[test]
fn parquet_nested_and_binary_text() {
    let records = read(&fixture("table.parquet"), &["--text-field", "page.body"], true);
    assert_eq!(records[1].as_ref().unwrap().text, "b2");
    assert_eq!(records[1].as_ref().unwrap().payload["page"], json!({"tags": []}));
    let bad = records[3].as_ref().unwrap_err();
    assert_eq!(bad.to_string(), "table.parquet: row 4: field `page.body` is null");
    let records = read(&fixture("table.parquet"), &["--text-field", "raw"], false);
    assert_eq!(records[0].as_ref().unwrap().text, "abc");
    let bad = records[1].as_ref().unwrap_err();
    assert_eq!(bad.to_string(), "table.parquet: row 2: invalid UTF-8 at byte 0 (0xff)");
}

#[test]
fn parquet_in_large_row_groups() {
    let found = texts("large.parquet", &[]);
    assert_eq!(found.len(), 2000);
    for (row, (id, text)) in found.iter().enumerate() {
        assert_eq!(*id, format!("large.parquet:{}", row + 1));
        assert!(text.starts_with(&format!("{row} word word")));
    }
}

#[test]
fn web_archives() {
    for file in ["crawl.warc", "crawl.warc.gz"] {
        let documents = documents(file, &[]);
        let found: Vec<_> = documents.iter().map(|d| (&*d.id, &*d.text, d.media)).collect();
        let expected = [
            ("plain", "<html><body><p>Hello plain</p></body></html>", Media::Html),
            ("chunked", "<p>Grüße in Stücken</p>", Media::Html),
            ("gzip", "<p>Packed page</p>", Media::Html),
            ("both", "<p>Packed in chunks</p>", Media::Html),
            ("text", "Just text", Media::Plain),
            ("kept-header", "<p>Already unpacked</p>", Media::Html),
        ];
        assert_eq!(found.len(), expected.len());
        for ((id, text, media), (name, expected, kind)) in found.into_iter().zip(expected) {
            assert_eq!(id, format!("http://example.org/{name}"));
            assert_eq!((text, media), (expected, kind));
        }
    }
    let payload = &with_payload("crawl.warc.gz", &[])[0].payload;
    let expected = json!({
        "url": "http://example.org/plain",
        "date": "2024-01-31T12:00:00Z",
        "content_type": "text/html; charset=utf-8",
    });
    assert_eq!(Value::Object(payload.clone()), expected);
}

#[test]
fn what_is_no_text_is_counted() {
    let path = fixture("crawl.warc.gz");
    let sources = open(&args([path.to_str().unwrap()]), false);
    sources.records();
    assert_eq!(sources.left_out().records, 2);
    let path = fixture("site.tar");
    let sources = open(&args([path.to_str().unwrap()]), false);
    sources.records();
    assert_eq!(sources.left_out().files, 1);
}

#[test]
fn extracted_texts() {
    let found = texts("crawl.warc.wet.gz", &[]);
    assert_eq!(found[0], ("http://example.org/0".into(), "Erster Text\nmit Zeilen".into()));
    assert_eq!(found.len(), 2);
}

#[test]
fn pages() {
    let page = &documents("page.html", &[])[0];
    assert_eq!(page.id, "page.html");
    assert_eq!(page.media, Media::Html);
    assert!(page.text.contains("café “x”"), "{}", page.text);
}

#[test]
fn archives() {
    for file in ["site.tar", "site.tgz"] {
        let found = texts(file, &[]);
        let long = format!("{file}/site/{}/b.txt", "long".repeat(40));
        let part = format!("{file}/part.jsonl.gz:3");
        let empty = format!("{file}/empty.txt");
        let ids: Vec<&str> = found.iter().map(|(id, _)| id.as_str()).collect();
        let page = format!("{file}/site/a.html");
        assert_eq!(ids, [&page, &long, "a", "7", &part, &empty, "10", "11", "12", "13"]);
        assert_eq!(found[0].1, "<p>in a tar</p>");
    }
}

#[test]
fn a_folder_of_texts() {
    let folder = tempfile::tempdir().unwrap();
    for i in 0..1000 {
        fs::write(folder.path().join(format!("{i:04}.txt")), format!("text {i}")).unwrap();
    }
    fs::write(folder.path().join("0500.md"), "\u{feff}marked").unwrap();
    fs::write(folder.path().join("wide.c"), b"\xff\xfeh\0i\0").unwrap();
    let path = folder.path().to_str().unwrap();
    let sources = open(&args([path]), false);
    let found: Vec<_> = sources.records().into_iter().map(|record| record.unwrap()).collect();
    assert_eq!(found.len(), 1002);
    assert_eq!(found[500].text, "marked");
    assert_eq!(found[501].id, format!("{path}/0500.txt"));
    assert_eq!(found[1000].text, "text 999");
    assert_eq!(found[1001].text, "hi");
    assert_eq!(Some(sources.bytes_read()), sources.total_bytes());
}
