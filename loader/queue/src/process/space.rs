//! Which bytes of a lane are in use: the sender's own books, of which the other process sees nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::tide::Tide;

/// Blocks begin and end at these, so that no two share a cache line.
const LINE: usize = 64;

/// Free and used parts of a range. The smallest free part that fits is used first, and of those the lowest: so
/// memory that was written before is written again before fresh pages are.
pub(super) struct Space {
    /// Length and start.
    by_len: BTreeSet<(usize, usize)>,
    /// Start and length; no two adjoin.
    by_start: BTreeMap<usize, usize>,
    /// Start of each used block: its length and its number.
    used: BTreeMap<usize, (usize, u32)>,
    /// Where the block of each number begins.
    starts: Vec<Option<usize>>,
    /// Numbers of no block, the warm ones last.
    numbers: Vec<u32>,
    total: usize,
    /// Start and end of what was written, is free now, and still has its pages.
    written: BTreeMap<usize, usize>,
    /// How many bytes that is.
    kept: usize,
    tide: Tide,
}

impl Space {
    /// All of `range` free, for at most `blocks` blocks; `tide` says how much of what was written is kept.
    pub(super) fn new(range: Range<usize>, blocks: u32, tide: Tide) -> Self {
        let start = range.start.next_multiple_of(LINE);
        let len = range.end.saturating_sub(start) / LINE * LINE;
        Self {
            by_len: BTreeSet::from([(len, start)]),
            by_start: BTreeMap::from([(start, len)]),
            used: BTreeMap::new(),
            starts: vec![None; blocks as usize],
            numbers: (0..blocks).rev().collect(),
            total: len,
            written: BTreeMap::new(),
            kept: 0,
            tide,
        }
    }

    /// A block of at least `len` bytes: its number and its place, which is `len` long.
    pub(super) fn take(&mut self, len: usize) -> Option<(u32, Range<usize>)> {
        let wanted = len.max(1).checked_next_multiple_of(LINE)?;
        let &(found, start) = self.by_len.range((wanted, 0)..).next()?;
        let number = self.numbers.pop()?;
        self.forget(start, found);
        if found > wanted {
            self.remember(start + wanted, found - wanted);
        }
        self.used.insert(start, (wanted, number));
        self.tide.take(wanted);
        self.write(start..start + wanted);
        if let Some(place) = self.starts.get_mut(number as usize) {
            *place = Some(start);
        }
        Some((number, start..start + len))
    }

    /// Frees the block of this number, if there is one.
    pub(super) fn give_back(&mut self, number: u32) {
        let Some(start) = self.starts.get_mut(number as usize).and_then(Option::take) else { return };
        let Some((mut len, _)) = self.used.remove(&start) else { return };
        self.numbers.push(number);
        self.tide.give_back(len);
        self.written.insert(start, start + len);
        self.kept += len;
        let mut from = start;
        if let Some((&before, &its_len)) = self.by_start.range(..start).next_back()
            && before + its_len == start
        {
            self.forget(before, its_len);
            (from, len) = (before, its_len + len);
        }
        if let Some(&its_len) = self.by_start.get(&(from + len)) {
            self.forget(from + len, its_len);
            len += its_len;
        }
        self.remember(from, len);
    }

    /// The number of the block that `range` lies in.
    pub(super) fn find(&self, range: &Range<usize>) -> Option<(u32, Range<usize>)> {
        let (&start, &(len, number)) = self.used.range(..=range.start).next_back()?;
        (range.end <= start + len).then_some((number, start..start + len))
    }

    /// The longest block that could be taken if all were free.
    pub(super) fn longest(&self) -> usize {
        self.total
    }

    /// Bytes in use.
    pub(super) fn used(&self) -> usize {
        self.tide.live()
    }

    /// A free part whose pages are to be given back to the system, if more is kept than may be: the highest.
    pub(super) fn excess(&mut self) -> Option<Range<usize>> {
        let excess = self.kept.checked_sub(self.tide.room()).filter(|&excess| excess > 0)?;
        let (start, end) = self.written.pop_last()?;
        let from = start.max(end.saturating_sub(excess.next_multiple_of(LINE)));
        if from > start {
            self.written.insert(start, from);
        }
        self.kept -= end - from;
        Some(from..end)
    }

    /// `range` is about to be used: it is no more what is kept.
    fn write(&mut self, range: Range<usize>) {
        while let Some((&start, &end)) = self.written.range(..range.end).next_back()
            && end > range.start
        {
            self.written.remove(&start);
            self.kept -= end.min(range.end) - start.max(range.start);
            if end > range.end {
                self.written.insert(range.end, end);
            }
            if start < range.start {
                self.written.insert(start, range.start);
                return;
            }
        }
    }

    fn remember(&mut self, start: usize, len: usize) {
        self.by_len.insert((len, start));
        self.by_start.insert(start, len);
    }

    fn forget(&mut self, start: usize, len: usize) {
        self.by_len.remove(&(len, start));
        self.by_start.remove(&start);
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::random::Rng;

    use super::*;

    #[test]
    fn what_was_given_back_is_taken_first() {
        let mut space = Space::new(0..1 << 20, 8, Tide::new(0, 0));
        let (first, place) = space.take(100_000).unwrap();
        let (_, other) = space.take(100_000).unwrap();
        assert!(place.end <= other.start);
        space.give_back(first);
        assert_eq!(space.take(99_990).unwrap().1.start, place.start);
    }

    #[test]
    fn blocks_never_overlap_and_everything_comes_back() {
        let mut random = Rng::new(1, 2);
        let mut space = Space::new(4096..4096 + (1 << 20), 50, Tide::shallow(64 << 10));
        let mut held: Vec<(u32, Range<usize>)> = Vec::new();
        let (mut refused, mut given_up) = (0, 0);
        for _ in 0..20_000 {
            if random.bool(0.5) && !held.is_empty() {
                let (number, place) = held.swap_remove(random.below(held.len() as u64) as usize);
                assert_eq!(space.find(&place).unwrap().0, number);
                space.give_back(number);
                assert!(space.find(&place).is_none());
                while let Some(excess) = space.excess() {
                    given_up += excess.len();
                    assert!(
                        held.iter().all(|(_, other)| other.end <= excess.start || excess.end <= other.start)
                    );
                }
                let written: usize = space.written.iter().map(|(start, end)| end - start).sum();
                assert_eq!(written, space.kept);
            } else if let Some((number, place)) = space.take(1 + random.below(60_000) as usize) {
                assert!(held.iter().all(|(_, other)| other.end <= place.start || place.end <= other.start));
                held.push((number, place));
            } else {
                refused += 1;
            }
        }
        assert!(refused > 0 && given_up > 0);
        held.iter().for_each(|(number, _)| space.give_back(*number));
        assert_eq!((space.used(), space.by_start.len()), (0, 1));
        assert_eq!(space.take(1 << 20).unwrap().1, 4096..4096 + (1 << 20));
    }

    #[test]
    fn numbers_of_no_block_change_nothing() {
        let mut space = Space::new(0..4096, 4, Tide::new(0, 0));
        space.give_back(3);
        space.give_back(17);
        assert_eq!(space.take(4096).unwrap().1, 0..4096);
        assert!(space.take(1).is_none());
    }
}
