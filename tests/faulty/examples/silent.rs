//! A map whose manifest says nothing of it.

use forebay_core::{Context, DataPipe, Map, NoOptions, PipeInfo, Result, Sample};

struct Faulty;

impl DataPipe for Faulty {
    const INFO: PipeInfo = PipeInfo { name: "faulty", summary: "", ..PipeInfo::DEFAULT };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self)
    }
}

impl Map for Faulty {
    fn map(&self, _: &mut Sample, _: &Context) -> Result<()> {
        Ok(())
    }
}

forebay_core::export_plugin! { maps: [Faulty] }
