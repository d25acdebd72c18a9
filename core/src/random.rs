//! Random numbers without generator state: Philox 4x32-10, keyed by the node and the sample.
//!
//! Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.

const ROUNDS: usize = 10;
const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];

/// A stream of random numbers that depends only on its key and stream number.
///
/// A pipe gets one from [`Context::rng`](crate::Context::rng), keyed by (seed, epoch, pass, node), with the
/// sample's uid as the stream. So the numbers do not depend on workers, on order or on a resume.
#[derive(Debug, Clone)]
pub struct Rng {
    key: [u32; 2],
    stream: u64,
    block: u64,
    words: [u32; 4],
    used: usize,
}

impl Rng {
    /// The stream with this number under this key.
    #[must_use]
    #[inline]
    pub fn new(key: u64, stream: u64) -> Self {
        Self { key: split(key), stream, block: 0, words: [0; 4], used: 4 }
    }

    /// 32 uniform bits.
    #[must_use]
    #[inline]
    pub fn u32(&mut self) -> u32 {
        if self.used == 4 {
            let [low, high] = split(self.stream);
            let [block_low, block_high] = split(self.block);
            self.words = philox([low, high, block_low, block_high], self.key);
            self.block += 1;
            self.used = 0;
        }
        self.used += 1;
        self.words[self.used - 1]
    }

    /// 64 uniform bits.
    #[must_use]
    #[inline]
    pub fn u64(&mut self) -> u64 {
        u64::from(self.u32()) | u64::from(self.u32()) << 32
    }

    /// A uniform number in `0..bound`, without bias; 0 if the bound is 0.
    ///
    /// Source: Lemire, "Fast random integer generation in an interval", 2019.
    #[must_use]
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the low and the high half are meant")]
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        let mut product = u128::from(self.u64()) * u128::from(bound);
        if (product as u64) < bound {
            let threshold = bound.wrapping_neg() % bound;
            while (product as u64) < threshold {
                product = u128::from(self.u64()) * u128::from(bound);
            }
        }
        (product >> 64) as u64
    }

    /// A uniform number in `[0, 1)`, a multiple of 2^-53.
    #[must_use]
    #[inline]
    pub fn f64(&mut self) -> f64 {
        (self.u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// A uniform number in `[low, high)`.
    #[must_use]
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.f64()
    }

    /// True with this probability.
    #[must_use]
    #[inline]
    pub fn bool(&mut self, probability: f64) -> bool {
        self.f64() < probability
    }
}

/// The random numbers of all samples at one node, as [`Context::rng`](crate::Context::rng) gives them. Use it to
/// draw for many samples in one call.
#[derive(Debug, Clone, Copy)]
pub struct Rngs(u64);

impl Rngs {
    pub(crate) fn new(key: u64) -> Self {
        Self(key)
    }

    /// The random numbers of the sample with this uid.
    #[must_use]
    #[inline]
    pub fn of(&self, uid: u64) -> Rng {
        Rng::new(self.0, uid)
    }
}

/// Mixes several numbers into one. A change of any input bit changes half of the bits of the result.
///
/// Each step is the finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
#[must_use]
#[inline]
pub fn mix(parts: &[u64]) -> u64 {
    parts.iter().fold(START, |state, part| step(state, *part))
}

const START: u64 = 0x9E37_79B9_7F4A_7C15;

#[inline]
fn step(state: u64, part: u64) -> u64 {
    let mut word = (state ^ part).wrapping_add(START);
    word = (word ^ word >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ word >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ word >> 31
}

/// The result of [`Context::uid_of`](crate::Context::uid_of) at the node whose name has this hash.
#[must_use]
#[inline]
pub fn uid_of<const N: usize>(node: u64, uid: u64, numbers: [u64; N]) -> u64 {
    if numbers == [0; N] {
        return uid;
    }
    // The uid last: no two of one node and these numbers become the same, and what is before it is worked out once a call.
    let state = numbers.iter().fold(step(START, node), |state, number| step(state, *number));
    step(state, uid)
}

#[expect(clippy::cast_possible_truncation, reason = "the halves are meant")]
#[inline]
const fn split(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

#[inline]
fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..ROUNDS {
        let [low0, high0] = split(u64::from(MULTIPLIERS[0]) * u64::from(counter[0]));
        let [low1, high1] = split(u64::from(MULTIPLIERS[1]) * u64::from(counter[2]));
        // In this order only one step of each round waits for its products.
        counter = [high1 ^ (counter[1] ^ key[0]), low1, high0 ^ (counter[3] ^ key[1]), low0];
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    counter
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn philox_gives_the_published_vectors() {
        // Random123 1.14, tests/kat_vectors, philox4x32 10.
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(
            philox([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        assert_eq!(
            philox([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn below_is_uniform() {
        let mut counts = [0_u32; 7];
        let mut rng = Rng::new(1, 2);
        for _ in 0..70_000 {
            counts[rng.below(7) as usize] += 1;
        }
        let chi: f64 = counts.iter().map(|&count| (f64::from(count) - 10_000.0).powi(2) / 10_000.0).sum();
        assert!(chi < 22.46, "chi-square with 6 degrees of freedom is {chi}, above the 99.9 % bound");
    }

    #[test]
    fn streams_and_keys_differ() {
        let first = |key, stream| Rng::new(key, stream).u64();
        assert_eq!(first(1, 2), first(1, 2));
        assert_ne!(first(1, 2), first(1, 3));
        assert_ne!(first(1, 2), first(2, 2));
    }
}
