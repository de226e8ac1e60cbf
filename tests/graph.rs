//! The graph of neighbors, from outside: what it finds is what it promises.

use lookalike::{
    Error, Signatures,
    index::{
        Answers, Effort, Graph, GraphFile, Index, Neighbor, Promise, Queries, Scan, Shape,
        recall_at,
    },
};
use proptest::prelude::*;

/// splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// A row in which one of so many bits differs.
    fn near(&mut self, row: &[u64], of: usize) -> Vec<u64> {
        let mut row = row.to_vec();
        for _ in 0..row.len() * 64 / of {
            let bit = self.below(row.len() * 64);
            row[bit / 64] ^= 1 << (bit % 64);
        }
        row
    }
}

/// Rows as documents are: topics, among them subjects, among them versions, and some like nothing else.
fn documents(bits: u32, count: usize, seed: u64) -> Vec<Vec<u64>> {
    let stride = bits as usize / 64;
    let mut topics = Random(7);
    let topics: Vec<Vec<u64>> =
        (0..40).map(|_| (0..stride).map(|_| topics.next()).collect()).collect();
    let subjects: Vec<Vec<u64>> = {
        let mut random = Random(8);
        (0..600).map(|i| random.near(&topics[i % topics.len()], 5)).collect()
    };
    let mut random = Random(seed);
    (0..count)
        .map(|i| match i % 16 {
            0 => random.near(&topics[i / 16 % topics.len()], 3),
            _ => {
                let subject = random.below(subjects.len());
                random.near(&subjects[subject], 8)
            }
        })
        .collect()
}

fn signatures(bits: u32, rows: &[Vec<u64>]) -> Signatures {
    Signatures::from_words(bits, rows.concat()).unwrap()
}

fn small() -> Shape {
    Shape { degree: 24, beam: 48 }
}

fn nearest(index: &dyn Index, queries: &Signatures, k: usize) -> (Answers, Promise) {
    let mut found = Answers::new();
    let promise = index.nearest(queries.into(), k, &mut found).unwrap();
    (found, promise)
}

fn truth(rows: &Signatures, queries: &Signatures, k: usize) -> Answers {
    nearest(&Scan::new(rows).unwrap(), queries, k).0
}

fn recall(graph: &Graph, effort: Effort, queries: &Signatures, truth: &Answers) -> f64 {
    recall_at(&nearest(&graph.at(effort), queries, 10).0, truth, 10)
}

#[test]
fn the_recall_that_was_asked_for_is_delivered() {
    for bits in [256, 1024] {
        let rows = signatures(bits, &documents(bits, 20_000, 1));
        let queries = signatures(bits, &documents(bits, 400, 2));
        let graph = Graph::build(&rows, small(), 1).unwrap();
        let truth = truth(&rows, &queries, 10);
        for wanted in [0.8, 0.9, 0.95, 0.99] {
            let (found, promise) = nearest(&graph.at(Effort::Recall(wanted)), &queries, 10);
            let measured = recall_at(&found, &truth, 10);
            assert!(measured >= wanted - 0.01, "{bits} bits: {measured} of {wanted}");
            match promise {
                Promise::Expected { recall } => assert!(f64::from(recall) >= wanted),
                Promise::Exact => assert_eq!(measured, 1.0),
            }
        }
    }
}

#[test]
fn what_cannot_be_promised_is_scanned() {
    let rows = signatures(256, &documents(256, 20_000, 1));
    let queries = signatures(256, &documents(256, 20, 2));
    let graph = Graph::build(&rows, small(), 1).unwrap();
    let (found, promise) = nearest(&graph.at(Effort::Recall(1.0)), &queries, 10);
    assert_eq!((found, promise), (truth(&rows, &queries, 10), Promise::Exact));
}

