//! The report of a stall: which pipe works on which sample, and since when.

use forebay_graph::On;

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

/// A stall: no sample came for a while. See `LoaderBuilder::on_stall`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Stall {
    /// How long the consumer has waited for its next sample.
    pub waited: Duration,
    /// The work that is going on, the longest first.
    pub at_work: Vec<AtWork>,
    /// The nodes that wait until their inputs wake them.
    pub pending: Vec<String>,
}

/// A thread or worker process that is still at work.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AtWork {
    /// The nodes that it runs, upstream first.
    pub nodes: Vec<String>,
    /// Where they run.
    pub on: On,
    /// The number of the thread or worker process, from 0.
    pub index: usize,
    /// The worker's process id.
    pub process: Option<u32>,
    /// How long it has been at work.
    pub since: Duration,
    /// How many samples it was given at once.
    pub samples: usize,
    /// The key of the first of these samples.
    pub first: Option<String>,
    /// The decoder that is running, and its plugin.
    pub decoder: Option<String>,
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no sample for {:.0} s", self.waited.as_secs_f64())?;
        for (at, work) in self.at_work.iter().enumerate() {
            write!(f, "{}{work}", if at == 0 { ": " } else { "; " })?;
        }
        if !self.pending.is_empty() {
            let before = if self.at_work.is_empty() { ": " } else { "; " };
            write!(f, "{before}{} wait for what they read from", self.pending.join(", "))?;
        }
        Ok(())
    }
}

impl fmt::Display for AtWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for {:.1} s ", self.nodes.join(" | "), self.since.as_secs_f64())?;
        match (self.on, self.process) {
            (On::Process | On::Sandboxed, Some(process)) => {
                write!(f, "in worker {} (process {process})", self.index)?
            }
            (On::Process | On::Sandboxed, None) => write!(f, "in worker {}", self.index)?,
            (On::Caller, _) => write!(f, "on the caller's thread")?,
            (On::OwnThread, _) => write!(f, "on thread forebay-own{}", self.index)?,
            _ => write!(f, "on thread forebay-{}", self.index)?,
        }
        match (&self.first, self.samples) {
            (Some(first), 1) => write!(f, ", at {first}")?,
            (Some(first), samples) => write!(f, ", at {samples} samples from {first} on")?,
            (None, _) => {}
        }
        self.decoder.iter().try_for_each(|decoder| write!(f, ", in the decoder {decoder}"))
    }
}

/// Whom to tell of a stall, and after how long.
#[derive(Clone)]
pub struct Watch {
    /// How long nothing may come.
    pub after: Duration,
    /// What is called then: on the thread that waits, or beside it where that runs the pipes itself.
    pub tell: Arc<dyn Fn(&Stall) + Send + Sync>,
}

impl Watch {
    /// How long until one who waits since `begin`, and was told so often, is to be told again; none for never.
    pub(crate) fn rest(&self, begin: Instant, told: u32) -> Option<Duration> {
        // Again after twice the time, so that a log does not fill with it.
        let due = self.after.checked_mul(2_u32.saturating_pow(told))?;
        Some(due.saturating_sub(begin.elapsed()))
    }
}
