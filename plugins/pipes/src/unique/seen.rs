//! Hashes that were there before.

use std::hint::black_box;

/// How many bits of an index entry say where its hash is, from 1; those above are the hash's own, 0 is for none.
const PLACE: u32 = 40;

/// Different hashes of 128 bits.
///
/// They lie one after the other, and are found by an index of 8 bytes an entry that is two thirds full at most: so of what is new only
/// the index is looked into at random, and what a growing one leaves behind is small.
#[derive(Debug, Default)]
pub(super) struct Seen {
    all: Vec<u128>,
    /// A power of two of entries; a hash is at the place that its lower half says, or behind it.
    index: Vec<u64>,
}

impl Seen {
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether this one is there.
    pub(super) fn contains(&self, hash: u128) -> bool {
        !self.index.is_empty() && self.find(hash).is_ok()
    }

    /// Brings near what tells of these.
    pub(super) fn touch(&self, hashes: impl Iterator<Item = u128>) {
        if let Some(last) = self.index.len().checked_sub(1) {
            black_box(hashes.fold(0, |all, hash| all ^ self.index[hash as usize & last]));
        }
    }

    /// Adds one; says whether it is new.
    #[inline]
    pub(super) fn insert(&mut self, hash: u128) -> bool {
        if self.index.len() < self.all.len() + self.all.len() / 2 + 2 {
            self.grow();
        }
        let Err(vacant) = self.find(hash) else { return false };
        self.all.push(hash);
        self.index[vacant] = tag(hash) | self.all.len() as u64;
        true
    }

    /// The entry of a hash, or the one that it would have. There is one at least.
    #[inline]
    fn find(&self, hash: u128) -> Result<usize, usize> {
        let last = self.index.len() - 1;
        let mut at = hash as usize & last;
        loop {
            let entry = self.index[at];
            if entry == 0 {
                return Err(at);
            }
            let place = (entry & PLACES) as usize - 1;
            if entry & !PLACES == tag(hash) && self.all[place] == hash {
                return Ok(at);
            }
            at = (at + 1) & last;
        }
    }

    #[cold]
    fn grow(&mut self) {
        let len = (self.index.len() * 2).max(64);
        self.index = vec![0; len];
        for (hash, place) in self.all.iter().zip(1..) {
            let mut at = *hash as usize & (len - 1);
            while self.index[at] != 0 {
                at = (at + 1) & (len - 1);
            }
            self.index[at] = tag(*hash) | place;
        }
    }
}

const PLACES: u64 = (1 << PLACE) - 1;

/// What an entry tells of its hash.
#[inline]
fn tag(hash: u128) -> u64 {
    (hash >> 64) as u64 & !PLACES
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use forebay_core::random::Rng;

    use super::*;

    #[test]
    fn says_what_a_set_says_also_where_places_and_tags_are_equal() {
        // Halves of few values each: most hashes share their place, their tag or both with others.
        for (low, high) in [(4, 4), (1, 3000), (3000, 1), (u64::MAX, u64::MAX)] {
            let (mut rng, mut seen, mut set) = (Rng::new(5, low), Seen::default(), HashSet::new());
            for _ in 0..4000 {
                let half = |rng: &mut Rng, most| u128::from(rng.below(most));
                let hash = half(&mut rng, high) << 64 | half(&mut rng, low);
                assert_eq!(seen.contains(hash), set.contains(&hash));
                assert_eq!(seen.insert(hash), set.insert(hash));
                assert_eq!(seen.len(), set.len());
            }
            assert!(set.iter().all(|&hash| seen.contains(hash)));
            seen.clear();
            assert!(seen.len() == 0 && set.iter().all(|&hash| !seen.contains(hash)));
        }
    }
}
