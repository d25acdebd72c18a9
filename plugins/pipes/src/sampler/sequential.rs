//! `sequential_sampler`: the samples of a source in their order.
//!
//! ```toml
//! [sequential_sampler]
//! page = "order"
//! examples = ['forebay head -n 3 "range 10 | sequential_sampler"']
//! cases = ["range N | sequential_sampler"]
//! ```

use forebay_core::{Context, NoOptions, PipeInfo, Result, random::Rngs};

use super::Draw;

/// Draws every sample once, in order: so that what reads them works on many at once.
#[derive(Debug)]
pub struct Sequential;

impl Draw for Sequential {
    const INFO: PipeInfo = PipeInfo {
        name: "sequential_sampler",
        summary: "The samples of a source with random access, in order",
        ..PipeInfo::DEFAULT
    };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self)
    }

    fn length(&self, count: u64, _: &Context) -> Result<u64> {
        Ok(count)
    }

    fn start(&mut self, _: u64, _: u64, _: &Context) -> Result<()> {
        Ok(())
    }

    fn at(&self, place: u64, _: &Rngs) -> (u64, u64) {
        (place, 0)
    }
}
