//! A map that carries something over from the last sample of its thread.

use std::cell::Cell;

use forebay_core::{Context, DataPipe, Map, NoOptions, PipeInfo, Result, Sample};

struct Faulty;

impl DataPipe for Faulty {
    const INFO: PipeInfo =
        PipeInfo { name: "faulty", summary: "How far it is from the last sample", ..PipeInfo::DEFAULT };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self)
    }
}

thread_local! {
    static LAST: Cell<u64> = const { Cell::new(0) };
}

impl Map for Faulty {
    fn map(&self, sample: &mut Sample, _: &Context) -> Result<()> {
        let number = sample.key().index;
        sample.set("distance", number.abs_diff(LAST.replace(number)).cast_signed());
        Ok(())
    }
}

forebay_core::export_plugin! { maps: [Faulty] }
