//! Passes over the data, as one program sees them: what was used in the last ones will be used again.
//!
//! A run that reads files from front to back reads each block once in a pass. So of the blocks that fit, any choice that is kept until the next pass
//! gives as many hits as the best of all, and one that exchanges them gives fewer: to keep what was used last loses all of them (Belady, "A study
//! of replacement algorithms for a virtual-storage computer", 1966).

use std::{collections::HashSet, mem, time::SystemTime};

/// The blocks that begin a pass are enough to see the next.
const SEEN: usize = 1 << 16;

/// When the passes of this program were seen to begin.
pub(crate) struct Passes {
    /// Blocks of this pass, the first ones, and those of them that were used again.
    seen: HashSet<u128>,
    again: HashSet<u128>,
    /// How often blocks were used in it.
    uses: usize,
    this: SystemTime,
    last: Option<SystemTime>,
    /// The one before that.
    older: Option<SystemTime>,
}

impl Passes {
    pub(crate) fn new() -> Self {
        let this = SystemTime::now();
        Self { seen: HashSet::new(), again: HashSet::new(), uses: 0, this, last: None, older: None }
    }

    /// A block is used. Once half of them were used again, another pass has begun; a few may be read again and again, unless there is nothing else
    /// for long: then others are read now.
    pub(crate) fn used(&mut self, key: u128) {
        self.uses += 1;
        if !self.seen.contains(&key) {
            if self.seen.len() < SEEN {
                self.seen.insert(key);
            }
            return;
        }
        self.again.insert(key);
        let seen = self.seen.len();
        if self.again.len() * 2 >= seen || (seen < SEEN && self.uses >= 4 * seen) {
            self.seen = mem::take(&mut self.again);
            self.uses = self.seen.len();
            self.older = self.last.replace(mem::replace(&mut self.this, SystemTime::now()));
        }
    }

    /// What was used since then will be used again; what was not may make way for it. A pass is seen when half of it is over, so one more counts.
    pub(crate) fn since(&self) -> SystemTime {
        self.older.or(self.last).unwrap_or(self.this)
    }

    /// In the first pass nobody knows what is still to come of what was there before.
    pub(crate) fn is_first(&self) -> bool {
        self.last.is_none()
    }
}
