//! Features: what a text is made of, as far as likeness goes. One file per stage.
//!
//! text → [`words`] ([`normalise`], [`language`]) → [`shingles`] → [`hash`] → [`counts`] → [`weights`]

mod ascii;
pub mod counts;
pub mod hash;
pub mod html;
pub mod language;
pub mod normalise;
pub mod passages;
pub mod shingles;
mod simple;
pub mod terms;
pub mod weights;
pub mod words;

use serde::{Deserialize, Serialize};

use counts::Counts;
use hash::FeatureHash;
use language::WordFilter;
use normalise::Normalise;
use shingles::{Shingle, Unit};
use words::{WordRule, WordSettings, Words};

use crate::{Error, Result};

/// Everything that decides which features a text has: the features' part of a recipe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FeatureSettings {
    /// The Unicode normal form.
    pub normalise: Normalise,
    /// Whether `A` and `a` are the same.
    pub fold_case: bool,
    /// What counts as a word.
    pub words: WordRule,
    /// Length of the character n-grams that stand for words in scripts without spaces.
    pub spaceless: usize,
    /// The language whose stop words are dropped.
    pub stop_words: Option<String>,
    /// The language whose stems are taken.
    pub stem: Option<String>,
    /// Runs of words or characters: the features.
    pub shingle: Shingle,
    /// The hash that stands for a feature.
    pub hash: FeatureHash,
}

impl Default for FeatureSettings {
    fn default() -> Self {
        FeatureSettings {
            normalise: Normalise::Nfkc,
            fold_case: true,
            words: WordRule::Unicode,
            spaceless: 2,
            stop_words: None,
            stem: None,
            shingle: Shingle { unit: Unit::Words, length: 3 },
            hash: FeatureHash::default(),
        }
    }
}

impl FeatureSettings {
    /// Checks that the settings say something possible.
    pub fn check(&self) -> Result<()> {
        let bad = |field, problem: String| Err(Error::Recipe { field, problem });
        if !(1..=64).contains(&self.shingle.length) {
            return bad(
                "features.shingle.length",
                format!("is {}, not 1 to 64", self.shingle.length),
            );
        }
        if !(1..=64).contains(&self.spaceless) {
            return bad("features.spaceless", format!("is {}, not 1 to 64", self.spaceless));
        }
        if ![64, 128].contains(&self.hash.bits) {
            return bad("features.hash.bits", format!("is {}, not 64 or 128", self.hash.bits));
        }
        check_language("features.stop_words", &self.stop_words, language::stop_word_languages())?;
        let stems: Vec<&str> = language::stem_languages().collect();
        check_language("features.stem", &self.stem, &stems)
    }
}

fn check_language(field: &'static str, code: &Option<String>, known: &[&str]) -> Result<()> {
    match code {
        Some(code) if !known.contains(&code.as_str()) => Err(Error::Recipe {
            field,
            problem: format!("has no language `{code}`; there are {}", known.join(", ")),
        }),
        _ => Ok(()),
    }
}

/// Turns texts into features. Immutable; the buffers are the caller's.
#[derive(Debug)]
pub struct Extractor {
    words: WordSettings,
    filter: Option<WordFilter>,
    shingle: Shingle,
    hash: FeatureHash,
}

/// Buffers that an [`Extractor`] uses again from text to text.
#[derive(Debug, Default)]
pub struct Buffers {
    words: Words,
    filtered: Words,
}

impl Extractor {
    /// An extractor with these settings.
    pub fn new(settings: &FeatureSettings) -> Result<Self> {
        settings.check()?;
        Ok(Extractor {
            words: WordSettings {
                rule: settings.words,
                normalise: settings.normalise,
                fold_case: settings.fold_case,
                spaceless: settings.spaceless,
            },
            filter: WordFilter::new(settings.stop_words.as_deref(), settings.stem.as_deref()),
            shingle: settings.shingle,
            hash: settings.hash,
        })
    }

    /// The words of a text, after stop words and stemming.
    pub fn words<'a>(&self, text: &str, buffers: &'a mut Buffers) -> &'a Words {
        buffers.words.clear();
        buffers.words.extend_from_text(text, &self.words);
        let Some(filter) = &self.filter else { return &buffers.words };
        buffers.filtered.clear();
        filter.filter(&buffers.words, &mut buffers.filtered);
        &buffers.filtered
    }

    /// Counts the features of a text.
    pub fn count(&self, text: &str, buffers: &mut Buffers, counts: &mut Counts) {
        let words = self.words(text, buffers);
        counts.reset(match self.shingle.unit {
            Unit::Words => words.len(),
            Unit::Characters => words.joined().len(),
        });
        self.shingle.for_each(words, |feature| counts.add(self.hash.of(feature)));
    }

    /// Calls `each` with the hash of every feature of a text, in order and as often as it occurs.
    pub fn for_each_hash(&self, text: &str, buffers: &mut Buffers, mut each: impl FnMut(u64)) {
        let words = self.words(text, buffers);
        self.shingle.for_each(words, |feature| each(self.hash.of(feature)[0]));
    }

    /// Calls `each` with every feature of a text and its hash, in order and as often as it occurs.
    pub fn for_each(&self, text: &str, mut each: impl FnMut(&str, u64)) {
        let mut buffers = Buffers::default();
        let words = self.words(text, &mut buffers);
        self.shingle.for_each(words, |feature| {
            each(&String::from_utf8_lossy(feature), self.hash.of(feature)[0]);
        });
    }
}
