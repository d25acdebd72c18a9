//! A map in a library that shows a function which another library may have too.
#![expect(unsafe_code, reason = "its fault")]

use forebay_core::{Context, DataPipe, Map, NoOptions, PipeInfo, Result, Sample};

struct Faulty;

impl DataPipe for Faulty {
    const INFO: PipeInfo = PipeInfo { name: "faulty", summary: "Changes nothing", ..PipeInfo::DEFAULT };
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

/// As C libraries have one, which are linked in without care.
// SAFETY: it does nothing, whoever calls it.
#[unsafe(no_mangle)]
pub extern "C" fn crc32_of_everyone() {}

forebay_core::export_plugin! { maps: [Faulty] }
