//! Passages: a long document in parts, each with a signature of its own, so that a match can point at the place.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use unicode_segmentation::UnicodeSegmentation;

use crate::{Error, Result};

/// How long passages are, in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Passages {
    /// A passage ends at the first sentence end from here on.
    pub from: usize,
    /// No passage is longer: a sentence that would make it so starts the next one, and is cut if it is longer itself.
    pub to: usize,
}

impl Passages {
    /// Checks that the lengths make sense.
    pub fn check(&self) -> Result<()> {
        if self.from >= 1 && self.from <= self.to {
            return Ok(());
        }
        let problem = format!("go from {} to {} words", self.from, self.to);
        Err(Error::Recipe { field: "passages", problem })
    }

    /// The passages of a text as byte ranges that follow each other without a gap. A last one that is too short joins the
    /// one before it if there is room.
    pub fn split(&self, text: &str) -> Vec<Range<usize>> {
        let text = &unwrapped(text);
        let mut passages: Vec<(Range<usize>, usize)> = Vec::new();
        let mut open = (0..0, 0);
        for (sentence, words) in self.sentences(text) {
            // What has no words, as a blank line, stays with what is before it.
            if words > 0 && open.1 > 0 && (open.1 >= self.from || open.1 + words > self.to) {
                passages.push(open);
                open = (sentence.start..sentence.start, 0);
            }
            open = (open.0.start..sentence.end, open.1 + words);
        }
        match passages.last_mut() {
            Some((before, words)) if open.1 < self.from && *words + open.1 <= self.to => {
                before.end = open.0.end;
            }
            _ if open.0.is_empty() => {}
            _ => passages.push(open),
        }
        passages.into_iter().map(|(range, _)| range).collect()
    }

    /// The sentences of a text with their numbers of words; those that are too long in parts.
    fn sentences<'a>(&self, text: &'a str) -> impl Iterator<Item = (Range<usize>, usize)> + 'a {
        let to = self.to;
        text.split_sentence_bound_indices().flat_map(move |(start, sentence)| {
            let ends = sentence.unicode_word_indices().map(|(at, word)| at + word.len());
            let ends: Vec<usize> = ends.collect();
            let mut from = 0;
            let parts: Vec<_> = ends
                .chunks(to)
                .map(|part| {
                    // Up to the end of its last word; the sentence's end for the last part.
                    let last = part.last() == ends.last();
                    let end = if last { sentence.len() } else { part[part.len() - 1] };
                    let range = start + from..start + end;
                    from = end;
                    (range, part.len())
                })
                .collect();
            if parts.is_empty() { vec![(start..start + sentence.len(), 0)] } else { parts }
        })
    }
}

/// The text with spaces for the line ends inside of paragraphs, as long as it was: a sentence goes on in the next line, but
/// Unicode's rules end one at every line end. A paragraph ends at a blank line.
fn unwrapped(text: &str) -> String {
    let mut unwrapped = String::with_capacity(text.len());
    let mut lines = text.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        let is_blank = |line: &str| line.bytes().all(|byte| byte.is_ascii_whitespace());
        let goes_on = !is_blank(line) && lines.peek().is_some_and(|next| !is_blank(next));
        let body = line.trim_end_matches(['\r', '\n']);
        unwrapped.push_str(body);
        match goes_on {
            true => unwrapped.extend(std::iter::repeat_n(' ', line.len() - body.len())),
            false => unwrapped.push_str(&line[body.len()..]),
        }
    }
    unwrapped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(text: &str) -> usize {
        text.unicode_words().count()
    }

    #[test]
    fn passages_end_at_sentence_ends() {
        let text = "One two three. Four five six. Seven eight nine. Ten.";
        let split = |from, to| {
            let ranges = Passages { from, to }.split(text);
            ranges.into_iter().map(|range| text[range].trim()).collect::<Vec<_>>()
        };
        assert_eq!(split(3, 6), ["One two three.", "Four five six.", "Seven eight nine. Ten."]);
        assert_eq!(split(4, 6), ["One two three. Four five six.", "Seven eight nine. Ten."]);
        assert_eq!(split(100, 200), [text]);
        assert_eq!(split(2, 2).len(), 6);
    }

    #[test]
    fn a_sentence_goes_on_in_the_next_line() {
        let text = "One two\nthree. Four five.\n\nSix\n \nSeven.";
        assert_eq!(unwrapped(text), "One two three. Four five.\n\nSix\n \nSeven.");
        let windows = text.replace('\n', "\r\n");
        assert_eq!(unwrapped(&windows), "One two  three. Four five.\r\n\r\nSix\r\n \r\nSeven.");
        let cut = Passages { from: 2, to: 9 };
        assert_eq!(cut.split(&windows).len(), cut.split(text).len());
        let ranges = cut.split(text);
        let passages: Vec<&str> = ranges.into_iter().map(|range| &text[range]).collect();
        assert_eq!(passages, ["One two\nthree. ", "Four five.\n\n", "Six\n \nSeven."]);
    }

    #[test]
    fn nothing_has_no_passage() {
        assert!(Passages { from: 2, to: 4 }.split("").is_empty());
    }

    proptest! {
        #[test]
        fn passages_cover_the_text_and_keep_their_length(
            text in "([a-z]{1,3} |[A-Z][a-z]\\. |文字|\n\n){0,60}", from in 1..8_usize, more in 0..8_usize
        ) {
            let passages = Passages { from, to: from + more }.split(&text);
            let mut end = 0;
            for passage in &passages {
                prop_assert_eq!(passage.start, end);
                prop_assert!(words(&text[passage.clone()]) <= from + more);
                end = passage.end;
            }
            prop_assert_eq!(end, text.len());
        }
    }
}
