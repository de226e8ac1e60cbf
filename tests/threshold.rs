//! Threshold search against the exhaustive scan: every composition, whatever the data.

mod common;

use common::{Random, near_copies, skewed, uniform, voted};
use lookalike::{
    Error, Signatures,
    index::{Answers, Build, Index, Method, Neighbor, Promise, Queries, Scan, Tables},
    table::Stored,
};
use proptest::prelude::*;

fn method(text: &str) -> Method {
    text.parse().unwrap()
}

/// The methods that suit a width, from a few to many tables.
fn methods(bits: u32) -> Vec<Method> {
    let names: &[&str] = match bits {
        ..=64 => &[
            "pieces-1",
            "pieces-4",
            "pieces-7",
            "blocks-4-1",
            "blocks-5-2",
            "blocks-4-3",
            "multi-1",
            "multi-2",
            "multi-3",
            "multi-5",
            "multi-2x2",
            "multi-2x3",
            "multi-2x4",
            "multi-3x2",
            "psm-2-40",
            "psm-3-1000",
        ],
        _ => &[
            "pieces-4",
            "pieces-12",
            "blocks-5-2",
            "multi-4",
            "multi-7",
            "multi-3x2",
            "multi-13",
            "psm-8-200",
        ],
    };
    names.iter().map(|name| method(name)).collect()
}

fn truth(rows: &Signatures, queries: &Signatures, radius: u32) -> Answers {
    let mut found = Answers::new();
    Scan::new(rows).unwrap().within(queries.into(), radius, &mut found).unwrap();
    found
}

/// Whether a neighbor is among others that are in order.
fn contains(neighbors: &[Neighbor], neighbor: &Neighbor) -> bool {
    let key = |n: &Neighbor| (n.distance, n.row);
    neighbors.binary_search_by_key(&key(neighbor), key).is_ok()
}

/// Asks for all and for the first, and compares with the scan as far as the promise goes.
fn check(index: &Tables<'_>, rows: &Signatures, queries: Queries<'_>, radius: u32) {
    let truth = truth(rows, queries.signatures(), radius);
    let (mut all, mut first) = (Answers::new(), Answers::new());
    let promise = index.within(queries, radius, &mut all).unwrap();
    index.first(queries, radius, &mut first).unwrap();
    let name = index.composition().method();
    assert_eq!(promise == Promise::Exact, index.composition().is_exact(radius), "{name} {radius}");
    if promise == Promise::Exact {
        assert_eq!(all, truth, "{name} within {radius}");
    }
    assert_eq!((all.len(), first.len()), (queries.len(), queries.len()));
    for query in 0..queries.len() {
        // Beyond the guarantee some may be missing, but what is there is right, in order, and there once.
        assert!(all.of(query).is_sorted_by_key(|n| (n.distance, n.row)));
        assert!(all.of(query).windows(2).all(|pair| pair[0] != pair[1]), "{name} {radius}");
        assert!(all.of(query).iter().all(|n| contains(truth.of(query), n)), "{name} {radius}");
        assert_eq!(first.of(query).is_empty(), all.of(query).is_empty(), "{name} {radius}");
        assert!(
            first.of(query).len() <= 1
                && first.of(query).iter().all(|n| contains(all.of(query), n))
        );
    }
}

fn check_all(rows: &Signatures, queries: &Signatures, radii: &[u32]) {
    for method in methods(rows.bits()) {
        let index = Tables::build(rows, method, Build::default()).unwrap();
        for &radius in radii {
            check(&index, rows, queries.into(), radius);
        }
    }
}

#[test]
fn every_composition_agrees_with_the_scan() {
    for bits in [32, 40, 64, 72, 128, 256, 1024, 4096] {
        let count = if bits <= 256 { 700 } else { 50 };
        for (seed, skew) in [(1, false), (2, true)] {
            let mut random = Random::new(seed);
            let rows = match skew {
                true => skewed(bits, count, &mut random),
                false => uniform(bits, count, &mut random),
            };
            let rows = near_copies(&rows, 3, 9, &mut random);
            let queries = near_copies(&uniform(bits, 5, &mut random), 1, 2, &mut random);
            let queries = common::joined(
                &queries,
                &near_copies(&common::part(&rows, 0..40), 1, 4, &mut random),
            );
            check_all(&rows, &queries, &[0, 1, 2, 3, 4, 6, bits / 8, bits]);
        }
    }
}

