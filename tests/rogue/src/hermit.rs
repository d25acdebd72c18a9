//! `rogue_hermit`: sees samples in order, and wants a process of its own for that.

use forebay_core::{
    Context, DataPipe, Io, NoOptions, On, PipeInfo, PipePlacement, Result, Sample, State, Step, Stream,
};

/// Notes in the field `process` where it ran.
#[derive(Debug)]
pub struct RogueHermit;

impl DataPipe for RogueHermit {
    const INFO: PipeInfo = PipeInfo {
        name: "rogue_hermit",
        summary: "Notes the process it ran in, sample by sample",
        placement: PipePlacement { on: On::Process, ..PipePlacement::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self)
    }
}

impl Stream for RogueHermit {
    fn reset(&mut self, _: &Context) -> Result<()> {
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, _: &Context) -> Result<Step> {
        let mut sample = Sample::default();
        while io.room() > 0 {
            if !io.pop_into(0, &mut sample) {
                return Ok(if io.ended(0) { Step::End } else { Step::NeedInput(0) });
            }
            sample.set("process", i64::from(std::process::id()));
            io.push(&mut sample);
        }
        Ok(Step::Ready)
    }

    fn state(&self) -> Result<State> {
        Ok(State::default())
    }

    fn restore(&mut self, _: &State, _: &Context) -> Result<()> {
        Ok(())
    }
}
