//! `subset_sampler`: some of a source's samples, by number.
//!
//! ```toml
//! [subset_sampler]
//! page = "order"
//! examples = ['forebay head "range 100 | subset_sampler [3, 1, 4]"']
//!
//! [[subset_sampler.short]]
//! graph = "range N | subset_sampler start=-9 step=2 shuffle=true"
//! samples = 5
//! ```

use std::collections::HashSet;

use forebay_core::{
    Condition, Context, Error, PipeInfo, PipeOrder, Randomness, Result, options, random::Rngs,
};

use super::{Draw, permutation::Permutation};

options! {
    /// Options of `subset_sampler`.
    pub struct SubsetSamplerOptions {
        /// The numbers of the samples, in their order; null to take a slice.
        indices: Option<Vec<u64>> = null;
        /// The start of the slice, as in Python; a negative number counts from the end; null for the first.
        start: Option<i64> = null;
        /// The sample to stop before, as in Python; null for the end.
        stop: Option<i64> = null;
        /// The step of the slice; negative goes backwards; not zero.
        step: i64 = 1;
        /// Draw the samples in random order.
        shuffle: bool = false;
    }
}

/// Draws some of the samples: a list of them, or a slice.
#[derive(Debug)]
pub struct Subset {
    options: SubsetSamplerOptions,
    /// Whether the list names some sample twice.
    repeats: bool,
    /// Of a slice.
    first: i128,
    order: Option<Permutation>,
}

impl Draw for Subset {
    const INFO: PipeInfo = PipeInfo {
        name: "subset_sampler",
        summary: "Some samples of a source with random access, by number",
        order: PipeOrder { draws: Randomness::If(&[Condition::Is("shuffle", "true")]), ..PipeOrder::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = SubsetSamplerOptions;

    fn new(options: SubsetSamplerOptions) -> Result<Self> {
        if options.step == 0 {
            return Err(Error::invalid("found 0, expected another number").context("option", "step"));
        }
        let sliced = options.start.is_some() || options.stop.is_some() || options.step != 1;
        if options.indices.is_some() && sliced {
            let error = Error::invalid("found a list and a slice, expected one of them");
            return Err(error.context("option", "indices"));
        }
        let mut seen = HashSet::new();
        let repeats = options.indices.iter().flatten().any(|index| !seen.insert(*index));
        Ok(Self { options, repeats, first: 0, order: None })
    }

    fn length(&self, count: u64, _: &Context) -> Result<u64> {
        match &self.options.indices {
            Some(indices) => {
                if let Some(beyond) = indices.iter().find(|&&index| index >= count) {
                    let error =
                        Error::invalid(format!("found sample number {beyond}, the source has {count}"));
                    return Err(error.context("option", "indices"));
                }
                Ok(indices.len() as u64)
            }
            None => Ok(self.slice(count).1),
        }
    }

    fn start(&mut self, count: u64, drawn: u64, cx: &Context) -> Result<()> {
        self.first = self.slice(count).0;
        self.order = self.options.shuffle.then(|| Permutation::new(drawn, cx.rng(0).u64()));
        Ok(())
    }

    fn at(&self, place: u64, _: &Rngs) -> (u64, u64) {
        let at = self.order.as_ref().map_or(place, |order| order.at(place));
        match &self.options.indices {
            // A place in a list is below its length.
            Some(indices) => {
                let salt = if self.repeats { at + 1 } else { 0 };
                (indices.get(at as usize).copied().unwrap_or(u64::MAX), salt)
            }
            None => ((self.first + i128::from(self.options.step) * i128::from(at)) as u64, 0),
        }
    }
}

impl Subset {
    /// Where the slice begins among `count` samples, and its length: as Python's `slice.indices`.
    fn slice(&self, count: u64) -> (i128, u64) {
        let (count, step) = (i128::from(count), i128::from(self.options.step));
        let (least, most) = if step > 0 { (0, count) } else { (-1, count - 1) };
        let from_end = |at: i64| if at < 0 { i128::from(at) + count } else { at.into() };
        let clamp = |at: Option<i64>, default| at.map_or(default, |at| from_end(at).clamp(least, most));
        let start = clamp(self.options.start, if step > 0 { least } else { most });
        let stop = clamp(self.options.stop, if step > 0 { most } else { least });
        let way = if step > 0 { stop - start } else { start - stop };
        (start, u64::try_from(way.max(0)).unwrap_or(0).div_ceil(step.unsigned_abs() as u64))
    }
}
