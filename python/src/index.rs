//! Indexes: rows near queries.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use lookalike::{
    Recipe as EngineRecipe, SignatureFile, Signatures as Rows,
    index::{
        Answers, Build, Effort, Graph, GraphFile, IndexFile, Method, Promise, Queries, Scan, Shape,
        Tables,
    },
    plan::{self, Choice, Costs, Sample, Task},
    search::Question,
};
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use self_cell::self_cell;

use crate::{
    error::{OrRaise, wrong},
    recipe::Recipe,
    signatures::Signatures,
    threads::{detached, tell, watched},
};

/// Fewer rows are sooner scanned than an index is chosen.
const FEW_ROWS: usize = 10_000;
/// How many queries come together, if there are many.
const BATCH: usize = 256;
/// So many words are compared before Ctrl-C is listened for: about a second's work of a core, if all are looked at.
const WORDS: usize = 1 << 32;
/// Graphs are the same for the same rows.
const SEED: u64 = 1;

enum Asked<'a> {
    Scan,
    Tables(Tables<'a>),
    Graph(Graph),
}

self_cell!(
    /// An index with the rows that it is over.
    struct Built {
        owner: Arc<Rows>,
        #[not_covariant]
        dependent: Asked,
    }
);

/// An index.
#[pyclass(frozen, module = "lookalike._engine")]
pub(crate) struct Index {
    built: Arc<Built>,
    numbers: Option<Arc<[u32]>>,
    recipe: Option<EngineRecipe>,
    /// The file that it was opened with, which knows the ids of the rows.
    file: Option<SignatureFile>,
    radius: Option<u32>,
    recall: f64,
    len: usize,
}

