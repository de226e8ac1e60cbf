//! Was it right? Some documents are compared with all others, feature by feature, and what was found is held against that.

use std::{collections::HashMap, ops::Range};

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
    /// Documents that were compared with all others.
    pub documents: usize,
    /// Those of them that have a near-duplicate which is no copy.
    pub with_pairs: usize,
    /// Pairs at least as similar as asked for, copies aside.
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
}

/// Entries between which no thread hands over.
const CHUNK: usize = 1 << 10;
/// Entries are looked at in so many rounds. Of a member with more near-duplicates than this after one of them enough is known: it may
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
        let mut sample = Sample { looked_at: vec![1.0; members.len()], members, pairs: Vec::new() };
        let mut asked: Vec<u32> = (0..sample.members.len() as u32).collect();
        let round = entries.len().div_ceil(ROUNDS).max(1).next_multiple_of(CHUNK);
        for start in (0..entries.len()).step_by(round) {
            let end = (start + round).min(entries.len());
            let features = Features::new(sketches, entries, &sample, &asked, similarity);
            sample.pairs.extend(features.pairs(start..end)?);
            let mut counts = vec![0; sample.members.len()];
            sample.pairs.iter().for_each(|&(member, _)| counts[member as usize] += 1);
            asked.retain(|&member| {
                let enough = counts[member as usize] > ENOUGH;
                if enough {
                    sample.looked_at[member as usize] = end as f64 / entries.len() as f64;
                }
                !enough
            });
        }
        sample.pairs.sort_unstable();
        Ok(sample)
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
            self.count_left_behind(entries, clusters, &mut checked);
        }
        Ok(checked)
    }

    /// How many pairs there would be if all members had been compared with all entries.
    fn pairs_in_all(&self) -> f64 {
        self.pairs.iter().map(|&(member, _)| 1.0 / self.looked_at[member as usize]).sum()
    }

    fn count_left_behind(&self, entries: &Entries, clusters: &Clusters, checked: &mut Checked) {
        let rank = |entry: u32| entries.ranks[entry as usize];
        let kept = |entry: u32| clusters.keeper[rank(entry) as usize] == rank(entry);
        checked.kept = self.members.iter().filter(|&&entry| kept(entry)).count();
        let left = |pairs: &&[(u32, u32)]| {
            let member = self.members[pairs[0].0 as usize];
            let before = |&(_, entry): &(u32, u32)| kept(entry) && rank(entry) < rank(member);
            kept(member) && pairs.iter().any(before)
        };
        checked.left_behind = self.pairs.chunk_by(|a, b| a.0 == b.0).filter(left).count();
    }
}

/// Which members have a feature among their rarest, of which those that are like them have one. Most features of a collection belong
/// to none, as a bit tells at once.
struct Features<'a> {
    sketches: &'a SketchFile,
    entries: &'a Entries,
    sample: &'a Sample,
    verify: Verify,
    members: HashMap<u32, Vec<u32>>,
    filter: Vec<u64>,
    shift: u32,
}

impl<'a> Features<'a> {
    fn new(
        sketches: &'a SketchFile,
        entries: &'a Entries,
        sample: &'a Sample,
        asked: &[u32],
        similarity: f64,
    ) -> Self {
        let set = |member: u32| sketches.set(entries.row(sample.members[member as usize]));
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
        Features { sketches, entries, sample, verify, members: of, filter, shift }
    }

    /// The members and the entries of a range that are alike.
    fn pairs(&self, range: Range<usize>) -> Result<Vec<(u32, u32)>> {
        let kernel = kernel()?;
        let in_chunk = |chunk: &[u32]| {
            let (mut pairs, mut possible) = (Vec::new(), Vec::new());
            for &row in chunk {
                let (entry, one) =
                    (self.entries.of_row[row as usize], self.sketches.features(row as usize));
                possible.clear();
                self.add_possible(one.elements, &mut possible);
                for &member in &possible {
                    let other = self.sample.members[member as usize];
                    let set = self.sketches.features(self.entries.row(other));
                    if other != entry && self.verify.alike(kernel, one, set).is_some() {
                        pairs.push((member, entry));
                    }
                }
            }
            pairs
        };
        Ok(self.entries.rows[range].par_chunks(CHUNK).flat_map_iter(in_chunk).collect())
    }

    /// Adds the members that may be like a set.
    fn add_possible(&self, set: &[u32], possible: &mut Vec<u32>) {
        for element in set {
            let bit = (element >> self.shift) as usize;
            if self.filter[bit / 64] >> (bit % 64) & 1 == 1 {
                possible.extend(self.members.get(element).into_iter().flatten());
            }
        }
        possible.sort_unstable();
        possible.dedup();
    }
}
