//! `forebay snapshot`: what is in snapshots.

mod diff;
mod show;

use clap::Subcommand;

use crate::outcome::Result;

/// What `forebay snapshot` is told.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Show the position in a snapshot, node by node
    Show(show::Args),
    /// Show how two snapshots differ; the exit code is 1 if they do
    Diff(diff::Args),
}

impl Command {
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::Show(args) => args.json,
            Self::Diff(args) => args.json,
        }
    }
}

/// Answers.
pub(crate) fn snapshot(command: &Command) -> Result {
    match command {
        Command::Show(args) => show::show(args),
        Command::Diff(args) => diff::diff(args),
    }
}
