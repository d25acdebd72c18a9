//! What the command line names: plugins, graphs and paths.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use clap::Args;
use forebay_loader::{
    Error, Graph, Isolation, Loader, LoaderBuilder, Registry, Search, Survey, Trust, graph::Catalog as _,
    nearest, registry::Why,
};

use crate::{
    Home,
    outcome::{Result, Stop},
};

/// The most files of a folder that are looked at for a word that may have been meant.
const LOOKED_AT: usize = 10_000;

/// The plugins that the command line names, and the trust that it says.
#[derive(Args)]
pub(crate) struct Plugins {
    /// A plugin or a folder of plugins, searched first; can be given several times
    #[arg(long = "plugin", value_name = "PATH", global = true)]
    pub(crate) first: Vec<PathBuf>,
    /// Which plugins may load: open, allow:NAME,PATH,… or locked:FILE [default: FOREBAY_PLUGIN_TRUST, else open]
    #[arg(long, value_name = "TRUST", global = true,
          value_parser = |text: &str| text.parse::<Trust>().map_err(|error| error.message().to_owned()))]
    pub(crate) trust: Option<Trust>,
    /// Where plugins run: in-process, on-crash, process or sandboxed; NAME=LEVEL sets one plugin, as in on-crash,image=sandboxed
    /// [default: FOREBAY_PLUGIN_ISOLATION, else in-process]
    #[arg(long, value_name = "LEVELS", global = true,
          value_parser = |text: &str| text.parse::<Isolation>().map_err(|error| error.message().to_owned()))]
    pub(crate) isolate: Option<Isolation>,
    /// What the program has for the command.
    #[arg(skip)]
    pub(crate) home: Home,
}

impl Plugins {
    /// Where plugins are looked for; those that are named before all others.
    pub(crate) fn search(&self) -> Result<Search> {
        match &self.trust {
            Some(trust) => self.search_trusting(trust.clone()),
            None => self.named(Search::from_env()),
        }
    }

    /// As [`search`](Plugins::search), with this trust, whatever was said.
    pub(crate) fn search_trusting(&self, trust: Trust) -> Result<Search> {
        self.named(Search::from_env_trusting(trust))
    }

    /// The plugins of a search, and those of the program.
    pub(crate) fn registry(&self, search: Search) -> Result<Registry> {
        Ok(match &self.home.linked {
            Some(linked) => Registry::with_linked_in_workers(search, linked.register)?,
            None => Registry::new(search)?,
        })
    }

    /// What builds the loader of a graph.
    pub(crate) fn builder(&self, graph: Graph) -> LoaderBuilder {
        let builder = Loader::builder(graph);
        match &self.home.worker {
            Some(worker) => builder.worker(worker.clone()),
            None => builder,
        }
    }

    fn named(&self, search: forebay_loader::Result<Search>) -> Result<Search> {
        let mut search = search.map_err(Stop::Usage)?;
        if let Some(isolation) = &self.isolate {
            search = search.isolation(isolation.clone());
        }
        if let Some(library) = &self.home.library {
            search = search.program_library(library);
        }
        search = self.home.plugins.iter().rev().fold(search, Search::first);
        for place in self.first.iter().rev() {
            if !place.exists() {
                return Err(Stop::Usage(
                    Error::invalid("no such plugin file or folder").context("path", place.display()),
                ));
            }
            search = search.first(place);
        }
        Ok(search)
    }
}

/// The plugins, those that were named before all others.
pub(crate) fn any_registry(plugins: &Plugins) -> Result<Registry> {
    plugins.registry(plugins.search()?)
}

/// As [`any_registry`], and a plugin file that was named must be taken.
pub(crate) fn registry(plugins: &Plugins) -> Result<Registry> {
    let registry = any_registry(plugins)?;
    let named = |path: &Path| {
        plugins.first.iter().any(|first| std::path::absolute(first).is_ok_and(|first| first == path))
    };
    for refusal in registry.refusals() {
        // One that gives way to a newer one of its name is as good as taken.
        if named(&refusal.path) && !matches!(refusal.why, Why::Outdone | Why::LeftOut) {
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
            let hint = meant(text, registry);
            let mut error =
                Error::invalid(format!("nothing is called `{text}`: no file, no folder and no pipe{hint}"));
            if let Ok(folder) = env::current_dir() {
                error = error.context("folder", folder.display());
            }
            return Err(Stop::Usage(error.context("plugins", registry.looked_at())));
        }
        return Graph::from_line(text).map(Some).map_err(Stop::Usage);
    }
    let usage = |error: Error| Stop::Usage(error.context("file", path.display()));
    if is_named("toml") {
        let text = fs::read_to_string(path).map_err(|error| usage(unread(text, error, registry)))?;
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

/// The error about a file that cannot be read: as the store of files tells it, which says of one that is not there what may have been meant.
fn unread(file: &str, error: std::io::Error, registry: &Registry) -> Error {
    let told = registry.store("file").ok().and_then(|store| store.read(file, 0, 1).err());
    told.unwrap_or_else(|| error.into())
}

/// The files here and the pipes that a word may have been meant for.
fn meant(word: &str, registry: &Registry) -> String {
    let name = |entry: std::io::Result<fs::DirEntry>| entry.ok()?.file_name().into_string().ok();
    let files = fs::read_dir(".").into_iter().flatten().take(LOOKED_AT).filter_map(name);
    let names: Vec<_> = files.chain(registry.names()).collect();
    nearest::did_you_mean(word, names.iter().map(String::as_str))
}

/// Whether a text that names no file looks like a path or a pattern, and not like the name of a pipe.
fn is_path(text: &str) -> bool {
    text == "-" || text.contains(['/', '*', '?', '[', '{', '.'])
}