type Ranges<'py> =
    (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i32>>, Bound<'py, PyArray1<i64>>);
type Nearest<'py> = (Bound<'py, PyArray2<i32>>, Bound<'py, PyArray2<i64>>);

#[pymethods]
impl Index {
    /// Builds an index.
    #[staticmethod]
    fn build(
        py: Python<'_>,
        signatures: &Signatures,
        kind: String,
        radius: Option<u32>,
        recall: f64,
    ) -> PyResult<Self> {
        let packed = signatures.packed(py)?.clone();
        let rows = packed.rows.clone();
        if !(recall > 0.0 && recall <= 1.0) {
            return Err(wrong(format!("a recall is a share above 0 and up to 1, not {recall}")));
        }
        let wanted = wanted(&kind, (rows.bits(), rows.len()), radius, recall)?;
        let built = watched(py, None, move |_| {
            let choice = match wanted {
                Some(choice) => choice,
                None => choose(&rows, radius, recall)?,
            };
            Built::try_new(rows, |rows| build(rows, choice))
        })?;
        Ok(Index {
            built: Arc::new(built.or_raise()?),
            numbers: packed.numbers,
            recipe: signatures.recipe().cloned(),
            file: None,
            radius,
            recall,
            len: signatures.len(),
        })
    }

    /// Opens an index file with its signatures, or signatures alone, to be scanned.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf, recall: f64) -> PyResult<Self> {
        let (built, file) = detached(py, || open(&path)).or_raise()?;
        Ok(Index {
            len: built.borrow_owner().len(),
            built: Arc::new(built),
            numbers: None,
            recipe: file.recipe().cloned(),
            file: Some(file),
            radius: None,
            recall,
        })
    }

    /// Writes the index, which belongs to the signatures of a file.
    fn save(&self, py: Python<'_>, path: PathBuf, signatures: PathBuf) -> PyResult<()> {
        let built = &self.built;
        let saved = py.detach(|| {
            built.with_dependent(|rows, asked| match asked {
                Asked::Scan => None,
                Asked::Tables(tables) => Some(tables.save(&path, Some(&signatures))),
                Asked::Graph(graph) => Some(graph.save(&path, rows, Some(&signatures))),
            })
        });
        let nothing = || wrong("a scan is no index to be saved: its signatures are all there is");
        saved.ok_or_else(nothing)?.or_raise()
    }

    /// All rows within a radius: where the answer to each query ends, distances, rows.
    fn range_search<'py>(
        &self,
        py: Python<'py>,
        queries: &Signatures,
        radius: u32,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Ranges<'py>> {
        let (mut lims, mut distances, mut ids) = (vec![0_i64], Vec::new(), Vec::new());
        self.ask(py, queries, Question::Within(radius), progress, |found| {
            for found in found {
                distances.extend(found.iter().map(|near| near.distance as i32));
                ids.extend(found.iter().map(|near| self.number(near.row)));
                lims.push(ids.len() as i64);
            }
        })?;
        let array = PyArray1::from_vec(py, lims);
        Ok((array, PyArray1::from_vec(py, distances), PyArray1::from_vec(py, ids)))
    }

    /// The nearest rows: distances and rows, -1 where there are no more.
    fn search<'py>(
        &self,
        py: Python<'py>,
        queries: &Signatures,
        k: usize,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Nearest<'py>> {
        self.padded(py, queries, Question::Nearest(k), k, progress)
    }

    /// One row within a radius: its distance and its number, -1 if there is none.
    fn first<'py>(
        &self,
        py: Python<'py>,
        queries: &Signatures,
        radius: u32,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Nearest<'py>> {
        self.padded(py, queries, Question::First(radius), 1, progress)
    }

    #[getter]
    fn bits(&self) -> u32 {
        self.built.borrow_owner().bits()
    }

    fn __len__(&self) -> usize {
        self.len
    }

    #[getter]
    fn recipe(&self) -> Option<Recipe> {
        self.recipe.clone().map(Recipe)
    }

    /// The ids that the file has.
    #[getter]
    fn ids(&self) -> Option<Vec<String>> {
        let file = self.file.as_ref().filter(|file| file.columns().ids)?;
        Some((0..self.len).map(|row| file.id(row).into_owned()).collect())
    }

    #[getter]
    fn kind(&self) -> String {
        self.built.with_dependent(|_, asked| match asked {
            Asked::Scan => "scan".to_owned(),
            Asked::Tables(tables) => tables.composition().method().to_string(),
            Asked::Graph(graph) => graph.shape().to_string(),
        })
    }

    /// Whether all that is asked for is found: what tables do not guarantee, a scan finds, unless less is enough.
    #[getter]
    fn exact(&self) -> bool {
        let guaranteed = self.built.with_dependent(|_, asked| match asked {
            Asked::Scan => true,
            Asked::Tables(tables) => {
                tables.guarantee() >= self.radius.unwrap_or_else(|| self.bits())
            }
            Asked::Graph(_) => false,
        });
        guaranteed || self.recall >= 1.0
    }

    /// How many bytes it takes beside the signatures.
    #[getter]
    fn nbytes(&self) -> u64 {
        self.built.with_dependent(|_, asked| match asked {
            Asked::Scan => 0,
            Asked::Tables(tables) => tables.bytes() + tables.row_bytes(),
            Asked::Graph(graph) => graph.bytes(),
        })
    }
}

impl Index {
    fn number(&self, row: u32) -> i64 {
        self.numbers.as_ref().map_or(row, |numbers| numbers[row as usize]).into()
    }

