//! `lookalike plan`.

use std::{num::NonZeroUsize, path::PathBuf};

use clap::{ArgGroup, Args};
use lookalike::plan::{Choice, Plan, Task};
use serde_json::{Value, json};

use super::{Global, Outcome, at_least_one};
use crate::{
    failure::check_radius,
    index::parse_share,
    opened::Opened,
    output::print,
    planner::{Planner, line},
    size,
};

/// Tell which index suits a file of signatures and a question, and why
///
/// Every index that could answer is priced: with what keys, rows and memory cost on this machine (measured once, in
/// about a second) and with a sample of the rows, which may be skewed. The cheapest comes first.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("question").required(true).args(["radius", "nearest"]))]
#[command(after_help = "\
Examples:
  lookalike plan crawl.sig --radius 3
  lookalike plan crawl.sig --radius 3 --memory 4G --queries 1000000
  lookalike plan crawl.sig --radius 3 --recall 0.98 --format json
  lookalike plan crawl.sig --nearest 10 --recall 0.95 --queries 1000000")]
pub(crate) struct PlanCommand {
    /// The signatures to search: .sig, .npy, .hex or .parquet; or an index over them: .idx
    file: PathBuf,

    /// Every document at most so many bits away is to be found
    #[arg(long, short, value_name = "BITS")]
    radius: Option<u32>,

    /// The so many nearest documents are to be found
    #[arg(long, short = 'k', value_name = "K", value_parser = at_least_one)]
    nearest: Option<NonZeroUsize>,

    /// One such document is enough; the plan is the same
    #[arg(long, conflicts_with = "nearest")]
    first: bool,

    /// How many queries come together
    #[arg(long, value_name = "N", default_value = "256", value_parser = clap::value_parser!(u32).range(1..))]
    batch: u32,

    /// How many queries there will be in all, if the index is built for them alone
    #[arg(long, value_name = "N")]
    queries: Option<u64>,

    /// The share of the documents to be found at least: 1 for all of them, less lets weak bits be looked at
    /// first, and the nearest be found by a graph
    #[arg(long, value_name = "SHARE", default_value = "1", value_parser = parse_share)]
    recall: f64,

    /// The memory that an index may take, as 500M or 4G
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    memory: Option<u64>,

    /// How many alternatives are shown
    #[arg(long, value_name = "N", default_value_t = 5)]
    alternatives: usize,
}

impl PlanCommand {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Outcome> {
        let file = Opened::new(&self.file)?.file;
        check_radius(self.radius.unwrap_or_default(), file.signatures().bits())?;
        let task = self.task();
        let plans = Planner::new(&file, &task, global)?.plans(&task);
        let rows = file.signatures().len();
        for (i, plan) in plans.iter().take(self.alternatives.saturating_add(1)).enumerate() {
            match global.json() {
                true => print(json_of(plan, rows))?,
                false if i == 0 => print(explanation(plan, &task, rows))?,
                false => print(format!("  instead: {}", line(plan, rows)))?,
            }
        }
        Ok(Outcome::Done)
    }

    fn task(&self) -> Task {
        Task {
            radius: self.radius.unwrap_or_default(),
            nearest: self.nearest.map(NonZeroUsize::get),
            batch: self.batch as usize,
            queries: self.queries,
            memory: self.memory,
            recall: self.recall,
        }
    }
}

fn explanation(plan: &Plan, task: &Task, rows: usize) -> String {
    format!("{}\n  {}", line(plan, rows), plan.why(task, rows))
}

fn json_of(plan: &Plan, rows: usize) -> Value {
    let mut value = serde_json::to_value(plan).unwrap_or_default();
    if let Choice::Tables(_, build) = plan.index {
        value["key_bits"] = json!(build.key_width);
        value["stored"] = json!(build.stored);
    }
    value["bytes_a_row"] = json!(plan.bytes as f64 / rows.max(1) as f64);
    value
}
