//! `range`: integers, one a sample.
//!
//! ```toml
//! [range]
//! page = "order"
//! examples = ['forebay head -n 3 "range 10 start=2 step=3"']
//! cases = ["range N"]
//! ```

use forebay_core::{
    Access, Context, DataPipe, Error, Indexed, Key, Output, PipeInfo, PipeLayout, Result, Sample, Schema,
    Source, State, StateExt, Str, Value, options,
};

const ORIGIN: Str = Str::from_static("range");

options! {
    /// Options of `range`.
    pub struct RangeOptions {
        /// The integer to stop before.
        stop: i64 = required;
        /// The first integer.
        start: i64 = 0;
        /// The step from one integer to the next; negative or positive, not zero.
        step: i64 = 1;
        /// The name of the only field.
        field: String = "value";
    }
}

/// The integers from `start` to before `stop`, as Python's `range` gives them.
///
/// ```
/// use forebay_core::{DataPipe, Options, Source};
/// use forebay_pipes::{Range, RangeOptions};
///
/// let down = Range::new(RangeOptions::parse(r#"{"start": 5, "stop": 0, "step": -2}"#)?)?;
/// assert_eq!(down.len(), Some(3)); // 5, 3, 1
/// # Ok::<(), forebay_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Range {
    start: i64,
    step: i64,
    len: u64,
    next: u64,
    schema: Schema,
}

