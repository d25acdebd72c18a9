//! What is kept of an epoch while the consumer may still be in it, although the next one has begun.

/// The same of two epochs: of the one that runs, and of the one before.
#[derive(Debug, Default)]
pub(super) struct Epochs<T> {
    now: (u64, T),
    before: (u64, T),
}

impl<T: Default> Epochs<T> {
    /// Of the epoch that runs.
    pub(super) fn now(&mut self) -> &mut T {
        &mut self.now.1
    }

    /// Of this epoch, if it is one of the two.
    pub(super) fn of(&mut self, epoch: u64) -> Option<&mut T> {
        [&mut self.now, &mut self.before].into_iter().find(|of| of.0 == epoch).map(|of| &mut of.1)
    }

    /// An epoch starts.
    pub(super) fn start(&mut self, epoch: u64, with: T) {
        self.before = std::mem::replace(&mut self.now, (epoch, with));
    }

    /// Forgets the epoch before.
    pub(super) fn settle(&mut self) {
        self.before = (0, T::default());
    }
}
