//! A small host for the tests of this crate, and drivers that feed pipes in every manner.
#![expect(unsafe_code, reason = "the services are C functions")]

use std::ptr;

use forebay_core::{
    BufferMut, Context, Error, Io, Key, Limits, Map, Port, Result, Sample, State, Step, Stream, Value,
    abi::{
        self, Chunk, HostServices, HostServicesRef, Outcome,
        abi_stable::{
            prefix_type::WithMetadata,
            std_types::{ROption, RSlice, RStr},
        },
        code,
    },
};

/// Finds a decoder for an extension, a head and a pinned name.
type Choice = fn(&str, &[u8], &str) -> Result<abi::Decoder>;

/// The host of one test. It gives memory that is full of rubbish.
pub(crate) struct Host {
    pub(crate) raw: abi::Context,
}

const TABLE: &WithMetadata<HostServices> =
    &WithMetadata::new(HostServices { alloc, cancelled, log, decoder, store });

impl Host {
    pub(crate) fn new() -> Self {
        Self::with_decoders(|extension, _, _| Err(Error::unsupported(format!("nothing decodes {extension}"))))
    }

    pub(crate) fn with_decoders(choice: Choice) -> Self {
        let raw = abi::Context {
            services: HostServicesRef(TABLE.static_as_prefix()),
            host: choice as *const (),
            seed: 17,
            epoch: 0,
            pass: 0,
            node: 3,
            rank: 0,
            world_size: 1,
            limits: Limits { bytes: 1 << 20, ..Limits::DEFAULT },
            waker: ptr::null(),
            reserved: [0; 8],
        };
        Self { raw }
    }

    pub(crate) fn context(&self) -> Context<'_> {
        Context::new(&self.raw)
    }
}

unsafe extern "C" fn alloc(_: *const (), len: usize, place: &mut ROption<BufferMut>) -> Outcome {
    *place = ROption::RSome(BufferMut::from_owner(vec![0xa5; len]));
    Outcome::of(code::READY, 0)
}

unsafe extern "C" fn cancelled(_: *const ()) -> bool {
    false
}

