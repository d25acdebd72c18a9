//! Drivers for the tests of this crate that feed streams in every manner, and the checks that every stream passes.

use forebay_core::{
    Error, FlatMap, Io, Items as _, Key, Limits, Map, Output, Port, Result, Sample, State, Step, Stream,
    Value, abi::Chunk, random::Rng,
};
pub(crate) use forebay_testkit::Host;

/// A host with little memory.
pub(crate) fn small_host() -> Host {
    Host::new().seed(17).limits(Limits { bytes: 1 << 20, ..Limits::DEFAULT })
}

/// The uid that the node of these hosts makes of one.
pub(crate) fn uid_of<const N: usize>(uid: u64, numbers: [u64; N]) -> u64 {
    small_host().context().uid_of(uid, numbers)
}

/// A sample with these fields.
pub(crate) fn sample(uid: u64, fields: &[(&str, Value)]) -> Sample {
    let key = Key { origin: "test".into(), index: uid, ..Key::default() };
    let mut sample = Sample::new(uid, key);
    fields.iter().for_each(|(name, value)| sample.set(name, value.clone()));
    sample
}

/// A sample with these fields, each of which holds its own name.
pub(crate) fn named(uid: u64, names: &[&str]) -> Sample {
    sample(uid, &names.iter().map(|&name| (name, name.into())).collect::<Vec<_>>())
}

/// Some of these, all or none, in any order.
pub(crate) fn some<T: Copy>(rng: &mut Rng, of: &[T]) -> Vec<T> {
    let mut left = of.to_vec();
    (0..rng.below(1 + of.len() as u64))
        .map(|_| left.swap_remove(rng.below(left.len() as u64) as usize))
        .collect()
}

/// The samples 0 to before `count`, each with its number as `value`.
pub(crate) fn numbers(count: usize) -> Vec<Sample> {
    let first = sample(0, &[("value", Value::NULL)]);
    let number = |at: usize| {
        let key = Key { index: at as u64, ..first.key().clone() };
        Sample::with_schema(at as u64, key, first.schema().clone(), vec![(at as i64).into()])
    };
    (0..count).map(number).collect()
}

/// All integers of a field, out of single samples or batches.
pub(crate) fn ints(samples: &[Sample], field: &str) -> Vec<i64> {
    let values = samples.iter().map(|sample| sample.get(field).unwrap());
    values
        .flat_map(|value| match value.as_tensor() {
            Some(tensor) => {
                let words = tensor.data().chunks_exact(8);
                words.map(|word| i64::from_ne_bytes(word.try_into().unwrap())).collect()
            }
            None => vec![value.as_i64().unwrap()],
        })
        .collect()
}

/// `input`, changed by a map.
pub(crate) fn map(pipe: &impl Map, input: &Sample, host: &Host) -> Result<Sample> {
    let mut sample = input.clone();
    pipe.map(&mut sample, &host.context())?;
    Ok(sample)
}

/// All that a flat map makes of samples, after checking that each stream can be saved at every place, and goes on from there exactly.
pub(crate) fn expand(pipe: &impl FlatMap, input: &[Sample]) -> Result<Vec<Sample>> {
    let host = small_host();
    let cx = host.context();
    let mut out = Vec::new();
    for sample in input {
        let mut items = pipe.open(sample.clone(), &cx)?;
        let (mut whole, mut places) = (Vec::new(), vec![items.state()?]);
        while let Some(next) = items.next(&cx)? {
            whole.push(next);
            places.push(items.state()?);
        }
        assert_eq!(items.next(&cx)?, None, "an end stays");
        for room in [2, 7] {
            let (mut items, mut filled) = (pipe.open(sample.clone(), &cx)?, Vec::new());
            let mut chunk = Chunk::new();
            loop {
                let more = items.fill(&mut Output::new(&mut chunk, room), &cx)?;
                let full = chunk.len() == room;
                filled.extend(std::iter::from_fn(|| chunk.pop()));
                if !more && !full {
                    break;
                }
            }
            assert_eq!(filled, whole, "{room} at a time");
        }
        for (at, state) in places.iter().enumerate() {
            let mut items = pipe.open(sample.clone(), &cx)?;
            items.restore(state, &cx)?;
            assert_eq!(items.state()?, *state, "B120: it comes back as it was");
            let rest: Vec<_> = std::iter::from_fn(|| items.next(&cx).transpose()).collect::<Result<_>>()?;
            assert_eq!(rest, whole[at..], "after {at}");
        }
        out.append(&mut whole);
    }
    Ok(out)
}

/// Feeds one stream from lists of samples, so many at a time.
pub(crate) struct Drive<'a, S> {
    pipe: S,
    inputs: Vec<&'a [Sample]>,
    chunk: usize,
    /// How many samples of each input were given to the pipe, in the input's pass.
    at: Vec<usize>,
    ports: Vec<Port>,
    host: Host,
    /// What each output gave, and how much each had given before this drive began.
    outs: Vec<Vec<Sample>>,
    before: Vec<usize>,
    /// How many errors there were, those before this drive too.
    failed: usize,
}

