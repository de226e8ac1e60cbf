//! Every level that this CPU has, against the simplest loops.

use proptest::prelude::*;

use super::*;

/// Deterministic words that look random (splitmix64).
fn words(seed: u64, count: usize) -> Vec<u64> {
    let mix = |i: u64| {
        let mut z = (seed ^ i).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    (0..count as u64).map(mix).collect()
}

/// Rows of `bits` bits at every distance from the first: row `i` differs from it in about `i / rows` of the bits.
fn rows(seed: u64, bits: usize, count: usize) -> Vec<u64> {
    let stride = bits.div_ceil(64);
    let base = words(seed, stride);
    let noise = words(seed + 1, bits * count);
    let mut rows = Vec::new();
    for row in 0..count {
        let mut words = base.clone();
        for bit in 0..bits {
            let flip = noise[row * bits + bit] % count as u64 <= row as u64 && row > 0;
            words[bit / 64] ^= u64::from(flip) << (63 - bit % 64);
        }
        if !bits.is_multiple_of(64) {
            words[stride - 1] &= !0 << (64 - bits % 64);
        }
        rows.extend(words);
    }
    rows
}

fn naive_distance(a: &[u64], b: &[u64]) -> u32 {
    let bits = |row: &[u64], bit: usize| row[bit / 64] >> (bit % 64) & 1;
    (0..a.len() * 64).map(|bit| u32::from(bits(a, bit) != bits(b, bit))).sum()
}

/// Every (query, row) within the thresholds, query by query.
fn naive_within(
    queries: &[u64],
    rows: &[u64],
    stride: usize,
    at: &[Option<u32>],
) -> Vec<[usize; 2]> {
    let mut found = Vec::new();
    for (q, query) in queries.chunks(stride).enumerate() {
        for (r, row) in rows.chunks(stride).enumerate() {
            if at[q].is_some_and(|threshold| naive_distance(query, row) <= threshold) {
                found.push([q, r]);
            }
        }
    }
    found
}

fn batch_within(
    kernel: Kernel,
    batch: &Batch<'_>,
    rows: &[u64],
    at: &[Option<u32>],
) -> Vec<[usize; 2]> {
    let mut found = Vec::new();
    kernel.within_batch(batch, rows, at, &mut Workspace::default(), &mut found);
    let pairs = |matched: Match| matched.rows().map(move |row| [matched.query as usize, row]);
    let mut found: Vec<_> = found.into_iter().flat_map(pairs).collect();
    found.sort_unstable();
    found
}

/// The thresholds where mistakes live: the ends, and on both sides of a power of two.
fn threshold(bits: u32, choice: u32) -> Option<u32> {
    let near_power = (1 << (choice % 13)) as u32;
    match choice % 5 {
        0 => None,
        1 => Some(choice % (bits + 1)),
        2 => Some(near_power.min(bits)),
        3 => Some((near_power - 1).min(bits)),
        _ => [Some(0), Some(bits), Some(bits - 1), Some(u32::MAX)][choice as usize / 5 % 4],
    }
}

fn check(bits: usize, count: usize, queries: usize, start: usize, seed: u64) {
    let stride = bits.div_ceil(64);
    // Starting at any word, rows are aligned to words and no more.
    let padded = [vec![0; start], rows(seed, bits, count)].concat();
    let rows = &padded[start..];
    let asked = self::rows(seed, bits, queries.max(2))[..queries * stride].to_vec();
    let choices = words(seed + 2, queries);
    let at: Vec<_> = choices.iter().map(|&c| threshold(bits as u32, c as u32 >> 8)).collect();
    let expected = naive_within(&asked, rows, stride, &at);
    for kernel in Kernel::available() {
        let batch = Batch::new(&asked, stride);
        assert_eq!(batch_within(kernel, &batch, rows, &at), expected, "{kernel:?}, {bits} bits");
        for (query, at) in asked.chunks(stride).zip(&at) {
            check_one(kernel, query, rows, at.unwrap_or(0));
        }
    }
}

fn check_one(kernel: Kernel, query: &[u64], rows: &[u64], threshold: u32) {
    let expected: Vec<_> = rows.chunks(query.len()).map(|row| naive_distance(query, row)).collect();
    let mut out = vec![7; expected.len()];
    kernel.distances(query, rows, &mut out);
    assert_eq!(out, expected, "{kernel:?}, distances");
    // Backwards, and each third twice.
    let numbers =
        (0..expected.len() as u32).rev().flat_map(|row| vec![row; 1 + (row % 3) as usize / 2]);
    let numbers: Vec<u32> = numbers.collect();
    let mut out = vec![7; numbers.len()];
    kernel.distances_of(query, rows, &numbers, &mut out);
    let wanted: Vec<_> = numbers.iter().map(|&row| expected[row as usize]).collect();
    assert_eq!(out, wanted, "{kernel:?}, distances of some");
    let mut masks = vec![7; expected.len().div_ceil(64)];
    kernel.within(query, rows, threshold, &mut masks);
    for (row, &distance) in expected.iter().enumerate() {
        let bit = masks[row / 64] >> (row % 64) & 1 == 1;
        assert_eq!(bit, distance <= threshold, "{kernel:?}, row {row} at {distance}");
        assert_eq!(kernel.distance(query, &rows[row * query.len()..][..query.len()]), distance);
    }
    let ones: u32 = masks.iter().map(|mask| mask.count_ones()).sum();
    let near = expected.iter().filter(|distance| **distance <= threshold).count();
    assert_eq!(ones as usize, near, "{kernel:?}, bits past the last row");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_level_agrees_with_simple_loops(
        bits in (4usize..=40).prop_map(|bytes| bytes * 8),
        count in 0usize..200,
        queries in 0usize..30,
        start in 0usize..8,
        seed in any::<u32>(),
    ) {
        check(bits, count, queries, start, seed.into());
    }

    #[test]
    fn a_mask_gives_its_rows_in_order(mask: u64, start in 0u32..1000) {
        let rows: Vec<_> = Match { query: 0, start, mask }.rows().collect();
        let expected = (0..64).filter(|bit| mask >> bit & 1 == 1);
        prop_assert_eq!(rows, expected.map(|bit| start as usize + bit).collect::<Vec<_>>());
    }
}

#[test]
fn every_level_agrees_at_every_width() {
    for bits in (32..=4096).step_by(8) {
        check(bits, 5, if bits % 16 == 0 { 17 } else { 2 }, bits / 8 % 8, bits as u64);
    }
}

#[test]
fn every_level_agrees_across_blocks() {
    for bits in [64, 128, 256, 512, 1024, 2048, 72] {
        check(bits, 1101, 17, 1, 5);
    }
}

#[test]
fn a_row_is_found_whatever_its_halves() {
    let stride = 16;
    let mut rows = words(3, stride * 200);
    let query = words(9, stride);
    // Among rows that the first half rules out, some that only the second does, at both sides of the threshold.
    for (row, differ) in [(70, 0), (131, 40), (132, 41), (133, 400), (199, 40)] {
        rows[row * stride..][..stride].copy_from_slice(&query);
        for bit in 0..differ {
            rows[row * stride + 8 + bit / 64] ^= 1 << (bit % 64);
        }
    }
    for kernel in Kernel::available() {
        check_one(kernel, &query, &rows, 40);
    }
}

#[test]
fn a_level_that_is_not_there_is_not_found() {
    assert!(Kernel::named("avx9").is_none() && Kernel::named("").is_none());
    assert_eq!(Kernel::named("scalar").map(Kernel::name), Some("scalar"));
    assert_eq!(Kernel::available().last().map(Kernel::name), Some("scalar"));
}

/// Stretches that begin and end anywhere, empty ones among them.
fn stretches(rows: usize, query: u64) -> Vec<Stretch> {
    let ends =
        (0..rows as u32).flat_map(|start| [0, 1, 3, 8, 21, 40].map(|len| (start, start + len)));
    let inside = ends.filter(|&(_, end)| end as usize <= rows);
    let allowed = [0, 1, 3, 9, 31, 32, 33, 64, u32::MAX];
    inside
        .zip(allowed.into_iter().cycle())
        .map(|((start, end), allowed)| Stretch { query, start, end, allowed, tag: 0 })
        .collect()
}

/// Every row of every stretch that `distance` finds near.
fn naive_near(stretches: &[Stretch], distance: impl Fn(&Stretch, u32) -> u32) -> Vec<Near> {
    let near = |(i, of): (usize, &Stretch)| {
        let rows = (of.start..of.end).filter(|&row| distance(of, row) <= of.allowed);
        rows.map(|row| Near { stretch: i as u32, row }).collect::<Vec<_>>()
    };
    stretches.iter().enumerate().flat_map(near).collect()
}

#[test]
fn every_level_checks_the_same_stretches() {
    let count = 77;
    let words = rows(5, 64, count + READ_PAST / 8);
    let halves: Vec<u32> = words.iter().map(|word| (word >> 7) as u32).collect();
    let stretches = stretches(count, words[0] ^ 0b101);
    let whole = naive_near(&stretches, |of, row| (of.query ^ words[row as usize]).count_ones());
    let half =
        naive_near(&stretches, |of, row| (of.query as u32 ^ halves[row as usize]).count_ones());
    assert!(whole.len() > 100 && half.len() > 100);
    for kernel in Kernel::available() {
        let (mut found, mut found_halves) = (Vec::new(), Vec::new());
        kernel.check_whole(&stretches, &words, &mut Besides::default(), &mut found);
        kernel.check_halves(&stretches, &halves, &mut found_halves);
        assert_eq!((found, found_halves), (whole.clone(), half.clone()), "{kernel:?}");
    }
}

#[test]
fn every_level_checks_the_same_lines() {
    let keys = 70;
    let mut lines = rows(8, 64, keys * LINE_WORDS);
    for (key, line) in lines.chunks_exact_mut(LINE_WORDS).enumerate() {
        line[LINE_WORDS - 1] = Head { number: 0, count: key as u32 % 11 }.to_word();
    }
    let probe = |i: u32| {
        let key = i * 31 % keys as u32;
        let near = lines[key as usize * LINE_WORDS + i as usize % 7];
        Probe { compare: near ^ 0b1011 << (i % 60), key, allowed: 20 + i % 3, flip: 0, query: i }
    };
    let probes: Vec<Probe> = (0..200).map(probe).collect();
    let others = [0b1111 << 20, 0xff << 40];
    let expected = (0..).zip(&probes).flat_map(|(i, probe)| {
        let start = probe.key as usize * LINE_WORDS;
        let line = &lines[start..start + LINE_WORDS];
        let head = Head::of_word(line[LINE_WORDS - 1]);
        let is_near = |word: u64| {
            let differences = word ^ probe.compare;
            let is_new = others.iter().all(|other| differences & other != 0);
            differences.count_ones() <= probe.allowed && is_new
        };
        let mut places: Vec<usize> = (0..head.here()).filter(|&i| is_near(line[i])).collect();
        places.extend((head.elsewhere() > 0).then_some(LINE_WORDS - 1));
        places.into_iter().map(move |place| Near { stretch: i, row: (start + place) as u32 })
    });
    let expected: Vec<Near> = expected.collect();
    assert!(expected.len() > 100);
    for kernel in Kernel::available() {
        let mut found = Vec::new();
        let mut and = Besides { others: &others, ahead: &[7; 300] };
        kernel.check_lines(&probes, &lines, &mut and, &mut found);
        assert_eq!((found, and.ahead.len()), (expected.clone(), 100), "{kernel:?}");
    }
}

#[test]
fn every_level_checks_the_same_pairs() {
    for bits in [72, 128, 256, 640, 1024] {
        let (rows, stride) = (rows(6, bits, 50), bits.div_ceil(64));
        let queries = &rows[..4 * stride];
        let pair = |i: u32| Pair { query: i % 4, row: i * 7 % 50 };
        let pairs: Vec<Pair> = (0..120).map(pair).collect();
        let radius = bits as u32 / 4;
        let distance = |pair: &Pair| {
            let at = |i: u32| i as usize * stride..(i as usize + 1) * stride;
            naive_distance(&queries[at(pair.query)], &rows[at(pair.row)])
        };
        let distances = pairs.iter().map(distance).enumerate();
        let near = distances.filter(|&(_, distance)| distance <= radius);
        let near: Vec<_> = near.map(|(i, distance)| (i as u32, distance)).collect();
        for kernel in Kernel::available() {
            let mut found = Vec::new();
            kernel.check_pairs(&pairs, (queries, &rows), stride, radius, &mut found);
            assert_eq!(found, near, "{kernel:?} {bits}");
        }
    }
}

#[test]
fn every_level_finds_the_same_rows_in_order() {
    // Some keys have many rows, most have few.
    let key = 0xfff0 << 48;
    let mut sorted = words(8, 1000);
    (0..1000).for_each(|i| match i % 4 {
        0 => sorted[i] &= !0 >> 7,
        1 => sorted[i] = sorted[i / 2] ^ 1 << (i % 64),
        _ => {}
    });
    sorted.sort_by_key(|word| word & key);
    let (radius, others) = (16, [0xff, 0xff00]);
    let met = |a: usize, b: usize| {
        let differences = sorted[a] ^ sorted[b];
        let distance = differences.count_ones();
        let is_new = others.iter().all(|other| differences & other != 0);
        let takes = differences & key == 0 && distance <= radius && is_new;
        takes.then_some((a as u32, b as u32, distance))
    };
    let pairs = (0..1000).flat_map(|a| (a + 1..1000).map(move |b| (a, b)));
    let near: Vec<_> = pairs.filter_map(|(a, b)| met(a, b)).collect();
    assert!(near.len() > 5, "{}", near.len());
    let rows = [&sorted[..], &[sorted[999]; READ_PAST / 8]].concat();
    for kernel in Kernel::available() {
        let mut found = Vec::new();
        kernel.check_in_order(InOrder { rows: &rows, key, radius, others: &others }, &mut found);
        let mut found: Vec<_> = found.iter().map(|met| (met.a, met.b, met.distance)).collect();
        found.sort_unstable();
        assert_eq!(found, near, "{kernel:?}");
        kernel.check_in_order(InOrder { rows: &[], key, radius, others: &[] }, &mut Vec::new());
    }
}
