//! Index files from outside: an opened index answers as the built one, and what is damaged or does not fit is refused.

mod common;

use std::{
    fs,
    path::{Path, PathBuf},
};

use common::{Random, near_copies, skewed, uniform, with_header, with_section};
use lookalike::{
    Error, SignatureFile, Signatures,
    features::hash::mix,
    index::{Answers, Build, Index, IndexFile, Promise, Queries, Tables},
    table::Stored,
};
use proptest::prelude::*;

fn build<'a>(rows: &'a Signatures, method: &str, stored: Option<Stored>) -> Tables<'a> {
    let build = Build { stored, ..Build::default() };
    Tables::build(rows, method.parse().unwrap(), build).unwrap()
}

/// Everything that an index says to some queries.
fn answers(index: &Tables<'_>, queries: Queries<'_>, radius: u32) -> (Vec<Answers>, Vec<Promise>) {
    let mut found = vec![Answers::new(); 3];
    let promises = vec![
        index.within(queries, radius, &mut found[0]).unwrap(),
        index.first(queries, radius, &mut found[1]).unwrap(),
        index.nearest(queries, 3, &mut found[2]).unwrap(),
    ];
    (found, promises)
}

/// Saves and opens an index, and asks all three the same: the built one, the mapped one and its copy in memory.
fn check(built: &Tables<'_>, rows: &Signatures, queries: Queries<'_>, radii: &[u32]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.idx");
    built.save(&path, Some(&folder.path().join("x.sig"))).unwrap();
    let opened = Tables::open(&path, rows).unwrap();
    let moved = Tables::open(&path, rows).unwrap().in_huge_pages();
    let method = built.composition().method();
    assert_eq!(opened.composition(), built.composition());
    assert_eq!((opened.stored(), opened.distinct()), (built.stored(), built.distinct()));
    for &radius in radii {
        let expected = answers(built, queries, radius);
        assert!(answers(&opened, queries, radius) == expected, "{method} {radius}");
        assert!(answers(&moved, queries, radius) == expected, "{method} {radius}, moved");
    }
    let saved = fs::read(&path).unwrap();
    let again = folder.path().join("again.idx");
    moved.save(&again, Some(&folder.path().join("x.sig"))).unwrap();
    assert!(saved == fs::read(&again).unwrap(), "{method} changes when it is saved again");
}

#[test]
fn an_opened_index_answers_as_the_built_one() {
    for (bits, method, stored) in [
        (64, "multi-2x4", None),
        (64, "pieces-4", Some(Stored::Whole)),
        (48, "blocks-5-2", Some(Stored::Split)),
        (40, "multi-3", Some(Stored::Split)),
        (64, "multi-2x3", Some(Stored::Lines)),
        (64, "blocks-3-1", Some(Stored::Lines)),
        (40, "psm-2-10", Some(Stored::Lines)),
        (32, "psm-1-23", None),
        (72, "multi-9", None),
        (256, "blocks-5-2", None),
        (1024, "pieces-12", None),
    ] {
        let mut random = Random::new(u64::from(bits));
        let some = uniform(bits, 600, &mut random);
        let with_copies = near_copies(&skewed(bits, 400, &mut random), 3, 3, &mut random);
        for rows in
            [&some, &with_copies, &common::part(&some, 0..1), &Signatures::new(bits).unwrap()]
        {
            let queries = near_copies(&common::part(&some, 0..40), 1, 4, &mut random);
            let queries = common::joined(&queries, &common::part(rows, 0..rows.len().min(40)));
            let margins: Vec<u8> =
                (0..queries.len() * bits as usize).map(|i| mix(i as u64) as u8).collect();
            let with_margins = Queries::with_margins(&queries, &margins).unwrap();
            let index = build(rows, method, stored);
            check(&index, rows, (&queries).into(), &[0, 3, 5]);
            check(&index, rows, with_margins, &[3]);
        }
    }
}

