//! The true likeness of two texts, feature by feature, beside what their signatures say of it.

use std::{collections::BTreeMap, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{
    Error, Recipe, Result, Signer,
    features::weights::ONE,
    hamming::{Kernel, merged},
    recipe::{Scratch, SignatureKind},
};

/// What decides whether two documents are alike.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Verify {
    /// Their signatures alone.
    None,
    /// The features that both have over those that either has, at least so many.
    Jaccard(f64),
    /// The features that both have over those of the smaller one, at least so many.
    Containment(f64),
    /// The cosine of the angle between their weighted features, at least so large.
    Cosine(f64),
}

/// The features of a document: ascending, each once, with their weights if those count.
#[derive(Debug, Clone, Copy)]
pub struct FeatureSet<'a> {
    /// The features, by 32 bits of their hashes.
    pub elements: &'a [u32],
    /// The weight of each; empty if only a cosine needs them and none is asked for.
    pub weights: &'a [u32],
}

impl Verify {
    /// The similarity of two documents that are alike; nothing if they are not. Signatures alone tell no similarity, and
    /// the caller knows their distance: that is 1 here.
    pub fn alike(&self, kernel: Kernel, a: FeatureSet<'_>, b: FeatureSet<'_>) -> Option<f64> {
        if let Verify::Jaccard(_) = self {
            let sizes = (a.elements.len(), b.elements.len());
            let shared = kernel.shared(a.elements, b.elements, self.needed(sizes.0, sizes.1))?;
            return self.of_shared(shared, sizes.0, sizes.1);
        }
        let similarity = self.similarity(a, b);
        (similarity >= self.least()).then_some(similarity)
    }

    /// How many features two documents of these sizes must share at least to have the Jaccard coefficient asked for; a
    /// little less is possible, as the check itself is exact.
    pub(crate) fn needed(&self, a: usize, b: usize) -> usize {
        let least = self.least();
        (least / (1.0 + least) * (a + b) as f64 - 1e-6).ceil().max(0.0) as usize
    }

    /// The Jaccard coefficient of two documents of these sizes that share so many features, if it suffices.
    pub(crate) fn of_shared(&self, shared: usize, a: usize, b: usize) -> Option<f64> {
        let similarity = shared as f64 / (a + b - shared) as f64;
        (similarity >= self.least()).then_some(similarity)
    }

    /// The similarity of two documents.
    pub fn similarity(&self, a: FeatureSet<'_>, b: FeatureSet<'_>) -> f64 {
        let sizes = (a.elements.len() as f64, b.elements.len() as f64);
        let shared = || merged(a.elements, b.elements) as f64;
        match self {
            Verify::None => 1.0,
            Verify::Jaccard(_) => {
                let shared = shared();
                shared / (sizes.0 + sizes.1 - shared)
            }
            Verify::Containment(_) => shared() / sizes.0.min(sizes.1),
            Verify::Cosine(_) => cosine_of_sets(a, b),
        }
    }

    /// From which similarity on documents are alike.
    pub fn least(&self) -> f64 {
        match *self {
            Verify::None => 0.0,
            Verify::Jaccard(least) | Verify::Containment(least) | Verify::Cosine(least) => least,
        }
    }

    /// Whether it needs the weights of features.
    pub fn needs_weights(&self) -> bool {
        matches!(self, Verify::Cosine(_))
    }

    /// The most features that a document can have and be alike one that has `size`, which is the smaller one.
    pub fn largest(&self, size: usize) -> usize {
        match *self {
            // A little room for rounding: the check itself is exact.
            Verify::Jaccard(least) => (size as f64 / least + 1e-6) as usize,
            _ => usize::MAX,
        }
    }
}

fn cosine_of_sets(a: FeatureSet<'_>, b: FeatureSet<'_>) -> f64 {
    let (mut i, mut j, mut dot) = (0, 0, 0.0);
    while i < a.elements.len() && j < b.elements.len() {
        let (x, y) = (a.elements[i], b.elements[j]);
        if x == y {
            dot += f64::from(a.weights[i]) * f64::from(b.weights[j]);
        }
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    let length = |set: FeatureSet<'_>| -> f64 {
        set.weights.iter().map(|&weight| f64::from(weight) * f64::from(weight)).sum()
    };
    // Rounding must not make copies less than alike.
    (dot / (length(a) * length(b)).sqrt()).min(1.0)
}

impl FromStr for Verify {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let bad = |problem: String| Err(Error::Setting { name: "verify", problem });
        if text == "none" {
            return Ok(Verify::None);
        }
        let (measure, least) = text.split_once(':').unwrap_or((text, ""));
        let of: fn(f64) -> Verify = match measure {
            "jaccard" => Verify::Jaccard,
            "containment" => Verify::Containment,
            "cosine" => Verify::Cosine,
            _ => {
                return bad(format!(
                    "is `{text}`, not none, jaccard:0.8, cosine:0.9 or containment:0.8"
                ));
            }
        };
        match least.parse() {
            Ok(least) if least > 0.0 && least <= 1.0 => Ok(of(least)),
            _ => bad(format!("is `{text}`: a number above 0 and up to 1 follows the colon")),
        }
    }
}

