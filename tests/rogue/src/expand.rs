//! `rogue_expand`: some copies of each sample, or none.

use forebay_core::{
    Context, DataPipe, Error, FlatMap, Items, PipeInfo, Result, Sample, State, StateExt, options, random::mix,
};

options! {
    /// Options of `rogue_expand`.
    pub struct RogueExpandOptions {
        /// The most copies of one sample; how many there are is drawn.
        most: u64 = 2, in 0..=1000;
        /// Fails within the copies of samples whose uid is a multiple of this; 0 for none.
        refuse: u64 = 0;
        /// Whether the place among the copies of one sample can be saved.
        state: bool = false;
    }
}

/// Gives some copies of each sample, or none.
#[derive(Debug)]
pub struct RogueExpand {
    options: RogueExpandOptions,
}

impl DataPipe for RogueExpand {
    const INFO: PipeInfo =
        PipeInfo { name: "rogue_expand", summary: "Some copies of each sample", ..PipeInfo::DEFAULT };
    type Options = RogueExpandOptions;

    fn new(options: RogueExpandOptions) -> Result<Self> {
        Ok(Self { options })
    }
}

impl FlatMap for RogueExpand {
    type Items = Copies;

    fn open(&self, sample: Sample, cx: &Context) -> Result<Copies> {
        let RogueExpandOptions { most, refuse, state } = self.options;
        let count = cx.rng(sample.uid()).below(most + 1);
        let fails = refuse > 0 && sample.uid().is_multiple_of(refuse);
        if fails && count == 0 {
            return Err(Error::corrupt("rogue does not open the sample"));
        }
        Ok(Copies { sample, count, given: 0, fails, state })
    }
}

/// The copies of one sample.
#[derive(Debug)]
pub struct Copies {
    sample: Sample,
    count: u64,
    given: u64,
    fails: bool,
    state: bool,
}

impl Items for Copies {
    fn next(&mut self, _: &Context) -> Result<Option<Sample>> {
        if self.fails && self.given == self.count / 2 {
            return Err(Error::corrupt("rogue breaks off"));
        }
        if self.given == self.count {
            return Ok(None);
        }
        let mut copy = self.sample.clone();
        copy.set_uid(mix(&[self.sample.uid(), self.given]));
        self.given += 1;
        Ok(Some(copy))
    }

    fn state(&self) -> Result<State> {
        match self.state {
            true => State::json(1, &self.given),
            false => Err(Error::unsupported("rogue saves nothing")),
        }
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        self.given = state.parse(1)?;
        Ok(())
    }
}
