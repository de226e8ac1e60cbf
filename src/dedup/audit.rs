//! The audit: what a deduplication did to clusters and to sources, before anything is written.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::{Decision, sketches::SketchFile};
use crate::verify::Verify;

/// In larger clusters, so many members stand for all when all pairs are compared.
const COMPARED: usize = 64;

/// What there is to know of a cluster of two or more documents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClusterAudit {
    /// The row of the document that is kept.
    pub keeper: u32,
    /// How many documents it has.
    pub size: usize,
    /// How alike the member is that is least alike the keeper.
    pub least_to_keeper: f32,
    /// How alike the two members are that are least alike.
    pub least: f32,
    /// Whether that was found on a part of a large cluster.
    pub sampled: bool,
    /// The longest chain of pairs from the keeper: 1 in a star.
    pub chain: u32,
    /// How many documents of each source it has, by the number of the source.
    pub sources: Vec<(u32, usize)>,
}

/// What a source loses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SourceAudit {
    /// Documents.
    pub documents: u64,
    /// Documents that are not kept.
    pub removed: u64,
}

impl SourceAudit {
    /// The share of documents that is lost.
    pub fn loss(&self) -> f64 {
        self.removed as f64 / self.documents.max(1) as f64
    }
}

/// What a cluster of these rows, keeper first, is like.
pub fn audit_cluster(
    sketches: &SketchFile,
    decisions: &[Decision],
    verify: Verify,
    rows: &[u32],
    chain: Option<u32>,
) -> ClusterAudit {
    let to_keeper = rows.iter().map(|&row| decisions[row as usize].similarity);
    let least_to_keeper = to_keeper.fold(1.0, f32::min);
    // Copies need no second look.
    let mut different = rows.to_vec();
    different.sort_unstable_by_key(|&row| (sketches.facts()[row as usize].set_hash, row));
    different.dedup_by_key(|row| sketches.facts()[*row as usize].set_hash);
    let sampled = different.len() > COMPARED;
    let step = different.len().div_ceil(COMPARED).max(1);
    let chosen: Vec<u32> = different.into_iter().step_by(step).collect();
    let set = |row: u32| sketches.features(row as usize);
    let mut least = least_to_keeper;
    for (i, &a) in chosen.iter().enumerate() {
        for &b in &chosen[i + 1..] {
            least = least.min(verify.similarity(set(a), set(b)) as f32);
        }
    }
    let mut sources: Vec<u32> =
        rows.iter().map(|&row| sketches.facts()[row as usize].source).collect();
    sources.sort_unstable();
    let counted = sources.chunk_by(|a, b| a == b).map(|some| (some[0], some.len()));
    let mut sources: Vec<(u32, usize)> = counted.collect();
    sources.sort_by_key(|&(source, documents)| (std::cmp::Reverse(documents), source));
    sources.truncate(8);
    ClusterAudit {
        keeper: rows[0],
        size: rows.len(),
        least_to_keeper,
        least,
        sampled,
        chain: chain.unwrap_or(1),
        sources,
    }
}

/// What each source loses, by its number.
pub fn audit_sources(sketches: &SketchFile, decisions: &[Decision]) -> Vec<SourceAudit> {
    let facts = sketches.facts();
    let sources = facts.par_iter().map(|facts| facts.source as usize + 1).max().unwrap_or(0);
    let mut audits = vec![SourceAudit::default(); sources];
    for (row, facts) in facts.iter().enumerate() {
        let audit = &mut audits[facts.source as usize];
        audit.documents += 1;
        audit.removed += u64::from(decisions[row].keeper as usize != row);
    }
    audits
}
