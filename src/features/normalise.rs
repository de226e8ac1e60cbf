//! Unicode normalisation and case folding: two spellings of one text become one.

use caseless::Caseless;
use serde::{Deserialize, Serialize};
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick, is_nfkc_quick};

/// Which Unicode normal form a text is brought to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Normalise {
    /// Code points as they come.
    None,
    /// Composed: `e` and an accent become `é`.
    Nfc,
    /// Composed, and compatibility forms too: `ﬁ` becomes `fi`, `Ａ` becomes `A`; what is not seen, as a soft hyphen, goes.
    Nfkc,
}

/// Brings `text` to the normal form, folds its case if asked, and appends it to `out`.
pub fn normalise(text: &str, form: Normalise, fold_case: bool, out: &mut String) {
    if !fold_case {
        return compose(text, form, out);
    }
    let mut composed = String::with_capacity(text.len());
    compose(text, form, &mut composed);
    let folded: String = composed.chars().default_case_fold().collect();
    // Folding can leave a text that is no longer composed.
    compose(&folded, form, out);
}

/// Characters that are not seen (Unicode's Default_Ignorable_Code_Point, without those that nobody assigned): NFKC with
/// case folding drops them, and so do we.
fn is_ignorable(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

fn compose(text: &str, form: Normalise, out: &mut String) {
    if form == Normalise::Nfkc && text.contains(is_ignorable) {
        let visible: String = text.chars().filter(|&c| !is_ignorable(c)).collect();
        return compose(&visible, form, out);
    }
    let done = match form {
        Normalise::None => IsNormalized::Yes,
        Normalise::Nfc => is_nfc_quick(text.chars()),
        Normalise::Nfkc => is_nfkc_quick(text.chars()),
    };
    match form {
        _ if done == IsNormalized::Yes => out.push_str(text),
        Normalise::None => out.push_str(text),
        Normalise::Nfc => out.extend(text.nfc()),
        Normalise::Nfkc => out.extend(text.nfkc()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalised(text: &str, form: Normalise, fold_case: bool) -> String {
        let mut out = String::new();
        normalise(text, form, fold_case, &mut out);
        out
    }

    #[test]
    fn spellings_of_one_text_become_one() {
        let nfkc = |text| normalised(text, Normalise::Nfkc, true);
        assert_eq!(nfkc("Straße ＡＢＣ ﬁn"), "strasse abc fin");
        assert_eq!(nfkc("e\u{301}"), nfkc("É"));
        assert_eq!(nfkc("ΣΊΣΥΦΟΣ"), nfkc("σίσυφος"));
        assert_eq!(nfkc("Qu\u{ad}ick\u{200b}"), "quick");
        assert_eq!(normalised("e\u{301} ﬁ", Normalise::Nfc, false), "é ﬁ");
        assert_eq!(normalised("e\u{301} É", Normalise::None, false), "e\u{301} É");
    }
}
