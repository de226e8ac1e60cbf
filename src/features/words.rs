//! Words: a text cut at the word boundaries of Unicode (UAX #29), normalised on the way.
//!
//! Almost every byte of most collections is ASCII, so ASCII has a path of its own (`ascii.rs`); of what stands
//! between two spaces and has anything else in it, what is made of characters that need no context takes a second path
//! (`simple.rs`), the rest the general one. A space never composes with what follows it and is always a word
//! boundary, so the paths can take turns without changing the result; tests demand that.

use serde::{Deserialize, Serialize};
use unicode_script::{Script, UnicodeScript};
use unicode_segmentation::UnicodeSegmentation;

use super::{
    ascii,
    normalise::{Normalise, normalise},
    simple::{Characters, Class, Simple},
};

/// What counts as a word. Both rules want a letter or a digit in it: a ruled line `____` is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WordRule {
    /// Unicode's word boundaries: `can't`, `3.14` and `example.com` are one word each.
    Unicode,
    /// Runs of letters, digits and underscores: `example.com` is two words. For source code.
    Alphanumeric,
}

/// How a text becomes words.
#[derive(Debug, Clone, Copy)]
pub struct WordSettings {
    /// What counts as a word.
    pub rule: WordRule,
    /// The normal form.
    pub normalise: Normalise,
    /// Whether `A` and `a` are the same.
    pub fold_case: bool,
    /// Length of the character n-grams that stand for words in scripts without spaces.
    pub spaceless: usize,
}

/// The words of a text, joined by single spaces.
#[derive(Debug, Clone, Default)]
pub struct Words {
    joined: Vec<u8>,
    /// Where each word ends in `joined`; it begins one past the end of the word before it.
    ends: Vec<usize>,
    /// A piece of text in the case that words have; only memory to use again.
    folded: Vec<u8>,
}

impl PartialEq for Words {
    fn eq(&self, other: &Self) -> bool {
        self.joined == other.joined && self.ends == other.ends
    }
}

impl Words {
    /// How many words there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no words.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All words joined by single spaces.
    pub fn joined(&self) -> &[u8] {
        &self.joined
    }

    /// Words `from` to `to` (exclusive, not empty), joined by single spaces.
    #[inline]
    pub fn run(&self, from: usize, to: usize) -> &[u8] {
        let start = if from == 0 { 0 } else { self.ends[from - 1] + 1 };
        &self.joined[start..self.ends[to - 1]]
    }

