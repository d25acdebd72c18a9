//! Hashes that were there before.

use std::hint::black_box;

/// How many bits of an entry say where its hash is, from 1; those above are the hash's own, 0 is for none.
const PLACE: u32 = 37;
const PLACES: u64 = (1 << PLACE) - 1;

/// How many parts the index has. A part's places go by the bits that an entry has of its hash, so it is quick up to 2^27 entries.
const PARTS: usize = 1024;

/// Different hashes of 128 bits.
///
/// They lie one after the other, and are found by an index of 8 bytes an entry that is two thirds full at most: so of what is new only
/// the index is looked into at random, and what a growing one leaves behind is small. The index is in parts that grow by themselves, each
/// within the cache and in memory that others left behind, without a look at the hashes.
#[derive(Debug, Default)]
pub(super) struct Seen {
    all: Vec<u128>,
    /// Of none before the first hash.
    parts: Vec<Part>,
}

/// The entries of hashes that have the same upper bits.
#[derive(Debug, Clone, Default)]
struct Part {
    /// A power of two of entries; one is at the place that its own bits say, or behind it.
    entries: Vec<u64>,
    len: usize,
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
        self.parts
            .get(part(hash))
            .is_some_and(|part| part.len > 0 && part.find(own(hash), hash, &self.all).is_none())
    }

    /// Brings near what tells of these.
    pub(super) fn touch(&self, hashes: impl Iterator<Item = u128>) {
        let entry = |hash| {
            let part = self.parts.get(part(hash))?;
            part.entries.get(part.home(own(hash)))
        };
        black_box(hashes.filter_map(entry).fold(0, |all, entry| all ^ entry));
    }

    /// Adds one; says whether it is new.
    #[inline]
    pub(super) fn insert(&mut self, hash: u128) -> bool {
        if self.parts.is_empty() {
            self.parts = vec![Part::default(); PARTS];
        }
        let part = &mut self.parts[part(hash)];
        if part.entries.len() < part.len + part.len / 2 + 2 {
            part.grow();
        }
        let own = own(hash);
        let Some(vacant) = part.find(own, hash, &self.all) else { return false };
        self.all.push(hash);
        part.entries[vacant] = own << PLACE | self.all.len() as u64;
        part.len += 1;
        true
    }
}

impl Part {
    /// Where an entry with these bits is at best.
    #[inline]
    fn home(&self, own: u64) -> usize {
        own as usize & self.entries.len().wrapping_sub(1)
    }

    /// Where the entry of a hash would go; none where it is there. There is room.
    #[inline]
    fn find(&self, own: u64, hash: u128, all: &[u128]) -> Option<usize> {
        let mut at = self.home(own);
        loop {
            let entry = self.entries[at];
            if entry == 0 {
                return Some(at);
            }
            if entry >> PLACE == own && all[(entry & PLACES) as usize - 1] == hash {
                return None;
            }
            at = (at + 1) & (self.entries.len() - 1);
        }
    }

    #[cold]
    fn grow(&mut self) {
        let len = (self.entries.len() * 2).max(16);
        let before = std::mem::replace(&mut self.entries, vec![0; len]);
        for entry in before.into_iter().filter(|entry| *entry != 0) {
            let mut at = self.home(entry >> PLACE);
            while self.entries[at] != 0 {
                at = (at + 1) & (len - 1);
            }
            self.entries[at] = entry;
        }
    }
}

/// Which part tells of a hash.
#[inline]
fn part(hash: u128) -> usize {
    (hash >> 64) as usize % PARTS
}

/// What an entry has of its hash.
#[inline]
fn own(hash: u128) -> u64 {
    hash as u64 & (u64::MAX >> PLACE)
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
