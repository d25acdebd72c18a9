//! `rogue_alone`: wants a process of its own.

use forebay_core::{Context, DataPipe, Map, NoOptions, On, PipeInfo, PipePlacement, Result, Sample};

/// Notes in the field `process` where it ran.
#[derive(Debug)]
pub struct RogueAlone;

impl DataPipe for RogueAlone {
    const INFO: PipeInfo = PipeInfo {
        name: "rogue_alone",
        summary: "Notes the process it ran in",
        placement: PipePlacement { on: On::Process, ..PipePlacement::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self)
    }
}

impl Map for RogueAlone {
    fn map(&self, sample: &mut Sample, _: &Context) -> Result<()> {
        sample.set("process", i64::from(std::process::id()));
        Ok(())
    }
}
