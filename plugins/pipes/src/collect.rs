//! `collect`: a stream that samplers draw from.
//!
//! ```toml
//! [collect]
//! page = "order"
//! examples = ['''forebay head -n 3 "range 10 | map 'value = value * value' | collect | random_sampler"''']
//!
//! [[collect.ending]]
//! graph = "range N | map 'x=random()' | collect | random_sampler | batch 4"
//! why = "it holds all samples before it gives one"
//!
//! [[collect.ending]]
//! graph = "range N | filter 'value % 2 == 0' | collect | random_sampler replacement=true num_samples=9"
//! why = "it holds all samples before it gives one"
//! ```

use forebay_core::{
    Access, Context, DataPipe, Error, Io, Key, Length, PipeAudit, PipeInfo, PipeLayout, Result, Sample,
    Schema, State, StateExt, Step, Str, Stream, Uids, Value, options,
    sampling::{AGAIN, COUNT, DRAWN},
};

use crate::plumbing::blocks::Blocks;

options! {
    /// Options of `collect`.
    pub struct CollectOptions {
        /// The most bytes to hold behind a sampler.
        limit: u64 = 1073741824;
    }
}

/// Makes a sampler behind it draw from what it gives, as from a source with random access. Without one it changes nothing.
///
/// With a sampler it is two pipes: [`CollectLen`] before it and [`CollectGet`] behind it, which holds all samples of the epoch.
#[derive(Debug)]
pub struct Collect;