#[test]
fn few_rows_and_no_queries() {
    for bits in [64, 256] {
        let mut random = Random::new(3);
        let queries = uniform(bits, 3, &mut random);
        let none = Signatures::new(bits).unwrap();
        for rows in [none.clone(), common::part(&queries, 0..1), common::part(&queries, 0..2)] {
            check_all(&rows, &queries, &[0, 3, bits]);
            check_all(&rows, &none, &[0, 3, bits]);
        }
    }
}

#[test]
fn copies_are_all_found_in_order() {
    for bits in [64, 256] {
        for copies in [1, 52, 200, 100_000] {
            let mut random = Random::new(copies as u64);
            let one = uniform(bits, 1, &mut random);
            let mut rows = uniform(bits, 100, &mut random);
            for _ in 0..copies {
                rows.push_row_of(&one, 0).unwrap();
            }
            rows.push_row_of(&near_copies(&one, 1, 2, &mut random), 1).unwrap();
            for method in ["multi-2x3", "pieces-5", "blocks-5-2"] {
                let index =
                    Tables::build(&rows, method.parse().unwrap(), Build::default()).unwrap();
                assert!(index.distinct() <= 102);
                let mut found = Answers::new();
                assert_eq!(index.within((&one).into(), 3, &mut found).unwrap(), Promise::Exact);
                assert_eq!(found, truth(&rows, &one, 3));
                assert!(found.of(0).len() >= copies);
            }
        }
    }
}

#[test]
fn rows_in_lines_lose_nothing() {
    let mut random = Random::new(5);
    for bits in [32, 48, 64] {
        let some = near_copies(&uniform(bits, 900, &mut random), 4, 5, &mut random);
        // Many rows to a key: most are not in its line.
        let rows = common::joined(&some, &skewed(bits, 2000, &mut random));
        let queries = near_copies(&common::part(&rows, 0..100), 1, 4, &mut random);
        for name in ["pieces-4", "multi-2", "multi-2x3", "blocks-5-2", "psm-2-10"] {
            for key_width in [0, 1, 4, 9, 16] {
                let build = Build { key_width: Some(key_width), stored: Some(Stored::Lines) };
                let lines = Tables::build(&rows, method(name), build).unwrap();
                assert!(
                    lines.bytes() <= lines.composition().bytes(rows.len(), Stored::Lines) + 4096
                );
                for radius in [0, 1, 3, 5] {
                    check(&lines, &rows, (&queries).into(), radius);
                }
                let (mut found, mut truth) = (Answers::new(), Answers::new());
                lines.nearest((&queries).into(), 7, &mut found).unwrap();
                Scan::new(&rows).unwrap().nearest((&queries).into(), 7, &mut truth).unwrap();
                assert_eq!(found, truth, "{name} with keys of {key_width} bits");
            }
        }
    }
    let wide = uniform(128, 10, &mut random);
    let lines = Build { key_width: None, stored: Some(Stored::Lines) };
    assert!(matches!(Tables::build(&wide, method("pieces-4"), lines), Err(Error::Method { .. })));
}