    /// The words in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|i| self.run(i, i + 1))
    }

    /// Forgets all words and keeps the memory.
    pub fn clear(&mut self) {
        self.joined.clear();
        self.ends.clear();
    }

    /// Appends a word.
    pub fn push(&mut self, word: &[u8]) {
        if !self.joined.is_empty() {
            self.joined.push(b' ');
        }
        self.joined.extend_from_slice(word);
        self.ends.push(self.joined.len());
    }

    /// Appends the words of `text`.
    pub fn extend_from_text(&mut self, text: &str, settings: &WordSettings) {
        let bytes = text.as_bytes();
        let by_character = Characters::of(settings).is_some();
        let mut at = 0;
        while at < bytes.len() {
            // In mixed text, stretches of ASCII are too short to be worth a start.
            let ahead = &bytes[at..bytes.len().min(at + WORTH_A_START)];
            if !by_character || ahead.is_ascii() {
                at = self.extend_from_ascii(bytes, at, settings);
            }
            at += bytes[at..].iter().take_while(|byte| is_space(**byte)).count();
            let end = bytes[at..].iter().position(|&byte| is_space(byte));
            let end = end.map_or(bytes.len(), |length| at + length);
            if at < end && !self.extend_from_simple(&text[at..end], settings) {
                self.extend_from_any(&text[at..end], settings);
            }
            at = end;
        }
    }

    /// Appends the words from `start` on until a chunk (what stands between two spaces) that is not all ASCII, or the
    /// end. Returns where that chunk begins.
    fn extend_from_ascii(&mut self, bytes: &[u8], start: usize, settings: &WordSettings) -> usize {
        let mut end = start + ascii_prefix(&bytes[start..]);
        if end < bytes.len() {
            let chunk = bytes[start..end].iter().rposition(|&byte| is_space(byte));
            end = chunk.map_or(start, |space| start + space + 1);
        }
        self.folded.clear();
        self.folded.extend_from_slice(&bytes[start..end]);
        if settings.fold_case {
            self.folded.make_ascii_lowercase();
        }
        self.folded.extend_from_slice(&[0; ascii::PIECE]);
        // Each word is followed by a space; never more is written than is read, but for the spaces at both ends.
        let mut written = self.joined.len();
        self.joined.resize(written + self.folded.len() + 2, b' ');
        written += usize::from(written > 0);
        let (folded, joined) = (&self.folded[..], &mut self.joined[..]);
        ascii::for_each_word(&bytes[start..end], settings.rule, |word, word_end| {
            let is_word = |word: &[u8]| word.iter().any(u8::is_ascii_alphanumeric);
            if folded[word] == b'_' && !is_word(&folded[word..word_end]) {
                return;
            }
            ascii::copy(folded, word, word_end, joined, written);
            written += word_end - word;
            joined[written] = b' ';
            self.ends.push(written);
            written += 1;
        });
        self.joined.truncate(self.ends.last().copied().unwrap_or(0));
        end
    }

    /// Appends the words of a text all of whose characters have simple classes; otherwise does nothing and says so.
    fn extend_from_simple(&mut self, text: &str, settings: &WordSettings) -> bool {
        let Some(characters) = Characters::of(settings) else { return false };
        let (joined, ends) = (self.joined.len(), self.ends.len());
        let mut open = OpenWord::default();
        for c in text.chars() {
            if !open.take(characters.get(c), self, settings.spaceless) {
                self.joined.truncate(joined);
                self.ends.truncate(ends);
                return false;
            }
        }
        open.close(self, settings.spaceless);
        true
    }

    /// Appends the words of any text, by the general rules.
    fn extend_from_any(&mut self, text: &str, settings: &WordSettings) {
        let mut normal = String::with_capacity(text.len());
        normalise(text, settings.normalise, settings.fold_case, &mut normal);
        match settings.rule {
            WordRule::Unicode => self.push_words(&normal, normal.unicode_word_indices(), settings),
            WordRule::Alphanumeric => {
                self.push_words(&normal, alphanumeric_runs(&normal), settings)
            }
        }
    }

    /// Appends words of `text`, given with their places. Neighbouring words of scripts without spaces are one run, to be
    /// cut into n-grams.
    fn push_words<'a>(
        &mut self,
        text: &str,
        words: impl Iterator<Item = (usize, &'a str)>,
        settings: &WordSettings,
    ) {
        let mut run = 0..0;
        for (start, word) in words {
            // Unicode lets a mark that follows a space take the space along.
            let start = start + word.len() - word.trim_start().len();
            let word = word.trim_start();
            let spaceless = word.chars().next().is_some_and(is_spaceless);
            if !spaceless || start != run.end {
                self.push_ngrams(&text[run], settings.spaceless);
                run = start..start;
            }
            if spaceless {
                run.end = start + word.len();
            } else {
                self.push(word.as_bytes());
            }
        }
        self.push_ngrams(&text[run], settings.spaceless);
    }

    /// Appends the character n-grams of a run of text without spaces; a run that is too short for one is one itself.
    fn push_ngrams(&mut self, run: &str, length: usize) {
        if run.is_empty() {
            return;
        }
        let starts: Vec<usize> = run.char_indices().map(|(at, _)| at).chain([run.len()]).collect();
        let length = length.min(starts.len() - 1);
        for window in starts.windows(length + 1) {
            self.push(&run.as_bytes()[window[0]..window[length]]);
        }
    }
}

/// So many bytes of ASCII are taken 64 at a time; fewer, character by character.
const WORTH_A_START: usize = 96;

/// The word, or the run of a script without spaces, that a walk through a text is in.
#[derive(Default)]
struct OpenWord {
    text: String,
    /// The class of its last character; none if it is empty.
    last: Option<Class>,
    /// Whether it is more than underscores.
    is_word: bool,
    /// A character that belongs to it if what it joins follows.
    mid: Option<Simple>,
}

impl OpenWord {
    /// Takes the next character; says no if the general rules must be asked.
    fn take(&mut self, next: Simple, words: &mut Words, spaceless: usize) -> bool {
        let Simple { class, folded } = next;
        if let Some(mid) = self.mid.take() {
            let joins = match mid.class {
                Class::MidLetter => class == Class::Letter,
                Class::MidDigit => class == Class::Digit,
                _ => matches!(class, Class::Letter | Class::Digit),
            };
            match joins && self.last == Some(class) {
                true => self.text.push(mid.folded),
                false => self.close(words, spaceless),
            }
        }
        match (class, self.last) {
            (Class::Complex, _) => return false,
            // Unicode lets underscores join Katakana, but not Han.
            (Class::Underscore, Some(Class::Spaceless)) => return false,
            (Class::Spaceless, Some(Class::Underscore)) => return false,
            (Class::Other, _) => self.close(words, spaceless),
            (Class::MidBoth | Class::MidLetter, Some(Class::Letter)) => self.mid = Some(next),
            (Class::MidBoth | Class::MidDigit, Some(Class::Digit)) => self.mid = Some(next),
            (Class::MidBoth | Class::MidLetter | Class::MidDigit, _) => {
                self.close(words, spaceless)
            }
            (_, Some(last)) if (last == Class::Spaceless) != (class == Class::Spaceless) => {
                self.close(words, spaceless);
                self.push(class, folded);
            }
            _ => self.push(class, folded),
        }
        true
    }

