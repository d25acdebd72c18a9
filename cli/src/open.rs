//! What the command line names: plugins, graphs and paths.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use forebay_loader::{Error, ErrorKind, Graph, Registry, Search, Survey};

use crate::outcome::{Result, Stop};

/// Where plugins are looked for: in `first`, then wherever the environment says.
pub(crate) fn search(first: &[PathBuf]) -> Result<Search> {
    let mut search = Search::from_env().map_err(Stop::Usage)?;
    for place in first.iter().rev() {
        if !place.exists() {
            return Err(Stop::Usage(
                Error::invalid("no such plugin file or folder").context("path", place.display()),
            ));
        }
        search = search.first(place);
    }
    Ok(search)
}

/// The plugins, those in `first` before all others.
pub(crate) fn any_registry(first: &[PathBuf]) -> Result<Registry> {
    Ok(Registry::new(search(first)?)?)
}

/// As [`any_registry`], and a plugin file that was named must be taken.
pub(crate) fn registry(first: &[PathBuf]) -> Result<Registry> {
    let registry = any_registry(first)?;
    for refusal in registry.refusals() {
        // One that gives way to a newer one of its name is as good as taken.
        if first.contains(&refusal.path) && refusal.reason.kind() != ErrorKind::Invalid {
            return Err(Stop::Usage(refusal.reason.clone().context("plugin", refusal.path.display())));
        }
    }
    Ok(registry)
}

/// What a command is to read: a graph that was given, or the one for what is at a path.
pub(crate) struct Input {
    pub(crate) graph: Graph,
    /// What there is at the path.
    pub(crate) survey: Option<Survey>,
}

/// Finds out what an argument names: a graph file, a graph in one line, or a file, folder, pattern or URL; `-` is the standard input.
pub(crate) fn input(text: &str, registry: &Registry) -> Result<Input> {
    if let Some(graph) = graph(text, registry)? {
        return Ok(Input { graph, survey: None });
    }
    let survey = Survey::of(text, registry).map_err(Stop::early)?;
    Ok(Input { graph: survey.graph.clone(), survey: Some(survey) })
}

/// Reads a graph, if that is what the argument names: a `.toml` file, a `.json` file that holds nodes, or the one-line form.
fn graph(text: &str, registry: &Registry) -> Result<Option<Graph>> {
    let path = Path::new(text);
    let is_named = |extension: &str| path.extension().is_some_and(|found| found == extension);
    let spaced = text.contains(char::is_whitespace);
    if !path.exists() && (text.contains('|') || spaced || !is_path(text)) {
        // One word is a path as often as a graph.
        if !text.contains('|') && !spaced && registry.plugin_of(text).is_none() {
            let mut error =
                Error::invalid(format!("nothing is called `{text}`: no file, no folder and no pipe"));
            if let Ok(folder) = env::current_dir() {
                error = error.context("folder", folder.display());
            }
            return Err(Stop::Usage(error.context("plugins", registry.looked_at())));
        }
        return Graph::from_line(text).map(Some).map_err(Stop::Usage);
    }
    let usage = |error: Error| Stop::Usage(error.context("file", path.display()));
    if is_named("toml") {
        let text = fs::read_to_string(path).map_err(|error| usage(error.into()))?;
        return Graph::from_toml(&text).map(Some).map_err(usage);
    }
    if is_named("json")
        && let Ok(text) = fs::read_to_string(path)
        && serde_json::from_str::<serde_json::Value>(&text).is_ok_and(|json| json["node"].is_array())
    {
        return Graph::from_json(&text).map(Some).map_err(usage);
    }
    Ok(None)
}

/// Whether a text that names no file looks like a path or a pattern, and not like the name of a pipe.
fn is_path(text: &str) -> bool {
    text == "-" || text.contains(['/', '*', '?', '[', '{', '.'])
}
