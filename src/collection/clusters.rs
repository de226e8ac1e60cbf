//! Clusters: which records of a snapshot look alike.
//!
//! Records with the same signature are one node, however many they are; nodes within the radius of each other are joined
//! by an edge, and what is connected is a cluster. Everything is in flat arrays, a cluster's share of them in a row.

use std::{cmp::Reverse, ops::Range, sync::OnceLock};

use rayon::prelude::*;

use super::snapshot::Snapshot;
use crate::{
    Error, Result, Signatures,
    cluster::{Ways, join, root},
    hamming::{self, Kernel},
    index::Promise,
    join::{JoinSettings, Pair, self_join},
    table::Distinct,
};

/// Up to so many distinct signatures of a cluster are all compared with each other to find the two farthest.
const MOST_COMPARED: usize = 2000;
/// The cluster of what looks like nothing else.
const ALONE: u32 = u32::MAX;

/// What looks alike, and how it is found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClusterSettings {
    /// Records at most so many bits apart look alike.
    pub radius: u32,
    /// The share of the pairs at the very radius that must be found where finding all takes long, as in [`JoinSettings`].
    pub recall: f64,
    /// More pairs of distinct signatures than this are refused: they are all kept.
    pub most_pairs: u64,
    /// The most bytes that finding them takes beside the signatures and the pairs.
    pub memory: u64,
}

impl ClusterSettings {
    /// Records within the radius: a recall of .98, at most 50 million pairs, 2 GB of memory.
    pub fn new(radius: u32) -> Self {
        let JoinSettings { recall, memory, .. } = JoinSettings::new(radius);
        ClusterSettings { radius, recall, most_pairs: 50_000_000, memory }
    }
}

/// The clusters of a snapshot, numbered from 0 in the order of their oldest records.
#[derive(Debug)]
pub struct Clustered {
    /// Records at most so many bits apart look alike.
    pub radius: u32,
    /// The width of the signatures.
    pub bits: u32,
    /// How many records there are, in clusters or not.
    pub records: usize,
    /// The position of the last change that the snapshot knows of.
    pub position: u64,
    /// Whether all pairs within the radius were found, or which share of those at the very radius is expected.
    pub promise: Promise,
    /// How many pairs of records are at each distance, from 0 to the radius.
    pub pairs_by_distance: Vec<u64>,
    members: Members,
    edges: Edges,
    measures: Vec<Measures>,
    /// The clusters in each order, worked out when somebody asks.
    ordered: [OnceLock<Vec<u32>>; 3],
}

/// A cluster: the records that look alike, directly or through others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cluster<'a> {
    /// The positions of its records, ascending. The first, the oldest, is the keeper.
    pub members: &'a [u64],
    /// The place among the members of the first that has the same signature, for each: its own if it is the first.
    pub originals: &'a [u32],
    /// Which of the first with their signatures are within the radius, by their places among the members, in their order.
    pub edges: &'a [Pair],
}

impl Cluster<'_> {
    /// The places of the members that are the first with their signature.
    pub fn distinct(&self) -> impl Iterator<Item = u32> + '_ {
        self.originals.iter().zip(0..).filter(|(first, place)| *first == place).map(|(_, at)| at)
    }
}

/// What there is to tell about a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AboutCluster {
    /// The position of its oldest record.
    pub keeper: u64,
    /// How many records it has.
    pub size: usize,
    /// How many of their signatures are distinct.
    pub distinct: usize,
    /// How many edges it is from the keeper to the member to which it is the most, by the shortest way.
    pub longest_chain: u32,
    /// The largest distance between two members.
    pub farthest: u32,
    /// Whether that is for sure. In a very large cluster not all are compared, and two may be farther apart.
    pub farthest_is_exact: bool,
}

/// Which clusters come first. Of equal ones, the one with the older keeper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterOrder {
    /// Those with the most records.
    Largest,
    /// Those with the longest way from the keeper to a member.
    LongestChain,
    /// Those with members that are the farthest apart.
    Farthest,
}

