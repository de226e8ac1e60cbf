//! What differs from language to language: stop words and stems. Languages are named by their ISO 639-1 codes.

use std::collections::HashSet;

use rust_stemmers::{Algorithm, Stemmer};

use super::words::Words;

/// The languages that have a Snowball stemmer. `en` is Porter's second stemmer ("Porter2").
const STEMMERS: [(&str, Algorithm); 18] = [
    ("ar", Algorithm::Arabic),
    ("da", Algorithm::Danish),
    ("de", Algorithm::German),
    ("el", Algorithm::Greek),
    ("en", Algorithm::English),
    ("es", Algorithm::Spanish),
    ("fi", Algorithm::Finnish),
    ("fr", Algorithm::French),
    ("hu", Algorithm::Hungarian),
    ("it", Algorithm::Italian),
    ("nl", Algorithm::Dutch),
    ("no", Algorithm::Norwegian),
    ("pt", Algorithm::Portuguese),
    ("ro", Algorithm::Romanian),
    ("ru", Algorithm::Russian),
    ("sv", Algorithm::Swedish),
    ("ta", Algorithm::Tamil),
    ("tr", Algorithm::Turkish),
];

/// The languages that [`WordFilter`] has stop words for.
pub fn stop_word_languages() -> &'static [&'static str] {
    stop_words::available_languages()
}

/// The languages that [`WordFilter`] has a stemmer for.
pub fn stem_languages() -> impl Iterator<Item = &'static str> {
    STEMMERS.iter().map(|(code, _)| *code)
}

/// Drops stop words, then cuts the others to their stems.
pub struct WordFilter {
    stop_words: HashSet<&'static [u8]>,
    stemmer: Option<Stemmer>,
}

impl WordFilter {
    /// The filter of these languages, or nothing if neither is asked for. Unknown languages filter nothing: the recipe
    /// has checked them.
    pub fn new(stop_words: Option<&str>, stem: Option<&str>) -> Option<Self> {
        let list = stop_words.and_then(stop_words::lookup).unwrap_or_default();
        let stemmer = stem.and_then(|code| STEMMERS.iter().find(|(known, _)| *known == code));
        (stop_words.is_some() || stem.is_some()).then(|| WordFilter {
            stop_words: list.iter().map(|word| word.as_bytes()).collect(),
            stemmer: stemmer.map(|(_, algorithm)| Stemmer::create(*algorithm)),
        })
    }

    /// Appends what is left of `words` to `kept`.
    pub fn filter(&self, words: &Words, kept: &mut Words) {
        for word in words.iter().filter(|word| !self.stop_words.contains(word)) {
            match (&self.stemmer, std::str::from_utf8(word)) {
                (Some(stemmer), Ok(text)) => kept.push(stemmer.stem(text).as_bytes()),
                _ => kept.push(word),
            }
        }
    }
}

impl std::fmt::Debug for WordFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "WordFilter({} stop words", self.stop_words.len())?;
        write!(f, "{})", if self.stemmer.is_some() { ", stems" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filtered(text: &[&str], stop_words: Option<&str>, stem: Option<&str>) -> String {
        let (mut words, mut kept) = (Words::default(), Words::default());
        text.iter().for_each(|word| words.push(word.as_bytes()));
        WordFilter::new(stop_words, stem).unwrap().filter(&words, &mut kept);
        String::from_utf8(kept.joined().to_vec()).unwrap()
    }

    #[test]
    fn stop_words_go_and_stems_stay() {
        let text = ["the", "signatures", "are", "running", "quickly"];
        assert_eq!(filtered(&text, Some("en"), None), "signatures running quickly");
        assert_eq!(filtered(&text, Some("en"), Some("en")), "signatur run quick");
        assert_eq!(filtered(&["die", "häuser"], Some("de"), Some("de")), "haus");
        assert!(WordFilter::new(None, None).is_none());
    }
}
