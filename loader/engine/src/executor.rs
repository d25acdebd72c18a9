//! Where and when the nodes of a plan run.
//!
//! Inline execution is the truth: the consumer's thread drives each segment as it is needed. Threads
//! give the same samples in the same order: see `threads`.

mod bell;
mod chain;
mod children;
mod chunk_size;
mod dedicated;
mod expand;
mod eye;
mod guard;
mod handoff_order;
mod inline;
mod link;
mod ordered;
mod parallel;
mod remote;
mod reorder;
mod segment;
mod skew;
mod stall;
mod table;
mod threads;
mod work;
mod worker_pool;

use std::{
    fmt,
    str::FromStr,
    sync::Arc,
    task::Waker,
    time::{Duration, Instant},
};

use forebay_core::{Error, Result, Sample};
use forebay_guard::crash::Watched;
use forebay_registry::Registry;
use forebay_snapshot::checkpoint_log::StartPoint;

pub(crate) use self::{
    bell::Bell,
    chain::Chain,
    chunk_size::ChunkSize,
    dedicated::{Interrupt, unsendable},
    guard::Counts,
    handoff_order::HandoffOrder,
    inline::Inline,
    link::{Blame, Link},
    ordered::OrderedOutput,
    parallel::{Lost, Mapped, Parallel},
    threads::Threads,
    worker_pool::{BATCHES, DedicatedWorkerSpec, WorkerPool},
};
pub use self::{dedicated::Death, guard::CrashedSegment};
use crate::{host::Host, plan::Plan, stall::Watch};

/// Where the work of a graph runs. The samples are the same wherever it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Executor {
    /// On the consumer's own thread, when it asks.
    Inline,
    /// On this many threads of their own, ahead of the consumer; 0 is as many as the machine runs at once.
    Threads(usize),
    /// Maps in this many processes, 0 being as many as the machine runs at once; everything else on threads, unless the graph or a pipe says otherwise.
    Processes(usize),
}

impl Default for Executor {
    /// As many threads as the machine runs at once.
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

/// A segment, made and ready to run.
pub(crate) enum Body {
    /// One thread at a time.
    Serial(Box<Chain>),
    /// Any number of threads at once, and what sees its chunks in order.
    Parallel(Parallel, Box<OrderedOutput>),
}

/// All that an executor is given.
pub(crate) struct Job {
    pub(crate) plan: Plan,
    pub(crate) bodies: Vec<Body>,
    pub(crate) output: usize,
    pub(crate) host: Arc<Host>,
    /// The most bytes that wait on all edges together.
    pub(crate) budget: usize,
    /// The most samples that wait on an edge.
    pub(crate) ahead: usize,
    /// Pins the chunk size.
    pub(crate) chunk: Option<usize>,
    /// The names of the nodes.
    pub(crate) names: Vec<String>,
    /// Whom to tell when no sample comes for long.
    pub(crate) watch: Option<Watch>,
    /// Of each segment whether a crash in it is outlived.
    pub(crate) guarded: Vec<bool>,
}

/// Runs a plan, epoch by epoch.
pub trait Run: Send {
    /// Starts an epoch, each node at its origin; whatever was left of the one before is dropped. So many of the epoch's samples are `wanted`, the
    /// greatest number if that is not known: what lies beyond is made when it is asked for.
    fn start(&mut self, epoch: u64, origins: &[StartPoint], wanted: u64);

    /// Begins the epoch that comes next at its origins as soon as all of this one is made.
    fn prepare(&mut self, _epoch: u64, _origins: Vec<StartPoint>) {}

    /// Goes over to an epoch that was begun ahead, if it was.
    fn go_over(&mut self, _epoch: u64) -> bool {
        false
    }

    /// The next sample, in order; `None` at the end and after an error, and where nothing came [until](Run::is_pending) this moment. Without
    /// one it waits as long as it takes.
    fn next(&mut self, until: Option<Instant>) -> Option<Result<Sample>>;

    /// Whether the last `next` gave nothing since nothing had come.
    fn is_pending(&self) -> bool;

    /// Has `waker` called once when there may be something that the last `next` did not wait for; none for nobody.
    fn wake(&mut self, waker: Option<Waker>);

    /// The death of a worker that ended the last `next`, if that did: another start, where the consumer is, goes on.
    fn take_death(&mut self) -> Option<Death> {
        None
    }

    /// How long the consumer waited so far.
    fn waited(&self) -> Duration;

    /// How many threads work.
    fn threads(&self) -> usize;

    /// The ids of the worker processes that live now.
    fn processes(&self) -> Vec<u32> {
        Vec::new()
    }

    /// The segment whose pipes crashed on a thread, which is lost with them: nothing goes on before that runs elsewhere.
    fn crashed(&self) -> Option<CrashedSegment> {
        None
    }

    /// Has the program end, until this is dropped, if what goes on after a crash does not come to an end.
    fn watched(&self) -> Option<Watched> {
        None
    }

    /// Stops, and frees every pipe, so that another run may take the place of this one; what they have in common lives on.
    ///
    /// # Errors
    /// The first of a plugin that failed at it.
    fn retire(&mut self) -> Result<()> {
        self.finish()
    }

    /// Stops, and frees every pipe.
    ///
    /// # Errors
    /// The first of a plugin that failed at it.
    fn finish(&mut self) -> Result<()>;
}
