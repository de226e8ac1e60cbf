//! Deduplication: which documents of a collection are kept, and what the others are near-duplicates of.
//!
//! Every document becomes a *sketch* ([`sketches`]): a one-bit MinHash signature, band keys, and the set of its features.
//! Documents with the same set are one entry. Entries that have a key in common and near signatures are
//! candidates; candidates whose sets are really alike make [clusters](crate::cluster). The [`Dial`] says
//! how, from nothing but the similarity wanted, and [`Checked`] whether it came true.

mod alike;
pub mod audit;
mod candidates;
mod check;
mod decided;
mod dense;
mod dial;
mod entries;
mod keep;
mod pairs;
mod rarest;
mod reduced;
pub mod sketches;

use std::{collections::HashSet, path::Path};

use rayon::prelude::*;

pub use check::Checked;
pub use dial::Dial;
pub use keep::{Keep, text_of};

use crate::{
    Error, Result,
    cluster::{Clustering, Clusters, Dense, Likeness, Linkage},
    hamming::kernel,
    verify::Verify,
};
use alike::Alike;
use candidates::Finder;
use check::Sample;
use entries::{Entries, NONE};
use pairs::{Pairs, members};
use sketches::SketchFile;

/// Up to so many entries, all are compared with all: that takes less than keys do, and misses less.
pub const SMALL: usize = 1 << 13;
/// At most so many documents, and at most one in so many, are compared with all others to see whether the rest was right.
const SAMPLE: usize = 1000;
const SAMPLE_OF: usize = 64;

/// What becomes of a document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decision {
    /// The row of the document that is kept in its place; its own if it is kept, [`ELSEWHERE`](Self::ELSEWHERE) if that is
    /// no document of this collection.
    pub keeper: u32,
    /// How many bits their signatures differ in.
    pub distance: u32,
    /// How alike they are.
    pub similarity: f32,
}

impl Decision {
    /// The keeper of a document that an earlier collection has.
    pub const ELSEWHERE: u32 = u32::MAX;
}

/// Two documents that are alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AlikePair {
    /// The row of the one.
    pub a: u32,
    /// The row of the other, which is larger.
    pub b: u32,
    /// How many bits their signatures differ in.
    pub distance: u32,
    /// How alike they are.
    pub similarity: f64,
}

/// What was done, in numbers.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize)]
pub struct Counts {
    /// Documents with different features.
    pub entries: usize,
    /// Pairs whose signatures were compared.
    pub compared: u64,
    /// Pairs that had a key in common and near signatures.
    pub candidates: u64,
    /// Pairs whose features were compared.
    pub verified: u64,
    /// Groups of entries in which nearly all are alike, so that their pairs were not listed.
    pub dense: usize,
    /// The sizes of groups of strangers with a key in common that were too large to be compared.
    pub huge: Vec<usize>,
}

/// The end of it.
#[derive(Debug, Clone)]
pub struct Deduplicated {
    /// What becomes of each document, by row.
    pub decisions: Vec<Decision>,
    /// What was done.
    pub counts: Counts,
    /// Whether it was right.
    pub checked: Checked,
    /// The longest chain of pairs from a keeper, by its row, where clusters are components.
    pub chains: Vec<(u32, u32)>,
}

/// How far a run is: the stage, and so many of so many.
pub type Progress<'a> = &'a mut (dyn FnMut(&'static str, usize, usize) + Send);
/// Takes pairs that are alike.
pub type EachPair<'a> = &'a mut (dyn FnMut(AlikePair) -> Result<()> + Send);

/// Bounds of a run.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    /// How many bytes may be used besides the sketches.
    pub memory: usize,
    /// How many documents are compared with all others; if not said, up to 1,000.
    pub check: Option<usize>,
    /// The rows of documents that are left out: of them it is known already that they are not kept.
    pub left_out: HashSet<u32>,
}

/// One run over a file of sketches.
pub struct Dedup<'a> {
    sketches: &'a SketchFile,
    entries: Entries,
    dial: Dial,
    /// How many bytes may be used besides the sketches.
    memory: usize,
    sample: Sample,
}

