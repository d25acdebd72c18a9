//! The traits for authors of a pipe: implement one of four small traits.

use forebay_abi::{Chunk, Port, Sample, Schema, State, Value};

use crate::{Context, Error, Length, Options, PipeInfo, Result};

/// What every pipe declares, and how one is made.
///
/// `new` must not open anything: a graph is built, checked and explained without touching its data.
pub trait DataPipe: Send + Sized + 'static {
    /// Name, summary, inputs and outputs.
    const INFO: PipeInfo;

    /// The options, made by [`options!`](crate::options!); [`NoOptions`](crate::NoOptions) for none.
    type Options: Options;

    /// Makes the pipe, without opening anything.
    ///
    /// # Errors
    /// `Invalid` if the options contradict each other.
    fn new(options: Self::Options) -> Result<Self>;

    /// How sure the pipe is, from 0 (no) to 255, that it can open a file that begins with `head` (at most 4 KiB).
    ///
    /// It is for a map or flat map that [opens](PipeInfo::opens) files, or follows one that does. The extension is
    /// a hint and can be wrong. The host asks only if a magic or the extension of the first of these pipes
    /// matches. The default trusts them.
    fn probe(_head: &[u8], _extension: &str) -> u8 {
        128
    }
}

/// A pipe without inputs, from which samples come.
///
/// The host calls `reset`, then `next` until it returns `None`, then `reset` for another epoch. Calls can block.
#[expect(clippy::len_without_is_empty, reason = "the length may be unknown")]
pub trait Source: DataPipe {
    /// Goes to the first sample of an epoch.
    ///
    /// # Errors
    /// Any; the run ends with it.
    fn reset(&mut self, cx: &Context) -> Result<()>;

    /// The next sample; `None` at the end.
    ///
    /// # Errors
    /// Any; a later call goes on behind the place that failed.
    fn next(&mut self, cx: &Context) -> Result<Option<Sample>>;

    /// Adds samples to `out` until it has no room, and returns whether there can be more.
    ///
    /// Write it for a source of small samples: it saves an allocation a sample.
    ///
    /// # Errors
    /// As [`next`](Source::next); what was added before is delivered first.
    fn fill(&mut self, out: &mut Output, cx: &Context) -> Result<bool> {
        out.fill_with(|sample| Ok(self.next(cx)?.map(|next| *sample = next).is_some()))
    }

    /// How many samples an epoch has, if that costs nothing to know.
    fn len(&self) -> Option<u64> {
        None
    }

    /// The position, from which [`restore`](Source::restore) goes on with the next sample.
    ///
    /// # Errors
    /// `Unsupported` if the source does not save its position.
    fn state(&self) -> Result<State> {
        Err(Error::unsupported("this source does not save its position"))
    }

    /// Goes to a saved position; called after `reset`.
    ///
    /// # Errors
    /// `Invalid` if the state is not from a source like this one.
    fn restore(&mut self, _state: &State, _cx: &Context) -> Result<()> {
        Err(Error::unsupported("this source does not save its position"))
    }
}

/// A source with random access: the host can ask for any of its samples by number, in any order and from many
/// threads.
///
/// In a graph, a sampler behind it chooses the samples, and only those are read from the source. The host then
/// makes three pipes of it: one that counts, the sampler, and a flat map that gets samples, on all threads or in
/// all workers. Each has its own instance, which is never [reset](Source::reset).
pub trait Indexed: Source + Sync {
    /// How many samples there are; the same until the end of the run.
    ///
    /// # Errors
    /// Any; the run ends with it.
    fn count(&self, cx: &Context) -> Result<u64>;

    /// A number that changes if the numbers come to mean other samples, such as a hash of the names of files. A
    /// snapshot keeps it and the count. A resume among other samples is refused, because some would come twice and
    /// others never. Options are compared anyway.
    ///
    /// # Errors
    /// As [`count`](Indexed::count).
    fn identity(&self, _cx: &Context) -> Result<u64> {
        Ok(0)
    }

    /// Adds the samples with these numbers, in this order: each as an epoch would give it, with its uid and key.
    ///
    /// # Errors
    /// Any, for the first sample that was not added; the host asks for those behind it again. `Invalid` for a
    /// number that is not below the count.
    fn get(&self, keys: &[u64], out: &mut Output, cx: &Context) -> Result<()>;
}

