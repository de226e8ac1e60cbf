//! The recipes that have names. Their bits are fixed for ever by known-answer tests: a better recipe gets a new name.

use super::{Recipe, SignatureKind, SignatureSettings, VERSION};
use crate::features::{
    FeatureSettings,
    shingles::{Shingle, Unit},
    weights::Weight,
    words::WordRule,
};

pub(super) const NAMED: [(&str, &str); 5] = [
    ("text", "SimHash of 256 bits over the set of word 3-grams: near-duplicates among texts"),
    ("minhash-256", "one-bit MinHash over the set of word 3-grams: what dedup takes, for Jaccard"),
    ("web", "SimHash of 64 bits over the words of HTML pages: near-exact copies in a crawl"),
    ("code", "SimHash of 256 bits over identifiers in runs of 3, case kept: source files"),
    ("topsig-1024", "TopSig of 1024 bits over words weighed by term statistics: nearest neighbors"),
];

pub(super) fn find(name: &str) -> Option<Recipe> {
    match name {
        "text" => Some(text()),
        "minhash-256" => Some(minhash_256()),
        "web" => Some(web()),
        "code" => Some(code()),
        "topsig-1024" => Some(topsig_1024()),
        _ => None,
    }
}

const WORDS: Shingle = Shingle { unit: Unit::Words, length: 1 };

/// Of some 40 settings none told near-duplicates apart clearly better than sets of word 3-grams, and 256 bits suffice where
/// 64 do not.
pub(super) fn text() -> Recipe {
    Recipe {
        version: VERSION,
        name: "text".into(),
        html: false,
        features: FeatureSettings::default(),
        weight: Weight::One,
        terms: None,
        signature: SignatureSettings { kind: SignatureKind::SimHash, bits: 256 },
        min_features: 1,
        passages: None,
    }
}

/// Its distances estimate the Jaccard coefficient of sets of word 3-grams. Words are runs of letters, digits and
/// underscores, as everybody counts them who speaks of that coefficient.
fn minhash_256() -> Recipe {
    Recipe {
        name: "minhash-256".into(),
        features: FeatureSettings { words: WordRule::Alphanumeric, ..FeatureSettings::default() },
        signature: SignatureSettings { kind: SignatureKind::MinHash, bits: 256 },
        ..text()
    }
}

/// 64 bits with a radius of 3 need features that change little with a small edit: single words, and the logarithm keeps
/// one repeated word from deciding every bit. A page of a few words is a menu or an error message, and no signature.
fn web() -> Recipe {
    Recipe {
        name: "web".into(),
        html: true,
        features: FeatureSettings { shingle: WORDS, ..FeatureSettings::default() },
        weight: Weight::LogCount,
        signature: SignatureSettings { kind: SignatureKind::SimHash, bits: 64 },
        min_features: 10,
        ..text()
    }
}

fn code() -> Recipe {
    let features = FeatureSettings {
        words: WordRule::Alphanumeric,
        fold_case: false,
        ..FeatureSettings::default()
    };
    Recipe { name: "code".into(), features, ..text() }
}

fn topsig_1024() -> Recipe {
    Recipe {
        name: "topsig-1024".into(),
        features: FeatureSettings { shingle: WORDS, ..FeatureSettings::default() },
        weight: Weight::LogLikelihood,
        signature: SignatureSettings { kind: SignatureKind::TopSig, bits: 1024 },
        ..text()
    }
}
