//! Clusters as users see them: numbered in the order of their keepers, with what there is to know of each.

use std::collections::HashMap;

use lookalike::dedup::Decision;

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
}
