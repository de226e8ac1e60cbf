//! Rows between the engine and numpy.

use lookalike::signature::words_for;
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;

/// Bytes as rows of an array: they are moved, not copied.
pub(crate) fn rows_of_bytes<'py>(
    py: Python<'py>,
    bytes: Vec<u8>,
    rows: usize,
    width: usize,
) -> PyResult<Bound<'py, PyArray2<u8>>> {
    PyArray1::from_vec(py, bytes).reshape([rows, width])
}

/// The words of rows that come as bytes, leading byte first.
pub(crate) fn words_of_rows(bits: u32, bytes: &[u8]) -> Vec<u64> {
    if bits.is_multiple_of(64) {
        return bytes.as_chunks::<8>().0.iter().map(|word| u64::from_be_bytes(*word)).collect();
    }
    let mut words = Vec::with_capacity(bytes.len() * 8 / bits as usize * words_for(bits));
    for row in bytes.chunks_exact(bits as usize / 8) {
        words.extend(lookalike::signature::words_of_bytes(row));
    }
    words
}

/// The bytes of rows of words, leading byte first.
pub(crate) fn bytes_of_rows(bits: u32, words: &[u64]) -> Vec<u8> {
    if bits.is_multiple_of(64) {
        return words.iter().flat_map(|word| word.to_be_bytes()).collect();
    }
    let rows = words.chunks_exact(words_for(bits));
    rows.flat_map(|row| lookalike::signature::bytes_of_words(bits, row)).collect()
}
