//! Files from elsewhere and from before: damaged ones are refused or read, never more; those of the first format version are
//! read for ever.

mod common;

use std::{fs, path::Path};

use common::with_header;
use lookalike::{
    SignatureFile,
    features::{hash::mix, terms::TermStatistics},
    index::IndexFile,
};

fn fixture(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)).unwrap()
}

/// Opens a file of this name with these bytes; what comes out does not matter, that it comes out does.
fn open(folder: &Path, name: &str, bytes: &[u8]) {
    let path = folder.join(name);
    fs::write(&path, bytes).unwrap();
    let error = match path.extension().and_then(|suffix| suffix.to_str()) {
        Some("terms") => TermStatistics::open(&path).err(),
        Some("idx") => IndexFile::open(&path).err(),
        _ => SignatureFile::open(&path).map(|file| touch(&file)).err(),
    };
    if let Some(error) = error {
        assert!(error.to_string().contains(name), "{error} does not name {name}");
    }
}

/// Reads everything in a file.
fn touch(file: &SignatureFile) {
    for row in 0..file.signatures().len() {
        file.with_row(row, |row| assert_eq!(row.words, row.words.to_vec()));
    }
}

#[test]
fn damaged_files_never_do_worse_than_an_error() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["packbits.npy", "v1.hex", "v1.sig", "v1.terms", "v1.idx"] {
        let good = fixture(name);
        for round in 0..400 {
            let random = |n: u64| mix(round * 8 + n) as usize;
            let mut bytes = good.clone();
            let at = random(0) % bytes.len();
            match round % 4 {
                0 => bytes[at] ^= 1 << (random(1) % 8),
                1 => bytes.truncate(at),
                2 => bytes[at] = b"0(){},'\n\xff"[random(1) % 9],
                _ => {
                    let piece = bytes[at..bytes.len().min(at + random(1) % 32)].to_vec();
                    let to = random(2) % bytes.len();
                    bytes.splice(to..to, piece);
                }
            }
            open(folder.path(), name, &bytes);
        }
    }
}

/// A file whose checksums are right, and whose header says something impossible.
#[test]
fn a_header_that_lies_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lie.sig");
    let good = fixture("v1.sig");
    for (from, to) in [
        ("\"bits\":256", "\"bits\":128"),
        ("\"bits\":256", "\"bits\":257"),
        ("\"rows\":3", "\"rows\":4"),
        ("\"rows\":3", "\"rows\":18446744073709551615"),
        ("\"offset\":128", "\"offset\":64"),
        ("\"offset\":128", "\"offset\":18446744073709551615"),
        ("\"length\":96", "\"length\":18446744073709551615"),
        ("\"kind\":\"signatures\"", "\"kind\":\"terms\""),
        ("\"name\":\"id_ends\"", "\"name\":\"other\""),
        ("\"unit\":\"words\",\"length\":3", "\"unit\":\"words\",\"length\":4"),
    ] {
        fs::write(&path, with_header(&good, |header| header.replace(from, to))).unwrap();
        match SignatureFile::open(&path) {
            Ok(file) => panic!("{to} was believed: {} rows", file.signatures().len()),
            Err(error) => assert!(error.to_string().contains("lie.sig"), "{to}: {error}"),
        }
    }
    fs::write(&path, with_header(&good, |header| header)).unwrap();
    assert!(SignatureFile::open(&path).is_ok(), "the change itself does no harm");
}

#[test]
fn files_of_version_1_are_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let file = SignatureFile::open(&folder.join("v1.sig")).unwrap();
    let hex = SignatureFile::open(&folder.join("v1.hex")).unwrap();
    assert_eq!(file.signatures().words(), hex.signatures().words());
    assert_eq!(file.id(1), "examples/stories/harbour.txt");
    assert_eq!(file.recipe().unwrap().name, "text");
    assert_eq!(file.margins(0).unwrap().len(), 256);
    assert_eq!(file.payload(0).as_deref(), Some("{}"));
    let terms = TermStatistics::open(&folder.join("v1.terms")).unwrap();
    assert_eq!(terms.totals().documents, 3);
    assert_eq!(terms.totals().distinct, 179);
}
