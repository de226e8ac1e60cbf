//! Documents of one batch to sketches, and what follows from pairs of them: for those who bring batches together themselves.

use std::path::PathBuf;

use lookalike::{
    cluster::{self, Linkage},
    dedup::{Keep, SMALL},
    hamming::kernel,
    recipe::SketchSettings,
    signature::bytes_of_words,
    verify::{FeatureSet, Verify},
};
use numpy::{PyArray1, PyArray2, PyReadonlyArray1};
use pyo3::{
    prelude::*,
    types::{PyDict, PyList},
};
use rayon::prelude::*;

use crate::{
    dedup::{self, Stage},
    error::{OrRaise, wrong},
    recipe::Recipe,
    rows::rows_of_bytes,
    sign::signer_of,
    texts::Texts,
    threads::detached,
};

const BATCH_TOO_LARGE: &str = "the features of a batch take more than 2 GB; \
    spark.sql.execution.arrow.maxRecordsPerBatch makes batches smaller";

/// What follows from the similarity that is asked for.
#[pyfunction]
#[pyo3(signature = (similarity, verify))]
pub(crate) fn dial<'py>(
    py: Python<'py>,
    similarity: f64,
    verify: Option<&str>,
) -> PyResult<Bound<'py, PyDict>> {
    let recipe = dedup::recipe();
    let dial = dedup::dial(similarity, verify, recipe.signature.bits)?;
    let dict = PyDict::new(py);
    dict.set_item("recipe", recipe.to_json())?;
    dict.set_item("radius", dial.radius)?;
    dict.set_item("verify", dial.verify.to_string())?;
    dict.set_item("bands", dial.bands.count)?;
    dict.set_item("small", SMALL)?;
    Ok(dict)
}

/// Makes sketches of batches.
#[pyclass(frozen, module = "lookalike._engine")]
pub(crate) struct Sketcher {
    stage: Stage,
    verify: Verify,
}

type Sketched<'py> = (
    Bound<'py, PyArray1<bool>>,
    Bound<'py, PyArray2<u8>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<bool>>,
    Bound<'py, PyArray2<i32>>,
    Bound<'py, PyArray1<i32>>,
    Bound<'py, PyArray1<u8>>,
);

#[pymethods]
impl Sketcher {
    /// With a similarity, documents get keys, and it is the recipe of deduplication.
    #[new]
    #[pyo3(signature = (recipe, terms, similarity, verify, keep))]
    fn new(
        recipe: &Recipe,
        terms: Option<PathBuf>,
        similarity: Option<f64>,
        verify: &str,
        keep: &str,
    ) -> PyResult<Self> {
        let signer = signer_of(recipe, false, terms)?;
        let bits = recipe.0.signature.bits;
        let keyed = similarity.map(|similarity| dedup::dial(similarity, Some(verify), bits));
        let verify: Verify = verify.parse().or_raise()?;
        let bands = keyed.transpose()?.map(|dial| dial.bands);
        let settings = SketchSettings { bands, weights: verify.needs_weights() };
        let keep: Keep = keep.parse().map_err(wrong)?;
        Ok(Sketcher { stage: Stage { signer, settings, keep }, verify })
    }

    /// How many bytes an entry has: the signature, and what tells different texts with the same one apart, if that counts.
    #[getter]
    fn width(&self) -> usize {
        let bits = self.stage.signer.recipe().signature.bits as usize;
        bits / 8 + if self.tells_apart() { size_of::<u64>() } else { 0 }
    }

    /// The field that the rule for keepers looks at.
    #[getter]
    fn field(&self) -> Option<&str> {
        self.stage.keep.field()
    }

