//! The uids of samples in a row.

use std::collections::VecDeque;

/// The most samples that are remembered of a source; beyond, the first are forgotten.
const MOST: usize = 1 << 20;

/// The uids of samples in a row, within a pass.
#[derive(Debug, Default)]
pub(super) struct UidRun {
    pass: u64,
    first: u64,
    uids: VecDeque<u64>,
}

impl UidRun {
    /// Adds those from sample `first` on.
    pub(super) fn add(&mut self, (pass, first): (u64, u64), uids: impl Iterator<Item = u64>) {
        if (pass, first) != (self.pass, self.first + self.uids.len() as u64) {
            (self.pass, self.first) = (pass, first);
            self.uids.clear();
        }
        self.uids.extend(uids);
        let most = self.uids.len().saturating_sub(MOST);
        self.uids.drain(..most);
        self.first += most as u64;
    }

    /// Takes them: the pass, the number of the first, and all uids. Those that follow may be added.
    pub(super) fn take(&mut self) -> (u64, u64, Vec<u64>) {
        let (pass, first, uids) = (self.pass, self.first, Vec::from(std::mem::take(&mut self.uids)));
        self.first += uids.len() as u64;
        (pass, first, uids)
    }

    /// The uid of the last of the first `count` samples.
    pub(super) fn last_of(&self, pass: u64, count: u64) -> Option<u64> {
        let at = count.checked_sub(1)?.checked_sub(self.first).filter(|_| pass == self.pass)?;
        self.uids.get(usize::try_from(at).ok()?).copied()
    }

    /// Forgets those before sample `first`.
    pub(super) fn forget(&mut self, pass: u64, first: u64) {
        if pass == self.pass {
            let count = usize::try_from(first.saturating_sub(self.first)).unwrap_or(usize::MAX);
            let count = count.min(self.uids.len());
            self.uids.drain(..count);
            self.first += count as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uids_are_found_by_their_place() {
        let mut uids = UidRun::default();
        uids.add((0, 0), 10..15);
        uids.add((0, 5), 15..20);
        let found = |uids: &UidRun| [0, 1, 6, 10, 11].map(|count| uids.last_of(0, count));
        assert_eq!(found(&uids), [None, Some(10), Some(15), Some(19), None]);
        uids.forget(0, 5);
        assert_eq!(found(&uids), [None, None, Some(15), Some(19), None]);
        uids.add((1, 0), 30..31);
        assert_eq!((uids.last_of(1, 1), uids.last_of(0, 6)), (Some(30), None));
        assert_eq!(uids.take(), (1, 0, vec![30]));
        uids.add((1, 1), 31..33);
        assert_eq!((uids.take(), uids.take()), ((1, 1, vec![31, 32]), (1, 3, Vec::new())));
    }
}
