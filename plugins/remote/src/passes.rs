//! Passes over the data, as one program sees them: what was used in the last one or this one will be used again.
//!
//! A run reads each block once in a pass. So of the blocks that fit, any choice that is kept until the next pass gives as many hits
//! as the best of all, and one that exchanges them gives fewer: to keep what was used last loses all of them (Belady, "A study of
//! replacement algorithms for a virtual-storage computer", 1966).

use std::{collections::HashSet, time::SystemTime};

/// The blocks that begin a pass are enough to see the next begin.
const SEEN: usize = 1 << 16;

/// When the passes of this program began.
pub(crate) struct Passes {
    /// Blocks of this pass, the first ones.
    seen: HashSet<u128>,
    this: SystemTime,
    last: Option<SystemTime>,
}

impl Passes {
    pub(crate) fn new() -> Self {
        Self { seen: HashSet::new(), this: SystemTime::now(), last: None }
    }

    /// A block is used. One that was already used in this pass begins another.
    pub(crate) fn used(&mut self, key: u128) {
        if self.seen.contains(&key) {
            self.seen.clear();
            self.last = Some(std::mem::replace(&mut self.this, SystemTime::now()));
        }
        if self.seen.len() < SEEN {
            self.seen.insert(key);
        }
    }

    /// What was used since then will be used again; what was not may make way for it.
    pub(crate) fn since(&self) -> SystemTime {
        self.last.unwrap_or(self.this)
    }

    /// In the first pass nobody knows what is still to come of what was there before.
    pub(crate) fn is_first(&self) -> bool {
        self.last.is_none()
    }
}
