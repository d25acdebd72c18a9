//! `distributed_sampler`: each rank its share of a source's samples, all of one length.
//!
//! ```toml
//! [distributed_sampler]
//! page = "order"
//! examples = ['forebay run "range 1000 | distributed_sampler | batch 50" --rank 1/4']
//!
//! [[distributed_sampler.ending]]
//! graph = "range N | distributed_sampler order=torch"
//! instead = "range N | distributed_sampler"
//! why = "torch's order is a table of all numbers"
//! ```

use std::{collections::BTreeSet, num::NonZeroU64};

use forebay_core::{
    Condition, Context, Error, PipeInfo, PipeOrder, Randomness, Result, options, random::Rngs,
};

use super::{Draw, permutation::Permutation, torch};

options! {
    /// Options of `distributed_sampler`.
    pub struct DistributedSamplerOptions {
        /// Draw in random order, another one in each epoch.
        shuffle: bool = true;
        /// Leave out the last samples instead of repeating the first ones, so that all ranks get equally many.
        drop_last: bool = false;
        /// The numbers of the samples to repeat if ranks lack one; empty for the first ones of the order.
        repeat: Vec<u64> = [];
        /// The random order: `forebay` needs no memory; `torch` is the order of `torch.randperm`, at eight bytes a
        /// sample.
        order: String = "forebay", one_of ["forebay", "torch"];
    }
}

/// Draws every world-size-th sample of one order, as torch's `DistributedSampler`; how many is known before the epoch.
#[derive(Debug)]
pub struct Distributed {
    options: DistributedSamplerOptions,
    count: u64,
    order: Order,
}

#[derive(Debug)]
enum Order {
    Same,
    Keyed(Permutation),
    Table(Vec<u64>),
}

impl Draw for Distributed {
    const INFO: PipeInfo = PipeInfo {
        name: "distributed_sampler",
        summary: "Each rank its share of a source with random access, all of one length",
        order: PipeOrder {
            draws: Randomness::If(&[Condition::Is("shuffle", "true")]),
            shards: true,
            ..PipeOrder::DEFAULT
        },
        ..PipeInfo::DEFAULT
    };
    type Options = DistributedSamplerOptions;

    fn new(options: DistributedSamplerOptions) -> Result<Self> {
        let repeat = |message: &str| Err(Error::invalid(message).context("option", "repeat"));
        if options.drop_last && !options.repeat.is_empty() {
            return repeat("with drop_last nothing is given again");
        }
        let distinct: BTreeSet<_> = options.repeat.iter().collect();
        if distinct.len() < options.repeat.len() {
            return repeat("found a number twice");
        }
        Ok(Self { options, count: 0, order: Order::Same })
    }

    fn length(&self, count: u64, cx: &Context) -> Result<u64> {
        if let Some(beyond) = self.options.repeat.iter().find(|&&number| number >= count) {
            let message = format!("found {beyond}, expected the number of one of {count} samples");
            return Err(Error::invalid(message).context("option", "repeat"));
        }
        let ranks = u64::from(cx.world_size());
        if self.options.drop_last {
            return Ok(count / ranks * ranks);
        }
        let padded = count.checked_next_multiple_of(ranks);
        padded.ok_or_else(|| {
            Error::limit(format!("{count} samples in rounds of {ranks} are beyond what a number holds"))
        })
    }

    fn start(&mut self, count: u64, _: u64, cx: &Context) -> Result<()> {
        self.count = count;
        self.order = match (self.options.shuffle, self.options.order.as_str()) {
            (false, _) => Order::Same,
            (true, "torch") => Order::Table(torch::randperm(count, cx)?),
            (true, _) => Order::Keyed(Permutation::new(count, cx.rng(0).u64())),
        };
        Ok(())
    }

    fn at(&self, place: u64, _: &Rngs) -> (u64, u64) {
        // Beyond the last it begins again; a source without samples has no places. To divide takes as long as all the rest.
        let (round, at) =
            if place < self.count { (0, place) } else { (place / self.count, place % self.count) };
        if round > 0
            && let Some(repeats) = NonZeroU64::new(self.options.repeat.len() as u64)
        {
            let beyond = place - self.count;
            let number = self.options.repeat.get((beyond % repeats) as usize).copied();
            return (number.unwrap_or(u64::MAX), 1 + beyond / repeats);
        }
        let number = match &self.order {
            Order::Same => at,
            Order::Keyed(order) => order.at(at),
            Order::Table(table) => table.get(at as usize).copied().unwrap_or(u64::MAX),
        };
        (number, round)
    }
}
