//! A plugin that is linked into the tests and into their worker program.

use forebay_core::{Context, DataPipe, Error, Map, PipeInfo, Result, Sample, Value, options};

/// The cookie of the error of `signed`.
pub const COOKIE: u64 = 0xfeed_0000_0000_0041;

options! {
    /// Options of `signed`.
    pub struct SignedOptions {
        /// The value at which it fails; none unless set.
        fail: Option<i64> = null;
    }
}

/// Adds the process that it runs in.
#[derive(Debug)]
pub struct Signed {
    fail: Option<i64>,
}

impl DataPipe for Signed {
    const INFO: PipeInfo =
        PipeInfo { name: "signed", summary: "Adds the process that it runs in", ..PipeInfo::DEFAULT };
    type Options = SignedOptions;

    fn new(options: SignedOptions) -> Result<Self> {
        Ok(Self { fail: options.fail })
    }
}

impl Map for Signed {
    fn map(&self, sample: &mut Sample, _: &Context) -> Result<()> {
        let value = sample.get("value").and_then(Value::as_i64);
        if self.fail.is_some() && self.fail == value {
            return Err(Error::invalid("signed refuses the sample").with_cookie(COOKIE));
        }
        sample.set("process", i64::from(std::process::id()));
        Ok(())
    }
}

forebay_core::export_plugin! { maps: [Signed] }
