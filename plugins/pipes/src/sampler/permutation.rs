//! A permutation of `0..count` in constant memory, keyed.

use forebay_core::random::{Rng, mix};

/// Up to so many numbers are shuffled in a table, so that every order of them is alike.
const TABLE: u64 = 1 << 14;

/// Rounds of the network; with six, neighbours end up as far from each other as any two.
const ROUNDS: usize = 8;

/// A permutation of the numbers below a count; the same for the same key.
///
/// Few numbers are shuffled in a table (Durstenfeld's form of Fisher and Yates' shuffle). For more, the bits of a number go through
/// a Feistel network over the smallest power of two that holds them all, again until the result is one of
/// them: at most twice on average (Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002).
#[derive(Debug, Clone, Default)]
pub(super) struct Permutation {
    count: u64,
    table: Vec<u16>,
    keys: [u64; ROUNDS],
    /// How many bits the lower part of a number has, and the masks of both.
    low: u32,
    masks: [u64; 2],
}

impl Permutation {
    pub(super) fn new(count: u64, key: u64) -> Self {
        if count <= TABLE {
            let mut table: Vec<u16> = (0..count as u16).collect();
            let mut rng = Rng::new(key, 0);
            for at in (1..table.len()).rev() {
                table.swap(at, rng.below(at as u64 + 1) as usize);
            }
            return Self { count, table, ..Self::default() };
        }
        let bits = u64::BITS - (count - 1).leading_zeros();
        let low = bits / 2;
        let mask = |bits: u32| u64::MAX >> (u64::BITS - bits);
        let mut keys = [0; ROUNDS];
        for (round, place) in keys.iter_mut().enumerate() {
            *place = mix(&[key, round as u64]);
        }
        Self { count, table: Vec::new(), keys, low, masks: [mask(low), mask(bits - low)] }
    }

    /// Where a number goes, which is below the count.
    #[inline]
    pub(super) fn at(&self, number: u64) -> u64 {
        if let Some(&to) = self.table.get(number as usize) {
            return to.into();
        }
        let mut at = number;
        loop {
            at = self.pass(at);
            if at < self.count {
                return at;
            }
        }
    }

    /// Once through the network: each round changes one half by the other, so it can be undone.
    #[inline]
    fn pass(&self, number: u64) -> u64 {
        let (mut low, mut high) = (number & self.masks[0], number >> self.low);
        for keys in self.keys.chunks_exact(2) {
            low ^= scramble(high ^ keys[0]) & self.masks[0];
            high ^= scramble(low ^ keys[1]) & self.masks[1];
        }
        high << self.low | low
    }
}

/// The finaliser of `MurmurHash3` (Appleby), whose high bits depend on all of the word's.
#[inline]
fn scramble(word: u64) -> u64 {
    let word = (word ^ word >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let word = (word ^ word >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    word ^ word >> 33
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_once() {
        let mut rng = Rng::new(3, 0);
        let powers = (0..18).flat_map(|power| [1 << power, (1 << power) + 1, (2 << power) - 1]);
        let any: Vec<u64> = (0..50).map(|_| rng.below(200_000)).collect();
        for count in powers.chain(any).chain([0, 10, 20_000, 100_003]) {
            for key in [0, 7] {
                let permutation = Permutation::new(count, key);
                let mut seen = vec![false; count as usize];
                (0..count).for_each(|at| seen[permutation.at(at) as usize] = true);
                assert!(seen.iter().all(|&seen| seen), "{count}, {key}");
            }
        }
        let large = Permutation::new(u64::MAX, 3);
        let mut few: Vec<_> = (0..1000).map(|at| large.at(at)).collect();
        few.sort_unstable();
        few.dedup();
        assert_eq!(few.len(), 1000);
    }

    #[test]
    fn all_orders_of_a_few_are_alike() {
        let mut counts = [0_u32; 24];
        for key in 0..24_000 {
            let permutation = Permutation::new(4, key);
            let order: Vec<_> = (0..4).map(|at| permutation.at(at)).collect();
            // The order's number among all (Lehmer).
            let rank = |at: usize| order[at + 1..].iter().filter(|&&later| later < order[at]).count();
            counts[rank(0) * 6 + rank(1) * 2 + rank(2)] += 1;
        }
        let chi = chi(&counts, 1000.0);
        assert!(chi < 49.7, "chi-square with 23 degrees of freedom is {chi}, above the 99.9 % bound");
    }

    #[test]
    fn a_number_of_many_goes_everywhere() {
        // Where ten numbers go over many keys, and where the numbers of one permutation go.
        let count = 20_000;
        for number in [0, 1, 2, 9_999, 19_999] {
            let mut counts = [0_u32; 20];
            for key in 0..20_000 {
                counts[Permutation::new(count, key).at(number) as usize / 1000] += 1;
            }
            let chi = chi(&counts, 1000.0);
            assert!(chi < 43.8, "{number}: chi-square with 19 degrees of freedom is {chi}");
        }
        // How far neighbours are from each other: each step of a twentieth as often as among random pairs.
        let permutation = Permutation::new(1 << 20, 5);
        let mut counts = [0_u32; 16];
        for at in 0..(1 << 20) - 1 {
            let step = permutation.at(at + 1).wrapping_sub(permutation.at(at)) & ((1 << 20) - 1);
            counts[(step >> 16) as usize] += 1;
        }
        let chi = chi(&counts, 65_536.0);
        assert!(chi < 37.7, "chi-square with 15 degrees of freedom is {chi}");
    }

    fn chi(counts: &[u32], expected: f64) -> f64 {
        counts.iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum()
    }
}