#[test]
fn threads_change_nothing() {
    let rows = signatures(256, &documents(256, 6000, 1));
    let queries = signatures(256, &documents(256, 300, 2));
    let build = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let graph = Graph::build(&rows, small(), 5).unwrap();
            let place = tempfile::tempdir().unwrap();
            graph.save(&place.path().join("g"), &rows, None).unwrap();
            let bytes = std::fs::read(place.path().join("g")).unwrap();
            (bytes, nearest(&graph.at(Effort::Level(32)), &queries, 10).0)
        })
    };
    let one = build(1);
    assert!(one == build(2) && one == build(5), "the same bytes and answers");
}

/// A single query is a batch of one.
#[test]
fn batches_change_nothing() {
    let rows = signatures(256, &documents(256, 6000, 1));
    let queries = signatures(256, &documents(256, 150, 2));
    let graph = Graph::build(&rows, small(), 5).unwrap();
    let search = graph.at(Effort::Level(24));
    let (all, _) = nearest(&search, &queries, 10);
    for query in 0..queries.len() {
        let (one, _) = nearest(&search, &queries.get(query).into(), 10);
        assert_eq!(one.of(0), all.of(query));
    }
}

#[test]
fn copies_are_never_missed() {
    let mut documents = documents(256, 8000, 1);
    for i in 0..500 {
        documents.push(documents[i * 13].clone());
        documents.push(documents[i].clone());
    }
    let rows = signatures(256, &documents);
    let graph = Graph::build(&rows, Shape { degree: 8, beam: 16 }, 1).unwrap();
    let (found, _) = nearest(&graph.at(Effort::Level(8)), &rows, 1);
    for (row, neighbors) in found.iter().enumerate() {
        let first = documents.iter().position(|other| *other == documents[row]).unwrap();
        assert_eq!(neighbors, [Neighbor { row: first as u32, distance: 0 }]);
    }
    // All copies, not one for all.
    let (found, _) = nearest(&graph.at(Effort::Level(8)), &rows.get(0).into(), 3);
    let copies: Vec<u32> =
        found.of(0).iter().filter(|found| found.distance == 0).map(|found| found.row).collect();
    assert_eq!(copies, [0, 8000, 8001]);
}

/// Near copies of one page, more than all else together, must not cut off the others.
#[test]
fn a_flood_of_near_copies_hides_nothing() {
    let others = documents(256, 6000, 1);
    let mut random = Random(3);
    let flood = (0..10_000).map(|_| random.near(&others[0], 50));
    let rows = signatures(256, &others.iter().cloned().chain(flood).collect::<Vec<_>>());
    let queries = signatures(256, &documents(256, 300, 2));
    let graph = Graph::build(&rows, small(), 1).unwrap();
    let plain = Graph::build(&signatures(256, &others), small(), 1).unwrap();
    let without = recall(
        &plain,
        Effort::Level(48),
        &queries,
        &truth(&signatures(256, &others), &queries, 10),
    );
    let with = recall(&graph, Effort::Level(48), &queries, &truth(&rows, &queries, 10));
    assert!(with > without - 0.02, "{with} with the flood, {without} without");
    // And the flood itself is found.
    let flooded: Vec<_> = (0..100).map(|_| random.near(&others[0], 50)).collect();
    let flooded = signatures(256, &flooded);
    let found = recall(&graph, Effort::Level(256), &flooded, &truth(&rows, &flooded, 10));
    assert!(found > 0.8, "{found}");
}

#[test]
fn after_changes_it_is_as_good_as_new() {
    let all = documents(256, 12_000, 1);
    let (first, later) = all.split_at(10_000);
    let mut graph = Graph::build(&signatures(256, first), small(), 1).unwrap();
    let (mut random, mut there) = (Random(4), vec![true; first.len()]);
    for _ in 0..2000 {
        let row = random.below(first.len());
        assert_eq!(graph.remove(row as u32).unwrap(), there[row]);
        there[row] = false;
    }
    let numbers = graph.insert(&signatures(256, later)).unwrap();
    assert_eq!(numbers, 10_000..12_000);
    there.resize(all.len(), true);

    let kept: Vec<u32> = (0..all.len() as u32).filter(|&row| there[row as usize]).collect();
    let rows: Vec<_> = kept.iter().map(|&row| all[row as usize].clone()).collect();
    let rows = signatures(256, &rows);
    let fresh = Graph::build(&rows, small(), 1).unwrap();
    let queries = signatures(256, &documents(256, 500, 2));
    let truth = truth(&rows, &queries, 10);
    for level in [16, 64, 256] {
        let (found, _) = nearest(&graph.at(Effort::Level(level)), &queries, 10);
        assert!(found.iter().flatten().all(|neighbor| there[neighbor.row as usize]));
        let (changed, new) =
            (recall_at(&found, &truth, 10), recall(&fresh, Effort::Level(level), &queries, &truth));
        assert!(changed > new - 0.01, "level {level}: {changed}, and {new} if built anew");
    }
    assert!(!graph.remove(99_999).unwrap());
}

