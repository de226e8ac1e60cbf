//! Was it right? Some documents are compared with all others, feature by feature, and what was found is held against that.

use std::collections::{HashMap, HashSet};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::{
    Dial, SMALL,
    entries::Entries,
    rarest::{Order, rarest},
    sketches::SketchFile,
};
use crate::{Result, cluster::Clusters, features::hash::mix, hamming::kernel, verify::Verify};

/// What a sample of documents says about the whole.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Checked {
    /// Documents that were compared with all others, or with so many that they had very many near-duplicates.
    pub documents: usize,
    /// Those of them that have a near-duplicate which is no copy.
    pub with_pairs: usize,
    /// Pairs at least as similar as asked for, copies aside: of documents with very many, those that were met.
    pub pairs: usize,
    /// The share of these pairs that keys and signatures find.
    pub recall_of_pairs: Option<f64>,
    /// The same, as the mean over documents.
    pub recall: Option<f64>,
    /// How many such pairs the whole collection has, by this sample.
    pub pairs_expected: u64,
    /// Documents of the sample that are kept.
    pub kept: usize,
    /// Those of them that still have a near-duplicate which is kept and comes before them.
    pub left_behind: usize,
}

/// Documents with their true near-duplicates.
pub(crate) struct Sample {
    members: Vec<u32>,
    /// The number of a member and an entry that is like it.
    pairs: Vec<(u32, u32)>,
    /// Which share of the entries each member was compared with.
    looked_at: Vec<f64>,
    similarity: f64,
}

/// Entries between which no thread hands over: as many as this, fewer if there are few.
const CHUNK: usize = 1 << 10;
/// Entries are looked at in so many rounds, a chunk here and a chunk there, as near-duplicates often stand together. Of a member with more near-duplicates than this after one of them enough is known: it may
/// be one of very many copies of a template.
const ROUNDS: usize = 16;
const ENOUGH: usize = 1 << 12;

impl Sample {
    /// So many entries, chosen by chance but always the same, and what is like them: everything, or very much.
    pub(crate) fn new(
        sketches: &SketchFile,
        entries: &Entries,
        similarity: f64,
        documents: usize,
    ) -> Result<Self> {
        let mut members: Vec<u32> = (0..entries.len() as u32).collect();
        let by_chance = |entry: &u32| (mix(u64::from(*entry) ^ 0x5eed), *entry);
        if documents < members.len() {
            members.select_nth_unstable_by_key(documents, by_chance);
            members.truncate(documents);
        }
        members.sort_unstable();
        let (mut pairs, mut looked_at) = (Vec::new(), vec![1.0; members.len()]);
        let mut counts = vec![0; members.len()];
        let mut asked: Vec<u32> = (0..members.len() as u32).collect();
        let features =
            |asked: &[u32]| Features::new(sketches, entries, &members, asked, similarity);
        let (mut of_asked, mut looked) = (features(&asked), 0);
        for round in 0..ROUNDS {
            let more = of_asked.pairs(round, ROUNDS)?;
            more.iter().for_each(|&(member, _)| counts[member as usize] += 1);
            pairs.extend(more);
            looked += of_asked.chunks(round, ROUNDS).flatten().count();
            let before = asked.len();
            asked.retain(|&member| {
                let enough = counts[member as usize] > ENOUGH;
                if enough {
                    looked_at[member as usize] = looked as f64 / entries.len() as f64;
                }
                !enough
            });
            if asked.len() < before {
                of_asked = features(&asked);
            }
        }
        pairs.sort_unstable();
        Ok(Sample { members, pairs, looked_at, similarity })
    }

    /// What was found, held against what is there.
    pub(crate) fn check(
        &self,
        sketches: &SketchFile,
        entries: &Entries,
        dial: &Dial,
        clusters: Option<&Clusters>,
    ) -> Result<Checked> {
        let kernel = kernel()?;
        let all_compared = entries.len() <= SMALL;
        let found = |&(member, entry): &(u32, u32)| {
            let rows = [self.members[member as usize], entry].map(|entry| entries.row(entry));
            let [a, b] = rows.map(|row| sketches.signature(row));
            let [keys, others] = rows.map(|row| sketches.keys(row));
            let met = all_compared || keys.iter().zip(others).any(|(a, b)| a == b);
            met && kernel.distance(a, b) <= dial.radius
        };
        let shares: Vec<(usize, usize)> = (self.pairs.chunk_by(|a, b| a.0 == b.0))
            .map(|pairs| (pairs.iter().filter(|pair| found(pair)).count(), pairs.len()))
            .collect();
        let of_pairs: usize = shares.iter().map(|share| share.0).sum();
        let mean = shares.iter().map(|&(found, all)| found as f64 / all as f64).sum::<f64>();
        let some = !shares.is_empty();
        let scale = entries.len() as f64 / self.members.len().max(1) as f64 / 2.0;
        let mut checked = Checked {
            documents: self.members.len(),
            with_pairs: shares.len(),
            pairs: self.pairs.len(),
            recall_of_pairs: some.then(|| of_pairs as f64 / self.pairs.len() as f64),
            recall: some.then(|| mean / shares.len() as f64),
            pairs_expected: (self.pairs_in_all() * scale) as u64,
            ..Checked::default()
        };
        if let Some(clusters) = clusters {
            self.count_left_behind(sketches, entries, clusters, &mut checked)?;
        }
        Ok(checked)
    }

