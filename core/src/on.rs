//! The places where the work of a node is done.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// Where the work of a node is done. It never changes the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum On {
    /// On the consumer's thread; with the executor inline, all nodes are there.
    Caller,
    /// On the threads that all nodes share.
    #[default]
    Threads,
    /// On a thread of its own, because the node waits for files or a server; for pipes that see samples in order.
    OwnThread,
    /// In worker processes. Maps run in any of them. Pipes that see samples in order run in a process of their
    /// own, which neighbours share.
    Process,
    /// As `Process`, without network, other programs or writes. The process reads only files that the graph names,
    /// and its memory and time are limited. A process of maps is in a sandbox as soon as one of its maps is.
    Sandboxed,
}

impl On {
    /// All that a graph may ask for.
    pub const ASKED: [Self; 4] = [Self::Threads, Self::OwnThread, Self::Process, Self::Sandboxed];

    /// The name in a manifest, and in a graph.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Threads => "threads",
            Self::OwnThread => "own_thread",
            Self::Process => "process",
            Self::Sandboxed => "sandboxed",
        }
    }

    /// Whether the work is done in another process.
    #[must_use]
    pub fn is_elsewhere(self) -> bool {
        matches!(self, Self::Process | Self::Sandboxed)
    }
}

impl FromStr for On {
    type Err = Error;

    /// Reads `threads`, `own_thread`, `process` or `sandboxed`.
    fn from_str(text: &str) -> Result<Self> {
        let found = Self::ASKED.into_iter().find(|on| on.to_string() == text);
        found.ok_or_else(|| {
            Error::invalid(format!(
                "option `on` is `{text}`, expected threads, own_thread, process or sandboxed"
            ))
        })
    }
}

impl fmt::Display for On {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
