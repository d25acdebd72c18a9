//! Standard output: JSON and text.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    os::fd::AsFd as _,
    sync::OnceLock,
};

pub(crate) use forebay_loader::text::{TextTable, bytes, count, counted, near, rate};
use serde::Serialize;

use crate::outcome::Result;

/// What was the standard output.
static OUTPUT: OnceLock<File> = OnceLock::new();

/// Keeps the standard output for this command: what anybody else writes there, such as a plugin, goes to standard error from here on.
pub(crate) fn keep_output() -> io::Result<()> {
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdout(io::stderr())?;
    let _ = OUTPUT.set(output.into()); // It is called once.
    Ok(())
}

/// The standard output of this command.
pub(crate) fn output() -> io::Result<File> {
    match OUTPUT.get() {
        Some(output) => output.try_clone(),
        None => Ok(io::stdout().as_fd().try_clone_to_owned()?.into()),
    }
}

/// Writes to standard output what `text` writes, and sees it off.
pub(crate) fn text(text: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result {
    let mut out = BufWriter::new(output()?);
    text(&mut out)?;
    Ok(out.flush()?)
}

/// Writes one line of JSON to standard output.
pub(crate) fn json(value: &impl Serialize) -> Result {
    text(|out| {
        serde_json::to_writer(&mut *out, value)?;
        writeln!(out)
    })
}
