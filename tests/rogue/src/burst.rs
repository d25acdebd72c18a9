//! `rogue_burst`: some copies of each sample, or none, made of several samples at once.

use forebay_core::{
    Context, DataPipe, Error, FlatMap, Items, PipeInfo, PipePlacement, Result, Sample, options, random::mix,
};

use crate::{crash, gate};

options! {
    /// Options of `rogue_burst`.
    pub struct RogueBurstOptions {
        /// The most answers of one stream; how many there are is drawn.
        most: u64 = 2, in 0..=1000;
        /// Fails instead of every so manieth copy, on the whole; 0 for none.
        refuse: u64 = 0;
        /// Whether a stream goes on behind a failure.
        goes_on: bool = true;
        /// The signal to send its own process at the sample with the uid `at`; 0 for none.
        signal: u64 = 0, in 0..=64;
        /// Which sample that is.
        at: u64 = 0;
        /// The gate where every sample waits; see the module `gate`.
        gate: String = "";
    }
}

/// Gives some copies of each sample, or none, several samples at once.
#[derive(Debug)]
pub struct RogueBurst {
    options: RogueBurstOptions,
}

impl DataPipe for RogueBurst {
    const INFO: PipeInfo = PipeInfo {
        name: "rogue_burst",
        summary: "Some copies of each sample, of several at once",
        placement: PipePlacement { parallel: true, ..PipePlacement::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = RogueBurstOptions;

    fn new(options: RogueBurstOptions) -> Result<Self> {
        Ok(Self { options })
    }
}

impl FlatMap for RogueBurst {
    type Items = Burst;

    fn open(&self, sample: Sample, cx: &Context) -> Result<Burst> {
        let RogueBurstOptions { most, refuse, goes_on, .. } = self.options;
        gate::pass(&self.options.gate)?;
        if self.options.signal > 0 && sample.uid() == self.options.at {
            crash::by_signal(self.options.signal);
        }
        let count = cx.rng(sample.uid()).below(most + 1);
        if refuse > 0 && mix(&[sample.uid(), 99]).is_multiple_of(refuse) {
            return Err(Error::corrupt("rogue does not open the sample"));
        }
        Ok(Burst { sample, count, answers: 0, refuse, goes_on })
    }
}

/// The copies of one sample.
#[derive(Debug)]
pub struct Burst {
    sample: Sample,
    count: u64,
    answers: u64,
    refuse: u64,
    goes_on: bool,
}

impl Items for Burst {
    fn next(&mut self, _: &Context) -> Result<Option<Sample>> {
        if self.answers == self.count {
            return Ok(None);
        }
        let uid = mix(&[self.sample.uid(), self.answers]);
        self.answers += 1;
        if self.refuse > 0 && uid.is_multiple_of(self.refuse) {
            return Err(Error::corrupt("rogue refuses one copy").context("copy", self.answers));
        }
        let mut copy = self.sample.clone();
        copy.set_uid(uid);
        Ok(Some(copy))
    }

    fn goes_on(&self) -> bool {
        self.goes_on
    }
}