impl<'a, S: Stream> Drive<'a, S> {
    pub(crate) fn new(pipe: S, input: &'a [Sample], chunk: usize) -> Self {
        Self::with_host(pipe, input, chunk, &small_host())
    }

    pub(crate) fn with_host(pipe: S, input: &'a [Sample], chunk: usize, host: &Host) -> Self {
        Self::wide(pipe, &[input], 1, chunk, host)
    }

    /// With any number of inputs and outputs. The chunks of the inputs differ in size.
    pub(crate) fn wide(
        mut pipe: S,
        inputs: &[&'a [Sample]],
        outputs: usize,
        chunk: usize,
        host: &Host,
    ) -> Self {
        pipe.reset(&host.context()).unwrap();
        Self {
            pipe,
            inputs: inputs.to_vec(),
            chunk,
            at: vec![0; inputs.len()],
            ports: inputs.iter().map(|_| Port::default()).collect(),
            host: host.clone(),
            outs: vec![Vec::new(); outputs],
            before: vec![0; outputs],
            failed: 0,
        }
    }

    /// One poll with this room, and what it asks for.
    pub(crate) fn step(&mut self, room: usize) -> Result<Step> {
        let mut chunks: Vec<_> = self.outs.iter().map(|_| Chunk::new()).collect();
        let step = self.pipe.poll(&mut Io::new(&mut self.ports, &mut chunks, room), &self.host.context());
        for (chunk, out) in chunks.iter_mut().zip(&mut self.outs) {
            assert!(chunk.len() <= room, "more samples than there was room for");
            out.extend(std::iter::from_fn(|| chunk.pop()));
        }
        match step {
            Ok(Step::NeedInput(input)) => self.feed(input),
            Ok(Step::Rewind(input)) => {
                let port = &mut self.ports[input];
                assert!(port.ended && port.chunk.is_empty(), "rewinds what has not ended");
                self.at[input] = 0;
                port.ended = false;
            }
            Ok(_) => {}
            Err(_) => self.failed += 1,
        }
        step
    }

    fn feed(&mut self, input: usize) {
        let (samples, port, at) = (self.inputs[input], &mut self.ports[input], &mut self.at[input]);
        assert!(port.chunk.is_empty() && !port.ended, "asks for what is there");
        let end = samples.len().min(*at + self.chunk + input);
        for sample in &samples[*at..end] {
            port.chunk.push_sample(&mut sample.clone());
        }
        port.ended = *at == end;
        *at = end;
    }

    /// Polls until the end, or until the outputs have so many samples.
    pub(crate) fn run(&mut self, room: usize, most: usize) -> Result<()> {
        while !self.has(most) && self.step(room)? != Step::End {}
        Ok(())
    }

    /// As [`run`](Drive::run), over all errors.
    fn run_on(&mut self, room: usize, most: usize) {
        while !self.has(most) && !matches!(self.step(room), Ok(Step::End)) {}
    }

    /// Whether each output has given so many samples, those before this drive too.
    fn has(&self, most: usize) -> bool {
        self.outs.iter().zip(&self.before).all(|(out, before)| before + out.len() >= most)
    }

    /// What the first output gave.
    pub(crate) fn out(&self) -> &[Sample] {
        &self.outs[0]
    }

    /// What this output gave.
    pub(crate) fn out_of(&self, output: usize) -> &[Sample] {
        &self.outs[output]
    }

    /// How many samples of the first input were asked for.
    pub(crate) fn fed(&self) -> usize {
        self.at[0]
    }

    /// How many samples of an input the pipe has taken.
    pub(crate) fn taken(&self, input: usize) -> usize {
        self.at[input] - self.ports[input].chunk.len()
    }

    pub(crate) fn told_the_end(&self) -> bool {
        self.ports[0].ended
    }

    pub(crate) fn state(&self) -> Result<State> {
        self.pipe.state()
    }

    pub(crate) fn into_pipe(self) -> S {
        self.pipe
    }

    /// Goes on with another pipe as it is.
    pub(crate) fn replace(&mut self, pipe: S) {
        self.pipe = pipe;
    }

    /// Goes on with another pipe from where this one is, the inputs too.
    pub(crate) fn resume(&self, pipe: S) -> Self {
        self.resume_on(pipe, &self.host)
    }

    /// As [`resume`](Drive::resume), on another host.
    pub(crate) fn resume_on(&self, pipe: S, host: &Host) -> Self {
        let state = self.state().unwrap();
        let mut other = Self::wide(pipe, &self.inputs, self.outs.len(), self.chunk, host);
        other.pipe.restore(&state, &other.host.context()).unwrap();
        let saved = other.state().unwrap();
        assert_eq!(
            (saved.version, &saved.bytes),
            (state.version, &state.bytes),
            "B120: it comes back as it was"
        );
        assert!(saved.again.iter().all(|&again| again == 0), "nothing was taken yet");
        for input in 0..self.inputs.len() {
            let again = state.again.get(input).map_or(0, |&again| usize::try_from(again).unwrap());
            let taken = self.taken(input);
            assert!(again <= taken, "wants {again} samples again and has taken {taken}");
            other.at[input] = taken - again;
        }
        for (output, out) in self.outs.iter().enumerate() {
            other.before[output] = self.before[output] + out.len();
        }
        other.failed = self.failed;
        other
    }

    /// Checks that the outputs went on where they were in `whole`, in which there were so many errors.
    fn goes_on(&self, whole: &[Vec<Sample>], failed: usize, most: usize) {
        assert!(most < usize::MAX || self.failed == failed, "{} errors of {failed}", self.failed);
        for (output, (out, &before)) in self.outs.iter().zip(&self.before).enumerate() {
            let all = &whole[output];
            let rest = &all[before.min(all.len())..];
            assert_eq!(
                out[..out.len().min(most.saturating_sub(before))],
                *rest,
                "output {output} after {before}"
            );
        }
    }
}

/// What a stream is checked with: samples for its inputs, its number of outputs, and how many samples of each are
/// looked at, for streams that never end.
pub(crate) struct Setup<'a> {
    pub(crate) inputs: Vec<&'a [Sample]>,
    pub(crate) outputs: usize,
    pub(crate) most: usize,
}

