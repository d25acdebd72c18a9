//! Hashes that were there before.

use std::hint::black_box;

/// How many bits of an entry say where its hash is, from 1; those above are the hash's own, 0 is for none.
const PLACE: u32 = 37;
const PLACES: u64 = (1 << PLACE) - 1;

/// How many parts the index has. A part's places go by the bits that an entry has of its hash, so it is quick up to 2^27 entries.
const PARTS: usize = 1024;

/// How many entries are looked at together: one line of the cache.
const BUCKET: usize = 8;

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
    /// A power of two of them, each filled from its first entry on. An entry is in the one that its own bits say, or where that is full behind it.
    buckets: Vec<Bucket>,
    len: usize,
}

/// Entries that are looked at together, since nobody can tell in advance at which of them a search would end.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
struct Bucket([u64; BUCKET]);

impl Seen {
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether this one is there.
    pub(super) fn contains(&self, hash: u128) -> bool {
        let part = self.parts.get(part(hash)).filter(|part| part.len > 0);
        part.is_some_and(|part| part.vacant(own(hash), hash, &self.all).is_none())
    }

    /// Brings near what tells of these.
    pub(super) fn touch(&self, hashes: &[u128]) {
        let entry = |&hash: &u128| {
            let part = self.parts.get(part(hash))?;
            part.buckets.get(part.home(own(hash))).map(|bucket| bucket.0[0])
        };
        black_box(hashes.iter().filter_map(entry).fold(0, |all, entry| all ^ entry));
    }

    /// Adds one; says whether it is new.
    #[inline]
    pub(super) fn insert(&mut self, hash: u128) -> bool {
        if self.parts.is_empty() {
            self.parts = vec![Part::default(); PARTS];
        }
        let part = &mut self.parts[part(hash)];
        if part.len * 3 >= part.buckets.len() * BUCKET * 2 {
            part.grow();
        }
        let own = own(hash);
        let Some((bucket, entry)) = part.vacant(own, hash, &self.all) else { return false };
        self.all.push(hash);
        part.buckets[bucket].0[entry] = own << PLACE | self.all.len() as u64;
        part.len += 1;
        true
    }
}

impl Part {
    /// The bucket where an entry with these bits is at best.
    #[inline]
    fn home(&self, own: u64) -> usize {
        own as usize & self.buckets.len().wrapping_sub(1)
    }

    /// Where the entry of a hash would go; none where it is there. There is room.
    #[inline]
    fn vacant(&self, own: u64, hash: u128, all: &[u128]) -> Option<(usize, usize)> {
        let mut at = self.home(own);
        loop {
            let Bucket(entries) = &self.buckets[at];
            let like = |entry: u64| entry >> PLACE == own && entry != 0;
            let is_it = |&entry: &u64| like(entry) && all[(entry & PLACES) as usize - 1] == hash;
            if entries.iter().fold(false, |any, &entry| any | (entry >> PLACE == own))
                && entries.iter().any(is_it)
            {
                return None;
            }
            let full = entries.iter().fold(0, |count, &entry| count + usize::from(entry != 0));
            if full < BUCKET {
                return Some((at, full));
            }
            at = (at + 1) & (self.buckets.len() - 1);
        }
    }

    #[cold]
    fn grow(&mut self) {
        let len = (self.buckets.len() * 2).max(1);
        let before = std::mem::replace(&mut self.buckets, vec![Bucket::default(); len]);
        let mut full = vec![0; len];
        for entry in before.into_iter().flat_map(|bucket| bucket.0).filter(|entry| *entry != 0) {
            let mut at = self.home(entry >> PLACE);
            while full[at] == BUCKET {
                at = (at + 1) & (len - 1);
            }
            self.buckets[at].0[full[at]] = entry;
            full[at] += 1;
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
