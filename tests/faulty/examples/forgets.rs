//! A stream that adds up, and does not save its sum.

use forebay_core::{Context, DataPipe, Io, NoOptions, PipeInfo, Result, Sample, State, Step, Stream, Value};

struct Forgets {
    sum: i64,
    sample: Sample,
}

impl DataPipe for Forgets {
    const INFO: PipeInfo =
        PipeInfo { name: "faulty", summary: "Adds the sum of all values so far", ..PipeInfo::DEFAULT };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self { sum: 0, sample: Sample::default() })
    }
}

impl Stream for Forgets {
    fn reset(&mut self, _: &Context) -> Result<()> {
        self.sum = 0;
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, _: &Context) -> Result<Step> {
        while io.room() > 0 {
            if !io.input(0).is_some_and(|input| input.pop_into(&mut self.sample)) {
                return Ok(if io.ended(0) { Step::End } else { Step::NeedInput(0) });
            }
            self.sum += self.sample.get("value").and_then(Value::as_i64).unwrap_or_default();
            self.sample.set("sum", self.sum);
            io.push(&mut self.sample);
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

forebay_core::export_plugin! { streams: [Forgets] }
