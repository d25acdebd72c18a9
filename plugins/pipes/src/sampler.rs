//! Samplers: which samples of a source with random access come, and in which order.
//!
//! Each is a function from a place to a number, [`Draw::at`], keyed by seed, epoch and pass: it holds no samples, and its position
//! is a place.

mod distributed;
mod permutation;
mod random;
mod sequential;
mod subset;
#[cfg(test)]
mod tests;
mod torch;
mod weighted;

use forebay_core::{
    Access, Context, DataPipe, Error, Io, Length, Options, PipeAudit, PipeInfo, PipeLayout, Result, Schema,
    State, StateExt, Step, Stream, Uids, random::Rngs, sampling,
};

pub use self::{
    distributed::{Distributed, DistributedSamplerOptions},
    random::{Random, RandomSamplerOptions},
    sequential::Sequential,
    subset::{Subset, SubsetSamplerOptions},
    weighted::{Weighted, WeightedSamplerOptions},
};

/// The samples in their order.
pub type SequentialSampler = Sampler<Sequential>;
/// The samples in random order, or drawn at random again and again.
pub type RandomSampler = Sampler<Random>;
/// Some of the samples, by number.
pub type SubsetSampler = Sampler<Subset>;
/// Samples drawn by weight.
pub type WeightedSampler = Sampler<Weighted>;
/// Each rank its share, all of one length.
pub type DistributedSampler = Sampler<Distributed>;

/// What a sampler draws.
pub trait Draw: Send + Sized + 'static {
    /// Name and summary.
    const INFO: PipeInfo;
    /// Its options.
    type Options: Options;

    /// # Errors
    /// `Invalid`, when the options do not go together.
    fn new(options: Self::Options) -> Result<Self>;

    /// How many of `count` samples are drawn, over all ranks.
    ///
    /// # Errors
    /// `Invalid` when the options do not fit so many samples.
    fn length(&self, count: u64, cx: &Context) -> Result<u64>;

    /// Starts a pass over `count` samples, of which so many are drawn.
    ///
    /// # Errors
    /// As [`length`](Draw::length), where that takes work to know.
    fn start(&mut self, count: u64, drawn: u64, cx: &Context) -> Result<()>;

    /// What is drawn at a place: the number of a sample, and 0 the first time that it is, else what tells this time from others.
    fn at(&self, place: u64, rngs: &Rngs) -> (u64, u64);
}

/// A stream of what is drawn from the source before it.
///
/// If its pipe [shards](forebay_core::PipeOrder::shards), places are dealt out to ranks in rounds, and the saved
/// position serves any rank of any world size.
#[derive(Debug)]
pub struct Sampler<D> {
    draw: D,
    schema: Schema,
    /// How many samples there are, once that is known, and how many are drawn.
    count: Option<u64>,
    end: u64,
    /// The next place; of a round, the first.
    next: u64,
}

/// How many are drawn before they are given: what one waits for is done while others are worked out.
const TOGETHER: usize = 64;

/// The version of a saved position's form.
const VERSION: u32 = 1;

impl<D: Draw> DataPipe for Sampler<D> {
    const INFO: PipeInfo = PipeInfo {
        layout: PipeLayout { access: Access::Sampler, ..D::INFO.layout },
        audit: PipeAudit { uids: Uids::Made, ..D::INFO.audit },
        ..D::INFO
    };
    type Options = D::Options;

    fn new(options: D::Options) -> Result<Self> {
        Ok(Self { draw: D::new(options)?, schema: sampling::drawn(), count: None, end: 0, next: 0 })
    }
}

impl<D: Draw> Stream for Sampler<D> {
    fn reset(&mut self, _: &Context) -> Result<()> {
        (self.count, self.next) = (None, 0);
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, cx: &Context) -> Result<Step> {
        if self.count.is_none() {
            match sampling::take_count(io)? {
                Some(count) => self.start(count, cx)?,
                None if io.ended(0) => {
                    return Err(Error::bug("a sampler was not told how many samples there are"));
                }
                None => return Ok(Step::NeedInput(0)),
            }
        }
        let rngs = cx.rngs();
        let (rank, ranks) = ranks::<D>(cx);
        let mut drawn = Vec::with_capacity(TOGETHER);
        while io.room() > 0 {
            let from = self.next.saturating_add(rank.into());
            let places = (from..self.end).step_by(ranks as usize).take(io.room().min(TOGETHER));
            drawn.clear();
            drawn.extend(places.map(|place| (place, self.draw.at(place, &rngs))));
            if drawn.is_empty() {
                return Ok(Step::End);
            }
            for &(place, number) in &drawn {
                sampling::push(io, &self.schema, place, number);
            }
            self.next = self.next.saturating_add(drawn.len() as u64 * u64::from(ranks));
        }
        Ok(Step::Ready)
    }

    /// What it draws from has an end, and its epochs those of all that it draws.
    fn length(&self, inputs: &[Option<Length>], cx: &Context) -> Option<Length> {
        let drawn = self.draw.length(inputs[0]?.count()?, cx).ok()?;
        let (rank, ranks) = ranks::<D>(cx);
        Some(Length::new(drawn.saturating_sub(rank.into()).div_ceil(ranks.into())))
    }

    fn state(&self) -> Result<State> {
        State::json(VERSION, &(self.count, self.next))
    }

    fn restore(&mut self, state: &State, cx: &Context) -> Result<()> {
        let (count, next): (Option<u64>, u64) = state.parse(VERSION)?;
        if let Some(count) = count {
            self.start(count, cx)?;
        }
        self.next = next;
        Ok(())
    }
}

/// Which of the shares of what is drawn is given, of how many.
fn ranks<D: Draw>(cx: &Context) -> (u32, u32) {
    if D::INFO.order.shards { (cx.rank(), cx.world_size()) } else { (0, 1) }
}

impl<D: Draw> Sampler<D> {
    fn start(&mut self, count: u64, cx: &Context) -> Result<()> {
        self.end = self.draw.length(count, cx)?;
        self.draw.start(count, self.end, cx)?;
        self.count = Some(count);
        Ok(())
    }
}
