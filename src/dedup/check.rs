//! Was it right? Some documents are compared with all others, feature by feature, and what was found is held against that.

use std::collections::HashMap;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::{Dial, SMALL, entries::Entries, sketches::SketchFile};
use crate::{Result, cluster::Clusters, features::hash::mix, hamming::kernel};

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

/// Documents with all of their true near-duplicates.
pub(crate) struct Sample {
    members: Vec<u32>,
    /// The number of a member and an entry that is like it.
    pairs: Vec<(u32, u32)>,
}

/// Entries between which no thread hands over.
const CHUNK: usize = 1 << 10;

impl Sample {
    /// So many entries, chosen by chance but always the same, and everything that is like them.
    pub(crate) fn new(
        sketches: &SketchFile,
        entries: &Entries,
        similarity: f64,
        documents: usize,
    ) -> Self {
        let mut members: Vec<u32> = (0..entries.len() as u32).collect();
        let by_chance = |entry: &u32| (mix(u64::from(*entry) ^ 0x5eed), *entry);
        if documents < members.len() {
            members.select_nth_unstable_by_key(documents, by_chance);
            members.truncate(documents);
        }
        members.sort_unstable();
        let features = Features::new(sketches, entries, &members);
        let chunks = entries.rows.par_chunks(CHUNK).enumerate();
        let mut pairs: Vec<(u32, u32)> = chunks
            .flat_map_iter(|(chunk, rows)| {
                let mut shared = vec![0_u32; members.len()];
                let mut pairs = Vec::new();
                for (i, &row) in rows.iter().enumerate() {
                    let set = sketches.set(row as usize);
                    features.count(set, &mut shared, |member, shared| {
                        let size = entries.sizes[members[member as usize] as usize];
                        let either = f64::from(size) + set.len() as f64 - f64::from(shared);
                        let entry = (chunk * CHUNK + i) as u32;
                        if f64::from(shared) >= similarity * either
                            && entry != members[member as usize]
                        {
                            pairs.push((member, entry));
                        }
                    });
                }
                pairs
            })
            .collect();
        pairs.sort_unstable();
        Sample { members, pairs }
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
            pairs_expected: (self.pairs.len() as f64 * scale) as u64,
            ..Checked::default()
        };
        if let Some(clusters) = clusters {
            self.count_left_behind(entries, clusters, &mut checked);
        }
        Ok(checked)
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

/// Which members have a feature. Most features of a collection belong to none, as a bit tells at once.
struct Features {
    members: HashMap<u32, Vec<u32>>,
    filter: Vec<u64>,
    shift: u32,
}

impl Features {
    fn new(sketches: &SketchFile, entries: &Entries, members: &[u32]) -> Self {
        let mut of: HashMap<u32, Vec<u32>> = HashMap::new();
        for (number, &entry) in members.iter().enumerate() {
            for &element in sketches.set(entries.row(entry)) {
                of.entry(element).or_default().push(number as u32);
            }
        }
        let bits = (of.len() * 32).next_power_of_two().clamp(1 << 10, 1 << 24);
        let mut features =
            Features { members: of, filter: vec![0; bits / 64], shift: 32 - bits.ilog2() };
        let elements: Vec<u32> = features.members.keys().copied().collect();
        for element in elements {
            let bit = features.bit(element);
            features.filter[bit / 64] |= 1 << (bit % 64);
        }
        features
    }

    fn bit(&self, element: u32) -> usize {
        (element >> self.shift) as usize
    }

    /// Gives `each` the members that share features with a set, and how many.
    fn count(&self, set: &[u32], shared: &mut [u32], mut each: impl FnMut(u32, u32)) {
        let mut touched = Vec::new();
        for &element in set {
            let bit = self.bit(element);
            if self.filter[bit / 64] >> (bit % 64) & 1 == 0 {
                continue;
            }
            for &member in self.members.get(&element).into_iter().flatten() {
                if shared[member as usize] == 0 {
                    touched.push(member);
                }
                shared[member as usize] += 1;
            }
        }
        for member in touched {
            each(member, std::mem::take(&mut shared[member as usize]));
        }
    }
}
