//! `rogue_lag`: holds samples back for a while.

use std::collections::VecDeque;

use forebay_core::{
    Context, DataPipe, Error, Io, PipeInfo, Result, Sample, State, StateExt, Step, Stream, options,
};

options! {
    /// Options of `rogue_lag`.
    pub struct RogueLagOptions {
        /// How many samples it holds.
        hold: usize = 0, in 0..=100000;
        /// Fails on samples whose uid is a multiple of this, when their turn comes; 0 for none.
        refuse: u64 = 0;
        /// Whether the position can be saved.
        state: bool = false;
    }
}

/// Gives its samples as they come, each after so many more were taken.
#[derive(Debug)]
pub struct RogueLag {
    options: RogueLagOptions,
    held: VecDeque<Sample>,
}

impl DataPipe for RogueLag {
    const INFO: PipeInfo =
        PipeInfo { name: "rogue_lag", summary: "Holds samples back for a while", ..PipeInfo::DEFAULT };
    type Options = RogueLagOptions;

    fn new(options: RogueLagOptions) -> Result<Self> {
        Ok(Self { options, held: VecDeque::new() })
    }
}

impl Stream for RogueLag {
    fn reset(&mut self, _: &Context) -> Result<()> {
        self.held.clear();
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, _: &Context) -> Result<Step> {
        let RogueLagOptions { hold, refuse, .. } = self.options;
        while io.room() > 0 {
            while self.held.len() <= hold
                && let Some(sample) = io.pop(0)
            {
                self.held.push_back(sample);
            }
            if self.held.len() <= hold && !io.ended(0) {
                return Ok(Step::NeedInput(0));
            }
            let Some(mut sample) = self.held.pop_front() else { return Ok(Step::End) };
            if refuse > 0 && sample.uid().is_multiple_of(refuse) {
                return Err(Error::corrupt("rogue refuses the sample").context("sample", sample.key()));
            }
            io.push(&mut sample);
        }
        Ok(Step::Ready)
    }

    /// Saves nothing: what it holds comes again.
    fn state(&self) -> Result<State> {
        match self.options.state {
            true => Ok(State::default().again(0, self.held.len() as u64)),
            false => Err(Error::unsupported("rogue saves nothing")),
        }
    }

    fn restore(&mut self, _: &State, _: &Context) -> Result<()> {
        Ok(())
    }
}
