//! Slice lists against the exhaustive scan: what they find, what they prove, and what changes nothing.

mod common;

use std::{collections::BTreeSet, fs, path::PathBuf};

use common::{Random, near_copies, skewed, uniform, with_header, with_section};
use lookalike::{
    Error, Signatures,
    index::{Answers, Index, Issl, IsslFile, Promise, Queries, Reach, Scan, merge},
};
use proptest::prelude::*;

/// Every list of every slice.
const EVERYTHING: Reach = Reach::Within { expansion: 28, admission: 28, reranked: 0 };

fn nearest(rows: &Signatures, queries: &Signatures, k: usize) -> Answers {
    let mut found = Answers::new();
    Scan::new(rows).unwrap().nearest(queries.into(), k, &mut found).unwrap();
    found
}

fn within(rows: &Signatures, queries: &Signatures, radius: u32) -> Answers {
    let mut found = Answers::new();
    Scan::new(rows).unwrap().within(queries.into(), radius, &mut found).unwrap();
    found
}

fn some_rows(bits: u32, rows: usize, skew: bool, random: &mut Random) -> Signatures {
    let rows = if skew { skewed(bits, rows, random) } else { uniform(bits, rows, random) };
    near_copies(&rows, 2, 6, random)
}

fn margins(queries: &Signatures, random: &mut Random) -> Vec<u8> {
    (0..queries.len() * queries.bits() as usize).map(|_| random.next() as u8).collect()
}

fn random_reach(random: &mut Random) -> Reach {
    let reranked = [0, 5, 30, 1000][random.below(4)];
    match random.below(2) {
        0 => {
            let expansion = random.below(4) as u32;
            Reach::Within {
                expansion,
                admission: random.below(expansion as usize + 1) as u32,
                reranked,
            }
        }
        _ => Reach::Weakest { lists: random.below(3000), reranked },
    }
}

/// Answers are true distances in order, each row once, and as many as there are; what is proven is what the scan finds.
fn check(
    index: &Issl<'_>,
    rows: &Signatures,
    queries: Queries<'_>,
    k: usize,
    reach: Reach,
) -> usize {
    let truth = nearest(rows, queries.signatures(), k);
    let mut found = Answers::new();
    let proven = index.nearest_at(queries, k, reach, &mut found).unwrap();
    let scan = within(rows, queries.signatures(), rows.bits());
    for query in 0..queries.len() {
        let neighbors = found.of(query);
        assert_eq!(neighbors.len(), k.min(rows.len()));
        assert!(neighbors.is_sorted_by_key(|n| (n.distance, n.row)));
        assert!(neighbors.windows(2).all(|pair| pair[0] != pair[1]));
        assert!(neighbors.iter().all(|n| scan.of(query).contains(n)), "true distances");
        if proven.of(query) {
            assert_eq!(neighbors, truth.of(query), "{reach:?} is not proven");
        }
    }
    assert_eq!(proven.count() == queries.len(), proven.all());
    proven.count()
}

#[test]
fn with_all_lists_it_is_the_scan() {
    for (bits, width) in [(32, 8), (40, 9), (64, 11), (72, 10), (128, 8)] {
        for skew in [false, true] {
            let mut random = Random::new(u64::from(bits));
            let rows = some_rows(bits, 60, skew, &mut random);
            let queries = near_copies(&common::part(&rows, 0..8), 1, 4, &mut random);
            let index = Issl::build(&rows, Some(width)).unwrap();
            assert_eq!(index.slices() as u32, bits.div_ceil(width));
            for k in [0, 1, 7, 50, 500] {
                let proven = check(&index, &rows, (&queries).into(), k, EVERYTHING);
                let mut found = Answers::new();
                index.nearest_at((&queries).into(), k, EVERYTHING, &mut found).unwrap();
                assert_eq!(found, nearest(&rows, &queries, k), "{bits} {width} {k}");
                assert!(proven == queries.len() || (k > 0 && k < rows.len()));
            }
        }
    }
}

