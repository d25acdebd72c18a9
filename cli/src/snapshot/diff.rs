//! `forebay snapshot diff`: how two snapshots differ.

use std::path::PathBuf;

use clap::Args as Arguments;
use serde_json::json;

use crate::{
    outcome::{Result, Stop},
    print, saves,
};

/// What `forebay snapshot diff` is told.
#[derive(Arguments)]
pub(crate) struct Args {
    /// A snapshot
    one: PathBuf,
    /// Another snapshot
    other: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Shows the differences, one a line, and ends with exit code 1 where there are any.
pub(crate) fn diff(args: &Args) -> Result {
    let one = saves::read(&args.one).map_err(Stop::Usage)?;
    let other = saves::read(&args.other).map_err(Stop::Usage)?;
    let differences = one.differences(&other);
    match args.json {
        true => print::json(&json!({ "differences": differences }))?,
        false => print::text(|out| differences.iter().try_for_each(|line| writeln!(out, "{line}")))?,
    }
    if differences.is_empty() { Ok(()) } else { Err(Stop::No) }
}
