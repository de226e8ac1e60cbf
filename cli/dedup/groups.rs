//! Clusters as users see them: numbered in the order of their keepers, with what there is to know of each.

use std::{
    collections::HashMap,
    io::{BufWriter, Write},
    path::Path,
};

use anyhow::Context;
use lookalike::{
    dedup::{Decision, sketches::SketchFile},
    partial::Partial,
};
use serde_json::json;

use super::write::rounded;

/// All clusters of two or more documents.
pub(crate) struct Groups {
    /// The rows of each, its keeper first, the others in the order of the input.
    pub(crate) members: Vec<Vec<u32>>,
    numbers: HashMap<u32, usize>,
}

impl Groups {
    pub(crate) fn new(decisions: &[Decision]) -> Self {
        let here = |(row, d): &(usize, &Decision)| {
            d.keeper as usize != *row && d.keeper != Decision::ELSEWHERE
        };
        let removed = || decisions.iter().enumerate().filter(here);
        let mut keepers: Vec<u32> = removed().map(|(_, decision)| decision.keeper).collect();
        keepers.sort_unstable();
        keepers.dedup();
        let numbers: HashMap<u32, usize> =
            keepers.iter().enumerate().map(|(number, &keeper)| (keeper, number)).collect();
        let mut members: Vec<Vec<u32>> = keepers.into_iter().map(|keeper| vec![keeper]).collect();
        for (row, decision) in removed() {
            members[numbers[&decision.keeper]].push(row as u32);
        }
        Groups { members, numbers }
    }

    /// The number of the cluster with this keeper, if it has other members.
    pub(crate) fn number_of(&self, keeper: u32) -> Option<usize> {
        self.numbers.get(&keeper).copied()
    }

    /// Writes a line for each member of each cluster.
    pub(crate) fn write(
        &self,
        path: &Path,
        sketches: &SketchFile,
        decisions: &[Decision],
    ) -> anyhow::Result<()> {
        let name = || path.display().to_string();
        let file = Partial::create(path).with_context(name)?;
        let mut out = BufWriter::with_capacity(1 << 20, file);
        for (number, rows) in self.members.iter().enumerate() {
            for &row in rows {
                let Decision { keeper, distance, similarity } = decisions[row as usize];
                let line = json!({
                    "id": sketches.id(row as usize), "cluster": number, "keeper": sketches.id(keeper as usize),
                    "distance": distance, "similarity": rounded(similarity),
                });
                writeln!(out, "{line}").with_context(name)?;
            }
        }
        out.into_inner()
            .map_err(|error| error.into_error())
            .with_context(name)?
            .complete()
            .with_context(name)
    }
}
