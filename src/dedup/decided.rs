//! Decisions on disk: what was decided need not be decided again.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Checked, Counts, Decision, Deduplicated};
use crate::{
    Result,
    container::{Container, ContainerWriter},
};

const KIND: &str = "decisions";
const NAMES: [&str; 3] = ["keepers", "distances", "similarities"];

#[derive(Debug, Serialize, Deserialize)]
struct About {
    rows: usize,
    counts: Counts,
    checked: Checked,
    chains: Vec<(u32, u32)>,
}

impl Deduplicated {
    /// Writes it all to a file.
    pub fn save(&self, path: &Path) -> Result<()> {
        let mut file = ContainerWriter::in_order(path, KIND)?;
        let decisions = || self.decisions.iter();
        let columns = [
            decisions().map(|d| d.keeper).collect::<Vec<u32>>(),
            decisions().map(|d| d.distance).collect(),
            decisions().map(|d| d.similarity.to_bits()).collect(),
        ];
        for (name, column) in NAMES.into_iter().zip(&columns) {
            let section = file.begin(name)?;
            file.write(section, bytemuck::cast_slice(column))?;
        }
        let Deduplicated { counts, checked, chains, .. } = self.clone();
        file.finish(About { rows: self.decisions.len(), counts, checked, chains })
    }

    /// Reads what was written, if it is whole.
    pub fn open(path: &Path) -> Result<Self> {
        let file: Container<About> = Container::open(path, KIND)?;
        let rows = file.about.rows;
        let keepers = file.cells::<u32>("keepers", rows)?;
        let distances = file.cells::<u32>("distances", rows)?;
        let similarities = file.cells::<u32>("similarities", rows)?;
        let decision = |row: usize| Decision {
            keeper: keepers.as_slice()[row],
            distance: distances.as_slice()[row],
            similarity: f32::from_bits(similarities.as_slice()[row]),
        };
        let decisions = (0..rows).map(decision).collect();
        let About { counts, checked, chains, .. } = file.about;
        Ok(Deduplicated { decisions, counts, checked, chains })
    }
}