impl Snapshot {
    /// Which records look alike, as clusters: all that are within a radius of each other, directly or through others.
    ///
    /// ```
    /// use lookalike::{Signature, collection::{ClusterSettings, Collection, Entry, IfExists, Settings}};
    ///
    /// let folder = tempfile::tempdir()?;
    /// let collection = Collection::create(&folder.path().join("news"), Settings::of_bits(64))?;
    /// let entry = |id, word| Entry::new(id, Signature::from_words(64, vec![word]).unwrap());
    /// let entries = [entry("a", 0b1011), entry("b", 0xffff_0000), entry("c", 0b1000), entry("d", 0b1011)];
    /// collection.put(&entries, IfExists::Replace)?;
    ///
    /// let clustered = collection.snapshot().clusters(&ClusterSettings::new(2))?;
    /// assert_eq!((clustered.len(), clustered.cluster(0).members), (1, &[1, 3, 4][..]));
    /// assert_eq!(clustered.pairs_by_distance, [1, 0, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn clusters(&self, settings: &ClusterSettings) -> Result<Clustered> {
        let (rows, positions) = self.rows()?;
        let nodes = Nodes::of(rows)?;
        let settings = ClusterSettings { radius: settings.radius.min(self.bits), ..*settings };
        let (pairs, promise) = nodes.pairs(&settings)?;
        let pairs_by_distance = nodes.count_pairs(&pairs, settings.radius);
        let clusters = nodes.clusters(&pairs);
        let (members, placed) = Members::of(&nodes, &clusters, &positions);
        let edges = Edges::of(pairs, &clusters, &placed);
        let mut clustered = Clustered {
            radius: settings.radius,
            bits: self.bits,
            records: positions.len(),
            position: self.position,
            promise,
            pairs_by_distance,
            members,
            edges,
            measures: Vec::new(),
            ordered: Default::default(),
        };
        let kernel = hamming::kernel()?;
        let measures = (0..clustered.len()).into_par_iter().map(|number| {
            let of_members = &placed.nodes[clustered.members.range(number)];
            Measures::of(clustered.cluster(number), of_members, &nodes.signatures, kernel)
        });
        clustered.measures = measures.collect();
        Ok(clustered)
    }
}

impl Clustered {
    /// How many clusters there are.
    pub fn len(&self) -> usize {
        self.members.starts.len() - 1
    }

    /// Whether no two records look alike.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many records are in clusters.
    pub fn clustered_records(&self) -> usize {
        self.members.positions.len()
    }

    /// The cluster of a number.
    ///
    /// # Panics
    ///
    /// If there are not so many.
    pub fn cluster(&self, number: usize) -> Cluster<'_> {
        let members = self.members.range(number);
        Cluster {
            members: &self.members.positions[members.clone()],
            originals: &self.members.originals[members],
            edges: &self.edges.pairs[self.edges.range(number)],
        }
    }

    /// What there is to tell about the cluster of a number.
    ///
    /// # Panics
    ///
    /// If there are not so many.
    pub fn about(&self, number: usize) -> AboutCluster {
        let (members, measures) = (self.cluster(number).members, self.measures[number]);
        AboutCluster {
            keeper: members[0],
            size: members.len(),
            distinct: measures.distinct as usize,
            longest_chain: measures.longest_chain,
            farthest: measures.farthest,
            farthest_is_exact: measures.farthest_is_exact,
        }
    }

    /// The number of the cluster that has the record at a position.
    pub fn of(&self, position: u64) -> Option<usize> {
        let Members { starts, positions, by_position, .. } = &self.members;
        let found =
            by_position.binary_search_by_key(&position, |&at| positions[at as usize]).ok()?;
        let at = by_position[found] as usize;
        Some(starts.partition_point(|&start| start <= at) - 1)
    }

    /// The numbers of all clusters in an order. It is worked out once.
    pub fn ordered(&self, order: ClusterOrder) -> &[u32] {
        self.ordered[order as usize].get_or_init(|| {
            let mut numbers: Vec<u32> = (0..self.len() as u32).collect();
            let value = |number: usize| match order {
                ClusterOrder::Largest => self.members.range(number).len() as u32,
                ClusterOrder::LongestChain => self.measures[number].longest_chain,
                ClusterOrder::Farthest => self.measures[number].farthest,
            };
            numbers.par_sort_unstable_by_key(|&number| (Reverse(value(number as usize)), number));
            numbers
        })
    }
}

/// The distinct signatures of rows, in the order of the first rows that have them.
struct Nodes {
    signatures: Signatures,
    /// How many rows each has.
    sizes: Vec<u32>,
    /// The node of each row.
    of_row: Vec<u32>,
}