#[test]
fn the_first_in_lines_does_not_depend_on_the_batch() {
    let mut random = Random::new(8);
    let rows = near_copies(&uniform(64, 300, &mut random), 9, 3, &mut random);
    let queries = near_copies(&common::part(&rows, 0..150), 1, 2, &mut random);
    for name in ["pieces-4", "multi-2", "multi-2x3", "psm-2-10"] {
        for key_width in [4, 6, 9] {
            let first = |stored, queries: &Signatures| {
                let build = Build { key_width: Some(key_width), stored: Some(stored) };
                let index = Tables::build(&rows, method(name), build).unwrap();
                let mut found = Answers::new();
                index.first(queries.into(), 3, &mut found).unwrap();
                found
            };
            let all = first(Stored::Lines, &queries);
            assert_eq!(all, first(Stored::Whole, &queries), "{name} {key_width}");
            for part in [0..1, 5..12, 20..70, 3..150] {
                let some = first(Stored::Lines, &common::part(&queries, part.clone()));
                assert!(
                    part.clone().eq(part.clone().filter(|&i| all.of(i) == some.of(i - part.start)))
                );
            }
        }
    }
}

#[test]
fn split_rows_lose_nothing() {
    let mut random = Random::new(5);
    let rows = near_copies(&uniform(64, 3000, &mut random), 4, 5, &mut random);
    let queries = near_copies(&common::part(&rows, 0..100), 1, 4, &mut random);
    for (name, key_width) in [
        ("pieces-4", 16),
        ("multi-2", 18),
        ("multi-2x3", 20),
        ("multi-2x4", 24),
        ("blocks-5-2", 24),
    ] {
        let build = Build { key_width: Some(key_width), stored: Some(Stored::Split) };
        let split = Tables::build(&rows, method(name), build).unwrap();
        let whole = Build { stored: Some(Stored::Whole), ..build };
        let whole = Tables::build(&rows, method(name), whole).unwrap();
        assert!(split.bytes() < whole.bytes());
        for radius in 0..6 {
            check(&split, &rows, (&queries).into(), radius);
            check(&whole, &rows, (&queries).into(), radius);
        }
    }
    let narrow = Build { key_width: Some(12), stored: Some(Stored::Split) };
    assert!(matches!(Tables::build(&rows, method("pieces-4"), narrow), Err(Error::Method { .. })));
    let wide = uniform(128, 10, &mut random);
    let whole = Build { key_width: None, stored: Some(Stored::Whole) };
    assert!(matches!(Tables::build(&wide, method("pieces-4"), whole), Err(Error::Method { .. })));
}

#[test]
fn every_key_width_gives_the_same_answers() {
    let mut random = Random::new(6);
    let rows = near_copies(&uniform(64, 500, &mut random), 4, 5, &mut random);
    let queries = near_copies(&common::part(&rows, 0..50), 1, 4, &mut random);
    for key_width in [0, 1, 2, 5, 13, 21, 24] {
        for name in ["pieces-4", "multi-2", "multi-2x3", "blocks-5-2"] {
            let build = Build { key_width: Some(key_width), stored: None };
            let index = Tables::build(&rows, method(name), build).unwrap();
            check(&index, &rows, (&queries).into(), 3);
        }
    }
}

#[test]
fn answers_do_not_depend_on_threads_or_batches() {
    let mut random = Random::new(7);
    let rows = near_copies(&uniform(64, 20_000, &mut random), 3, 4, &mut random);
    let queries = near_copies(&common::part(&rows, 0..3000), 1, 3, &mut random);
    let build = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let index = Tables::build(&rows, method("multi-2x3"), Build::default()).unwrap();
            let (mut all, mut first) = (Answers::new(), Answers::new());
            index.within((&queries).into(), 3, &mut all).unwrap();
            index.first((&queries).into(), 3, &mut first).unwrap();
            (all, first)
        })
    };
    let one = build(1);
    assert_eq!(one, build(2));
    assert_eq!(one, build(7));
    let index = Tables::build(&rows, method("multi-2x3"), Build::default()).unwrap();
    for query in (0..queries.len()).step_by(97) {
        let alone = common::part(&queries, query..query + 1);
        let mut found = Answers::new();
        index.within((&alone).into(), 3, &mut found).unwrap();
        assert_eq!(found.of(0), one.0.of(query));
        index.first((&alone).into(), 3, &mut found).unwrap();
        assert_eq!(found.of(0), one.1.of(query));
    }
}

