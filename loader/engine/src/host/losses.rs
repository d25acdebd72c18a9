//! The samples that were set aside, each once, also where an epoch is gone on with from before some of them.

use super::LostSample;

/// The most samples that are listed as lost; all are counted.
const MOST: usize = 10_000;

/// The list of the samples that were set aside.
#[derive(Default)]
pub(super) struct Losses {
    pub(super) all: Vec<LostSample>,
    /// Where the list was when the epoch began.
    begun: usize,
    /// Whether the next start is of the same epoch.
    same: bool,
    /// Those of this epoch that may come once more, by their place in the list.
    again: Vec<usize>,
}

impl Losses {
    pub(super) fn add(&mut self, lost: LostSample) {
        let is_it = |&at: &usize| {
            let known = &self.all[at];
            (&known.node, known.uid, &known.key) == (&lost.node, lost.uid, &lost.key)
                && known.error == lost.error
        };
        if let Some(at) = self.again.iter().position(is_it) {
            self.again.remove(at);
        } else if self.all.len() < MOST {
            self.all.push(lost);
        }
    }

    pub(super) fn expect_again(&mut self) {
        self.same = true;
    }

    pub(super) fn start(&mut self) {
        if !std::mem::take(&mut self.same) {
            self.begun = self.all.len();
        }
        self.again = (self.begun..self.all.len()).collect();
    }
}
