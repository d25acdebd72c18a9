//! Executors: where the work of a graph runs.

use std::{fmt, str::FromStr};

use forebay_core::{Error, Result};
use forebay_registry::Registry;

/// Where the work of a graph runs. The samples are the same with each executor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Executor {
    /// On the consumer's thread, when it asks for a sample.
    Inline,
    /// On this many threads, ahead of the consumer. 0 means one for each core.
    Threads(usize),
    /// Maps run in this many worker processes; 0 means one for each core. All other nodes run on threads, unless
    /// the graph or a pipe says otherwise.
    Processes(usize),
}

impl Default for Executor {
    /// One thread for each core.
    fn default() -> Self {
        Self::Threads(0).counted()
    }
}

impl Executor {
    /// What to look at some samples with: the caller's own thread, or one more where plugins are isolated.
    #[must_use]
    pub fn modest(registry: &Registry) -> Self {
        if registry.isolates() { Self::Threads(1) } else { Self::Inline }
    }

    /// With the number of cores in place of none.
    pub fn counted(self) -> Self {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        match self {
            Self::Threads(0) => Self::Threads(cores()),
            Self::Processes(0) => Self::Processes(cores()),
            other => other,
        }
    }
}

impl FromStr for Executor {
    type Err = Error;

    /// Reads `inline`, `threads`, `threads:N` or `processes:N`.
    fn from_str(text: &str) -> Result<Self> {
        let bad = || {
            Error::invalid(format!(
                "executor is `{text}`, expected inline, threads, threads:N or processes:N"
            ))
        };
        match text.split_once(':') {
            None if text == "inline" => Ok(Self::Inline),
            None if text == "threads" => Ok(Self::default()),
            Some((place, count)) => {
                let count: usize = count.parse().map_err(|_| bad())?;
                match place {
                    "threads" if (1..=1024).contains(&count) => Ok(Self::Threads(count)),
                    "processes" if (1..=256).contains(&count) => Ok(Self::Processes(count)),
                    _ => Err(bad()),
                }
            }
            _ => Err(bad()),
        }
    }
}

impl fmt::Display for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inline => f.write_str("inline"),
            Self::Threads(count) => write!(f, "threads:{count}"),
            Self::Processes(count) => write!(f, "processes:{count}"),
        }
    }
}