    fn padded<'py>(
        &self,
        py: Python<'py>,
        queries: &Signatures,
        question: Question,
        k: usize,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Nearest<'py>> {
        let cells = queries.len().checked_mul(k).filter(|cells| *cells < 1 << 40);
        let cells = cells.ok_or_else(|| wrong(format!("{k} nearest are too many")))?;
        let (mut distances, mut ids) = (vec![-1_i32; cells], vec![-1_i64; cells]);
        let mut query = 0;
        self.ask(py, queries, question, progress, |found| {
            for found in found {
                for (at, near) in found.iter().enumerate() {
                    distances[query * k + at] = near.distance as i32;
                    ids[query * k + at] = self.number(near.row);
                }
                query += 1;
            }
        })?;
        let shape = [queries.len(), k];
        Ok((
            PyArray1::from_vec(py, distances).reshape(shape)?,
            PyArray1::from_vec(py, ids).reshape(shape)?,
        ))
    }

    /// Asks about some queries at a time, and listens for Ctrl-C in between. `each` gets the answers in the order of the
    /// queries, an empty one for those without a signature.
    fn ask(
        &self,
        py: Python<'_>,
        queries: &Signatures,
        question: Question,
        progress: Option<&Bound<'_, PyAny>>,
        mut each: impl FnMut(&mut dyn Iterator<Item = &[lookalike::index::Neighbor]>) + Send,
    ) -> PyResult<()> {
        queries.of_width(self.bits())?.check_recipe(self.recipe.as_ref())?;
        let packed = queries.packed(py)?;
        let margins = queries.all_margins(py)?;
        let rows = self.built.borrow_owner();
        let together = (WORDS / rows.words().len().max(1)).clamp(BATCH, 1 << 16);
        let mut found = Answers::new();
        let mut next = 0;
        for start in (0..packed.rows.len()).step_by(together) {
            let end = (start + together).min(packed.rows.len());
            detached(py, || {
                let some = part(&packed.rows, start..end)?;
                let bits = some.bits() as usize;
                let margins = margins.as_ref().map(|margins| &margins[start * bits..end * bits]);
                let some = match margins {
                    Some(margins) => Queries::with_margins(&some, margins)?,
                    None => (&*some).into(),
                };
                self.answer(some, question, &mut found)
            })
            .or_raise()?;
            let before = |at: usize| packed.number((start + at) as u32) as usize;
            let mut answers = found.iter().enumerate().flat_map(|(at, found)| {
                let unsigned = before(at) - next;
                next = before(at) + 1;
                std::iter::repeat_n(&[][..], unsigned).chain([found])
            });
            each(&mut answers);
            py.check_signals()?;
            tell(progress, end, packed.rows.len())?;
        }
        each(&mut std::iter::repeat_n(&[][..], queries.len() - next));
        Ok(())
    }

    fn answer(
        &self,
        queries: Queries<'_>,
        question: Question,
        found: &mut Answers,
    ) -> lookalike::Result<()> {
        let promise = self.built.with_dependent(|_, asked| match asked {
            Asked::Tables(tables) if !self.is_beyond(tables, question) => {
                ask(tables, queries, question, found).map(Some)
            }
            Asked::Graph(graph) if self.recall < 1.0 => {
                ask(&graph.at(Effort::Recall(self.recall)), queries, question, found).map(Some)
            }
            _ => Ok(None),
        })?;
        match promise {
            Some(Promise::Exact) => Ok(()),
            Some(Promise::Expected { .. }) if self.recall < 1.0 => Ok(()),
            // Who did not ask for less gets all.
            _ => {
                let scan = Scan::new(self.built.borrow_owner())?;
                ask(&scan, queries, question, found).map(drop)
            }
        }
    }

    /// Whether tables would miss some of what is asked for, and all is wanted.
    fn is_beyond(&self, tables: &Tables<'_>, question: Question) -> bool {
        match question {
            Question::Within(radius) | Question::First(radius) => {
                self.recall >= 1.0 && radius > tables.guarantee()
            }
            Question::Nearest(_) => false,
        }
    }
}

fn ask(
    index: &dyn lookalike::index::Index,
    queries: Queries<'_>,
    question: Question,
    found: &mut Answers,
) -> lookalike::Result<Promise> {
    match question {
        Question::Within(radius) => index.within(queries, radius, found),
        Question::First(radius) => index.first(queries, radius, found),
        Question::Nearest(k) => index.nearest(queries, k, found),
    }
}

/// Some rows: those that are there, if it is all of them.
fn part(rows: &Arc<Rows>, range: std::ops::Range<usize>) -> lookalike::Result<Arc<Rows>> {
    if range.len() == rows.len() {
        return Ok(rows.clone());
    }
    let stride = rows.stride();
    let words = rows.words()[range.start * stride..range.end * stride].to_vec();
    Rows::from_words(rows.bits(), words).map(Arc::new)
}