/// A split table of 64 bits needs keys of 16: rows enough for that.
#[test]
fn split_rows_of_whole_words_are_kept() {
    let mut random = Random::new(6);
    let rows = near_copies(&uniform(64, 100, &mut random), 3, 4, &mut random);
    let build = Build { key_width: Some(20), stored: Some(Stored::Split) };
    let index = Tables::build(&rows, "multi-2x3".parse().unwrap(), build).unwrap();
    check(&index, &rows, (&common::part(&rows, 0..100)).into(), &[0, 3]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_index_comes_back(
        seed in any::<u64>(),
        bits in (4_u32..20).prop_map(|bytes| bytes * 8),
        rows in 0_usize..300,
        slices in 1_u32..7,
        key_width in 0_u32..12,
        skew in any::<bool>(),
    ) {
        let mut random = Random::new(seed);
        let rows = if skew { skewed(bits, rows, &mut random) } else { uniform(bits, rows, &mut random) };
        let rows = near_copies(&rows, 2, 3, &mut random);
        let queries = near_copies(&common::part(&rows, 0..rows.len().min(20)), 1, 3, &mut random);
        let stored = match (bits, seed % 3) {
            (..=48, 0) => Some(Stored::Split),
            (..=64, 1) => Some(Stored::Lines),
            _ => None,
        };
        let build = Build { key_width: Some(key_width), stored };
        let method = format!("multi-{slices}").parse().unwrap();
        let index = Tables::build(&rows, method, build).unwrap();
        check(&index, &rows, (&queries).into(), &[3]);
    }
}

/// Rows with copies, and an index over them for each way to store them.
fn samples() -> Vec<(Signatures, Vec<u8>)> {
    let folder = tempfile::tempdir().unwrap();
    let sample = |(bits, stored): (u32, Stored)| {
        let mut random = Random::new(7);
        let rows = near_copies(&uniform(bits, 12, &mut random), 2, 1, &mut random);
        let path = folder.path().join("x.idx");
        build(&rows, "multi-2", Some(stored)).save(&path, None).unwrap();
        (rows, fs::read(&path).unwrap())
    };
    let kinds =
        [(64, Stored::Whole), (40, Stored::Split), (64, Stored::Lines), (72, Stored::Numbers)];
    kinds.into_iter().map(sample).collect()
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    fn write(&self, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join("damaged.idx");
        // A new file each time: the old one may still be mapped.
        let _ = fs::remove_file(&path);
        fs::write(&path, bytes).unwrap();
        path
    }

    fn open(&self, bytes: &[u8], rows: &Signatures) -> Result<(), Error> {
        Tables::open(&self.write(bytes), rows).map(|index| {
            answers(&index, rows.into(), 3);
        })
    }
}

/// Every byte of the file belongs to something with a checksum, or is padding between sections.
#[test]
fn every_damaged_byte_is_detected() {
    let folder = Folder::new();
    for (rows, whole) in samples() {
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x40;
            match folder.open(&damaged, &rows) {
                Ok(()) => assert_eq!(whole[at], 0, "byte {at} is more than padding"),
                Err(error) => assert!(error.to_string().contains("damaged.idx"), "{error}"),
            }
        }
    }
}

#[test]
fn every_cut_is_detected() {
    let folder = Folder::new();
    for (rows, whole) in samples() {
        for length in 0..whole.len() {
            let error = folder.open(&whole[..length], &rows).unwrap_err().to_string();
            assert!(error.contains("damaged.idx"), "{error}");
        }
    }
}

/// The heads of lines whose checksums are right and which lead astray.
#[test]
fn heads_that_lead_astray_are_refused() {
    let folder = Folder::new();
    let (rows, whole) = &samples()[2];
    for at in (0..4).flat_map(|line| [line * 64 + 56, line * 64 + 60]) {
        for by in [1_u32, 5, 8, u32::MAX] {
            let change = |bytes: &mut [u8]| {
                let cell = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
                bytes[at..at + 4].copy_from_slice(&cell.wrapping_add(by).to_le_bytes());
            };
            let damaged = with_section(whole, "lines", change).unwrap();
            let error = folder.open(&damaged, rows).unwrap_err().to_string();
            assert!(error.contains("lines"), "{error}");
        }
    }
}

/// Sections whose checksums are right and whose cells lead astray.
#[test]
fn cells_that_lead_astray_are_refused() {
    let folder = Folder::new();
    for (rows, whole) in samples() {
        for name in ["offsets", "firsts", "copies", "numbers"] {
            for (at, cell) in (0..12).flat_map(|at| [(at, 0), (at, 7), (at, 37), (at, u32::MAX)]) {
                let change = |bytes: &mut [u8]| {
                    let at = at * 4;
                    if let Some(place) = bytes.get_mut(at..at + 4) {
                        place.copy_from_slice(&u32::to_le_bytes(cell));
                    }
                };
                let Some(damaged) = with_section(&whole, name, change) else { continue };
                // What cannot be told from the truth may be wrong; it may not be worse.
                let result = folder.open(&damaged, &rows);
                let refused = result.is_err_and(|error| error.to_string().contains(name));
                assert!(refused || damaged == whole || cell != 37, "{name} {at} {cell}");
            }
        }
    }
}

