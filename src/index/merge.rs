//! Answers of several indexes over parts of the rows, as one.

use super::{Answers, Neighbor};

/// Merges the answers to the same queries by indexes over parts of the rows: each with the number of the part's first row.
/// Nearest first, ties by row; the first `most` of each query.
///
/// # Panics
///
/// If the parts do not answer equally many queries.
pub fn merge(parts: &[(u32, &Answers)], most: usize) -> Answers {
    let queries = parts.first().map_or(0, |(_, answers)| answers.len());
    assert!(parts.iter().all(|(_, answers)| answers.len() == queries), "the same queries");
    let (mut merged, mut neighbors) = (Answers::new(), Vec::new());
    for query in 0..queries {
        neighbors.clear();
        for (start, answers) in parts {
            let moved = answers.of(query).iter();
            neighbors.extend(moved.map(|of| Neighbor { row: start + of.row, ..*of }));
        }
        neighbors.sort_unstable_by_key(|neighbor| (neighbor.distance, neighbor.row));
        neighbors.truncate(most);
        merged.push(&neighbors);
    }
    merged
}