impl DataPipe for Collect {
    const INFO: PipeInfo = PipeInfo {
        name: "collect",
        summary: "Holds a stream in memory, so that a sampler can draw from it",
        also: &["to_map_datapipe", "iter_to_map_converter"],
        layout: PipeLayout { access: Access::Indexed, ..PipeLayout::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = CollectOptions;

    fn new(_: CollectOptions) -> Result<Self> {
        Ok(Self)
    }
}

impl Stream for Collect {
    fn reset(&mut self, _: &Context) -> Result<()> {
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, _: &Context) -> Result<Step> {
        io.forward(0, usize::MAX);
        Ok(match io.ended(0) {
            true => Step::End,
            false if io.room() > 0 => Step::NeedInput(0),
            false => Step::Ready,
        })
    }

    fn length(&self, inputs: &[Option<Length>], _: &Context) -> Option<Length> {
        inputs[0]
    }

    /// Saves nothing: whatever was taken was given.
    fn state(&self) -> Result<State> {
        Ok(State::default())
    }

    fn restore(&mut self, _: &State, _: &Context) -> Result<()> {
        Ok(())
    }
}

/// Counts the samples of its input for a sampler, at its end, and hands them on by its second output.
#[derive(Debug)]
pub struct CollectLen {
    count: u64,
    told: bool,
}

impl DataPipe for CollectLen {
    const INFO: PipeInfo = PipeInfo {
        name: "collect.len",
        summary: "How many samples there are, and the samples",
        layout: PipeLayout { outputs: 2, ..Collect::INFO.layout },
        audit: PipeAudit { uids: Uids::Made, ..Collect::INFO.audit },
        ..Collect::INFO
    };
    type Options = CollectOptions;

    fn new(_: CollectOptions) -> Result<Self> {
        Ok(Self { count: 0, told: false })
    }
}

impl Stream for CollectLen {
    fn reset(&mut self, _: &Context) -> Result<()> {
        (self.count, self.told) = (0, false);
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, _: &Context) -> Result<Step> {
        self.count += io.forward_to(1, 0, usize::MAX) as u64;
        if io.room() == 0 {
            return Ok(Step::Ready);
        }
        if !io.ended(0) {
            return Ok(Step::NeedInput(0));
        }
        if !self.told {
            self.told = true;
            let mut count = Sample::new(0, Key::whole(Str::from_static("collect")));
            count.set(COUNT, self.count.cast_signed());
            io.push(&mut count);
        }
        Ok(Step::End)
    }

    fn length(&self, inputs: &[Option<Length>], _: &Context) -> Option<Length> {
        inputs[0]
    }

    fn state(&self) -> Result<State> {
        State::json(1, &(self.count, self.told))
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        (self.count, self.told) = state.parse(1)?;
        Ok(())
    }
}

/// Holds the samples of its first input, and gives them by the numbers that a sampler gives it.
#[derive(Debug)]
pub struct CollectGet {
    held: Blocks,
    /// Whether there were too many: without one of them the numbers would mean others.
    failed: bool,
}

impl DataPipe for CollectGet {
    const INFO: PipeInfo = PipeInfo {
        name: "collect.get",
        summary: "The samples that were drawn",
        layout: PipeLayout { inputs: (2, 2), ..Collect::INFO.layout },
        audit: PipeAudit { uids: Uids::Made, ..Collect::INFO.audit },
        ..Collect::INFO
    };
    type Options = CollectOptions;

    fn new(options: CollectOptions) -> Result<Self> {
        Ok(Self { held: Blocks::new(options.limit), failed: false })
    }
}

impl Stream for CollectGet {
    fn reset(&mut self, _: &Context) -> Result<()> {
        self.held.clear();
        self.failed = false;
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, cx: &Context) -> Result<Step> {
        if !self.failed
            && let Some(input) = io.input(0)
        {
            let held = self.held.hold(input, usize::MAX, 0);
            self.failed = held.is_err();
            held?;
        }
        if self.failed {
            return Ok(Step::End);
        }
        if !io.ended(0) {
            return Ok(Step::NeedInput(0));
        }
        while io.room() > 0 {
            let drawn = io
                .input(1)
                .and_then(|numbers| numbers.pop_with(|_, _, schema, values| drawn(schema, values)));
            let Some(drawn) = drawn else {
                return Ok(if io.ended(1) { Step::End } else { Step::NeedInput(1) });
            };
            let (number, again) = drawn?;
            let (uid, key, schema, values) = self.get(number)?;
            io.push_row(cx.uid_of(uid, [again]), key.clone(), schema, values.iter().cloned());
        }
        Ok(Step::Ready)
    }

    fn length(&self, inputs: &[Option<Length>], _: &Context) -> Option<Length> {
        inputs[1]
    }

    /// All that is held comes again.
    fn state(&self) -> Result<State> {
        Ok(State::json(1, &self.failed)?.again(0, self.held.count()))
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        self.failed = state.parse(1)?;
        Ok(())
    }
}

impl CollectGet {
    /// The sample with this number.
    fn get(&self, number: u64) -> Result<(u64, &Key, &Schema, &[Value])> {
        self.held.get(number).ok_or_else(|| {
            let count = self.held.count();
            Error::invalid(format!("found number {number}, expected one of {count} samples"))
        })
    }
}

/// The number of a sample that was drawn, and what tells it from the same one drawn before.
fn drawn(schema: &Schema, values: &[Value]) -> Result<(u64, u64)> {
    let word = |name| schema.position(name).and_then(|at| values.get(at)?.as_i64()).map(i64::cast_unsigned);
    word(DRAWN).zip(word(AGAIN)).ok_or_else(|| {
        Error::invalid("found a sample that a sampler did not give, expected the number of a sample")
    })
}

#[cfg(test)]
mod tests {
    use forebay_core::{ErrorKind, random::Rng};

    use super::*;
    use crate::testing::{Drive, Setup, check, check_resume, errors, ints, numbers, sample, uid_of};

    fn make<D: DataPipe<Options = CollectOptions>>(limit: u64) -> D {
        D::new(CollectOptions { limit }).unwrap()
    }

    fn drawn(numbers: &[(i64, i64)]) -> Vec<Sample> {
        let one = |(at, &(number, again)): (usize, &(i64, i64))| {
            sample(at as u64, &[(DRAWN, number.into()), (AGAIN, again.into())])
        };
        numbers.iter().enumerate().map(one).collect()
    }

    #[test]
    fn alone_it_changes_nothing() {
        for count in [0, 1, 9] {
            assert_eq!(check(|| make::<Collect>(0), &numbers(count)), numbers(count));
        }
        check_resume(|| make::<Collect>(0), &numbers(9));
    }

    #[test]
    fn the_count_comes_at_the_end_beside_all_samples() {
        for count in [0, 1, 9] {
            let input = numbers(count);
            let setup = Setup { outputs: 2, ..Setup::new(&[&input]) };
            let [counted, all] = &setup.check(|| make::<CollectLen>(0))[..] else { panic!("two outputs") };
            assert_eq!((ints(counted, COUNT), all), (vec![count as i64], &input));
            setup.check_resume(|| make::<CollectLen>(0));
        }
    }

    #[test]
    fn samples_come_by_number_and_again_as_others() {
        let (input, wanted) = (numbers(5), [(3, 0), (0, 0), (3, 1), (4, 0), (3, 2)]);
        let numbers = drawn(&wanted);
        let setup = Setup::new(&[&input, &numbers]);
        let out = &setup.check(|| make::<CollectGet>(1 << 20))[0];
        assert_eq!(ints(out, "value"), wanted.map(|(number, _)| number));
        let uids: Vec<_> = out.iter().map(Sample::uid).collect();
        assert_eq!((uids[0], uids[1], uids[3]), (3, 0, 4));
        let unlike: std::collections::HashSet<_> = uids.iter().collect();
        assert_eq!(unlike.len(), 5);
        setup.check_resume(|| make::<CollectGet>(1 << 20));
    }

    #[test]
    fn what_is_no_number_and_too_much_are_errors() {
        let (input, numbers) = (numbers(5), drawn(&[(5, 0), (1, 0), (-1, 0)]));
        let mut drive = Drive::wide(
            make::<CollectGet>(1 << 20),
            &[&input, &numbers],
            1,
            2,
            &crate::testing::small_host(),
        );
        let found = errors(&mut drive);
        assert_eq!((found.len(), ints(drive.out(), "value")), (2, vec![1]));
        assert!(found[0].message().contains("found number 5, expected one of 5 samples"));
        let mut drive =
            Drive::wide(make::<CollectGet>(300), &[&input, &[]], 1, 2, &crate::testing::small_host());
        let found = errors(&mut drive);
        assert_eq!(
            (found.len(), found[0].kind(), found[0].get("option")),
            (1, ErrorKind::Limit, Some("limit"))
        );
    }

    #[test]
    fn equals_the_definition_for_any_draws() {
        let mut rng = Rng::new(51, 0);
        for round in 0..30 {
            let input = numbers(round % 9);
            let count = if input.is_empty() { 0 } else { rng.below(12) };
            let draws: Vec<(i64, i64)> =
                (0..count).map(|_| (rng.below(input.len() as u64) as i64, rng.below(3) as i64)).collect();
            let wanted = draws.iter().map(|&(number, again)| {
                let mut sample = input[number as usize].clone();
                sample.set_uid(uid_of(sample.uid(), [again as u64]));
                sample
            });
            let numbers = drawn(&draws);
            let setup = Setup::new(&[&input, &numbers]);
            assert_eq!(
                setup.check(|| make::<CollectGet>(1 << 20))[0],
                wanted.collect::<Vec<_>>(),
                "{draws:?}"
            );
            setup.check_resume(|| make::<CollectGet>(1 << 20));
            assert_eq!(check(|| make::<Collect>(0), &input), input);
            let counting = Setup { outputs: 2, ..Setup::new(&[&input]) };
            let [counted, all] = &counting.check(|| make::<CollectLen>(0))[..] else { panic!("two outputs") };
            assert_eq!((ints(counted, COUNT), all), (vec![input.len() as i64], &input));
            counting.check_resume(|| make::<CollectLen>(0));
        }
    }
}