/// A stateless pipe that changes one sample at a time. Many threads share one instance.
///
/// Draw random numbers from [`Context::rng`] with the sample's uid, in a fixed order.
pub trait Map: DataPipe + Sync {
    /// Changes `sample` in place.
    ///
    /// # Errors
    /// Any; the sample's key is added by the caller.
    fn map(&self, sample: &mut Sample, cx: &Context) -> Result<()>;

    /// Runs `work`, which maps some samples that were passed together. Write it for a pipe that takes a lock for
    /// each sample, to take the lock only once.
    fn around(&self, work: &mut dyn FnMut()) {
        work();
    }
}

/// A stateless pipe that turns each sample into a lazy stream of samples.
///
/// If it declares [parallel](crate::PipePlacement::parallel), the host calls it for several samples at once, on
/// threads or in worker processes, and runs each stream to its end.
pub trait FlatMap: DataPipe + Sync {
    /// The stream that one sample becomes.
    type Items: Items;

    /// How many samples it gives in an epoch for this many, if that costs nothing to know and does not depend on
    /// the data.
    fn length(&self, _input: Length) -> Option<Length> {
        None
    }

    /// Opens the stream of `sample`.
    ///
    /// # Errors
    /// Any; the sample's key is added by the caller.
    fn open(&self, sample: Sample, cx: &Context) -> Result<Self::Items>;

    /// Runs `work`, which opens and reads the streams of some samples that were passed together, as for a
    /// [`Map`](Map::around). The host calls it only if the pipe is [parallel](crate::PipePlacement::parallel).
    fn around(&self, work: &mut dyn FnMut()) {
        work();
    }
}

/// The stream that a [`FlatMap`] makes of one sample.
pub trait Items: Send {
    /// The next sample; `None` at the end.
    ///
    /// # Errors
    /// Any.
    fn next(&mut self, cx: &Context) -> Result<Option<Sample>>;

    /// Adds samples to `out` until it has no room, and returns whether there can be more.
    ///
    /// Write it for streams of many small samples: it saves an allocation a sample. It must give the same as
    /// repeated calls of [`next`](Items::next), and calls of both can be mixed.
    ///
    /// # Errors
    /// As [`next`](Items::next); what was added before is delivered first.
    fn fill(&mut self, out: &mut Output, cx: &Context) -> Result<bool> {
        out.fill_with(|sample| Ok(self.next(cx)?.map(|next| *sample = next).is_some()))
    }

    /// Whether calls after an error give what lies behind it, or the end. If false, an error loses the rest of the
    /// stream.
    fn goes_on(&self) -> bool {
        false
    }

    /// The position, from which [`restore`](Items::restore) goes on with the next sample. Without it, a restored
    /// stream is read again from its start.
    ///
    /// # Errors
    /// `Unsupported` if the stream does not save its position.
    fn state(&self) -> Result<State> {
        Err(Error::unsupported("this stream does not save its position"))
    }

    /// Goes to a saved position; called on a stream that was just opened.
    ///
    /// # Errors
    /// `Invalid` if the state is not from a stream like this one.
    fn restore(&mut self, _state: &State, _cx: &Context) -> Result<()> {
        Err(Error::unsupported("this stream does not save its position"))
    }
}

/// A pipe with inputs and state, whose samples come in order: shuffle, batch, zip.
///
/// It never calls its inputs. It takes the samples that wait in [`Io`], and returns a [`Step`] that says what it
/// needs to go on. Its output must not depend on how many samples wait or how much room there is.
pub trait Stream: DataPipe {
    /// Starts an epoch or a pass: drops all samples that it holds.
    ///
    /// # Errors
    /// Any.
    fn reset(&mut self, cx: &Context) -> Result<()>;

    /// Takes samples from the inputs and adds samples to the outputs, until one of [`Step`] holds.
    ///
    /// # Errors
    /// Any; what was added before is delivered first.
    fn poll(&mut self, io: &mut Io, cx: &Context) -> Result<Step>;

    /// How many samples each of its outputs gives in an epoch, for these numbers of samples of its inputs, if none
    /// fails. It is known only if it costs nothing and does not depend on the data. For a sampler, the input is
    /// the source that it draws from. Called without a reset before.
    fn length(&self, _inputs: &[Option<Length>], _cx: &Context) -> Option<Length> {
        None
    }

