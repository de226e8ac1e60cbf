//! Rows that are on many machines: their keys, and the comparison of those that met.

use std::collections::HashSet;

use lookalike::{
    hamming::kernel,
    join::apart::{self, Met},
};
use numpy::{PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use rayon::prelude::*;

use crate::{
    error::{OrRaise, wrong},
    rows::{rows_of_bytes, words_of_rows},
    threads::detached,
};

/// Rows that a thread takes at a time.
const TASK: usize = 1 << 10;

/// Which keys rows have.
#[pyclass(frozen, module = "lookalike._engine")]
pub(crate) struct KeyPlan {
    plan: apart::KeyPlan,
    bits: u32,
    /// The keys of buckets that are too large.
    large: HashSet<i64>,
}

type Keyed<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i32>>, Bound<'py, PyArray1<i64>>);
type Pairs<'py> = (Bound<'py, PyArray2<u8>>, Bound<'py, PyArray2<u8>>, Bound<'py, PyArray1<i32>>);

#[pymethods]
impl KeyPlan {
    #[new]
    fn new(
        bits: u32,
        radius: u32,
        blocks: Vec<u32>,
        large: PyReadonlyArray1<'_, i64>,
    ) -> PyResult<Self> {
        let large = large.as_slice()?.iter().copied().collect();
        Ok(KeyPlan { plan: apart::KeyPlan::new(bits, radius, &blocks).or_raise()?, bits, large })
    }

    /// Into how many blocks so many rows are cut.
    #[staticmethod]
    fn blocks_for(bits: u32, radius: u32, rows: u64) -> u32 {
        apart::KeyPlan::blocks_for(bits, radius, rows)
    }

    /// How many keys a row has, as long as no bucket is cut.
    #[getter]
    fn count(&self) -> usize {
        self.plan.keys()
    }

    /// How many keys a row has at most, if all its buckets are cut.
    #[getter]
    fn most(&self) -> usize {
        self.plan.most_keys()
    }

    /// The keys of rows: to which row each belongs, its path, and the key.
    fn keys<'py>(&self, py: Python<'py>, rows: PyReadonlyArray2<'py, u8>) -> PyResult<Keyed<'py>> {
        let (bytes, width) = (rows.as_slice()?, rows.shape()[1]);
        let signature = self.bits as usize / 8;
        if width < signature {
            return Err(wrong(format!("rows of {width} bytes; signatures have {signature}")));
        }
        let some = |(task, rows): (usize, &[u8])| {
            let mut keyed = Vec::new();
            for (row, bytes) in rows.chunks_exact(width).enumerate() {
                let words = words_of_rows(self.bits, &bytes[..signature]);
                let row = (task * TASK + row) as i64;
                let large = |key| self.large.contains(&key);
                self.plan.keys_of(&words, large, |path, key| {
                    keyed.push((row, path as i32, key));
                });
            }
            keyed
        };
        let keyed: Vec<_> = detached(py, || {
            bytes.par_chunks(TASK * width).enumerate().flat_map_iter(some).collect()
        });
        let rows = keyed.iter().map(|keyed| keyed.0).collect();
        let paths = keyed.iter().map(|keyed| keyed.1).collect();
        let keys = keyed.iter().map(|keyed| keyed.2).collect();
        Ok((
            PyArray1::from_vec(py, rows),
            PyArray1::from_vec(py, paths),
            PyArray1::from_vec(py, keys),
        ))
    }
}

/// Compares rows that come in the order of their keys.
#[pyclass(module = "lookalike._engine")]
pub(crate) struct Buckets {
    buckets: apart::Buckets,
    width: usize,
}

#[pymethods]
impl Buckets {
    /// Without a plan, keys are from elsewhere, and a pair is found as often as it has a key in common.
    #[new]
    #[pyo3(signature = (width, bits, radius, plan))]
    fn new(width: usize, bits: u32, radius: u32, plan: Option<&KeyPlan>) -> PyResult<Self> {
        let plan = plan.map(|plan| plan.plan.clone());
        let buckets = apart::Buckets::new(width, bits, radius, plan).or_raise()?;
        Ok(Buckets { buckets, width })
    }

    /// Takes rows, and gives the pairs of buckets that are complete.
    fn push<'py>(
        &mut self,
        py: Python<'py>,
        keys: PyReadonlyArray1<'py, i64>,
        paths: PyReadonlyArray1<'py, i32>,
        rows: PyReadonlyArray2<'py, u8>,
    ) -> PyResult<Pairs<'py>> {
        if rows.shape() != [keys.len(), self.width] || paths.len() != keys.len() {
            return Err(wrong(format!("rows of {} bytes, each with a key", self.width)));
        }
        let keys = keys.as_slice()?;
        let paths: &[u32] = bytemuck::cast_slice(paths.as_slice()?);
        let (rows, mut met) = (rows.as_slice()?, Met::default());
        py.detach(|| self.buckets.push(keys, paths, rows, &mut met)).or_raise()?;
        self.pairs(py, met)
    }

    /// The pairs of the last bucket.
    fn finish<'py>(&mut self, py: Python<'py>) -> PyResult<Pairs<'py>> {
        let mut met = Met::default();
        py.detach(|| self.buckets.finish(&mut met));
        self.pairs(py, met)
    }
}

impl Buckets {
    fn pairs<'py>(&self, py: Python<'py>, met: Met) -> PyResult<Pairs<'py>> {
        let Met { a, b, distances } = met;
        let pairs = distances.len();
        let distances = distances.into_iter().map(|distance| distance as i32).collect();
        Ok((
            rows_of_bytes(py, a, pairs, self.width)?,
            rows_of_bytes(py, b, pairs, self.width)?,
            PyArray1::from_vec(py, distances),
        ))
    }
}

/// How many bits the rows of one array are apart from those of another.
#[pyfunction]
pub(crate) fn distances<'py>(
    py: Python<'py>,
    a: PyReadonlyArray2<'py, u8>,
    b: PyReadonlyArray2<'py, u8>,
    bits: u32,
) -> PyResult<Bound<'py, PyArray1<i32>>> {
    let (width, signature) = (a.shape()[1], bits as usize / 8);
    if a.shape() != b.shape() || width < signature {
        return Err(wrong(format!("two arrays of one shape, with rows of {signature} bytes")));
    }
    let kernel = kernel().or_raise()?;
    let rows = a.as_slice()?.chunks_exact(width).zip(b.as_slice()?.chunks_exact(width));
    let words = |row: &[u8]| words_of_rows(bits, &row[..signature]);
    let distances = rows.map(|(a, b)| kernel.distance(&words(a), &words(b)) as i32).collect();
    Ok(PyArray1::from_vec(py, distances))
}
