//! A map that reads where nothing is.

use forebay_core::{Context, DataPipe, Map, NoOptions, PipeInfo, Result, Sample};

struct Crashes;

impl DataPipe for Crashes {
    const INFO: PipeInfo =
        PipeInfo { name: "faulty", summary: "Crashes at the tenth sample", ..PipeInfo::DEFAULT };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self)
    }
}

impl Map for Crashes {
    fn map(&self, sample: &mut Sample, _: &Context) -> Result<()> {
        if sample.key().index == 9 {
            segfault();
        }
        Ok(())
    }
}

/// What the processor does to a process that reads where nothing is, without unsafe code.
fn segfault() -> ! {
    let id = std::process::id().to_string();
    // Rust's own handler lets the first SIGSEGV that is no fault pass.
    loop {
        let _ = std::process::Command::new("kill").args(["-SEGV", &id]).status();
    }
}

forebay_core::export_plugin! { maps: [Crashes] }
