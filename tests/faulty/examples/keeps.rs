//! A map that keeps a copy of each sample for ever.

use std::sync::Mutex;

use forebay_core::{Context, DataPipe, Map, NoOptions, PipeInfo, Result, Sample};

struct Faulty;

/// What was seen of all samples.
static SEEN: Mutex<Vec<Vec<u64>>> = Mutex::new(Vec::new());

impl DataPipe for Faulty {
    const INFO: PipeInfo = PipeInfo { name: "faulty", summary: "Changes nothing", ..PipeInfo::DEFAULT };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self)
    }
}

impl Map for Faulty {
    fn map(&self, sample: &mut Sample, _: &Context) -> Result<()> {
        let mut seen = SEEN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        seen.push(vec![sample.key().index; 1000]);
        Ok(())
    }
}

forebay_core::export_plugin! { maps: [Faulty] }
