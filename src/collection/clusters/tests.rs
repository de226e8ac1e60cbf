//! Clusters are compared with what a look at all pairs of records says.

use proptest::prelude::*;

use super::*;
use crate::collection::{
    kept::Kept,
    part::{LivePart, Part, Rows},
};

/// A record to be.
#[derive(Debug, Clone)]
struct Planted {
    /// It is a copy of this one of those before it, if there are any, or a stranger.
    of: Option<usize>,
    /// But for these bits.
    flips: Vec<usize>,
    removed: bool,
    /// It begins a part.
    begins: bool,
}

#[derive(Debug, Clone)]
struct Record {
    position: u64,
    words: Vec<u64>,
}

/// What all pairs say of a cluster: positions, the first with the same signature, edges, chain and farthest.
#[derive(Debug, PartialEq)]
struct Naive {
    members: Vec<u64>,
    originals: Vec<u32>,
    edges: Vec<Pair>,
    about: AboutCluster,
}

fn planted() -> impl Strategy<Value = Planted> {
    let of = prop::option::weighted(0.8, any::<usize>());
    let flips = prop::collection::vec(any::<usize>(), 0..4);
    (of, flips, prop::bool::weighted(0.2), prop::bool::weighted(0.1))
        .prop_map(|(of, flips, removed, begins)| Planted { of, flips, removed, begins })
}

fn words_of(planted: &Planted, number: usize, before: &[Record], bits: usize) -> Vec<u64> {
    let stranger = |word: usize| xxhash_rust::xxh3::xxh3_64(&[number as u8, word as u8]);
    let mut words = match planted.of {
        Some(of) if number > 0 => before[of % number].words.clone(),
        _ => (0..bits / 64).map(stranger).collect(),
    };
    for flip in &planted.flips {
        words[flip % bits / 64] ^= 1 << (flip % 64);
    }
    words
}

/// A snapshot, and the records that are in it still.
fn build(planted: &[Planted], bits: u32) -> (Snapshot, Vec<Record>) {
    let mut records: Vec<Record> = Vec::new();
    for (number, planted) in planted.iter().enumerate() {
        let words = words_of(planted, number, &records, bits as usize);
        // There are gaps in the log.
        records.push(Record { position: 3 * number as u64 + 1, words });
    }
    let mut starts: Vec<usize> = (1..planted.len()).filter(|&at| planted[at].begins).collect();
    starts.push(planted.len());
    let (mut parts, mut start) = (Vec::new(), 0);
    for end in starts {
        parts.push(part(&records[start..end], bits));
        start = end;
    }
    let mut snapshot =
        Snapshot { bits, kept: Kept::Scan, parts, position: 3 * planted.len() as u64 };
    let gone = records.iter().zip(planted).filter(|(_, planted)| planted.removed);
    let gone: Vec<u64> = gone.map(|(record, _)| record.position).collect();
    snapshot.change(snapshot.position + 1, None, &gone);
    records.retain(|record| !gone.contains(&record.position));
    (snapshot, records)
}

fn part(records: &[Record], bits: u32) -> LivePart {
    let stretch = match (records.first(), records.last()) {
        (Some(first), Some(last)) => first.position..last.position + 3,
        _ => 1..1,
    };
    let mut rows = Rows::new(stretch, 0);
    for record in records {
        rows.push(record.position, &record.position.to_string(), record.words.iter().copied());
    }
    LivePart::new(Part::build(rows, bits, Kept::Scan).unwrap())
}

fn distance(a: &Record, b: &Record) -> u32 {
    a.words.iter().zip(&b.words).map(|(a, b)| (a ^ b).count_ones()).sum()
}

/// The records that are connected, by looking at all until nothing changes.
fn components(records: &[Record], radius: u32) -> Vec<Vec<&Record>> {
    let mut of: Vec<usize> = (0..records.len()).collect();
    let mut changed = true;
    while std::mem::take(&mut changed) {
        for a in 0..records.len() {
            for b in 0..records.len() {
                if of[b] < of[a] && distance(&records[a], &records[b]) <= radius {
                    (of[a], changed) = (of[b], true);
                }
            }
        }
    }
    let members = |first| records.iter().zip(&of).filter(move |(_, of)| **of == first);
    let all = (0..records.len()).map(|first| members(first).map(|(record, _)| record).collect());
    all.filter(|members: &Vec<_>| members.len() > 1).collect()
}

