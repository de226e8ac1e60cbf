//! The report of a run: `report.json` for programs, `report.html` for people.

use std::collections::BTreeMap;

use lookalike::dedup::{
    Checked, Counts, Decision, Deduplicated, Dial,
    audit::{ClusterAudit, SourceAudit, audit_cluster, audit_sources},
    sketches::SketchFile,
};
use rayon::prelude::*;
use serde::Serialize;
use serde_json::Value;

use super::{add::Added, groups::Groups, sign::SignedInput};

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
    /// Documents that were there before, by their signatures...
    pub(crate) elsewhere: u64,
    /// ...and by their texts, where there were any.
    pub(crate) elsewhere_compared: u64,
    /// What was added to the collection.
    pub(crate) added: Option<Added>,
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

/// All that a report is made of.
pub(crate) struct Findings<'a> {
    pub(crate) sketches: &'a SketchFile,
    pub(crate) input: &'a SignedInput,
    pub(crate) decided: &'a Deduplicated,
    pub(crate) groups: &'a Groups,
    pub(crate) dial: Dial,
    /// How many documents that were there before had a text to be compared with.
    pub(crate) compared: u64,
    /// More than that of a source, or in a cluster, is an alarm.
    pub(crate) max_loss: f64,
    pub(crate) max_cluster: Option<usize>,
    /// Whether clusters are looked at one by one.
    pub(crate) audited: bool,
}

/// A source of fewer documents is no source that somebody would miss.
const LEAST_OF_A_SOURCE: u64 = 10;

impl Findings<'_> {
    /// What there is to tell before anything is written.
    pub(crate) fn report(&self, settings: Value) -> Report {
        let Findings { sketches, input, decided, groups, .. } = *self;
        let decisions = &decided.decisions;
        let chains: BTreeMap<u32, u32> = decided.chains.iter().copied().collect();
        let audit = |rows: &Vec<u32>| {
            let chain = chains.get(&rows[0]).copied();
            audit_cluster(sketches, decisions, self.dial.verify, rows, chain)
        };
        // Nobody reads an audit of what is not written.
        let audited = if self.audited { &groups.members[..] } else { &[] };
        let mut audits: Vec<ClusterAudit> = audited.par_iter().map(audit).collect();
        let named = |audit: &ClusterAudit| {
            let id = sketches.id(audit.keeper as usize).into_owned();
            ClusterReport::new(id, audit, &input.sources)
        };
        let mut sizes = BTreeMap::new();
        audits.iter().for_each(|audit| {
            *sizes.entry(audit.size.next_power_of_two()).or_insert(0) += 1;
        });
        audits.sort_by(|a, b| a.least.total_cmp(&b.least).then(a.keeper.cmp(&b.keeper)));
        let loosest: Vec<ClusterReport> = audits.iter().take(20).map(named).collect();
        audits.sort_by_key(|audit| (std::cmp::Reverse(audit.size), audit.keeper));
        let largest: Vec<ClusterReport> = audits.iter().take(20).map(named).collect();

        let removed = || decisions.iter().enumerate().filter(|(row, d)| d.keeper as usize != *row);
        let mut distances = vec![0; self.dial.radius as usize + 1];
        let mut similarities = vec![0; 101];
        let (mut removed_bytes, mut copies, mut number, mut elsewhere) = (0, 0, 0, 0);
        for (row, decision) in removed() {
            number += 1;
            let at = (decision.distance as usize).min(distances.len() - 1);
            distances[at] += 1;
            similarities[(decision.similarity * 100.0).floor() as usize] += 1;
            removed_bytes += sketches.facts()[row].text_bytes;
            let set = |row: usize| sketches.facts()[row].set_hash;
            let here = decision.keeper != Decision::ELSEWHERE;
            elsewhere += u64::from(!here);
            copies += u64::from(here && set(row) == set(decision.keeper as usize));
        }
        let sources = audit_sources(sketches, decisions);
        let mut sources: Vec<SourceReport> = (input.sources.iter().zip(sources))
            .map(|(source, audit)| SourceReport { source: source.clone(), audit })
            .collect();
        sources.sort_by(|a, b| b.audit.removed.cmp(&a.audit.removed).then(a.source.cmp(&b.source)));
        let mut report = Report {
            program: format!("lookalike {}", env!("CARGO_PKG_VERSION")),
            settings,
            dial: self.dial,
            documents: input.documents,
            kept: input.documents - number,
            removed: number,
            copies,
            unsigned: input.unsigned,
            without_field: input.without_field,
            elsewhere,
            elsewhere_compared: self.compared,
            added: None,
            skipped: input.skipped,
            text_bytes: input.text_bytes,
            removed_bytes,
            clusters: groups.members.len(),
            checked: decided.checked.clone(),
            counts: decided.counts.clone(),
            max_loss: self.max_loss,
            alarms: Vec::new(),
            sources,
            largest,
            loosest,
            sizes: sizes.into_iter().collect(),
            distances,
            similarities,
            examples: Vec::new(),
            stages: Vec::new(),
            peak_memory: None,
        };
        report.alarms = self.alarms(&report);
        report.sources.truncate(100);
        report
    }

    /// What should make somebody look before documents are removed.
    fn alarms(&self, report: &Report) -> Vec<String> {
        let mut alarms = Vec::new();
        let most = self.max_loss;
        let large = |source: &&SourceReport| source.audit.documents >= LEAST_OF_A_SOURCE;
        for source in
            report.sources.iter().filter(large).filter(|source| source.audit.loss() > most)
        {
            let (lost, all) = (source.audit.removed, source.audit.documents);
            let share = 100.0 * source.audit.loss();
            alarms.push(format!(
                "`{}` would lose {lost} of {all} documents ({share:.0}%)",
                source.source
            ));
        }
        let largest = report.largest.first();
        if let (Some(most), Some(largest)) = (self.max_cluster, largest)
            && largest.size > most
        {
            let size = largest.size;
            alarms.push(format!("the cluster of `{}` has {size} documents", largest.id));
        }
        alarms
    }
}

/// The most memory that this process has had, where the system tells.
pub(crate) fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}
