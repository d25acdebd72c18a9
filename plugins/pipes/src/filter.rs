//! `filter`: the samples of which an expression holds.
//!
//! ```toml
//! [filter]
//! page = "choose"
//! examples = ['''forebay head "range 100 | filter 'value % 10 == 3'"''']
//! cases = [
//!     "range N | filter 'value % 3 != 1'",
//!     "range N | filter 'value % 9 > 5' raise_threshold_ratio=0.6 min_samples=7 on_error=skip",
//!     "range N | filter 'random() < 0.5' | map 'x=random()'",
//! ]
//! counted = false
//! ```

mod share;
#[cfg(test)]
mod tests;

use forebay_core::{
    Condition, Context, DataPipe, Drops, Io, PipeAudit, PipeInfo, PipeOrder, Randomness, Result, State,
    StateExt, Step, Stream, options,
};

use self::share::{Counts, Saved, Share};
use crate::plumbing::{
    expression::{Draws, Running},
    sift::sift,
};

options! {
    /// Options of `filter`.
    pub struct FilterOptions {
        /// An expression that is true of the samples to keep: `label < 10 && size(text) > 3`.
        predicate: String = required;
        /// The greatest share of the samples that may be dropped, from 0 to 1; more are an error. Null for any.
        raise_threshold_ratio: Option<f64> = null, in 0..=1;
        /// As `raise_threshold_ratio`, but more are a warning in the log.
        warn_threshold_ratio: Option<f64> = null, in 0..=1;
        /// How many samples must have come before a share is judged; at the end it always is.
        min_samples: u64 = 1000, in 1..=1_000_000_000_000;
    }
}

/// Keeps the samples of which an expression over their fields holds, in their order.
///
/// With a threshold it counts the samples of each pass, and fails, or warns, once in it: as soon as too many of them were dropped. Those that it
/// fails on count for neither. State: with a threshold, how many were kept and dropped.
#[derive(Debug)]
pub struct Filter {
    predicate: Running,
    /// How many are dropped, if that matters.
    share: Option<Share>,
}

/// The version of a saved position: the counts, if there are any.
const VERSION: u32 = 1;

impl DataPipe for Filter {
    const INFO: PipeInfo = PipeInfo {
        name: "filter",
        summary: "The samples for which an expression is true",
        also: &["filterer"],
        order: PipeOrder {
            draws: Randomness::If(&[Condition::Contains("predicate", "random(")]),
            ..PipeOrder::DEFAULT
        },
        audit: PipeAudit { drops: Drops::Always, ..PipeAudit::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = FilterOptions;

    fn new(options: FilterOptions) -> Result<Self> {
        let FilterOptions { predicate, raise_threshold_ratio, warn_threshold_ratio, min_samples } = options;
        Ok(Self {
            predicate: Running::new(&predicate, "predicate")?,
            share: Share::new(raise_threshold_ratio, warn_threshold_ratio, min_samples),
        })
    }
}

impl Stream for Filter {
    fn reset(&mut self, _: &Context) -> Result<()> {
        if let Some(share) = &mut self.share {
            share.counts = Counts::default();
        }
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, cx: &Context) -> Result<Step> {
        if self.share.is_some() {
            return self.counted(io, cx);
        }
        sift(io, |uid, key, schema, values| {
            let (predicate, places) = self.predicate.of(schema);
            predicate.holds(places, key, schema, values, &Draws::new(cx, uid))
        })
    }

    fn state(&self) -> Result<State> {
        State::json(VERSION, &self.share.as_ref().map(|share| share.counts.saved()))
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        let counts: Option<Saved> = state.parse(VERSION)?;
        if let Some(share) = &mut self.share {
            share.counts = counts.map(Counts::of).unwrap_or_default();
        }
        Ok(())
    }
}

impl Filter {
    /// As without a threshold, and what is dropped is counted and judged.
    fn counted(&mut self, io: &mut Io, cx: &Context) -> Result<Step> {
        while io.room() > 0 {
            let (kept, stop) = self.run(io, cx);
            if kept == 0 && stop.is_none() {
                if !io.ended(0) {
                    return Ok(Step::NeedInput(0));
                }
                if let Some(share) = &mut self.share {
                    share.judge(cx)?;
                }
                return Ok(Step::End);
            }
            io.forward(0, kept);
            let dropped = stop.is_some();
            if let (true, Some(input)) = (dropped, io.input(0)) {
                input.advance();
            }
            let failed = stop.transpose();
            if let Some(share) = &mut self.share {
                share.count(kept, u64::from(dropped && failed.is_ok()));
                if failed.is_ok() && share.is_due() {
                    share.judge(cx)?;
                }
            }
            failed?;
        }
        Ok(Step::Ready)
    }

    /// How many of the foremost samples there is room for and the predicate holds of, and what stands behind them: a sample of which it
    /// does not hold, or the error of one.
    fn run(&mut self, io: &mut Io, cx: &Context) -> (usize, Option<Result<()>>) {
        let most = self.share.as_ref().map_or(usize::MAX, Share::left).min(io.room());
        let Some(input) = io.input(0) else { return (0, None) };
        let mut kept = 0;
        for (uid, key, schema, values) in input.samples().take(most) {
            let (predicate, places) = self.predicate.of(schema);
            match predicate.holds(places, key, schema, values, &Draws::new(cx, uid)) {
                Ok(true) => kept += 1,
                Ok(false) => return (kept, Some(Ok(()))),
                Err(error) => return (kept, Some(Err(error.context("sample", key)))),
            }
        }
        (kept, None)
    }
}
