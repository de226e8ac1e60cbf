//! The words of text in scripts where each character has a class of its own: Latin, Greek, Cyrillic, Arabic without vowel signs,
//! Hangul, Han, Kana and their punctuation. What the general rules say of each such character is found out once, by
//! asking them; a character that depends on more than its neighbours (a combining mark, say) is left to them.

use std::{ops::RangeInclusive, sync::OnceLock};

use unicode_normalization::{IsNormalized, char::canonical_combining_class, is_nfkc_quick};
use unicode_segmentation::UnicodeSegmentation;

use super::{
    normalise::{Normalise, normalise},
    words::{WordRule, WordSettings, is_spaceless},
};

/// What a character is to the words around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Stands in words.
    Letter,
    /// Stands in words; joined to others by other characters than letters are.
    Digit,
    /// Stands in words, but does not make one.
    Underscore,
    /// Joins two letters, or two digits.
    MidBoth,
    /// Joins two letters.
    MidLetter,
    /// Joins two digits.
    MidDigit,
    /// Stands in runs of a script without spaces.
    Spaceless,
    /// Stands between words.
    Other,
    /// Ask the general rules.
    Complex,
}

/// A character's class, and what it becomes by normalisation and case folding.
#[derive(Debug, Clone, Copy)]
pub(super) struct Simple {
    pub(super) class: Class,
    pub(super) folded: char,
}

const COMPLEX: Simple = Simple { class: Class::Complex, folded: '\0' };

/// The characters that the rules are asked about: most of what is written, and few enough to ask in some milliseconds.
pub(super) const ASKED: [RangeInclusive<u32>; 6] = [
    0x0..=0x58f,
    0x600..=0x6ff,
    0x1e00..=0x1eff,
    0x2000..=0x206f,
    0x3000..=0x30ff,
    0xff00..=0xffef,
];

/// The characters of one way to make words.
pub(super) struct Characters {
    tables: [Vec<Simple>; 6],
}

impl Characters {
    /// Those of the usual settings, found out once for each; none for unusual ones.
    pub(super) fn of(settings: &WordSettings) -> Option<&'static Characters> {
        static KNOWN: [OnceLock<Characters>; 4] = [const { OnceLock::new() }; 4];
        if settings.normalise != Normalise::Nfkc {
            return None;
        }
        let rule = usize::from(settings.rule == WordRule::Alphanumeric);
        let known = &KNOWN[2 * rule + usize::from(settings.fold_case)];
        Some(known.get_or_init(|| Characters::ask(*settings)))
    }

    fn ask(settings: WordSettings) -> Self {
        let ask = |code: u32| char::from_u32(code).map_or(COMPLEX, |c| ask(c, &settings));
        Characters { tables: ASKED.map(|range| range.map(ask).collect()) }
    }

    /// What is known of a character.
    #[inline]
    pub(super) fn get(&self, c: char) -> Simple {
        let code = c as u32;
        match c {
            '\u{4e00}'..='\u{9fff}' | '\u{3400}'..='\u{4dbf}' => {
                Simple { class: Class::Spaceless, folded: c }
            }
            '\u{ac00}'..='\u{d7a3}' => Simple { class: Class::Letter, folded: c },
            _ => {
                let tables = ASKED.iter().zip(&self.tables);
                let mut found = tables.filter(|(range, _)| range.contains(&code));
                found
                    .next()
                    .map_or(COMPLEX, |(range, table)| table[(code - range.start()) as usize])
            }
        }
    }
}

/// Asks the general rules about one character.
fn ask(c: char, settings: &WordSettings) -> Simple {
    let mut normal = String::new();
    normalise(&c.to_string(), settings.normalise, settings.fold_case, &mut normal);
    // Nothing before it composes with it, and it has no mark that could move.
    let stands_alone = is_nfkc_quick(normal.chars()) == IsNormalized::Yes
        && normal.chars().all(|c| canonical_combining_class(c) == 0);
    let mut characters = normal.chars();
    match (characters.next(), characters.next()) {
        (Some(folded), None) if stands_alone => {
            let class = match settings.rule {
                WordRule::Unicode => unicode_class(folded),
                WordRule::Alphanumeric => alphanumeric_class(folded),
            };
            Simple { class, folded }
        }
        _ => COMPLEX,
    }
}

