//! Closures of the program as pipes, as the host calls them.

use std::sync::Arc;

use forebay_abi::{Chunk, Key, Outcome, Pipe, State};

use super::{
    flat_map,
    pipes::{self, Calls, map_each},
};
use crate::{
    Context, DataPipe, Error, FlatMap, Items, NoOptions, PipeInfo, PipePlacement, Result, Sample, StateExt,
    random::mix,
};

/// Keeps these uids apart from those that others make of a uid and a number.
const EXPANDED: u64 = 0x636c_6f73;

/// What a closure does to a sample.
pub type MapFn = dyn Fn(&mut Sample, &Context<'_>) -> Result<()> + Send + Sync;

/// What a closure makes of a sample.
pub type FlatMapFn = dyn Fn(Sample, &Context<'_>) -> Result<Vec<Sample>> + Send + Sync;

/// Whether a closure lets a sample pass.
pub type FilterFn = dyn Fn(&Sample, &Context<'_>) -> Result<bool> + Send + Sync;

/// A closure of the program.
#[derive(Clone)]
pub enum Closure {
    /// Changes a sample.
    Map(Arc<MapFn>),
    /// Makes samples of one. Each has a uid of its own, of that one's and its place, and that one's key if it has none.
    FlatMap(Arc<FlatMapFn>),
    /// Leaves samples out.
    Filter(Arc<FilterFn>),
}

impl Closure {
    /// A pipe that calls it.
    #[must_use]
    pub fn into_pipe(self) -> Pipe {
        match self {
            Self::Map(map) => pipes::pipe(MapOf(map)),
            Self::FlatMap(expand) => flat_map::parallel(Expand::Some(expand)),
            Self::Filter(passes) => flat_map::parallel(Expand::One(passes)),
        }
    }
}

struct MapOf(Arc<MapFn>);

impl Calls for MapOf {
    fn reset(&mut self, _: &Context) -> Result<()> {
        Ok(())
    }

    fn map(&self, cx: &Context, input: &mut Chunk, out: &mut Chunk) -> Outcome {
        map_each(input, out, cx, |sample| (self.0)(sample, cx))
    }
}

enum Expand {
    Some(Arc<FlatMapFn>),
    One(Arc<FilterFn>),
}

impl DataPipe for Expand {
    const INFO: PipeInfo = PipeInfo {
        placement: PipePlacement { parallel: true, ..PipePlacement::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Err(Error::bug("a closure is not made of options"))
    }
}

impl FlatMap for Expand {
    type Items = Expanded;

    fn open(&self, sample: Sample, cx: &Context) -> Result<Expanded> {
        let samples = match self {
            Self::One(passes) => {
                let passes = passes(&sample, cx)?;
                if passes { vec![sample] } else { Vec::new() }
            }
            Self::Some(expand) => {
                let (uid, key) = (sample.uid(), sample.key().clone());
                let mut samples = expand(sample, cx)?;
                for (at, sample) in samples.iter_mut().enumerate() {
                    sample.set_uid(mix(&[EXPANDED, uid, at as u64]));
                    if *sample.key() == Key::default() {
                        sample.set_key(key.clone());
                    }
                }
                samples
            }
        };
        Ok(Expanded { samples, given: 0 })
    }
}

/// What a closure made of one sample.
struct Expanded {
    samples: Vec<Sample>,
    given: usize,
}

impl Items for Expanded {
    fn next(&mut self, _: &Context) -> Result<Option<Sample>> {
        let next = self.samples.get_mut(self.given).map(std::mem::take);
        self.given += usize::from(next.is_some());
        Ok(next)
    }

    fn state(&self) -> Result<State> {
        State::json(1, &self.given)
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        self.given = state.parse(1)?;
        Ok(())
    }
}