impl<'a> Dedup<'a> {
    /// Gets ready: finds copies, and the true near-duplicates of a sample.
    pub fn new(sketches: &'a SketchFile, dial: Dial, limits: Limits) -> Result<Self> {
        if sketches.len() > NONE as usize {
            return Err(Error::TooManyRows { rows: sketches.len() });
        }
        let entries = Entries::new(sketches, &limits.left_out);
        let usual = entries.len().div_ceil(SAMPLE_OF).clamp(SAMPLE / 20, SAMPLE);
        let documents = limits.check.unwrap_or(usual);
        let sample = Sample::new(sketches, &entries, dial.similarity, documents)?;
        Ok(Dedup { sketches, entries, dial, memory: limits.memory, sample })
    }

    /// What the sample says of keys and signatures before any work is done.
    pub fn forecast(&self) -> Result<Checked> {
        self.sample.check(self.sketches, &self.entries, &self.dial, None)
    }

    /// Decides what is kept. Pairs that need room beyond memory wait in `folder`.
    ///
    /// With `each_pair`, all pairs that are alike are listed there, in a fixed order; without it, only pairs that
    /// matter are looked at, to the same end.
    pub fn run(
        &self,
        linkage: Linkage,
        folder: &Path,
        each_pair: Option<EachPair<'_>>,
        progress: Progress<'_>,
    ) -> Result<Deduplicated> {
        // Begun in a thread of the pool: otherwise every step of the way would be handed over to it, and back.
        rayon::scope(|_| self.run_in_pool(linkage, folder, each_pair, progress))
    }

    fn run_in_pool(
        &self,
        linkage: Linkage,
        folder: &Path,
        each_pair: Option<EachPair<'_>>,
        progress: Progress<'_>,
    ) -> Result<Deduplicated> {
        let room = self.memory / 4;
        let pairs = Pairs::new(self.entries.len(), room, folder);
        let alike = self.alike()?;
        let finder = Finder::new(alike, each_pair.is_none());
        let found =
            finder.find(self.memory / 4, &pairs, |done, all| progress("candidates", done, all))?;
        let mut counts = Counts {
            entries: self.entries.len(),
            compared: found.compared,
            candidates: pairs.len() as u64,
            dense: found.dense.len(),
            huge: found.huge,
            ..Counts::default()
        };
        let dense = Dense::new(found.dense.iter().map(|group| group.ranks.clone()).collect());
        let alike = Alike { groups: &found.dense, ..alike };
        let mut clustering = Clustering::new(self.entries.len(), linkage, dense, alike);
        let clusters = match each_pair {
            None => {
                let mut done = 0;
                pairs.drain(|some| {
                    clustering.take(some.iter().map(|&pair| members(pair)));
                    done += some.len();
                    progress("verify", done, counts.candidates as usize);
                    Ok(())
                })?;
                clustering.finish()
            }
            Some(each) => {
                let verified = self.list(pairs, &mut clustering, each, progress)?;
                let clusters = clustering.finish();
                Clusters { asked: clusters.asked.max(verified), ..clusters }
            }
        };
        counts.verified = clusters.asked;
        let checked =
            self.sample.check(self.sketches, &self.entries, &self.dial, Some(&clusters))?;
        let row_of_rank =
            |rank: u32| self.entries.rows[self.entries.by_rank[rank as usize] as usize];
        let chains =
            clusters.chains.iter().map(|&(rank, steps)| (row_of_rank(rank), steps)).collect();
        Ok(Deduplicated { decisions: self.decisions(&clusters, linkage)?, counts, checked, chains })
    }

