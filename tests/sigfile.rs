//! Signature files from outside: what is written comes back, and what is damaged is not believed.

use std::{fs, path::Path};

use lookalike::{
    Recipe, SignatureFile,
    sigfile::{Columns, Row, SignatureWriter},
};

const ALL: Columns = Columns { ids: true, margins: true, passages: true, payloads: true };

fn write(path: &Path, rows: u64, columns: Columns) {
    let recipe = Recipe::named("text").unwrap();
    let mut writer = SignatureWriter::create(path, 256, Some(&recipe), columns).unwrap();
    for row in 0..rows {
        let margins: Vec<u8> = (0..256).map(|bit| (bit as u64 * row) as u8).collect();
        writer
            .push(&Row {
                words: &[row, row * 3, !row, 7],
                id: &format!("document {row}"),
                margins: Some(&margins),
                passage: Some(row..row + 10),
                payload: Some(&format!("{{\"row\":{row}}}")),
            })
            .unwrap();
    }
    writer.finish(3).unwrap();
}

#[test]
fn rows_come_back_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sig");
    write(&path, 100, ALL);
    let file = SignatureFile::open(&path).unwrap();
    assert_eq!((file.signatures().len(), file.signatures().bits(), file.unsigned()), (100, 256, 3));
    assert_eq!(file.recipe(), Recipe::named("text").as_ref());
    assert_eq!(file.columns(), ALL);
    file.with_row(42, |row| {
        assert_eq!(row.words, [42, 126, !42, 7]);
        assert_eq!(row.id, "document 42");
        assert_eq!(row.margins.unwrap()[5], 210);
        assert_eq!(row.passage, Some(42..52));
        assert_eq!(row.payload, Some("{\"row\":42}"));
    });
}

#[test]
fn columns_are_there_only_if_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sig");
    write(&path, 3, Columns::default());
    let file = SignatureFile::open(&path).unwrap();
    assert_eq!(file.columns(), Columns::default());
    assert_eq!(file.id(2), "2", "a row without an id has its number");
    assert!(file.margins(0).is_none() && file.passage(0).is_none() && file.payload(0).is_none());
}

#[test]
fn an_empty_file_is_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sig");
    write(&path, 0, ALL);
    assert!(SignatureFile::open(&path).unwrap().signatures().is_empty());
}

#[test]
fn nothing_is_there_before_the_end_and_the_old_file_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sig");
    write(&path, 5, ALL);
    let mut writer = SignatureWriter::create(&path, 64, None, Columns::default()).unwrap();
    writer.push(&Row { words: &[1], ..Row::default() }).unwrap();
    drop(writer);
    assert_eq!(SignatureFile::open(&path).unwrap().signatures().len(), 5);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");
}

/// Every byte of the file belongs to something with a checksum, or is padding.
#[test]
fn every_damaged_byte_is_detected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sig");
    write(&path, 4, ALL);
    let whole = fs::read(&path).unwrap();
    let expected = SignatureFile::open(&path).unwrap().signatures().words().to_vec();
    let damaged_path = folder.path().join("damaged.sig");
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x40;
        fs::write(&damaged_path, &damaged).unwrap();
        match SignatureFile::open(&damaged_path) {
            Ok(file) => {
                assert_eq!(whole[at], 0, "byte {at} is more than padding");
                assert_eq!(file.signatures().words(), expected);
            }
            Err(error) => assert!(error.to_string().contains("damaged.sig"), "{error}"),
        }
    }
}

#[test]
fn every_cut_is_detected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sig");
    write(&path, 4, ALL);
    let whole = fs::read(&path).unwrap();
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let error = SignatureFile::open(&path).unwrap_err().to_string();
        assert!(error.contains("x.sig"), "{error}");
    }
}
