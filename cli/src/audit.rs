//! `forebay audit`: whether every sample came exactly once, over all runs and ranks.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use clap::Args as Arguments;
use forebay_loader::{EpochAudit, audit as read};

use crate::{
    outcome::{Result, Stop},
    print,
};

/// What `forebay audit` is told.
#[derive(Arguments)]
pub(crate) struct Args {
    /// The files that `run --audit` wrote, of all ranks and of all resumed runs
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Answers; the exit code says whether it holds.
pub(crate) fn audit(args: &Args) -> Result {
    let epochs = read(&args.files).map_err(Stop::early)?;
    let exactly_once = epochs.iter().all(|epoch| epoch.exactly_once);
    if args.json {
        print::json(&serde_json::json!({ "exactly_once": exactly_once, "epochs": epochs }))?;
    } else {
        print::text(|out| write(&epochs, out))?;
    }
    if exactly_once { Ok(()) } else { Err(Stop::No) }
}

/// Writes what was found, for people.
pub(crate) fn write(epochs: &[EpochAudit], out: &mut dyn Write) -> io::Result<()> {
    epochs.iter().try_for_each(|epoch| writeln!(out, "{epoch}"))
}
