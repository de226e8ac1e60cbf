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
        minhash::{Bands, MinHash, element},
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
    minhash: Option<MinHash>,
    with_margins: bool,
}

/// All that finding near-duplicates needs of a text, beside the text itself.
#[derive(Debug)]
pub struct Sketch<'a> {
    /// The signature.
    pub signature: Signature,
    /// The features, by 32 bits of their hashes: ascending, each once.
    pub set: &'a [u32],
    /// The weight of each of them in 1/4096, if asked for.
    pub weights: &'a [u32],
    /// The band keys, if the signature has minima and bands were asked for.
    pub keys: &'a [u32],
}

/// What a sketch has beside the signature and the set.
#[derive(Debug, Clone, Copy, Default)]
pub struct SketchSettings {
    /// The band keys, of a MinHash recipe only.
    pub bands: Option<Bands>,
    /// The weights of the features.
    pub weights: bool,
}

/// Buffers that a [`Signer`] uses again from document to document; each thread has its own.
#[derive(Debug, Default)]
pub struct Scratch {
    buffers: Buffers,
    counts: Counts,
    weighted: Weighted,
    votes: Vec<i64>,
    set: Vec<u32>,
    weights: Vec<u32>,
    minima: Vec<u32>,
    keys: Vec<u32>,
}

impl Signer {
    /// A signer for a recipe; `terms` are the statistics that it weighs by, if it does.
    pub fn new(mut recipe: Recipe, terms: Option<TermStatistics>) -> Result<Self> {
        recipe.check()?;
        let terms = check_terms(&recipe, terms)?;
        recipe.terms = terms.as_ref().map(|terms| terms.fingerprint().to_owned());
        let extractor = Arc::new(Extractor::new(&recipe.features)?);
        let is_minhash = recipe.signature.kind == SignatureKind::MinHash;
        let minhash = is_minhash.then(|| MinHash::new(recipe.signature.bits)).transpose()?;
        Ok(Signer { recipe, extractor, terms, minhash, with_margins: false })
    }

    /// The same signer, which gives margins too, where its signatures have any.
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
        Some(self.sign_weighed(scratch))
    }

    /// The signature of features that were weighed.
    fn sign_weighed(&self, scratch: &mut Scratch) -> Signed {
        let hash_bits = self.recipe.features.hash.bits;
        if let Some(minhash) = &self.minhash {
            scratch.set.clear();
            scratch.set.extend(scratch.weighted.iter().map(|(hash, _)| element(hash[0])));
            minhash.minima(&scratch.set, &mut scratch.minima);
            let signature = minhash.signature(&scratch.minima);
            return Signed { signature, margins: None, passage: None };
        }
        scratch.votes.resize(self.recipe.signature.bits as usize, 0);
        let vote = match self.recipe.signature.kind {
            SignatureKind::TopSig => topsig::project,
            _ => simhash::vote,
        };
        vote(&scratch.weighted, hash_bits, &mut scratch.votes);
        let signature = signature_of(&scratch.votes).expect("the recipe was checked");
        let margins = self.with_margins.then(|| margins_of(&scratch.votes));
        Signed { signature, margins, passage: None }
    }

    /// The signature of a plain text as a whole with the set of its features, or nothing if it has too few.
    pub fn sketch<'a>(
        &self,
        text: &str,
        settings: SketchSettings,
        scratch: &'a mut Scratch,
    ) -> Option<Sketch<'a>> {
        let signature = match &self.minhash {
            Some(minhash) => self.sketch_minima(minhash, text, settings.bands, scratch)?,
            None => self.sketch_votes(text, scratch)?,
        };
        if settings.weights {
            self.weigh_set(text, scratch);
        }
        let weights = if settings.weights { &scratch.weights[..] } else { &[] };
        Some(Sketch { signature, set: &scratch.set, weights, keys: &scratch.keys })
    }

    /// A set needs no counts: sorting its elements is all.
    fn sketch_minima(
        &self,
        minhash: &MinHash,
        text: &str,
        bands: Option<Bands>,
        scratch: &mut Scratch,
    ) -> Option<Signature> {
        let Scratch { buffers, set, minima, keys, .. } = scratch;
        set.clear();
        self.extractor.for_each_hash(text, buffers, |hash| set.push(element(hash)));
        set.sort_unstable();
        set.dedup();
        if set.len() < self.recipe.min_features {
            return None;
        }
        minhash.minima(set, minima);
        keys.clear();
        if let Some(bands) = bands {
            minhash.keys(minima, bands, keys);
        }
        Some(minhash.signature(minima))
    }

    fn sketch_votes(&self, text: &str, scratch: &mut Scratch) -> Option<Signature> {
        let signed = self.sign_text(text, scratch)?;
        let Scratch { weighted, set, keys, .. } = scratch;
        set.clear();
        set.extend(weighted.iter().map(|(hash, _)| element(hash[0])));
        set.sort_unstable();
        set.dedup();
        keys.clear();
        Some(signed.signature)
    }

    /// The weight of each element of the set.
    fn weigh_set(&self, text: &str, scratch: &mut Scratch) {
        self.weigh(text, scratch);
        let Scratch { weighted, set, weights, .. } = scratch;
        weights.clear();
        weights.resize(set.len(), 0);
        for (hash, weight) in weighted.iter() {
            if let Ok(at) = set.binary_search(&element(hash[0])) {
                let weight = u32::try_from(weight).unwrap_or(u32::MAX);
                weights[at] = weights[at].saturating_add(weight);
            }
        }
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
