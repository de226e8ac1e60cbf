//! Signer: a recipe at work.

use std::{borrow::Cow, ops::Range, sync::Arc};

use super::{Recipe, SignatureKind};
use crate::{
    Document, Error, Media, Result, Signature,
    features::{
        Buffers, Extractor, counts::Counts, html::text_of_html, terms::TermStatistics,
        weights::Weighted,
    },
    signature::{
        margins::{margins_of, signature_of},
        simhash, topsig,
    },
};

/// One signature of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed {
    /// The signature.
    pub signature: Signature,
    /// How weak each bit is, in a byte each, if asked for.
    pub margins: Option<Vec<u8>>,
    /// The passage that it is the signature of, in bytes of the document's text, if the recipe cuts passages.
    pub passage: Option<Range<usize>>,
}

/// Turns documents into signatures as a recipe says. Immutable, so that threads share one.
#[derive(Debug, Clone)]
pub struct Signer {
    recipe: Recipe,
    extractor: Arc<Extractor>,
    terms: Option<TermStatistics>,
    with_margins: bool,
}

/// Buffers that a [`Signer`] uses again from document to document; each thread has its own.
#[derive(Debug, Default)]
pub struct Scratch {
    buffers: Buffers,
    counts: Counts,
    weighted: Weighted,
    votes: Vec<i64>,
}

impl Signer {
    /// A signer for a recipe; `terms` are the statistics that it weighs by, if it does.
    pub fn new(mut recipe: Recipe, terms: Option<TermStatistics>) -> Result<Self> {
        recipe.check()?;
        let terms = check_terms(&recipe, terms)?;
        recipe.terms = terms.as_ref().map(|terms| terms.fingerprint().to_owned());
        let extractor = Arc::new(Extractor::new(&recipe.features)?);
        Ok(Signer { recipe, extractor, terms, with_margins: false })
    }

    /// The same signer, which gives margins too.
    pub fn with_margins(self) -> Self {
        Signer { with_margins: true, ..self }
    }

    /// The recipe, with the fingerprint of the term statistics filled in.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// What finds the features.
    pub fn extractor(&self) -> &Extractor {
        &self.extractor
    }

    /// The text of a document as it is signed: HTML, by the recipe or by the document, without its markup.
    pub fn text_of(document: &Document, html: bool) -> Cow<'_, str> {
        match html || document.media == Media::Html {
            true => Cow::Owned(text_of_html(&document.text)),
            false => Cow::Borrowed(&document.text),
        }
    }

    /// The signatures of a document: one, or one for each passage if the recipe cuts passages. None for a text or passage
    /// with fewer features than the recipe asks for.
    pub fn sign(&self, document: &Document, scratch: &mut Scratch) -> Vec<Signed> {
        let text = Signer::text_of(document, self.recipe.html);
        let Some(passages) = &self.recipe.passages else {
            return self.sign_text(&text, scratch).into_iter().collect();
        };
        let sign = |passage: Range<usize>| {
            let signed = self.sign_text(&text[passage.clone()], scratch)?;
            Some(Signed { passage: Some(passage), ..signed })
        };
        passages.split(&text).into_iter().filter_map(sign).collect()
    }

    /// The signature of a plain text as a whole, or nothing if it has too few features.
    pub fn sign_text(&self, text: &str, scratch: &mut Scratch) -> Option<Signed> {
        self.weigh(text, scratch);
        if scratch.weighted.len() < self.recipe.min_features {
            return None;
        }
        let hash_bits = self.recipe.features.hash.bits;
        scratch.votes.resize(self.recipe.signature.bits as usize, 0);
        match self.recipe.signature.kind {
            SignatureKind::SimHash => {
                simhash::vote(&scratch.weighted, hash_bits, &mut scratch.votes)
            }
            SignatureKind::TopSig => {
                topsig::project(&scratch.weighted, hash_bits, &mut scratch.votes)
            }
        }
        let signature = signature_of(&scratch.votes).expect("the recipe was checked");
        let margins = self.with_margins.then(|| margins_of(&scratch.votes));
        Some(Signed { signature, margins, passage: None })
    }

    /// The features of a plain text with their weights.
    pub fn weigh<'a>(&self, text: &str, scratch: &'a mut Scratch) -> &'a Weighted {
        self.extractor.count(text, &mut scratch.buffers, &mut scratch.counts);
        scratch.weighted.weigh(&scratch.counts, self.recipe.weight, self.terms.as_ref());
        &scratch.weighted
    }
}

/// The statistics that the recipe needs, or why they are not those.
fn check_terms(recipe: &Recipe, terms: Option<TermStatistics>) -> Result<Option<TermStatistics>> {
    let mismatch = |wanted: String, given: &str| {
        Err(Error::Terms { recipe: recipe.name.clone(), wanted, given: given.to_owned() })
    };
    if !recipe.weight.needs_terms() {
        return Ok(None);
    }
    let wanted = match &recipe.terms {
        Some(fingerprint) => format!("the term statistics {fingerprint}"),
        None => "term statistics".to_owned(),
    };
    match terms {
        None => mismatch(wanted, "none were given"),
        Some(terms) if *terms.features() != recipe.features => {
            mismatch(wanted, "those given were counted with other features")
        }
        Some(terms)
            if recipe.terms.as_deref().is_some_and(|print| print != terms.fingerprint()) =>
        {
            mismatch(wanted, &format!("those given are {}", terms.fingerprint()))
        }
        Some(terms) => Ok(Some(terms)),
    }
}