    /// Looks at all pairs, lists those that are alike, and makes clusters of them.
    fn list(
        &self,
        pairs: Pairs,
        clustering: &mut Clustering<Alike<'_>>,
        each: EachPair<'_>,
        progress: Progress<'_>,
    ) -> Result<u64> {
        let alike = self.alike()?;
        let copies = Copies::new(&self.entries);
        copies.list_among_themselves(each)?;
        let (all, mut done) = (pairs.len(), 0);
        pairs.drain(|some| {
            let verify = |&pair: &u64| {
                let (later, earlier) = members(pair);
                alike.alike(later, earlier).map(|similarity| (pair, similarity))
            };
            let verified: Vec<(u64, f64)> = some.par_iter().filter_map(verify).collect();
            clustering.take(verified.iter().map(|&(pair, _)| members(pair)));
            for &(pair, similarity) in &verified {
                let (later, earlier) = members(pair);
                let (a, b) = (alike.at(later), alike.at(earlier));
                copies.list(a, b, alike.distance(a, b), similarity, each)?;
            }
            done += some.len();
            progress("verify", done, all);
            Ok(())
        })?;
        Ok(all as u64)
    }

    fn alike(&self) -> Result<Alike<'_>> {
        let Dedup { sketches, entries, dial, .. } = self;
        Ok(Alike { sketches, entries, dial, kernel: kernel()?, groups: &[] })
    }

    /// What becomes of each row: copies go where their entry goes.
    fn decisions(&self, clusters: &Clusters, linkage: Linkage) -> Result<Vec<Decision>> {
        let alike = self.alike()?;
        let of_entry = |entry: u32| {
            let rank = self.entries.ranks[entry as usize];
            let keeper_rank = clusters.keeper[rank as usize];
            let keeper = self.entries.by_rank[keeper_rank as usize];
            let distance = alike.distance(entry, keeper);
            let similarity = match linkage {
                _ if keeper == entry => 1.0,
                // Members of components may be joined through others.
                Linkage::Components if self.dial.verify != Verify::None => {
                    self.dial.verify.similarity(alike.set(entry), alike.set(keeper)) as f32
                }
                Linkage::Components => alike.estimate(distance) as f32,
                _ => clusters.similarity[rank as usize],
            };
            Decision { keeper: self.entries.rows[keeper as usize], distance, similarity }
        };
        let decided: Vec<Decision> =
            (0..self.entries.len() as u32).into_par_iter().map(of_entry).collect();
        let of_row = |(row, &entry): (usize, &u32)| match entry {
            NONE => Decision { keeper: row as u32, distance: 0, similarity: 1.0 },
            entry => decided[entry as usize],
        };
        Ok(self.entries.of_row.par_iter().enumerate().map(of_row).collect())
    }
}

/// The rows of each entry.
struct Copies {
    rows: Vec<u32>,
    starts: Vec<usize>,
}

impl Copies {
    fn new(entries: &Entries) -> Self {
        let mut starts = vec![0; entries.len() + 1];
        let signed = || entries.of_row.iter().enumerate().filter(|(_, entry)| **entry != NONE);
        signed().for_each(|(_, &entry)| starts[entry as usize + 1] += 1);
        (0..entries.len()).for_each(|i| starts[i + 1] += starts[i]);
        let mut next = starts.clone();
        let mut rows = vec![0; starts[entries.len()]];
        for (row, &entry) in signed() {
            rows[next[entry as usize]] = row as u32;
            next[entry as usize] += 1;
        }
        Copies { rows, starts }
    }

    fn of(&self, entry: u32) -> &[u32] {
        &self.rows[self.starts[entry as usize]..self.starts[entry as usize + 1]]
    }

    fn list(
        &self,
        a: u32,
        b: u32,
        distance: u32,
        similarity: f64,
        each: &mut dyn FnMut(AlikePair) -> Result<()>,
    ) -> Result<()> {
        let mut rows = self.of(a).iter().flat_map(|&a| self.of(b).iter().map(move |&b| (a, b)));
        rows.try_for_each(|(a, b)| {
            each(AlikePair { a: a.min(b), b: a.max(b), distance, similarity })
        })
    }

    fn list_among_themselves(&self, each: &mut dyn FnMut(AlikePair) -> Result<()>) -> Result<()> {
        for entry in 0..self.starts.len() - 1 {
            let rows = self.of(entry as u32);
            for (i, &a) in rows.iter().enumerate() {
                for &b in &rows[i + 1..] {
                    each(AlikePair { a, b, distance: 0, similarity: 1.0 })?;
                }
            }
        }
        Ok(())
    }
}
