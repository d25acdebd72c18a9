//! All checks.

mod decoder;
mod pipe;
mod plugin;
mod store;

use forebay_loader::Error;
use serde::Serialize;

pub(crate) use self::plugin::LAYOUT;
use super::bench::Bench;
use super::subject::Kind;

/// One promise of plugins, and its check.
#[derive(Serialize)]
pub struct Check {
    /// Its name.
    pub name: &'static str,
    /// The kind of part that it applies to.
    pub kind: Kind,
    /// The promise.
    pub promise: &'static str,
    #[serde(skip)]
    pub(super) run: fn(&Bench) -> Found,
}

/// What a check saw, or why it did not pass.
pub(super) type Found = Result<String, Miss>;

/// Why a check did not pass.
pub(super) enum Miss {
    /// The promise is broken.
    Failed(String),
    /// It does not apply.
    Skipped(String),
}

impl From<Error> for Miss {
    fn from(error: Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// A check fails for this reason, if `fine` does not hold.
fn expect(fine: bool, why: impl FnOnce() -> String) -> Result<(), Miss> {
    if fine { Ok(()) } else { Err(Miss::Failed(why())) }
}

/// All checks, in the order in which they run.
pub const CHECKS: &[Check] = &[
    plugin::MANIFEST,
    plugin::SYMBOLS,
    LAYOUT,
    decoder::PROBE,
    decoder::DECODE,
    decoder::DAMAGE,
    decoder::THREADS,
    decoder::MEMORY,
    pipe::RUNS,
    // What cannot be given up would hang in those behind it.
    pipe::STOP,
    pipe::AGAIN,
    pipe::THREADS,
    pipe::WORKERS,
    pipe::STATE,
    pipe::RANKS,
    pipe::APART,
    pipe::ONCE,
    pipe::MEMORY,
    store::READS,
    store::REFUSES,
];
