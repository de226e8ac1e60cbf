//! Damaged files: what is wrong, where, and what to do; and all that is not damaged is still read.

use std::fs;

use super::*;

#[test]
fn broken_lines_are_named_and_passed_over() {
    let jsonl = concat!(
        "{\"text\":\"first\"}\n",
        "{\"text\":\"cut\n",
        "[1]\n",
        "{\"title\":\"x\"}\n",
        "{\"text\":null}\n",
        "{\"text\":[1]}\n",
        "{\"text\":\"two\"} {}\n",
        "\n",
        "{\"text\":\"\\ud800\"}\n",
        "{\"text\":\"last\"}",
    );
    let found = read_bytes("x.jsonl", jsonl.as_bytes(), &[]);
    let expected = [
        "first",
        "x.jsonl:2: broken JSON at column 12: EOF while parsing a string",
        "x.jsonl:3: an array where a JSON object should be",
        "x.jsonl:4: no field `text`",
        "x.jsonl:5: field `text` is null",
        "x.jsonl:6: field `text` is an array, not a string",
        "x.jsonl:7: broken JSON at column 16: trailing characters",
        "x.jsonl:9: broken JSON at column 16: unexpected end of hex escape",
        "last",
    ];
    assert_eq!(found, expected);
}

#[test]
fn bytes_that_are_no_text() {
    let jsonl = b"{\"text\":\"a\"}\n{\"text\":\"caf\xe9\"}\n{\"text\":\"b\"}\n";
    let found = read_bytes("x.jsonl", jsonl, &[]);
    assert_eq!(found, ["a", "x.jsonl:2: invalid UTF-8 at byte 12 (0xe9)", "b"]);
    assert_eq!(read_bytes("x.txt", b"caf\xe9", &[]), ["x.txt: invalid UTF-8 at byte 3 (0xe9)"]);
    let csv = b"text,b\nok,1\ncaf\xe9,2\n";
    let found = read_bytes("x.csv", csv, &[]);
    assert_eq!(found, ["ok", "x.csv:3: field `text`: invalid UTF-8 at byte 3 (0xe9)"]);
}

#[test]
fn hints_name_the_fields_that_are_there() {
    let jsonl = b"{\"title\":\"x\",\"body\":\"the longest string\",\"n\":1}";
    assert_eq!(hint("x.jsonl", jsonl, &[]), "it has `title`, `body`, `n`; say --text-field body");
    assert_eq!(hint("x.csv", b"a,b\n1,2\n", &[]), "it has `a`, `b`; choose one with --text-field");
    let bytes = fs::read(fixture("snappy.parquet")).unwrap();
    assert_eq!(
        hint("x.parquet", &bytes, &["--text-field", "body"]),
        "it has `id`, `text`; choose one with --text-field"
    );
}

#[test]
fn an_id_that_was_asked_for_must_be_there() {
    let jsonl = b"{\"text\":\"a\",\"k\":{}}\n{\"text\":\"b\"}\n{\"text\":\"c\",\"k\":\"\"}\n{\"text\":\"d\",\"k\":true}";
    let found = read_bytes("x.jsonl", jsonl, &["--id-field", "k"]);
    let expected = [
        "x.jsonl:1: field `k` is an object, not a string or a number",
        "x.jsonl:2: no field `k`",
        "x.jsonl:3: field `k` is empty",
        "d",
    ];
    assert_eq!(found, expected);
    // The default is no wish.
    assert_eq!(read_bytes("x.jsonl", b"{\"text\":\"a\",\"id\":{}}", &[]), ["a"]);
}

#[test]
fn cut_streams_lose_the_rest_only() {
    for (file, format) in [("news.jsonl.gz", "gzip"), ("news.jsonl.zst", "zstd")] {
        let bytes = fs::read(fixture(file)).unwrap();
        let found = read_bytes(file, &bytes[..bytes.len() - 9], &[]);
        let (last, before) = found.split_last().unwrap();
        assert!(before.len() < 3 || format == "gzip", "{found:?}");
        let said = format!("the {format} data is cut short; the rest of the file is lost");
        assert!(last.starts_with(&format!("{file}:")) && last.ends_with(&said), "{last}");
    }
    let found = read_bytes("x.jsonl.gz", b"{\"text\":\"a\"}", &[]);
    assert!(found[0].contains("this is not gzip data"), "{found:?}");
}

