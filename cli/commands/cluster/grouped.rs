//! Documents by cluster: from pairs, or from a collection.

use std::{path::Path, sync::Arc};

use lookalike::{
    cluster::{Linkage, keepers},
    collection::{ClusterSettings, Clustered, Collection},
    index::Promise,
};
use rayon::prelude::*;
use serde::Serialize;

use crate::labels::{Fields, Ids, each_record, pair_of};

/// So many records of a collection are read at a time.
const READ: usize = 1 << 12;
const DISTANCE: &str = "distance";

/// All documents that are in clusters of two or more.
pub(super) struct Grouped {
    /// In the order of their bytes.
    ids: Vec<Arc<str>>,
    /// The keeper, after which the cluster is named, and the member, by their places among the ids; in order.
    members: Vec<(u32, u32)>,
}

/// A document as it is written.
#[derive(Debug, Serialize)]
pub(super) struct Member<'a> {
    pub(super) id: &'a str,
    pub(super) cluster: &'a str,
}

impl Grouped {
    /// The clusters of a file of pairs.
    pub(super) fn of_pairs(
        path: &Path,
        linkage: Linkage,
        max_distance: Option<u32>,
    ) -> anyhow::Result<Self> {
        let (mut ids, mut pairs) = (Ids::default(), Vec::new());
        each_record(path, "a record is a pair: `id_a`, `id_b`, perhaps `distance`", |fields| {
            let (a, b) = pair_of(fields).ok_or("there is no `id_a` with an `id_b`")?;
            if max_distance.map_or(Ok(true), |most| is_within(fields, most))? {
                pairs.push((ids.row(a), ids.row(b)));
            }
            Ok(())
        })?;
        // By the ids, not by who came first: the order of the pairs must not matter.
        let (ids, ranks) = sorted(ids.into_names());
        let rank = |row: u32| ranks[row as usize];
        pairs.par_iter_mut().for_each(|(a, b)| (*a, *b) = (rank(*a), rank(*b)));
        let keepers = keepers(ids.len(), linkage, pairs)?;
        Ok(Grouped::new(ids, &keepers))
    }

    /// The clusters of a collection, and what they are worth.
    pub(super) fn of_collection(
        collection: &Collection,
        settings: &ClusterSettings,
    ) -> lookalike::Result<(Self, Promise)> {
        let clustered = collection.snapshot().clusters(settings)?;
        let (ids, oldest) = read_ids(collection, &clustered)?;
        let (ids, ranks) = sorted(ids);
        let mut keepers = vec![0; ids.len()];
        for (&rank, &oldest) in ranks.iter().zip(&oldest) {
            keepers[rank as usize] = ranks[oldest as usize];
        }
        Ok((Grouped::new(ids, &keepers), clustered.promise))
    }

    /// Documents with their keepers, by their places.
    fn new(ids: Vec<Arc<str>>, keepers: &[u32]) -> Self {
        let mut sizes = vec![0_u32; ids.len()];
        keepers.iter().for_each(|&keeper| sizes[keeper as usize] += 1);
        let all = keepers.iter().copied().zip(0..);
        let mut members: Vec<(u32, u32)> =
            all.filter(|&(keeper, _)| sizes[keeper as usize] > 1).collect();
        members.par_sort_unstable();
        Grouped { ids, members }
    }

    pub(super) fn members(&self) -> &[(u32, u32)] {
        &self.members
    }

    pub(super) fn named(&self, (keeper, member): (u32, u32)) -> Member<'_> {
        Member { id: &self.ids[member as usize], cluster: &self.ids[keeper as usize] }
    }

    pub(super) fn documents(&self) -> usize {
        self.members.len()
    }

    pub(super) fn clusters(&self) -> usize {
        self.sizes().count()
    }

    pub(super) fn largest(&self) -> usize {
        self.sizes().max().unwrap_or(0)
    }

    fn sizes(&self) -> impl Iterator<Item = usize> {
        self.members.chunk_by(|a, b| a.0 == b.0).map(<[_]>::len)
    }
}

/// Whether a pair is at most so far apart.
fn is_within(fields: &Fields<'_>, most: u32) -> Result<bool, String> {
    let distance = fields.get(DISTANCE).and_then(Option::as_deref);
    let distance = distance.ok_or("there is no `distance` for `--max-distance`")?;
    let number: Option<f64> = distance.trim().parse().ok();
    let number = number.filter(|number| number.is_finite());
    let number = number.ok_or_else(|| format!("distance `{distance}` is no number"))?;
    Ok(number <= f64::from(most))
}

/// The ids of all members, cluster by cluster, and for each the place of the oldest of its cluster. What was removed and
/// purged meanwhile is left out.
fn read_ids(
    collection: &Collection,
    clustered: &Clustered,
) -> lookalike::Result<(Vec<Arc<str>>, Vec<u32>)> {
    let numbered = |number| clustered.cluster(number).members.iter().map(move |&at| (number, at));
    let (numbers, positions): (Vec<usize>, Vec<u64>) =
        (0..clustered.len()).flat_map(numbered).unzip();
    let (mut ids, mut oldest, mut last) = (Vec::new(), Vec::new(), None);
    collection.with_reader(|store| {
        for (numbers, positions) in numbers.chunks(READ).zip(positions.chunks(READ)) {
            for (&number, record) in numbers.iter().zip(store.records(positions, false)?) {
                let Some(record) = record else { continue };
                let first = match last {
                    Some((before, first)) if before == number => first,
                    _ => ids.len() as u32,
                };
                last = Some((number, first));
                ids.push(record.id.into());
                oldest.push(first);
            }
        }
        Ok(())
    })?;
    Ok((ids, oldest))
}

/// The ids in the order of their bytes, and where each of them is now.
fn sorted(ids: Vec<Arc<str>>) -> (Vec<Arc<str>>, Vec<u32>) {
    let mut order: Vec<(Arc<str>, u32)> = ids.into_iter().zip(0..).collect();
    order.par_sort_unstable();
    let mut ranks = vec![0; order.len()];
    (0..).zip(&order).for_each(|(rank, &(_, row))| ranks[row as usize] = rank);
    (order.into_iter().map(|(id, _)| id).collect(), ranks)
}
