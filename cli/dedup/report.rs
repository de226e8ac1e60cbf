//! The report of a run: `report.json` for programs, `report.html` for people.

use lookalike::dedup::{
    Checked, Counts, Dial,
    audit::{ClusterAudit, SourceAudit},
};
use serde::Serialize;
use serde_json::Value;

/// Everything there is to know of a run.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) program: String,
    pub(crate) settings: Value,
    pub(crate) dial: Dial,
    pub(crate) documents: u64,
    pub(crate) kept: u64,
    pub(crate) removed: u64,
    /// Documents with exactly the features of one that is kept.
    pub(crate) copies: u64,
    pub(crate) unsigned: u64,
    /// Documents without the field by which keepers are chosen.
    pub(crate) without_field: u64,
    /// Documents whose signatures are near those of an earlier collection.
    pub(crate) elsewhere: u64,
    pub(crate) skipped: u64,
    pub(crate) text_bytes: u64,
    pub(crate) removed_bytes: u64,
    pub(crate) clusters: usize,
    pub(crate) checked: Checked,
    pub(crate) counts: Counts,
    /// The share of its documents that a source may lose without an alarm.
    pub(crate) max_loss: f64,
    pub(crate) alarms: Vec<String>,
    pub(crate) sources: Vec<SourceReport>,
    pub(crate) largest: Vec<ClusterReport>,
    /// Clusters whose members are least alike.
    pub(crate) loosest: Vec<ClusterReport>,
    /// How many clusters have 2, 3 to 4, 5 to 8, ... members.
    pub(crate) sizes: Vec<(usize, usize)>,
    /// How many removed documents are at each distance from their keeper.
    pub(crate) distances: Vec<u64>,
    /// How many have each similarity, in steps of a hundredth.
    pub(crate) similarities: Vec<u64>,
    pub(crate) examples: Vec<Example>,
    pub(crate) stages: Vec<Stage>,
    pub(crate) peak_memory: Option<u64>,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct SourceReport {
    pub(crate) source: String,
    #[serde(flatten)]
    pub(crate) audit: SourceAudit,
}

/// A cluster as its audit has it, with names instead of rows and numbers.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ClusterReport {
    /// The keeper.
    pub(crate) id: String,
    pub(crate) size: usize,
    pub(crate) least_to_keeper: f32,
    pub(crate) least: f32,
    pub(crate) sampled: bool,
    pub(crate) chain: u32,
    /// Those with most of its documents.
    pub(crate) sources: Vec<ClusterSource>,
}

/// How many documents of a cluster are from a source.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ClusterSource {
    pub(crate) source: String,
    pub(crate) documents: usize,
}

impl ClusterReport {
    pub(crate) fn new(id: String, audit: &ClusterAudit, sources: &[String]) -> Self {
        let named = |&(source, documents): &(u32, usize)| ClusterSource {
            source: sources.get(source as usize).cloned().unwrap_or_default(),
            documents,
        };
        ClusterReport {
            id,
            size: audit.size,
            least_to_keeper: audit.least_to_keeper,
            least: audit.least,
            sampled: audit.sampled,
            chain: audit.chain,
            sources: audit.sources.iter().map(named).collect(),
        }
    }
}

/// A removed document beside its keeper.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Example {
    pub(crate) removed: String,
    pub(crate) keeper: String,
    pub(crate) distance: u32,
    pub(crate) similarity: f64,
    pub(crate) removed_text: String,
    pub(crate) keeper_text: String,
}

/// How long a stage took, and how much memory the process had used by its end.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Stage {
    pub(crate) name: &'static str,
    pub(crate) seconds: f64,
    pub(crate) peak_memory: Option<u64>,
    /// Whether it was done by an earlier run.
    pub(crate) resumed: bool,
}

/// The most memory that this process has had, where the system tells.
pub(crate) fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}