impl<'a> Setup<'a> {
    /// One output, looked at until the end.
    pub(crate) fn new(inputs: &[&'a [Sample]]) -> Self {
        let inputs = inputs.to_vec();
        Self { inputs, outputs: 1, most: usize::MAX }
    }

    fn drive<S: Stream>(&self, pipe: S, chunk: usize) -> Drive<'a, S> {
        Drive::wide(pipe, &self.inputs, self.outputs, chunk, &small_host())
    }

    /// What a stream gives, after checking that it is the same for every size of chunk and of room, and
    /// again after a reset.
    pub(crate) fn check<S: Stream>(&self, make: impl Fn() -> S) -> Vec<Vec<Sample>> {
        let mut expected = None;
        let longest = self.inputs.iter().map(|input| input.len()).max().unwrap_or(0);
        for chunk in [1, 3, longest.max(1)] {
            for room in [1, 2, 64] {
                let mut drive = self.drive(make(), chunk);
                drive.run(room, self.most).unwrap();
                if self.most == usize::MAX {
                    assert_eq!(drive.step(room).unwrap(), Step::End, "an end stays");
                }
                let out = self.cut(std::mem::take(&mut drive.outs));
                let mut again = self.drive(drive.into_pipe(), chunk);
                again.run(room, self.most).unwrap();
                assert_eq!(out, self.cut(again.outs), "after a reset, chunk {chunk}, room {room}");
                assert_eq!(expected.get_or_insert_with(|| out.clone()), &out, "chunk {chunk}, room {room}");
            }
        }
        expected.unwrap_or_default()
    }

    fn cut(&self, mut outs: Vec<Vec<Sample>>) -> Vec<Vec<Sample>> {
        outs.iter_mut().for_each(|out| out.truncate(self.most));
        outs
    }

    /// Checks that a stream can be saved after every poll, and goes on from there exactly; and that what was restored
    /// can be saved in turn after every poll.
    pub(crate) fn check_resume<S: Stream>(&self, make: impl Fn() -> S) {
        for (chunk, room) in [(1, 1), (2, 3), (3, 1)] {
            let mut whole = self.drive(make(), chunk);
            whole.run_on(room, self.most);
            let (failed, whole) = (whole.failed, self.cut(whole.outs));
            let mut first = self.drive(make(), chunk);
            loop {
                let mut second = first.resume(make());
                loop {
                    let mut third = second.resume(make());
                    third.run_on(2, self.most);
                    third.goes_on(&whole, failed, self.most);
                    if second.has(self.most) || matches!(second.step(room), Ok(Step::End)) {
                        break;
                    }
                }
                second.goes_on(&whole, failed, self.most);
                if first.has(self.most) || matches!(first.step(room), Ok(Step::End)) {
                    break;
                }
            }
        }
    }
}

/// [`Setup::check`] for one input and one output.
pub(crate) fn check<S: Stream>(make: impl Fn() -> S, input: &[Sample]) -> Vec<Sample> {
    Setup::new(&[input]).check(make).swap_remove(0)
}

/// [`Setup::check_resume`] for one input and one output.
pub(crate) fn check_resume<S: Stream>(make: impl Fn() -> S, input: &[Sample]) {
    Setup::new(&[input]).check_resume(make);
}

/// Runs a stream to its end, over all errors, which it gives.
pub(crate) fn errors<S: Stream>(drive: &mut Drive<'_, S>) -> Vec<Error> {
    let mut errors = Vec::new();
    loop {
        match drive.step(3) {
            Ok(Step::End) => return errors,
            Ok(_) => {}
            Err(error) => errors.push(error),
        }
    }
}
