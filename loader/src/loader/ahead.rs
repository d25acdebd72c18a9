//! Snapshots for a consumer that takes samples before it uses them, such as one that copies the next batch to a
//! device.

use forebay_core::{Error, Result};
use forebay_snapshot::Snapshot;

use crate::{Loader, loader::Position};

/// The places behind the consumer that may still be asked for.
#[derive(Debug, Default)]
pub(crate) struct Behind {
    /// How far back they go.
    most: u64,
    /// How many samples of the epoch had been delivered when what runs began.
    first: u64,
    /// Those before that: what ran then is gone.
    known: Vec<Snapshot>,
}

impl Behind {
    /// What runs begins at this place.
    pub(crate) fn begin(&mut self, delivered: u64) {
        self.first = delivered;
        self.known.clear();
    }

    /// The first place that may be asked for, of so many delivered.
    pub(crate) fn least(&self, delivered: u64) -> u64 {
        delivered.saturating_sub(self.most).max(self.first)
    }
}

impl Loader {
    /// Lets [`snapshot_at`](Loader::snapshot_at) know the places of up to `most` samples back.
    pub fn taken_ahead(&mut self, most: u64) {
        self.behind.most = most;
    }

    /// As [`snapshot`](Loader::snapshot), but of the place after `delivered` samples of this epoch, before its
    /// end. It is for a consumer that [takes samples ahead](Loader::taken_ahead), and has used only `delivered` of
    /// them.
    ///
    /// ```no_run
    /// # fn example(loader: &mut forebay_loader::Loader) -> forebay_loader::Result<()> {
    /// loader.taken_ahead(1);
    /// loader.begin(0);
    /// let first = loader.next_sample();
    /// let next = loader.next_sample(); // On its way to a device, while the first is used.
    /// let snapshot = loader.snapshot_at(1)?;
    /// # let _ = (first, next, snapshot);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Invalid` for a place that is further back than `taken_ahead` allows, or not reached yet; else as
    /// [`snapshot`](Loader::snapshot).
    pub fn snapshot_at(&self, delivered: u64) -> Result<Snapshot> {
        if let Some(known) = self.behind.known.iter().find(|known| known.delivered == delivered) {
            return Ok(known.clone());
        }
        let least = self.behind.least(self.at.delivered);
        if !(least..=self.at.delivered).contains(&delivered) {
            let error = format!(
                "cannot take a snapshot after {delivered} samples of the epoch, expected {least} to {}",
                self.at.delivered
            );
            return Err(Error::invalid(error).context(
                "next",
                "call Loader::taken_ahead with the number of samples that are taken before they are used",
            ));
        }
        self.snapshot_of(Position { delivered, ended: false, ..self.at })
    }

    /// The places that may still be asked for, before another run takes over, which knows nothing of them.
    pub(crate) fn places_behind(&self) -> Result<Vec<Snapshot>> {
        let to = self.at.delivered;
        let least = to.saturating_sub(self.behind.most);
        let known = self.behind.known.iter().filter(|known| known.delivered >= least).cloned();
        let rest = (self.behind.least(to)..to).map(|delivered| self.snapshot_at(delivered));
        known.map(Ok).chain(rest).collect()
    }

    /// What [`places_behind`](Self::places_behind) gave, once the other run has begun.
    pub(crate) fn keep_behind(&mut self, known: Vec<Snapshot>) {
        self.behind.known = known;
    }
}
