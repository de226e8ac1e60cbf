//! All pairs within a radius.

use lookalike::join::{JoinSettings, Pair, join as engine_join};
use numpy::{PyArray1, ToPyArray};
use pyo3::prelude::*;

use crate::{error::OrRaise, signatures::Signatures, threads::watched};

type Pairs<'py> =
    (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i32>>, f64);

/// Pairs of rows of one matrix, or of two, and the share of them that is found.
#[pyfunction]
#[pyo3(signature = (signatures, other, radius, recall, most_pairs, memory))]
pub(crate) fn join<'py>(
    py: Python<'py>,
    signatures: &Signatures,
    other: Option<&Signatures>,
    radius: u32,
    recall: f64,
    most_pairs: u64,
    memory: u64,
) -> PyResult<Pairs<'py>> {
    if let Some(other) = other {
        other.of_width(signatures.bits())?.check_recipe(signatures.recipe())?;
    }
    let first = signatures.packed(py)?.clone();
    let second = other.map(|other| other.packed(py).cloned()).transpose()?;
    let settings = JoinSettings { radius, recall, most_pairs, memory };
    let (pairs, recall) = watched(py, None, move |watch| {
        let mut pairs: Vec<Pair> = Vec::new();
        let each = |some: &[Pair]| {
            pairs.extend_from_slice(some);
            Ok(())
        };
        let other = second.as_ref().map(|second| &*second.rows);
        let joined = engine_join(&first.rows, other, &settings, watch.stop(), each)?;
        let second = second.as_ref().unwrap_or(&first);
        for pair in &mut pairs {
            (pair.a, pair.b) = (first.number(pair.a), second.number(pair.b));
        }
        Ok((pairs, joined.recall))
    })?
    .or_raise()?;
    let column = |of: fn(&Pair) -> i64| {
        let column: Vec<i64> = pairs.iter().map(of).collect();
        PyArray1::from_vec(py, column)
    };
    let distances: Vec<i32> = pairs.iter().map(|pair| pair.distance as i32).collect();
    let (a, b) = (column(|pair| pair.a.into()), column(|pair| pair.b.into()));
    Ok((a, b, distances.to_pyarray(py), recall))
}
