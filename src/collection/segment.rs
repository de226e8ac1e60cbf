//! Segments: parts in files beside the store, memory-mapped, so that a collection opens in no time. They are derived: one
//! that is missing, damaged or of another store is made anew.

use std::{
    ffi::OsStr,
    fs,
    ops::Range,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use bytemuck::cast_slice;
use serde::{Deserialize, Serialize};

use super::{
    Record,
    ids::Ids,
    kept::{Kept, Wanted},
    part::{Part, PartIndex},
    store::About,
};
use crate::{
    Error, Recipe, Result, Signatures,
    container::{Container, ContainerWriter},
    index::{GraphFile, IndexFile},
    signature::words_for,
};

const KIND: &str = "segment";
const SUFFIX: &str = "segment";
const INDEX_SUFFIX: &str = "idx";

/// What a segment says about itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Says {
    /// The collection that it is of, and the hash of its recipe.
    collection: String,
    recipe_hash: Option<String>,
    bits: u32,
    rows: u64,
    /// The positions of the log that it has the records of.
    stretch: Range<u64>,
    /// What was removed up to this position is not in it.
    log: u64,
    /// The last record that was there, by which it knows its store again.
    last: Anchor,
}

/// A record, and what it is known by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Anchor {
    position: u64,
    checksum: i64,
}

impl Anchor {
    pub(super) fn of(record: &Record) -> Self {
        Anchor { position: record.position, checksum: record.checksum() }
    }
}

/// A segment as its name tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) path: PathBuf,
    pub(super) stretch: Range<u64>,
    pub(super) log: u64,
}

impl Name {
    fn new(folder: &Path, stretch: &Range<u64>, log: u64) -> Self {
        let name = format!("{}-{}-{log}.{SUFFIX}", stretch.start, stretch.end);
        Name { path: folder.join(name), stretch: stretch.clone(), log }
    }

    /// That of a part.
    pub(super) fn of(folder: &Path, part: &Part) -> Self {
        Name::new(folder, &part.stretch, part.log)
    }

    fn parse(path: &Path) -> Option<Self> {
        if path.extension() != Some(OsStr::new(SUFFIX)) {
            return None;
        }
        let numbers = path.file_stem()?.to_str()?.split('-').map(|number| number.parse().ok());
        match numbers.collect::<Option<Vec<u64>>>()?[..] {
            [start, end, log] if start < end => {
                Some(Name { path: path.to_owned(), stretch: start..end, log })
            }
            _ => None,
        }
    }

    fn index(&self) -> PathBuf {
        self.path.with_extension(INDEX_SUFFIX)
    }

    /// Removes the files. What cannot be removed is in nobody's way.
    pub(super) fn delete(&self) {
        // The segment first: an index alone is not looked at.
        let _ = fs::remove_file(&self.path);
        let _ = fs::remove_file(self.index());
    }
}

/// The segments that a folder has, none overlapping another: the longest, and of those the latest. And the others.
pub(super) fn list(folder: &Path) -> (Vec<Name>, Vec<Name>) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<Name> = entries.filter_map(|entry| Name::parse(&entry.path())).collect();
    let length = |name: &Name| name.stretch.end - name.stretch.start;
    names.sort_by_key(|name| (std::cmp::Reverse((length(name), name.log)), name.stretch.start));
    let (mut chosen, mut others): (Vec<Name>, Vec<Name>) = (Vec::new(), Vec::new());
    for name in names {
        let (start, end) = (name.stretch.start, name.stretch.end);
        let apart = |other: &Name| end <= other.stretch.start || other.stretch.end <= start;
        match chosen.iter().all(apart) {
            true => chosen.push(name),
            false => others.push(name),
        }
    }
    chosen.sort_by_key(|name| name.stretch.start);
    (chosen, others)
}

/// Saves a part of which `last` is the last record that is there.
pub(super) fn save(folder: &Path, part: &Part, about: &About, last: &Record) -> Result<Name> {
    let name = Name::of(folder, part);
    // Whoever deletes the segments may delete their folder as well.
    fs::create_dir_all(folder).map_err(|error| Error::io(folder, error))?;
    // The index first: a segment that has its name is whole, with its index.
    match &part.index {
        PartIndex::Scan => {}
        PartIndex::Tables(tables) => tables.save(&name.index(), None)?,
        PartIndex::Graph(graph) => graph.save(&name.index(), &part.signatures, None)?,
    }
    let mut file = ContainerWriter::in_order(&name.path, KIND)?;
    let signatures = file.begin("signatures")?;
    file.write(signatures, cast_slice(part.signatures.words()))?;
    let positions = file.begin("positions")?;
    file.write(positions, cast_slice(part.positions()))?;
    let hashes = file.begin("id_hashes")?;
    file.write(hashes, cast_slice(part.ids.hashes.as_slice()))?;
    let id_rows = file.begin("id_rows")?;
    file.write(id_rows, cast_slice(part.ids.rows.as_slice()))?;
    file.finish(Says {
        collection: about.id.clone(),
        recipe_hash: about.recipe.as_ref().map(Recipe::hash),
        bits: about.bits,
        rows: part.len() as u64,
        stretch: part.stretch.clone(),
        log: part.log,
        last: Anchor::of(last),
    })?;
    Ok(name)
}

