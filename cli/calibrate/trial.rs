//! What each radius of a recipe finds, with and without a check of the texts.

use lookalike::{
    Signatures, Signer,
    hamming::{self, Kernel},
    quality::{Curve, histogram},
    recipe::Scratch,
};
use rayon::prelude::*;

use super::corpus::Part;

/// A recipe on one part of the documents.
pub(crate) struct Trial {
    /// Pairs at each distance: the candidates of a check.
    pub(crate) candidates: Vec<u64>,
    /// What is found if all within the radius are taken.
    pub(crate) unchecked: Curve,
    /// What is found if they are checked, by the threshold of the check.
    pub(crate) checked: Vec<(f64, Curve)>,
}

/// The signatures of those documents that have one.
struct Signed {
    signatures: Signatures,
    /// Where the signature of a document is.
    places: Vec<Option<u32>>,
    kernel: Kernel,
}

impl Trial {
    /// Tries a recipe. Pairs that do not belong together but are at least as alike as `ignore_above` do not count.
    pub(crate) fn new(
        part: &Part<'_>,
        signer: &Signer,
        thresholds: &[f64],
        ignore_above: Option<f64>,
    ) -> anyhow::Result<Self> {
        let signed = Signed::new(part, signer)?;
        let first: Vec<u32> =
            part.first.iter().filter_map(|&row| signed.places[row as usize]).collect();
        let candidates = histogram(&signed.signatures, &first)?;
        let none = || vec![0; candidates.len()];
        let curve = || Curve { found: none(), both: none(), wanted: part.wanted };
        let mut checked: Vec<(f64, Curve)> = thresholds.iter().map(|&t| (t, curve())).collect();
        let mut unchecked = Curve { found: candidates.clone(), ..curve() };
        part.for_each_true(|a, b| {
            signed.distance(a, b).into_iter().for_each(|distance| unchecked.both[distance] += 1);
        });
        for pair in &part.alike {
            let Some(distance) = signed.distance(pair.a, pair.b) else { continue };
            let right = part.links.join(pair.a, pair.b);
            if !right && ignore_above.is_some_and(|least| pair.similarity >= least) {
                unchecked.found[distance] -= 1;
                continue;
            }
            for (_, curve) in checked.iter_mut().filter(|(least, _)| pair.similarity >= *least) {
                curve.found[distance] += 1;
                curve.both[distance] += u64::from(right);
            }
        }
        Ok(Trial { candidates, unchecked, checked })
    }
}

impl Signed {
    fn new(part: &Part<'_>, signer: &Signer) -> anyhow::Result<Self> {
        let sign = |scratch: &mut Scratch, text: &&str| {
            signer.sign_text(text, scratch).map(|signed| signed.signature)
        };
        let all: Vec<_> = part.texts.par_iter().map_init(Scratch::default, sign).collect();
        let mut signatures = Signatures::new(signer.recipe().signature.bits)?;
        let mut places = Vec::with_capacity(all.len());
        for signature in all {
            places.push(signature.as_ref().map(|_| signatures.len() as u32));
            signature.iter().try_for_each(|signature| signatures.push(signature))?;
        }
        Ok(Signed { signatures, places, kernel: hamming::kernel()? })
    }

    fn distance(&self, a: u32, b: u32) -> Option<usize> {
        let (a, b) = (self.places[a as usize]?, self.places[b as usize]?);
        let row = |row: u32| self.signatures.row(row as usize);
        Some(self.kernel.distance(row(a), row(b)) as usize)
    }
}
