//! The number of samples, as pipes compute it before any sample is read.

use std::fmt;

use forebay_abi::length::{ENDLESS, UNKNOWN};

/// How many samples an epoch has: a number, or endless.
///
/// Endless is greater than any number. An unknown length is `None` in `Option<Length>`.
///
/// ```
/// use forebay_core::Length;
///
/// let batches = |samples: Length| samples.map(|count| count.div_ceil(4));
/// assert_eq!(batches(Length::new(10)).count(), Some(3));
/// assert_eq!(batches(Length::ENDLESS), Length::ENDLESS);
/// assert_eq!(Length::ENDLESS.min(Length::new(7)).count(), Some(7));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Length(u64);

impl Length {
    /// Endless.
    pub const ENDLESS: Self = Self(ENDLESS);

    /// This many samples. A count that is too large for a number is endless.
    #[must_use]
    pub fn new(count: u64) -> Self {
        Self(if count == UNKNOWN { ENDLESS } else { count })
    }

    /// The number of samples; `None` if endless.
    #[must_use]
    pub fn count(self) -> Option<u64> {
        (self != Self::ENDLESS).then_some(self.0)
    }

    /// Applies a function to the number; endless stays endless.
    #[must_use]
    pub fn map(self, change: impl FnOnce(u64) -> u64) -> Self {
        self.count().map_or(self, |count| Self::new(change(count)))
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self::new(self.0.saturating_add(other.0))
    }

    /// The sum of all; `None` if one is unknown.
    #[must_use]
    pub fn sum(lengths: &[Option<Self>]) -> Option<Self> {
        lengths.iter().try_fold(Self(0), |sum, &length| Some(sum.plus(length?)))
    }

    /// This length `times` times. Zero stays zero.
    #[must_use]
    pub fn times(self, times: Self) -> Self {
        Self::new(self.0.saturating_mul(times.0))
    }

    /// The number that crosses the ABI; for hosts.
    #[must_use]
    pub fn word(length: Option<Self>) -> u64 {
        length.map_or(UNKNOWN, |length| length.0)
    }

    /// The length for a number that crossed the ABI.
    #[must_use]
    pub fn of_word(word: u64) -> Option<Self> {
        (word != UNKNOWN).then_some(Self(word))
    }
}

impl fmt::Debug for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count() {
            Some(count) => write!(f, "{count}"),
            None => f.write_str("endless"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_stays_so() {
        let some = Length::new(3);
        for endless in [
            Length::ENDLESS.map(|_| 0),
            Length::ENDLESS.plus(some),
            some.times(Length::ENDLESS),
            Length::new(u64::MAX - 1),
            Length::new(1 << 63).times(Length::new(2)),
        ] {
            assert_eq!(endless.count(), None);
        }
        assert_eq!(Length::new(0).times(Length::ENDLESS).count(), Some(0));
        assert_eq!(Length::sum(&[Some(some), Some(some)]), Some(Length::new(6)));
        assert_eq!((Length::sum(&[]), Length::sum(&[Some(some), None])), (Some(Length::new(0)), None));
        assert_eq!((some.plus(some), some.times(some)), (Length::new(6), Length::new(9)));
    }

    #[test]
    fn it_crosses_and_comes_back() {
        for length in [None, Some(Length::new(0)), Some(Length::new(7)), Some(Length::ENDLESS)] {
            assert_eq!(Length::of_word(Length::word(length)), length);
        }
    }
}
