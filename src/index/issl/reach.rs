//! How far a search goes.

use serde::{Deserialize, Serialize};

/// How far a search for the nearest goes: which lists it visits, and how many rows it compares in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reach {
    /// As published: in each slice the lists of all values within some errors.
    Within {
        /// Values with more errors than this are not looked at.
        expansion: u32,
        /// Rows that are first met with more errors than this are let go; those already met still gain.
        admission: u32,
        /// So many of the rows with the highest scores are compared with the query.
        reranked: usize,
    },
    /// The likeliest lists of all slices, by the margins of the query.
    Weakest {
        /// At most so many lists.
        lists: usize,
        /// So many of the rows with the highest scores are compared with the query.
        reranked: usize,
    },
}

impl Reach {
    /// How many rows are compared with the query.
    pub fn reranked(self) -> usize {
        match self {
            Reach::Within { reranked, .. } | Reach::Weakest { reranked, .. } => reranked,
        }
    }
}

/// As many as the paper compares in the end.
pub(super) const RERANKED_OF_THE_PAPER: usize = 30;
/// As many as are worth it: the cost of one more bit of expansion is many times theirs.
pub(super) const RERANKED: usize = 1000;

/// Steps of rising effort, with margins or without.
pub(super) fn ladder(slices: usize, width: u32, margins: bool) -> Vec<Reach> {
    match margins {
        true => {
            let lists = (1..=12).map(|doublings| slices << doublings);
            lists.map(|lists| Reach::Weakest { lists, reranked: RERANKED }).collect()
        }
        false => {
            let steps = (0..=4).flat_map(|expansion: u32| {
                (expansion.saturating_sub(1)..=expansion)
                    .map(move |admission| (expansion, admission))
            });
            let steps = steps.filter(|&(expansion, _)| expansion < width);
            let reach =
                |(expansion, admission)| Reach::Within { expansion, admission, reranked: RERANKED };
            steps.map(reach).collect()
        }
    }
}