/// Near rows and far ones: the near ones are proven.
#[test]
fn near_copies_are_proven() {
    let mut random = Random::new(5);
    let rows = near_copies(&uniform(1024, 2000, &mut random), 3, 20, &mut random);
    let queries = near_copies(&common::part(&rows, 0..200), 1, 3, &mut random);
    let index = Issl::build(&rows, None).unwrap();
    assert_eq!((index.width(), index.slices()), (9, 114));
    for k in [1, 4] {
        let proven = check(&index, &rows, (&queries).into(), k, Issl::published(0, 0));
        assert_eq!(proven, queries.len(), "all {k} are within {}", index.guarantee(0));
        // In the fifth place is a stranger: it is found or not, but surely not proven.
        let few = check(&index, &rows, (&queries).into(), 5, Issl::published(0, 0));
        assert!(few < queries.len());
    }
    let mut found = Answers::new();
    assert_eq!(index.nearest((&queries).into(), 1, &mut found).unwrap(), Promise::Exact);
    let Promise::Expected { recall } = index.nearest((&queries).into(), 40, &mut found).unwrap()
    else {
        panic!("strangers are not proven");
    };
    let truth = nearest(&rows, &queries, 40);
    let good = found
        .iter()
        .zip(truth.iter())
        .map(|(found, truth)| found.iter().filter(|n| n.distance <= truth[39].distance).count());
    let measured = good.sum::<usize>() as f32 / (40 * queries.len()) as f32;
    assert!((recall - measured).abs() < 0.05, "{recall} {measured}");
}

#[test]
fn the_guarantee_of_a_radius_holds() {
    for bits in [64, 256, 1024] {
        let mut random = Random::new(6);
        let rows = some_rows(bits, 1500, bits == 256, &mut random);
        let queries = near_copies(&common::part(&rows, 0..60), 1, 9, &mut random);
        let index = Issl::build(&rows, None).unwrap();
        let guarantee = index.guarantee(0);
        assert_eq!(guarantee + 1, index.slices() as u32);
        let (mut found, mut first) = (Answers::new(), Answers::new());
        for radius in [0, 3, guarantee, guarantee + 1, 2 * guarantee + 1, bits / 3, bits] {
            let promise = index.within((&queries).into(), radius, &mut found).unwrap();
            let truth = within(&rows, &queries, radius);
            assert_eq!((promise, &found), (Promise::Exact, &truth), "{bits} {radius}");
            index.first((&queries).into(), radius, &mut first).unwrap();
            for query in 0..queries.len() {
                assert_eq!(first.of(query), &truth.of(query)[..truth.of(query).len().min(1)]);
            }
        }
    }
}

#[test]
fn threads_change_nothing() {
    let mut random = Random::new(7);
    let rows = some_rows(256, 3000, false, &mut random);
    let queries = near_copies(&common::part(&rows, 0..40), 1, 20, &mut random);
    let margins = margins(&queries, &mut random);
    let alone = common::part(&queries, 3..4);
    let reaches = [
        Reach::Within { expansion: 3, admission: 1, reranked: 30 },
        Reach::Within { expansion: 3, admission: 3, reranked: 30 },
        Reach::Weakest { lists: 9000, reranked: 50 },
    ];
    let ask = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let index = Issl::build(&rows, Some(12)).unwrap();
            reaches.map(|reach| {
                let many = Queries::with_margins(&queries, &margins).unwrap();
                let one = Queries::with_margins(&alone, &margins[3 * 256..4 * 256]).unwrap();
                let mut found = [Answers::new(), Answers::new()];
                let proven = index.nearest_at(many, 10, reach, &mut found[0]).unwrap();
                // A single query spreads its lists.
                index.nearest_at(one, 10, reach, &mut found[1]).unwrap();
                assert_eq!(found[0].of(3), found[1].of(0), "{reach:?}");
                (found, proven)
            })
        })
    };
    let one = ask(1);
    assert_eq!(one, ask(2));
    assert_eq!(one, ask(5));
}

#[test]
fn shards_change_nothing_where_everything_is_expanded() {
    let mut random = Random::new(8);
    let rows = some_rows(64, 100, true, &mut random);
    let queries = common::part(&rows, 0..20);
    let starts = [0, 70, 71, 200, rows.len()];
    let parts: Vec<Signatures> =
        starts.windows(2).map(|pair| common::part(&rows, pair[0]..pair[1])).collect();
    for k in [1, 10, 400] {
        let answers: Vec<Answers> = parts
            .iter()
            .map(|part| {
                let mut found = Answers::new();
                let index = Issl::build(part, Some(8)).unwrap();
                index.nearest_at((&queries).into(), k, EVERYTHING, &mut found).unwrap();
                found
            })
            .collect();
        let shards: Vec<(u32, &Answers)> =
            starts.iter().map(|&start| start as u32).zip(&answers).collect();
        assert_eq!(merge(&shards, k), nearest(&rows, &queries, k));
    }
    assert!(merge(&[], 3).is_empty());
}

