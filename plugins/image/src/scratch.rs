//! Working memory kept by each thread, so that no call after the first takes fresh pages.

use std::cell::Cell;

use forebay_core::{Error, Result};

/// A thread gives back what is over this, so that one huge picture does not stay for ever.
const KEEP: usize = 64 << 20;

thread_local! {
    static BYTES: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Calls `work` with `len` bytes of arbitrary content.
pub(crate) fn with<T>(len: usize, work: impl FnOnce(&mut [u8]) -> Result<T>) -> Result<T> {
    let mut bytes = BYTES.take();
    if bytes.len() < len {
        bytes
            .try_reserve_exact(len - bytes.len())
            .map_err(|_| Error::limit(format!("no {len} bytes of memory for a picture")))?;
        bytes.resize(len, 0);
    }
    let result = work(&mut bytes[..len]);
    if bytes.len() <= KEEP {
        BYTES.set(bytes);
    }
    result
}
