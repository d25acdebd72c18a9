//! Errors as exceptions, which are classes of Python's side.

use forebay_core::{Error, Result};
use pyo3::prelude::*;

/// The exception for an error: what a function of Python's raised, or one of the classes in `forebay._errors`, by its kind.
pub(crate) fn exception(py: Python<'_>, error: &Error) -> PyErr {
    let make = || -> PyResult<Bound<'_, PyAny>> {
        if let Some(cookie) = error.cookie() {
            let found =
                py.import("forebay._calls")?.getattr("raised")?.call1((cookie, error.contexts().to_vec()))?;
            if !found.is_none() {
                return Ok(found);
            }
        }
        let make = py.import("forebay._errors")?.getattr("make")?;
        make.call1((error.kind().name(), error.message(), error.contexts().to_vec()))
    };
    match make() {
        Ok(exception) => PyErr::from_value(exception),
        Err(failed) => failed,
    }
}

/// The result, with an error as its exception.
pub(crate) fn raise<T>(py: Python<'_>, result: Result<T>) -> PyResult<T> {
    result.map_err(|error| exception(py, &error))
}