#[test]
fn copies_are_one_entry() {
    let mut random = Random::new(9);
    let one = uniform(256, 1, &mut random);
    let mut rows = uniform(256, 500, &mut random);
    (0..5000).for_each(|_| rows.push_row_of(&one, 0).unwrap());
    let index = Issl::build(&rows, None).unwrap();
    assert_eq!(index.distinct(), 501);
    let mut found = Answers::new();
    let proven = index.nearest_at((&one).into(), 7, Issl::published(1, 1), &mut found).unwrap();
    assert!(proven.all());
    assert!(found.of(0).iter().map(|n| (n.distance, n.row)).eq((500..507).map(|row| (0, row))));
    let (lists, share) = index.touched(one.row(0), 1);
    assert_eq!(lists, index.slices() + 256);
    assert!(share > 0.0 && share <= 1.0);
}

#[test]
fn weak_bits_that_were_learned_are_worth_more() {
    // Bits of even position have small margins and flip, the others hardly ever do.
    let mut random = Random::new(10);
    let rows = near_copies(&uniform(512, 300, &mut random), 9, 3, &mut random);
    let queries = (0..300).flat_map(|i| rows.row(10 * i)).map(|word| word ^ random_mask(word));
    let queries = Signatures::from_words(512, queries.collect()).unwrap();
    let margins: Vec<u8> = (0..300 * 512).map(|bit| if bit % 2 == 0 { 5 } else { 90 }).collect();
    let asked = Queries::with_margins(&queries, &margins).unwrap();
    let mut index = Issl::build(&rows, Some(16)).unwrap();
    index.learn(asked).unwrap();
    let found_with = |queries: Queries<'_>, reach| {
        let mut found = Answers::new();
        index.nearest_at(queries, 1, reach, &mut found).unwrap();
        found.iter().enumerate().filter(|(query, of)| of[0].row as usize / 10 == *query).count()
    };
    let few = Reach::Weakest { lists: 32 * 40, reranked: 10 };
    let weakest = found_with(asked, few);
    let blind = found_with((&queries).into(), few);
    assert!(weakest > blind, "{weakest} {blind}");
    assert!(index.ladder(true).len() > 5 && index.ladder(false).len() > 5);
}

/// About half of the even bits.
fn random_mask(word: &u64) -> u64 {
    Random::new(*word).next() & 0xaaaa_aaaa_aaaa_aaaa
}

/// What is there after some changes: the rows, and which of them were removed.
struct Model {
    rows: Signatures,
    removed: BTreeSet<u32>,
}

impl Model {
    /// The nearest of what is left, by a scan.
    fn nearest(&self, queries: &Signatures, k: usize) -> Answers {
        let all = nearest(&self.rows, queries, self.rows.len());
        self.left(&all, k)
    }

    fn within(&self, queries: &Signatures, radius: u32) -> Answers {
        self.left(&within(&self.rows, queries, radius), usize::MAX)
    }

    fn left(&self, all: &Answers, k: usize) -> Answers {
        let mut left = Answers::new();
        for neighbors in all.iter() {
            let live = neighbors.iter().copied().filter(|n| !self.removed.contains(&n.row));
            left.push(&live.take(k).collect::<Vec<_>>());
        }
        left
    }
}

/// Rows that come and go at random, some of them copies.
fn change(index: &mut Issl<'_>, model: &mut Model, changes: usize, random: &mut Random) {
    for _ in 0..changes {
        let row = random.below(model.rows.len().max(1)) as u32;
        match random.below(3) {
            0 => {
                let there = (row as usize) < model.rows.len() && model.removed.insert(row);
                assert_eq!(index.remove(row).unwrap(), there);
            }
            1 if !model.rows.is_empty() => {
                let copy = model.rows.get(row as usize);
                assert_eq!(index.insert(&copy).unwrap() as usize, model.rows.len());
                model.rows.push(&copy).unwrap();
            }
            _ => {
                let new = uniform(model.rows.bits(), 1, random);
                assert_eq!(index.insert(&new.get(0)).unwrap() as usize, model.rows.len());
                model.rows.push(&new.get(0)).unwrap();
            }
        }
    }
}

fn agree(index: &Issl<'_>, model: &Model, queries: &Signatures) {
    let mut found = Answers::new();
    for k in [1, 6, model.rows.len()] {
        index.nearest_at(queries.into(), k, EVERYTHING, &mut found).unwrap();
        assert_eq!(found, model.nearest(queries, k));
    }
    for radius in [0, 3, 20, model.rows.bits()] {
        index.within(queries.into(), radius, &mut found).unwrap();
        assert_eq!(found, model.within(queries, radius), "within {radius}");
    }
}

