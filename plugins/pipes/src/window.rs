//! `window`: windows over the stream, each stacked into one sample.
//!
//! ```toml
//! [window]
//! page = "batches"
//! examples = ['forebay head -n 2 "range 100 | window 4 shift=2"']
//! cases = ["range N | window 4 shift=2"]
//! ```

use std::{collections::VecDeque, fmt, mem};

use forebay_core::{
    Chunk, Context, DataPipe, Drops, Error, Io, Length, Noun, PipeAudit, PipeInfo, PipeLayout, Result,
    Sample, State, StateExt, Step, Stream, Uids, Value, options, random::mix,
};

use crate::{
    batch::Stack,
    plumbing::{rows::Rows, stack::Place},
};

/// Keeps the uids of windows apart from those that other pipes make of a uid.
const WINDOW: u64 = 0x7769_6e64;
/// The most samples that a window reaches over.
const LONGEST: usize = 1_000_000_000;

options! {
    /// Options of `window`.
    pub struct WindowOptions {
        /// Samples in one window.
        size: usize = required, in 1..=1000000000;
        /// How far each window begins behind the one before; null for `size`.
        shift: Option<usize> = null, in 1..=1000000000000000;
        /// The step from one sample of a window to the next.
        stride: usize = 1, in 1..=1000000000;
        /// Leave out windows at the end that are shorter.
        drop_last: bool = false;
    }
}

/// Stacks the samples of each window into one, as `batch` does; windows may overlap, leave samples out between them, and take only
/// every `stride`-th.
///
/// At the end come the windows that begin before it and are shorter, unless they are dropped. A window has the key of its first sample and a uid made of
/// that one's. One whose samples do not stack is an error, and the next one goes on. State: how many samples are left out before the
/// next window; those held, as many as a window reaches over, come again.
#[derive(Debug)]
pub struct Window {
    size: usize,
    shift: usize,
    stride: usize,
    /// How many samples a window reaches over.
    span: usize,
    drop_last: bool,
    /// The samples from the beginning of the next window on.
    held: VecDeque<Sample>,
    /// How many samples come before it.
    gap: usize,
    /// Those that were let go, whose memory is used again.
    spare: Vec<Sample>,
    rows: Rows<Stack>,
    members: Members,
}

/// The samples of a window, on their way into it.
#[derive(Default)]
struct Members(Chunk);

impl fmt::Debug for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} samples", self.0.len())
    }
}

/// The version of a saved position: how many samples come before the next window.
const VERSION: u32 = 1;

