//! How a run goes on after a crash: of a worker that had state, and of a thread.

use std::time::Instant;

use forebay_core::{Error, Result};
use forebay_engine::{
    run::{CrashedSegment, Death},
    running::Running,
};
use forebay_snapshot::Snapshot;

use crate::Loader;

/// How often workers with state may crash, and how often they may be killed, before a sample comes.
const CRASHED: usize = 3;
const PATIENCE: usize = 15;

impl Loader {
    /// Goes on after the death of a worker that had state: as after a snapshot, from where the consumer is.
    pub(crate) fn recover(&mut self, death: Death) -> Result<()> {
        if let Some(crashed) = self.running.run.crashed() {
            let _watched = self.running.run.watched();
            self.pause_clock();
            let (behind, snapshot) = (self.places_behind()?, self.snapshot()?);
            self.relocate(crashed)?;
            return self.go_on(&snapshot, behind);
        }
        self.deaths += if death.crashed { PATIENCE / CRASHED } else { 1 };
        if self.deaths >= PATIENCE {
            self.deaths = 0; // Another epoch may go better.
            let told = format!("{}, and so did others before it at this place", death.error.message());
            let places = death.error.contexts().iter();
            let told = Error::new(death.error.kind(), told);
            return Err(places.fold(told, |told, (name, value)| told.context(name, value)));
        }
        self.pause_clock();
        let (behind, snapshot) = (self.places_behind()?, self.snapshot()?);
        self.go_on(&snapshot, behind)
    }

    /// Goes on from a snapshot within the epoch that it was taken in.
    fn go_on(&mut self, snapshot: &Snapshot, behind: Vec<Snapshot>) -> Result<()> {
        self.prepared.host.expect_losses_again();
        let resumed = self.resume(snapshot).map(drop);
        self.keep_behind(behind);
        match &resumed {
            Ok(()) => self.begun = Some(Instant::now()),
            Err(_) => self.prepared.host.start(), // What comes next is no epoch that went on.
        }
        resumed
    }

    /// Has what crashed run in worker processes, and says so: another run takes the place of this one, and waits for its start.
    pub(crate) fn relocate(&mut self, CrashedSegment { segment, error }: CrashedSegment) -> Result<()> {
        let _watched = self.running.run.watched();
        let movable = self.prepared.movable(segment);
        let names: Vec<_> = movable.iter().map(|&at| self.prepared.graph.nodes()[at].name.as_str()).collect();
        let error = error.context("pipe", names.join(" | "));
        let plugins = movable
            .iter()
            .filter_map(|&at| self.prepared.registry.plugin_of(&self.prepared.graph.nodes()[at].pipe));
        let mut plugins: Vec<_> =
            plugins.map(|record| format!("{} in {}", record.label(), record.file())).collect();
        plugins.dedup();
        let error = error.context("plugin", plugins.join(", "));
        let note = format!(
            "{error}\n  next: from here on it runs in worker processes, which can crash without ending the run"
        );
        self.prepared.host.note(2, note);
        self.launch_again(&movable).map_err(|why| {
            let message =
                format!("{}, and cannot go on in worker processes: {}", error.message(), why.message());
            let places = error.contexts().iter().chain(why.contexts());
            places.fold(Error::new(error.kind(), message), |told, (name, value)| told.context(name, value))
        })
    }

    /// Has these nodes run in worker processes.
    fn launch_again(&mut self, moved: &[usize]) -> Result<()> {
        let retired = self.running.run.retire();
        self.prepared.move_to_workers(moved)?;
        retired?;
        let running = Running::start(&self.prepared, &self.running.nodes)?;
        self.waited += self.running.run.waited();
        self.running = running;
        Ok(())
    }
}
