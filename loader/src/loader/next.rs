//! One sample after the other: waiting for it, for so long, or not at all.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use forebay_core::{Result, Sample};
use forebay_guard::maps;
use futures_core::Stream;

use crate::Loader;

impl Loader {
    /// The next sample of the epoch that was begun last, by [`begin`](Loader::begin), [`epoch`](Loader::epoch), [`resume`](Loader::resume) or
    /// [`remainder`](Loader::remainder). `None` at the end of the epoch, after an error, and before any was begun.
    ///
    /// Use it if an [`Epoch`](crate::Epoch) cannot be held, since that borrows the loader. An epoch that is dropped goes on here too.
    ///
    /// ```no_run
    /// use forebay_loader::{Graph, Loader, Registry};
    ///
    /// let graph = Graph::from_line("range 10 | batch 4")?;
    /// let mut loader = Loader::builder(graph).build(&Registry::from_env()?)?;
    /// loader.begin(0);
    /// while let Some(batch) = loader.next_sample() {
    ///     println!("{:?}", batch?);
    /// }
    /// # Ok::<(), forebay_loader::Error>(())
    /// ```
    pub fn next_sample(&mut self) -> Option<Result<Sample>> {
        self.advance(None)
    }

    /// As [`next_sample`](Loader::next_sample), but `Pending` if no sample comes within `limit`. The sample is not
    /// lost: ask again.
    ///
    /// With the executor inline, the pipes run in this call. The limit does not interrupt them; it bounds only how
    /// long they wait for what they read.
    ///
    /// ```no_run
    /// # use std::{task::Poll, time::Duration};
    /// # use forebay_loader::{Graph, Loader, Registry, Result};
    /// # fn example(loader: &mut Loader, interrupted: impl Fn() -> bool) -> Result<()> {
    /// loop {
    ///     match loader.next_within(Duration::from_millis(50)) {
    ///         Poll::Ready(Some(sample)) => println!("{:?}", sample?),
    ///         Poll::Ready(None) => break,
    ///         Poll::Pending if interrupted() => break,
    ///         Poll::Pending => {}
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn next_within(&mut self, limit: Duration) -> Poll<Option<Result<Sample>>> {
        // A limit that no clock reaches is none.
        let next = self.advance(Instant::now().checked_add(limit));
        if next.is_none() && self.pending { Poll::Pending } else { Poll::Ready(next) }
    }

    /// As [`next_within`](Loader::next_within), without waiting.
    pub fn try_next(&mut self) -> Poll<Option<Result<Sample>>> {
        self.next_within(Duration::ZERO)
    }

    /// As [`try_next`](Loader::try_next), for async programs: wakes the task when another try is worthwhile.
    ///
    /// With the executor inline, the pipes run in this call, so use threads or processes.
    ///
    /// A loader is a [`Stream`], too, of the samples of the epoch that was begun last.
    ///
    /// ```no_run
    /// use forebay_loader::{Loader, Result};
    /// use futures_util::StreamExt as _;
    ///
    /// async fn print(mut loader: Loader) -> Result<()> {
    ///     loader.begin(0);
    ///     while let Some(sample) = loader.next().await {
    ///         println!("{:?}", sample?);
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Sample>>> {
        let next = self.try_next();
        if next.is_ready() {
            return next;
        }
        self.running.run.wake(Some(cx.waker().clone()));
        // It may have come before that.
        let next = self.try_next();
        if next.is_ready() {
            self.running.run.wake(None);
        }
        next
    }

    /// The next sample of the run, past workers that die.
    fn run_next(&mut self, until: Option<Instant>) -> Option<Result<Sample>> {
        loop {
            let next = self.running.run.next(until);
            let Some(death) = self.running.run.take_death() else { return next };
            if let Err(error) = self.recover(death) {
                return Some(Err(error));
            }
        }
    }

    /// The next sample; none too where nothing came in time, which it notes.
    fn advance(&mut self, until: Option<Instant>) -> Option<Result<Sample>> {
        self.pending = false;
        if self.at.ended || self.idle {
            return None;
        }
        if let Some(error) = self.trouble.take() {
            self.at.failed = true;
            self.pause_clock();
            return Some(Err(error));
        }
        if self.begun.is_none() && !self.at.failed {
            self.begun = Some(Instant::now()); // An epoch that was dropped goes on.
        }
        let mut next = self.run_next(until);
        if next.is_none() && self.running.run.is_pending() {
            self.pending = true;
            return None;
        }
        let of_audit = self.prepared.audit.as_ref().and_then(|audit| audit.take_error());
        if let Some(error) =
            self.prepared.records.written.as_ref().and_then(|file| file.take_error()).or(of_audit)
        {
            next = Some(Err(error));
        }
        if let Some(error) = maps::error_after(self.cut) {
            // Zeros may be in anything that came since, also where nothing comes any more.
            next = (!self.at.failed).then_some(Err(error));
        }
        match &next {
            Some(Ok(sample)) => {
                self.at.delivered += 1;
                self.limit = self.limit.map(|left| left.saturating_sub(1));
                self.deaths = 0;
                if let Some(audit) = &self.prepared.audit {
                    audit.delivered(sample.uid());
                }
            }
            Some(Err(_)) => {
                self.at.failed = true;
                self.pause_clock();
            }
            None => {
                let ends = !self.at.failed && !self.prepared.host.is_cancelled();
                if let Some(audit) = self.prepared.audit.as_ref().filter(|_| ends) {
                    audit.ended(self.at.delivered);
                }
                self.at.ended |= ends;
                self.pause_clock();
                // Everything was delivered; the epoch has ended, and not well.
                next = if ends { self.untold().map(Err) } else { None };
            }
        }
        if self.prepared.host.take_trim() {
            self.prepared.resume_plan.trim(self.at.epoch, self.behind.least(self.at.delivered));
        }
        next
    }
}

/// The rest of the epoch that was begun last, as [`Loader::poll_next`] gives it.
impl Stream for Loader {
    type Item = Result<Sample>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Sample>>> {
        Self::poll_next(self.get_mut(), cx)
    }
}
