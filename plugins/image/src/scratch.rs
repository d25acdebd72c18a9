//! Working memory kept by each thread, so that no call after the first takes fresh pages.

use std::cell::RefCell;

use forebay_core::{Error, Result};

/// A thread keeps no more than this, so that huge pictures do not stay for ever.
const KEEP: usize = 32 << 20;

thread_local! {
    static FREE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Calls `work` with `len` bytes of arbitrary content. `work` may do the same.
pub(crate) fn with<T>(len: usize, work: impl FnOnce(&mut [u8]) -> Result<T>) -> Result<T> {
    let mut bytes = FREE.with_borrow_mut(Vec::pop).unwrap_or_default();
    if bytes.len() < len {
        bytes
            .try_reserve_exact(len - bytes.len())
            .map_err(|_| Error::limit(format!("no {len} bytes of memory for a picture")))?;
        bytes.resize(len, 0);
    }
    let result = work(&mut bytes[..len]);
    FREE.with_borrow_mut(|free| {
        if free.iter().map(Vec::len).sum::<usize>() + bytes.len() <= KEEP {
            free.push(bytes);
        }
    });
    result
}
