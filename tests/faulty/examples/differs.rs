//! A map that gives something else in each process.

use forebay_core::{Context, DataPipe, Map, NoOptions, PipeInfo, Result, Sample};

struct Faulty;

impl DataPipe for Faulty {
    const INFO: PipeInfo =
        PipeInfo { name: "faulty", summary: "A number that tells samples apart", ..PipeInfo::DEFAULT };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self)
    }
}

impl Map for Faulty {
    fn map(&self, sample: &mut Sample, _: &Context) -> Result<()> {
        // As a hash does that begins with the process.
        let salt = u64::from(std::process::id()) << 32;
        sample.set("salted", (salt ^ sample.key().index).cast_signed());
        Ok(())
    }
}

forebay_core::export_plugin! { maps: [Faulty] }