impl fmt::Display for Verify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verify::None => f.write_str("none"),
            Verify::Jaccard(least) => write!(f, "jaccard:{least}"),
            Verify::Containment(least) => write!(f, "containment:{least}"),
            Verify::Cosine(least) => write!(f, "cosine:{least}"),
        }
    }
}

impl TryFrom<String> for Verify {
    type Error = Error;
    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Verify> for String {
    fn from(verify: Verify) -> String {
        verify.to_string()
    }
}

/// How alike two texts are.
#[derive(Debug, Clone, PartialEq)]
pub struct Likeness {
    /// Features that both have, over features that either has; nothing if one of them has none.
    pub jaccard: Option<f64>,
    /// The cosine of the angle between their weighted features; nothing if one of them has none.
    pub cosine: Option<f64>,
    /// Distinct features that both have.
    pub shared: usize,
    /// Distinct features that only the first has.
    pub only_first: usize,
    /// Distinct features that only the second has.
    pub only_second: usize,
    /// The features whose weights differ, most different first, ties by the alphabet.
    pub differences: Vec<Difference>,
}

/// A feature that weighs more in one text than in the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The feature as it was hashed: a run of words or characters.
    pub feature: String,
    /// Its weight in the first text; 0 if it does not occur or weighs nothing there.
    pub first: f64,
    /// Its weight in the second text.
    pub second: f64,
}

/// The name and the two weights of each feature, by its hash.
type Features = BTreeMap<u64, (String, [f64; 2])>;

/// Compares two plain texts by the features of the signer's recipe.
pub fn compare(signer: &Signer, first: &str, second: &str) -> Likeness {
    let mut features = Features::new();
    for (side, text) in [first, second].into_iter().enumerate() {
        add_features(signer, text, side, &mut features);
    }
    // A recipe may weigh some features with nothing; they are features of the text all the same, and named here.
    features.retain(|_, (_, weights)| weights.iter().any(|&weight| weight > 0.0));
    let sides = |wanted: [bool; 2]| {
        features
            .values()
            .filter(|(_, weights)| weights.map(|weight| weight > 0.0) == wanted)
            .count()
    };
    let (shared, only_first, only_second) =
        (sides([true, true]), sides([true, false]), sides([false, true]));
    let comparable = shared + only_first > 0 && shared + only_second > 0;
    Likeness {
        jaccard: comparable.then(|| shared as f64 / features.len() as f64),
        cosine: comparable.then(|| cosine(&features)),
        shared,
        only_first,
        only_second,
        differences: differences(features),
    }
}

/// The cosine that a Hamming distance stands for: an angle of 180 degrees flips every bit.
pub fn cosine_of_distance(distance: u32, bits: u32) -> f64 {
    (std::f64::consts::PI * f64::from(distance) / f64::from(bits)).cos()
}

/// The Jaccard coefficient that a distance of one-bit MinHash signatures stands for: strangers agree in half of the bits.
pub fn jaccard_of_distance(distance: u32, bits: u32) -> f64 {
    (1.0 - 2.0 * f64::from(distance) / f64::from(bits)).max(0.0)
}

/// How alike two documents are by the distance of their signatures, from 0 to 1: the cosine or the Jaccard coefficient, as
/// the recipe has it. Of signatures from elsewhere nobody knows what they stand for: the share of their bits that are equal.
pub fn similarity_of_distance(recipe: Option<&Recipe>, distance: u32, bits: u32) -> f64 {
    match recipe.map(|recipe| recipe.signature.kind) {
        Some(SignatureKind::MinHash) => jaccard_of_distance(distance, bits),
        Some(SignatureKind::SimHash | SignatureKind::TopSig) => {
            cosine_of_distance(distance, bits).max(0.0)
        }
        None => 1.0 - f64::from(distance) / f64::from(bits),
    }
}

fn add_features(signer: &Signer, text: &str, side: usize, features: &mut Features) {
    signer.extractor().for_each(text, |name, hash| {
        features.entry(hash).or_insert_with(|| (name.to_owned(), [0.0; 2]));
    });
    for (hash, weight) in signer.weigh(text, &mut Scratch::default()).iter() {
        if let Some((_, weights)) = features.get_mut(&hash[0]) {
            weights[side] = weight as f64 / ONE as f64;
        }
    }
}

fn cosine(features: &Features) -> f64 {
    let sum = |a: usize, b: usize| -> f64 { features.values().map(|(_, w)| w[a] * w[b]).sum() };
    // Rounding must not make copies less than alike.
    (sum(0, 1) / (sum(0, 0) * sum(1, 1)).sqrt()).min(1.0)
}

