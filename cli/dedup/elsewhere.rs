//! What was there before: documents that look like one that was signed earlier are not new.

use std::{collections::BTreeMap, path::Path};

use lookalike::{
    Recipe, SignatureFile, Signatures,
    dedup::{Decision, sketches::SketchFile},
    join::{JoinSettings, cross_join},
    verify::jaccard_of_distance,
};

use crate::{failure::hinted, output::open_signatures};

/// The documents that an earlier collection has, by row.
#[derive(Debug, Default)]
pub(crate) struct Elsewhere {
    /// The ids of the earlier documents.
    pub(crate) ids: BTreeMap<u32, String>,
    distances: BTreeMap<u32, u32>,
    bits: u32,
}

impl Elsewhere {
    /// Opens signatures of the recipe.
    pub(crate) fn open(path: &Path, recipe: &Recipe) -> anyhow::Result<SignatureFile> {
        let old = open_signatures(path);
        let same =
            |old: &SignatureFile| old.recipe().is_some_and(|with| with.check_same(recipe).is_ok());
        match old {
            Ok(old) if same(&old) => Ok(old),
            Err(error) if !path.exists() => Err(error),
            _ => {
                let problem =
                    format!("{} has no signatures by recipe `{}`", path.display(), recipe.name);
                let name = &recipe.name;
                let hint =
                    format!("`lookalike sign INPUT... --recipe {name} -o FILE.sig` makes them");
                Err(hinted(problem, hint))
            }
        }
    }

    /// Finds the documents that are near one of a signature file; the nearest one is taken.
    pub(crate) fn find(
        &mut self,
        sketches: &SketchFile,
        path: &Path,
        recipe: &Recipe,
        radius: u32,
        memory: u64,
    ) -> anyhow::Result<()> {
        let old = Elsewhere::open(path, recipe)?;
        self.bits = sketches.bits();
        let new = Signatures::from_words(self.bits, sketches.words().to_vec())?;
        let settings = JoinSettings { memory: memory / 2, ..JoinSettings::new(radius) };
        cross_join(&new, old.signatures(), &settings, |pairs| {
            for pair in pairs.iter().filter(|pair| sketches.facts()[pair.a as usize].signed == 1) {
                let nearest =
                    self.distances.get(&pair.a).is_none_or(|&known| pair.distance < known);
                if nearest {
                    self.distances.insert(pair.a, pair.distance);
                    self.ids.insert(pair.a, old.id(pair.b as usize).into_owned());
                }
            }
            Ok(())
        })?;
        Ok(())
    }

    /// They are not kept.
    pub(crate) fn decide(&self, decisions: &mut [Decision]) {
        for (&row, &distance) in &self.distances {
            let similarity = jaccard_of_distance(distance, self.bits) as f32;
            decisions[row as usize] =
                Decision { keeper: Decision::ELSEWHERE, distance, similarity };
        }
    }
}
