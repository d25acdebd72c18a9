//! A source that gives ranks their shares, and forgets what is left over.

use forebay_core::{
    Context, DataPipe, Key, NoOptions, PipeInfo, PipeOrder, Result, Sample, Source, State, StateExt,
};

const COUNT: u64 = 100;

struct Faulty {
    next: u64,
}

impl DataPipe for Faulty {
    const INFO: PipeInfo = PipeInfo {
        name: "faulty",
        summary: "A hundred numbers",
        order: PipeOrder { shards: true, ..PipeOrder::DEFAULT },
        ..PipeInfo::DEFAULT
    };
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

    fn next(&mut self, cx: &Context) -> Result<Option<Sample>> {
        let (rank, ranks) = (u64::from(cx.rank()), u64::from(cx.world_size()));
        let each = COUNT / ranks;
        let number = rank * each + self.next;
        self.next += 1;
        let mut sample = Sample::new(number, Key { index: number, ..Key::default() });
        sample.set("value", number.cast_signed());
        Ok((self.next <= each).then_some(sample))
    }

    fn state(&self) -> Result<State> {
        State::json(1, &self.next)
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        self.next = state.parse(1)?;
        Ok(())
    }
}

forebay_core::export_plugin! { sources: [Faulty] }
