//! Loading: a snapshot from the segments that are there, and from the store what they do not have.

use std::{ops::Range, path::Path};

use super::{
    part::{LivePart, Part, Rows, part_of},
    segment::{self, Name},
    snapshot::Snapshot,
    store::{End, Logged, Store},
};
use crate::{Error, Result, signature::words_of_bytes};

/// No log goes farther: databases have numbers with a sign.
const LAST_POSITION: u64 = i64::MAX as u64;

/// A snapshot of a store, and the segments that were not to be believed.
pub(super) struct Loaded {
    pub(super) snapshot: Snapshot,
    /// Why, of each.
    pub(super) refused: Vec<(Name, Error)>,
    /// How many records were read from the store.
    pub(super) read: u64,
}

/// Loads a snapshot.
pub(super) fn load(store: &mut dyn Store, folder: &Path) -> Result<Loaded> {
    let mut refused = Vec::new();
    loop {
        let end = store.end()?;
        let mut parts = open_segments(store, folder, end, &mut refused)?;
        let gaps = gaps(parts.iter().map(|live| &live.part.stretch));
        let (loaded, now) = read(store, &gaps, &mut parts)?;
        // Somebody purged in between: what a segment should be told is gone.
        if now.purged > parts.iter().map(|live| live.part.log).min().unwrap_or(now.purged) {
            continue;
        }
        let read = loaded.iter().map(|rows| rows.positions.len() as u64).sum();
        let mut snapshot = Snapshot::new(store.about());
        for mut rows in loaded.into_iter().filter(|rows| !rows.positions.is_empty()) {
            rows.stretch.end = rows.stretch.end.min(now.position + 1);
            rows.log = now.position;
            let part = Part::build(rows, snapshot.bits, snapshot.kept)?;
            parts.push(LivePart::new(part));
        }
        parts.sort_by_key(|live| live.part.stretch.start);
        snapshot.parts = parts;
        snapshot.position = now.position;
        return Ok(Loaded { snapshot, refused, read });
    }
}

/// The segments that go with the store.
fn open_segments(
    store: &mut dyn Store,
    folder: &Path,
    end: End,
    refused: &mut Vec<(Name, Error)>,
) -> Result<Vec<LivePart>> {
    let about = store.about().clone();
    let mut parts = Vec::new();
    for name in segment::list(folder).0 {
        if refused.iter().any(|(known, _)| *known == name) {
            continue;
        }
        if name.log < end.purged || name.log > end.position || name.stretch.end > end.position + 1 {
            let error = Error::damaged(&name.path, "is of another time than the store");
            refused.push((name, error));
            continue;
        }
        let record = |position| Ok(store.records(&[position], false)?.pop().flatten());
        match segment::open(&name, &about, about.index, record) {
            Ok(part) => parts.push(LivePart::new(part)),
            // Its writer has another one in its place by now.
            Err(_) if !name.path.exists() => {}
            Err(error) => refused.push((name, error)),
        }
    }
    Ok(parts)
}

/// The positions that no stretch has, in order; the last of them has no end.
fn gaps<'a>(stretches: impl Iterator<Item = &'a Range<u64>>) -> Vec<Range<u64>> {
    let (mut gaps, mut start) = (Vec::new(), 1);
    for stretch in stretches {
        if start < stretch.start {
            gaps.push(start..stretch.start);
        }
        start = stretch.end;
    }
    gaps.push(start..u64::MAX);
    gaps
}

/// Reads the records of the gaps, and notes in the parts what was removed since they were made.
fn read(
    store: &mut dyn Store,
    gaps: &[Range<u64>],
    parts: &mut [LivePart],
) -> Result<(Vec<Rows>, End)> {
    let mut loaded: Vec<Rows> = gaps.iter().map(|gap| Rows::new(gap.clone(), 0)).collect();
    let mut removed = Vec::new();
    // Where there are no segments, nobody has to be told what was removed.
    let since = parts.iter().map(|live| live.part.log).min().unwrap_or(LAST_POSITION);
    let mut at = 0;
    let end = store.read(gaps, since, &mut |logged| {
        match logged {
            Logged::Added { position, id, signature } => {
                while !loaded[at].stretch.contains(&position) {
                    at += 1;
                }
                loaded[at].push(position, id, words_of_bytes(signature));
            }
            Logged::Removed(position) => removed.push(position),
        }
        Ok(())
    })?;
    for position in removed {
        if let Some(part) = part_of(parts, position) {
            parts[part].remove(position);
        }
    }
    Ok((loaded, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::single_range_in_vec_init, reason = "one gap is what is meant")]
    fn gaps_are_what_is_between() {
        assert_eq!(gaps([].iter()), [1..u64::MAX]);
        assert_eq!(gaps([1..5, 5..9].iter()), [9..u64::MAX]);
        assert_eq!(gaps([3..5, 7..9].iter()), [1..3, 5..7, 9..u64::MAX]);
    }
}
