//! Queries that rows stream past find what the comparison of all pairs finds.

use super::*;

/// The rows in chunks of so many; all pairs that were handed out, and what was done.
fn stream(
    queries: &Signatures,
    rows: &Signatures,
    chunk: usize,
    wanted: Wanted,
    settings: &JoinSettings,
) -> (Vec<Pair>, StreamJoin) {
    let mut join = StreamJoin::new(queries, wanted, settings).unwrap();
    let mut pairs = Vec::new();
    for words in rows.words().chunks(chunk * rows.stride()) {
        let chunk = Signatures::from_words(rows.bits(), words.to_vec()).unwrap();
        let each = |some: &[Pair]| {
            assert!(!some.is_empty());
            pairs.extend_from_slice(some);
            Ok(())
        };
        join.pass(&chunk, each).unwrap();
    }
    assert_eq!(join.joined().pairs, pairs.len() as u64);
    (pairs, join)
}

/// By the stored row, then by the query.
fn expected(queries: &Signatures, rows: &Signatures, radius: u32, wanted: Wanted) -> Vec<Pair> {
    let mut pairs = all_pairs(queries, Some(rows), radius);
    if wanted == Wanted::First {
        pairs.dedup_by_key(|pair| pair.a);
    }
    pairs.sort_by_key(|pair| (pair.b, pair.a));
    pairs
}

const BOTH: [Wanted; 2] = [Wanted::All, Wanted::First];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn streams_agree_with_all_pairs(
        bits in prop::sample::select(vec![32_u32, 64, 72, 128]),
        radius in prop::sample::select(vec![0_u32, 1, 3, 6]),
        asked in prop::sample::select(vec![0_usize, 1, 50, 700]),
        rows in prop::sample::select(vec![0_usize, 1, 900]),
        chunk in prop::sample::select(vec![1_usize, 7, 300, 1000]),
        seed: u64,
    ) {
        // Of one seed, so that many of the rows are near some query.
        let all = skewed(bits, asked + rows, seed);
        let (asked, rows) = all.words().split_at(asked * all.stride());
        let [asked, rows] = [asked, rows].map(|words| Signatures::from_words(bits, words.to_vec()).unwrap());
        for wanted in BOTH {
            let expected = expected(&asked, &rows, radius, wanted);
            let (pairs, join) = stream(&asked, &rows, chunk, wanted, &JoinSettings::new(radius));
            prop_assert_eq!(&pairs, &expected);
            prop_assert!(join.joined().exact());
            let all_have_one = wanted == Wanted::First && expected.len() == asked.len();
            prop_assert_eq!(join.is_done(), all_have_one);
        }
    }
}

/// Enough rows for masks: small sets are scanned.
#[test]
fn larger_streams_agree_with_all_pairs_whatever_the_chunks_the_threads_and_the_memory() {
    for (bits, radius) in [(64, 3), (64, 1), (64, 6), (48, 3), (128, 8)] {
        let all = skewed(bits, 13_000, u64::from(bits + radius));
        let (asked, rows) = all.words().split_at(5000 * all.stride());
        let [asked, rows] =
            [asked, rows].map(|words| Signatures::from_words(bits, words.to_vec()).unwrap());
        for wanted in BOTH {
            let expected = expected(&asked, &rows, radius, wanted);
            assert!(expected.len() > 1000);
            for (chunk, threads, memory) in
                [(8000, 1, 2 << 30), (977, 2, 1 << 20), (8000, 3, 300_000)]
            {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let settings = JoinSettings { memory, ..JoinSettings::new(radius) };
                let (pairs, _) = pool.install(|| stream(&asked, &rows, chunk, wanted, &settings));
                assert!(
                    pairs == expected,
                    "{bits} bits, radius {radius}, {wanted:?}, chunks of {chunk}"
                );
            }
        }
    }
}

#[test]
fn lookups_agree_with_the_join() {
    let mut random = Random(11);
    let asked: Vec<u64> = (0..60_000).map(|_| random.next()).collect();
    let rows = (0..100_000).map(|_| match random.below(4) {
        0 => {
            let (of, flips) = (random.below(asked.len()), random.below(6));
            random.near(&asked[of..=of], 64, flips)[0]
        }
        _ => random.next(),
    });
    let rows = Signatures::from_words(64, rows.collect()).unwrap();
    let asked = Signatures::from_words(64, asked).unwrap();
    let settings = JoinSettings::new(3);
    let mut all = join(&asked, Some(&rows), &settings, Limits::default()).0;
    for wanted in [Wanted::All, Wanted::First] {
        if wanted == Wanted::First {
            all.sort_by_key(|pair| (pair.a, pair.b));
            all.dedup_by_key(|pair| pair.a);
        }
        all.sort_by_key(|pair| (pair.b, pair.a));
        assert!(all.len() > 10_000);
        let (pairs, join) = stream(&asked, &rows, 30_000, wanted, &settings);
        assert!(join.looks_up(), "these are many");
        assert!(pairs == all, "{wanted:?}");
    }
}

/// One query that all have, and so many rows in its bucket that they are joined instead of looked up.
#[test]
fn copies_and_crowded_keys() {
    let mut random = Random(5);
    let crowd = |random: &mut Random| 0xabcd_0000_0000_0000 | random.next() >> 16 & 0xffff;
    let mut words: Vec<u64> = (0..20_000).map(|_| random.next()).collect();
    words.extend((0..3000).map(|_| crowd(&mut random)));
    words.extend([7; 500]);
    let asked = Signatures::from_words(64, words).unwrap();
    let rows: Vec<u64> = (0..3000).map(|_| crowd(&mut random)).chain([7, 7, 3]).collect();
    let rows = Signatures::from_words(64, rows).unwrap();
    for wanted in BOTH {
        let (pairs, join) = stream(&asked, &rows, 1000, wanted, &JoinSettings::new(3));
        assert_eq!(pairs, expected(&asked, &rows, 3, wanted));
        assert!(join.joined().copies >= 499);
    }
}

#[test]
fn streams_refuse_what_they_cannot_do() {
    let asked = Signatures::from_words(64, vec![7; 100]).unwrap();
    let settings = JoinSettings { most_pairs: 150, ..JoinSettings::new(1) };
    let mut join = StreamJoin::new(&asked, Wanted::All, &settings).unwrap();
    let row = Signatures::from_words(64, vec![7]).unwrap();
    join.pass(&row, |_| Ok(())).unwrap();
    let refused = join.pass(&row, |_| Ok(()));
    assert!(matches!(refused, Err(Error::TooManyPairs { pairs: 200, most: 150 })), "{refused:?}");
    let wider = Signatures::from_words(128, vec![7, 7]).unwrap();
    assert!(matches!(join.pass(&wider, |_| Ok(())), Err(Error::WidthMismatch { .. })));
}
