//! Deduplication: sketches of documents, and what is decided on them as often as one likes.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use lookalike::{
    Recipe as EngineRecipe, Signature, Signer,
    cluster::Linkage,
    dedup::{
        AlikePair, Decision, Dedup, Dial, EachPair, Keep, Limits, Progress,
        sketches::{Facts, SketchFile, SketchWriter, Sketches as Made},
    },
    recipe::{Scratch, Sketch, SketchSettings},
    signature::minhash::{Bands, MinHash},
    verify::{Verify, jaccard_of_distance},
};
use numpy::PyArray1;
use pyo3::{
    prelude::*,
    types::{PyFloat, PyInt, PyList, PyString},
};
use rayon::prelude::*;
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    error::{OrRaise, wrong},
    sign::text_of,
    texts::{Chunk, Texts},
    threads::{detached, tell, watched},
};

/// Documents that a thread takes at a time.
const TASK: usize = 64;
/// The least similarity that the engine has settings for.
const LEAST: f64 = 0.1;

/// What is needed of each document, in memory or in a temporary file.
#[pyclass(frozen, module = "lookalike._engine")]
pub(crate) struct Sketches {
    file: Arc<SketchFile>,
    bands: Bands,
    folder: Arc<TempDir>,
}

/// Keepers, distances and similarities.
type Decided<'py> =
    (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i32>>, Bound<'py, PyArray1<f32>>);

/// The row of the one, that of the other, which is larger, their distance and their similarity.
type Listed<'py> = (
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i32>>,
    Bound<'py, PyArray1<f32>>,
);

#[pymethods]
impl Sketches {
    /// Sketches documents. `values` has what the rule for keepers looks at, of each document that was taken so far.
    #[staticmethod]
    #[pyo3(signature = (texts, values, keep, similarity, verify, progress))]
    fn sign(
        texts: &Bound<'_, PyAny>,
        values: &Bound<'_, PyList>,
        keep: &str,
        similarity: f64,
        verify: Option<&str>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = texts.py();
        let keep: Keep = keep.parse().map_err(wrong)?;
        let recipe = recipe();
        let dial = dial(similarity, verify, recipe.signature.bits)?;
        let settings =
            SketchSettings { bands: Some(dial.bands), weights: dial.verify.needs_weights() };
        let stage = Stage { signer: Signer::new(recipe, None).or_raise()?, settings, keep };
        let folder = tempfile::Builder::new().prefix("lookalike-").tempdir()?;
        let mut store = Store::new(&stage, folder.path());
        let mut texts = Texts::new(texts)?;
        let mut applies = stage.keep.field().is_none();
        while let Some(chunk) = texts.next(py)? {
            let first = texts.taken - chunk.len();
            let values = stage.values(values, first, chunk.len())?;
            let (made, some) = detached(py, || stage.sketch(&chunk, &values));
            drop(chunk);
            applies |= some;
            store.add(made).or_raise()?;
            py.check_signals()?;
            tell(progress, texts.taken, texts.all.unwrap_or(0))?;
        }
        if let (false, Some(field), 1..) = (applies, stage.keep.field(), texts.taken) {
            let problem = "numbers are wanted for max and min, numbers or dates for newest";
            return Err(wrong(format!(
                "no document has a field `{field}` to choose by; {problem}"
            )));
        }
        let file = Arc::new(store.finish().or_raise()?);
        Ok(Sketches { file, bands: dial.bands, folder: Arc::new(folder) })
    }

    fn __len__(&self) -> usize {
        self.file.len()
    }

    /// Which documents have enough features to be compared.
    #[getter]
    fn signed<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<bool>> {
        let signed = self.file.facts().iter().map(|facts| facts.signed == 1);
        PyArray1::from_vec(py, signed.collect())
    }

