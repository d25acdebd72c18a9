//! `increment`: adds one; the cheapest map there can be, to measure what calling a map costs.

use forebay_core::{Context, DataPipe, Error, Map, NoOptions, PipeInfo, Result, Sample, Value};

/// Adds 1 to the integer in the field `value`.
#[derive(Debug)]
pub struct Increment;

impl DataPipe for Increment {
    const INFO: PipeInfo =
        PipeInfo { name: "increment", summary: "Adds one to the field `value`", ..PipeInfo::DEFAULT };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self)
    }
}

impl Map for Increment {
    fn map(&self, sample: &mut Sample, _: &Context) -> Result<()> {
        let at = sample.schema().position("value").ok_or_else(|| Error::invalid("no field `value`"))?;
        let value = &mut sample.values_mut()[at];
        let number = value.as_i64().ok_or_else(|| Error::invalid("`value` is no integer"))?;
        *value = Value::from(number.wrapping_add(1));
        Ok(())
    }
}
