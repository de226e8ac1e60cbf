//! Examples for the report: removed documents beside their keepers.

use std::{collections::BTreeMap, ops::ControlFlow};

use lookalike::{
    Document,
    dedup::{Decision, sketches::SketchFile},
};

use super::{
    report::Example,
    write::{planned, rounded},
};
use crate::input::{self, Sources};

/// How many chunks of the input are looked at.
const CHUNKS: usize = 64;
const EXAMPLES: usize = 12;

/// Some removed documents with their keepers, from the beginning of the input: nobody waits for examples.
pub(crate) fn examples(
    sketches: &SketchFile,
    decisions: &[Decision],
    sources: &Sources,
    threads: usize,
) -> anyhow::Result<Vec<Example>> {
    let plan = planned(sketches.records());
    let rows = plan.get(CHUNKS).map_or(sketches.len(), |chunk| chunk.first_row() as usize);
    let near = |row: &usize| {
        let decision = decisions[*row];
        decision.keeper as usize != *row
            && (decision.keeper as usize) < rows
            && decision.similarity < 1.0
    };
    let candidates: Vec<usize> = (0..rows).filter(near).collect();
    let step = candidates.len().div_ceil(EXAMPLES).max(1);
    let chosen: Vec<usize> = candidates.into_iter().step_by(step).collect();
    let mut texts: BTreeMap<usize, Option<Document>> = BTreeMap::new();
    for &row in &chosen {
        texts.insert(row, None);
        texts.insert(decisions[row].keeper as usize, None);
    }
    let wanted: Vec<bool> = (0..plan.len().min(CHUNKS))
        .map(|number| {
            let first = plan[number].first_row() as usize;
            let end =
                plan.get(number + 1).map_or(sketches.len(), |chunk| chunk.first_row() as usize);
            texts.range(first..end).next().is_some()
        })
        .collect();
    let work = |number: usize, chunk| match wanted.get(number) {
        Some(true) => (number, sources.parse(chunk)),
        _ => (number, Vec::new()),
    };
    input::run(sources, threads, work, |(number, records)| {
        let Some(chunk) = plan.get(number).filter(|_| number < CHUNKS) else {
            return Ok(ControlFlow::Break(()));
        };
        let first = chunk.first_row() as usize;
        for (i, document) in records.into_iter().flatten().enumerate() {
            if let Some(text) = texts.get_mut(&(first + i)) {
                *text = Some(document);
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let example = |&row: &usize| {
        let Decision { keeper, distance, similarity } = decisions[row];
        let (removed, kept) =
            (texts.get(&row)?.as_ref()?, texts.get(&(keeper as usize))?.as_ref()?);
        Some(Example {
            removed: removed.id.clone(),
            keeper: kept.id.clone(),
            distance,
            similarity: rounded(similarity),
            removed_text: shortened(&removed.text),
            keeper_text: shortened(&kept.text),
        })
    };
    Ok(chosen.iter().filter_map(example).collect())
}

/// The start of a long text.
fn shortened(text: &str) -> String {
    const MOST: usize = 2000;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