#[test]
fn one_broken_file_does_not_hide_the_next() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("1.jsonl"), "{\"text\":\"one\"}").unwrap();
    fs::write(folder.path().join("2.jsonl.gz"), [0x1f, 0x8b, 8, 0, 0]).unwrap();
    fs::write(folder.path().join("3.parquet"), "PAR1 no PAR1").unwrap();
    fs::write(folder.path().join("4.txt"), "four").unwrap();
    let sources = open(&args([folder.path().to_str().unwrap()]), false);
    let records = sources.records();
    assert_eq!(records.len(), 4);
    assert!(records[1].as_ref().unwrap_err().rest_lost);
    assert!(records[2].as_ref().unwrap_err().to_string().contains("the Parquet data is damaged"));
    assert_eq!(records[3].as_ref().unwrap().text, "four");
}

#[test]
fn long_lines_are_passed_over() {
    let long = "x".repeat(3 << 20);
    let jsonl = format!("{{\"text\":\"a\"}}\n{{\"text\":\"{long}\"}}\n{{\"text\":\"b\"}}\n");
    let found = read_bytes("x.jsonl", jsonl.as_bytes(), &["--max-document-bytes", "2M"]);
    assert_eq!(found, ["a", "x.jsonl:2: the line is longer than 2097152 bytes", "b"]);
    assert_eq!(read_bytes("x.jsonl", jsonl.as_bytes(), &[]).len(), 3);
    let found =
        read_bytes("x.txt", b"short\nmuch too long\nb", &["--lines", "--max-document-bytes", "5"]);
    assert_eq!(found, ["short", "x.txt:2: the line is longer than 5 bytes", "b"]);
    let found = read_bytes("x.txt", long.as_bytes(), &["--max-document-bytes", "1M"]);
    assert_eq!(found, ["x.txt: the file is longer than 1048576 bytes"]);
    let found =
        read_bytes("x.json", jsonl.replace('\n', " ").as_bytes(), &["--max-document-bytes", "1M"]);
    assert_eq!(found[0], "a");
    assert!(found[1].contains("longer than 1048576 bytes"), "{}", found[1]);
}

#[test]
fn tables_with_odd_rows() {
    let found = read_bytes("x.csv", b"id,text\n1,a\n2\n3,b,c\n4,d\n", &[]);
    let expected = [
        "a",
        "x.csv:3: 1 columns where the header has 2",
        "x.csv:4: 3 columns where the header has 2",
        "d",
    ];
    assert_eq!(found, expected);
    let found = read_bytes("x.csv", b"id,text\r\n1,a\r\n2\r\n3,\"b\r\nc\"\r\n4\r\n", &[]);
    let expected = [
        "a",
        "x.csv:3: 1 columns where the header has 2",
        "b\r\nc",
        "x.csv:6: 1 columns where the header has 2",
    ];
    assert_eq!(found, expected);
    let endless = format!("text,b\na,1\n\"{}", "x".repeat(3 << 20));
    let found = read_bytes("x.csv", endless.as_bytes(), &["--max-document-bytes", "1M"]);
    assert_eq!(found[0], "a");
    assert!(found[1].starts_with("x.csv:3: the row that starts here is longer"), "{}", found[1]);
    let found = read_bytes("x.csv", b"a,b\n1,2\n3,4\n", &[]);
    assert_eq!(found, ["x.csv:1: the header has no field `text`; the rest of the file is lost"]);
}

