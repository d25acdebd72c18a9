//! What failed and was not allowed to: by whom, and what a run says of it at its end.

use forebay_core::{Error, ErrorKind};
use forebay_graph::{Action, Node};
use forebay_snapshot::{Snapshot, checkpoint_log::StartPoint};

use crate::Loader;

/// How often nodes failed that make an epoch fail at its end.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Failures {
    /// Whether they may.
    pub(crate) allowed: bool,
    /// Before the snapshot that the run went on from, in another process.
    before: u64,
    /// How many an error has told already.
    told: u64,
}

impl Loader {
    /// The error for all samples that failed so far at nodes with `on_error=fail_at_end`. `None` if none failed,
    /// or if failures [are allowed](crate::LoaderBuilder::allow_failures).
    ///
    /// It is the first failure; `failed` in its context says how many there were. An epoch delivers everything
    /// else, and then ends with this error. [`finish`](Loader::finish) returns it if no epoch did. With a limit,
    /// all failures until then count, those of samples that were read ahead too.
    #[must_use]
    pub fn failure(&self) -> Option<Error> {
        let count = self.failed();
        if count == 0 || self.failures.allowed {
            return None;
        }
        let first = self
            .quarantine()
            .into_iter()
            .find(|lost| self.prepared.graph.node(&lost.node).is_some_and(defers));
        let error = first.map_or_else(
            || {
                Error::new(
                    ErrorKind::Corrupt,
                    "samples failed before the snapshot that this run went on from",
                )
            },
            |lost| match lost.key.filter(|_| lost.error.get("sample").is_none()) {
                Some(key) => lost.error.context("sample", key),
                None => lost.error,
            },
        );
        let many = if count == 1 { "once".to_owned() } else { format!("{count} times, first here") };
        Some(error.context("failed", format!("{many}; everything else was delivered")))
    }

    /// The error for what failed since an error last said so.
    pub(crate) fn untold(&mut self) -> Option<Error> {
        let count = self.failed();
        let new = count > std::mem::replace(&mut self.failures.told, count);
        self.failure().filter(|_| new)
    }

    /// Takes note of what had failed at the places that a resume begins at, unless it is counted already. Of failures in epochs that are
    /// over, and of those that no place knows, it stays known that there were some.
    pub(crate) fn failed_before(&mut self, snapshot: &Snapshot, origins: &[StartPoint]) {
        let nodes = self.prepared.graph.nodes().iter().zip(origins).zip(&self.prepared.resume_plan.nodes);
        let lost = nodes.filter(|((node, _), _)| defers(node)).map(|((_, origin), stop)| {
            let place = &origin.checkpoint.place;
            let missing = place.taken.first().zip(place.given.first());
            let missing = missing.filter(|_| stop.map).map(|(taken, given)| taken.saturating_sub(*given));
            missing.unwrap_or(place.lost)
        });
        let lost = lost.sum::<u64>().max(u64::from(snapshot.failed > 0));
        self.failures.before = lost.saturating_sub(self.counted());
        self.failures.told = self.failures.told.min(self.failed());
    }

    pub(crate) fn failed(&self) -> u64 {
        self.counted() + self.failures.before
    }

    /// How many failures this loader saw.
    fn counted(&self) -> u64 {
        let named = |name: &str| self.prepared.graph.node(name).is_some_and(defers);
        self.running.nodes.iter().filter(|info| named(&info.node)).map(|info| info.counters.losses()).sum()
    }
}

/// Whether what a node fails on is an error at the end of the epoch.
fn defers(node: &Node) -> bool {
    node.on_error().action == Action::FailAtEnd
}
