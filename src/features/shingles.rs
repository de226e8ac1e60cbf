//! Shingles: runs of neighbouring words or characters. They are the features.

use serde::{Deserialize, Serialize};

use super::words::Words;

/// What shingles are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Words, joined by single spaces.
    Words,
    /// Characters of the words joined by single spaces.
    Characters,
}

/// Runs of how many of what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shingle {
    /// What they are made of.
    pub unit: Unit,
    /// How many of them make one.
    pub length: usize,
}

impl Shingle {
    /// Calls `each` with every shingle, in order. A text that is too short for one is one itself.
    #[inline]
    pub fn for_each(&self, words: &Words, each: impl FnMut(&[u8])) {
        match self.unit {
            _ if words.is_empty() => {}
            Unit::Words => self.for_each_word_run(words, each),
            Unit::Characters => self.for_each_character_run(words.joined(), each),
        }
    }

    #[inline]
    fn for_each_word_run(&self, words: &Words, mut each: impl FnMut(&[u8])) {
        let length = self.length.min(words.len());
        (length..=words.len()).for_each(|end| each(words.run(end - length, end)));
    }

    fn for_each_character_run(&self, text: &[u8], mut each: impl FnMut(&[u8])) {
        if text.is_ascii() {
            return text.windows(self.length.min(text.len())).for_each(each);
        }
        // A byte that does not continue a character starts one.
        let starts = (0..text.len()).filter(|&at| text[at] & 0xc0 != 0x80);
        let starts: Vec<usize> = starts.chain([text.len()]).collect();
        let length = self.length.min(starts.len() - 1);
        starts.windows(length + 1).for_each(|window| each(&text[window[0]..window[length]]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shingles(text: &[&str], unit: Unit, length: usize) -> Vec<String> {
        let mut words = Words::default();
        text.iter().for_each(|word| words.push(word.as_bytes()));
        let mut found = Vec::new();
        Shingle { unit, length }
            .for_each(&words, |shingle| found.push(String::from_utf8(shingle.to_vec()).unwrap()));
        found
    }

    #[test]
    fn runs_of_words_and_characters() {
        assert_eq!(shingles(&["a", "b", "c"], Unit::Words, 2), ["a b", "b c"]);
        assert_eq!(shingles(&["a", "b", "c"], Unit::Words, 1), ["a", "b", "c"]);
        assert_eq!(shingles(&["ab", "c"], Unit::Characters, 3), ["ab ", "b c"]);
        assert_eq!(shingles(&["äb", "c"], Unit::Characters, 3), ["äb ", "b c"]);
    }

    #[test]
    fn a_short_text_is_one_shingle_and_none_is_none() {
        assert_eq!(shingles(&["a", "b"], Unit::Words, 3), ["a b"]);
        assert_eq!(shingles(&["ab"], Unit::Characters, 5), ["ab"]);
        assert_eq!(shingles(&["äb"], Unit::Characters, 5), ["äb"]);
        assert!(shingles(&[], Unit::Words, 3).is_empty());
        assert!(shingles(&[], Unit::Characters, 3).is_empty());
    }
}
