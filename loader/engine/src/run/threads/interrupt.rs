//! How a worker that has a serial segment is told to come back.

use std::{os::fd::OwnedFd, sync::Arc};

use forebay_core::{Result, Waker};
use rustix::event::{EventfdFlags, eventfd};

/// Has a worker's chain come back, from any thread, at any time: one call too many does no harm.
#[derive(Clone)]
pub(crate) struct Interrupt(pub(super) Arc<OwnedFd>);

impl Interrupt {
    pub(crate) fn new() -> Result<Self> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(std::io::Error::from)?;
        Ok(Self(Arc::new(fd)))
    }

    pub(super) fn waker(&self) -> Waker {
        let this = self.clone();
        Waker::new(move || {
            // It fails when it was called 2^64 times and nobody looked.
            let _ = rustix::io::write(&this.0, &1_u64.to_ne_bytes());
        })
    }

    pub(super) fn forget(&self) {
        let _ = rustix::io::read(&self.0, &mut [0; 8]); // It fails when nobody called.
    }
}
