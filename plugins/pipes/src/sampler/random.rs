//! `random_sampler`: the samples of a source in random order, in constant memory.
//!
//! ```toml
//! [random_sampler]
//! page = "order"
//! examples = ['forebay head -n 3 "range 1000000000000 | random_sampler"']
//! cases = ["range N | random_sampler"]
//! ```

use forebay_core::{Context, Error, PipeInfo, PipeOrder, Result, options, random::Rngs};

use super::{Draw, permutation::Permutation};

options! {
    /// Options of `random_sampler`.
    pub struct RandomSamplerOptions {
        /// Draw each time from all samples, so some come often and others never.
        replacement: bool = false;
        /// How many samples to draw; null for as many as there are. More than that, without replacement, begins
        /// another order of all.
        num_samples: Option<u64> = null, in 1..=18446744073709551615;
    }
}

/// Draws samples at random: a permutation of all, or each time from all.
#[derive(Debug)]
pub struct Random {
    options: RandomSamplerOptions,
    count: u64,
    /// The order of the first round through all samples, and the key of those that follow.
    first: Permutation,
    key: u64,
}

impl Draw for Random {
    const INFO: PipeInfo = PipeInfo {
        name: "random_sampler",
        summary: "The samples of a source with random access, in random order",
        order: PipeOrder { shuffles: true, ..PipeOrder::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = RandomSamplerOptions;

    fn new(options: RandomSamplerOptions) -> Result<Self> {
        Ok(Self { options, count: 0, first: Permutation::default(), key: 0 })
    }

    fn length(&self, count: u64, _: &Context) -> Result<u64> {
        match self.options.num_samples {
            Some(wanted) if count == 0 => {
                let error = Error::invalid(format!("the source has no samples, {wanted} are to be drawn"));
                Err(error.context("option", "num_samples"))
            }
            wanted => Ok(wanted.unwrap_or(count)),
        }
    }

    fn start(&mut self, count: u64, _: u64, cx: &Context) -> Result<()> {
        self.count = count;
        if !self.options.replacement {
            self.key = cx.rng(0).u64();
            self.first = Permutation::new(count, self.key);
        }
        Ok(())
    }

    fn at(&self, place: u64, rngs: &Rngs) -> (u64, u64) {
        if self.options.replacement {
            return (rngs.of(place).below(self.count), place + 1);
        }
        if place < self.count {
            return (self.first.at(place), 0);
        }
        // Rare, and one table at most: a permutation is some numbers, or of few samples.
        let round = place / self.count;
        let order = Permutation::new(self.count, self.key.wrapping_add(round));
        (order.at(place % self.count), round)
    }
}