#[test]
fn many_changes_build_the_tables_again() {
    let mut random = Random::new(11);
    let rows = uniform(256, 300, &mut random);
    let mut index = Issl::build(&rows, None).unwrap();
    let mut model = Model { rows: rows.clone(), removed: BTreeSet::new() };
    let width = index.width();
    for _ in 0..4 {
        change(&mut index, &mut model, 2000, &mut random);
        agree(&index, &model, &common::part(&rows, 0..5));
    }
    assert_eq!(index.len(), model.rows.len());
    assert!(index.signatures().len() > 1000, "most are in the tables");
    assert!(index.width() >= width);
    // Approximate answers are still as good as those of a new index.
    index.settle().unwrap();
    let queries = common::part(&model.rows, 100..200);
    let mut found = Answers::new();
    index.nearest_at((&queries).into(), 5, Issl::published(1, 1), &mut found).unwrap();
    assert!(found.iter().all(|of| of.iter().all(|n| !model.removed.contains(&n.row))));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn what_is_proven_is_right(
        seed in any::<u64>(),
        bits in (4_u32..40).prop_map(|bytes| bytes * 8),
        rows in 0_usize..100,
        width in 8_u32..13,
        k in 0_usize..20,
        skew in any::<bool>(),
    ) {
        let mut random = Random::new(seed);
        let rows = some_rows(bits, rows, skew, &mut random);
        let queries = near_copies(&common::part(&rows, 0..rows.len().min(10)), 1, 3, &mut random);
        let index = Issl::build(&rows, Some(width)).unwrap();
        let margins = margins(&queries, &mut random);
        for _ in 0..4 {
            let reach = random_reach(&mut random);
            check(&index, &rows, (&queries).into(), k, reach);
            check(&index, &rows, Queries::with_margins(&queries, &margins).unwrap(), k, reach);
        }
        check(&index, &rows, (&queries).into(), k, EVERYTHING);
    }

    #[test]
    fn rows_come_and_go(
        seed in any::<u64>(),
        bits in (4_u32..12).prop_map(|bytes| bytes * 8),
        rows in 0_usize..40,
        changes in 0_usize..120,
        settled in any::<bool>(),
    ) {
        let mut random = Random::new(seed);
        let rows = some_rows(bits, rows, false, &mut random);
        let mut index = Issl::build(&rows, Some(8)).unwrap();
        let mut model = Model { rows: rows.clone(), removed: BTreeSet::new() };
        change(&mut index, &mut model, changes, &mut random);
        let queries = common::joined(&uniform(bits, 2, &mut random), &common::part(&model.rows, 0..model.rows.len().min(6)));
        agree(&index, &model, &queries);
        if settled {
            index.settle().unwrap();
            prop_assert!(index.is_settled());
            agree(&index, &model, &queries);
            change(&mut index, &mut model, changes / 2, &mut random);
            agree(&index, &model, &queries);
        }
    }

    #[test]
    fn any_index_comes_back(
        seed in any::<u64>(),
        bits in (4_u32..20).prop_map(|bytes| bytes * 8),
        rows in 0_usize..80,
        width in 8_u32..12,
        changes in 0_usize..40,
    ) {
        let mut random = Random::new(seed);
        let rows = some_rows(bits, rows, true, &mut random);
        let mut built = Issl::build(&rows, Some(width)).unwrap();
        let mut model = Model { rows: rows.clone(), removed: BTreeSet::new() };
        change(&mut built, &mut model, changes, &mut random);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.issl");
        prop_assert!(built.is_settled() || built.save(&path, None).is_err());
        built.settle().unwrap();
        built.save(&path, None).unwrap();
        let opened = Issl::open(&path, built.signatures()).unwrap();
        let queries = common::part(&model.rows, 0..model.rows.len().min(8));
        agree(&opened, &model, &queries);
        let again = folder.path().join("again.issl");
        opened.save(&again, None).unwrap();
        prop_assert!(fs::read(&path).unwrap() == fs::read(&again).unwrap());
    }
}

/// Rows with copies, and a file with removed ones.
fn sample() -> (Signatures, Vec<u8>) {
    let mut random = Random::new(12);
    let rows = near_copies(&uniform(32, 12, &mut random), 2, 1, &mut random);
    let mut index = Issl::build(&rows, Some(8)).unwrap();
    assert!(index.distinct() < rows.len());
    for row in [0, 1, 2, 9] {
        assert!(index.remove(row).unwrap() && !index.remove(row).unwrap());
    }
    assert!(!index.remove(36).unwrap());
    index.settle().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.issl");
    index.save(&path, None).unwrap();
    assert!(IsslFile::is_in(&path));
    let file = IsslFile::open(&path).unwrap();
    assert_eq!((file.bits(), file.rows(), file.width()), (32, 36, 8));
    assert_eq!(file.distinct() as usize, index.distinct());
    (rows.clone(), fs::read(&path).unwrap())
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    fn write(&self, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join("damaged.issl");
        // A new file each time: the old one may still be mapped.
        let _ = fs::remove_file(&path);
        fs::write(&path, bytes).unwrap();
        path
    }

    fn open(&self, bytes: &[u8], rows: &Signatures) -> Result<(), Error> {
        Issl::open(&self.write(bytes), rows).map(|index| {
            let mut found = Answers::new();
            index.nearest_at(rows.into(), 3, EVERYTHING, &mut found).unwrap();
            index.within(rows.into(), 3, &mut found).unwrap();
        })
    }
}

