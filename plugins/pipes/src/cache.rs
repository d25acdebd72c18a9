//! `cache`: what was read once is given from memory.

use forebay_core::{
    Context, DataPipe, Io, Level, PipeInfo, Result, Sample, State, StateExt, Step, Stream, Uids, options,
};

options! {
    /// Options of `cache`.
    pub struct CacheOptions {
        /// The most bytes that are kept; beyond, everything is read anew in every epoch.
        limit: u64 = 1073741824;
    }
}

/// Keeps the samples of its first pass, and gives them in all later ones without a look at its input.
///
/// What it keeps is the same whenever it is read: everything before it is told of epoch 0 and pass 0 at all times. So a run that begins, or goes on, in a
/// later epoch gives what one gives that began in the first.
#[derive(Debug)]
pub struct Cache {
    limit: u64,
    /// The first samples of the input, and how many bytes they keep.
    kept: Vec<Sample>,
    bytes: u64,
    /// Whether these are all.
    whole: bool,
    /// Whether they are more than the limit, so that none is kept.
    over: bool,
    /// How many samples were taken in this pass, and given.
    taken: u64,
    given: u64,
    sample: Sample,
}

/// The version of a saved position: how many samples were given.
const VERSION: u32 = 1;

impl DataPipe for Cache {
    const INFO: PipeInfo = PipeInfo {
        name: "cache",
        summary: "What was read once, from memory",
        keeps: true,
        // In a pass that reads nothing they come of nothing.
        uids: Uids::Made,
        ..PipeInfo::DEFAULT
    };
    type Options = CacheOptions;

    fn new(options: CacheOptions) -> Result<Self> {
        let (kept, sample) = (Vec::new(), Sample::default());
        let limit = options.limit;
        Ok(Self { limit, kept, bytes: 0, whole: false, over: false, taken: 0, given: 0, sample })
    }
}

impl Stream for Cache {
    fn reset(&mut self, _: &Context) -> Result<()> {
        (self.taken, self.given) = (0, 0);
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, cx: &Context) -> Result<Step> {
        while io.room() > 0 {
            if let Some(kept) = usize::try_from(self.given).ok().and_then(|at| self.kept.get(at)) {
                self.sample.clone_from(kept);
                io.push(&mut self.sample);
                self.given += 1;
            } else if self.whole {
                return Ok(Step::End);
            } else if io.pop_into(0, &mut self.sample) {
                let at = self.taken;
                self.taken += 1;
                if at == self.kept.len() as u64 && !self.over {
                    self.keep(cx);
                }
                // Before that they come again, to be kept.
                if at == self.given {
                    io.push(&mut self.sample);
                    self.given += 1;
                }
            } else if io.ended(0) {
                self.whole = !self.over;
                return Ok(Step::End);
            } else {
                return Ok(Step::NeedInput(0));
            }
        }
        Ok(Step::Ready)
    }

    fn state(&self) -> Result<State> {
        Ok(State::json(VERSION, &self.given)?.again(0, self.taken))
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        self.given = state.parse(VERSION)?;
        Ok(())
    }
}

impl Cache {
    /// Keeps the sample just taken, or none any more.
    fn keep(&mut self, cx: &Context) {
        let size = self.sample.size() + size_of::<Sample>() + size_of_val(self.sample.values());
        self.bytes += size as u64;
        if self.bytes <= self.limit {
            return self.kept.push(self.sample.clone());
        }
        self.over = true;
        self.kept = Vec::new();
        let line = format!(
            "cache: sample {} is beyond {} bytes, so everything is read anew in every epoch; the option `limit` says how many are kept",
            self.taken, self.limit
        );
        cx.log(Level::Warning, &line);
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::Options;

    use super::*;
    use crate::testing::{Drive, check, check_resume, ints, numbers};

    fn cache(limit: u64) -> Cache {
        Cache::new(CacheOptions { limit }).unwrap()
    }

    #[test]
    fn gives_what_it_takes() {
        for limit in [0, 200, u64::MAX] {
            for count in [0, 1, 14] {
                assert_eq!(check(|| cache(limit), &numbers(count)), numbers(count));
                check_resume(|| cache(limit), &numbers(count));
            }
        }
        assert!(CacheOptions::parse(r#"{"limit": -1}"#).is_err());
    }

    #[test]
    fn a_second_pass_asks_for_nothing() {
        let input = numbers(9);
        let mut first = Drive::new(cache(1 << 20), &input, 2);
        first.run(3, usize::MAX).unwrap();
        let mut second = Drive::new(first.into_pipe(), &[], 2);
        second.run(3, usize::MAX).unwrap();
        assert_eq!(ints(second.out(), "value"), (0..9).collect::<Vec<_>>());
        assert!(!second.told_the_end(), "the input was never looked at");
    }

    #[test]
    fn a_pass_broken_off_is_gone_on_with() {
        let input = numbers(9);
        let mut first = Drive::new(cache(1 << 20), &input, 2);
        first.run(1, 4).unwrap();
        let mut second = Drive::new(first.into_pipe(), &input, 2);
        second.run(1, usize::MAX).unwrap();
        assert_eq!(second.out(), input);
    }

    #[test]
    fn what_is_too_much_is_not_kept() {
        let input = numbers(9);
        let mut first = Drive::new(cache(300), &input, 2);
        first.run(3, usize::MAX).unwrap();
        assert_eq!(first.out(), input);
        let pipe = first.into_pipe();
        assert!(pipe.kept.is_empty() && pipe.over);
        let mut second = Drive::new(pipe, &input, 2);
        second.run(3, usize::MAX).unwrap();
        assert_eq!((second.out(), second.fed()), (&input[..], 9));
    }
}
