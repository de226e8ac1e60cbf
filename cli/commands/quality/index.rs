//! An index scored against the scan, which is never wrong.

use std::path::Path;

use clap::Args;
use lookalike::{
    SignatureFile, Signatures,
    index::{Answers, Graph, Index, Issl, Neighbor, Permuted, Queries, Scan, Tables},
    quality::{cdr, neighbors_found},
    search::AnyIndex,
};
use serde_json::json;

use super::{Global, Outcome, score_json};
use crate::{
    failure::hinted,
    index::{Choice, Task, Wanted, choose},
    output::{open_signatures, print},
    planner::Planner,
};

/// The same permutations as those of `search`.
const SEED: u64 = 1;

/// Which index, and what it is asked.
#[derive(Debug, Args)]
#[command(next_help_heading = "Index")]
pub(super) struct IndexQuality {
    /// The index to score, as for `search`: pieces, blocks, multi, psm, permuted, graph, issl, with or
    /// without numbers
    #[arg(long, value_name = "METHOD", requires = "file")]
    index: Option<Wanted>,

    /// Ask for every row at most so many bits away: recall is the share of them that is found
    #[arg(long, short, value_name = "BITS", requires = "index", conflicts_with = "nearest")]
    radius: Option<u32>,

    /// Ask for the so many nearest rows: CDR is how near they are, beside the nearest there are
    #[arg(long, short = 'k', value_name = "K", requires = "index", value_parser = clap::value_parser!(u16).range(1..))]
    nearest: Option<u16>,

    /// So many rows of the file are queries, evenly from all of it
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    queries: u32,
}

impl IndexQuality {
    pub(super) fn run(&self, path: &Path, global: &Global) -> anyhow::Result<Outcome> {
        let file = open_signatures(path)?;
        let Some(wanted) = self.index else {
            let problem = format!("{}: which index is to be scored?", path.display());
            return Err(hinted(problem, "say it with `--index`, as in `--index psm --radius 3`"));
        };
        let (index, name) = self.build(wanted, &file, global)?;
        let asked = Asked::evenly(&file, self.queries as usize)?;
        let scan = Scan::new(file.signatures())?;
        let (found, truth) = (self.ask(&*index, &asked)?, self.ask(&scan, &asked)?);
        let bits = file.signatures().bits();
        let score = neighbors_found(&found, &truth);
        let cdr = self.nearest.map(|k| cdr(&found, &truth, usize::from(k), bits));
        let mut line = score_json(&score);
        line["index"] = name.clone().into();
        line["queries"] = asked.rows.len().into();
        line["neighbors"] = score.wanted.into();
        line["found"] = score.both.into();
        line["cdr"] = json!(cdr);
        if global.json() {
            print(line)?;
            return Ok(Outcome::Done);
        }
        let (low, high) = score.recall_interval();
        let mut text = format!(
            "index            {name}\nqueries          {}\nrecall           {:.4}   ({low:.4} to {high:.4})",
            asked.rows.len(),
            score.recall()
        );
        text += &format!("\nneighbors        {} found of {}", score.both, score.wanted);
        if let (Some(cdr), Some(k)) = (cdr, self.nearest) {
            text += &format!("\nCDR@{k:<12} {cdr:.4}");
        }
        print(text)?;
        Ok(Outcome::Done)
    }

    /// The index; it need not be exact, as that is the question.
    fn build<'a>(
        &self,
        wanted: Wanted,
        file: &'a SignatureFile,
        global: &Global,
    ) -> anyhow::Result<(AnyIndex<'a>, String)> {
        let rows = file.signatures();
        let task = Task {
            bits: rows.bits(),
            rows: rows.len(),
            radius: self.radius,
            nearest: None,
            recall: 1.0,
            memory: None,
            key_bits: None,
            stored: None,
            queries: Some(self.queries.into()),
        };
        let plans = |task: &_| Ok(Planner::new(file, task, global)?.plans(task));
        Ok(match choose(wanted, &task, plans)?.choice {
            Choice::Scan => (Box::new(Scan::new(rows)?), "scan".to_owned()),
            Choice::Tables(method, build) => {
                (Box::new(Tables::build(rows, method, build)?), method.to_string())
            }
            Choice::Permuted(method) => {
                let index = Permuted::build(rows, method.orders, method.walks, SEED)?;
                (Box::new(index), method.to_string())
            }
            Choice::Graph(shape) => (Box::new(Graph::build(rows, shape, SEED)?), shape.to_string()),
            Choice::Issl(width) => {
                let index = Issl::build(rows, width)?;
                let name = format!("issl-{}", index.width());
                (Box::new(index), name)
            }
        })
    }

    /// The answers to all queries, without the rows that the queries are.
    fn ask(&self, index: &dyn Index, asked: &Asked) -> anyhow::Result<Answers> {
        let queries = match asked.margins.is_empty() {
            true => (&asked.signatures).into(),
            false => Queries::with_margins(&asked.signatures, &asked.margins)?,
        };
        let mut found = Answers::new();
        let k = self.nearest.map_or(10, usize::from);
        match self.radius {
            Some(radius) => index.within(queries, radius, &mut found)?,
            // One more, as the query itself is among them.
            None => index.nearest(queries, k + 1, &mut found)?,
        };
        let mut others = Answers::new();
        for (answer, &row) in found.iter().zip(&asked.rows) {
            let other = answer.iter().filter(|neighbor| neighbor.row != row).copied();
            let most = if self.radius.is_some() { usize::MAX } else { k };
            others.push(&other.take(most).collect::<Vec<Neighbor>>());
        }
        Ok(others)
    }
}

/// The queries, and the rows that they are.
struct Asked {
    signatures: Signatures,
    /// Those of all queries, or of none.
    margins: Vec<u8>,
    rows: Vec<u32>,
}

impl Asked {
    fn evenly(file: &SignatureFile, queries: usize) -> anyhow::Result<Self> {
        let all = file.signatures().len();
        let queries = queries.min(all);
        let mut signatures = Signatures::new(file.signatures().bits())?;
        let rows: Vec<u32> = (0..queries).map(|i| (i * all / queries) as u32).collect();
        let mut margins = Vec::new();
        for &row in &rows {
            signatures.push_row_of(file.signatures(), row as usize)?;
            margins.extend(file.margins(row as usize).into_iter().flatten());
        }
        Ok(Asked { signatures, margins, rows })
    }
}