    fn push(&mut self, class: Class, folded: char) {
        self.text.push(folded);
        self.last = Some(class);
        self.is_word |= class != Class::Underscore;
    }

    /// Appends what is open to the words, and is empty again.
    fn close(&mut self, words: &mut Words, spaceless: usize) {
        match self.last {
            Some(Class::Spaceless) => words.push_ngrams(&self.text, spaceless),
            Some(_) if self.is_word => words.push(self.text.as_bytes()),
            _ => {}
        }
        self.text.clear();
        (self.last, self.is_word, self.mid) = (None, false, None);
    }
}

/// How many bytes there are before the first that is not ASCII.
fn ascii_prefix(bytes: &[u8]) -> usize {
    let whole = bytes.chunks(1024).take_while(|chunk| chunk.is_ascii()).count() * 1024;
    let rest = bytes.get(whole..).unwrap_or_default();
    rest.iter().position(|byte| !byte.is_ascii()).map_or(bytes.len(), |at| whole + at)
}

const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Whether a character's script writes words without spaces between them.
pub(super) fn is_spaceless(c: char) -> bool {
    use Script::*;
    // Nothing below Thai is; this spares most texts the look-up.
    c >= '\u{e00}'
        && c.is_alphabetic()
        && matches!(
            c.script(),
            Han | Hiragana | Katakana | Bopomofo | Yi | Thai | Lao | Khmer | Myanmar | Tibetan | Tai_Le
                | New_Tai_Lue | Tai_Tham | Tai_Viet | Javanese | Balinese | Common
        )
        // Common: the long vowel sign of Katakana and its like stand in runs, fullwidth letters are gone by NFKC.
        && (c.script() != Common || matches!(c, '\u{3000}'..='\u{30ff}' | '\u{ff70}'))
}

/// Runs of letters, digits and underscores with a letter or digit in them, cut where the script changes between one
/// with and one without spaces; with their places.
fn alphanumeric_runs(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let kind = |c: char| match c {
        _ if is_spaceless(c) => 2,
        '_' => 1,
        _ if c.is_alphanumeric() || is_mark(c) => 1,
        _ => 0,
    };
    let mut rest = text.char_indices().peekable();
    std::iter::from_fn(move || {
        loop {
            let (start, first) = rest.next()?;
            let mut end = start + first.len_utf8();
            while let Some((at, c)) = rest.next_if(|&(_, c)| kind(c) == kind(first)) {
                end = at + c.len_utf8();
            }
            let run = &text[start..end];
            if kind(first) != 0 && run.contains(char::is_alphanumeric) {
                return Some((start, run));
            }
        }
    })
}