#[test]
fn parquet_with_damaged_pages() {
    let mut bytes = fs::read(fixture("table.parquet")).unwrap();
    // The text column of the first row group lies near the start.
    let at = bytes.windows(4).position(|window| window == b"\x28\xb5\x2f\xfd").unwrap();
    bytes[at..at + 200].fill(0x55);
    let found = read_bytes("x.parquet", &bytes, &[]);
    assert!(found[0].starts_with("x.parquet: row 1: the Parquet data is damaged"), "{found:?}");
    assert!(found[0].ends_with("rows 1 to 2 are lost"), "{found:?}");
    assert_eq!(found[1..], ["third", "fourth"]);
    let found = read_bytes("x.parquet", &bytes, &["--text-field", "score"]);
    assert!(found[0].contains("column `score` is Float64, not text"), "{found:?}");
    let found = read_bytes("x.parquet", &bytes[..1000], &[]);
    assert!(found[0].starts_with("x.parquet: the Parquet data is damaged"), "{found:?}");
}

#[test]
fn web_archives_with_damage() {
    let good = fs::read(fixture("crawl.warc")).unwrap();
    let found = read_bytes("x.warc", &good[..good.len() - 20], &[]);
    let last = found.last().unwrap();
    assert!(last.starts_with("x.warc: record 9: the record is cut short"), "{last}");
    let text = String::from_utf8_lossy(&good).into_owned();
    let lying = text.replacen("Content-Length: 103", "Content-Length: 9999999999999", 1);
    assert!(lying != text);
    let found = read_bytes("x.warc", lying.as_bytes(), &[]);
    assert!(found.iter().any(|said| said.contains("9999999999999 bytes")), "{found:?}");
    let garbage = [b"garbage\r\nmore\r\n".as_slice(), &good].concat();
    let found = read_bytes("x.warc", &garbage, &[]);
    assert_eq!(found[0], "x.warc: byte 0: no WARC record begins here; skipping to the next one");
    assert_eq!(found.len(), 7);
    let no_length = text.replacen("Content-Length", "Content-Width", 2);
    let found = read_bytes("x.warc", no_length.as_bytes(), &[]);
    assert!(found[0].contains("no valid Content-Length"), "{found:?}");
}

#[test]
fn responses_with_damaged_bodies() {
    let record = |body: &str, header: &str| {
        let http = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{header}\r\n\r\n{body}");
        format!(
            "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://x/\r\nContent-Type: application/http\r\nContent-Length: {}\r\n\r\n{http}\r\n\r\n",
            http.len()
        )
    };
    let cases = [
        ("5\r\nab", "Transfer-Encoding: chunked", "the chunked body is cut short"),
        (
            "2\r\nab\r\nzz\r\n",
            "Transfer-Encoding: chunked",
            "the chunked body is damaged at byte 7",
        ),
        ("\x1f", "Content-Encoding: compress", "encoded in `compress`"),
        ("no brotli", "Content-Encoding: br", "the br body is damaged"),
    ];
    for (body, header, problem) in cases {
        let found = read_bytes("x.warc", record(body, header).as_bytes(), &[]);
        assert!(found[0].starts_with("x.warc: record 1: http://x/: "), "{found:?}");
        assert!(found[0].contains(problem), "{found:?}");
    }
}

#[test]
fn archives_with_damage() {
    let good = fs::read(fixture("site.tar")).unwrap();
    let at = good.windows(9).position(|window| window == b"deep text").unwrap();
    let found = read_bytes("x.tar", &good[..at + 4], &[]);
    assert_eq!(found[0], "<p>in a tar</p>");
    assert!(
        found[1].contains("b.txt: byte 4: the archive is cut short: 5 bytes are missing here"),
        "{found:?}"
    );
    let mut bad_head = good.clone();
    let head = good.windows(9).position(|window| window == b"photo.jpg").unwrap();
    bad_head[head] = b'!';
    let found = read_bytes("x.tar", &bad_head, &[]);
    let said = format!("x.tar: byte {head}: the tar archive is damaged here");
    assert!(found.last().unwrap().starts_with(&said), "{found:?}");
    let found = read_bytes("x.tar", &[b'x'; 2048], &[]);
    assert!(found[0].starts_with("x.tar: byte 0: this is no tar archive"), "{found:?}");
}