/// The class of a character by how Unicode's rules cut it from, or join it to, letters and digits.
fn unicode_class(c: char) -> Class {
    let is_one_word = |text: String| text.unicode_words().eq([text.as_str()]);
    let joins = |a: char, b: char| is_one_word(format!("{a}{c}{b}"));
    let follows = |before: &str| is_one_word(format!("{before}{c}"));
    let parts = |text: String, a: &str, b: &str| text.unicode_words().eq([a, b]);
    let stays_out = parts(format!("a{c}a"), "a", "a") && parts(format!("1{c}1"), "1", "1");
    match c {
        '_' => Class::Underscore,
        // Some of them, as the repetition mark of Han, count as letters in the rules.
        _ if is_spaceless(c) && !follows("a") => Class::Spaceless,
        _ if is_spaceless(c) => Class::Complex,
        _ if c.is_alphanumeric() => match (follows("a"), follows("a:"), follows("1,")) {
            (true, true, false) => Class::Letter,
            (true, false, true) => Class::Digit,
            _ => Class::Complex,
        },
        _ if follows("a") || !c.to_string().unicode_words().eq::<[&str; 0]>([]) => Class::Complex,
        _ if joins('a', 'a') && joins('1', '1') => Class::MidBoth,
        _ if joins('a', 'a') => Class::MidLetter,
        _ if joins('1', '1') => Class::MidDigit,
        // What takes no part in words at all: a mark would hang on to its neighbour, a sign of Katakana to Katakana.
        _ if stays_out && ["a", "_", "カ"].iter().all(|before| stands_apart(before, c)) => {
            Class::Other
        }
        _ => Class::Complex,
    }
}

/// Whether the rules always cut between the two.
fn stands_apart(before: &str, c: char) -> bool {
    let c = c.to_string();
    format!("{before}{c}").split_word_bounds().eq([before, &c])
        && format!("{c}{before}").split_word_bounds().eq([c.as_str(), before])
}

fn alphanumeric_class(c: char) -> Class {
    match c {
        '_' => Class::Underscore,
        _ if is_spaceless(c) => Class::Spaceless,
        _ if unicode_normalization::char::is_combining_mark(c) => Class::Complex,
        _ if c.is_alphanumeric() => Class::Letter,
        _ => Class::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_have_the_classes_that_unicode_gives_them() {
        let settings = WordSettings {
            rule: WordRule::Unicode,
            normalise: Normalise::Nfkc,
            fold_case: true,
            spaceless: 2,
        };
        let known = Characters::of(&settings).unwrap();
        for (c, class, folded) in [
            ('É', Class::Letter, 'é'),
            ('Ж', Class::Letter, 'ж'),
            ('Ａ', Class::Letter, 'a'),
            ('서', Class::Letter, '서'),
            ('م', Class::Letter, 'م'),
            ('近', Class::Spaceless, '近'),
            ('か', Class::Spaceless, 'か'),
            ('ー', Class::Spaceless, 'ー'),
            ('’', Class::MidBoth, '’'),
            ('，', Class::MidDigit, ','),
            ('٣', Class::Digit, '٣'),
            ('。', Class::Other, '。'),
            ('«', Class::Other, '«'),
            ('—', Class::Other, '—'),
            ('7', Class::Digit, '7'),
            ('.', Class::MidBoth, '.'),
        ] {
            let simple = known.get(c);
            assert_eq!((simple.class, simple.folded), (class, folded), "{c}");
        }
        for c in ['ß', '\u{301}', '\u{3099}', 'ﬁ', '\u{ad}', 'ा', 'א', '🙂', '\u{200d}'] {
            assert_eq!(known.get(c).class, Class::Complex, "{c:?}");
        }
    }
}