impl DataPipe for Range {
    const INFO: PipeInfo = PipeInfo {
        name: "range",
        summary: "Integers from start to before stop, one a sample",
        also: &["iterable_wrapper", "sequence_wrapper"],
        layout: PipeLayout { access: Access::Indexed, ..PipeLayout::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = RangeOptions;

    fn new(options: RangeOptions) -> Result<Self> {
        let RangeOptions { stop, start, step, field } = options;
        if step == 0 {
            return Err(Error::invalid("found 0, expected another number").context("option", "step"));
        }
        let schema = Schema::new([field]);
        Ok(Self { start, step, len: count(start, stop, step), next: 0, schema })
    }
}

impl Range {
    fn push(&self, index: u64, out: &mut Output) {
        let key = Key { origin: ORIGIN, index, ..Key::default() };
        out.push_row(index, key, &self.schema, Some(self.value(index)));
    }

    /// The integer with this number, which is below the length.
    fn value(&self, index: u64) -> Value {
        // Modulo 2^64 all along, so the result is right whenever it fits, and it lies before `stop`.
        self.start.wrapping_add(self.step.wrapping_mul(index.cast_signed())).into()
    }
}

/// How many integers there are from `start` to before `stop`.
fn count(start: i64, stop: i64, step: i64) -> u64 {
    let way =
        if step > 0 { i128::from(stop) - i128::from(start) } else { i128::from(start) - i128::from(stop) };
    let steps = u64::try_from(way).unwrap_or(0);
    steps.div_ceil(step.unsigned_abs())
}

impl Source for Range {
    fn reset(&mut self, _: &Context) -> Result<()> {
        self.next = 0;
        Ok(())
    }

    fn next(&mut self, _: &Context) -> Result<Option<Sample>> {
        let index = self.next;
        if index == self.len {
            return Ok(None);
        }
        self.next += 1;
        let key = Key { origin: ORIGIN, index, ..Key::default() };
        Ok(Some(Sample::with_schema(index, key, self.schema.clone(), vec![self.value(index)])))
    }

    fn fill(&mut self, out: &mut Output, _: &Context) -> Result<bool> {
        let end = self.len.min(self.next.saturating_add(out.room() as u64));
        for index in self.next..end {
            self.push(index, out);
        }
        self.next = end;
        Ok(end < self.len)
    }

    fn len(&self) -> Option<u64> {
        Some(self.len)
    }

    fn state(&self) -> Result<State> {
        State::json(1, &self.next)
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        let next: u64 = state.parse(1)?;
        if next > self.len {
            return Err(Error::invalid(format!("found a position of {next} in a range of {}", self.len)));
        }
        self.next = next;
        Ok(())
    }
}

impl Indexed for Range {
    fn count(&self, _: &Context) -> Result<u64> {
        Ok(self.len)
    }

    fn get(&self, keys: &[u64], out: &mut Output, _: &Context) -> Result<()> {
        for &index in keys {
            if index >= self.len {
                return Err(Error::invalid(format!(
                    "found sample number {index}, expected one below {}",
                    self.len
                )));
            }
            self.push(index, out);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::{Chunk, Options};

    use super::*;
    use crate::testing::{ints, small_host};

    fn range(options: &str) -> Result<Range> {
        Range::new(RangeOptions::parse(options)?)
    }

    fn all(pipe: &mut Range, room: usize) -> Vec<Sample> {
        let host = small_host();
        let mut chunk = Chunk::new();
        while pipe.fill(&mut Output::new(&mut chunk, room), &host.context()).unwrap() {}
        std::iter::from_fn(|| chunk.pop()).collect()
    }

    #[test]
    fn counts_as_python_does_b005() {
        let cases: [(&str, &[i64]); 7] = [
            (r#"{"stop": 10}"#, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
            (r#"{"start": 2, "stop": 10}"#, &[2, 3, 4, 5, 6, 7, 8, 9]),
            (r#"{"start": 2, "stop": 10, "step": 3}"#, &[2, 5, 8]),
            (r#"{"start": 5, "stop": -4, "step": -3}"#, &[5, 2, -1]),
            (r#"{"stop": 0}"#, &[]),
            (r#"{"stop": 3, "start": 4}"#, &[]),
            (
                r#"{"stop": 9223372036854775807, "start": -9223372036854775808, "step": 9223372036854775807}"#,
                &[i64::MIN, -1, i64::MAX - 1],
            ),
        ];
        for (options, expected) in cases {
            for room in [1, 2, 64] {
                let mut pipe = range(options).unwrap();
                assert_eq!(ints(&all(&mut pipe, room), "value"), expected, "{options}");
                assert_eq!(pipe.len(), Some(expected.len() as u64));
            }
        }
        assert_eq!(count(i64::MIN, i64::MAX, 1), u64::MAX);
        assert_eq!(count(i64::MAX, i64::MIN, -1), u64::MAX);
        assert_eq!(range(r#"{"stop": 3, "step": 0}"#).unwrap_err().get("option"), Some("step"));
    }

    #[test]
    fn starts_over_b001_and_gives_the_same_one_by_one_or_by_index() {
        let host = small_host();
        let mut pipe = range(r#"{"stop": 20, "field": "n"}"#).unwrap();
        let first = all(&mut pipe, 64);
        pipe.reset(&host.context()).unwrap();
        assert_eq!(first, all(&mut pipe, 3));
        pipe.reset(&host.context()).unwrap();
        let single: Vec<_> = std::iter::from_fn(|| pipe.next(&host.context()).unwrap()).collect();
        assert_eq!(first, single);
        assert_eq!(first[7].key().to_string(), "range#7");
        assert_eq!(first[7].uid(), 7);

        let mut chunk = Chunk::new();
        pipe.get(&[7, 0, 19], &mut Output::new(&mut chunk, 3), &host.context()).unwrap();
        let picked: Vec<_> = std::iter::from_fn(|| chunk.pop()).collect();
        assert_eq!(picked, [first[7].clone(), first[0].clone(), first[19].clone()]);
        assert!(pipe.get(&[20], &mut Output::new(&mut chunk, 1), &host.context()).is_err());
    }

    #[test]
    fn goes_on_from_every_saved_position() {
        let host = small_host();
        let options = r#"{"stop": 9}"#;
        let whole = all(&mut range(options).unwrap(), 64);
        let mut pipe = range(options).unwrap();
        for given in 0..=whole.len() {
            let mut other = range(options).unwrap();
            other.restore(&pipe.state().unwrap(), &host.context()).unwrap();
            assert_eq!(other.state().unwrap(), pipe.state().unwrap());
            assert_eq!(all(&mut other, 2), whole[given..]);
            pipe.next(&host.context()).unwrap();
        }
        let late = State::json(1, &10_u64).unwrap();
        assert!(range(options).unwrap().restore(&late, &host.context()).is_err());
    }
}