#[test]
fn a_header_that_lies_is_refused() {
    let folder = Folder::new();
    let (rows, whole) = samples().remove(0);
    for (from, to) in [
        ("\"method\":\"multi-2\"", "\"method\":\"multi-3\""),
        ("\"method\":\"multi-2\"", "\"method\":\"multi-99\""),
        ("\"method\":\"multi-2\"", "\"method\":\"tree-2\""),
        ("\"bits\":64", "\"bits\":72"),
        ("\"bits\":64", "\"bits\":0"),
        ("\"bits\":64", "\"bits\":4294967288"),
        ("\"rows\":36", "\"rows\":37"),
        ("\"rows\":36", "\"rows\":18446744073709551615"),
        ("\"distinct\":", "\"distinct\":1"),
        ("\"distinct\":", "\"distinct\":99999999999"),
        ("\"key_width\":", "\"key_width\":1"),
        ("\"key_width\":", "\"key_width\":99"),
        ("\"stored\":\"whole\"", "\"stored\":\"split\""),
        ("\"stored\":\"whole\"", "\"stored\":\"numbers\""),
        ("\"start\":32", "\"start\":31"),
        ("\"name\":\"firsts\"", "\"name\":\"others\""),
        ("\"name\":\"copies\"", "\"name\":\"others\""),
        ("\"kind\":\"index\"", "\"kind\":\"terms\""),
    ] {
        let lie = with_header(&whole, |header| {
            assert!(header.contains(from), "{header}");
            header.replacen(from, to, 1)
        });
        let error = folder.open(&lie, &rows).expect_err(to).to_string();
        assert!(error.contains("damaged.idx"), "{to}: {error}");
    }
}

#[test]
fn other_signatures_are_refused() {
    let folder = Folder::new();
    let (rows, whole) = samples().remove(0);
    let path = folder.write(&whole);
    let mut more = rows.clone();
    more.push_row_of(&rows, 0).unwrap();
    let other = common::map_rows(&rows, |row| row.iter().map(|word| !word).collect());
    let wider = uniform(72, rows.len(), &mut Random::new(1));
    for wrong in [&more, &other, &wider] {
        let error = Tables::open(&path, wrong).unwrap_err();
        assert!(matches!(error, Error::OtherSignatures { .. }), "{error}");
        let (bits, count) = (wrong.bits(), wrong.len());
        let said = error.to_string();
        assert!(said.contains("damaged.idx: belongs to 36 signatures of 64 bits"), "{said}");
        assert!(said.contains(&format!("not to {count} signatures of {bits} bits")), "{said}");
    }
}

#[test]
fn the_signatures_are_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("a")).unwrap();
    fs::create_dir(at("b")).unwrap();
    let rows = uniform(64, 5, &mut Random::new(1));
    fs::write(at("a/x.sig"), "").unwrap();
    build(&rows, "multi-2", None).save(&at("b/x.idx"), Some(&at("a/x.sig"))).unwrap();
    let find = || IndexFile::open(&at("b/x.idx")).unwrap().signatures().unwrap();
    assert_eq!(find(), at("b/../a/x.sig"));
    fs::rename(at("a/x.sig"), at("b/x.sig")).unwrap();
    assert_eq!(find(), at("b/x.sig"), "beside the index");
    fs::remove_file(at("b/x.sig")).unwrap();
    assert_eq!(find(), at("b/../a/x.sig"), "where it should be");
    assert!(IndexFile::is_in(&at("b/x.idx")) && !IndexFile::is_in(&at("b/nowhere.idx")));
}

/// Indexes of the first format version are read for ever. `LOOKALIKE_FIXTURES=write` makes them.
#[test]
fn indexes_of_version_1_are_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    for (name, of, method, stored) in [
        ("v1.idx", "v1.sig", "multi-4", Stored::Numbers),
        ("v1-whole.idx", "v1-narrow.hex", "blocks-3-1", Stored::Whole),
        ("v1-split.idx", "v1-narrow.hex", "multi-2", Stored::Split),
        ("v1-lines.idx", "v1-narrow.hex", "blocks-3-1", Stored::Lines),
    ] {
        let (path, of) = (folder.join(name), folder.join(of));
        let file = SignatureFile::open(&of).unwrap();
        let rows = file.signatures();
        let built = build(rows, method, Some(stored));
        if std::env::var_os("LOOKALIKE_FIXTURES").is_some() {
            built.save(&path, Some(&of)).unwrap();
        }
        let index = IndexFile::open(&path).unwrap();
        assert_eq!(index.signatures().unwrap(), of);
        assert_eq!((index.stored(), index.rows()), (stored, rows.len() as u64));
        let opened = index.tables(rows).unwrap();
        for radius in [0, 2, 30] {
            assert!(answers(&opened, rows.into(), radius) == answers(&built, rows.into(), radius));
        }
    }
}
