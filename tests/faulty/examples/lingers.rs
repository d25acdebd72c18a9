//! A source that cannot be given up: it waits until all that it has was taken.

use forebay_core::{Context, DataPipe, Key, NoOptions, PipeInfo, Result, Sample, Source, State, StateExt};

const COUNT: u64 = 100;

struct Faulty {
    next: u64,
}

impl DataPipe for Faulty {
    const INFO: PipeInfo = PipeInfo { name: "faulty", summary: "A hundred numbers", ..PipeInfo::DEFAULT };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self { next: 0 })
    }
}

impl Source for Faulty {
    fn reset(&mut self, _: &Context) -> Result<()> {
        self.next = 0;
        Ok(())
    }

    fn next(&mut self, _: &Context) -> Result<Option<Sample>> {
        let number = self.next;
        self.next += 1;
        let mut sample = Sample::new(number, Key { index: number, ..Key::default() });
        sample.set("value", number.cast_signed());
        Ok((number < COUNT).then_some(sample))
    }

    fn state(&self) -> Result<State> {
        State::json(1, &self.next)
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        self.next = state.parse(1)?;
        Ok(())
    }
}

impl Drop for Faulty {
    fn drop(&mut self) {
        while (1..COUNT).contains(&self.next) {
            std::hint::spin_loop();
        }
    }
}

forebay_core::export_plugin! { sources: [Faulty] }