/// Opens a segment of a collection; the error tells why it is not to be believed. `record` reads one of the store.
pub(super) fn open(
    name: &Name,
    about: &About,
    kept: Kept,
    record: impl FnOnce(u64) -> Result<Option<Record>>,
) -> Result<Part> {
    let container: Container<Says> = Container::open(&name.path, KIND)?;
    let says = &container.about;
    let stale = |problem: &str| Err(Error::damaged(&name.path, problem));
    if (&says.collection, says.bits) != (&about.id, about.bits) {
        return stale("belongs to another collection");
    }
    if says.recipe_hash != about.recipe.as_ref().map(Recipe::hash) {
        return stale("has signatures of another recipe");
    }
    if (&says.stretch, says.log) != (&name.stretch, name.log) {
        return stale("is of another stretch of the log than its name says");
    }
    if record(says.last.position)?.as_ref().map(Anchor::of) != Some(says.last) {
        return stale("does not go with the records of the store");
    }
    let rows = usize::try_from(says.rows).unwrap_or(usize::MAX);
    let words = rows.checked_mul(words_for(about.bits));
    let Some(words) = words else { return stale("has more rows than fit into memory") };
    let checksum = container.checksum("signatures");
    let words = container.cells("signatures", words)?;
    let signatures = Signatures::from_mapped(about.bits, words, checksum)?;
    let positions = container.cells::<u64>("positions", rows)?;
    if !are_in_order(positions.as_slice(), &name.stretch) {
        return stale("has positions that are not in order");
    }
    let hashes = container.cells("id_hashes", rows)?;
    let ids = Ids { hashes, rows: container.cells("id_rows", rows)? };
    if !ids.are_right(rows) {
        return stale("has ids that are not in order");
    }
    Ok(Part {
        ids,
        stretch: name.stretch.clone(),
        log: name.log,
        index: open_index(name, &signatures, kept)?,
        signatures,
        positions,
        saved: OnceLock::from(name.clone()),
    })
}

fn are_in_order(positions: &[u64], stretch: &Range<u64>) -> bool {
    let inside =
        |position: Option<&u64>| position.is_none_or(|position| stretch.contains(position));
    let rising = positions.windows(2).all(|pair| pair[0] < pair[1]);
    rising && inside(positions.first()) && inside(positions.last())
}

/// The index of a segment: the one that the collection keeps, or the segment is made anew.
fn open_index(name: &Name, signatures: &Signatures, kept: Kept) -> Result<PartIndex> {
    let path = name.index();
    let other = || Err(Error::damaged(&path, "is not the index that the collection keeps"));
    match kept.index_of(signatures.len(), signatures.bits()) {
        Wanted::Scan => Ok(PartIndex::Scan),
        Wanted::Tables(method) => {
            let file = IndexFile::open(&path)?;
            match file.composition().method() == method {
                true => Ok(PartIndex::Tables(Box::new(file.tables(signatures.clone())?))),
                false => other(),
            }
        }
        Wanted::Graph(shape) => {
            let file = GraphFile::open(&path)?;
            match file.shape() == shape {
                true => Ok(PartIndex::Graph(Box::new(file.graph(signatures)?))),
                false => other(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_and_latest_segments_are_chosen() {
        let place = tempfile::tempdir().unwrap();
        let names = ["1-10-12", "1-10-15", "10-20-20", "1-5-9", "20-25-30", "x-1-2", "9-3-1"];
        for name in names {
            fs::write(place.path().join(name).with_extension(SUFFIX), "").unwrap();
        }
        let (chosen, others) = list(place.path());
        let stem = |name: &Name| name.path.file_stem().unwrap().to_str().unwrap().to_owned();
        assert_eq!(
            chosen.iter().map(stem).collect::<Vec<_>>(),
            ["1-10-15", "10-20-20", "20-25-30"]
        );
        assert_eq!(others.iter().map(stem).collect::<Vec<_>>(), ["1-10-12", "1-5-9"]);
        assert_eq!(list(&place.path().join("nowhere")), (Vec::new(), Vec::new()));
    }
}