    /// What becomes of each document: its keeper, their distance and their similarity; and all pairs that are alike, if they
    /// are wanted. With a radius alone, signatures decide.
    #[pyo3(signature = (similarity, radius, verify, linkage, memory, pairs, progress))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    fn decide<'py>(
        &self,
        py: Python<'py>,
        similarity: Option<f64>,
        radius: Option<u32>,
        verify: Option<&str>,
        linkage: &str,
        memory: usize,
        pairs: bool,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(Decided<'py>, Option<Listed<'py>>)> {
        let linkage: Linkage = linkage.parse().or_raise()?;
        let settings = self.settings(similarity, radius, verify)?;
        let (file, folder, bands) = (self.file.clone(), self.folder.clone(), self.bands);
        let done = watched(py, progress, move |watch| {
            let file = match settings.bands == bands {
                true => file,
                false => Arc::new(with_keys(&file, settings.bands, folder.path())?),
            };
            let engine = Dedup::new(&file, settings, Limits { memory, ..Limits::default() })?;
            let mut listed = Vec::new();
            let mut each = |pair: AlikePair| {
                listed.push(pair);
                Ok(())
            };
            let each: Option<EachPair<'_>> = if pairs { Some(&mut each) } else { None };
            let progress: Progress<'_> = &mut |_, done, all| watch.note(done, all);
            let mut decided = engine.run(linkage, folder.path(), each, progress)?;
            // Whoever lists pairs leaves the largest buckets out; who is kept is decided with them.
            if pairs && !decided.counts.huge.is_empty() {
                decided = engine.run(linkage, folder.path(), None, progress)?;
            }
            listed.sort_unstable_by_key(|pair| (pair.a, pair.b));
            Ok((decided.decisions, listed))
        })?;
        let (decisions, listed) = done.or_raise()?;
        Ok((decided(py, &decisions), pairs.then(|| list_of(py, &listed))))
    }
}

impl Sketches {
    /// What follows from a similarity, a radius and a check. With a radius alone, signatures decide.
    fn settings(
        &self,
        similarity: Option<f64>,
        radius: Option<u32>,
        verify: Option<&str>,
    ) -> PyResult<Dial> {
        let bits = self.file.bits();
        let settings = match (similarity, radius) {
            (Some(similarity), _) => dial(similarity, verify, bits)?,
            (None, radius) => {
                let similarity = jaccard_of_distance(radius.unwrap_or(bits), bits).max(LEAST);
                dial(similarity, Some("none"), bits)?
            }
        };
        Ok(Dial { radius: radius.unwrap_or(settings.radius), ..settings })
    }
}

fn decided<'py>(py: Python<'py>, decisions: &[Decision]) -> Decided<'py> {
    let keepers = decisions.iter().map(|of| i64::from(of.keeper));
    let distances = decisions.iter().map(|of| of.distance as i32);
    let similarities = decisions.iter().map(|of| of.similarity);
    (
        PyArray1::from_vec(py, keepers.collect()),
        PyArray1::from_vec(py, distances.collect()),
        PyArray1::from_vec(py, similarities.collect()),
    )
}

fn list_of<'py>(py: Python<'py>, pairs: &[AlikePair]) -> Listed<'py> {
    (
        PyArray1::from_vec(py, pairs.iter().map(|pair| i64::from(pair.a)).collect()),
        PyArray1::from_vec(py, pairs.iter().map(|pair| i64::from(pair.b)).collect()),
        PyArray1::from_vec(py, pairs.iter().map(|pair| pair.distance as i32).collect()),
        PyArray1::from_vec(py, pairs.iter().map(|pair| pair.similarity as f32).collect()),
    )
}

/// What deduplication signs with.
pub(crate) fn recipe() -> EngineRecipe {
    EngineRecipe::named("minhash-256").expect("the recipe of dedup")
}

pub(crate) fn dial(similarity: f64, verify: Option<&str>, bits: u32) -> PyResult<Dial> {
    let verify: Option<Verify> = verify.map(str::parse).transpose().or_raise()?;
    Dial::new(similarity, bits, verify).or_raise()
}

/// The same sketches with other keys: from the features that they have follows everything.
fn with_keys(file: &SketchFile, bands: Bands, folder: &Path) -> lookalike::Result<SketchFile> {
    let (bits, weights) = (file.bits(), file.has_weights());
    let minhash = MinHash::new(bits)?;
    let other =
        tempfile::TempDir::new_in(folder).map_err(|error| lookalike::Error::io(folder, error))?;
    let path = other.path().join("sketches");
    let mut writer = SketchWriter::create(&path, bits, bands.count, weights)?;
    let rows: Vec<usize> = (0..file.len()).collect();
    for rows in rows.chunks(TASK << 8) {
        let some = |rows: &[usize]| {
            let (mut some, mut minima, mut keys) = (Made::default(), Vec::new(), Vec::new());
            for &row in rows {
                let facts = file.facts()[row];
                if facts.signed == 0 {
                    some.push("", facts, None, (bits, bands.count));
                    continue;
                }
                minhash.minima(file.set(row), &mut minima);
                minhash.keys(&minima, bands, &mut keys);
                let signature = Signature::from_words(bits, file.signature(row).to_vec())?;
                let (set, weights) = (file.set(row), file.weights(row));
                let sketch = Sketch { signature, set, weights, keys: &keys };
                some.push("", facts, Some(&sketch), (bits, bands.count));
            }
            Ok(some)
        };
        let made: lookalike::Result<Vec<Made>> = rows.par_chunks(TASK).map(some).collect();
        made?.iter().try_for_each(|some| writer.append(some))?;
    }
    writer.finish(Value::Null)?;
    // It stays readable when its name is gone.
    SketchFile::open(&path)
}

