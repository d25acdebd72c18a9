//! `rogue_keep`: says that it keeps every sample, and does not.

use forebay_core::{Context, DataPipe, Io, PipeInfo, Result, Sample, State, Step, Stream, options};

options! {
    /// Options of `rogue_keep`.
    pub struct RogueKeepOptions {
        /// What it does to one sample: `drop` loses it, `twice` gives it twice, `invent` gives it another uid, `end` ends after it.
        fault: String = "none", one_of ["none", "drop", "twice", "invent", "end"];
        /// The uid of that sample.
        at: u64 = 0;
    }
}

/// Hands samples on, all but one as they came.
#[derive(Debug)]
pub struct RogueKeep {
    options: RogueKeepOptions,
    ended: bool,
}

impl DataPipe for RogueKeep {
    const INFO: PipeInfo =
        PipeInfo { name: "rogue_keep", summary: "Hands samples on, all but one", ..PipeInfo::DEFAULT };
    type Options = RogueKeepOptions;

    fn new(options: RogueKeepOptions) -> Result<Self> {
        Ok(Self { options, ended: false })
    }
}

impl RogueKeep {
    fn give(&mut self, mut sample: Sample, io: &mut Io) {
        let fault = if sample.uid() == self.options.at { self.options.fault.as_str() } else { "none" };
        match fault {
            "drop" => return,
            "twice" => io.push(&mut sample.clone()),
            "invent" => sample.set_uid(!sample.uid()),
            "end" => self.ended = true,
            _ => {}
        }
        io.push(&mut sample);
    }
}

impl Stream for RogueKeep {
    fn reset(&mut self, _: &Context) -> Result<()> {
        self.ended = false;
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, _: &Context) -> Result<Step> {
        while io.room() > 0 && !self.ended {
            match io.pop(0) {
                Some(sample) => self.give(sample, io),
                None if io.ended(0) => return Ok(Step::End),
                None => return Ok(Step::NeedInput(0)),
            }
        }
        Ok(if self.ended { Step::End } else { Step::Ready })
    }

    fn state(&self) -> Result<State> {
        Ok(State::default())
    }

    fn restore(&mut self, _: &State, _: &Context) -> Result<()> {
        Ok(())
    }
}
