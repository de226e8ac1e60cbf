//! The true likeness of two texts, feature by feature, beside what their signatures say of it.

use std::collections::BTreeMap;

use crate::{Signer, features::weights::ONE, recipe::Scratch};

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
    use crate::{
        Recipe,
        features::{
            shingles::{Shingle, Unit},
            weights::Weight,
        },
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
