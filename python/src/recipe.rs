//! Recipes.

use std::path::PathBuf;

use lookalike::{Recipe as Engine, Signer, features::terms::TermStatistics, recipe::SignatureKind};
use pyo3::prelude::*;

use crate::error::{OrRaise, wrong};

/// A recipe.
#[pyclass(frozen, module = "lookalike._engine")]
pub(crate) struct Recipe(pub(crate) Engine);

#[pymethods]
impl Recipe {
    /// The recipe of a name.
    #[staticmethod]
    fn named(name: &str) -> PyResult<Self> {
        Engine::named(name).map(Recipe).ok_or_else(|| {
            let names = Engine::NAMED.map(|(name, _)| name).join(", ");
            wrong(format!("there is no recipe `{name}`; there are {names}"))
        })
    }

    /// A recipe as its JSON says; what it does not say is as in recipe `text`.
    #[staticmethod]
    fn from_json(json: &str) -> PyResult<Self> {
        let recipe: Engine = serde_json::from_str(json)
            .map_err(|error| wrong(format!("this is not a recipe: {error}")))?;
        recipe.check().or_raise()?;
        Ok(Recipe(recipe))
    }

    /// A recipe from its file.
    #[staticmethod]
    fn read(path: PathBuf) -> PyResult<Self> {
        Engine::read(&path).or_raise().map(Recipe)
    }

    /// The recipes that have names, with a line about each.
    #[staticmethod]
    fn names() -> Vec<(&'static str, &'static str)> {
        Engine::NAMED.to_vec()
    }

    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    #[getter]
    fn bits(&self) -> u32 {
        self.0.signature.bits
    }

    #[getter]
    fn kind(&self) -> &'static str {
        match self.0.signature.kind {
            SignatureKind::SimHash => "simhash",
            SignatureKind::TopSig => "topsig",
            SignatureKind::MinHash => "minhash",
        }
    }

    #[getter]
    fn hash(&self) -> String {
        self.0.hash()
    }

    #[getter]
    fn json(&self) -> String {
        self.0.to_json()
    }

    /// How alike documents are whose signatures are so many bits apart.
    fn similarity(&self, distance: u32) -> f64 {
        let bits = self.0.signature.bits;
        lookalike::verify::similarity_of_distance(Some(&self.0), distance.min(bits), bits)
    }
}

/// A signer, with the statistics of terms from their file if the recipe weighs by them.
pub(crate) fn signer(recipe: &Recipe, terms: Option<PathBuf>) -> PyResult<Signer> {
    let terms = terms.map(|path| TermStatistics::open(&path)).transpose().or_raise()?;
    Signer::new(recipe.0.clone(), terms).or_raise()
}