/// What a kind says; nothing if it leaves the choice to us.
fn wanted(
    kind: &str,
    (bits, rows): (u32, usize),
    radius: Option<u32>,
    recall: f64,
) -> PyResult<Option<Choice>> {
    // Three of 64 bits is what the papers ask for; other widths in proportion.
    let near = radius.unwrap_or(bits * 3 / 64);
    let tables = |method| Ok(Some(Choice::Tables(method, Build::default())));
    match kind {
        "auto" => Ok(None),
        "scan" => Ok(Some(Choice::Scan)),
        "multi" => tables(Method::usual(bits, rows)),
        "pieces" => tables(Method::Pieces { slices: near + 1 }),
        "blocks" => tables(Method::Blocks { blocks: near + 2, leading: 2 }),
        "psm" => tables(Method::Psm { tables: 1, probes: 23 }),
        _ if kind.starts_with("graph") => {
            if recall >= 1.0 {
                return Err(wrong("a graph finds a share of the rows: say which, as recall=0.95"));
            }
            let shape = Shape::named(kind).map_err(wrong)?;
            Ok(Some(Choice::Graph(shape.unwrap_or(Shape::usual(bits)))))
        }
        _ => match kind.parse() {
            Ok(method) => tables(method),
            Err(_) => Err(wrong(format!(
                "there is no index `{kind}`; there are auto, scan, pieces, blocks, multi, psm and graph, and with numbers multi-3 or blocks-5-2"
            ))),
        },
    }
}

/// The best index for a task.
fn choose(rows: &Rows, radius: Option<u32>, recall: f64) -> lookalike::Result<Choice> {
    if rows.len() < FEW_ROWS {
        return Ok(Choice::Scan);
    }
    let Some(radius) = radius else {
        return Ok(match recall < 1.0 {
            true => Choice::Graph(Shape::usual(rows.bits())),
            false => Choice::Tables(Method::usual(rows.bits(), rows.len()), Build::default()),
        });
    };
    let (costs, sample) = (Costs::of_this_machine(|| ())?, Sample::of(rows)?);
    let task = Task { radius, nearest: None, batch: BATCH, queries: None, memory: None, recall };
    let best = plan::plans(&costs, &sample, &task).into_iter().next();
    Ok(best.map_or(Choice::Scan, |best| best.index))
}

fn build(rows: &Arc<Rows>, choice: Choice) -> lookalike::Result<Asked<'_>> {
    Ok(match choice {
        Choice::Scan => Asked::Scan,
        Choice::Tables(method, build) => Asked::Tables(Tables::build(&**rows, method, build)?),
        Choice::Graph(shape) => Asked::Graph(Graph::build(rows, shape, SEED)?),
    })
}

fn open(path: &Path) -> lookalike::Result<(Built, SignatureFile)> {
    let no_signatures =
        || lookalike::Error::format(path, "does not say which signatures it belongs to");
    let signatures = |path: Option<PathBuf>| SignatureFile::open(&path.ok_or_else(no_signatures)?);
    let rows = |file: &SignatureFile| Arc::new(file.signatures().clone());
    if IndexFile::is_in(path) {
        let index = IndexFile::open(path)?;
        let file = signatures(index.signatures())?;
        let built = Built::try_new(rows(&file), |rows| index.tables(&**rows).map(Asked::Tables))?;
        return Ok((built, file));
    }
    if GraphFile::is_in(path) {
        let index = GraphFile::open(path)?;
        let file = signatures(index.signatures())?;
        let built = Built::try_new(rows(&file), |rows| index.graph(rows).map(Asked::Graph))?;
        return Ok((built, file));
    }
    let file = SignatureFile::open(path)?;
    Ok((Built::new(rows(&file), |_| Asked::Scan), file))
}
