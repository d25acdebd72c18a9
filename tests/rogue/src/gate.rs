//! Where a pipe waits until a test lets it pass.
//!
//! A gate is a Unix socket that the test listens on: the test sees who came, and opens by hanging up. Both
//! sides have their own copy of this crate's statics, so nothing in memory would do.

use std::{io::Read, os::unix::net::UnixStream};

use forebay_core::{Error, Result};

/// Waits at the gate at this path, until whoever listens there hangs up. No path is no gate.
///
/// # Errors
/// `Io`, when nobody listens.
pub fn pass(path: &str) -> Result<()> {
    if path.is_empty() {
        return Ok(());
    }
    let mut gate = UnixStream::connect(path).map_err(|error| Error::from(error).context("gate", path))?;
    let mut rest = Vec::new();
    gate.read_to_end(&mut rest)?;
    Ok(())
}
