//! Every join agrees with the comparison of all pairs.

mod stream;

use proptest::prelude::*;

use super::*;

/// splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn row(&mut self, bits: u32) -> Vec<u64> {
        let mut row: Vec<u64> = (0..bits.div_ceil(64)).map(|_| self.next()).collect();
        if !bits.is_multiple_of(64) {
            *row.last_mut().unwrap() &= u64::MAX << (64 - bits % 64);
        }
        row
    }

    /// The same row with so many bits flipped.
    fn near(&mut self, row: &[u64], bits: u32, flips: usize) -> Vec<u64> {
        let (mut row, mut places) = (row.to_vec(), Vec::new());
        while places.len() < flips {
            let bit = self.below(bits as usize);
            if !places.contains(&bit) {
                places.push(bit);
                row[bit / 64] ^= 1 << (63 - bit % 64);
            }
        }
        row
    }
}

/// Random rows, copies, near-copies, and rows that share a part of their bits.
fn skewed(bits: u32, rows: usize, seed: u64) -> Signatures {
    let mut random = Random(seed);
    let template = random.row(bits);
    let mut all: Vec<Vec<u64>> = Vec::new();
    for _ in 0..rows {
        let row = match random.below(6) {
            0 | 1 => random.row(bits),
            2 if !all.is_empty() => all[random.below(all.len())].clone(),
            3 | 4 if !all.is_empty() => {
                let (of, flips) = (random.below(all.len()), random.below(8));
                random.near(&all[of].clone(), bits, flips)
            }
            _ => {
                let mut row = random.row(bits);
                row[0] = row[0] & (u64::MAX >> 24) | template[0] & !(u64::MAX >> 24);
                row
            }
        };
        all.push(row);
    }
    Signatures::from_words(bits, all.concat()).unwrap()
}

fn distance(a: &[u64], b: &[u64]) -> u32 {
    a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum()
}

fn all_pairs(new: &Signatures, old: Option<&Signatures>, radius: u32) -> Vec<Pair> {
    let others = |a: usize| if old.is_some() { 0 } else { a + 1 };
    let with = old.unwrap_or(new);
    let pair = |a: usize, b: usize| Pair {
        a: a as u32,
        b: b as u32,
        distance: distance(new.row(a), with.row(b)),
    };
    let pairs = (0..new.len()).flat_map(|a| (others(a)..with.len()).map(move |b| (a, b)));
    pairs.map(|(a, b)| pair(a, b)).filter(|pair| pair.distance <= radius).collect()
}

fn join(
    new: &Signatures,
    old: Option<&Signatures>,
    settings: &JoinSettings,
    limits: Limits,
) -> (Vec<Pair>, Joined) {
    let mut pairs = Vec::new();
    let each = |some: &[Pair]| {
        pairs.extend_from_slice(some);
        Ok(())
    };
    let joined =
        Join::new(new, old, settings, limits).unwrap().run(&AtomicBool::new(false), each).unwrap();
    assert_eq!(joined.pairs, pairs.len() as u64);
    (pairs, joined)
}

/// Masks and second sorts even where a scan would do.
const EAGER: Limits = Limits { pairs: 20, quick: 0.0 };

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn joins_agree_with_all_pairs(
        bits in prop::sample::select(vec![32_u32, 64, 72, 128, 256]),
        radius in prop::sample::select(vec![0_u32, 1, 3, 6]),
        rows in prop::sample::select(vec![0_usize, 1, 2, 50, 700]),
        others in prop::sample::select(vec![0_usize, 1, 300]),
        seed: u64,
    ) {
        let (new, old) = (skewed(bits, rows, seed), skewed(bits, others, seed ^ 0x55));
        for old in [None, Some(&old), Some(&new)] {
            let expected = all_pairs(&new, old, radius);
            for limits in [Limits::default(), EAGER] {
                let (pairs, joined) = join(&new, old, &JoinSettings::new(radius), limits);
                prop_assert_eq!(&pairs, &expected);
                prop_assert!(joined.exact());
            }
        }
    }
}

#[test]
fn larger_joins_agree_with_the_scan() {
    for (bits, radius, rows) in
        [(64, 3, 12_000), (64, 6, 6000), (72, 3, 6000), (128, 8, 6000), (256, 20, 5000)]
    {
        let rows = skewed(bits, rows, u64::from(bits));
        let expected = all_pairs(&rows, None, radius);
        assert!(expected.len() > 1000);
        for limits in [Limits::default(), Limits { pairs: 1000, quick: 0.0 }] {
            assert_eq!(join(&rows, None, &JoinSettings::new(radius), limits).0, expected);
        }
    }
}

#[test]
fn neither_threads_nor_memory_change_the_pairs() {
    for (bits, radius, recall) in [(64, 3, 1.0), (256, 24, 1.0), (256, 60, 0.9)] {
        let (new, old) = (skewed(bits, 9000, 1), skewed(bits, 3000, 2));
        for old in [None, Some(&old)] {
            let settings = JoinSettings { recall, ..JoinSettings::new(radius) };
            let limits = Limits { quick: 0.0, ..Limits::default() };
            let expected = join(&new, old, &settings, limits).0;
            for (threads, memory) in [(1, 256 << 10), (2, 1 << 30), (3, 1 << 20)] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let settings = JoinSettings { memory, ..settings };
                let (pairs, joined) = pool.install(|| join(&new, old, &settings, limits));
                assert!(pairs == expected, "{bits} bits, {threads} threads, {memory} bytes");
                assert!(joined.bytes <= memory, "{} bytes", joined.bytes);
            }
        }
    }
}