/// From nothing, one by one, and away again.
#[test]
fn a_graph_may_begin_and_end_empty() {
    let rows = documents(128, 300, 1);
    let mut graph = Graph::build(&Signatures::new(128).unwrap(), small(), 1).unwrap();
    let queries = signatures(128, &rows[..5]);
    assert_eq!(nearest(&graph, &queries, 3).0.of(4), []);
    for (i, row) in rows.iter().enumerate() {
        let added = graph.insert(&signatures(128, std::slice::from_ref(row))).unwrap();
        assert_eq!(added, i as u32..i as u32 + 1);
    }
    let all = signatures(128, &rows);
    assert_eq!(nearest(&graph, &queries, 3).0, truth(&all, &queries, 3));
    for row in 0..rows.len() as u32 {
        assert!(graph.remove(row).unwrap() && !graph.remove(row).unwrap());
    }
    assert_eq!((graph.distinct(), nearest(&graph, &queries, 3).0.of(0).len()), (0, 0));
    graph.insert(&queries).unwrap();
    assert_eq!(nearest(&graph, &queries, 1).0.of(2), [Neighbor { row: 302, distance: 0 }]);
}

#[test]
fn what_is_within_a_radius_is_promised_in_part() {
    let rows = signatures(256, &documents(256, 20_000, 1));
    let queries = signatures(256, &documents(256, 200, 2));
    let graph = Graph::build(&rows, small(), 1).unwrap();
    let (mut found, mut truth) = (Answers::new(), Answers::new());
    for radius in [20, 50, 60] {
        Scan::new(&rows).unwrap().within((&queries).into(), radius, &mut truth).unwrap();
        let promise = graph.within((&queries).into(), radius, &mut found).unwrap();
        let (mut seen, mut there) = (0, 0);
        for (found, truth) in found.iter().zip(truth.iter()) {
            assert!(found.iter().all(|neighbor| truth.contains(neighbor)));
            (seen, there) = (seen + found.len(), there + truth.len());
        }
        let measured = if there > 0 { seen as f64 / there as f64 } else { 1.0 };
        if let (Promise::Expected { recall }, true) = (promise, there > 100) {
            let recall = f64::from(recall);
            assert!((measured - recall).abs() < 0.05, "{radius}: {measured}, not {recall}");
        }
        graph.first((&queries).into(), radius, &mut found).unwrap();
        let near = |answer: &[Neighbor]| answer.iter().all(|one| one.distance <= radius);
        assert!(found.iter().all(|answer| answer.len() <= 1 && near(answer)));
    }
}

