//! Collections: documents that stay.

use std::{
    path::PathBuf,
    process,
    sync::{Arc, OnceLock, RwLock},
};

use lookalike::{
    Signature, Signer,
    collection::{
        Ask, By, ClusterSettings, Collection as Engine, Entry, Filter, IfExists, Keeps, Put,
        Record, Seen, Settings, StoredIn,
    },
    recipe::Scratch,
    search::Question,
};
use pyo3::{prelude::*, pybacked::PyBackedStr, types::PyBytes};
use rayon::prelude::*;

use crate::{
    error::{OrRaise, wrong},
    recipe::Recipe,
    sign::text_of,
    signatures::Signatures,
    threads::{detached, watched},
};

/// An open collection.
#[pyclass(frozen, module = "lookalike._engine")]
pub(crate) struct Collection {
    /// Nothing when it is closed.
    open: RwLock<Option<Arc<Engine>>>,
    signer: OnceLock<Signer>,
    process: u32,
}

/// A document that has no signature, as a status beside those of [`Put`].
const UNSIGNED: &str = "unsigned";

type Fields<'py> = (String, Bound<'py, PyBytes>, Option<String>, Option<String>, i64);
/// What became of a document, and its lookalike.
type SeenFields = (&'static str, Option<(String, u32)>);
type HitFields = (String, u32, Option<String>);

/// Entries of the documents that have a signature, and which those are.
struct Entries {
    entries: Vec<Entry>,
    signed: Vec<bool>,
}

#[pymethods]
impl Collection {
    #[staticmethod]
    #[pyo3(signature = (folder, recipe, bits, texts, margins, postgres))]
    fn create(
        py: Python<'_>,
        folder: PathBuf,
        recipe: Option<&Recipe>,
        bits: Option<u32>,
        texts: bool,
        margins: bool,
        postgres: Option<(String, String)>,
    ) -> PyResult<Self> {
        let settings = match (recipe, bits) {
            (Some(recipe), None) => Settings::of_recipe(recipe.0.clone()),
            (None, Some(bits)) => Settings::of_bits(bits),
            _ => {
                return Err(wrong(
                    "a collection has a recipe, or bits for signatures from elsewhere",
                ));
            }
        };
        let store = match postgres {
            Some((url, schema)) => StoredIn::Postgres { url, schema },
            None => StoredIn::Sqlite,
        };
        let settings = Settings { keeps: Keeps { margins, texts }, store, ..settings };
        detached(py, || Engine::create(&folder, settings)).or_raise().map(Collection::new)
    }

    #[staticmethod]
    fn open(py: Python<'_>, folder: PathBuf, read_only: bool) -> PyResult<Self> {
        let opened = detached(py, || match read_only {
            true => Engine::open_reader(&folder),
            false => Engine::open(&folder),
        });
        opened.or_raise().map(Collection::new)
    }

    /// Adds documents in one transaction. What became of each.
    fn put_texts(
        &self,
        py: Python<'_>,
        ids: Vec<String>,
        texts: Vec<Option<PyBackedStr>>,
        payloads: Vec<Option<String>>,
        if_exists: &str,
    ) -> PyResult<Vec<&'static str>> {
        let if_exists = if_exists_of(if_exists)?;
        self.with(py, |engine| {
            let entries = self.entries(engine, ids, &texts, payloads)?;
            let put = engine.put(&entries.entries, if_exists).or_raise()?;
            Ok(entries.of_all(put.into_iter().map(status), UNSIGNED))
        })
    }

    /// Adds signatures in one transaction. What became of each.
    fn put_signatures(
        &self,
        py: Python<'_>,
        ids: Vec<String>,
        signatures: &Signatures,
        payloads: Vec<Option<String>>,
        if_exists: &str,
    ) -> PyResult<Vec<&'static str>> {
        let if_exists = if_exists_of(if_exists)?;
        let entries = self.signed_entries(py, ids, signatures, payloads)?;
        self.with(py, |engine| {
            let put = engine.put(&entries.entries, if_exists).or_raise()?;
            Ok(entries.of_all(put.into_iter().map(status), UNSIGNED))
        })
    }

    /// Adds what has no lookalike within the radius, in one transaction. The lookalike of each, and what became of it.
    fn seen_or_add(
        &self,
        py: Python<'_>,
        ids: Vec<String>,
        texts: Vec<Option<PyBackedStr>>,
        payloads: Vec<Option<String>>,
        radius: u32,
    ) -> PyResult<Vec<SeenFields>> {
        self.with(py, |engine| {
            let entries = self.entries(engine, ids, &texts, payloads)?;
            let seen = engine.seen_or_add(&entries.entries, radius).or_raise()?;
            let seen = seen.into_iter().map(|seen| match seen {
                Seen::Added => ("added", None),
                Seen::Before { id, distance } => ("seen", Some((id, distance))),
            });
            Ok(entries.of_all(seen, (UNSIGNED, None)))
        })
    }

    /// Removes records; whether each was there.
    fn remove(&self, py: Python<'_>, ids: Vec<String>) -> PyResult<Vec<bool>> {
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        self.with(py, |engine| engine.remove(&ids).or_raise())
    }

    /// The records of ids.
    fn get<'py>(&self, py: Python<'py>, ids: Vec<String>) -> PyResult<Vec<Option<Fields<'py>>>> {
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let records = self.with(py, |engine| engine.get(&ids, true).or_raise())?;
        let fields = |record: Record| {
            let Record { id, signature, payload, text, time, .. } = record;
            (id, PyBytes::new(py, &signature.to_bytes()), payload, text, time)
        };
        Ok(records.into_iter().map(|record| record.map(fields)).collect())
    }

    /// Records near each query.
    #[pyo3(signature = (queries, question, number, filter, limit, recall))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    fn search(
        &self,
        py: Python<'_>,
        queries: &Signatures,
        question: &str,
        number: usize,
        filter: Option<&str>,
        limit: Option<usize>,
        recall: f64,
    ) -> PyResult<Vec<Vec<HitFields>>> {
        let radius = u32::try_from(number).unwrap_or(u32::MAX);
        let question = match question {
            "within" => Question::Within(radius),
            "first" => Question::First(radius),
            _ => Question::Nearest(number),
        };
        let filter: Option<Filter> = filter.map(str::parse).transpose().or_raise()?;
        let packed = queries.packed(py)?;
        let found = self.with(py, |engine| {
            queries.of_width(engine.about().bits)?.check_recipe(engine.about().recipe.as_ref())?;
            let by = if recall < 1.0 { By::Share(recall) } else { By::Index };
            let limit = limit.unwrap_or(usize::MAX);
            let ask = Ask { filter: filter.as_ref(), by, limit, ..Ask::new(question) };
            engine.search((&*packed.rows).into(), &ask).or_raise()
        })?;
        let mut hits: Vec<Vec<HitFields>> = vec![Vec::new(); queries.len()];
        for (row, found) in found.of.into_iter().enumerate() {
            let fields =
                found.into_iter().map(|hit| (hit.record.id, hit.distance, hit.record.payload));
            hits[packed.number(row as u32) as usize] = fields.collect();
        }
        Ok(hits)
    }

    /// The ids of clusters of records that look alike, the oldest first, each with the largest distance in it.
    fn clusters(
        &self,
        py: Python<'_>,
        radius: u32,
        recall: f64,
    ) -> PyResult<Vec<(Vec<String>, u32)>> {
        let engine = self.engine()?;
        let settings = ClusterSettings { recall, ..ClusterSettings::new(radius) };
        let clusters = watched(py, None, move |_| {
            let clustered = engine.snapshot().clusters(&settings)?;
            let of = |number: usize| {
                let records = engine
                    .with_reader(|store| store.records(clustered.cluster(number).members, false))?;
                let ids = records.into_iter().flatten().map(|record| record.id).collect();
                Ok((ids, clustered.about(number).farthest))
            };
            (0..clustered.len()).map(of).collect::<lookalike::Result<Vec<_>>>()
        })?;
        clusters.or_raise()
    }

    /// Takes up what other processes wrote; whether there was anything.
    fn refresh(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |engine| engine.refresh().or_raise())
    }

    /// Forgets for good what was removed; how many records that were.
    fn compact(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |engine| engine.compact().or_raise())
    }

    fn __len__(&self) -> PyResult<usize> {
        Ok(self.engine()?.snapshot().len())
    }

    #[getter]
    fn bits(&self) -> PyResult<u32> {
        Ok(self.engine()?.about().bits)
    }

    #[getter]
    fn recipe(&self) -> PyResult<Option<Recipe>> {
        Ok(self.engine()?.about().recipe.clone().map(Recipe))
    }

    /// Where the statistics are that its recipe weighs by, if it does.
    #[getter]
    fn terms(&self) -> PyResult<Option<PathBuf>> {
        let terms = self.engine()?.terms();
        Ok(terms.exists().then_some(terms))
    }

    #[getter]
    fn closed(&self) -> bool {
        self.open.read().map_or(true, |open| open.is_none())
    }

    /// Saves what is not saved yet, and lets go of the folder.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_elsewhere() {
            return Ok(());
        }
        let engine = self.open.write().map_or(None, |mut open| open.take());
        let Some(engine) = engine else { return Ok(()) };
        match Arc::try_unwrap(engine) {
            Ok(engine) => detached(py, || engine.close()).or_raise(),
            // Another thread is at work with it: it ends when that is done, and nothing is lost.
            Err(_) => Ok(()),
        }
    }
}

