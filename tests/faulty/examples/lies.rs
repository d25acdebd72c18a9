//! A stream whose manifest says that it gives all samples, and that leaves out some.

use forebay_core::{
    Context, DataPipe, Io, NoOptions, PipeInfo, Result, Sample, State, StateExt, Step, Stream,
};

struct Faulty {
    taken: u64,
    sample: Sample,
}

impl DataPipe for Faulty {
    const INFO: PipeInfo = PipeInfo { name: "faulty", summary: "Changes nothing", ..PipeInfo::DEFAULT };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self { taken: 0, sample: Sample::default() })
    }
}

impl Stream for Faulty {
    fn reset(&mut self, _: &Context) -> Result<()> {
        self.taken = 0;
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, _: &Context) -> Result<Step> {
        while io.room() > 0 {
            if !io.input(0).is_some_and(|input| input.pop_into(&mut self.sample)) {
                return Ok(if io.ended(0) { Step::End } else { Step::NeedInput(0) });
            }
            self.taken += 1;
            if !self.taken.is_multiple_of(7) {
                io.push(&mut self.sample);
            }
        }
        Ok(Step::Ready)
    }

    fn state(&self) -> Result<State> {
        State::json(1, &self.taken)
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        self.taken = state.parse(1)?;
        Ok(())
    }
}

forebay_core::export_plugin! { streams: [Faulty] }
