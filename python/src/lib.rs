//! What the Python package `forebay` calls. The package itself is Python, in `forebay/`; nothing here is public to its users.

mod array;
mod capsules;
mod columns;
mod convert;
mod errors;
mod explain;
mod graph;
mod loader;
mod pipes;
mod stock;
mod tables;
mod values;

use pyo3::prelude::*;

/// The native half of `forebay`.
#[pymodule(gil_used = false)]
mod _native {
    use std::{ffi::OsString, path::PathBuf};

    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::{
        array::Array,
        columns::Columns,
        graph::{Graph, Registry},
        loader::{Loader, Origin},
        stock::Stock,
        tables::{Form, Rows, arrow_stream},
    };

    /// In a process that a loader started as a worker: works until that loader is gone, and never returns. In any other it returns at once.
    #[pyfunction]
    fn serve_if_worker(py: Python<'_>) {
        py.detach(|| forebay_loader::serve_if_worker_with(crate::pipes::register));
    }

    /// Runs the command `forebay` with these arguments, and gives its exit code. The library is this module's file; plugins in `places` come before those
    /// of the environment. Its workers run the program `worker`, with its arguments, if that is not empty.
    #[pyfunction]
    fn command(
        py: Python<'_>,
        args: Vec<OsString>,
        library: PathBuf,
        places: Vec<PathBuf>,
        worker: Vec<String>,
    ) -> u8 {
        let worker = worker.split_first();
        let worker = worker.map(|(program, args)| forebay_loader::WorkerProgram::new(program).args(args));
        let linked = forebay_cli::Linked { register: crate::pipes::register, lints: crate::explain::unheld };
        let home =
            forebay_cli::Home { library: Some(library), plugins: places, linked: Some(linked), worker };
        py.detach(|| forebay_cli::run(args, home))
    }

    /// Whether every sample came exactly once, by the audit files of all ranks and runs: each epoch as JSON, and in words.
    #[pyfunction]
    fn audit(py: Python<'_>, files: Vec<PathBuf>) -> PyResult<Vec<(String, String)>> {
        let epochs = crate::errors::raise(py, py.detach(|| forebay_loader::audit(&files)))?;
        epochs.iter().map(|epoch| Ok((crate::json(epoch)?, epoch.to_string()))).collect()
    }

    /// Reads a size in bytes, as the command does.
    #[pyfunction]
    fn parse_bytes(py: Python<'_>, size: &str) -> PyResult<u64> {
        crate::errors::raise(py, forebay_loader::graph::parse_bytes(size))
    }
}

/// The text as JSON that Python's own `json` reads.
fn json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))
}