impl Collection {
    fn new(engine: Engine) -> Self {
        let open = RwLock::new(Some(Arc::new(engine)));
        Collection { open, signer: OnceLock::new(), process: process::id() }
    }

    /// Whether this is a copy in a forked child: connections and locks are the parent's.
    fn is_elsewhere(&self) -> bool {
        self.process != process::id()
    }

    fn engine(&self) -> PyResult<Arc<Engine>> {
        if self.is_elsewhere() {
            return Err(wrong(
                "the collection was opened before the process forked: open it again",
            ));
        }
        let open = self.open.read().map_or(None, |open| open.clone());
        open.ok_or_else(|| wrong("the collection is closed"))
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Engine) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        let engine = self.engine()?;
        detached(py, || work(&engine))
    }

    fn signer(&self, engine: &Engine) -> PyResult<&Signer> {
        if self.signer.get().is_none() {
            let _ = self.signer.set(engine.signer().or_raise()?);
        }
        self.signer.get().ok_or_else(|| wrong("the collection has no recipe"))
    }

    fn entries(
        &self,
        engine: &Engine,
        ids: Vec<String>,
        texts: &[Option<PyBackedStr>],
        payloads: Vec<Option<String>>,
    ) -> PyResult<Entries> {
        let signer = self.signer(engine)?;
        let keeps = engine.about().keeps;
        let sign = |scratch: &mut Scratch, text: &Option<PyBackedStr>| {
            signer.sign_text(&text_of(signer, text.as_deref()?), scratch)
        };
        let signed: Vec<_> = texts.par_iter().map_init(Scratch::default, sign).collect();
        let flags = signed.iter().map(Option::is_some).collect();
        let all = ids.into_iter().zip(payloads).zip(signed.into_iter().zip(texts));
        let entries = all.filter_map(|((id, payload), (signed, text))| {
            let signed = signed?;
            let text = text.as_ref().filter(|_| keeps.texts).map(|text| text.to_string());
            let margins = signed.margins;
            Some(Entry { id, signature: signed.signature, margins, payload, text })
        });
        Ok(Entries { entries: entries.collect(), signed: flags })
    }

    fn signed_entries(
        &self,
        py: Python<'_>,
        ids: Vec<String>,
        signatures: &Signatures,
        payloads: Vec<Option<String>>,
    ) -> PyResult<Entries> {
        let engine = self.engine()?;
        let about = engine.about();
        signatures.of_width(about.bits)?.check_recipe(about.recipe.as_ref())?;
        let packed = signatures.packed(py)?;
        let margins = signatures.all_margins(py)?;
        let bits = about.bits as usize;
        let mut signed = vec![false; signatures.len()];
        let mut entries = Vec::with_capacity(packed.rows.len());
        for row in 0..packed.rows.len() {
            let number = packed.number(row as u32) as usize;
            signed[number] = true;
            let signature: Signature = packed.rows.get(row);
            let margins = margins.as_ref().map(|all| all[row * bits..][..bits].to_vec());
            let (id, payload) = (ids[number].clone(), payloads[number].clone());
            entries.push(Entry { margins, payload, ..Entry::new(id, signature) });
        }
        Ok(Entries { entries, signed })
    }
}

impl Entries {
    /// What became of all documents, those without a signature included.
    fn of_all<T: Clone>(&self, mut done: impl Iterator<Item = T>, unsigned: T) -> Vec<T> {
        let of = |&signed: &bool| {
            if signed { done.next() } else { None }.unwrap_or_else(|| unsigned.clone())
        };
        self.signed.iter().map(of).collect()
    }
}

impl Drop for Collection {
    fn drop(&mut self) {
        if self.is_elsewhere()
            && let Some(engine) = self.open.get_mut().map_or(None, |open| open.take())
        {
            // To end it would be to wait for threads that only the parent has.
            std::mem::forget(engine);
        }
    }
}

fn if_exists_of(text: &str) -> PyResult<IfExists> {
    match text {
        "replace" => Ok(IfExists::Replace),
        "skip" => Ok(IfExists::Skip),
        "error" => Ok(IfExists::Error),
        _ => Err(wrong(format!("if_exists is replace, skip or error, not `{text}`"))),
    }
}

fn status(put: Put) -> &'static str {
    match put {
        Put::Added => "added",
        Put::Replaced => "replaced",
        Put::Skipped => "skipped",
    }
}
