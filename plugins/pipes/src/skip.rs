//! `skip`: all but the first samples.
//!
//! ```toml
//! [skip]
//! page = "choose"
//! examples = ['forebay head -n 1 "range 100 | skip 10"']
//! cases = ["range N | skip 5"]
//! ```

use forebay_core::{
    Context, DataPipe, Drops, Io, Length, PipeAudit, PipeInfo, Result, State, StateExt, Step, Stream, options,
};

options! {
    /// Options of `skip`.
    pub struct SkipOptions {
        /// How many samples to leave out.
        count: u64 = required;
    }
}

/// Leaves out the first `count` samples.
#[derive(Debug)]
pub struct Skip {
    count: u64,
    left_out: u64,
}

impl DataPipe for Skip {
    const INFO: PipeInfo = PipeInfo {
        name: "skip",
        summary: "All samples but the first",
        audit: PipeAudit { drops: Drops::With(&["count"]), ..PipeAudit::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = SkipOptions;

    fn new(options: SkipOptions) -> Result<Self> {
        Ok(Self { count: options.count, left_out: 0 })
    }
}

impl Stream for Skip {
    fn reset(&mut self, _: &Context) -> Result<()> {
        self.left_out = 0;
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, _: &Context) -> Result<Step> {
        if let Some(input) = io.input(0) {
            while self.left_out < self.count && !input.is_empty() {
                input.advance();
                self.left_out += 1;
            }
        }
        io.forward(0, usize::MAX);
        Ok(if io.ended(0) {
            Step::End
        } else if io.room() == 0 {
            Step::Ready
        } else {
            Step::NeedInput(0)
        })
    }

    fn length(&self, inputs: &[Option<Length>], _: &Context) -> Option<Length> {
        Some(inputs[0]?.map(|count| count.saturating_sub(self.count)))
    }

    fn state(&self) -> Result<State> {
        State::json(1, &self.left_out)
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        self.left_out = state.parse::<u64>(1)?.min(self.count);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{check, check_resume, numbers};

    #[test]
    fn leaves_out_the_first() {
        for count in [0, 1, 5, 10, 11, u64::MAX] {
            let skip = || Skip::new(SkipOptions { count }).unwrap();
            let start = usize::try_from(count).unwrap().min(10);
            assert_eq!(check(skip, &numbers(10)), numbers(10)[start..]);
            check_resume(skip, &numbers(10));
            assert!(check(skip, &[]).is_empty());
        }
    }
}
