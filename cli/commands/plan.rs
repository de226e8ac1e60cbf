//! `lookalike plan`.

use std::path::PathBuf;

use clap::Args;
use lookalike::{
    SignatureFile,
    index::Queries,
    plan::{Choice, Costs, Plan, Sample, Task, plans},
};
use serde_json::{Value, json};

use super::{Global, Outcome};
use crate::{
    costs::costs,
    input::parse_bytes,
    output::{bytes, open_signatures, print},
};

/// Tell which index suits a file of signatures and a question, and why
///
/// Every index that could answer is priced: with what keys, rows and memory cost on this machine (measured once, in
/// about a second) and with a sample of the rows, which may be skewed. The cheapest comes first.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike plan crawl.sig --radius 3
  lookalike plan crawl.sig --radius 3 --memory 4G --queries 1000000
  lookalike plan crawl.sig --radius 3 --recall 0.98 --format json")]
pub(crate) struct PlanCommand {
    /// The signatures to search: .sig, .npy, .hex or .parquet
    file: PathBuf,

    /// Every document at most so many bits away is to be found
    #[arg(long, short, value_name = "BITS")]
    radius: u32,

    /// How many queries come together
    #[arg(long, value_name = "N", default_value = "256", value_parser = clap::value_parser!(u32).range(1..))]
    batch: u32,

    /// How many queries there will be in all, if the index is built for them alone
    #[arg(long, value_name = "N")]
    queries: Option<u64>,

    #[command(flatten)]
    bounds: Bounds,

    /// How many alternatives are shown
    #[arg(long, value_name = "N", default_value_t = 5)]
    alternatives: usize,
}

/// What an index may take and must give.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Bounds {
    /// The share of the documents to be found at least: 1 for all of them, less lets weak bits be looked at first
    #[arg(long, value_name = "SHARE", default_value = "1", value_parser = parse_share)]
    pub(crate) recall: f64,

    /// The memory that an index may take, as in 500M or 4G
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub(crate) memory: Option<u64>,
}

fn parse_share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if share > 0.0 && share <= 1.0 => Ok(share),
        _ => Err("write a share above 0 and at most 1, as in 0.98".into()),
    }
}

impl PlanCommand {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Outcome> {
        let file = open_signatures(&self.file)?;
        let task = Task {
            radius: self.radius,
            batch: self.batch as usize,
            queries: self.queries,
            memory: self.bounds.memory,
            recall: self.bounds.recall,
        };
        let costs = costs(global)?;
        let plans = plans_for(&costs, &file, &task)?;
        let rows = file.signatures().len();
        for (i, plan) in plans.iter().take(1 + self.alternatives).enumerate() {
            match global.json() {
                true => print(json_of(plan, rows))?,
                false if i == 0 => print(explanation(plan, &task, rows))?,
                false => print(format!("  instead: {}", line(plan, rows)))?,
            }
        }
        Ok(Outcome::Done)
    }
}

/// What could answer about a file, the best first. Its own rows are the sample of queries.
pub(crate) fn plans_for(
    costs: &Costs,
    file: &SignatureFile,
    task: &Task,
) -> lookalike::Result<Vec<Plan>> {
    let rows = file.signatures();
    let mut sample = Sample::of(rows)?;
    if let (true, Some(margins)) = (task.recall < 1.0, file.all_margins()) {
        sample.look_at(rows, Queries::with_margins(rows, margins)?, task.radius)?;
    }
    Ok(plans(costs, &sample, task))
}

fn explanation(plan: &Plan, task: &Task, rows: usize) -> String {
    let work = plan.work;
    let why = match plan.index {
        Choice::Scan => format!(
            "every one of the {rows} rows is compared: nothing else is cheaper for radius {}",
            task.radius
        ),
        Choice::Tables(..) => format!(
            "a query looks up {:.0} keys, meets about {:.1} rows and reads {:.0} lines of memory",
            work.probes, work.rows, work.lines
        ),
    };
    format!("{}\n  {why}", line(plan, rows))
}

/// A plan in a line.
pub(crate) fn line(plan: &Plan, rows: usize) -> String {
    let built = match plan.index {
        Choice::Scan => String::new(),
        Choice::Tables(_, build) => {
            let stored = build.stored.map_or(String::new(), |s| format!(", {} rows", s.name()));
            let each = plan.bytes as f64 / rows.max(1) as f64;
            format!(
                " (keys of {} bits{stored}; {}, {each:.1} a row; built in about {:.1} s)",
                build.key_width.unwrap_or(0),
                bytes(plan.bytes),
                plan.build_seconds
            )
        }
    };
    let recall = match plan.exact {
        true => "exact".to_owned(),
        false => format!("expected recall {:.3}", plan.expected_recall),
    };
    format!("{}{built}: {:.1} µs a query, {recall}", plan.index, plan.query_seconds * 1e6)
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
