//! What is tried. A new kind of signature is one more line here.

use lookalike::{
    Recipe, Signer,
    features::{
        Buffers, Extractor, FeatureSettings,
        counts::Counts,
        hash::{FeatureHash, HashFunction},
        shingles::{Shingle, Unit},
        terms::{TermCollector, TermCounts, TermStatistics},
        weights::Weight,
        words::WordRule,
    },
    recipe::{SignatureKind, SignatureSettings},
};

/// Kinds of signatures, by name.
const KINDS: [(&str, SignatureKind); 2] =
    [("simhash", SignatureKind::SimHash), ("minhash", SignatureKind::MinHash)];
/// Words in a shingle.
const LENGTHS: [usize; 3] = [1, 2, 3];
const WIDTHS: [u32; 3] = [64, 256, 1024];

/// Memory for counting terms; what does not fit goes to temporary files.
const TERM_MEMORY: usize = 1 << 28;

/// All recipes that are tried, the plainest first.
pub(crate) fn recipes() -> Vec<Recipe> {
    let mut recipes = Vec::new();
    for (name, kind) in KINDS {
        for length in LENGTHS {
            recipes.extend(WIDTHS.map(|bits| recipe(name, kind, length, bits)));
        }
    }
    recipes
}

fn recipe(name: &str, kind: SignatureKind, length: usize, bits: u32) -> Recipe {
    // Words as the named recipes of each kind have them.
    let words = match kind {
        SignatureKind::MinHash => WordRule::Alphanumeric,
        _ => WordRule::Unicode,
    };
    let features = FeatureSettings {
        words,
        shingle: Shingle { unit: Unit::Words, length },
        ..FeatureSettings::default()
    };
    let signature = SignatureSettings { kind, bits };
    Recipe { name: format!("{name}-w{length}-{bits}"), features, signature, ..Recipe::default() }
}

/// The signer of the PSM thesis: words without stop words, their stems, weighed by TF-IDF of these very texts, 64 bits of
/// Murmur.
pub(crate) fn thesis<'a>(texts: impl Iterator<Item = &'a str>) -> anyhow::Result<Signer> {
    let features = FeatureSettings {
        stop_words: Some("en".into()),
        stem: Some("en".into()),
        shingle: Shingle { unit: Unit::Words, length: 1 },
        hash: FeatureHash { function: HashFunction::Murmur3, bits: 64, seed: 0 },
        ..FeatureSettings::default()
    };
    let terms = terms_of(texts, &features)?;
    let recipe = Recipe {
        name: "thesis-64".into(),
        features,
        weight: Weight::TfIdf,
        signature: SignatureSettings { kind: SignatureKind::SimHash, bits: 64 },
        ..Recipe::default()
    };
    Ok(Signer::new(recipe, Some(terms))?)
}

fn terms_of<'a>(
    texts: impl Iterator<Item = &'a str>,
    features: &FeatureSettings,
) -> anyhow::Result<TermStatistics> {
    let folder = tempfile::tempdir()?;
    let mut collector = TermCollector::new(TERM_MEMORY, folder.path());
    let extractor = Extractor::new(features)?;
    let (mut buffers, mut counts) = (Buffers::default(), Counts::default());
    let mut terms = TermCounts::default();
    for text in texts {
        extractor.count(text, &mut buffers, &mut counts);
        terms.add(&counts);
    }
    collector.add(&terms)?;
    let path = folder.path().join("terms");
    collector.finish(&path, features)?;
    Ok(TermStatistics::open(&path)?)
}
