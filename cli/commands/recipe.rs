//! `lookalike recipe`, and the flags that choose a recipe.

use std::path::{Path, PathBuf};

use clap::Args;
use lookalike::{Recipe, Signer, features::terms::TermStatistics, recipe::SignatureKind};

use serde_json::json;

use super::{Global, Outcome};
use crate::{failure::hinted, output::print};

/// Which recipe turns documents into signatures.
#[derive(Debug, Clone, Args)]

pub(crate) struct RecipeArgs {
    /// text, minhash-256, web, code, topsig-1024, or a recipe file [default: text]
    ///
    /// `lookalike recipe` tells what they are; `lookalike recipe text > mine.json` starts a file of your own.
    #[arg(long, help_heading = "Recipe", value_name = "NAME|FILE")]
    recipe: Option<String>,

    /// Bits of a signature in place of the recipe's: a multiple of 64 from 64 to 4096
    #[arg(long, help_heading = "Recipe", value_name = "N")]
    bits: Option<u32>,

    /// Distinct features that a document must have to get a signature, in place of the recipe's
    #[arg(long, help_heading = "Recipe", value_name = "N")]
    min_features: Option<usize>,
}

impl RecipeArgs {
    pub(crate) fn recipe(&self) -> anyhow::Result<Recipe> {
        let name = self.recipe.as_deref().unwrap_or("text");
        let mut recipe = match Recipe::named(name) {
            Some(recipe) => recipe,
            None if Path::new(name).exists() => read(Path::new(name))?,
            None => return Err(unknown(name)),
        };
        if let Some(bits) = self.bits.filter(|&bits| bits != recipe.signature.bits) {
            recipe.signature.bits = bits;
            recipe.name = format!("{} with {bits} bits", recipe.name);
        }
        recipe.min_features = self.min_features.unwrap_or(recipe.min_features);
        recipe.check()?;
        Ok(recipe)
    }

    /// The bits, if nothing else was said: where signatures may come from elsewhere, these do.
    pub(crate) fn only_bits(&self) -> Option<u32> {
        self.bits.filter(|_| self.recipe.is_none() && self.min_features.is_none())
    }
}

/// A recipe from a file. One that has kept a name which means something else is named by its file.
fn read(path: &Path) -> anyhow::Result<Recipe> {
    let mut recipe = Recipe::read(path)?;
    let namesake = Recipe::named(&recipe.name);
    if namesake.is_some_and(|namesake| namesake.hash() != recipe.hash()) {
        let stem = path.file_stem().unwrap_or(path.as_os_str());
        recipe.name = stem.to_string_lossy().into_owned();
    }
    Ok(recipe)
}

fn unknown(name: &str) -> anyhow::Error {
    let names: Vec<&str> = Recipe::NAMED.iter().map(|(name, _)| *name).collect();
    let problem = format!("there is no recipe `{name}`, and no file of that name");
    hinted(problem, format!("the recipes with names are {}", names.join(", ")))
}

/// The signer of a recipe; `terms` is the file with the statistics that it may need.
pub(crate) fn signer(recipe: Recipe, terms: Option<&Path>) -> anyhow::Result<Signer> {
    if terms.is_some() && !recipe.weight.needs_terms() {
        let problem = format!("recipe `{}` does not weigh by term statistics", recipe.name);
        return Err(hinted(problem, "drop `--terms`, or take `--recipe topsig-1024`"));
    }
    let terms = terms.map(TermStatistics::open).transpose()?;
    Ok(Signer::new(recipe, terms)?)
}

/// Refuses to keep margins where there are none.
pub(crate) fn check_margins(recipe: &Recipe, wanted: bool) -> anyhow::Result<()> {
    if wanted && recipe.signature.kind == SignatureKind::MinHash {
        let problem = "MinHash signatures have no margins: no bit of them is weaker than another";
        return Err(hinted(problem, "leave out `--margins`"));
    }
    Ok(())
}

/// The term statistics that some recipes need.
#[derive(Debug, Clone, Args)]
pub(crate) struct TermsArg {
    /// Term statistics for recipes that weigh by them, from `lookalike terms`
    #[arg(long, value_name = "FILE", help_heading = "Recipe")]
    pub(crate) terms: Option<PathBuf>,
}

/// Show a recipe as JSON, or list those that have names
///
/// A recipe says everything between a document and its signature. What a recipe file leaves out is as in `text`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  lookalike recipe\n  lookalike recipe text > mine.json")]
pub(crate) struct ShowRecipe {
    /// text, minhash-256, web, code, topsig-1024, or a recipe file
    name: Option<String>,
}

impl ShowRecipe {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Outcome> {
        match self.name {
            Some(name) => {
                let recipe =
                    RecipeArgs { recipe: Some(name), bits: None, min_features: None }.recipe()?;
                print(if global.json() {
                    serde_json::to_string(&recipe)?
                } else {
                    recipe.to_json()
                })?;
            }
            None => {
                for (name, about) in Recipe::NAMED {
                    print(match global.json() {
                        true => json!({ "name": name, "about": about }).to_string(),
                        false => format!("{name:<12} {about}"),
                    })?;
                }
            }
        }
        Ok(Outcome::Done)
    }
}