#[test]
fn a_saved_graph_is_the_same() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("rows.idx");
    let mut documents = documents(320, 5000, 1);
    documents.push(documents[17].clone());
    let rows = signatures(320, &documents);
    let queries = signatures(320, &documents[..100]);
    let graph = Graph::build(&rows, small(), 1).unwrap();
    graph.save(&path, &rows, None).unwrap();
    assert!(GraphFile::is_in(&path));
    let mut opened = Graph::open(&path, &rows).unwrap();
    let search = Effort::Level(32);
    assert_eq!(nearest(&opened.at(search), &queries, 10), nearest(&graph.at(search), &queries, 10));
    assert_eq!(opened.curve().reach(0.9, 10).map(|reached| reached.level), {
        graph.curve().reach(0.9, 10).map(|reached| reached.level)
    });
    // It can be changed, which does not change the file.
    assert!(opened.remove(17).unwrap());
    opened.insert(&queries).unwrap();
    assert_eq!(nearest(&opened, &queries, 1).0.of(17)[0].row, 5000);
    assert_eq!(nearest(&Graph::open(&path, &rows).unwrap(), &queries, 1).0.of(17)[0].row, 17);

    let other = signatures(320, &documents[1..]);
    assert!(matches!(Graph::open(&path, &other), Err(Error::OtherSignatures { .. })));
    let bytes = std::fs::read(&path).unwrap();
    for at in [300, bytes.len() / 2, bytes.len() - 3] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        std::fs::write(&path, damaged).unwrap();
        assert!(Graph::open(&path, &rows).is_err(), "byte {at}");
    }
    std::fs::write(&path, &bytes[..bytes.len() - 10]).unwrap();
    assert!(Graph::open(&path, &rows).is_err());
}

#[test]
fn other_widths_and_shapes_are_refused() {
    let rows = signatures(128, &documents(128, 100, 1));
    let graph = Graph::build(&rows, small(), 1).unwrap();
    let wide = signatures(256, &documents(256, 1, 1));
    let mut found = Answers::new();
    let queries = Queries::from(&wide);
    assert!(matches!(graph.nearest(queries, 1, &mut found), Err(Error::WidthMismatch { .. })));
    for (name, shape) in [("graph", None), ("graph-30", Some((30, 128)))] {
        let named = Shape::named(name).unwrap().map(|shape| (shape.degree, shape.beam));
        assert_eq!(named, shape);
    }
    for text in ["graph", "graph-", "graph-1", "graph-64-9999", "graph-1-2-3", "tree"] {
        assert!(text.parse::<Shape>().is_err(), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Few rows are compared one by one: the answers are exact, whatever came and went.
    #[test]
    fn few_rows_are_answered_exactly(
        changes in prop::collection::vec((any::<bool>(), 0..60_u32), 0..80),
        k in 0..9_usize,
        radius in 0..70_u32,
    ) {
        let pool = documents(64, 60, 9);
        let mut graph = Graph::build(&signatures(64, &pool[..20]), small(), 3).unwrap();
        let mut there: Vec<Option<Vec<u64>>> = pool[..20].iter().cloned().map(Some).collect();
        for (add, number) in changes {
            if add {
                let row = &pool[number as usize];
                graph.insert(&signatures(64, std::slice::from_ref(row))).unwrap();
                there.push(Some(row.clone()));
            } else {
                let was = there.get_mut(number as usize).and_then(Option::take);
                prop_assert_eq!(graph.remove(number).unwrap(), was.is_some());
            }
        }
        let numbers: Vec<u32> =
            (0..there.len() as u32).filter(|&row| there[row as usize].is_some()).collect();
        let rows: Vec<_> = there.into_iter().flatten().collect();
        let rows = signatures(64, &rows);
        let queries = signatures(64, &documents(64, 5, 10));
        let scan = Scan::new(&rows).unwrap();
        let renumbered = |answers: &Answers| -> Vec<Vec<Neighbor>> {
            let of = |found: &Neighbor| Neighbor { row: numbers[found.row as usize], ..*found };
            answers.iter().map(|neighbors| neighbors.iter().map(of).collect()).collect()
        };
        let lists = |answers: &Answers| -> Vec<Vec<Neighbor>> {
            answers.iter().map(<[Neighbor]>::to_vec).collect()
        };
        let (mut found, mut truth) = (Answers::new(), Answers::new());
        prop_assert_eq!(graph.nearest((&queries).into(), k, &mut found).unwrap(), Promise::Exact);
        scan.nearest((&queries).into(), k, &mut truth).unwrap();
        prop_assert_eq!(lists(&found), renumbered(&truth));
        graph.within((&queries).into(), radius, &mut found).unwrap();
        scan.within((&queries).into(), radius, &mut truth).unwrap();
        prop_assert_eq!(lists(&found), renumbered(&truth));
    }
}
