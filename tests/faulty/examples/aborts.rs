//! A map that ends its process.

use forebay_core::{Context, DataPipe, Map, NoOptions, PipeInfo, Result, Sample};

struct Aborts;

impl DataPipe for Aborts {
    const INFO: PipeInfo =
        PipeInfo { name: "faulty", summary: "Ends its process at the tenth sample", ..PipeInfo::DEFAULT };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self)
    }
}

impl Map for Aborts {
    fn map(&self, sample: &mut Sample, _: &Context) -> Result<()> {
        if sample.key().index == 9 {
            std::process::abort();
        }
        Ok(())
    }
}

forebay_core::export_plugin! { maps: [Aborts] }
