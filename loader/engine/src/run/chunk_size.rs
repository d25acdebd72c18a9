//! How many samples one call is given: enough to make the call cheap, few enough to keep time and memory small.

use std::time::Duration;

/// The most samples in one call.
const MOST: usize = 512;
/// About how long one call should take.
const TIME: Duration = Duration::from_micros(500);
/// About how many bytes one call should give.
const BYTES: usize = 16 << 20;

/// A node's chunk size; it adapts, and never changes what comes out.
#[derive(Debug, Clone)]
pub(crate) struct ChunkSize {
    size: usize,
    most: usize,
}

impl ChunkSize {
    /// Starts with one sample; `fixed` pins it, which tests use to show that it changes nothing.
    pub(crate) fn new(fixed: Option<usize>) -> Self {
        match fixed {
            Some(size) => Self { size, most: 0 },
            None => Self { size: 1, most: MOST },
        }
    }

    /// The same, with no more than `most` samples in a call, unless it is pinned.
    pub(crate) fn within(self, most: usize) -> Self {
        let most = self.most.min(most.max(1));
        Self { most, ..self }
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// As [`size`](ChunkSize::size), and no more than `most` unless it is pinned.
    pub(crate) fn at_most(&self, most: usize) -> usize {
        if self.most == 0 { self.size } else { self.size.min(most) }
    }

    /// Learns from a call that gave these samples: at most doubles.
    pub(crate) fn learn(&mut self, samples: usize, bytes: usize, time: Duration) {
        if samples == 0 || self.most == 0 {
            return;
        }
        let by_time = TIME.as_nanos() * samples as u128 / time.as_nanos().max(1);
        let by_bytes = BYTES * samples / bytes.max(1);
        let wanted = usize::try_from(by_time).unwrap_or(usize::MAX).min(by_bytes);
        self.size = wanted.clamp(1, self.most).min(self.size * 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size after many calls that each take `time` and give `bytes` for a sample.
    fn learned(mut size: ChunkSize, time: Duration, bytes: usize) -> usize {
        for _ in 0..64 {
            let samples = size.size();
            size.learn(samples, bytes * samples, time * u32::try_from(samples).unwrap());
        }
        size.size()
    }

    #[test]
    fn a_call_comes_to_take_half_a_millisecond_within_its_bounds() {
        let size = || ChunkSize::new(None);
        assert_eq!(learned(size(), Duration::from_micros(10), 1), 50);
        assert_eq!(learned(size(), Duration::from_millis(3), 1), 1);
        assert_eq!(learned(size(), Duration::from_nanos(1), 1), MOST);
        assert_eq!(learned(size(), Duration::from_nanos(1), 1 << 20), 16);
        assert_eq!(learned(size().within(8), Duration::from_nanos(1), 1), 8);
        assert_eq!(learned(ChunkSize::new(Some(3)).within(1), Duration::from_nanos(1), 1), 3);
    }

    #[test]
    fn one_quick_call_no_more_than_doubles_the_next() {
        let mut size = ChunkSize::new(None);
        for expected in [2, 4, 8] {
            size.learn(size.size(), 1, Duration::from_nanos(1));
            assert_eq!(size.size(), expected);
        }
    }
}