impl Nodes {
    fn of(rows: Signatures) -> Result<Self> {
        if u32::try_from(rows.len()).is_err() {
            return Err(Error::TooManyRows { rows: rows.len() });
        }
        let Distinct { mut firsts, copies, words } = Distinct::of(&rows)?;
        drop(words);
        firsts.par_sort_unstable();
        let (mut of_row, mut sizes) = (vec![0; rows.len()], vec![0; firsts.len()]);
        for (node, &first) in firsts.iter().enumerate() {
            for row in copies.view().rows(first) {
                of_row[row as usize] = node as u32;
                sizes[node] += 1;
            }
        }
        let signatures = match firsts.len() == rows.len() {
            true => rows,
            false => {
                let words = firsts.iter().flat_map(|&row| rows.row(row as usize));
                Signatures::from_words(rows.bits(), words.copied().collect())?
            }
        };
        Ok(Nodes { signatures, sizes, of_row })
    }

    /// All pairs of nodes within the radius, in order, and what they are worth.
    fn pairs(&self, settings: &ClusterSettings) -> Result<(Vec<Pair>, Promise)> {
        let ClusterSettings { radius, recall, most_pairs, memory } = *settings;
        let settings = JoinSettings { radius, recall, most_pairs, memory };
        let mut pairs = Vec::new();
        let joined = self_join(&self.signatures, &settings, |some| {
            pairs.extend_from_slice(some);
            Ok(())
        })?;
        let promise = match joined.exact() {
            true => Promise::Exact,
            false => Promise::Expected { recall: joined.recall as f32 },
        };
        Ok((pairs, promise))
    }

    /// How many pairs of rows are at each distance.
    fn count_pairs(&self, pairs: &[Pair], radius: u32) -> Vec<u64> {
        let mut counts = vec![0_u64; radius as usize + 1];
        let mut count = |distance: u32, pairs: u64| {
            let count = &mut counts[distance as usize];
            *count = count.saturating_add(pairs);
        };
        let size = |node: u32| u64::from(self.sizes[node as usize]);
        self.sizes
            .iter()
            .map(|&size| u64::from(size))
            .for_each(|size| count(0, size * (size - 1) / 2));
        pairs.iter().for_each(|pair| count(pair.distance, size(pair.a) * size(pair.b)));
        counts
    }

    /// The cluster of each node, and how many clusters there are. A node of a single row that is near no other is alone.
    fn clusters(&self, pairs: &[Pair]) -> (Vec<u32>, usize) {
        let mut above: Vec<u32> = (0..self.sizes.len() as u32).collect();
        let mut alone: Vec<bool> = self.sizes.iter().map(|&size| size == 1).collect();
        for pair in pairs {
            join(&mut above, pair.a, pair.b);
            (alone[pair.a as usize], alone[pair.b as usize]) = (false, false);
        }
        let (mut clusters, mut next) = (vec![ALONE; above.len()], 0);
        for node in 0..above.len() {
            // The root is the first of its cluster, so it has a number already.
            match root(&mut above, node as u32) as usize {
                _ if alone[node] => {}
                first if first == node => {
                    clusters[node] = next;
                    next += 1;
                }
                first => clusters[node] = clusters[first],
            }
        }
        (clusters, next as usize)
    }
}

/// The records of all clusters, one cluster after the other.
#[derive(Debug)]
struct Members {
    /// Where each cluster starts, and the end.
    starts: Vec<usize>,
    /// Ascending within a cluster.
    positions: Vec<u64>,
    /// Of each the place in its cluster of the first with the same signature.
    originals: Vec<u32>,
    /// Where they are here, in the order of their positions.
    by_position: Vec<u32>,
}

/// What nodes became in clusters.
struct Placed {
    /// The node of each member.
    nodes: Vec<u32>,
    /// The place in its cluster of the first member with each node.
    places: Vec<u32>,
}

impl Members {
    fn of(
        nodes: &Nodes,
        (clusters, count): &(Vec<u32>, usize),
        positions: &[u64],
    ) -> (Self, Placed) {
        let sizes = nodes.sizes.iter().map(|&size| size as usize);
        let starts = starts_of(*count, clusters.iter().copied().zip(sizes));
        let (len, mut next) = (starts[*count], starts.clone());
        let mut members = Members {
            starts,
            positions: vec![0; len],
            originals: vec![0; len],
            by_position: Vec::with_capacity(len),
        };
        let mut placed = Placed { nodes: vec![0; len], places: vec![ALONE; clusters.len()] };
        for (&node, &position) in nodes.of_row.iter().zip(positions) {
            let cluster = clusters[node as usize];
            if cluster == ALONE {
                continue;
            }
            let (start, at) = (members.starts[cluster as usize], next[cluster as usize]);
            next[cluster as usize] += 1;
            let place = &mut placed.places[node as usize];
            *place = (*place).min((at - start) as u32);
            members.positions[at] = position;
            members.originals[at] = *place;
            members.by_position.push(at as u32);
            placed.nodes[at] = node;
        }
        (members, placed)
    }

