//! A map that goes to another folder.

use forebay_core::{Context, DataPipe, Map, NoOptions, PipeInfo, Result, Sample};

struct Moves;

impl DataPipe for Moves {
    const INFO: PipeInfo =
        PipeInfo { name: "faulty", summary: "Changes the working directory", ..PipeInfo::DEFAULT };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self)
    }
}

impl Map for Moves {
    fn map(&self, _: &mut Sample, _: &Context) -> Result<()> {
        Ok(std::env::set_current_dir("/")?)
    }
}

forebay_core::export_plugin! { maps: [Moves] }
