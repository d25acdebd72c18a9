//! The command `forebay`, for programs that include it. It reads the command line; each subcommand has a file.

mod audit;
mod coverage;
mod dump;
mod explain;
mod head;
mod open;
mod outcome;
mod plugins;
mod preview;
mod print;
mod progress;
mod report;
mod run;
mod saves;
mod snapshot;
mod unit;

use std::{ffi::OsString, path::PathBuf, time::Instant};

use clap::{Parser, Subcommand};
use forebay_loader::{Graph, Lint, Registrar, WorkerProgram};

/// Reads data of any format and makes training batches of it.
#[derive(Parser)]
#[command(name = "forebay", version, propagate_version = true)]
struct Cli {
    #[command(flatten)]
    plugins: open::Plugins,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a graph or a path, and report what came out
    Run(Box<run::Args>),
    /// Show the first samples of a file, folder, pattern, URL or graph
    Head(head::Args),
    /// Print every sample of a path or graph as a line of JSON
    Dump(dump::Args),
    /// Show how a graph will run, without reading its data
    Explain(explain::Args),
    /// List, check, test and lock plugins
    #[command(subcommand)]
    Plugins(plugins::Command),
    /// Prove that every sample came exactly once, over all runs and ranks
    Audit(audit::Args),
    /// Show or compare snapshots
    #[command(subcommand)]
    Snapshot(snapshot::Command),
}

/// Settings of a program that includes the command. The command itself uses the default.
#[derive(Debug, Clone, Default)]
pub struct Home {
    /// The library that holds the program. Plugins are searched for in its folder; the library itself is no plugin.
    /// `None` if the program is an executable of its own.
    pub library: Option<PathBuf>,
    /// Plugin files, or folders of plugins, that are searched before those that the environment names.
    pub plugins: Vec<PathBuf>,
    /// Pipes that are linked into the program, and into its workers.
    pub linked: Option<Linked>,
    /// The program that worker processes run. `None` for the default of
    /// [`LoaderBuilder::worker`](forebay_loader::LoaderBuilder::worker).
    pub worker: Option<WorkerProgram>,
}

/// Pipes that are linked into the program.
#[derive(Debug, Clone, Copy)]
pub struct Linked {
    /// Adds the plugins of these pipes.
    pub register: fn(&mut dyn Registrar) -> forebay_loader::Result<()>,
    /// Finds what `explain` says about these pipes in a graph.
    pub lints: fn(&Graph) -> Vec<Lint>,
}

/// Runs the command with these arguments and returns the exit code. The first argument is the name of the command.
///
/// Call [`serve_if_worker`](forebay_loader::serve_if_worker) first. A process can run one command only, because the
/// command takes standard output for itself.
pub fn run(args: impl IntoIterator<Item = OsString>, home: Home) -> u8 {
    let begun = Instant::now();
    let Cli { mut plugins, command } = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print(); // When standard error or output is gone there is nobody to tell.
            return u8::try_from(error.exit_code()).unwrap_or(2);
        }
    };
    plugins.home = home;
    let _ = print::keep_output(); // Where that fails, what plugins write lies among what this writes.
    let (result, json) = match &command {
        Command::Run(args) => (run::run(args, &plugins, begun), args.json),
        Command::Head(args) => (head::head(args, &plugins), args.json),
        Command::Dump(args) => (dump::dump(args, &plugins), false),
        Command::Explain(args) => (explain::explain(args, &plugins), args.json),
        Command::Plugins(command) => (plugins::plugins(command, &plugins), command.json()),
        Command::Audit(args) => (audit::audit(args), args.json),
        Command::Snapshot(command) => (snapshot::snapshot(command), command.json()),
    };
    outcome::tell(result, json)
}
