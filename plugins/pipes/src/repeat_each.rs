//! `repeat_each`: every sample several times.
//!
//! ```toml
//! [repeat_each]
//! page = "choose"
//! examples = ['forebay head -n 3 "range 10 | repeat_each 2"']
//! cases = ["range N | repeat_each 3"]
//! ```

use forebay_core::{
    Context, DataPipe, Error, FlatMap, Items, Length, Output, PipeInfo, Result, Sample, State, StateExt,
    options,
};

options! {
    /// Options of `repeat_each`.
    pub struct RepeatEachOptions {
        /// How often each sample is given, from 1.
        count: u64 = required, in 1..=18446744073709551615;
    }
}

/// Gives every sample several times, one copy behind the other.
///
/// All copies share the values and the key. The first has the sample's uid, the others their own, so that random maps draw anew for each.
/// State: how many copies were given.
#[derive(Debug)]
pub struct RepeatEach {
    count: u64,
}

impl DataPipe for RepeatEach {
    const INFO: PipeInfo = PipeInfo {
        name: "repeat_each",
        summary: "Gives every sample several times in a row",
        ..PipeInfo::DEFAULT
    };
    type Options = RepeatEachOptions;

    fn new(options: RepeatEachOptions) -> Result<Self> {
        Ok(Self { count: options.count })
    }
}

impl FlatMap for RepeatEach {
    type Items = Copies;

    fn length(&self, input: Length) -> Option<Length> {
        Some(input.times(Length::new(self.count)))
    }

    fn open(&self, sample: Sample, _: &Context) -> Result<Copies> {
        Ok(Copies { sample, count: self.count, next: 0 })
    }
}

/// The copies of one sample.
#[derive(Debug)]
pub struct Copies {
    sample: Sample,
    count: u64,
    next: u64,
}

impl Items for Copies {
    fn next(&mut self, cx: &Context) -> Result<Option<Sample>> {
        Output::one(|out| self.fill(out, cx))
    }

    fn fill(&mut self, out: &mut Output, cx: &Context) -> Result<bool> {
        while out.room() > 0 && self.next < self.count {
            let sample = &mut self.sample;
            let uid = cx.uid_of(sample.uid(), [self.next]);
            self.next += 1;
            if self.next == self.count {
                let mut last = std::mem::take(sample);
                last.set_uid(uid);
                out.push(&mut last);
            } else {
                out.push_row(uid, sample.key().clone(), sample.schema(), sample.values().iter().cloned());
            }
        }
        Ok(self.next < self.count)
    }

    fn state(&self) -> Result<State> {
        State::json(1, &self.next)
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        let next: u64 = state.parse(1)?;
        if next > self.count {
            let count = self.count;
            return Err(Error::invalid(format!("found a position after copy {next} of {count}")));
        }
        self.next = next;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::Options;

    use super::*;
    use crate::testing::{expand, numbers, small_host};

    fn repeat_each(count: u64) -> RepeatEach {
        RepeatEach::new(RepeatEachOptions { count }).unwrap()
    }

    #[test]
    fn gives_each_so_often() {
        for count in [1, 2, 5] {
            for len in [0, 1, 4] {
                let input = numbers(len);
                let out = expand(&repeat_each(count), &input).unwrap();
                let plain = input.iter().flat_map(|sample| (0..count).map(move |copy| (copy, sample)));
                assert_eq!(out.len(), plain.clone().count());
                for (found, (copy, sample)) in out.iter().zip(plain) {
                    assert!(found.fields().eq(sample.fields()) && found.key() == sample.key());
                    assert_eq!(found.uid() == sample.uid(), copy == 0);
                }
                let mut uids: Vec<_> = out.iter().map(Sample::uid).collect();
                uids.sort_unstable();
                uids.dedup();
                assert_eq!(uids.len(), out.len());
            }
        }
    }

    #[test]
    fn a_position_beyond_the_end_is_refused() {
        let host = small_host();
        let mut copies = repeat_each(2).open(numbers(1).swap_remove(0), &host.context()).unwrap();
        assert!(copies.restore(&State::json(1, &3).unwrap(), &host.context()).is_err());
        for wrong in [r#"{"count": 0}"#, r#"{"count": -1}"#, r#"{"count": null}"#, "{}"] {
            assert_eq!(RepeatEachOptions::parse(wrong).unwrap_err().get("option"), Some("count"), "{wrong}");
        }
    }
}