    /// How many pairs there would be if all members had been compared with all entries.
    fn pairs_in_all(&self) -> f64 {
        self.pairs.iter().map(|&(member, _)| 1.0 / self.looked_at[member as usize]).sum()
    }

    fn count_left_behind(
        &self,
        sketches: &SketchFile,
        entries: &Entries,
        clusters: &Clusters,
        checked: &mut Checked,
    ) -> Result<()> {
        let rank = |entry: u32| entries.ranks[entry as usize];
        let kept = |entry: u32| clusters.keeper[rank(entry) as usize] == rank(entry);
        checked.kept = self.members.iter().filter(|&&entry| kept(entry)).count();
        // Of whoever is kept, all have to be known. Few of those with very many near-duplicates are.
        let is_open = |&member: &u32| {
            self.looked_at[member as usize] < 1.0 && kept(self.members[member as usize])
        };
        let open: Vec<u32> = (0..self.members.len() as u32).filter(is_open).collect();
        let more = match open.is_empty() {
            true => Vec::new(),
            false => Features::new(sketches, entries, &self.members, &open, self.similarity)
                .pairs(0, 1)?,
        };
        let is_left = |&&(member, entry): &&(u32, u32)| {
            let member = self.members[member as usize];
            kept(member) && kept(entry) && rank(entry) < rank(member)
        };
        let left = self.pairs.iter().chain(&more).filter(is_left).map(|pair| pair.0);
        checked.left_behind = left.collect::<HashSet<u32>>().len();
        Ok(())
    }
}

/// Which members have a feature among their rarest, of which those that are like them have one. Most features of a collection belong
/// to none, as a bit tells at once.
struct Features<'a> {
    sketches: &'a SketchFile,
    entries: &'a Entries,
    members: &'a [u32],
    verify: Verify,
    of: HashMap<u32, Vec<u32>>,
    filter: Vec<u64>,
    shift: u32,
}

impl<'a> Features<'a> {
    fn new(
        sketches: &'a SketchFile,
        entries: &'a Entries,
        members: &'a [u32],
        asked: &[u32],
        similarity: f64,
    ) -> Self {
        let set = |member: u32| sketches.set(entries.row(members[member as usize]));
        let order = Order::of(asked.len(), &|i: usize| set(asked[i]));
        let (mut of, mut ordered) = (HashMap::<u32, Vec<u32>>::new(), Vec::new());
        for &member in asked {
            order.put(set(member), &mut ordered);
            for &element in rarest(&mut ordered, similarity) {
                of.entry(element as u32).or_default().push(member);
            }
        }
        let bits = (of.len() * 32).next_power_of_two().clamp(1 << 10, 1 << 24);
        let (shift, mut filter) = (32 - bits.ilog2(), vec![0; bits / 64]);
        for bit in of.keys().map(|element| (element >> shift) as usize) {
            filter[bit / 64] |= 1 << (bit % 64);
        }
        let verify = Verify::Jaccard(similarity);
        Features { sketches, entries, members, verify, of, filter, shift }
    }

    /// The members and the entries that are alike, in every so many chunks.
    fn pairs(&self, first: usize, every: usize) -> Result<Vec<(u32, u32)>> {
        let kernel = kernel()?;
        let in_chunk = |chunk: &[u32]| {
            let (mut pairs, mut possible) = (Vec::new(), Vec::new());
            for &row in chunk {
                let (entry, one) =
                    (self.entries.of_row[row as usize], self.sketches.features(row as usize));
                possible.clear();
                self.add_possible(one.elements, &mut possible);
                for &member in &possible {
                    let other = self.members[member as usize];
                    let set = self.sketches.features(self.entries.row(other));
                    if other != entry && self.verify.alike(kernel, one, set).is_some() {
                        pairs.push((member, entry));
                    }
                }
            }
            pairs
        };
        let chunks: Vec<&[u32]> = self.chunks(first, every).collect();
        Ok(chunks.into_par_iter().flat_map_iter(in_chunk).collect())
    }

    /// The rows of entries in every so many chunks.
    fn chunks(&self, first: usize, every: usize) -> impl Iterator<Item = &'a [u32]> {
        let size = (self.entries.len() / (ROUNDS * ROUNDS)).clamp(1, CHUNK);
        self.entries.rows.chunks(size).skip(first).step_by(every)
    }

    /// Adds the members that may be like a set.
    fn add_possible(&self, set: &[u32], possible: &mut Vec<u32>) {
        for element in set {
            let bit = (element >> self.shift) as usize;
            if self.filter[bit / 64] >> (bit % 64) & 1 == 1 {
                possible.extend(self.of.get(element).into_iter().flatten());
            }
        }
        possible.sort_unstable();
        possible.dedup();
    }
}
