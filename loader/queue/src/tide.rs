//! How much memory may be kept to be used again: as much as was in use lately, so that keeping it never raises the peak.

/// After so many blocks the most that was in use before them counts no more.
const STRETCH: u32 = 1024;

/// Counts the bytes in use, and remembers the most of them.
#[derive(Debug)]
pub struct Tide {
    live: usize,
    /// The most in use in this stretch of blocks, and in the one before.
    most: [usize; 2],
    blocks: u32,
    /// What may be held in any case, in use or kept.
    least: usize,
    /// What may be kept beyond the most that was in use: sizes differ a little from sample to sample.
    spare: usize,
    /// No more than this may be kept.
    most_kept: usize,
}

impl Tide {
    /// Counts from nothing; `least` bytes may always be held, and `spare` more than were in use.
    pub fn new(least: usize, spare: usize) -> Self {
        Self { live: 0, most: [0; 2], blocks: 0, least, spare, most_kept: usize::MAX }
    }

    /// Counts from nothing; no more than `bytes` may be kept.
    pub(crate) fn shallow(bytes: usize) -> Self {
        Self { most_kept: bytes, ..Self::new(bytes, bytes) }
    }

    /// So many bytes are in use from now on.
    pub fn take(&mut self, len: usize) {
        self.live += len;
        self.blocks += 1;
        if self.blocks == STRETCH {
            self.most = [self.live, self.most[0]];
            self.blocks = 0;
        }
        self.most[0] = self.most[0].max(self.live);
    }

    /// So many bytes are in use no more.
    pub fn give_back(&mut self, len: usize) {
        self.live = self.live.saturating_sub(len);
    }

    /// Forgets what was in use before.
    pub fn ebb(&mut self) {
        self.most = [self.live; 2];
    }

    /// Bytes in use.
    pub fn live(&self) -> usize {
        self.live
    }

    /// How many bytes that nobody uses may be kept now.
    pub fn room(&self) -> usize {
        let most = self.most[0].max(self.most[1]).saturating_add(self.spare);
        (most.max(self.least) - self.live).min(self.most_kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_never_passes_what_was_in_use() {
        let mut tide = Tide::new(0, 10);
        tide.take(100);
        tide.take(50);
        assert_eq!(tide.room(), 10);
        tide.give_back(100);
        assert_eq!((tide.live(), tide.room()), (50, 110));
        tide.give_back(50);
        assert_eq!(tide.room(), 160);
        assert_eq!(Tide::new(500, 10).room(), 500);
        let mut shallow = Tide::shallow(20);
        shallow.take(100);
        shallow.give_back(100);
        assert_eq!(shallow.room(), 20);
    }

    #[test]
    fn one_large_block_is_forgotten() {
        let mut tide = Tide::new(0, 0);
        tide.take(1000);
        tide.give_back(1000);
        for _ in 1..2 * STRETCH {
            assert_eq!(tide.room(), 1000);
            tide.take(10);
            tide.give_back(10);
        }
        assert_eq!(tide.room(), 10);
    }
}
