//! Two texts side by side, with the words marked that only one of them has.

use std::time::Duration;

use lookalike::diff::{self, Run, Side};

use super::words::escape;

/// A stretch that both have is cut to its ends if that leaves out enough to be worth it.
const CONTEXT_WORDS: usize = 16;
const LEFT_OUT_WORDS: usize = 12;
/// A comparison that takes longer is finished coarsely.
const MOST_TIME: Duration = Duration::from_millis(500);
/// The end of a text of which only the beginning is known.
const CUT: char = '…';

/// A stretch of one of the texts: words and the spaces between them.
struct Piece<'a> {
    words: Vec<&'a str>,
    /// Whether the other text lacks it.
    only_here: bool,
    /// Whether nothing that is shared comes before it, or after it.
    first: bool,
    last: bool,
}

/// Both texts as HTML: what only the removed one has is in `<del>`, what only the keeper has in `<ins>`.
pub(super) fn marked(removed: &str, keeper: &str) -> [String; 2] {
    let whole = |text: &str| !text.ends_with(CUT);
    let (whole_removed, whole_keeper) = (whole(removed), whole(keeper));
    let (removed, keeper) = (removed.trim_end_matches(CUT), keeper.trim_end_matches(CUT));
    let runs = diff::words(removed, keeper, MOST_TIME);
    [
        side(&runs, Side::First, whole_keeper) + if whole_removed { "" } else { " …" },
        side(&runs, Side::Second, whole_removed) + if whole_keeper { "" } else { " …" },
    ]
}

/// One of the texts: runs of both, and of its own kind.
fn side(runs: &[Run], own: Side, other_is_whole: bool) -> String {
    let mut pieces: Vec<Piece<'_>> = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        let only_here = run.side == own;
        if only_here || run.side == Side::Both {
            let (first, last) = (number == 0, number + 1 == runs.len());
            pieces.push(Piece { words: run.words().collect(), only_here, first, last });
        }
    }
    let mut pieces = bridged(pieces);
    // The end of one text may well be in the part of the other that nobody sees.
    if let Some(piece) = pieces.last_mut().filter(|_| !other_is_whole) {
        piece.only_here = false;
        piece.last = false;
    }
    let element = if own == Side::First { "del" } else { "ins" };
    pieces.iter().map(|piece| piece.html(element)).collect()
}

/// A space between two marked words is marked with them: one long mark is easier to read than many short ones.
fn bridged(pieces: Vec<Piece<'_>>) -> Vec<Piece<'_>> {
    let mut joined: Vec<Piece<'_>> = Vec::new();
    for piece in pieces {
        if let [.., before, space] = &mut joined[..]
            && piece.only_here
            && before.only_here
            && space.words.iter().all(|word| word.trim().is_empty())
        {
            before.words.append(&mut space.words);
            before.words.extend(piece.words);
            joined.pop();
        } else {
            joined.push(piece);
        }
    }
    joined
}

impl Piece<'_> {
    fn html(&self, element: &str) -> String {
        // Where a line ends is no difference to look at.
        let is_seen = self.words.iter().any(|word| !word.trim().is_empty());
        match self.only_here && is_seen {
            true => format!("<{element}>{}</{element}>", escape(&self.words.concat())),
            false => self.shortened(),
        }
    }

    /// What both have, without its middle if that is long. At the ends of the text, one side of it is enough.
    fn shortened(&self) -> String {
        let words = &self.words;
        let context = |needed: bool| if needed { 2 * CONTEXT_WORDS } else { 0 };
        let (before, after) = (context(!self.first), context(!self.last));
        if self.first && self.last || words.len() < before + after + 2 * LEFT_OUT_WORDS {
            return escape(&words.concat());
        }
        let is_word = |word: &&&str| word.chars().any(char::is_alphanumeric);
        let left_out = words[before..words.len() - after].iter().filter(is_word).count();
        format!(
            "{}<span class=same>… {left_out} words the same …</span>{}",
            escape(&words[..before].concat()),
            escape(&words[words.len() - after..].concat()),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_one_text_are_marked() {
        let [removed, keeper] = marked("the old grey cat sat", "the young cat sat down");
        assert_eq!(removed, "the <del>old grey</del> cat sat");
        assert_eq!(keeper, "the <ins>young</ins> cat sat<ins> down</ins>");
        assert_eq!(marked("same", "same"), ["same", "same"]);
        assert_eq!(marked("a b", "a\nb"), ["a b", "a\nb"]);
        assert_eq!(marked("", "new"), ["", "<ins>new</ins>"]);
    }

    #[test]
    fn spaces_between_marked_words_are_marked_with_them() {
        let [removed, keeper] = marked("x one two three y", "x four five six y");
        assert_eq!(removed, "x <del>one two three</del> y");
        assert_eq!(keeper, "x <ins>four five six</ins> y");
    }

    #[test]
    fn texts_are_escaped() {
        let [removed, keeper] = marked("a <script>&\" b", "a <b> b");
        assert!(!removed.contains("<script") && !keeper.contains("<b>"), "{removed} {keeper}");
        assert!(removed.contains("script") && removed.contains("&amp;"));
    }

    #[test]
    fn long_stretches_of_both_are_cut() {
        let same: String = (0..200).map(|number| format!("w{number} ")).collect();
        let [removed, _] = marked(&format!("{same}a {same}"), &format!("{same}b {same}"));
        assert!(removed.contains("<span class=same>… 184 words the same …</span>w184 "));
        assert!(removed.contains("<del>a</del> w0 w1"), "{removed}");
        assert!(!removed.contains("w100 "));
        // Nothing differs: there is nothing to shorten around.
        assert!(marked(&same, &same)[0].contains("w100 "));
    }

    #[test]
    fn what_may_be_in_the_unseen_part_is_not_marked() {
        assert_eq!(marked("a b c d", "x b…"), ["<del>a</del> b c d", "<ins>x</ins> b …"]);
        assert_eq!(marked("a b c…", "a b…"), ["a b c …", "a b …"]);
    }
}
