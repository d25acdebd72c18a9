//! Where the work of a node is done.

use std::{fmt, str::FromStr};

use forebay_core::{Error, Result};
use serde::{Deserialize, Serialize};

/// Where the work of a node is done; it never changes what comes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum On {
    /// On the consumer's own thread: everything, on the executor inline.
    Caller,
    /// On the threads that all nodes share.
    #[default]
    Threads,
    /// On a thread that does nothing else, since it waits for files or for a server; for pipes that see samples in order.
    OwnThread,
    /// In worker processes: maps in any of them, pipes that see samples in order in one of their own, which those in a row share.
    Process,
}

impl On {
    /// All that a graph may ask for.
    pub(crate) const ASKED: [Self; 3] = [Self::Threads, Self::OwnThread, Self::Process];
}

impl FromStr for On {
    type Err = Error;

    /// Reads `threads`, `own_thread` or `process`.
    fn from_str(text: &str) -> Result<Self> {
        let found = Self::ASKED.into_iter().find(|on| on.to_string() == text);
        found.ok_or_else(|| {
            Error::invalid(format!("option `on` is `{text}`, expected threads, own_thread or process"))
        })
    }
}

impl fmt::Display for On {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Caller => "caller",
            Self::Threads => "threads",
            Self::OwnThread => "own_thread",
            Self::Process => "process",
        })
    }
}
