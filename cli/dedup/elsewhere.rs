//! What was there before: documents that look like one that was signed earlier, or that a collection has, are not new.

use std::{collections::BTreeMap, path::Path, slice};

use lookalike::{
    Recipe, SignatureFile, Signatures, Signer,
    collection::{Collection, Logged},
    dedup::{Decision, Dial, sketches::SketchFile},
    hamming::kernel,
    join::{JoinSettings, cross_join},
    recipe::{Scratch, SketchSettings},
    verify::{FeatureSet, Verify, jaccard_of_distance},
};
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::{
    collection, commands::Global, failure::hinted, input::fingerprint_of, output::open_signatures,
};

/// Of so many documents nearest by signature the texts are compared, until one is alike.
const MOST_COMPARED: usize = 32;

/// Where documents were before.
pub(crate) enum Against {
    File(SignatureFile),
    Collection(Collection),
}

impl Against {
    /// Opens signatures of the recipe. A collection that is to be added to is locked from here on.
    pub(crate) fn open(
        path: &Path,
        recipe: &Recipe,
        add: bool,
        global: &Global,
    ) -> anyhow::Result<Self> {
        if !Collection::is_in(path) {
            return open_file(path, recipe).map(Against::File);
        }
        let collection = match add {
            true => collection::open(path, global)?,
            false => collection::open_reader(path, global)?,
        };
        let with = collection.about().recipe.as_ref();
        if with.is_some_and(|with| with.check_same(recipe).is_ok()) {
            return Ok(Against::Collection(collection));
        }
        let with =
            with.map_or("of no recipe".to_owned(), |with| format!("by recipe `{}`", with.name));
        let (path, name) = (path.display(), &recipe.name);
        Err(hinted(
            format!("{path} has signatures {with}, but `dedup` signs by recipe `{name}`"),
            format!("`lookalike create COLLECTION --recipe {name}` makes a collection that fits"),
        ))
    }

    /// What the result depends on.
    pub(crate) fn fingerprint(&self, path: &Path) -> Value {
        match self {
            Against::File(_) => fingerprint_of(&path.to_string_lossy(), path),
            Against::Collection(collection) => {
                json!([path, collection.about().id, collection.snapshot().position()])
            }
        }
    }

    pub(crate) fn collection(&self) -> Option<&Collection> {
        match self {
            Against::File(_) => None,
            Against::Collection(collection) => Some(collection),
        }
    }
}

fn open_file(path: &Path, recipe: &Recipe) -> anyhow::Result<SignatureFile> {
    let old = open_signatures(path);
    let same =
        |old: &SignatureFile| old.recipe().is_some_and(|with| with.check_same(recipe).is_ok());
    match old {
        Ok(old) if same(&old) => Ok(old),
        Err(error) if !path.exists() => Err(error),
        _ => {
            let name = &recipe.name;
            let problem = format!("{} has no signatures by recipe `{name}`", path.display());
            let hint = format!("`lookalike sign INPUT... --recipe {name} -o FILE.sig` makes them");
            Err(hinted(problem, hint))
        }
    }
}

/// What makes a document one that was there before.
pub(crate) struct Alike<'a> {
    pub(crate) sketches: &'a SketchFile,
    pub(crate) signer: &'a Signer,
    /// Where there are texts: candidates, and what decides.
    pub(crate) dial: Dial,
    /// Where there are none: nothing but the distance decides, so it must not be generous.
    pub(crate) radius: u32,
    pub(crate) memory: u64,
}

/// A document that was there before.
#[derive(Debug)]
struct Earlier {
    id: String,
    distance: u32,
    similarity: f64,
    /// Whether its text was looked at.
    compared: bool,
}

/// The documents that were there before, by row.
#[derive(Debug, Default)]
pub(crate) struct Elsewhere {
    /// The ids of the earlier documents.
    pub(crate) ids: BTreeMap<u32, String>,
    found: BTreeMap<u32, Earlier>,
}

impl Elsewhere {
    /// Finds the documents that are alike one that was there before; the nearest one is taken.
    pub(crate) fn find(&mut self, alike: &Alike<'_>, against: &Against) -> anyhow::Result<()> {
        let found = match against {
            Against::File(old) => alike.in_file(old)?,
            Against::Collection(old) => alike.in_collection(old)?,
        };
        for (row, earlier) in found {
            let known = self.found.get(&row);
            if known.is_none_or(|known| earlier.distance < known.distance) {
                self.ids.insert(row, earlier.id.clone());
                self.found.insert(row, earlier);
            }
        }
        Ok(())
    }

    /// They are not kept.
    pub(crate) fn decide(&self, decisions: &mut [Decision]) {
        for (&row, &Earlier { distance, similarity, .. }) in &self.found {
            let similarity = similarity as f32;
            decisions[row as usize] =
                Decision { keeper: Decision::ELSEWHERE, distance, similarity };
        }
    }

