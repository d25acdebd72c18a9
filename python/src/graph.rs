//! Graphs, and the plugins that they are made of.

use std::path::PathBuf;

use forebay_core::Error;
use forebay_loader::{Search, Survey};
use pyo3::prelude::*;

use crate::{errors::raise, explain, json};

/// The plugins that there are.
#[pyclass(frozen, module = "forebay._native")]
pub(crate) struct Registry(pub(crate) forebay_loader::Registry);

#[pymethods]
impl Registry {
    /// The plugins that are linked in, and those in these places, in the environment's, and in the folder of `library`, which is this module.
    #[new]
    fn new(py: Python<'_>, places: Vec<PathBuf>, library: PathBuf) -> PyResult<Self> {
        let found = py.detach(|| {
            let search = Search::from_env()?.program_library(library);
            let search = places.into_iter().rev().fold(search, Search::first);
            forebay_loader::Registry::with_linked_in_workers(search, crate::pipes::register)
        });
        raise(py, found).map(Self)
    }

    /// The manifests of all plugins, as a list in JSON.
    fn manifests(&self) -> PyResult<String> {
        json(&self.0.plugins().iter().map(|record| record.manifest()).collect::<Vec<_>>())
    }
}

/// A graph, as data.
#[pyclass(frozen, module = "forebay._native")]
pub(crate) struct Graph(pub(crate) forebay_loader::Graph);

#[pymethods]
impl Graph {
    /// Reads `line`, `toml` or `json`.
    #[staticmethod]
    fn read(py: Python<'_>, form: &str, text: &str) -> PyResult<Self> {
        let graph = match form {
            "line" => forebay_loader::Graph::from_line(text),
            "toml" => forebay_loader::Graph::from_toml(text),
            "json" => forebay_loader::Graph::from_json(text),
            other => Err(Error::bug(format!("no form of a graph is called {other}"))),
        };
        raise(py, graph).map(Self)
    }

    /// The graph for whatever is at a path or URL.
    #[staticmethod]
    fn open(py: Python<'_>, path: &str, registry: &Registry) -> PyResult<Self> {
        let found = py.detach(|| Survey::of(path, &registry.0));
        raise(py, found).map(|found| Self(found.graph))
    }

    /// As indented JSON, names and inputs written out.
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        raise(py, self.0.to_json())
    }

    fn to_toml(&self) -> String {
        self.0.to_toml()
    }

    fn to_line(&self, registry: &Registry) -> String {
        self.0.to_line(Some(&registry.0))
    }

    /// As `to_line`, with no more than so many items of each list.
    fn shown(&self, registry: &Registry, most: usize) -> String {
        self.0.shown(Some(&registry.0), most)
    }

    /// Says what is wrong with it, all at once.
    fn check(&self, py: Python<'_>, registry: &Registry) -> PyResult<()> {
        raise(py, self.0.check(&registry.0).map(drop))
    }

    /// What it does and where, as a loader would run it: for people, and as JSON. `locked` says whether the interpreter has a lock.
    #[pyo3(signature = (registry, executor, ranks, locked))]
    fn explain(
        &self,
        py: Python<'_>,
        registry: &Registry,
        executor: Option<&str>,
        ranks: Option<(u32, u32)>,
        locked: bool,
    ) -> PyResult<(String, String)> {
        let explained = py.detach(|| {
            let explanation = explain::explain(&self.0, &registry.0, executor, ranks, locked)?;
            Ok((explanation.text(), explanation.json()?))
        });
        raise(py, explained)
    }

    /// The checked graph's fingerprint.
    fn fingerprint(&self, py: Python<'_>, registry: &Registry) -> PyResult<String> {
        raise(py, self.0.check(&registry.0)).map(|graph| graph.fingerprint().to_string())
    }
}