/// Every byte of the file belongs to something with a checksum, or is padding between sections.
#[test]
fn every_damaged_byte_is_detected() {
    let folder = Folder::new();
    let (rows, whole) = sample();
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x40;
        match folder.open(&damaged, &rows) {
            Ok(()) => assert_eq!(whole[at], 0, "byte {at} is more than padding"),
            Err(error) => assert!(error.to_string().contains("damaged.issl"), "{error}"),
        }
    }
    for length in (0..whole.len()).step_by(7) {
        let error = folder.open(&whole[..length], &rows).unwrap_err().to_string();
        assert!(error.contains("damaged.issl"), "{error}");
    }
}

/// Sections whose checksums are right and whose cells lead astray.
#[test]
fn cells_that_lead_astray_are_refused() {
    let folder = Folder::new();
    let (rows, whole) = sample();
    for (name, cell) in [
        ("offsets", u32::MAX),
        ("numbers", 36),
        ("copies", 37),
        ("rates", 0),
        ("rates", f32::to_bits(2.0)),
    ] {
        for at in [0, 4, 20] {
            let change = |bytes: &mut [u8]| bytes[at..at + 4].copy_from_slice(&cell.to_le_bytes());
            let damaged = with_section(&whole, name, change).unwrap();
            let error = folder.open(&damaged, &rows).expect_err(name).to_string();
            assert!(error.contains(name), "{error}");
        }
    }
    let past = with_section(&whole, "removed", |bytes| bytes[7] = 0xff).unwrap();
    assert!(folder.open(&past, &rows).is_err());
}

#[test]
fn a_header_that_lies_is_refused() {
    let folder = Folder::new();
    let (rows, whole) = sample();
    for (from, to) in [
        ("\"bits\":32", "\"bits\":40"),
        ("\"bits\":32", "\"bits\":0"),
        ("\"rows\":36", "\"rows\":37"),
        ("\"rows\":36", "\"rows\":18446744073709551615"),
        ("\"distinct\":", "\"distinct\":1"),
        ("\"distinct\":", "\"distinct\":99999999999"),
        ("\"width\":8", "\"width\":11"),
        ("\"width\":8", "\"width\":99"),
        ("\"start\":8", "\"start\":7"),
        ("\"name\":\"copies\"", "\"name\":\"others\""),
        ("\"name\":\"rates\"", "\"name\":\"others\""),
        ("\"kind\":\"issl\"", "\"kind\":\"index\""),
    ] {
        let lie = with_header(&whole, |header| {
            assert!(header.contains(from), "{header}");
            header.replacen(from, to, 1)
        });
        let error = folder.open(&lie, &rows).expect_err(to).to_string();
        assert!(error.contains("damaged.issl"), "{to}: {error}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let folder = Folder::new();
    let (rows, whole) = sample();
    let path = folder.write(&whole);
    let other = common::map_rows(&rows, |row| row.iter().map(|word| !word >> 32 << 32).collect());
    let wider = uniform(72, rows.len(), &mut Random::new(1));
    for wrong in [&common::part(&rows, 0..35), &other, &wider] {
        let error = Issl::open(&path, wrong).unwrap_err();
        assert!(matches!(error, Error::OtherSignatures { .. }), "{error}");
    }
    for width in [0, 7, 29] {
        assert!(matches!(Issl::build(&rows, Some(width)), Err(Error::Method { .. })));
    }
    let mut index = Issl::build(&rows, None).unwrap();
    let mut found = Answers::new();
    let refused = [
        index.within((&wider).into(), 3, &mut found).map(drop),
        index.first((&wider).into(), 3, &mut found).map(drop),
        index.nearest((&wider).into(), 3, &mut found).map(drop),
        index.learn((&wider).into()),
        index.insert(&wider.get(0)).map(drop),
    ];
    for refused in refused {
        assert!(matches!(refused, Err(Error::WidthMismatch { stored: 32, given: 72 })));
    }
}
