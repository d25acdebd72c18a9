//! Where and when the nodes of a plan run.
//!
//! Inline execution is the truth: the consumer's thread drives each segment as it is needed. Threads
//! give the same samples in the same order: see `threads`.

mod bell;
mod chain;
mod chunk_size;
mod death;
mod expand;
mod eye;
mod handoff_order;
mod inline;
mod item;
mod link;
mod mapped;
mod ordered;
mod parallel;
mod segment;
mod skew;
mod table;
mod threads;

use std::{
    sync::Arc,
    task::Waker,
    time::{Duration, Instant},
};

use forebay_core::{Result, Sample};
use forebay_guard::crash::Watched;
use forebay_snapshot::checkpoint_log::StartPoint;

pub use self::death::{CrashedSegment, Death};
pub(crate) use self::{
    bell::Bell,
    chain::Chain,
    chunk_size::ChunkSize,
    handoff_order::HandoffOrder,
    inline::Inline,
    link::{Blame, Link, MadeNode, NodePosition, unsendable},
    mapped::{Lost, Mapped},
    ordered::OrderedOutput,
    parallel::Parallel,
    threads::{BATCHES, Counts, DedicatedWorkerSpec, Interrupt, Threads, WorkerPool},
};
use crate::{host::Host, plan::Plan, stall::Watch};

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
