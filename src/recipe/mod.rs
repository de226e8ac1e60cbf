//! Recipe: everything between a document and its signature, as one value that is stored beside the signatures.

mod named;
mod signer;

use std::{fmt, path::Path};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

pub use signer::{Scratch, Signed, Signer, Sketch, SketchSettings};

use crate::{
    Error, Result,
    features::{FeatureSettings, passages::Passages, weights::Weight},
};

/// The version of recipes that this program makes and reads.
const VERSION: u32 = 1;

/// How features become bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SignatureKind {
    /// Every feature votes on every bit.
    SimHash,
    /// Every feature votes on the few bits of its sparse random vector.
    TopSig,
    /// One bit of the smallest hash of all features, for as many hash functions as there are bits. It has no margins.
    MinHash,
}

/// What the signature is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignatureSettings {
    /// How features become bits.
    pub kind: SignatureKind,
    /// The width: a multiple of 64 from 64 to 4096.
    pub bits: u32,
}

/// Everything that turns a document into a signature.
///
/// Its hash is that of its JSON, so a field that a later version adds must be left out of the JSON where it has the value
/// that old recipes meant (`skip_serializing_if`), or old files no longer match.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Recipe {
    /// The version of this description: 1.
    pub version: u32,
    /// A name for people; two recipes that differ in nothing else are the same.
    pub name: String,
    /// Whether texts are HTML whose text is to be extracted. Documents known to be HTML always are.
    pub html: bool,
    /// Which features a text has.
    pub features: FeatureSettings,
    /// How features are weighed.
    pub weight: Weight,
    /// The fingerprint of the term statistics that weigh the features; filled in when a signer is made.
    pub terms: Option<String>,
    /// What the signature is.
    pub signature: SignatureSettings,
    /// Documents with fewer distinct features that weigh something get no signature.
    pub min_features: usize,
    /// Whether long documents are cut, and how.
    pub passages: Option<Passages>,
}

impl Default for Recipe {
    fn default() -> Self {
        named::text()
    }
}

impl Recipe {
    /// The recipes that have names, with a line about each.
    pub const NAMED: [(&'static str, &'static str); 5] = named::NAMED;

    /// The recipe of that name.
    pub fn named(name: &str) -> Option<Self> {
        named::find(name)
    }

    /// Reads a recipe file: JSON; what it does not say is as in recipe `text`.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(|error| Error::io(path, error))?;
        let recipe: Recipe = serde_json::from_slice(&bytes)
            .map_err(|error| Error::format(path, format!("is not a recipe: {error}")))?;
        recipe.check()?;
        Ok(recipe)
    }

    /// Checks that the recipe says something possible.
    pub fn check(&self) -> Result<()> {
        let bad = |field, problem: String| Err(Error::Recipe { field, problem });
        if self.version != VERSION {
            return bad("version", format!("is {}; this program knows {VERSION}", self.version));
        }
        let bits = self.signature.bits;
        if !bits.is_multiple_of(64) || !(64..=4096).contains(&bits) {
            return bad(
                "signature.bits",
                format!("is {bits}, not a multiple of 64 from 64 to 4096"),
            );
        }
        if self.signature.kind == SignatureKind::MinHash && self.weight != Weight::One {
            return bad(
                "weight",
                "must be `one`: minhash signs sets, which have no weights".into(),
            );
        }
        if self.min_features == 0 {
            return bad("min_features", "is 0, but nothing has no signature: take 1".into());
        }
        self.passages.map_or(Ok(()), |passages| passages.check())?;
        self.features.check()
    }

    /// The recipe as JSON, as it is stored.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("plain data becomes JSON")
    }

    /// A hash of all that the recipe says but its name.
    pub fn hash(&self) -> String {
        let nameless = Recipe { name: String::new(), ..self.clone() };
        let json = serde_json::to_vec(&nameless).expect("plain data becomes JSON");
        format!("{:016x}", xxh3_64(&json))
    }

    /// Checks that signatures of `given` may be mixed with signatures of this recipe.
    pub fn check_same(&self, given: &Recipe) -> Result<()> {
        if self.hash() == given.hash() {
            return Ok(());
        }
        Err(Error::RecipeMismatch { stored: self.to_string(), given: given.to_string() })
    }
}

/// Its name and its hash: what errors say.
impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` ({})", self.name, self.hash())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recipes_survive_json_and_keep_their_hash() {
        for (name, _) in Recipe::NAMED {
            let recipe = Recipe::named(name).unwrap();
            recipe.check().unwrap();
            assert_eq!(recipe.name, name);
            let again: Recipe = serde_json::from_str(&recipe.to_json()).unwrap();
            assert_eq!(recipe, again);
            assert_eq!(recipe.hash(), again.hash());
        }
    }

    /// All kinds at every width from 64 to 4096; another seed is another signature.
    #[test]
    fn every_width_has_signatures() {
        let text = "One two three four five six seven eight nine ten eleven twelve.";
        for kind in [SignatureKind::SimHash, SignatureKind::TopSig, SignatureKind::MinHash] {
            for bits in (64..=4096).step_by(64) {
                let signature = SignatureSettings { kind, bits };
                let mut recipe = Recipe { signature, ..Recipe::default() };
                let sign = |recipe: &Recipe| {
                    let signer = Signer::new(recipe.clone(), None).unwrap().with_margins();
                    signer.sign_text(text, &mut Scratch::default()).unwrap()
                };
                let first = sign(&recipe);
                assert_eq!(first.signature.bits(), bits);
                let margins = (kind != SignatureKind::MinHash).then_some(bits as usize);
                assert_eq!(first.margins.as_ref().map(Vec::len), margins);
                recipe.features.hash.seed = 1;
                assert_ne!(first.signature, sign(&recipe).signature, "{kind:?}, {bits} bits");
            }
        }
    }

    #[test]
    fn a_name_is_only_a_name() {
        let text = Recipe::named("text").unwrap();
        let renamed = Recipe { name: "mine".into(), ..text.clone() };
        text.check_same(&renamed).unwrap();
        let error = text.check_same(&Recipe::named("code").unwrap()).unwrap_err().to_string();
        assert!(error.contains("`text`") && error.contains("`code`"), "{error}");
    }

    #[test]
    fn impossible_recipes_name_the_field() {
        for (json, field) in [
            (r#"{"signature": {"kind": "simhash", "bits": 100}}"#, "signature.bits"),
            (r#"{"version": 9}"#, "version"),
            (r#"{"min_features": 0}"#, "min_features"),
            (r#"{"weight": "count", "signature": {"kind": "minhash", "bits": 64}}"#, "weight"),
            (r#"{"features": {"stem": "xx"}}"#, "features.stem"),
            (r#"{"features": {"stop_words": "xx"}}"#, "features.stop_words"),
            (r#"{"passages": {"from": 5, "to": 4}}"#, "passages"),
        ] {
            let recipe: Recipe = serde_json::from_str(json).unwrap();
            let error = recipe.check().unwrap_err().to_string();
            assert!(error.contains(field), "{json}: {error}");
        }
        assert!(serde_json::from_str::<Recipe>(r#"{"weigth": "one"}"#).is_err());
    }
}
