//! Errors as Python has them. The classes are in `lookalike._errors`: one of them has two bases.

use lookalike::Error;
use pyo3::{prelude::*, sync::PyOnceLock, types::PyType};

fn class(py: Python<'_>, name: &str) -> PyResult<Py<PyType>> {
    static ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static FILE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let cell = if name == "FileError" { &FILE } else { &ERROR };
    Ok(cell.import(py, "lookalike._errors", name)?.clone().unbind())
}

fn raised(name: &str, message: String) -> PyErr {
    Python::attach(|py| match class(py, name) {
        Ok(class) => PyErr::from_type(class.into_bound(py), message),
        Err(error) => error,
    })
}

/// A `LookalikeError`.
pub(crate) fn wrong(message: impl Into<String>) -> PyErr {
    raised("LookalikeError", message.into())
}

/// An error of the engine, with what caused it.
pub(crate) fn of_engine(error: Error) -> PyErr {
    let mut message = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        message += &format!(": {cause}");
        source = cause.source();
    }
    let name = match error {
        Error::Io { .. } | Error::Format { .. } | Error::Damaged { .. } => "FileError",
        _ => "LookalikeError",
    };
    raised(name, message)
}

/// Results of the engine on their way to Python.
pub(crate) trait OrRaise<T> {
    fn or_raise(self) -> PyResult<T>;
}

impl<T> OrRaise<T> for lookalike::Result<T> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(of_engine)
    }
}