fn differences(features: Features) -> Vec<Difference> {
    let differences = features.into_values().map(|(feature, [first, second])| Difference {
        feature,
        first,
        second,
    });
    let mut differences: Vec<_> = differences.filter(|d| d.first != d.second).collect();
    let size = |d: &Difference| (d.first - d.second).abs();
    differences.sort_by(|a, b| size(b).total_cmp(&size(a)).then_with(|| a.feature.cmp(&b.feature)));
    differences
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::{
        shingles::{Shingle, Unit},
        weights::Weight,
    };

    fn words(weight: Weight) -> Signer {
        let mut recipe = Recipe { weight, ..Recipe::default() };
        recipe.features.shingle = Shingle { unit: Unit::Words, length: 1 };
        Signer::new(recipe, None).unwrap()
    }

    #[test]
    fn likeness_is_counted_feature_by_feature() {
        let likeness = compare(&words(Weight::One), "a b c d", "B c d e");
        assert_eq!((likeness.shared, likeness.only_first, likeness.only_second), (3, 1, 1));
        assert_eq!(likeness.jaccard, Some(0.6));
        assert_eq!(likeness.cosine, Some(0.75));
        let names: Vec<&str> = likeness.differences.iter().map(|d| d.feature.as_str()).collect();
        assert_eq!(names, ["a", "e"]);
    }

    #[test]
    fn weights_count_and_the_greatest_difference_comes_first() {
        let likeness = compare(&words(Weight::Count), "a a a b", "a b b");
        assert_eq!(likeness.jaccard, Some(1.0));
        assert!((likeness.cosine.unwrap() - 5.0 / 50_f64.sqrt()).abs() < 1e-12);
        assert_eq!(
            likeness.differences[0],
            Difference { feature: "a".into(), first: 3.0, second: 1.0 }
        );
    }

    #[test]
    fn what_decides_is_written_and_read() {
        for text in ["none", "jaccard:0.8", "cosine:0.9", "containment:1"] {
            assert_eq!(text.parse::<Verify>().unwrap().to_string(), text);
        }
        for text in ["", "jaccard", "jaccard:0", "cosine:1.5", "dice:0.5", "jaccard:x"] {
            assert!(text.parse::<Verify>().is_err(), "{text}");
        }
    }

    #[test]
    fn sets_are_as_alike_as_counted() {
        let set = |elements, weights| FeatureSet { elements, weights };
        let (a, b) = (set(&[1, 2, 3, 4], &[1, 1, 1, 1]), set(&[2, 3, 4, 9], &[1, 1, 1, 1]));
        let kernel = crate::hamming::kernel().unwrap();
        assert_eq!(Verify::Jaccard(0.6).alike(kernel, a, b), Some(0.6));
        assert_eq!(Verify::Jaccard(0.61).alike(kernel, a, b), None);
        assert_eq!(Verify::Containment(0.5).similarity(a, set(&[2, 3], &[1, 1])), 1.0);
        assert_eq!(Verify::Cosine(0.5).similarity(a, b), 0.75);
        assert_eq!((Verify::Jaccard(0.8).largest(4), Verify::Jaccard(0.8).largest(5)), (5, 6));
    }

    #[test]
    fn distances_stand_for_what_the_recipe_measures() {
        let of = |name: Option<&str>, distance| {
            let recipe = name.map(|name| Recipe::named(name).unwrap());
            similarity_of_distance(recipe.as_ref(), distance, 256)
        };
        for name in [Some("text"), Some("minhash-256"), None] {
            assert_eq!(of(name, 0), 1.0);
            assert_eq!(of(name, 256), 0.0);
        }
        assert!((of(Some("text"), 64) - 0.5_f64.sqrt()).abs() < 1e-12);
        assert_eq!((of(Some("minhash-256"), 64), of(None, 64)), (0.5, 0.75));
    }

    #[test]
    fn copies_and_strangers() {
        let signer = words(Weight::LogCount);
        let copy = compare(&signer, "one two two three", "one two two three");
        assert_eq!((copy.jaccard, copy.cosine, copy.differences.len()), (Some(1.0), Some(1.0), 0));
        let stranger = compare(&signer, "one two", "three four");
        assert_eq!((stranger.jaccard, stranger.cosine), (Some(0.0), Some(0.0)));
        for (a, b) in [("", "..."), ("", "some words")] {
            let nothing = compare(&signer, a, b);
            assert_eq!((nothing.jaccard, nothing.cosine), (None, None));
        }
        assert!((cosine_of_distance(0, 64) - 1.0).abs() < 1e-12);
        assert!(cosine_of_distance(32, 64).abs() < 1e-12);
        // The thesis: 3 of 64 bits stand for a cosine of about 0.99, at least 0.9 allowing for chance.
        assert!(cosine_of_distance(3, 64) > 0.98);
    }
}