#[test]
fn masks_and_permutations_of_bits_change_nothing() {
    for bits in [64, 192] {
        let mut random = Random::new(8);
        let rows = near_copies(&skewed(bits, 600, &mut random), 3, 5, &mut random);
        let queries = near_copies(&common::part(&rows, 0..50), 1, 3, &mut random);
        let expected = truth(&rows, &queries, 3);
        let mask = uniform(bits, 1, &mut random);
        let order = common::shuffled(bits, &mut random);
        let masked = |of: &Signatures| {
            common::map_rows(of, |row| row.iter().zip(mask.row(0)).map(|(a, b)| a ^ b).collect())
        };
        let permuted = |of: &Signatures| common::permuted(of, &order);
        for method in methods(bits) {
            for (rows, queries) in
                [(masked(&rows), masked(&queries)), (permuted(&rows), permuted(&queries))]
            {
                let index = Tables::build(&rows, method, Build::default()).unwrap();
                let mut found = Answers::new();
                let promise = index.within((&queries).into(), 3, &mut found).unwrap();
                assert_eq!(promise == Promise::Exact, index.composition().is_exact(3), "{method}");
                if promise == Promise::Exact {
                    assert_eq!(found, expected, "{method}");
                }
            }
        }
    }
}

#[test]
fn methods_are_written_as_they_are_read() {
    for name in ["pieces-4", "blocks-5-2", "multi-3", "multi-2x4", "psm-1-23"] {
        assert_eq!(method(name).to_string(), name);
    }
    for wrong in [
        "",
        "pieces",
        "pieces-",
        "pieces-x",
        "multi-2x1",
        "pieces-4-1",
        "blocks-4",
        "multi-04",
        "tree-3",
    ] {
        assert!(matches!(wrong.parse::<Method>(), Err(Error::Method { .. })), "{wrong}");
    }
    let rows = uniform(64, 3, &mut Random::new(1));
    for wrong in [
        "pieces-0",
        "pieces-65",
        "blocks-4-5",
        "blocks-20-3",
        "multi-0",
        "multi-33x2",
        "psm-0-3",
        "psm-1-0",
    ] {
        let built = Tables::build(&rows, method(wrong), Build::default());
        assert!(matches!(built, Err(Error::Method { .. })), "{wrong}");
    }
}

