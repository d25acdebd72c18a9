//! The words of a [`Ledger`](crate::ledger::Ledger), which may lie in memory that processes share.

use std::sync::atomic::{AtomicU32, AtomicU64};

/// What all seats share.
#[repr(C, align(64))]
#[derive(Default)]
pub(crate) struct Head {
    /// Changes whenever somebody may go on.
    pub(crate) version: AtomicU32,
    /// How many wait, or died waiting.
    pub(crate) waiting: AtomicU32,
    /// Whether somebody had to wait so far: from then on the loader keeps the two words below up to date.
    pub(crate) tight: AtomicU32,
    /// Whether finished samples fill the budget and the consumer does not wait for another.
    pub(crate) sated: AtomicU32,
}

/// One who works on a chunk; on a line of the cache of its own.
#[repr(C, align(64))]
#[derive(Default)]
pub(crate) struct Seat {
    /// The chunk's number; 0 for none.
    pub(crate) number: AtomicU64,
    pub(crate) held: AtomicU64,
}
