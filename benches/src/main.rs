//! End-to-end measurements, each beside its floor or what is wanted, in one run: `bench NAME [PATH]`; see the README.
//!
//! Rounds of Forebay and of the floor take turns, so that a machine whose speed drifts slows both; the
//! table shows the median and the best. CPU time is of the whole process and steadier than wall time.

mod engine;
mod formats;
mod idle;
mod kills;
mod manifests;
mod measure;
mod paths;
mod photos;
mod pipes;
mod plugins;
mod remote;
mod scratch;
#[path = "../../plugins/remote/tests/store/server.rs"]
#[expect(clippy::unwrap_used, dead_code, reason = "a server for tests, which use the rest of it")]
mod server;
mod skew;
mod snapshots;
mod startup;
mod steps;
mod tar;
mod workers;

use std::{env, io::Write, path::PathBuf, process::ExitCode};

use forebay_loader::{
    Error, Executor, Graph, Loader, LoaderBuilder, Registry, Result, Search, serve_if_worker,
};

const USAGE: &str = "usage: bench engine|manifests|workers|steps|skew|paths|kills|idle|remote, bench pipes [CASES], bench plugins [FOREBAY], \
                     bench tar|photos|snapshots FOLDER, bench startup FOREBAY, or bench formats FOLDER PYTHON [CASES]";

fn main() -> ExitCode {
    serve_if_worker();
    let mut arguments = env::args().skip(1);
    let which = arguments.next().unwrap_or_default();
    let (path, second) = (arguments.next().map(PathBuf::from), arguments.next().map(PathBuf::from));
    let rows = match (which.as_str(), path) {
        ("formats", Some(path)) => match second {
            Some(python) => formats::run(&path, &python, &arguments.next().unwrap_or_default()),
            None => Err(Error::invalid(USAGE)),
        },
        ("engine", None) => engine::run(),
        ("pipes", cases) => pipes::run(&cases.unwrap_or_default().to_string_lossy()),
        ("plugins", forebay) => plugins::run(forebay.as_deref()),
        ("manifests", None) => manifests::run(),
        ("workers", None) => workers::run(),
        ("steps", None) => steps::run(),
        ("skew", None) => skew::run(),
        ("paths", None) => paths::run(),
        ("kills", None) => kills::run(),
        ("idle", None) => idle::run(),
        ("remote", None) => remote::run(),
        ("snapshots", Some(path)) => snapshots::run(&path),
        ("tar", Some(path)) => tar::run(&path),
        ("photos", Some(path)) => photos::run(&path),
        ("startup", Some(path)) => startup::run(&path),
        _ => Err(Error::invalid(USAGE)),
    };
    let mut out = std::io::stdout().lock();
    let written = match rows {
        Ok(rows) => rows.iter().try_for_each(|row| writeln!(out, "{row}")),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error}");
            return ExitCode::FAILURE;
        }
    };
    if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The plugins that cargo built beside this program: every pipe is behind the library boundary.
fn registry() -> Result<Registry> {
    let program = env::current_exe()?;
    let folder = program.parent().map(|folder| folder.join("deps")).unwrap_or_default();
    let registry = Registry::new(Search::nowhere().first(folder))?;
    if registry.plugins().is_empty() {
        return Err(Error::invalid("no plugins beside this program").context("plugins", registry.looked_at()));
    }
    Ok(registry)
}

fn graph(line: &str) -> Result<Graph> {
    Graph::from_line(line)
}

/// A loader whose worker processes run this program.
fn loader(line: &str, executor: Executor, registry: &Registry) -> Result<Loader> {
    of_graph(graph(line)?, executor)?.build(registry)
}

fn of_graph(graph: Graph, executor: Executor) -> Result<LoaderBuilder> {
    Ok(Loader::builder(graph).executor(executor).worker(env::current_exe()?))
}