    fn range(&self, number: usize) -> Range<usize> {
        self.starts[number]..self.starts[number + 1]
    }
}

/// The edges of all clusters, one cluster after the other.
#[derive(Debug)]
struct Edges {
    /// Where those of each cluster start, and the end.
    starts: Vec<usize>,
    /// Between places of a cluster.
    pairs: Vec<Pair>,
}

impl Edges {
    fn of(mut pairs: Vec<Pair>, (clusters, count): &(Vec<u32>, usize), placed: &Placed) -> Self {
        let cluster = |pair: &Pair| clusters[pair.a as usize];
        // In place: there may be very many.
        pairs.par_sort_unstable_by_key(|pair| (cluster(pair), pair.a, pair.b));
        let starts = starts_of(*count, pairs.iter().map(|pair| (cluster(pair), 1)));
        let place = |node: u32| placed.places[node as usize];
        pairs.par_iter_mut().for_each(|pair| (pair.a, pair.b) = (place(pair.a), place(pair.b)));
        Edges { starts, pairs }
    }

    fn range(&self, number: usize) -> Range<usize> {
        self.starts[number]..self.starts[number + 1]
    }
}

/// Where each of so many clusters starts, and the end, given what adds how much to which.
fn starts_of(clusters: usize, adds: impl Iterator<Item = (u32, usize)>) -> Vec<usize> {
    let mut starts = vec![0; clusters + 1];
    for (cluster, much) in adds.filter(|(cluster, _)| *cluster != ALONE) {
        starts[cluster as usize + 1] += much;
    }
    (0..clusters).for_each(|cluster| starts[cluster + 1] += starts[cluster]);
    starts
}

/// What is known of a cluster beside its members and edges.
#[derive(Debug, Clone, Copy)]
struct Measures {
    distinct: u32,
    longest_chain: u32,
    farthest: u32,
    farthest_is_exact: bool,
}

impl Measures {
    /// Measures a cluster, given the node of each member.
    fn of(cluster: Cluster<'_>, nodes: &[u32], signatures: &Signatures, kernel: Kernel) -> Self {
        let row = |place: u32| signatures.row(nodes[place as usize] as usize);
        let words: Vec<u64> = cluster.distinct().flat_map(row).copied().collect();
        let stride = signatures.stride();
        let (farthest, farthest_is_exact) = farthest(&words, stride, MOST_COMPARED, kernel);
        let distinct = (words.len() / stride) as u32;
        Measures { distinct, longest_chain: longest_chain(cluster), farthest, farthest_is_exact }
    }
}

fn longest_chain(cluster: Cluster<'_>) -> u32 {
    match cluster.edges.len() {
        few @ 0..=1 => few as u32,
        _ => {
            let ways = Ways::along(cluster.edges.iter().map(|edge| (edge.a, edge.b)));
            ways.longest_from(0, &mut vec![false; cluster.members.len()])
        }
    }
}

/// The largest distance between two rows, and whether it is that for sure: of more than `most` rows, only the first is
/// compared with all, and the one that is farthest from it.
fn farthest(words: &[u64], stride: usize, most: usize, kernel: Kernel) -> (u32, bool) {
    let count = words.len() / stride;
    let mut distances = vec![0; count];
    let mut farthest_from = |row: usize, others: Range<usize>| {
        let distances = &mut distances[others.clone()];
        let of = |rows: Range<usize>| &words[rows.start * stride..rows.end * stride];
        kernel.distances(of(row..row + 1), of(others.clone()), distances);
        distances.iter().copied().zip(others).max().unwrap_or((0, row))
    };
    if count <= most {
        let farthest = (0..count).map(|row| farthest_from(row, row + 1..count).0).max();
        return (farthest.unwrap_or(0), true);
    }
    let (_, far) = farthest_from(0, 0..count);
    (farthest_from(far, 0..count).0, false)
}

#[cfg(test)]
mod tests;
