//! `forebay snapshot show`: where a snapshot goes on.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use clap::Args as Arguments;
use forebay_loader::{NodeMark, Snapshot};

use crate::{
    outcome::{Result, Stop},
    print::{self, TextTable},
    saves,
};

/// What `forebay snapshot show` is told.
#[derive(Arguments)]
pub(crate) struct Args {
    /// A file that `forebay run --snapshot` or a program wrote
    file: PathBuf,
    /// Print the snapshot as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Shows a snapshot.
pub(crate) fn show(args: &Args) -> Result {
    let snapshot = saves::read(&args.file).map_err(Stop::Usage)?;
    if args.json { print::json(&snapshot) } else { print::text(|out| write(&snapshot, out)) }
}

fn write(snapshot: &Snapshot, out: &mut dyn Write) -> io::Result<()> {
    let mut table = TextTable::new(&["", ""]);
    let mut line = |name: &str, text: String| table.row([name.to_owned(), text]);
    let (epoch, next) = (snapshot.epoch, snapshot.epoch + 1);
    line("seed", snapshot.seed.to_string());
    line(
        "epoch",
        if snapshot.ended { format!("{epoch}, at its end: next is {next}") } else { epoch.to_string() },
    );
    line("delivered", print::count(snapshot.delivered));
    if snapshot.world_size > 1 {
        line("ranks", snapshot.world_size.to_string());
    }
    line("graph", snapshot.graph.clone());
    table.write(out, "")?;
    let mut plugins = TextTable::new(&["plugin", "version", "states", "hash"]);
    for (name, mark) in &snapshot.plugins {
        let states = mark.state_version.map_or_else(String::new, |version| format!("version {version}"));
        plugins.row([name.clone(), mark.version.clone(), states, mark.hash.clone()]);
    }
    writeln!(out)?;
    plugins.write(out, "")?;
    if snapshot.nodes.is_empty() {
        return Ok(());
    }
    let mut nodes = TextTable::new(&["node", "goes on from"]);
    for node in &snapshot.nodes {
        nodes.row([node.name.clone(), NodeMark::summary(node)]);
    }
    writeln!(out)?;
    nodes.write(out, "")
}
