//! `forebay plugins`: one file per subcommand.

mod check;
mod doctor;
mod list;
mod lock;
mod new;
mod show;
mod test;
mod why;

use clap::Subcommand;
use forebay_loader::{
    graph::PipeSpec,
    registry::{FoundPlugin, Manifest},
};
use serde::Serialize;
use serde_json::json;

use crate::{open, outcome::Result};

/// What `forebay plugins` is told.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// List all plugins, the files that were refused and why, and the folders searched
    List {
        /// Also list each library that is not a plugin
        #[arg(long)]
        all: bool,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Show what a plugin, pipe, decoder or store offers, with every option
    Show {
        /// The plugin's name, as in `forebay plugins list`, or the name of a pipe, decoder or store
        name: String,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Make a crate with a working plugin to start from
    New(new::Args),
    /// Test that a library keeps the promises of a plugin
    Test(test::Args),
    /// Show which pipe or decoder reads a file, why, and why the others do not
    Why {
        /// The file
        file: String,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Write the versions and hashes of all found plugins, trusted or not, for --trust locked:FILE
    Lock(lock::LockArgs),
    /// Compare the found plugins with a lock
    Verify(lock::VerifyArgs),
    /// Check plugin files: the manifest and trust without running any code, then the loaded library
    Check(check::Args),
    /// Report problems with plugins and workers on this machine, and how to solve them
    Doctor(doctor::Args),
}

impl Command {
    /// Whether JSON was asked for.
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::List { json, .. } | Self::Show { json, .. } | Self::Why { json, .. } => *json,
            Self::New(_) => false,
            Self::Test(args) => args.json,
            Self::Lock(args) => args.json,
            Self::Verify(args) => args.json,
            Self::Check(args) => args.json,
            Self::Doctor(args) => args.json,
        }
    }
}

/// Shows, checks or locks plugins.
pub(crate) fn plugins(command: &Command, plugins: &open::Plugins) -> Result {
    let registry = || open::any_registry(plugins);
    match command {
        Command::List { all, json } => list::list(&registry()?, *all, *json),
        Command::Show { name, json } => show::show(&registry()?, name, *json),
        Command::New(args) => new::new(args),
        Command::Test(args) => test::test(args, plugins),
        Command::Why { file, json } => why::why(&registry()?, file, *json),
        Command::Lock(args) => lock::lock(args, plugins),
        Command::Verify(args) => lock::verify(args, plugins),
        Command::Check(args) => check::check(args, plugins),
        Command::Doctor(args) => doctor::doctor(args, plugins),
    }
}

/// A plugin's manifest, with the file it is in.
fn described(record: &FoundPlugin) -> serde_json::Value {
    #[derive(Serialize)]
    struct Described<'a> {
        #[serde(flatten)]
        manifest: &'a Manifest,
        file: String,
    }
    json!(Described { manifest: record.manifest(), file: record.file() })
}

/// Those that a person writes in a graph.
fn people(pipes: &[PipeSpec]) -> impl Iterator<Item = &PipeSpec> {
    pipes.iter().filter(|pipe| !pipe.is_part())
}
