//! Signing in parts, on several machines that share the output folder.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;
use lookalike::dedup::sketches::{SketchFile, SketchWriter};

use super::sign::SignedInput;
use crate::failure::hinted;

/// What the sketches of a part are called; parts are counted from 0.
pub(crate) fn part_name(part: usize, parts: usize) -> String {
    format!("part-{}-of-{parts}.sketches", part + 1)
}

/// The parts that are there, in order; none if the input was not signed in parts.
pub(crate) fn parts_in(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let name = || folder.display().to_string();
    let mut parts = None;
    for entry in fs::read_dir(folder).with_context(name)? {
        let file = entry.with_context(name)?.file_name();
        let of =
            file.to_str().and_then(|file| file.strip_prefix("part-")?.strip_suffix(".sketches"));
        if let Some((_, n)) = of.and_then(|of| of.split_once("-of-")) {
            parts = n.parse::<usize>().ok();
        }
    }
    let Some(parts) = parts else { return Ok(Vec::new()) };
    let paths: Vec<PathBuf> = (0..parts).map(|part| folder.join(part_name(part, parts))).collect();
    match paths.iter().position(|path| !path.exists()) {
        None => Ok(paths),
        Some(missing) => Err(hinted(
            format!("part {} of {parts} is not signed yet", missing + 1),
            format!(
                "sign it with `--part {}/{parts}`, or say `--restart` to sign everything here",
                missing + 1
            ),
        )),
    }
}

/// Puts the parts together in the order of the input: its chunks went to the parts in turn.
pub(crate) fn merge_parts(paths: &[PathBuf], output: &Path) -> anyhow::Result<()> {
    let parts: Vec<SketchFile> =
        paths.iter().map(|path| SketchFile::open(path)).collect::<Result<_, _>>()?;
    let mut whole = SignedInput::default();
    let mut numbers: HashMap<String, u32> = HashMap::new();
    let mut renumbered = Vec::new();
    for part in &parts {
        let input: SignedInput = serde_json::from_value(part.about.clone())?;
        whole.documents += input.documents;
        whole.unsigned += input.unsigned;
        whole.skipped += input.skipped;
        whole.without_field += input.without_field;
        whole.without_source += input.without_source;
        whole.text_bytes += input.text_bytes;
        whole.seconds += input.seconds;
        let next = |source: String| {
            let next = numbers.len() as u32;
            *numbers.entry(source).or_insert(next)
        };
        renumbered.push(input.sources.into_iter().map(next).collect::<Vec<u32>>());
    }
    whole.sources = vec![String::new(); numbers.len()];
    numbers.into_iter().for_each(|(source, n)| whole.sources[n as usize] = source);
    let first = &parts[0];
    let mut writer =
        SketchWriter::create(output, first.bits(), first.key_count(), first.has_weights())?;
    let plans: Vec<_> = parts.iter().map(|part| super::write::planned(part.records())).collect();
    let chunks = plans.iter().map(Vec::len).max().unwrap_or(0);
    for chunk in 0..chunks {
        // Every part has all chunks; those of the others are empty in it.
        let part = chunk % parts.len();
        let Some(planned) = plans[part].get(chunk) else { continue };
        writer.append_rows(&parts[part], planned.rows(), &renumbered[part])?;
        writer.note(&planned.noted())?;
    }
    writer.finish(serde_json::to_value(&whole)?)?;
    Ok(())
}
