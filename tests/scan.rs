//! The scan against the simplest loops: all three questions, one and many queries, one and many threads.

use lookalike::{
    Error, Signature, Signatures,
    hamming::Kernel,
    index::{Answers, Index, Neighbor, Promise, Scan},
};
use proptest::prelude::*;

/// Rows around a few centres: row by row a centre and the bits to flip.
fn signatures(bits: u32) -> impl Strategy<Value = (Signatures, Signatures)> {
    let bytes = bits as usize / 8;
    let centres = prop::collection::vec(prop::collection::vec(any::<u8>(), bytes), 3);
    let near = || (0usize..3, prop::collection::vec(0..bits, 0..6));
    let rows = prop::collection::vec(near(), 0..300);
    let queries = prop::collection::vec(near(), 0..30);
    (centres, rows, queries).prop_map(move |(centres, rows, queries)| {
        let flipped = |(centre, flips): &(usize, Vec<u32>)| {
            let mut bytes = centres[*centre].clone();
            flips.iter().for_each(|&bit| bytes[bit as usize / 8] ^= 0x80 >> (bit % 8));
            bytes
        };
        let pack = |all: &[(usize, Vec<u32>)]| {
            Signatures::from_bytes(bits, &all.iter().flat_map(flipped).collect::<Vec<_>>()).unwrap()
        };
        (pack(&rows), pack(&queries))
    })
}

/// Distances of every row to one query, nearest first, ties by row.
fn ranked(rows: &Signatures, query: &[u64]) -> Vec<Neighbor> {
    let mut all = Vec::new();
    for row in 0..rows.len() {
        let mut distance = 0;
        for (a, b) in rows.row(row).iter().zip(query) {
            distance += (a ^ b).count_ones();
        }
        all.push(Neighbor { row: row as u32, distance });
    }
    all.sort_by_key(|neighbor| (neighbor.distance, neighbor.row));
    all
}

#[derive(Debug, Clone, Copy)]
enum Question {
    Within(u32),
    First(u32),
    Nearest(usize),
}

fn naive(rows: &Signatures, queries: &Signatures, question: Question) -> Answers {
    let mut answers = Answers::new();
    for query in queries.rows() {
        let ranked = ranked(rows, query);
        let near = |radius| ranked.iter().copied().filter(move |near| near.distance <= radius);
        let neighbors: Vec<_> = match question {
            Question::Within(radius) => near(radius).collect(),
            Question::First(radius) => {
                near(radius).min_by_key(|near| near.row).into_iter().collect()
            }
            Question::Nearest(k) => ranked.iter().copied().take(k).collect(),
        };
        answers.push(&neighbors);
    }
    answers
}

fn ask(scan: &Scan<'_>, queries: &Signatures, question: Question) -> Answers {
    // Old answers must be forgotten.
    let mut found = Answers::new();
    found.push(&[Neighbor { row: 9, distance: 9 }]);
    let promise = match question {
        Question::Within(radius) => scan.within(queries.into(), radius, &mut found),
        Question::First(radius) => scan.first(queries.into(), radius, &mut found),
        Question::Nearest(k) => scan.nearest(queries.into(), k, &mut found),
    };
    assert_eq!(promise.unwrap(), Promise::Exact);
    found
}

/// Asks the whole batch at once, then query by query, with every kernel.
fn check(rows: &Signatures, queries: &Signatures, question: Question) {
    let expected = naive(rows, queries, question);
    for kernel in Kernel::available() {
        let scan = Scan::with_kernel(rows, kernel).unwrap();
        assert_eq!(ask(&scan, queries, question), expected, "{kernel:?} {question:?}");
        for query in 0..queries.len() {
            let one = ask(&scan, &queries.get(query).into(), question);
            assert_eq!(one.len(), 1);
            assert_eq!(one.of(0), expected.of(query), "{kernel:?} {question:?}, alone");
        }
    }
}