    /// The position, without that of the inputs. A pipe that holds samples does not save them, but asks for them
    /// [again](crate::StateExt::again). Its output must be the same whether it was restored or never stopped. It
    /// must not fail again on samples on which it failed before.
    ///
    /// # Errors
    /// `Unsupported` if the pipe does not save its position. Then the host runs it again from the start of its
    /// pass.
    fn state(&self) -> Result<State> {
        Err(Error::unsupported("this pipe does not save its position"))
    }

    /// Goes to a saved position; called after `reset`.
    ///
    /// # Errors
    /// `Invalid` if the state is not from a pipe like this one.
    fn restore(&mut self, _state: &State, _cx: &Context) -> Result<()> {
        Err(Error::unsupported("this pipe does not save its position"))
    }
}

/// Where a [`Stream`] stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Call again: there is no room left, or the call did enough.
    Ready,
    /// It cannot go on until this input has samples or has ended.
    NeedInput(usize),
    /// Nothing now. It has cloned [`Context::waker`] and will call it.
    Pending,
    /// No more samples.
    End,
    /// This input has ended, and must start over.
    Rewind(usize),
}

/// The inputs and outputs of one call of a [`Stream`].
pub struct Io<'a> {
    ports: &'a mut [Port],
    outs: &'a mut [Chunk],
    room: usize,
}

impl<'a> Io<'a> {
    /// The inputs and outputs of one call, with room for so many samples.
    #[must_use]
    pub fn new(ports: &'a mut [Port], outs: &'a mut [Chunk], room: usize) -> Self {
        Self { ports, outs, room }
    }

    /// How many inputs there are.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.ports.len()
    }

    /// How many more samples the outputs take in this call.
    #[must_use]
    pub fn room(&self) -> usize {
        self.room
    }

    /// The next sample of an input, if one waits.
    pub fn pop(&mut self, input: usize) -> Option<Sample> {
        self.ports.get_mut(input)?.chunk.pop()
    }

    /// Moves the next sample of an input into `sample`, whose memory is reused, and returns whether there was one.
    #[inline]
    pub fn pop_into(&mut self, input: usize, sample: &mut Sample) -> bool {
        self.ports.get_mut(input).is_some_and(|port| port.chunk.pop_into(sample))
    }

    /// The samples that wait at an input, to look at or to take one by one.
    pub fn input(&mut self, input: usize) -> Option<&mut Chunk> {
        self.ports.get_mut(input).map(|port| &mut port.chunk)
    }

    /// Whether an input is empty and will stay so.
    #[must_use]
    pub fn ended(&self, input: usize) -> bool {
        self.ports.get(input).is_none_or(|port| port.ended && port.chunk.is_empty())
    }

    /// Lets `fill` add samples to the first output: as many as there is room for, and `most` at most.
    pub(crate) fn fill<T>(&mut self, most: usize, fill: impl FnOnce(&mut Output) -> T) -> Option<T> {
        let room = self.room.min(most);
        let mut out = Output::new(self.outs.first_mut()?, room);
        let filled = fill(&mut out);
        self.room -= room - out.room;
        Some(filled)
    }

    /// An input and the first output, to move samples from one to the other without a place between.
    #[inline]
    pub fn through<T>(&mut self, input: usize, give: impl FnOnce(&mut Chunk, &mut Output) -> T) -> Option<T> {
        let input = &mut self.ports.get_mut(input)?.chunk;
        let mut out = Output::new(self.outs.first_mut()?, self.room);
        let given = give(input, &mut out);
        self.room = out.room;
        Some(given)
    }

    /// Moves `sample` to the only output.
    #[inline]
    pub fn push(&mut self, sample: &mut Sample) {
        self.push_to(0, sample);
    }

    /// Moves `sample` to this output.
    pub fn push_to(&mut self, output: usize, sample: &mut Sample) {
        if let Some(out) = self.outs.get_mut(output) {
            out.push_sample(sample);
            self.room = self.room.saturating_sub(1);
        }
    }

    /// Adds a sample to the only output from its parts, without an allocation: one value for each name of `schema`.
    #[inline]
    pub fn push_row(
        &mut self,
        uid: u64,
        key: crate::Key,
        schema: &Schema,
        values: impl IntoIterator<Item = Value>,
    ) {
        if let Some(out) = self.outs.first_mut() {
            out.push(uid, key, schema, values);
            self.room = self.room.saturating_sub(1);
        }
    }

    /// Moves up to `count` samples from an input to the only output, and gives how many moved.
    pub fn forward(&mut self, input: usize, count: usize) -> usize {
        self.forward_to(0, input, count)
    }

    /// As [`forward`](Io::forward), to this output.
    pub fn forward_to(&mut self, output: usize, input: usize, count: usize) -> usize {
        let (Some(port), Some(out)) = (self.ports.get_mut(input), self.outs.get_mut(output)) else {
            return 0;
        };
        let count = count.min(self.room).min(port.chunk.len());
        out.take_from(&mut port.chunk, count);
        self.room -= count;
        count
    }

    /// As [`forward`](Io::forward), with the uids that `change` makes of theirs.
    pub fn forward_as(&mut self, input: usize, count: usize, mut change: impl FnMut(u64) -> u64) -> usize {
        let before = self.outs.first().map_or(0, Chunk::len);
        let moved = self.forward(input, count);
        if let Some(out) = self.outs.first_mut() {
            out.change_uids(before, |_, uid| change(uid));
        }
        moved
    }

    /// Moves up to `count` samples from an input to the first output, and copies of them, which share their
    /// values, to all others.
    pub fn forward_to_all(&mut self, input: usize, count: usize) -> usize {
        let (Some(port), Some((_, others))) = (self.ports.get_mut(input), self.outs.split_first_mut()) else {
            return 0;
        };
        for (uid, key, schema, values) in port.chunk.samples().take(count.min(self.room)) {
            others.iter_mut().for_each(|out| out.push(uid, key.clone(), schema, values.iter().cloned()));
        }
        self.forward(input, count)
    }
}

