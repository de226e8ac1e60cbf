//! Ids must tell documents apart.

use std::ops::ControlFlow;

use lookalike::dedup::sketches::SketchFile;
use rayon::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

use crate::{
    failure::hinted,
    input::{self, Sources},
    output::counted,
};

/// Refuses documents that share an id: nobody could tell which of them was removed.
///
/// `by_place` opens the input with documents named by their places, to tell where they are.
pub(crate) fn check_ids(
    sketches: &SketchFile,
    by_place: impl FnOnce() -> anyhow::Result<Sources>,
) -> anyhow::Result<()> {
    let mut hashes: Vec<(u64, u32)> = (0..sketches.len() as u32)
        .into_par_iter()
        .map(|row| (xxh3_64(sketches.id(row as usize).as_bytes()), row))
        .collect();
    hashes.par_sort_unstable();
    let same = |pair: &&[(u64, u32)]| {
        let id = |i: usize| sketches.id(pair[i].1 as usize);
        pair[0].0 == pair[1].0 && id(0) == id(1)
    };
    let twice: Vec<&[(u64, u32)]> = hashes.windows(2).filter(same).collect();
    let Some(first) = twice.iter().min_by_key(|pair| pair[0].1) else { return Ok(()) };
    let rows = [first[0].1 as usize, first[1].1 as usize];
    let places = by_place()
        .and_then(|sources| places(&sources, rows))
        .unwrap_or_else(|_| rows.map(|row| format!("document {}", row + 1)));
    let others = match twice.len() - 1 {
        0 => String::new(),
        others => format!(", and {} more", counted(others as u64, "document")),
    };
    Err(hinted(
        format!(
            "two documents have the id `{}`: {} and {}{others}",
            sketches.id(rows[0]),
            places[0],
            places[1]
        ),
        "ids must tell documents apart: choose another field with `--id-field`, or `--by-place` names them by file and line",
    ))
}

/// Where two documents are.
fn places(sources: &Sources, rows: [usize; 2]) -> anyhow::Result<[String; 2]> {
    let mut found = [String::new(), String::new()];
    let mut row = 0;
    input::run(
        sources,
        1,
        |_, chunk| sources.parse(chunk),
        |records| {
            for document in records.into_iter().flatten() {
                if let Some(i) = rows.iter().position(|&wanted| wanted == row) {
                    found[i] = document.id;
                }
                row += 1;
            }
            Ok(if row > rows[0].max(rows[1]) {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            })
        },
    )?;
    Ok(found)
}
