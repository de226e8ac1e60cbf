//! Permuted orders against the exhaustive scan: what they find, and what they say about it.

mod common;

use common::{Random, near_copies, skewed, uniform};
use lookalike::{
    Error, Signatures,
    index::{Answers, Index, Permuted, PermutedMethod, Promise, Queries, Scan},
};
use proptest::prelude::*;

fn truth(rows: &Signatures, queries: &Signatures, radius: u32) -> Answers {
    let mut found = Answers::new();
    Scan::new(rows).unwrap().within(queries.into(), radius, &mut found).unwrap();
    found
}

/// Answers are true, in order and there once, and the first is one of all.
fn check(index: &Permuted<'_>, rows: &Signatures, queries: &Signatures, radius: u32) {
    let truth = truth(rows, queries, radius);
    let (mut all, mut first) = (Answers::new(), Answers::new());
    let promise = index.within(queries.into(), radius, &mut all).unwrap();
    index.first(queries.into(), radius, &mut first).unwrap();
    let covered = index.method().walks >= index.distinct();
    assert_eq!(promise == Promise::Exact, covered);
    if covered {
        assert_eq!(all, truth, "within {radius}");
    }
    assert_eq!((all.len(), first.len()), (queries.len(), queries.len()));
    for query in 0..queries.len() {
        let (all, first) = (all.of(query), first.of(query));
        assert!(all.is_sorted_by_key(|n| (n.distance, n.row)));
        assert!(all.windows(2).all(|pair| pair[0] != pair[1]));
        assert!(all.iter().all(|n| truth.of(query).contains(n)));
        assert_eq!(first.len(), all.len().min(1));
        assert!(first.iter().all(|n| all.contains(n)));
    }
}

/// The nearest are true, in order and there once.
fn check_nearest(index: &Permuted<'_>, rows: &Signatures, queries: &Signatures, k: usize) {
    let (mut found, mut truth) = (Answers::new(), Answers::new());
    let promise = index.nearest(queries.into(), k, &mut found).unwrap();
    Scan::new(rows).unwrap().nearest(queries.into(), k, &mut truth).unwrap();
    if index.method().walks >= index.distinct() {
        assert_eq!((promise, &found), (Promise::Exact, &truth));
    }
    assert_eq!(found.len(), queries.len());
    let distance = |query: &[u64], row: &[u64]| {
        query.iter().zip(row).map(|(a, b)| (a ^ b).count_ones()).sum::<u32>()
    };
    for (query, neighbors) in queries.rows().zip(found.iter()) {
        assert_eq!(neighbors.len(), k.min(rows.len()));
        assert!(neighbors.is_sorted_by_key(|n| (n.distance, n.row)));
        assert!(neighbors.windows(2).all(|pair| pair[0] != pair[1]));
        assert!(neighbors.iter().all(|n| n.distance == distance(query, rows.row(n.row as usize))));
    }
}

#[test]
fn a_budget_for_every_row_is_exact() {
    for bits in [32, 40, 64, 72, 128, 256, 1024, 4096] {
        for skew in [false, true] {
            let mut random = Random::new(u64::from(bits));
            let rows =
                if skew { skewed(bits, 100, &mut random) } else { uniform(bits, 100, &mut random) };
            let rows = near_copies(&rows, 3, 4, &mut random);
            let queries = near_copies(&common::part(&rows, 0..20), 1, 4, &mut random);
            for walks in [1, 60, 1000] {
                let index = Permuted::build(&rows, 4, walks, 1).unwrap();
                for radius in [0, 1, 3, bits / 8, bits].into_iter().filter(|&r| r <= 256) {
                    check(&index, &rows, &queries, radius);
                }
                for k in [0, 1, 5, 500] {
                    check_nearest(&index, &rows, &queries, k);
                }
            }
        }
    }
}

#[test]
fn few_rows_and_no_queries() {
    for bits in [64, 256] {
        let queries = uniform(bits, 3, &mut Random::new(3));
        let none = Signatures::new(bits).unwrap();
        for rows in [none.clone(), common::part(&queries, 0..1), common::part(&queries, 0..3)] {
            for (orders, walks) in [(1, 1), (1, 3), (16, 512)] {
                let index = Permuted::build(&rows, orders, walks, 1).unwrap();
                for queries in [&queries, &none] {
                    check(&index, &rows, queries, 3);
                    check(&index, &rows, queries, bits);
                    check_nearest(&index, &rows, queries, 2);
                }
            }
        }
    }
}

