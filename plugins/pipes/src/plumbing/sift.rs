//! Giving some of the samples that come, as they are.

use forebay_core::{Io, Key, Result, Schema, Step, Value};

/// Gives the samples of which `keeps` is true and leaves the others out, until there is no room left or none waits. One that fails is
/// left out too; its error names it.
///
/// Those side by side that are kept move together, which costs a fraction of moving each by itself.
#[inline]
pub(crate) fn sift(
    io: &mut Io,
    mut keeps: impl FnMut(u64, &Key, &Schema, &[Value]) -> Result<bool>,
) -> Result<Step> {
    while io.room() > 0 {
        let room = io.room();
        let Some(input) = io.input(0) else { return Ok(Step::End) };
        let (mut kept, mut stop) = (0, None);
        for (uid, key, schema, values) in input.samples().take(room) {
            match keeps(uid, key, schema, values) {
                Ok(true) => kept += 1,
                Ok(false) => stop = Some(Ok(())),
                Err(error) => stop = Some(Err(error.context("sample", key))),
            }
            if stop.is_some() {
                break;
            }
        }
        if kept == 0 && stop.is_none() {
            return Ok(if io.ended(0) { Step::End } else { Step::NeedInput(0) });
        }
        io.forward(0, kept);
        if let (Some(stop), Some(input)) = (stop, io.input(0)) {
            input.advance();
            stop?;
        }
    }
    Ok(Step::Ready)
}
