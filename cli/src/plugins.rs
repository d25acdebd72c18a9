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
    /// All plugins, the files that were refused and why, and the places looked at
    List {
        /// Show libraries that are no plugins one by one
        #[arg(long)]
        all: bool,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// What one plugin offers, with every option; or one pipe, decoder or store
    Show {
        /// The plugin's name, as in `forebay plugins list`, or the name of a pipe, decoder or store
        name: String,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Make a crate that is a working plugin, to begin from
    New(new::Args),
    /// Check whether a library keeps what plugins promise
    Test(test::Args),
    /// Which pipe opens a file, or which decoder takes it, why, and why the others do not
    Why {
        /// The file
        file: String,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Write a lock of the plugins that are found, whatever is trusted: their versions and hashes, for --trust locked:FILE
    Lock(lock::LockArgs),
    /// Compare the plugins that are found with a lock
    Verify(lock::VerifyArgs),
    /// Check plugin files one by one: the manifest, without running any of the code; trust; then loaded, the layout
    Check(check::Args),
    /// Say what may be wrong with plugins and workers on this machine, and what to do about it
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
