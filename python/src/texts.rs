//! Texts from Python, some at a time: lists, whatever can be iterated over, and Arrow columns.

use std::ops::Range;

use pyo3::{
    prelude::*,
    pybacked::PyBackedStr,
    types::{PyIterator, PyString},
};

use crate::{
    arrow::{Arrays, Column, arrays},
    error::wrong,
};

/// As many texts are taken at a time...
const TEXTS: usize = 1 << 14;
/// ...or as many bytes: Ctrl-C is heard and progress told in between.
const BYTES: usize = 8 << 20;

/// Some texts, which threads may read off the interpreter's lock. Nothing is copied: the strings and buffers are Python's,
/// and are held.
pub(crate) enum Chunk {
    Strings(Vec<Option<PyBackedStr>>),
    Column(Column, Range<usize>),
}

impl Chunk {
    pub(crate) fn len(&self) -> usize {
        match self {
            Chunk::Strings(texts) => texts.len(),
            Chunk::Column(_, range) => range.len(),
        }
    }

    pub(crate) fn get(&self, at: usize) -> Option<&str> {
        match self {
            Chunk::Strings(texts) => texts[at].as_deref(),
            Chunk::Column(column, range) => column.get(range.start + at),
        }
    }
}

/// Where texts come from.
pub(crate) struct Texts<'py> {
    from: From<'py>,
    /// How many were given out.
    pub(crate) taken: usize,
    /// How many there are, if it is known.
    pub(crate) all: Option<usize>,
}

enum From<'py> {
    Iterator(Bound<'py, PyIterator>),
    Arrow(Arrays, Option<(Column, usize)>),
}

impl<'py> Texts<'py> {
    pub(crate) fn new(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        if object.is_instance_of::<PyString>() {
            return Err(wrong("this is one text; a list of texts is wanted"));
        }
        let all = object.len().ok();
        let from = match arrays(object)? {
            Some(arrays) => From::Arrow(arrays, None),
            None => From::Iterator(object.try_iter()?),
        };
        Ok(Texts { from, taken: 0, all })
    }

    /// The next texts; nothing at the end.
    pub(crate) fn next(&mut self, py: Python<'py>) -> PyResult<Option<Chunk>> {
        let some = match &mut self.from {
            From::Iterator(iterator) => next_strings(iterator, self.taken)?,
            From::Arrow(arrays, column) => next_of_column(py, arrays, column)?,
        };
        self.taken += some.as_ref().map_or(0, Chunk::len);
        Ok(some)
    }
}

fn next_strings(iterator: &mut Bound<'_, PyIterator>, taken: usize) -> PyResult<Option<Chunk>> {
    let (mut texts, mut bytes) = (Vec::new(), 0);
    while texts.len() < TEXTS && bytes < BYTES {
        let Some(text) = iterator.next() else { break };
        let text = text_of(&text?, taken + texts.len())?;
        bytes += text.as_deref().map_or(0, str::len);
        texts.push(text);
    }
    Ok((!texts.is_empty()).then_some(Chunk::Strings(texts)))
}

fn text_of(text: &Bound<'_, PyAny>, row: usize) -> PyResult<Option<PyBackedStr>> {
    if text.is_none() {
        return Ok(None);
    }
    let Ok(string) = text.cast::<PyString>() else {
        let class = text.get_type().name()?;
        return Err(wrong(format!("text {row} is a {class}; texts are str, or None")));
    };
    // Half of a surrogate pair is no text.
    let backed = PyBackedStr::try_from(string.clone());
    backed.map(Some).map_err(|error| wrong(format!("text {row} is not Unicode: {error}")))
}

fn next_of_column(
    py: Python<'_>,
    arrays: &mut Arrays,
    column: &mut Option<(Column, usize)>,
) -> PyResult<Option<Chunk>> {
    loop {
        if let Some((texts, start)) = column
            && *start < texts.len()
        {
            let end = end_of(texts, *start);
            let some = Chunk::Column(texts.clone(), *start..end);
            *start = end;
            return Ok(Some(some));
        }
        // A stream may work for what comes next, and want the lock for it.
        match py.detach(|| arrays.next()) {
            Some(array) => *column = Some((Column::new(&array?)?, 0)),
            None => return Ok(None),
        }
    }
}

/// Where some texts from `start` on end.
fn end_of(column: &Column, start: usize) -> usize {
    let (mut end, mut bytes) = (start, 0);
    while end < column.len() && end - start < TEXTS && bytes < BYTES {
        bytes += column.get(end).map_or(0, str::len);
        end += 1;
    }
    end
}