fn questions(bits: u32, radius: u32, k: usize) -> [Question; 9] {
    use Question::*;
    let radius = radius % bits;
    [
        Within(radius),
        Within(0),
        Within(bits),
        First(radius),
        First(0),
        First(u32::MAX),
        Nearest(k),
        Nearest(0),
        Nearest(usize::MAX),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn scan_agrees_with_simple_loops(
        (rows, queries) in (4u32..=20).prop_flat_map(|bytes| signatures(bytes * 8)),
        radius in 0u32..16,
        k in 1usize..20,
    ) {
        for question in questions(rows.bits(), radius, k) {
            check(&rows, &queries, question);
        }
    }

    #[test]
    fn scan_agrees_on_wide_rows(
        (rows, queries) in prop::sample::select(vec![256u32, 512, 1024]).prop_flat_map(signatures),
        radius in 0u32..16,
        k in 1usize..20,
    ) {
        for question in [Question::Within(radius), Question::First(radius), Question::Nearest(k)] {
            check(&rows, &queries, question);
        }
    }

    /// Distances do not change if a mask is laid over all rows and queries, or if their bits are permuted.
    #[test]
    fn masks_and_permutations_change_nothing(
        (rows, queries) in signatures(72),
        mask in prop::collection::vec(any::<u8>(), 9),
        order in Just((0..72).collect::<Vec<usize>>()).prop_shuffle(),
        radius in 0u32..12,
    ) {
        let masked = |all: &Signatures| changed(all, |bytes| {
            bytes.iter().zip(&mask).map(|(byte, mask)| byte ^ mask).collect()
        });
        let permuted = |all: &Signatures| changed(all, |bytes| {
            let mut out = vec![0; 9];
            for (to, from) in order.iter().enumerate() {
                out[to / 8] |= (bytes[from / 8] >> (7 - from % 8) & 1) << (7 - to % 8);
            }
            out
        });
        for question in [Question::Within(radius), Question::First(radius), Question::Nearest(9)] {
            let plain = ask(&Scan::new(&rows).unwrap(), &queries, question);
            for (rows, queries) in
                [(masked(&rows), masked(&queries)), (permuted(&rows), permuted(&queries))]
            {
                prop_assert_eq!(&ask(&Scan::new(&rows).unwrap(), &queries, question), &plain);
            }
        }
    }
}

fn changed(all: &Signatures, change: impl Fn(&[u8]) -> Vec<u8>) -> Signatures {
    let bytes: Vec<u8> = (0..all.len()).flat_map(|row| change(&all.get(row).to_bytes())).collect();
    Signatures::from_bytes(all.bits(), &bytes).unwrap()
}

/// Words of a linear congruential generator's upper half.
fn random(bits: u32, rows: usize, mut seed: u64) -> Signatures {
    let mut byte = || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 56) as u8
    };
    let bytes: Vec<u8> = (0..rows * bits as usize / 8).map(|_| byte()).collect();
    Signatures::from_bytes(bits, &bytes).unwrap()
}

#[test]
fn copies_are_all_found_in_order() {
    for copies in [1, 52, 200] {
        let one = random(64, 1, 3);
        let rows = Signatures::from_words(64, one.words().repeat(copies)).unwrap();
        let queries = Signatures::from_words(64, one.words().repeat(20)).unwrap();
        for question in questions(64, 3, 60) {
            check(&rows, &queries, question);
        }
    }
}

#[test]
fn few_and_many_threads_give_the_same_answers() {
    let rows = random(64, 60_000, 1);
    let mut queries = random(64, 40, 2);
    for row in [0, 1, 29_999, 30_000, 59_999] {
        queries.push(&rows.get(row)).unwrap();
    }
    for question in [Question::Within(18), Question::First(18), Question::Nearest(7)] {
        let in_pool = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| ask(&Scan::new(&rows).unwrap(), &queries, question))
        };
        let expected = naive(&rows, &queries, question);
        for threads in [1, 2, 5] {
            assert_eq!(in_pool(threads), expected, "{threads} threads, {question:?}");
        }
    }
}

#[test]
fn nothing_in_nothing_out() {
    let (none, some) = (Signatures::new(128).unwrap(), random(128, 10, 4));
    for (rows, queries) in [(&none, &some), (&some, &none), (&none, &none)] {
        for question in questions(128, 3, 5) {
            let found = ask(&Scan::new(rows).unwrap(), queries, question);
            assert_eq!(found.len(), queries.len());
            assert!(found.iter().all(<[_]>::is_empty));
        }
    }
}

#[test]
fn another_width_is_refused() {
    let rows = random(64, 3, 5);
    let scan = Scan::new(&rows).unwrap();
    let query: Signatures = Signature::from_bytes(&[0; 9]).unwrap().into();
    let mut found = Answers::new();
    for refused in [
        scan.within((&query).into(), 3, &mut found),
        scan.first((&query).into(), 3, &mut found),
        scan.nearest((&query).into(), 3, &mut found),
    ] {
        assert!(matches!(refused, Err(Error::WidthMismatch { stored: 64, given: 72 })));
    }
}

#[test]
fn huge_pages_hold_the_same_rows() {
    for rows in [Signatures::new(64).unwrap(), random(128, 1000, 6)] {
        let mut moved = rows.clone().in_huge_pages();
        assert_eq!((moved.bits(), moved.words()), (rows.bits(), rows.words()));
        moved.push(&random(rows.bits(), 1, 7).get(0)).unwrap();
        assert_eq!(moved.len(), rows.len() + 1);
    }
}