/// How documents become sketches.
pub(crate) struct Stage {
    pub(crate) signer: Signer,
    pub(crate) settings: SketchSettings,
    pub(crate) keep: Keep,
}

impl Stage {
    fn shape(&self) -> (u32, usize) {
        (self.signer.recipe().signature.bits, self.settings.bands.map_or(0, |bands| bands.count))
    }

    /// What the rule for keepers looks at, of some documents.
    pub(crate) fn values(
        &self,
        values: &Bound<'_, PyList>,
        first: usize,
        count: usize,
    ) -> PyResult<Vec<Option<Value>>> {
        match self.keep.field() {
            None => Ok(Vec::new()),
            Some(_) => (first..first + count).map(|row| value_of(&values.get_item(row)?)).collect(),
        }
    }

    /// Sketches some documents, and tells whether the rule for keepers applies to any.
    pub(crate) fn sketch(&self, texts: &Chunk, values: &[Option<Value>]) -> (Vec<Made>, bool) {
        let rows: Vec<usize> = (0..texts.len()).collect();
        let made = rows.par_chunks(TASK).map_init(Scratch::default, |scratch, rows| {
            let (mut some, mut applies) = (Made::default(), false);
            for &row in rows {
                let text = texts.get(row).unwrap_or_default();
                let value = values.get(row).and_then(Option::as_ref);
                let preference = self.keep.preference(text.len(), value);
                applies |= self.keep.applies(preference);
                let text_bytes = text.len() as u64;
                let facts = Facts { set_hash: 0, preference, text_bytes, source: 0, signed: 0 };
                let text = text_of(&self.signer, text);
                let sketch = self.signer.sketch(&text, self.settings, scratch);
                some.push("", facts, sketch.as_ref(), self.shape());
            }
            (some, applies)
        });
        let (made, applies): (Vec<Made>, Vec<bool>) = made.unzip();
        (made, applies.contains(&true))
    }
}

/// Sketches of so many bytes stay in memory; more go into a file.
const IN_MEMORY: usize = 64 << 20;

/// Where sketches go.
struct Store<'a> {
    stage: &'a Stage,
    path: PathBuf,
    few: Vec<Made>,
    bytes: usize,
    many: Option<SketchWriter>,
}

impl<'a> Store<'a> {
    fn new(stage: &'a Stage, folder: &Path) -> Self {
        Store { stage, path: folder.join("sketches"), few: Vec::new(), bytes: 0, many: None }
    }

    fn add(&mut self, made: Vec<Made>) -> lookalike::Result<()> {
        self.bytes += made.iter().map(Made::bytes).sum::<usize>();
        self.few.extend(made);
        if self.bytes <= IN_MEMORY {
            return Ok(());
        }
        let (bits, keys) = self.stage.shape();
        let writer = match &mut self.many {
            Some(writer) => writer,
            none => {
                let weights = self.stage.settings.weights;
                none.insert(SketchWriter::create(&self.path, bits, keys, weights)?)
            }
        };
        self.few.drain(..).try_for_each(|some| writer.append(&some))
    }

    fn finish(self) -> lookalike::Result<SketchFile> {
        let (bits, keys) = self.stage.shape();
        match self.many {
            None => SketchFile::of(&self.few, bits, keys),
            Some(writer) => {
                writer.finish(Value::Null)?;
                SketchFile::open(&self.path)
            }
        }
    }
}

/// A number or a word; whatever else is like nothing.
fn value_of(value: &Bound<'_, PyAny>) -> PyResult<Option<Value>> {
    Ok(if let Ok(text) = value.cast::<PyString>() {
        Some(text.to_str()?.into())
    } else if let Ok(number) = value.extract::<i64>() {
        Some(number.into())
    } else if value.is_instance_of::<PyInt>() || value.is_instance_of::<PyFloat>() {
        Some(value.extract::<f64>()?.into())
    } else {
        None
    })
}