    /// Each of them with the id, the distance and the similarity of the earlier one.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (u32, &str, u32, f64)> {
        self.found
            .iter()
            .map(|(&row, found)| (row, found.id.as_str(), found.distance, found.similarity))
    }

    /// Of how many of them the texts were compared.
    pub(crate) fn compared(&self) -> u64 {
        self.found.values().filter(|earlier| earlier.compared).count() as u64
    }
}

/// Distances and rows of what was there before, nearest first.
type Near = Vec<(u32, u32)>;

impl Alike<'_> {
    fn in_file(&self, old: &SignatureFile) -> anyhow::Result<Vec<(u32, Earlier)>> {
        let near = self.near(old.signatures(), self.radius, 1)?.into_iter();
        let found = near.map(|(row, near)| {
            let (distance, earlier) = near[0];
            (row, self.by_signature(old.id(earlier as usize).into_owned(), distance))
        });
        Ok(found.collect())
    }

    /// A collection that keeps texts is asked for them.
    fn in_collection(&self, old: &Collection) -> anyhow::Result<Vec<(u32, Earlier)>> {
        let (signatures, positions) = signatures_of(old)?;
        let texts = old.about().keeps.texts && self.dial.verify != Verify::None;
        let (radius, most) = match texts {
            true => (self.dial.radius, MOST_COMPARED),
            false => (self.radius, 1),
        };
        let near: Vec<(u32, Near)> = self.near(&signatures, radius, most)?.into_iter().collect();
        let first = |scratch: &mut Scratch, (row, near): &(u32, Near)| {
            for &(distance, earlier) in near {
                let at = [positions[earlier as usize]];
                let record = old.with_reader(|store| store.records(&at, texts))?.pop().flatten();
                let Some(record) = record else { continue };
                let found = match &record.text {
                    Some(text) if texts => {
                        let similarity = self.similarity(*row, text, scratch)?;
                        let of = |similarity| Earlier {
                            id: record.id,
                            distance,
                            similarity,
                            compared: true,
                        };
                        similarity.map(of)
                    }
                    _ => (distance <= self.radius).then(|| self.by_signature(record.id, distance)),
                };
                if let Some(found) = found {
                    return Ok(Some((*row, found)));
                }
            }
            Ok(None)
        };
        let found = near.par_iter().map_init(Scratch::default, first);
        let found: lookalike::Result<Vec<_>> = found.filter_map(Result::transpose).collect();
        Ok(found?)
    }

    /// How alike a document is to a text, if it is enough.
    fn similarity(
        &self,
        row: u32,
        text: &str,
        scratch: &mut Scratch,
    ) -> lookalike::Result<Option<f64>> {
        let settings = SketchSettings { bands: None, weights: self.dial.verify.needs_weights() };
        let Some(sketch) = self.signer.sketch(text, settings, scratch) else { return Ok(None) };
        let features = FeatureSet { elements: sketch.set, weights: sketch.weights };
        Ok(self.dial.verify.alike(kernel()?, self.sketches.features(row as usize), features))
    }

    fn by_signature(&self, id: String, distance: u32) -> Earlier {
        let similarity = jaccard_of_distance(distance, self.sketches.bits());
        Earlier { id, distance, similarity, compared: false }
    }

    /// The so many nearest of the earlier signatures within the radius of each document.
    fn near(
        &self,
        old: &Signatures,
        radius: u32,
        most: usize,
    ) -> anyhow::Result<BTreeMap<u32, Near>> {
        let mut found: BTreeMap<u32, Near> = BTreeMap::new();
        if old.is_empty() {
            return Ok(found);
        }
        let sketches = self.sketches;
        let new = Signatures::from_words(sketches.bits(), sketches.words().to_vec())?;
        let settings = JoinSettings { memory: self.memory / 2, ..JoinSettings::new(radius) };
        cross_join(&new, old, &settings, |pairs| {
            for pair in pairs.iter().filter(|pair| sketches.facts()[pair.a as usize].signed == 1) {
                let near = found.entry(pair.a).or_default();
                let one = (pair.distance, pair.b);
                let at = near.partition_point(|other| *other < one);
                if at < most {
                    near.insert(at, one);
                    near.truncate(most);
                }
            }
            Ok(())
        })?;
        Ok(found)
    }
}

/// All signatures of a collection, and the positions of their records.
fn signatures_of(collection: &Collection) -> anyhow::Result<(Signatures, Vec<u64>)> {
    let (mut bytes, mut positions) = (Vec::new(), Vec::new());
    let mut each = |logged: Logged<'_>| {
        if let Logged::Added { position, signature, .. } = logged {
            positions.push(position);
            bytes.extend_from_slice(signature);
        }
        Ok(())
    };
    // What was removed is not asked for.
    let (all, removed_after) = (1..u64::MAX, i64::MAX as u64);
    collection.with_reader(|store| store.read(slice::from_ref(&all), removed_after, &mut each))?;
    Ok((Signatures::from_bytes(collection.about().bits, &bytes)?, positions))
}