/// The place where a [`Source`], or a stream of [`Items`], adds its samples.
pub struct Output<'a> {
    out: &'a mut Chunk,
    room: usize,
}

impl<'a> Output<'a> {
    /// An output with room for so many samples.
    #[must_use]
    pub fn new(out: &'a mut Chunk, room: usize) -> Self {
        Self { out, room }
    }

    /// How many more samples it takes in this call.
    #[must_use]
    pub fn room(&self) -> usize {
        self.room
    }

    /// Moves `sample` here.
    pub fn push(&mut self, sample: &mut Sample) {
        self.out.push_sample(sample);
        self.room = self.room.saturating_sub(1);
    }

    /// Adds a sample from its parts, without an allocation: one value for each name of `schema`.
    #[inline]
    pub fn push_row(
        &mut self,
        uid: u64,
        key: crate::Key,
        schema: &Schema,
        values: impl IntoIterator<Item = Value>,
    ) {
        self.out.push(uid, key, schema, values);
        self.room = self.room.saturating_sub(1);
    }

    /// As [`push_row`](Output::push_row), for values that can be errors. At the first error, nothing is added.
    ///
    /// # Errors
    /// That of the value.
    #[inline]
    pub fn try_push_row<E>(
        &mut self,
        uid: u64,
        key: crate::Key,
        schema: &Schema,
        values: impl IntoIterator<Item = Result<Value, E>>,
    ) -> Result<(), E> {
        self.out.try_push(uid, key, schema, values)?;
        self.room = self.room.saturating_sub(1);
        Ok(())
    }

    /// Calls `next` with a sample to fill, until there is no room or `next` returns that it has no more. Returns
    /// whether there can be more.
    ///
    /// # Errors
    /// That of `next`; what was added before stays.
    pub fn fill_with<E>(&mut self, mut next: impl FnMut(&mut Sample) -> Result<bool, E>) -> Result<bool, E> {
        let mut sample = Sample::default();
        while self.room > 0 {
            if !next(&mut sample)? {
                return Ok(false);
            }
            self.push(&mut sample);
        }
        Ok(true)
    }

    /// The one sample that `fill` adds, for pipes that implement only `fill`; `None` if it adds none.
    ///
    /// # Errors
    /// That of `fill`.
    pub fn one<E>(fill: impl FnOnce(&mut Output) -> Result<bool, E>) -> Result<Option<Sample>, E> {
        let mut out = Chunk::new();
        fill(&mut Output::new(&mut out, 1))?;
        Ok(out.pop())
    }
}