/// Whether a character only marks the one before it.
fn is_mark(c: char) -> bool {
    unicode_normalization::char::is_combining_mark(c)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::simple::ASKED, *};

    const UNICODE: WordSettings = WordSettings {
        rule: WordRule::Unicode,
        normalise: Normalise::Nfkc,
        fold_case: true,
        spaceless: 2,
    };
    const CODE: WordSettings =
        WordSettings { rule: WordRule::Alphanumeric, fold_case: false, ..UNICODE };

    fn words(text: &str, settings: &WordSettings) -> Vec<String> {
        let mut words = Words::default();
        words.extend_from_text(text, settings);
        assert_eq!(words.joined(), words.iter().collect::<Vec<_>>().join(&b' '));
        words.iter().map(|word| String::from_utf8(word.to_vec()).unwrap()).collect()
    }

    /// The whole text by the general path: what the ASCII path must agree with.
    fn general(text: &str, settings: &WordSettings) -> Vec<String> {
        let mut words = Words::default();
        words.extend_from_any(text, settings);
        words.iter().map(|word| String::from_utf8(word.to_vec()).unwrap()).collect()
    }

    #[test]
    fn english_is_cut_as_unicode_says() {
        assert_eq!(
            words(
                "Can't stop: it's 3.14, 1,000 or snake_case at Example.com. ____ -- end",
                &UNICODE
            ),
            [
                "can't",
                "stop",
                "it's",
                "3.14",
                "1,000",
                "or",
                "snake_case",
                "at",
                "example.com",
                "end"
            ]
        );
    }

    #[test]
    fn source_code_keeps_case_and_is_cut_at_dots() {
        assert_eq!(
            words("Foo.bar_baz(x1, \"größe\") ___", &CODE),
            ["Foo", "bar_baz", "x1", "größe"]
        );
    }

    #[test]
    fn scripts_without_spaces_become_ngrams() {
        assert_eq!(words("近似重複 test", &UNICODE), ["近似", "似重", "重複", "test"]);
        assert_eq!(words("使用Rust编写", &UNICODE), ["使用", "rust", "编写"]);
        assert_eq!(words("使用Rust编写", &CODE), ["使用", "Rust", "编写"]);
        assert_eq!(words("字", &UNICODE), ["字"]);
        assert_eq!(words("コーヒー", &UNICODE), ["コー", "ーヒ", "ヒー"]);
        assert!(words("ภาษาไทย", &UNICODE).len() > 3);
        assert_eq!(words("한국어 문서", &UNICODE), ["한국어", "문서"]);
        assert_eq!(words("مرحبا بالعالم", &UNICODE).len(), 2);
    }

    #[test]
    fn spellings_become_one() {
        assert_eq!(words("Cafe\u{301} CAFÉ ﬁn", &UNICODE), ["café", "café", "fin"]);
        assert_eq!(words("a\u{a0}\u{11d3c}", &UNICODE), ["a", "\u{11d3c}"]);
    }

    #[test]
    fn nothing_gives_no_words() {
        for text in ["", " ", "...", "____", "🙂", "\u{301}"] {
            assert!(words(text, &UNICODE).is_empty(), "{text:?}");
        }
    }

    /// Every character that the rules were asked about, in every surrounding that could matter to it.
    #[test]
    fn each_simple_character_agrees_with_the_general_path() {
        let surroundings = [
            "@",
            "a@",
            "@a",
            "a@a",
            "1@1",
            "a@1",
            "1@a",
            "@@",
            "a@@a",
            "_@",
            "@_",
            "a_@",
            "@.@",
            "@:@",
            "@,@",
            "1.@",
            "a.@",
            "a'@",
            "@'a",
            "カ@",
            "@カ",
            "カ@カ",
            "字@字",
            "字@a",
            "あ@_",
            "서@",
            "é@É",
            "@\u{301}",
            "a@\u{301}b",
            "«@»",
        ];
        // A sample of Han and Hangul, which are known without asking.
        let known = (0x3400..=0x4dbf).chain(0x4e00..=0x9fff).chain(0xac00..=0xd7a3).step_by(101);
        let others = ['ा', 'א', '🙂', 'ก'].map(u32::from);
        let codes = ASKED.into_iter().flatten().chain(known).chain(others);
        let all: Vec<char> = codes.filter_map(char::from_u32).filter(|c| !c.is_ascii()).collect();
        for settings in [&UNICODE, &CODE] {
            for c in &all {
                for surrounding in surroundings {
                    let text = surrounding.replace('@', &c.to_string());
                    assert_eq!(words(&text, settings), general(&text, settings), "{text:?}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn ascii_path_agrees_with_the_general_one(text in "[ -~\t\n\r]{0,80}") {
            for settings in [&UNICODE, &CODE] {
                prop_assert_eq!(words(&text, settings), general(&text, settings));
            }
        }

        #[test]
        fn dense_ascii_agrees_with_the_general_one(text in "[aB1_.,;:' ]{0,30}") {
            for settings in [&UNICODE, &CODE] {
                prop_assert_eq!(words(&text, settings), general(&text, settings));
            }
        }

        #[test]
        fn simple_characters_agree_with_the_general_path(
            text in "([a-zA-Z]{0,3}|[0-9]|[_.,;:']|[À-ÿ]|[А-я]|[α-ωΑ-Ω]|[Ａ-Ｚ０-９，．：；]|[가-힣]|[ا-ي]|[٠-٩]|[一-十]|[ぁ-ん]|[ァ-ー]|[’‘“”—…·、。「」]| ){0,16}"
        ) {
            for settings in [&UNICODE, &CODE] {
                prop_assert_eq!(words(&text, settings), general(&text, settings));
            }
        }

        #[test]
        fn mixed_text_agrees_with_the_general_path(
            text in "([a-z.']{0,4}| |é|e\u{301}|\u{301}|ﬁ|中文|か|ー|ไทย|’|\u{a0}|´|Ω|🙂|\\PC){0,24}"
        ) {
            for settings in [&UNICODE, &CODE] {
                prop_assert_eq!(words(&text, settings), general(&text, settings));
            }
        }
    }
}
