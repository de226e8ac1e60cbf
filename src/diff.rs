//! Which words of two texts differ.
//!
//! ```
//! use std::time::Duration;
//! use lookalike::diff::{Side, words};
//!
//! let runs = words("the old cat sat", "the young cat sat", Duration::from_secs(1));
//! let runs: Vec<(Side, &str)> = runs.iter().map(|run| (run.side, run.text.as_str())).collect();
//! assert_eq!(runs, [
//!     (Side::Both, "the "), (Side::First, "old"), (Side::Second, "young"), (Side::Both, " cat sat"),
//! ]);
//! ```

use std::time::Duration;

use similar::{ChangeTag, TextDiff};
use unicode_segmentation::UnicodeSegmentation;

/// Which of the two texts has something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Both have it.
    Both,
    /// Only the first has it.
    First,
    /// Only the second has it.
    Second,
}

/// Neighbouring words that the same texts have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Which texts.
    pub side: Side,
    /// The words, and what is between them.
    pub text: String,
}

impl Run {
    /// The words and the spaces and signs between them, one by one, as they were compared.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.text.split_word_bounds()
    }
}

/// The words of two texts in one order: those of both once, those of one where they are in it. A comparison that takes
/// longer than `most_time` is finished coarsely.
pub fn words(first: &str, second: &str, most_time: Duration) -> Vec<Run> {
    let diff = TextDiff::configure().timeout(most_time).diff_unicode_words(first, second);
    let mut runs: Vec<Run> = Vec::new();
    for change in diff.iter_all_changes() {
        let side = match change.tag() {
            ChangeTag::Equal => Side::Both,
            ChangeTag::Delete => Side::First,
            ChangeTag::Insert => Side::Second,
        };
        match runs.last_mut() {
            Some(run) if run.side == side => run.text.push_str(change.value()),
            _ => runs.push(Run { side, text: change.value().to_owned() }),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TIME: Duration = Duration::from_secs(10);

    fn text_of(runs: &[Run], side: Side) -> String {
        let of = runs.iter().filter(|run| run.side == side || run.side == Side::Both);
        of.map(|run| run.text.as_str()).collect()
    }

    #[test]
    fn what_is_the_same_is_one_run() {
        let both = |text: &str| vec![Run { side: Side::Both, text: text.to_owned() }];
        assert_eq!(words("", "", TIME), []);
        assert_eq!(words("one, two", "one, two", TIME), both("one, two"));
        let run = &words("", "one, two", TIME)[0];
        assert_eq!((run.side, run.words().count()), (Side::Second, 4));
    }

    proptest! {
        #[test]
        fn runs_are_both_texts(a in "[ab ,.é]{0,30}", b in "[ab ,.é]{0,30}") {
            let runs = words(&a, &b, TIME);
            prop_assert_eq!(text_of(&runs, Side::First), a);
            prop_assert_eq!(text_of(&runs, Side::Second), b);
            prop_assert!(runs.windows(2).all(|pair| pair[0].side != pair[1].side));
        }
    }
}
