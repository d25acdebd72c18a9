//! `forebay explain`: what a graph is and how it will run, as the loader explains it.

use clap::Args as Arguments;
use forebay_loader::{Error, Executor, Explanation, quality};

use crate::{
    open,
    outcome::{Result, Stop},
    print, run,
};

/// What `forebay explain` is told.
#[derive(Arguments)]
pub(crate) struct Args {
    /// A graph file (.toml or .json), a graph in one line, or a path; of a path, only the first bytes of each file are read
    graph: String,
    /// Where the work will run: inline, threads, threads:N or processes:N [default: the graph's, else threads]
    #[arg(long)]
    executor: Option<String>,
    /// Explain the run of one rank: R/W or `env`, as for `run`
    #[arg(long, value_name = "R/W", value_parser = run::rank)]
    rank: Option<(u32, u32)>,
    /// Measure how well the graph shuffles; this runs everything up to the last shuffle twice
    #[arg(long)]
    quality: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Shows what the graph would do.
pub(crate) fn explain(args: &Args, plugins: &open::Plugins) -> Result {
    let registry = open::registry(plugins)?;
    let given = open::input(&args.graph, &registry)?.graph;
    let executor = args.executor.as_deref().map(str::parse::<Executor>).transpose().map_err(Stop::Usage)?;
    let mut explanation = Explanation::new(&given, &registry, executor, args.rank).map_err(Stop::early)?;
    explanation.lints.extend(plugins.home.linked.iter().flat_map(|linked| (linked.lints)(&given)));
    if args.quality {
        let found = quality(&given, &registry, explanation.seed).map_err(Stop::early)?;
        let none = || {
            Stop::Usage(Error::invalid(
                "--quality: nothing in this graph shuffles; add `shuffle`, or leave --quality out",
            ))
        };
        explanation.quality = Some(found.ok_or_else(none)?);
    }
    let text = if args.json { explanation.json()? + "\n" } else { explanation.text() };
    print::text(|out| out.write_all(text.as_bytes()))
}