#[test]
fn copies_are_one_look_and_all_found() {
    for bits in [64, 256] {
        let mut random = Random::new(4);
        let one = uniform(bits, 1, &mut random);
        let mut rows = uniform(bits, 1000, &mut random);
        (0..20_000).for_each(|_| rows.push_row_of(&one, 0).unwrap());
        let index = Permuted::build(&rows, 4, 8, 1).unwrap();
        assert_eq!(index.distinct(), 1001);
        assert!(index.bytes() >= 4 * 1001 * 12);
        let mut found = Answers::new();
        index.within((&one).into(), 3, &mut found).unwrap();
        assert_eq!(found, truth(&rows, &one, 3));
        index.first((&one).into(), 3, &mut found).unwrap();
        assert_eq!(found.of(0)[0].row, 1000);
        index.nearest((&one).into(), 7, &mut found).unwrap();
        assert!(found.of(0).iter().map(|n| (n.distance, n.row)).eq((1000..1007).map(|r| (0, r))));
    }
}

#[test]
fn answers_do_not_depend_on_threads_or_batches() {
    let mut random = Random::new(7);
    let rows = near_copies(&uniform(128, 3000, &mut random), 2, 20, &mut random);
    let queries = near_copies(&common::part(&rows, 0..150), 1, 20, &mut random);
    let ask = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let index = Permuted::build(&rows, 4, 20, 5).unwrap();
            let mut found = [Answers::new(), Answers::new(), Answers::new()];
            let [all, first, nearest] = &mut found;
            let promises = [
                index.within((&queries).into(), 20, all).unwrap(),
                index.first((&queries).into(), 20, first).unwrap(),
                index.nearest((&queries).into(), 4, nearest).unwrap(),
            ];
            (found, promises)
        })
    };
    let one = ask(1);
    assert_eq!(one, ask(2));
    assert_eq!(one, ask(7));
    let index = Permuted::build(&rows, 4, 20, 5).unwrap();
    for query in (0..queries.len()).step_by(37) {
        let alone = common::part(&queries, query..query + 1);
        let mut found = Answers::new();
        index.within((&alone).into(), 20, &mut found).unwrap();
        assert_eq!(found.of(0), one.0[0].of(query));
    }
    let other = Permuted::build(&rows, 4, 20, 6).unwrap();
    let mut found = Answers::new();
    other.within((&queries).into(), 20, &mut found).unwrap();
    assert_ne!(found, one.0[0], "another seed, other permutations");
}

fn recall(promise: Promise) -> f64 {
    match promise {
        Promise::Exact => 1.0,
        Promise::Expected { recall } => f64::from(recall),
    }
}

fn count(answers: &Answers) -> f64 {
    answers.iter().map(<[_]>::len).sum::<usize>() as f64
}

/// The recall that is promised, and the one that the scan measures.
fn recalls(index: &Permuted<'_>, rows: &Signatures, queries: &Signatures, radius: u32) -> [f64; 2] {
    let mut found = Answers::new();
    let promised = recall(index.within(queries.into(), radius, &mut found).unwrap());
    [promised, count(&found) / count(&truth(rows, queries, radius))]
}

/// Every row with exactly so many bits flipped.
fn with_errors(rows: &Signatures, errors: u32, random: &mut Random) -> Signatures {
    let orders = (0..rows.len()).map(|_| common::shuffled(rows.bits(), random));
    let orders: Vec<Vec<u32>> = orders.collect();
    let words = rows.rows().zip(&orders).flat_map(|(row, order)| {
        let mut row = row.to_vec();
        let flipped = &order[..errors as usize];
        flipped.iter().for_each(|bit| row[*bit as usize / 64] ^= 1 << (63 - bit % 64));
        row
    });
    Signatures::from_words(rows.bits(), words.collect()).unwrap()
}

#[test]
fn the_recall_is_as_promised() {
    let mut random = Random::new(9);
    for (bits, radius) in [(64, 3), (256, 20)] {
        let rows = uniform(bits, 20_000, &mut random);
        let some = common::part(&rows, 0..6000);
        for (orders, walks) in [(1, 2), (4, 8), (8, 128)] {
            let index = Permuted::build(&rows, orders, walks, 1).unwrap();
            let mixed = near_copies(&some, 1, radius, &mut random);
            for queries in [mixed, with_errors(&some, radius, &mut random)] {
                let [promised, measured] = recalls(&index, &rows, &queries, radius);
                assert!((promised - measured).abs() < 0.02, "{promised} {measured}");
            }
        }
    }
}

/// Rows close together, which use up the budget, with errors in some bits only.
#[test]
fn the_recall_of_other_data_is_close_to_the_promise() {
    let mut random = Random::new(10);
    for bits in [64, 256] {
        let rows = near_copies(&skewed(bits, 1000, &mut random), 9, 4, &mut random);
        let queries = common::part(&rows, 0..rows.len() / 2);
        let index = Permuted::build(&rows, if bits == 64 { 8 } else { 2 }, 64, 1).unwrap();
        let [promised, measured] = recalls(&index, &rows, &queries, 6);
        assert!((promised - measured).abs() < 0.02, "{promised} {measured}");
    }
}

