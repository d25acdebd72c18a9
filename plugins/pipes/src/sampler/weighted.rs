//! `weighted_sampler`: samples of a source, drawn by weight.
//!
//! ```toml
//! [weighted_sampler]
//! page = "order"
//! examples = ['forebay head -n 3 "range 3 | weighted_sampler [1, 1, 5] num_samples=100"']
//!
//! [[weighted_sampler.ending]]
//! graph = "range 3 | weighted_sampler [1, 0, 2] num_samples=30 | take N"
//! instead = "range 3 | weighted_sampler [1, 0, 2] num_samples=N"
//! why = "there is a weight for each sample: what is drawn of them is endless"
//! ```

use forebay_core::{Context, Error, PipeInfo, PipeOrder, Result, options, random::Rngs};

use super::Draw;

options! {
    /// Options of `weighted_sampler`.
    pub struct WeightedSamplerOptions {
        /// The weight of each sample: a number from 0 up for each, with any sum.
        weights: Vec<f64> = required;
        /// How many samples to draw; null for as many as there are.
        num_samples: Option<u64> = null, in 1..=18446744073709551615;
        /// Draw each time from all samples; otherwise each comes at most once, heavy ones sooner.
        replacement: bool = true;
    }
}

/// Draws samples by weight, as torch's `WeightedRandomSampler`.
#[derive(Debug)]
pub struct Weighted {
    options: WeightedSamplerOptions,
    drawn: Drawn,
}

/// What the weights come to.
#[derive(Debug)]
enum Drawn {
    /// For each sample how likely it is kept when it was picked, and which comes in its place otherwise.
    Alias(Vec<(f64, u32)>),
    /// All samples of a weight above 0 in the order of this pass.
    Order(Vec<u32>),
}

impl Draw for Weighted {
    const INFO: PipeInfo = PipeInfo {
        name: "weighted_sampler",
        summary: "Samples of a source with random access, drawn by weight",
        order: PipeOrder { shuffles: true, ..PipeOrder::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = WeightedSamplerOptions;

    fn new(options: WeightedSamplerOptions) -> Result<Self> {
        let refuse = |message: String| Err(Error::invalid(message).context("option", "weights"));
        let weights = &options.weights;
        if let Some((at, wrong)) =
            weights.iter().enumerate().find(|(_, weight)| !(**weight >= 0.0 && weight.is_finite()))
        {
            return refuse(format!("weight {at} is {wrong}, expected a number from 0 up"));
        }
        let sum: f64 = weights.iter().sum();
        if !(sum > 0.0 && sum.is_finite()) {
            return refuse(format!("the weights sum to {sum}, expected a number above 0"));
        }
        if u32::try_from(weights.len()).is_err() {
            return refuse(format!("found {} weights, at most {} are known", weights.len(), u32::MAX));
        }
        let drawn = Drawn::Order(Vec::new());
        Ok(Self { options, drawn })
    }

    fn length(&self, count: u64, _: &Context) -> Result<u64> {
        let WeightedSamplerOptions { weights, num_samples, .. } = &self.options;
        if weights.len() as u64 != count {
            let error = Error::invalid(format!("found {} weights for {count} samples", weights.len()));
            return Err(error.context("option", "weights"));
        }
        Ok(num_samples.unwrap_or(count))
    }

    fn start(&mut self, _: u64, wanted: u64, cx: &Context) -> Result<()> {
        let WeightedSamplerOptions { weights, replacement, .. } = &self.options;
        if *replacement {
            if !matches!(self.drawn, Drawn::Alias(_)) {
                self.drawn = Drawn::Alias(alias(weights));
            }
            return Ok(());
        }
        let order = order(weights, cx);
        if wanted > order.len() as u64 {
            let error = format!("{wanted} samples are to be drawn, {} have a weight above 0", order.len());
            return Err(Error::invalid(error).context("option", "num_samples"));
        }
        self.drawn = Drawn::Order(order);
        Ok(())
    }

    fn at(&self, place: u64, rngs: &Rngs) -> (u64, u64) {
        match &self.drawn {
            Drawn::Alias(table) => {
                let mut rng = rngs.of(place);
                let at = rng.below(table.len() as u64);
                let (kept, other) = table.get(at as usize).copied().unwrap_or_default();
                (if rng.f64() < kept { at } else { other.into() }, place + 1)
            }
            Drawn::Order(order) => (order.get(place as usize).copied().unwrap_or_default().into(), 0),
        }
    }
}

/// Walker's table, made as Vose does ("A linear algorithm for generating random numbers with a given distribution", 1991).
fn alias(weights: &[f64]) -> Vec<(f64, u32)> {
    let mean = weights.iter().sum::<f64>() / weights.len() as f64;
    let mut table: Vec<(f64, u32)> =
        weights.iter().zip(0..).map(|(weight, at)| (weight / mean, at)).collect();
    let (mut small, mut large): (Vec<u32>, Vec<u32>) =
        (0..table.len() as u32).partition(|&at| table[at as usize].0 < 1.0);
    while let (Some(&less), Some(&more)) = (small.last(), large.last()) {
        small.pop();
        let left = table[more as usize].0 - (1.0 - table[less as usize].0);
        table[less as usize].1 = more;
        table[more as usize].0 = left;
        if left < 1.0 {
            large.pop();
            small.push(more);
        }
    }
    // What is left over is 1 but for rounding; a sample without weight is never among it unless rounding made it so.
    for at in small.into_iter().chain(large) {
        table[at as usize].0 = if weights[at as usize] > 0.0 { 1.0 } else { 0.0 };
    }
    table
}

/// The samples in the order in which they are drawn one after the other: by the times of their first events, where each has events
/// at the rate of its weight (Efraimidis and Spirakis, "Weighted random sampling with a reservoir", 2006).
fn order(weights: &[f64], cx: &Context) -> Vec<u32> {
    let time = |(at, weight): (u32, &f64)| (-(1.0 - cx.rng(at.into()).f64()).ln() / weight, at);
    let mut times: Vec<(f64, u32)> =
        (0..).zip(weights).filter(|(_, weight)| **weight > 0.0).map(time).collect();
    times.sort_unstable_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    times.into_iter().map(|(_, at)| at).collect()
}
