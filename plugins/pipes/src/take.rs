//! `take`: the first samples, and no more.
//!
//! ```toml
//! [take]
//! page = "choose"
//! examples = ['forebay head "range 100 | take 3"']
//!
//! [[take.short]]
//! graph = "range N | take 12"
//! samples = 12
//! ```

use forebay_core::{
    Context, DataPipe, Drops, Io, Length, PipeAudit, PipeInfo, PipeOrder, Result, State, StateExt, Step,
    Stream, options,
};

options! {
    /// Options of `take`.
    pub struct TakeOptions {
        /// How many samples to give.
        count: u64 = required;
    }
}

/// Gives the first `count` samples, and ends without asking for another.
#[derive(Debug)]
pub struct Take {
    count: u64,
    given: u64,
}

impl DataPipe for Take {
    const INFO: PipeInfo = PipeInfo {
        name: "take",
        summary: "The first samples, and no more",
        also: &["header", "limit", "head"],
        audit: PipeAudit { drops: Drops::With(&["count"]), ..PipeAudit::DEFAULT },
        order: PipeOrder { takes: Some("count"), ..PipeOrder::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = TakeOptions;

    fn new(options: TakeOptions) -> Result<Self> {
        Ok(Self { count: options.count, given: 0 })
    }
}

impl Stream for Take {
    fn reset(&mut self, _: &Context) -> Result<()> {
        self.given = 0;
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, _: &Context) -> Result<Step> {
        let left = self.count - self.given;
        self.given += io.forward(0, usize::try_from(left).unwrap_or(usize::MAX)) as u64;
        Ok(if self.given == self.count || io.ended(0) {
            Step::End
        } else if io.room() == 0 {
            Step::Ready
        } else {
            Step::NeedInput(0)
        })
    }

    fn length(&self, inputs: &[Option<Length>], _: &Context) -> Option<Length> {
        Some(inputs[0]?.min(Length::new(self.count)))
    }

    fn state(&self) -> Result<State> {
        State::json(1, &self.given)
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        self.given = state.parse::<u64>(1)?.min(self.count);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::Options;

    use super::*;
    use crate::testing::{Drive, check, check_resume, ints, numbers};

    fn take(count: u64) -> Take {
        Take::new(TakeOptions { count }).unwrap()
    }

    #[test]
    fn gives_the_first() {
        for count in [0, 1, 5, 10, 11, u64::MAX] {
            let end = usize::try_from(count).unwrap().min(10);
            let out = check(|| take(count), &numbers(10));
            assert_eq!(out, numbers(10)[..end]);
            check_resume(|| take(count), &numbers(10));
        }
        assert!(check(|| take(3), &[]).is_empty());
        assert!(TakeOptions::parse(r#"{"count": -1}"#).is_err());
    }

    #[test]
    fn limits_batches_b036() {
        let batches = |options| {
            let batch = || crate::Batch::new(crate::BatchOptions::parse(options).unwrap()).unwrap();
            check(batch, &numbers(10))
        };
        let two = check(|| take(2), &batches(r#"{"size": 3}"#));
        assert_eq!(ints(&two, "value"), [0, 1, 2, 3, 4, 5]);
        let five = check(|| take(5), &batches(r#"{"size": 3}"#));
        assert_eq!(five.len(), 4);
        assert_eq!(ints(&five, "value"), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn ends_without_asking_for_more() {
        let input = numbers(2);
        let mut drive = Drive::new(take(2), &input, 1);
        drive.run(64, 100).unwrap();
        assert_eq!(drive.out().len(), 2);
        assert!(!drive.told_the_end(), "the input's end was never looked at");
        let mut none = Drive::new(take(0), &input, 1);
        none.run(64, 100).unwrap();
        assert_eq!(none.fed(), 0);
    }
}