#[test]
fn the_recall_of_the_nearest_is_close_to_the_promise() {
    let mut random = Random::new(11);
    for bits in [64, 256] {
        let all = near_copies(&uniform(bits, 1000, &mut random), 15, bits / 16, &mut random);
        // The first of each cluster is asked for, and so is not there.
        let chosen = |rows: std::ops::Range<usize>| {
            let words = (0..1000).flat_map(|i| rows.clone().map(move |row| 16 * i + row));
            let words = words.flat_map(|row| all.row(row).iter().copied());
            Signatures::from_words(bits, words.collect()).unwrap()
        };
        let (asked, rows) = (chosen(1..2), chosen(2..16));
        let index = Permuted::build(&rows, 8, 128, 1).unwrap();
        for k in [1, 5, 10, 40] {
            let (mut found, mut truth) = (Answers::new(), Answers::new());
            let queries = Queries::from(&asked);
            // One query is no sample: rows are. Of many, some are.
            let one = common::part(&asked, 0..1);
            let of_rows = recall(index.nearest((&one).into(), k, &mut found).unwrap());
            let promised = recall(index.nearest(queries, k, &mut found).unwrap());
            let again = recall(index.nearest((&one).into(), k, &mut Answers::new()).unwrap());
            assert_eq!(again, promised);
            Scan::new(&rows).unwrap().nearest(queries, k, &mut truth).unwrap();
            let good = truth.iter().zip(found.iter()).map(|(truth, found)| {
                let farthest = truth.last().unwrap().distance;
                found.iter().filter(|n| n.distance <= farthest).count() as f64
            });
            let measured = good.sum::<f64>() / count(&truth);
            assert!((promised - measured).abs() < 0.01, "{promised} {measured}");
            assert!((of_rows - measured).abs() < 0.05, "{of_rows} {measured}");
        }
    }
}

#[test]
fn more_orders_and_more_looks_find_more() {
    let mut random = Random::new(12);
    let rows = uniform(64, 20_000, &mut random);
    let queries = with_errors(&common::part(&rows, 0..1000), 12, &mut random);
    let measured = |orders, walks| {
        let index = Permuted::build(&rows, orders, walks, 1).unwrap();
        recalls(&index, &rows, &queries, 12)
    };
    let rising = [measured(1, 32), measured(4, 32), measured(16, 32), measured(16, 512)];
    for pair in rising.windows(2) {
        assert!(pair[0][0] < pair[1][0] && pair[0][1] < pair[1][1], "{rising:?}");
    }
}

#[test]
fn what_cannot_be_built_or_asked_is_refused() {
    let rows = uniform(64, 100, &mut Random::new(13));
    for (orders, walks) in [(0, 10), (4097, 10), (4, 0)] {
        let built = Permuted::build(&rows, orders, walks, 1);
        assert!(matches!(built, Err(Error::Method { .. })), "{orders} {walks}");
    }
    let PermutedMethod { orders, walks } = "permuted-2x4".parse().unwrap();
    let query = uniform(72, 1, &mut Random::new(13));
    for walks in [walks, 100] {
        let index = Permuted::build(&rows, orders, walks, 1).unwrap();
        let mut found = Answers::new();
        for refused in [
            index.within((&query).into(), 3, &mut found),
            index.first((&query).into(), 3, &mut found),
            index.nearest((&query).into(), 3, &mut found),
        ] {
            assert!(matches!(refused, Err(Error::WidthMismatch { stored: 64, given: 72 })));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn random_orders_tell_the_truth(
        seed in any::<u64>(),
        bits in (4_u32..40).prop_map(|bytes| bytes * 8),
        rows in 0_usize..100,
        orders in 1_usize..9,
        walks in 1_usize..150,
        radius in 0_u32..12,
        k in 0_usize..20,
        skew in any::<bool>(),
    ) {
        let mut random = Random::new(seed);
        let rows = if skew { skewed(bits, rows, &mut random) } else { uniform(bits, rows, &mut random) };
        let rows = near_copies(&rows, 2, radius + 2, &mut random);
        let queries = near_copies(&common::part(&rows, 0..rows.len().min(20)), 1, radius + 1, &mut random);
        let index = Permuted::build(&rows, orders, walks, seed).unwrap();
        check(&index, &rows, &queries, radius);
        check_nearest(&index, &rows, &queries, k);
    }
}
