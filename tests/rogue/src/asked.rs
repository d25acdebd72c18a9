//! `rogue_asked`: numbers by random access, and how many of them were asked for together.

use forebay_core::{
    Access, Context, DataPipe, Indexed, Key, Output, PipeInfo, PipeLayout, Result, Sample, Schema, Source,
    Str, options,
};

options! {
    /// Options of `rogue_asked`.
    pub struct RogueAskedOptions {
        /// How many samples there are.
        count: u64 = required;
    }
}

/// Numbers, by random access alone.
#[derive(Debug)]
pub struct RogueAsked {
    count: u64,
    schema: Schema,
}

impl DataPipe for RogueAsked {
    const INFO: PipeInfo = PipeInfo {
        name: "rogue_asked",
        summary: "Numbers, and how many were asked for together",
        layout: PipeLayout { access: Access::Indexed, ..PipeLayout::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = RogueAskedOptions;

    fn new(options: RogueAskedOptions) -> Result<Self> {
        Ok(Self { count: options.count, schema: Schema::new(["value", "asked"].map(Str::from_static)) })
    }
}

impl Source for RogueAsked {
    fn reset(&mut self, _: &Context) -> Result<()> {
        Ok(())
    }

    fn next(&mut self, _: &Context) -> Result<Option<Sample>> {
        Ok(None)
    }
}

impl Indexed for RogueAsked {
    fn count(&self, _: &Context) -> Result<u64> {
        Ok(self.count)
    }

    fn get(&self, keys: &[u64], out: &mut Output, _: &Context) -> Result<()> {
        for &index in keys {
            let key = Key { origin: Str::from_static("asked"), index, ..Key::default() };
            let values = [index.cast_signed(), keys.len() as i64].map(Into::into);
            out.push_row(index, key, &self.schema, values);
        }
        Ok(())
    }
}
