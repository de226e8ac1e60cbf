//! Two entries: near each other? Really alike?

use super::{
    Dial, dense::Group, entries::Entries, rarest::Rarest, reduced::Reduced, sketches::SketchFile,
};
use crate::{
    cluster::Likeness,
    hamming::Kernel,
    verify::{FeatureSet, Verify, jaccard_of_distance},
};

/// What is known of entries, and how they are compared.
#[derive(Clone, Copy)]
pub(crate) struct Alike<'a> {
    pub(crate) sketches: &'a SketchFile,
    pub(crate) entries: &'a Entries,
    pub(crate) dial: &'a Dial,
    pub(crate) kernel: Kernel,
    /// The sets of dense groups.
    pub(crate) groups: &'a [Group],
}

impl<'a> Alike<'a> {
    pub(crate) fn signature_of(&self, entry: u32) -> &'a [u64] {
        self.sketches.signature(self.entries.row(entry))
    }

    pub(crate) fn set(&self, entry: u32) -> FeatureSet<'a> {
        self.sketches.features(self.entries.row(entry))
    }

    pub(crate) fn distance(&self, a: u32, b: u32) -> u32 {
        self.kernel.distance(self.signature_of(a), self.signature_of(b))
    }

    /// The similarity of two entries with near signatures, if they are alike.
    pub(crate) fn verified(&self, a: u32, b: u32) -> Option<f64> {
        match self.dial.verify {
            Verify::None => Some(self.estimate(self.distance(a, b))),
            verify => verify.alike(self.kernel, self.set(a), self.set(b)),
        }
    }

    /// Whether whoever is alike has one of its rarest features in common: if it is Jaccard coefficients that count.
    pub(crate) fn by_rarest(&self) -> bool {
        matches!(self.dial.verify, Verify::Jaccard(_))
    }

    /// Whether two entries have a key in common.
    fn share_a_key(&self, a: u32, b: u32) -> bool {
        let [a, b] = [a, b].map(|entry| self.sketches.keys(self.entries.row(entry)));
        a.iter().zip(b).any(|(a, b)| a == b)
    }

    /// The sets of some entries, if it is their Jaccard coefficients that count.
    pub(crate) fn reduced(&self, entries: &[u32]) -> Option<Reduced> {
        let set = |i: usize| self.set(entries[i]).elements;
        self.by_rarest().then(|| Reduced::new(entries.len(), self.dial.verify, set))
    }

    /// Some entries, which come smallest first, on the lists of their rarest features, if it is their Jaccard coefficients
    /// that count.
    pub(crate) fn rarest(&self, entries: &[u32]) -> Option<Rarest> {
        let set = |i: usize| self.set(entries[i]).elements;
        self.by_rarest().then(|| Rarest::new(entries.len(), self.dial.verify, set))
    }

    /// The Jaccard coefficient that a distance stands for.
    pub(crate) fn estimate(&self, distance: u32) -> f64 {
        jaccard_of_distance(distance, self.sketches.bits())
    }

    /// The entry of a rank.
    pub(crate) fn at(&self, rank: u32) -> u32 {
        self.entries.by_rank[rank as usize]
    }
}

/// Clusters ask by rank.
impl Likeness for Alike<'_> {
    fn alike(&self, a: u32, b: u32) -> Option<f64> {
        let (a, b) = (self.at(a), self.at(b));
        if self.distance(a, b) > self.dial.radius {
            return None;
        }
        self.verified(a, b)
    }

    fn alike_in_group(&self, group: usize, a: u32, b: u32) -> Option<f64> {
        let Group { ranks, sets, places } = &self.groups[group];
        let (a, b) = (a as usize, b as usize);
        match sets {
            None => self.alike(ranks[a], ranks[b]),
            Some(sets) => {
                let [i, j] = [a, b].map(|place| places[place] as usize);
                let similarity = sets.alike(self.kernel, self.dial.verify, i, j)?;
                let (a, b) = (self.at(ranks[a]), self.at(ranks[b]));
                // Groups may be of several buckets, and whoever has no key in common does not meet otherwise either.
                let is_candidate =
                    self.distance(a, b) <= self.dial.radius && self.share_a_key(a, b);
                is_candidate.then_some(similarity)
            }
        }
    }

    fn row_in_group(&self, group: usize, place: u32) -> &[u64] {
        let Group { ranks, sets, places } = &self.groups[group];
        match sets {
            Some(sets) => sets.row(places[place as usize] as usize),
            None => self.signature_of(self.at(ranks[place as usize])),
        }
    }

    fn possible_in_group(
        &self,
        group: usize,
        place: u32,
        (rows, others): (&[u64], &[u32]),
        found: &mut Vec<usize>,
    ) {
        let Group { sets, places, .. } = &self.groups[group];
        let at = |place: u32| places[place as usize] as usize;
        match sets {
            None => found.extend(0..others.len()),
            Some(sets) => {
                let others = (rows, |row: usize| at(others[row]));
                sets.add_possible(self.kernel, at(place), others, found);
            }
        }
    }
}