unsafe extern "C" fn log(_: *const (), _: u32, _: RStr<'_>) {}

unsafe extern "C" fn decoder(
    host: *const (),
    extension: RStr<'_>,
    head: RSlice<'_, u8>,
    name: RStr<'_>,
    place: &mut ROption<abi::Decoder>,
) -> Outcome {
    // SAFETY: `Host` puts a function of this type there.
    let choice = unsafe { std::mem::transmute::<*const (), Choice>(host) };
    match choice(extension.as_str(), head.as_slice(), name.as_str()) {
        Ok(decoder) => {
            *place = ROption::RSome(decoder);
            Outcome::of(code::READY, 0)
        }
        Err(error) => Outcome::failed(error.into()),
    }
}

unsafe extern "C" fn store(_: *const (), _: RStr<'_>, _: &mut ROption<abi::Store>) -> Outcome {
    Outcome::failed(Error::unsupported("no stores here").into())
}

/// A sample with these fields.
pub(crate) fn sample(uid: u64, fields: &[(&str, Value)]) -> Sample {
    let key = Key { origin: "test".into(), index: uid, ..Key::default() };
    let mut sample = Sample::new(uid, key);
    fields.iter().for_each(|(name, value)| sample.set(name, value.clone()));
    sample
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

/// Feeds one stream from a list of samples, so many at a time.
pub(crate) struct Drive<'a, S> {
    pipe: S,
    input: &'a [Sample],
    chunk: usize,
    at: usize,
    port: Port,
    raw: abi::Context,
    pub(crate) out: Vec<Sample>,
}

impl<'a, S: Stream> Drive<'a, S> {
    pub(crate) fn new(pipe: S, input: &'a [Sample], chunk: usize) -> Self {
        Self::with_host(pipe, input, chunk, &Host::new())
    }

    pub(crate) fn with_host(mut pipe: S, input: &'a [Sample], chunk: usize, host: &Host) -> Self {
        pipe.reset(&host.context()).unwrap();
        let raw = abi::Context {
            seed: host.raw.seed,
            epoch: host.raw.epoch,
            pass: host.raw.pass,
            ..Host::new().raw
        };
        Self { pipe, input, chunk, at: 0, port: Port::default(), raw, out: Vec::new() }
    }

    /// One poll with this room, and what it asks for.
    pub(crate) fn step(&mut self, room: usize) -> Result<Step> {
        let mut outs = [Chunk::new()];
        let mut io = Io::new(std::slice::from_mut(&mut self.port), &mut outs, room);
        let step = self.pipe.poll(&mut io, &Context::new(&self.raw));
        assert!(outs[0].len() <= room, "more samples than there was room for");
        self.out.extend(std::iter::from_fn(|| outs[0].pop()));
        match step {
            Ok(Step::NeedInput(_)) => self.feed(),
            Ok(Step::Rewind(_)) => {
                assert!(self.port.ended && self.port.chunk.is_empty(), "rewinds what has not ended");
                self.at = 0;
                self.port.ended = false;
            }
            _ => {}
        }
        step
    }

    fn feed(&mut self) {
        assert!(self.port.chunk.is_empty() && !self.port.ended, "asks for what is there");
        let end = self.input.len().min(self.at + self.chunk);
        for sample in &self.input[self.at..end] {
            self.port.chunk.push_sample(&mut sample.clone());
        }
        self.port.ended = self.at == end;
        self.at = end;
    }

    /// Polls until the end, or until there are so many samples.
    pub(crate) fn run(&mut self, room: usize, most: usize) -> Result<()> {
        while self.out.len() < most && self.step(room)? != Step::End {}
        Ok(())
    }

    /// How many samples of the input were asked for.
    pub(crate) fn fed(&self) -> usize {
        self.at
    }

    /// How many samples of the input the pipe has taken.
    pub(crate) fn taken(&self) -> usize {
        self.at - self.port.chunk.len()
    }

    pub(crate) fn told_the_end(&self) -> bool {
        self.port.ended
    }

    pub(crate) fn state(&self) -> Result<State> {
        self.pipe.state()
    }

    pub(crate) fn into_pipe(self) -> S {
        self.pipe
    }

    /// Goes on with another pipe from where this one is, the input too.
    pub(crate) fn resume(&self, pipe: S) -> Self {
        let mut other = Self::new(pipe, self.input, self.chunk);
        other.raw = abi::Context {
            seed: self.raw.seed,
            epoch: self.raw.epoch,
            pass: self.raw.pass,
            ..Host::new().raw
        };
        other.pipe.restore(&self.state().unwrap(), &Context::new(&other.raw)).unwrap();
        assert_eq!(other.state().unwrap(), self.state().unwrap(), "a state comes back as it was");
        other.at = self.taken();
        other
    }
}

/// What a stream gives, after checking that it is the same for every size of chunk and of room, and
/// again after a reset.
pub(crate) fn check<S: Stream>(make: impl Fn() -> S, input: &[Sample]) -> Vec<Sample> {
    let mut expected = None;
    for chunk in [1, 3, input.len().max(1)] {
        for room in [1, 2, 64] {
            let mut drive = Drive::new(make(), input, chunk);
            drive.run(room, usize::MAX).unwrap();
            assert_eq!(drive.step(room).unwrap(), Step::End, "an end stays");
            let out = std::mem::take(&mut drive.out);
            let mut again = Drive::new(drive.into_pipe(), input, chunk);
            again.run(room, usize::MAX).unwrap();
            assert_eq!(out, again.out, "after a reset, chunk {chunk}, room {room}");
            assert_eq!(expected.get_or_insert_with(|| out.clone()), &out, "chunk {chunk}, room {room}");
        }
    }
    expected.unwrap_or_default()
}

/// Checks that a stream can be saved after every poll, and goes on from there.
pub(crate) fn check_resume<S: Stream>(make: impl Fn() -> S, input: &[Sample]) {
    for chunk in [1, 3] {
        let mut whole = Drive::new(make(), input, chunk);
        whole.run(1, usize::MAX).unwrap();
        let mut drive = Drive::new(make(), input, chunk);
        loop {
            let mut rest = drive.resume(make());
            rest.run(2, usize::MAX).unwrap();
            assert_eq!(rest.out, whole.out[drive.out.len()..], "after {} samples", drive.out.len());
            if drive.step(1).unwrap() == Step::End {
                break;
            }
        }
    }
}

/// A decoder of one of the crate's tests, as a host would hold it.
pub(crate) fn decoder_of<D: forebay_core::Decoder>() -> Result<abi::Decoder> {
    (forebay_core::shim::decoder_entry::<D>().make)("{}", "the test")
}