    /// Sketches a batch: which have a signature, the entry of each, how much it is preferred (the smaller, the rather it is
    /// kept), whether the rule for that applies, its keys, and its features, with where those of each end.
    fn sketch<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyAny>,
        values: &Bound<'py, PyList>,
    ) -> PyResult<Sketched<'py>> {
        let (stage, bits) = (&self.stage, self.stage.signer.recipe().signature.bits);
        let mut texts = Texts::new(texts)?;
        let (mut signed, mut entries, mut preferences, mut applies) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut keys, mut ends, mut features) = (Vec::new(), vec![0_i32], Vec::new());
        while let Some(chunk) = texts.next(py)? {
            let values = stage.values(values, signed.len(), chunk.len())?;
            let (made, _) = detached(py, || stage.sketch(&chunk, &values));
            drop(chunk);
            for some in &made {
                let stride = some.words().len() / some.len().max(1);
                for (row, facts) in some.facts().iter().enumerate() {
                    signed.push(facts.signed == 1);
                    entries.extend(bytes_of_words(bits, &some.words()[row * stride..][..stride]));
                    // Spark has no unsigned numbers: the order is the same.
                    preferences.push((facts.preference ^ 1 << 63) as i64);
                    applies.push(stage.keep.applies(facts.preference));
                    if self.tells_apart() {
                        entries.extend(facts.set_hash.to_be_bytes());
                    }
                    if self.verify != Verify::None {
                        let FeatureSet { elements, weights } = some.features(row);
                        features.extend_from_slice(bytemuck::cast_slice::<u32, u8>(elements));
                        features.extend_from_slice(bytemuck::cast_slice::<u32, u8>(weights));
                    }
                    let end = i32::try_from(features.len());
                    ends.push(end.map_err(|_| wrong(BATCH_TOO_LARGE))?);
                }
                keys.extend(some.keys().iter().map(|&key| key as i32));
            }
        }
        let rows = signed.len();
        let key_count = stage.settings.bands.map_or(0, |bands| bands.count);
        let keys = numpy::ndarray::Array2::from_shape_vec([rows, key_count], keys);
        let keys = keys.map_err(|error| wrong(format!("keys of another shape: {error}")))?;
        Ok((
            PyArray1::from_vec(py, signed),
            rows_of_bytes(py, entries, rows, self.width())?,
            PyArray1::from_vec(py, preferences),
            PyArray1::from_vec(py, applies),
            PyArray2::from_owned_array(py, keys),
            PyArray1::from_vec(py, ends),
            PyArray1::from_vec(py, features),
        ))
    }
}

impl Sketcher {
    /// Whether texts are told apart that have the same signature.
    fn tells_apart(&self) -> bool {
        self.verify != Verify::None || self.stage.settings.bands.is_some()
    }
}

/// The features of documents as [`Sketcher`] gives them: where each starts and ends, and the bytes.
type Features<'py> = (PyReadonlyArray1<'py, i32>, PyReadonlyArray1<'py, u8>);

/// How alike documents are, pair by pair; NaN if not enough, unless all are wanted.
#[pyfunction]
pub(crate) fn alike<'py>(
    py: Python<'py>,
    a: Features<'py>,
    b: Features<'py>,
    verify: &str,
    all: bool,
) -> PyResult<Bound<'py, PyArray1<f32>>> {
    let verify: Verify = verify.parse().or_raise()?;
    let kernel = kernel().or_raise()?;
    let (a, b) = (sets(&a)?, sets(&b)?);
    if a.len() != b.len() {
        return Err(wrong("as many documents on one side as on the other"));
    }
    let weighted = verify.needs_weights();
    let similarity = |(a, b): (&Vec<u32>, &Vec<u32>)| {
        let (a, b) = (set(a, weighted), set(b, weighted));
        let similarity = match all {
            true => Some(verify.similarity(a, b)),
            false => verify.alike(kernel, a, b),
        };
        similarity.map_or(f32::NAN, |similarity| similarity as f32)
    };
    let similarities = detached(py, || a.par_iter().zip(&b).map(similarity).collect());
    Ok(PyArray1::from_vec(py, similarities))
}

/// Bytes from elsewhere are at any place, so they are copied to where numbers may be.
fn sets(features: &Features<'_>) -> PyResult<Vec<Vec<u32>>> {
    let (ends, bytes) = (features.0.as_slice()?, features.1.as_slice()?);
    let set = |range: &[i32]| {
        let bytes = bytes.get(range[0] as usize..range[1] as usize);
        let numbers = bytes.filter(|bytes| bytes.len().is_multiple_of(4))?;
        Some(numbers.as_chunks::<4>().0.iter().map(|number| u32::from_le_bytes(*number)).collect())
    };
    let sets: Option<Vec<Vec<u32>>> = ends.windows(2).map(set).collect();
    sets.ok_or_else(|| wrong("these are not the features of documents"))
}

fn set(numbers: &[u32], weighted: bool) -> FeatureSet<'_> {
    let (elements, weights) =
        if weighted { numbers.split_at(numbers.len() / 2) } else { (numbers, &[][..]) };
    FeatureSet { elements, weights }
}

/// The keeper of each of so many documents, which are in the order of preference, from pairs that are alike.
#[pyfunction]
pub(crate) fn keepers<'py>(
    py: Python<'py>,
    documents: usize,
    linkage: &str,
    a: PyReadonlyArray1<'py, i64>,
    b: PyReadonlyArray1<'py, i64>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let linkage: Linkage = linkage.parse().or_raise()?;
    let rank = |&rank: &i64| u32::try_from(rank).map_err(|_| wrong(format!("no rank: {rank}")));
    let pairs = a.as_slice()?.iter().zip(b.as_slice()?);
    let pairs: PyResult<Vec<(u32, u32)>> = pairs.map(|(a, b)| Ok((rank(a)?, rank(b)?))).collect();
    let pairs = pairs?;
    let keepers = detached(py, || cluster::keepers(documents, linkage, pairs)).or_raise()?;
    Ok(PyArray1::from_vec(py, keepers.into_iter().map(i64::from).collect()))
}