impl DataPipe for Window {
    const INFO: PipeInfo = PipeInfo {
        name: "window",
        summary: "Windows over the stream, each stacked into one sample",
        also: &["sliding_window"],
        layout: PipeLayout { gives: Some(Noun { one: "window", many: "windows" }), ..PipeLayout::DEFAULT },
        audit: PipeAudit { uids: Uids::Made, drops: Drops::Always, ..PipeAudit::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = WindowOptions;

    fn new(options: WindowOptions) -> Result<Self> {
        let WindowOptions { size, shift, stride, drop_last } = options;
        let span = (size - 1).checked_mul(stride).map(|last| last + 1).filter(|&span| span <= LONGEST);
        let span = span.ok_or_else(|| {
            let message = format!("found {size} samples {stride} apart, expected at most {LONGEST} in all");
            Error::invalid(message).context("option", "stride")
        })?;
        let (held, spare) = (VecDeque::new(), Vec::new());
        let (rows, members) = (Rows::new(Stack { hints: false }, None), Members::default());
        let shift = shift.unwrap_or(size);
        Ok(Self { size, shift, stride, span, drop_last, held, gap: 0, spare, rows, members })
    }
}

impl Stream for Window {
    fn reset(&mut self, _: &Context) -> Result<()> {
        self.held.clear();
        self.gap = 0;
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, cx: &Context) -> Result<Step> {
        while io.room() > 0 {
            if !self.gather(io) {
                if !io.ended(0) {
                    return Ok(Step::NeedInput(0));
                }
                if self.held.is_empty() || self.drop_last {
                    return Ok(Step::End);
                }
            }
            let window = self.stack(cx);
            self.advance();
            io.push(&mut window?);
        }
        Ok(Step::Ready)
    }

    fn length(&self, inputs: &[Option<Length>], _: &Context) -> Option<Length> {
        let (span, shift) = (self.span as u64, self.shift as u64);
        Some(inputs[0]?.map(|count| match self.drop_last {
            true if count < span => 0,
            true => (count - span) / shift + 1,
            false => count.div_ceil(shift),
        }))
    }

    fn state(&self) -> Result<State> {
        Ok(State::json(VERSION, &self.gap)?.again(0, self.held.len() as u64))
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        self.gap = state.parse(VERSION)?;
        Ok(())
    }
}

impl Window {
    /// Takes samples until the window is whole or none waits; says whether it is.
    fn gather(&mut self, io: &mut Io) -> bool {
        let Some(input) = io.input(0) else { return false };
        while self.gap > 0 && !input.is_empty() {
            input.advance();
            self.gap -= 1;
        }
        while self.gap == 0 && self.held.len() < self.span && !input.is_empty() {
            let mut sample = self.spare.pop().unwrap_or_default();
            input.pop_into(&mut sample);
            self.held.push_back(sample);
        }
        self.held.len() == self.span
    }

    /// The window that begins with the oldest sample held.
    fn stack(&mut self, cx: &Context) -> Result<Sample> {
        let place = Place { capacity: self.size, strict: true, cx };
        let first = self.held.front().map_or(0, Sample::uid);
        for sample in self.held.iter_mut().step_by(self.stride) {
            let (uid, key, schema) = (sample.uid(), sample.key().clone(), sample.schema().clone());
            if self.shift < self.span {
                // Another window may have it too.
                self.members.0.push(uid, key, &schema, sample.values().iter().cloned());
            } else {
                self.members.0.push(uid, key, &schema, sample.values_mut().iter_mut().map(mem::take));
            }
        }
        let stacked = self.join(&place);
        self.members.0.clear();
        let mut window = stacked.inspect_err(|_| self.rows.clear())?;
        window.set_uid(mix(&[WINDOW, first]));
        Ok(window)
    }

    fn join(&mut self, place: &Place) -> Result<Sample> {
        while !self.members.0.is_empty() {
            self.rows.take(&mut self.members.0, place)?;
        }
        self.rows.finish(place.cx)
    }

    /// Goes on to the next window.
    fn advance(&mut self) {
        let over = self.shift.min(self.held.len());
        self.gap = self.shift - over;
        self.spare.extend(self.held.drain(..over).map(|mut sample| {
            sample.values_mut().fill(Value::NULL);
            sample
        }));
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::{ErrorKind, Options};

    use super::*;
    use crate::testing::{Drive, Setup, check, check_resume, errors, ints, numbers, sample};

    fn window(options: &str) -> Window {
        Window::new(WindowOptions::parse(options).unwrap()).unwrap()
    }

    /// The windows over the numbers below `count`, written out plainly.
    fn reference(size: usize, shift: usize, stride: usize, drop_last: bool, count: usize) -> Vec<Vec<i64>> {
        let windows = (0..count).step_by(shift).map(|begin| {
            let members = (0..size).map(|at| begin + at * stride).filter(|&at| at < count);
            (begin, members.map(|at| at as i64).collect::<Vec<_>>())
        });
        let whole = |begin: usize| begin + (size - 1) * stride < count;
        windows.filter(|(begin, _)| !drop_last || whole(*begin)).map(|(_, members)| members).collect()
    }

    fn each(out: &[Sample]) -> Vec<Vec<i64>> {
        out.iter().map(|window| ints(std::slice::from_ref(window), "value")).collect()
    }

    #[test]
    fn equals_the_definition_and_goes_on_from_every_moment() {
        for (size, shift, stride) in [
            (3, 3, 1),
            (3, 1, 1),
            (2, 3, 1),
            (3, 2, 2),
            (2, 7, 3),
            (1, 1, 1),
            (4, 1, 3),
            (1, 2, 5),
            (20, 4, 1),
        ] {
            for drop_last in [false, true] {
                for count in [0, 1, 7, 12] {
                    let options = format!(
                        r#"{{"size": {size}, "shift": {shift}, "stride": {stride}, "drop_last": {drop_last}}}"#
                    );
                    let input = numbers(count);
                    let out = check(|| window(&options), &input);
                    let wanted = reference(size, shift, stride, drop_last, count);
                    assert_eq!(each(&out), wanted, "{options} of {count}");
                    for (window, members) in out.iter().zip(&wanted) {
                        assert_eq!(window.key(), input[members[0] as usize].key());
                    }
                    let uids: std::collections::HashSet<_> = out.iter().map(Sample::uid).collect();
                    assert_eq!(uids.len(), out.len());
                    check_resume(|| window(&options), &input);
                }
            }
        }
        Setup { most: 6, ..Setup::new(&[&numbers(60)]) }
            .check_resume(|| window(r#"{"size": 4, "shift": 2, "stride": 2}"#));
    }

    #[test]
    fn without_a_shift_it_is_a_batch() {
        let input: Vec<_> = (0..10)
            .map(|at| {
                let meta =
                    Value::structure(vec![("id".into(), at.into()), ("tag".into(), at.to_string().into())]);
                sample(at as u64, &[("value", at.into()), ("text", at.to_string().into()), ("meta", meta)])
            })
            .collect();
        let out = check(|| window(r#"{"size": 4}"#), &input);
        let batch = || crate::Batch::new(crate::BatchOptions::parse(r#"{"size": 4}"#).unwrap()).unwrap();
        let batches = check(batch, &input);
        assert_eq!(out.len(), batches.len());
        for (window, batch) in out.iter().zip(&batches) {
            assert!(window.fields().eq(batch.fields()) && window.key() == batch.key());
        }
        let apart = check(|| window(r#"{"size": 4, "shift": 2}"#), &input);
        assert!(apart[2].fields().eq(batches[1].fields()), "what overlaps is not taken away");
    }

    #[test]
    fn a_window_that_does_not_stack_is_an_error_and_the_next_goes_on() {
        let mut input = numbers(8);
        input[4] = sample(4, &[("value", 0.5.into())]);
        let make = || window(r#"{"size": 2, "shift": 1, "drop_last": true}"#);
        let mut drive = Drive::new(make(), &input, 3);
        let found = errors(&mut drive);
        let names: Vec<_> = found
            .iter()
            .map(|error| (error.get("sample"), error.get("first of batch"), error.get("field")))
            .collect();
        let value = Some("value");
        assert_eq!(names, [(Some("test#4"), Some("test#3"), value), (Some("test#5"), Some("test#4"), value)]);
        assert_eq!(each(drive.out()), [[0, 1], [1, 2], [2, 3], [5, 6], [6, 7]]);
        check_resume(make, &input);
    }

    #[test]
    fn bad_options_are_refused_by_name() {
        for (options, option) in [
            ("{}", "size"),
            (r#"{"size": 0}"#, "size"),
            (r#"{"size": 2, "shift": 0}"#, "shift"),
            (r#"{"size": 2, "stride": 0}"#, "stride"),
        ] {
            assert_eq!(WindowOptions::parse(options).unwrap_err().get("option"), Some(option));
        }
        let wide = WindowOptions::parse(r#"{"size": 100000, "stride": 100000}"#).unwrap();
        assert_eq!(Window::new(wide).unwrap_err().get("option"), Some("stride"));
        let input = numbers(1);
        let mut drive = Drive::new(window(r#"{"size": 1000000000}"#), &input, 1);
        assert_eq!(drive.run(1, 1).unwrap_err().kind(), ErrorKind::Limit);
    }
}