fn naive(members: &[&Record], radius: u32) -> Naive {
    let first = |record: &Record| members.iter().position(|other| other.words == record.words);
    let originals: Vec<u32> = members.iter().map(|record| first(record).unwrap() as u32).collect();
    let distinct: Vec<u32> =
        (0..).zip(&originals).filter(|(a, b)| a == *b).map(|(a, _)| a).collect();
    let between = |a: u32, b: u32| distance(members[a as usize], members[b as usize]);
    let pairs = distinct.iter().flat_map(|&a| distinct.iter().map(move |&b| (a, b)));
    let pairs = pairs.filter(|(a, b)| a < b).map(|(a, b)| Pair { a, b, distance: between(a, b) });
    let pairs: Vec<Pair> = pairs.collect();
    let edges: Vec<Pair> = pairs.iter().copied().filter(|pair| pair.distance <= radius).collect();
    // Steps from the first, each as few as they can be.
    let mut steps = vec![u32::MAX; members.len()];
    steps[0] = 0;
    for _ in members {
        for Pair { a, b, .. } in &edges {
            let (a, b) = (*a as usize, *b as usize);
            steps[a] = steps[a].min(steps[b].saturating_add(1));
            steps[b] = steps[b].min(steps[a].saturating_add(1));
        }
    }
    let about = AboutCluster {
        keeper: members[0].position,
        size: members.len(),
        distinct: distinct.len(),
        longest_chain: distinct.iter().map(|&at| steps[at as usize]).max().unwrap(),
        farthest: pairs.iter().map(|pair| pair.distance).max().unwrap_or(0),
        farthest_is_exact: true,
    };
    let members = members.iter().map(|record| record.position).collect();
    Naive { members, originals, edges, about }
}

fn found(clustered: &Clustered) -> Vec<Naive> {
    let found = (0..clustered.len()).map(|number| {
        let Cluster { members, originals, edges } = clustered.cluster(number);
        let (members, originals, edges) = (members.into(), originals.into(), edges.into());
        Naive { members, originals, edges, about: clustered.about(number) }
    });
    found.collect()
}

fn pairs_by_distance(records: &[Record], radius: u32) -> Vec<u64> {
    let mut counts = vec![0; radius as usize + 1];
    for (number, a) in records.iter().enumerate() {
        for b in &records[..number] {
            if let Some(count) = counts.get_mut(distance(a, b) as usize) {
                *count += 1;
            }
        }
    }
    counts
}

fn check_orders(clustered: &Clustered, expected: &[Naive]) {
    for order in [ClusterOrder::Largest, ClusterOrder::LongestChain, ClusterOrder::Farthest] {
        let value = |number: &u32| {
            let about = expected[*number as usize].about;
            match order {
                ClusterOrder::Largest => about.size,
                ClusterOrder::LongestChain => about.longest_chain as usize,
                ClusterOrder::Farthest => about.farthest as usize,
            }
        };
        let mut numbers: Vec<u32> = (0..expected.len() as u32).collect();
        // Stable, and they are in the order of their keepers.
        numbers.sort_by_key(|number| Reverse(value(number)));
        assert_eq!(clustered.ordered(order), numbers);
    }
}

