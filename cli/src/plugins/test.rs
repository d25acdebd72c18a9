//! `forebay plugins test`: whether a library keeps what plugins promise.

use std::path::PathBuf;

use clap::Args as Arguments;
use forebay_loader::Error;
use forebay_testkit::conformance::{CHECKS, Kind, Kit, SECONDS};
use serde_json::json;

use crate::{
    open::Plugins,
    outcome::{Result, Stop},
    print,
};

/// What `forebay plugins test` is told.
#[derive(Arguments)]
pub(crate) struct Args {
    /// The library; not needed with --checks
    #[arg(required_unless_present = "checks")]
    library: Option<PathBuf>,
    /// A file or folder of files in the plugin's format, or, for a store, the URL of a file; can be given several times
    #[arg(long, value_name = "PATH")]
    data: Vec<String>,
    /// A graph in one line that uses a pipe of the plugin; can be given several times
    #[arg(long, value_name = "GRAPH")]
    graph: Vec<String>,
    /// A pipe, decoder or store to leave out, such as one that needs a server; can be given several times
    #[arg(long, value_name = "NAME")]
    skip: Vec<String>,
    /// How many seconds of CPU time a check may take
    #[arg(long, default_value_t = SECONDS, value_name = "N")]
    seconds: u64,
    /// List the checks without running them
    #[arg(long)]
    checks: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Tests a library.
pub(crate) fn test(args: &Args, plugins: &Plugins) -> Result {
    let Some(library) = args.library.as_ref().filter(|_| !args.checks) else { return checks(args.json) };
    if !library.is_file() {
        return Err(Stop::Usage(Error::invalid("no such file").context("plugin", library.display())));
    }
    let mut kit = Kit::file(library, plugins.search()?).seconds(args.seconds);
    if let Some(worker) = &plugins.home.worker {
        kit = kit.worker(worker.clone());
    }
    for path in &args.data {
        kit = kit.data(path);
    }
    for line in &args.graph {
        kit = kit.graph(line);
    }
    for name in &args.skip {
        kit = kit.skip(name);
    }
    let report = kit.run().map_err(Stop::early)?;
    if args.json {
        print::json(&report)?;
    } else {
        print::text(|out| writeln!(out, "{report}"))?;
    }
    if report.passed() { Ok(()) } else { Err(Stop::No) }
}

fn checks(as_json: bool) -> Result {
    if as_json {
        return print::json(&json!({ "checks": CHECKS }));
    }
    print::text(|out| {
        for (kind, title) in [
            (Kind::Plugin, "for every plugin"),
            (Kind::Decoder, "for each decoder"),
            (Kind::Pipe, "for each pipe"),
            (Kind::Store, "for each store"),
        ] {
            writeln!(out, "{title}")?;
            for check in CHECKS.iter().filter(|check| check.kind == kind) {
                writeln!(out, "  {:<10}{}", check.name, check.promise)?;
            }
        }
        Ok(())
    })
}
