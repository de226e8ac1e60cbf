//! Texts to signatures.

use std::{borrow::Cow, path::PathBuf};

use lookalike::{
    Signer,
    features::html::text_of_html,
    recipe::{Scratch, SignatureKind},
    signature::bytes_of_words,
};
use pyo3::prelude::*;
use rayon::prelude::*;

use crate::{
    error::wrong,
    recipe::{Recipe, signer},
    signatures::Signatures,
    texts::{Chunk, Texts},
    threads::{detached, tell},
};

/// Texts that a thread takes at a time.
const TASK: usize = 16;

/// Signs texts.
#[pyfunction]
#[pyo3(signature = (texts, recipe, margins, terms, progress))]
pub(crate) fn sign(
    texts: &Bound<'_, PyAny>,
    recipe: &Recipe,
    margins: bool,
    terms: Option<PathBuf>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Signatures> {
    let py = texts.py();
    let signer = signer_of(recipe, margins, terms)?;
    let mut texts = Texts::new(texts)?;
    let mut rows = Rows::new(&signer, margins, texts.all.unwrap_or(0));
    while let Some(some) = texts.next(py)? {
        detached(py, || rows.sign(&signer, &some));
        // Here, with the lock: what it holds are Python's strings.
        drop(some);
        py.check_signals()?;
        tell(progress, texts.taken, texts.all.unwrap_or(0))?;
    }
    rows.into_signatures(py, &signer)
}

/// A signer that makes one signature of a text.
pub(crate) fn signer_of(
    recipe: &Recipe,
    margins: bool,
    terms: Option<PathBuf>,
) -> PyResult<Signer> {
    if recipe.0.passages.is_some() {
        let problem = "cuts texts into passages, and a row is the signature of a whole text";
        return Err(wrong(format!("recipe `{}` {problem}", recipe.0.name)));
    }
    if margins && recipe.0.signature.kind == SignatureKind::MinHash {
        return Err(wrong("minhash has no margins: its bits are neither weak nor strong"));
    }
    let signer = signer(recipe, terms)?;
    Ok(if margins { signer.with_margins() } else { signer })
}

/// The text that is signed: that of a page, if the recipe is one for pages.
pub(crate) fn text_of<'a>(signer: &Signer, text: &'a str) -> Cow<'a, str> {
    match signer.recipe().html {
        true => Cow::Owned(text_of_html(text)),
        false => Cow::Borrowed(text),
    }
}

/// Rows as they are made: those without a signature are zero.
pub(crate) struct Rows {
    bits: usize,
    bytes: Vec<u8>,
    margins: Option<Vec<u8>>,
    signed: Vec<bool>,
}

impl Rows {
    pub(crate) fn new(signer: &Signer, margins: bool, expected: usize) -> Self {
        let bits = signer.recipe().signature.bits as usize;
        let margins = margins.then(|| Vec::with_capacity(expected * bits));
        let bytes = Vec::with_capacity(expected * bits / 8);
        Rows { bits, bytes, margins, signed: Vec::with_capacity(expected) }
    }

    /// Signs some texts on all cores.
    pub(crate) fn sign(&mut self, signer: &Signer, texts: &Chunk) {
        let before = self.signed.len();
        let all = before + texts.len();
        self.signed.resize(all, false);
        self.bytes.resize(all * self.bits / 8, 0);
        let bytes = self.bytes[before * self.bits / 8..].par_chunks_mut(TASK * self.bits / 8);
        let signed = self.signed[before..].par_chunks_mut(TASK);
        let some = bytes.zip(signed).enumerate();
        match &mut self.margins {
            None => some.for_each_init(Scratch::default, |scratch, (task, (bytes, signed))| {
                let to = (bytes, &mut [][..], signed);
                sign_some(signer, scratch, texts, task * TASK, to);
            }),
            Some(margins) => {
                margins.resize(all * self.bits, 0);
                let margins = margins[before * self.bits..].par_chunks_mut(TASK * self.bits);
                some.zip(margins).for_each_init(
                    Scratch::default,
                    |scratch, ((task, (bytes, signed)), margins)| {
                        sign_some(signer, scratch, texts, task * TASK, (bytes, margins, signed));
                    },
                );
            }
        }
    }

    fn into_signatures(self, py: Python<'_>, signer: &Signer) -> PyResult<Signatures> {
        let Rows { bytes, margins, signed, .. } = self;
        let signed = (!signed.iter().all(|&signed| signed)).then_some(signed);
        Signatures::signed(py, bytes, margins, signed, signer.recipe().clone())
    }
}

/// Signs texts from one on, to rows of bytes and of margins, if those are wanted, and notes which have a signature.
fn sign_some(
    signer: &Signer,
    scratch: &mut Scratch,
    texts: &Chunk,
    first: usize,
    (bytes, margins, signed): (&mut [u8], &mut [u8], &mut [bool]),
) {
    let bits = signer.recipe().signature.bits;
    let (row_bytes, row_bits) = (bits as usize / 8, bits as usize);
    for (at, is_signed) in signed.iter_mut().enumerate() {
        let Some(text) = texts.get(first + at) else { continue };
        let Some(made) = signer.sign_text(&text_of(signer, text), scratch) else { continue };
        *is_signed = true;
        let row = &mut bytes[at * row_bytes..][..row_bytes];
        let made_bytes = bytes_of_words(bits, made.signature.words());
        row.iter_mut().zip(made_bytes).for_each(|(to, byte)| *to = byte);
        if let Some(made) = made.margins.filter(|_| !margins.is_empty()) {
            margins[at * row_bits..][..row_bits].copy_from_slice(&made);
        }
    }
}