#[test]
fn another_width_is_refused() {
    let rows = uniform(64, 10, &mut Random::new(9));
    let index = Tables::build(&rows, method("multi-2x3"), Build::default()).unwrap();
    let query = uniform(72, 1, &mut Random::new(9));
    let refused = index.within((&query).into(), 3, &mut Answers::new());
    assert!(matches!(refused, Err(Error::WidthMismatch { stored: 64, given: 72 })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn random_compositions_agree_with_the_scan(
        seed in any::<u64>(),
        bits in (4_u32..40).prop_map(|bytes| bytes * 8),
        rows in 0_usize..400,
        slices in 1_u32..9,
        parts in 1_u32..4,
        key_width in 0_u32..20,
        radius in 0_u32..12,
        skew in any::<bool>(),
    ) {
        let mut random = Random::new(seed);
        let rows = if skew { skewed(bits, rows, &mut random) } else { uniform(bits, rows, &mut random) };
        let rows = near_copies(&rows, 2, radius + 2, &mut random);
        let queries = near_copies(&common::part(&rows, 0..rows.len().min(20)), 1, radius + 1, &mut random);
        // Where keys say too little for that, rows are stored whole.
        let build = Build { key_width: Some(key_width), stored: Some(Stored::Split) };
        for method in [
            Method::Multi { slices, parts },
            Method::Pieces { slices },
            Method::Blocks { blocks: slices + parts, leading: parts },
        ] {
            let index = Tables::build(&rows, method, build)
                .or_else(|_| Tables::build(&rows, method, Build { stored: None, ..build }))
                .unwrap();
            check(&index, &rows, (&queries).into(), radius);
        }
    }
}

/// The share of the true neighbors that was found.
fn recall(found: &Answers, truth: &Answers) -> f32 {
    let count = |answers: &Answers| answers.iter().map(<[_]>::len).sum::<usize>();
    count(found) as f32 / count(truth) as f32
}

fn expected(promise: Promise) -> f32 {
    match promise {
        Promise::Exact => 1.0,
        Promise::Expected { recall } => recall,
    }
}

#[test]
fn beyond_the_guarantee_the_recall_is_as_predicted() {
    for (bits, radius, names) in [
        (64, 6, ["pieces-4", "pieces-3", "blocks-5-2", "psm-2-30"]),
        (256, 24, ["pieces-12", "pieces-16", "blocks-5-2", "psm-8-40"]),
    ] {
        let mut random = Random::new(11);
        let rows = uniform(bits, 4000, &mut random);
        let queries = near_copies(&rows, 1, radius, &mut random);
        let truth = truth(&rows, &queries, radius);
        for name in names {
            let index = Tables::build(&rows, method(name), Build::default()).unwrap();
            let mut found = Answers::new();
            let promise = index.within((&queries).into(), radius, &mut found).unwrap();
            let (promised, measured) = (expected(promise), recall(&found, &truth));
            assert!(
                promise != Promise::Exact && (promised - measured).abs() < 0.02,
                "{name}: {promised} {measured}"
            );
        }
    }
}

#[test]
fn the_recall_of_skewed_errors_is_as_sampled() {
    // Errors in the first half only: twice as many as uniform ones in the slices there.
    let mut random = Random::new(16);
    let rows = uniform(64, 4000, &mut random);
    let queries = common::map_rows(&rows, |row| {
        let errors =
            (0..3 + row[0] % 4).fold(0, |errors, i| errors | 1 << (32 + (row[0] >> (8 * i)) % 32));
        vec![row[0] ^ errors]
    });
    let truth = truth(&rows, &queries, 6);
    for name in ["pieces-3", "pieces-4", "blocks-5-2", "psm-2-30"] {
        let index = Tables::build(&rows, method(name), Build::default()).unwrap();
        let mut found = Answers::new();
        let promised = expected(index.within((&queries).into(), 6, &mut found).unwrap());
        let measured = recall(&found, &truth);
        assert!((promised - measured).abs() < 0.02, "{name}: {promised} {measured}");
    }
}

#[test]
fn the_recall_of_weak_bits_is_as_calibrated() {
    let (rows, queries, margins) = voted(20_000, 6000, 0.12, &mut Random::new(12));
    let asked = Queries::with_margins(&queries, &margins).unwrap();
    let truth = truth(&rows, &queries, 3);
    for name in ["psm-1-4", "psm-1-23", "psm-2-3", "psm-2-6"] {
        let index = Tables::build(&rows, method(name), Build::default()).unwrap();
        let mut found = Answers::new();
        let promised = expected(index.within(asked, 3, &mut found).unwrap());
        let measured = recall(&found, &truth);
        assert!((promised - measured).abs() < 0.02, "{name}: {promised} {measured}");
        // Without margins the order of probes is a blind one.
        let promised_blind = expected(index.within((&queries).into(), 3, &mut found).unwrap());
        let blind = recall(&found, &truth);
        assert!(
            (promised_blind - blind).abs() < 0.02 && blind < measured - 0.02,
            "{name}: {promised_blind} {blind}"
        );
    }
}

#[test]
fn with_all_probes_weak_bits_are_exact() {
    let (rows, queries, margins) = voted(3000, 300, 0.3, &mut Random::new(13));
    let asked = Queries::with_margins(&queries, &margins).unwrap();
    for (tables, key_width, radius) in [(1, 9, 3), (2, 12, 3), (2, 9, 5), (3, 8, 8)] {
        let index = |probes| {
            let build = Build { key_width: Some(key_width), stored: None };
            Tables::build(&rows, Method::Psm { tables, probes }, build).unwrap()
        };
        let exact = |probes: &u32| index(*probes).composition().is_exact(radius);
        let enough = (1..1000).find(exact).unwrap();
        check(&index(enough), &rows, asked, radius);
        check(&index(enough - 1), &rows, asked, radius);
        check(&index(3), &rows, asked, radius);
        let mut found = Answers::new();
        assert_eq!(index(enough).within(asked, radius, &mut found).unwrap(), Promise::Exact);
        assert_ne!(index(enough - 1).within(asked, radius, &mut found).unwrap(), Promise::Exact);
    }
}

#[test]
fn margins_that_do_not_fit_are_refused() {
    let queries = uniform(64, 3, &mut Random::new(14));
    let refused = Queries::with_margins(&queries, &[0; 64]);
    assert!(matches!(refused, Err(Error::Margins { wanted: 192, given: 64 })));
}

#[test]
fn the_nearest_are_those_of_the_scan() {
    for bits in [64, 256] {
        let mut random = Random::new(15);
        let rows = near_copies(&uniform(bits, 800, &mut random), 3, 3, &mut random);
        let queries = near_copies(&common::part(&rows, 0..30), 1, 2, &mut random);
        let queries = common::joined(&queries, &uniform(bits, 10, &mut random));
        let scan = Scan::new(&rows).unwrap();
        // Old answers must be forgotten, whatever the method.
        let mut found = Answers::new();
        for name in ["pieces-4", "multi-2x3", "psm-1-3", "blocks-11-5"] {
            let index = Tables::build(&rows, method(name), Build::default()).unwrap();
            for k in [0, 1, 3, 5, 10_000] {
                index
                    .nearest((&common::part(&rows, 0..queries.len())).into(), 2, &mut found)
                    .unwrap();
                let mut truth = Answers::new();
                assert_eq!(
                    index.nearest((&queries).into(), k, &mut found).unwrap(),
                    Promise::Exact
                );
                scan.nearest((&queries).into(), k, &mut truth).unwrap();
                assert_eq!(found, truth, "{name} {k}");
            }
        }
    }
}

/// Enough rows that keys are looked up well beyond the own ones: near copies, exact copies and rows far from all, asked
/// for one by one and together.
#[test]
fn the_nearest_of_many_rows_are_those_of_the_scan() {
    for bits in [64, 128] {
        let mut random = Random::new(16);
        let rows = near_copies(&uniform(bits, 4000, &mut random), 5, 9, &mut random);
        let rows = common::joined(&rows, &common::part(&rows, 0..900));
        let rows = (0..20).fold(rows, |rows, _| {
            let copies = common::part(&rows, 0..5);
            common::joined(&rows, &copies)
        });
        let queries = near_copies(&common::part(&rows, 0..60), 1, 6, &mut random);
        let queries = common::joined(&queries, &uniform(bits, 20, &mut random));
        let scan = Scan::new(&rows).unwrap();
        let (mut found, mut truth) = (Answers::new(), Answers::new());
        for (name, key_width) in [
            ("multi-3", None),
            ("multi-4", Some(16)),
            ("multi-5", Some(9)),
            ("multi-2x3", None),
            ("blocks-5-2", None),
            ("pieces-4", Some(12)),
            ("psm-2-9", None),
        ] {
            let build = Build { key_width, stored: None };
            let index = Tables::build(&rows, method(name), build).unwrap();
            for k in [1, 2, 10, 30, 1000, rows.len(), rows.len() + 1] {
                let queries = if k > 30 { common::part(&queries, 0..2) } else { queries.clone() };
                scan.nearest((&queries).into(), k, &mut truth).unwrap();
                index.nearest((&queries).into(), k, &mut found).unwrap();
                assert_eq!(found, truth, "{bits} bits, {name}, {k} nearest");
                for (query, expected) in truth.iter().enumerate().take(20) {
                    let single = common::part(&queries, query..query + 1);
                    index.nearest((&single).into(), k, &mut found).unwrap();
                    assert_eq!(found.of(0), expected, "{bits} bits, {name}, {k} nearest, alone");
                }
            }
        }
    }
}
