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
    /// Composed, and compatibility forms too: `ﬁ` becomes `fi`, `Ａ` becomes `A`.
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

fn compose(text: &str, form: Normalise, out: &mut String) {
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
        assert_eq!(normalised("e\u{301} ﬁ", Normalise::Nfc, false), "é ﬁ");
        assert_eq!(normalised("e\u{301} É", Normalise::None, false), "e\u{301} É");
    }
}
