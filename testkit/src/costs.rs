//! The samples that damage to a file may destroy.

use std::ops::Range;

/// Which samples of a file each damaged byte range may destroy, as its format promises. All others must still be
/// delivered.
///
/// Samples are numbered in the order in which the whole file gives them. Bytes without a promise may destroy all
/// samples. So may the end of the file, which is at `usize::MAX`: a promise that reaches there also holds for a
/// file that is cut off.
///
/// ```
/// use forebay_testkit::Costs;
///
/// // A head of four bytes, and three records of eight, each of which can be found without the others.
/// let costs = Costs::new().part(4..12, 0..1).part(12..20, 1..2).part(20..usize::MAX, 2..3);
/// let whole = ["heron", "stork", "crane"];
/// assert_eq!(costs.missing(&[13..14], &whole, &["heron", "crane"]), None);
/// assert_eq!(costs.missing(&[13..14], &whole, &["heron"]), Some(2));
/// assert_eq!(costs.missing(&[16..usize::MAX], &whole, &["heron"]), None);
/// assert_eq!(costs.missing(&[2..3], &whole, &[]), None);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Costs {
    parts: Vec<(Range<usize>, Range<usize>)>,
}

impl Costs {
    /// No promise yet: any damage may destroy all samples.
    #[must_use]
    pub const fn new() -> Self {
        Self { parts: Vec::new() }
    }

    /// Promises that damage to these bytes destroys at most these samples. The bytes must lie behind those of
    /// earlier parts.
    #[must_use]
    pub fn part(mut self, bytes: Range<usize>, samples: Range<usize>) -> Self {
        self.parts.push((bytes, samples));
        self
    }

    /// Whether the sample with this number must be delivered if these bytes are damaged.
    #[must_use]
    pub fn spared(&self, sample: usize, damaged: &Range<usize>) -> bool {
        let mut promised = damaged.start;
        for (bytes, samples) in &self.parts {
            if bytes.end <= promised || bytes.start >= damaged.end {
                continue;
            }
            if bytes.start > promised || samples.contains(&sample) {
                return false;
            }
            promised = bytes.end;
        }
        promised >= damaged.end
    }

    /// The first sample of the whole file that must be delivered if these bytes are damaged, but is not in its
    /// place among the delivered ones. Other samples can come between.
    #[must_use]
    pub fn missing<T: PartialEq>(&self, damaged: &[Range<usize>], whole: &[T], found: &[T]) -> Option<usize> {
        let mut found = found.iter();
        let spared = |sample: &usize| damaged.iter().all(|damaged| self.spared(*sample, damaged));
        (0..whole.len()).filter(spared).find(|&sample| !found.any(|found| *found == whole[sample]))
    }

    /// Places that test the promises, in a file of `len` bytes: the start, the middle and the last byte of each
    /// part.
    #[must_use]
    pub fn places(&self, len: usize) -> Vec<usize> {
        let places = self.parts.iter().flat_map(|(bytes, _)| {
            let last = bytes.end.min(len).saturating_sub(1);
            [bytes.start, bytes.start.midpoint(last), last]
        });
        let mut places: Vec<_> = places.filter(|place| *place < len).collect();
        places.sort_unstable();
        places.dedup();
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: usize = usize::MAX;

    #[test]
    fn only_what_a_promise_covers_whole_is_spared() {
        let costs = Costs::new().part(2..4, 0..1).part(4..6, 1..2).part(8..9, 3..3).part(9..END, 2..4);
        let spared = |damaged: Range<usize>| -> Vec<usize> {
            (0..4).filter(|sample| costs.spared(*sample, &damaged)).collect()
        };
        assert_eq!(spared(2..3), [1, 2, 3]);
        assert_eq!(spared(3..5), [2, 3]);
        assert_eq!(spared(8..9), [0, 1, 2, 3]);
        assert_eq!(spared(8..END), [0, 1]);
        assert_eq!(spared(0..0), [0, 1, 2, 3]);
        for none in [1..3, 1..2, 5..7, 6..7, 2..9] {
            assert!(spared(none.clone()).is_empty(), "{none:?}");
        }
    }

    #[test]
    #[expect(clippy::single_range_in_vec_init, reason = "one place of damage")]
    fn what_is_spared_comes_in_order_and_others_between() {
        let costs = Costs::new().part(0..1, 0..1).part(1..2, 1..2).part(2..3, 2..3);
        let whole = ["a", "b", "c"];
        assert_eq!(costs.missing(&[], &whole, &["a", "x", "b", "c"]), None);
        assert_eq!(costs.missing(&[], &whole, &["a", "c", "b"]), Some(2));
        assert_eq!(costs.missing(&[0..1], &whole, &["b", "c"]), None);
        assert_eq!(costs.missing(&[0..1, 2..3], &whole, &["b"]), None);
        assert_eq!(costs.missing(&[0..1, 2..3], &whole, &["a"]), Some(1));
    }

    #[test]
    fn places_are_within_the_file() {
        let costs = Costs::new().part(0..1, 0..1).part(1..8, 1..2).part(8..END, 2..3);
        assert_eq!(costs.places(12), [0, 1, 4, 7, 8, 9, 11]);
        assert!(costs.places(0).is_empty());
    }
}