#[test]
fn pairs_that_do_not_fit_are_sorted_on_disk() {
    let rows = Signatures::from_words(64, vec![7; 400]).unwrap();
    let settings = JoinSettings { memory: 1 << 18, ..JoinSettings::new(0) };
    let (pairs, joined) = join(&rows, None, &settings, Limits::default());
    assert_eq!((pairs.len(), joined.copies), (400 * 399 / 2, 399));
    assert_eq!(pairs, all_pairs(&rows, None, 0));
}

#[test]
fn too_many_pairs_are_refused() {
    let mut words: Vec<u64> = (0..3000_u64).map(|i| i << 32).collect();
    words.extend([1; 3000]);
    let rows = Signatures::from_words(64, words).unwrap();
    let settings = JoinSettings { most_pairs: 4_000_000, ..JoinSettings::new(0) };
    let refused = |settings: &JoinSettings| match self_join(&rows, settings, |_| Ok(())) {
        Err(Error::TooManyPairs { pairs, .. }) => pairs,
        other => panic!("{other:?}"),
    };
    // All of them are expected before any work is done, and counted if the sample has too few.
    assert!((4_000_001..5_000_000).contains(&refused(&settings)));
    assert_eq!(estimate(&rows, None, &settings).unwrap().pairs / 1_000_000, 4);
    let none = JoinSettings { most_pairs: 10, ..JoinSettings::new(0) };
    assert!(refused(&none) > 10);
}

#[test]
fn a_template_with_many_near_copies_is_sorted_again() {
    // 100,000 rows that share 40 of 64 bits, and a tenth of others.
    let mut random = Random(3);
    let mut words: Vec<u64> =
        (0..100_000).map(|_| 0xabcd_ef01_2300_0000 | random.next() >> 40).collect();
    words.extend((0..10_000).map(|_| random.next()));
    let rows = Signatures::from_words(64, words).unwrap();
    let (pairs, joined) = join(&rows, None, &JoinSettings::new(1), Limits::default());
    assert!(joined.exact());
    // Two of the rows are within 1 with a probability of 25 in 2^24.
    let expected = 100_000_f64 * 100_000.0 / 2.0 * 25.0 / f64::from(1 << 24);
    assert!((pairs.len() as f64 / expected - 1.0).abs() < 0.1, "{} of {expected}", pairs.len());
    assert!(joined.compared < 100_000_000, "{} compared", joined.compared);
    let right = |pair: &Pair| distance(rows.row(pair.a as usize), rows.row(pair.b as usize));
    assert!(pairs.iter().all(|pair| right(pair) == pair.distance && pair.distance <= 1));
    assert!(pairs.is_sorted_by_key(|pair| (pair.a, pair.b)));
}

#[test]
fn a_bucket_with_a_tenth_of_the_rows_is_sorted_again() {
    let mut random = Random(4);
    let mut word = |i: u64| if i.is_multiple_of(10) { random.next() >> 32 } else { random.next() };
    let words: Vec<u64> = (0..200_000).map(&mut word).collect();
    let rows = Signatures::from_words(64, words).unwrap();
    let (pairs, joined) = join(&rows, None, &JoinSettings::new(3), Limits::default());
    let expected = 2e4 * 2e4 / 2.0 * 5489.0 / 2_f64.powi(32);
    assert!((pairs.len() as f64 / expected - 1.0).abs() < 0.3, "{} of {expected}", pairs.len());
    assert!(joined.compared < 60_000_000, "{} compared", joined.compared);
}

#[test]
fn a_join_that_is_stopped_hands_nothing_out() {
    let rows = planted(64, 3, 1000, 10_000);
    for radius in [3, 20] {
        let stop = AtomicBool::new(true);
        let each = |_: &[Pair]| panic!("nobody wants pairs");
        let joined = super::join(&rows, None, &JoinSettings::new(radius), &stop, each);
        assert!(matches!(joined, Err(Error::Stopped)), "{joined:?}");
    }
}

/// Pairs at the very radius, planted among random rows.
fn planted(bits: u32, radius: u32, pairs: usize, others: usize) -> Signatures {
    let mut random = Random(5);
    let mut words = Vec::new();
    for _ in 0..pairs {
        let row = random.row(bits);
        words.extend(random.near(&row, bits, radius as usize));
        words.extend(row);
    }
    (0..others).for_each(|_| words.extend(random.row(bits)));
    Signatures::from_words(bits, words).unwrap()
}

#[test]
fn the_recall_of_wide_radii_is_as_predicted() {
    for (radius, recall) in [(40, 0.9), (40, 0.98), (60, 0.9), (30, 0.7)] {
        let rows = planted(256, radius, 4000, 22_000);
        let settings = JoinSettings { recall, ..JoinSettings::new(radius) };
        let (pairs, joined) =
            join(&rows, None, &settings, Limits { quick: 0.0, ..Limits::default() });
        assert!(!joined.exact() && joined.recall >= recall, "{joined:?}");
        let found = pairs.iter().filter(|pair| pair.b == pair.a + 1 && pair.distance == radius);
        let measured = found.count() as f64 / 4000.0;
        assert!(measured >= joined.recall - 0.02, "{measured} of {} at {radius}", joined.recall);
    }
}
