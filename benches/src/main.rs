//! End-to-end measurements, each beside its floor in one run: `bench engine|tar|photos|manifests|startup [PATH]`.
//!
//! Rounds of Forebay and of the floor take turns, so that a machine whose speed drifts slows both; the
//! table shows the median and the best. CPU time is of the whole process and steadier than wall time.

mod engine;
mod manifests;
mod measure;
mod photos;
mod startup;
mod tar;

use std::{env, io::Write, path::PathBuf, process::ExitCode};

use forebay_loader::{Error, Graph, Registry, Result, Search};

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1);
    let which = arguments.next().unwrap_or_default();
    let path = arguments.next().map(PathBuf::from);
    let rows = match (which.as_str(), path) {
        ("engine", None) => engine::run(),
        ("manifests", None) => manifests::run(),
        ("tar", Some(path)) => tar::run(&path),
        ("photos", Some(path)) => photos::run(&path),
        ("startup", Some(path)) => startup::run(&path),
        _ => Err(Error::invalid(
            "usage: bench engine | bench manifests | bench tar FOLDER | bench photos FOLDER | bench startup FOREBAY",
        )),
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