fn check(planted: &[Planted], bits: u32, radius: u32) {
    let (snapshot, records) = build(planted, bits);
    let clustered = snapshot.clusters(&ClusterSettings::new(radius)).unwrap();
    let expected: Vec<Naive> =
        components(&records, radius).iter().map(|members| naive(members, radius)).collect();
    assert_eq!(found(&clustered), expected);
    assert_eq!(clustered.promise, Promise::Exact);
    assert_eq!(clustered.pairs_by_distance, pairs_by_distance(&records, radius));
    assert_eq!((clustered.records, clustered.position), (records.len(), snapshot.position));
    let of = |position| expected.iter().position(|cluster| cluster.members.contains(&position));
    (0..snapshot.end()).for_each(|position| assert_eq!(clustered.of(position), of(position)));
    let sizes = expected.iter().map(|cluster| cluster.members.len());
    assert_eq!(clustered.clustered_records(), sizes.sum::<usize>());
    check_orders(&clustered, &expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn clusters_are_what_all_pairs_say(
        planted in prop::collection::vec(planted(), 0..60),
        words in 1..3_u32,
        radius in 0..7_u32,
    ) {
        check(&planted, 64 * words, radius);
    }

    #[test]
    fn threads_do_not_matter(planted in prop::collection::vec(planted(), 200..250)) {
        let (snapshot, _) = build(&planted, 64);
        let with = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| found(&snapshot.clusters(&ClusterSettings::new(3)).unwrap()))
        };
        prop_assert_eq!(with(1), with(4));
    }
}

fn records(words: impl IntoIterator<Item = u64>) -> Vec<Record> {
    (1..).zip(words).map(|(position, word)| Record { position, words: vec![word] }).collect()
}

fn snapshot(records: &[Record]) -> Snapshot {
    let parts = vec![part(records, 64)];
    Snapshot { bits: 64, kept: Kept::Scan, parts, position: records.len() as u64 }
}

#[test]
fn a_chain_is_as_long_as_the_shortest_way() {
    // A bit from each to the next; at a radius of 2, every second one can be left out.
    let snapshot = snapshot(&records([0, 1, 3, 7, 15, 0, u64::MAX]));
    let clustered = snapshot.clusters(&ClusterSettings::new(1)).unwrap();
    let about = clustered.about(0);
    assert_eq!((clustered.len(), about.size, about.distinct), (1, 6, 5));
    assert_eq!((about.longest_chain, about.farthest), (4, 4));
    assert_eq!(snapshot.clusters(&ClusterSettings::new(2)).unwrap().about(0).longest_chain, 2);
    // A radius beyond all bits is that of all bits.
    let all = snapshot.clusters(&ClusterSettings::new(1000)).unwrap();
    assert_eq!((all.radius, all.len(), all.about(0).size), (64, 1, 7));
}

#[test]
fn copies_of_a_page_are_one_node() {
    let copies = 100_000;
    let words = (0..copies).map(|_| 5).chain([4, u64::MAX]);
    let clustered = snapshot(&records(words)).clusters(&ClusterSettings::new(3)).unwrap();
    let about = clustered.about(0);
    assert_eq!((clustered.len(), about.size as u64, about.distinct), (1, copies + 1, 2));
    assert_eq!(clustered.pairs_by_distance, [copies * (copies - 1) / 2, copies, 0, 0]);
    assert_eq!(clustered.cluster(0).edges, [Pair { a: 0, b: copies as u32, distance: 1 }]);
    assert_eq!((clustered.of(copies), clustered.of(copies + 2)), (Some(0), None));
}

#[test]
fn nothing_and_too_much() {
    let nothing = snapshot(&[]).clusters(&ClusterSettings::new(3)).unwrap();
    assert!(nothing.is_empty() && nothing.ordered(ClusterOrder::Largest).is_empty());
    let settings = ClusterSettings { most_pairs: 2, ..ClusterSettings::new(3) };
    let refused = snapshot(&records([0, 1, 2])).clusters(&settings);
    assert!(matches!(refused, Err(Error::TooManyPairs { most: 2, .. })));
    // Copies are no pairs of distinct signatures.
    assert!(snapshot(&records([7; 100])).clusters(&settings).is_ok());
}

#[test]
fn the_farthest_of_very_many_are_a_lower_bound() {
    let kernel = hamming::kernel().unwrap();
    let rows = [0b11, 0b111, 0b0, 0b1111_0000];
    assert_eq!(farthest(&rows, 1, 4, kernel), (7, true));
    // From the first the last is the farthest, and from that the second.
    assert_eq!(farthest(&rows, 1, 3, kernel), (7, false));
    assert_eq!(farthest(&rows, 2, 2, kernel), (9, true));
    assert_eq!(farthest(&rows[..1], 1, 4, kernel), (0, true));
}
