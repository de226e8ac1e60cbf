//! Two texts, looked at closely.

use std::{path::PathBuf, time::Duration};

use lookalike::{
    diff::{Side, words},
    recipe::Scratch,
    verify,
};
use pyo3::{prelude::*, types::PyDict};

use crate::{
    recipe::Recipe,
    sign::{signer_of, text_of},
    threads::detached,
};

/// A comparison of words that takes longer is finished coarsely.
const MOST_TIME: Duration = Duration::from_secs(2);

/// How alike two texts are, and which words differ.
#[pyfunction]
#[pyo3(signature = (a, b, recipe, terms))]
pub(crate) fn compare<'py>(
    py: Python<'py>,
    a: &str,
    b: &str,
    recipe: &Recipe,
    terms: Option<PathBuf>,
) -> PyResult<Bound<'py, PyDict>> {
    let signer = signer_of(recipe, false, terms)?;
    let (likeness, distance, runs) = detached(py, || {
        let (a, b) = (text_of(&signer, a), text_of(&signer, b));
        let mut scratch = Scratch::default();
        let mut sign = |text: &str| signer.sign_text(text, &mut scratch).map(|made| made.signature);
        let both = sign(&a).zip(sign(&b));
        let distance = both.map(|(a, b)| {
            let differing = a.words().iter().zip(b.words()).map(|(a, b)| (a ^ b).count_ones());
            differing.sum::<u32>()
        });
        (verify::compare(&signer, &a, &b), distance, words(&a, &b, MOST_TIME))
    });
    let features = likeness.differences.iter();
    let features: Vec<_> = features.map(|of| (of.feature.as_str(), of.first, of.second)).collect();
    let side = |side: Side| match side {
        Side::Both => "both",
        Side::First => "a",
        Side::Second => "b",
    };
    let runs: Vec<_> = runs.iter().map(|run| (side(run.side), run.text.as_str())).collect();
    let said = PyDict::new(py);
    said.set_item("distance", distance)?;
    said.set_item("jaccard", likeness.jaccard)?;
    said.set_item("cosine", likeness.cosine)?;
    said.set_item("shared", likeness.shared)?;
    said.set_item("only_a", likeness.only_first)?;
    said.set_item("only_b", likeness.only_second)?;
    said.set_item("features", features)?;
    said.set_item("words", runs)?;
    Ok(said)
}
