//! `shuffle`: random order within a buffer.
//!
//! ```toml
//! [shuffle]
//! page = "order"
//! examples = ['forebay head -n 3 "range 1000 | shuffle 100 initial=10"']
//! cases = [
//!     "range N | shuffle 10",
//!     "range N | shuffle 10 initial=3",
//! ]
//! ```

use forebay_core::{
    Chunk, Context, DataPipe, Error, Io, Length, PipeInfo, PipeOrder, Result, Sample, State, StateExt, Step,
    Stream, options,
};

use crate::plumbing::{
    numbers,
    replay::{self, Replay},
};

options! {
    /// Options of `shuffle`.
    pub struct ShuffleOptions {
        /// Samples in the buffer. 1 keeps the order; as many as there are samples makes every order equally likely.
        size: usize = required, in 1..=1_000_000_000;
        /// Samples in the buffer before the first one is given; null for `size`. After that the buffer takes two
        /// for each that it gives, until it is full.
        initial: Option<usize> = null, in 1..=1_000_000_000;
    }
}

/// Fills a buffer, then gives a random sample of it for each that comes in.
///
/// With `initial` it begins before the buffer is full, which grows by one with each sample given.
///
/// The draws depend on seed, epoch, pass, node and the number of the output, never on how many
/// samples wait or how much room there is. A saved position holds how old each sample in the buffer
/// is, two to three bytes for each, and has the input given again from the oldest on.
#[derive(Debug)]
pub struct Shuffle {
    size: usize,
    initial: usize,
    /// The samples held come first; the rest keep their memory for the next ones.
    buffer: Vec<Sample>,
    /// Which of all samples taken each held one is, counted from 0.
    ordinals: Vec<u64>,
    drawn: u64,
    /// After a restore: what is still to be taken again.
    replay: Option<Replay>,
}

/// The version of the saved position's form: the numbers of [`numbers::write`], which are the size of the buffer, how many
/// samples were drawn, and for each slot how many samples were taken after the one it holds.
const VERSION: u32 = 1;

impl DataPipe for Shuffle {
    const INFO: PipeInfo = PipeInfo {
        name: "shuffle",
        summary: "Random order within a buffer",
        also: &["shuffler"],
        order: PipeOrder { shuffles: true, ..PipeOrder::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = ShuffleOptions;

    fn new(options: ShuffleOptions) -> Result<Self> {
        let ShuffleOptions { size, initial } = options;
        let initial = initial.unwrap_or(size);
        if initial > size {
            let message = format!("found {initial}, expected no more than `size`, which is {size}");
            return Err(Error::invalid(message).context("option", "initial"));
        }
        Ok(Self { size, initial, buffer: Vec::new(), ordinals: Vec::new(), drawn: 0, replay: None })
    }
}

impl Shuffle {
    /// Takes samples until the buffer is as full as it is to be before the next draw, or none waits; says whether it is.
    fn refill(&mut self, io: &mut Io) -> bool {
        let grown = usize::try_from(self.drawn).unwrap_or(usize::MAX);
        let wanted = self.size.min(self.initial.saturating_add(grown));
        while self.ordinals.len() < wanted {
            let held = self.ordinals.len();
            if held == self.buffer.len() {
                self.buffer.push(Sample::default());
            }
            if !io.pop_into(0, &mut self.buffer[held]) {
                return false;
            }
            self.ordinals.push(self.drawn + held as u64);
        }
        true
    }
}

impl Stream for Shuffle {
    fn reset(&mut self, _: &Context) -> Result<()> {
        self.buffer.clear();
        self.ordinals.clear();
        (self.drawn, self.replay) = (0, None);
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, cx: &Context) -> Result<Step> {
        let Self { replay, buffer, ordinals, .. } = self;
        let put = |slot: usize, input: &mut Chunk| {
            input.pop_into(&mut buffer[slot]);
            Ok(())
        };
        if !replay::take_again(replay, io, put).inspect_err(|_| ordinals.clear())? {
            return Ok(Step::NeedInput(0));
        }
        while io.room() > 0 {
            if !self.refill(io) && !io.ended(0) {
                return Ok(Step::NeedInput(0));
            }
            let held = self.ordinals.len();
            if held == 0 {
                return Ok(Step::End);
            }
            let slot = cx.rng(self.drawn).below(held as u64) as usize;
            self.drawn += 1;
            io.push(&mut self.buffer[slot]);
            self.buffer.swap(slot, held - 1);
            self.ordinals.swap_remove(slot);
        }
        Ok(Step::Ready)
    }

    fn length(&self, inputs: &[Option<Length>], _: &Context) -> Option<Length> {
        inputs[0]
    }

    fn state(&self) -> Result<State> {
        let taken = self.drawn + self.ordinals.len() as u64;
        let ages = self.ordinals.iter().map(|ordinal| taken - 1 - ordinal);
        let bytes = numbers::write([self.size as u64, self.drawn].into_iter().chain(ages));
        let again = match &self.replay {
            Some(replay) => replay.taken(),
            None => self.ordinals.iter().min().map_or(0, |oldest| taken - oldest),
        };
        Ok(State { version: VERSION, bytes: bytes.into(), ..State::default() }.again(0, again))
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        let unreadable = || Error::invalid("unreadable state of a shuffle");
        if state.version != VERSION {
            let found = state.version;
            return Err(Error::invalid(format!("found a state of version {found}, expected {VERSION}")));
        }
        let saved = numbers::read(&state.bytes).ok_or_else(unreadable)?;
        let [size, drawn, ages @ ..] = saved.as_slice() else { return Err(unreadable()) };
        if *size != self.size as u64 {
            let expected = self.size;
            return Err(Error::invalid(format!(
                "found the state of a buffer of {size}, expected {expected}"
            ))
            .context("option", "size"));
        }
        let end = drawn.checked_add(ages.len() as u64).ok_or_else(unreadable)?;
        let ordinals =
            ages.iter().map(|age| end.checked_sub(1)?.checked_sub(*age)).collect::<Option<Vec<_>>>();
        let ordinals = ordinals.filter(|ordinals| ordinals.len() <= self.size).ok_or_else(unreadable)?;
        self.replay = Replay::new(&ordinals, end).ok_or_else(unreadable)?;
        self.buffer.resize_with(ordinals.len(), Sample::default);
        (self.drawn, self.ordinals) = (*drawn, ordinals);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::{ErrorKind, Options, random::Rng};

    use super::*;
    use crate::testing::{Drive, Host, check, check_resume, ints, numbers, small_host};

    fn shuffle(size: usize) -> Shuffle {
        shuffle_from(size, None)
    }

    fn shuffle_from(size: usize, initial: Option<usize>) -> Shuffle {
        Shuffle::new(ShuffleOptions { size, initial }).unwrap()
    }

    fn order(host: &Host, size: usize, count: usize) -> Vec<i64> {
        let input = numbers(count);
        let mut drive = Drive::with_host(shuffle(size), &input, 7, host);
        drive.run(5, usize::MAX).unwrap();
        ints(drive.out(), "value")
    }

    /// What the pipe is defined to give, written out plainly.
    fn reference(host: &Host, size: usize, initial: usize, mut input: Vec<i64>) -> Vec<i64> {
        let mut rest = input.split_off(initial.min(input.len())).into_iter();
        let mut out = Vec::new();
        while !input.is_empty() {
            let slot = host.context().rng(out.len() as u64).below(input.len() as u64);
            out.push(input.swap_remove(slot as usize));
            let more = if input.len() + 1 < size { 2 } else { 1 };
            input.extend(rest.by_ref().take(more));
        }
        out
    }

    #[test]
    fn equals_the_definition_whatever_waits() {
        let mut rng = Rng::new(5, 0);
        for _ in 0..30 {
            let (count, size) = (rng.below(200) as usize, 1 + rng.below(60) as usize);
            let expected = reference(&small_host(), size, size, (0..count as i64).collect());
            let out = check(|| shuffle(size), &numbers(count));
            assert_eq!(ints(&out, "value"), expected);
            let initial = 1 + rng.below(size as u64) as usize;
            let early = check(|| shuffle_from(size, Some(initial)), &numbers(count));
            let expected = reference(&small_host(), size, initial, (0..count as i64).collect());
            assert_eq!(ints(&early, "value"), expected);
            assert!(out.iter().all(|sample| sample.uid() == sample.key().index), "samples stay whole");
        }
    }

    #[test]
    fn one_slot_keeps_the_order() {
        assert_eq!(order(&small_host(), 1, 50), (0..50).collect::<Vec<_>>());
    }

    #[test]
    fn with_initial_it_begins_before_the_buffer_is_full() {
        let input = numbers(100);
        for (initial, given, fed) in
            [(Some(3), 1, 3), (Some(3), 5, 11), (Some(3), 8, 17), (Some(3), 9, 18), (None, 1, 10)]
        {
            let mut drive = Drive::new(shuffle_from(10, initial), &input, 1);
            drive.run(1, given).unwrap();
            assert_eq!(drive.fed(), fed, "{given} of initial {initial:?}");
        }
        for (size, initial, count) in [(4, 1, 12), (5, 2, 20), (7, 3, 7), (9, 5, 3), (3, 3, 6), (4, 2, 0)] {
            check_resume(|| shuffle_from(size, Some(initial)), &numbers(count));
        }
        let error = Shuffle::new(ShuffleOptions { size: 3, initial: Some(4) }).unwrap_err();
        assert_eq!(error.get("option"), Some("initial"));
        let error = ShuffleOptions::parse(r#"{"size": 3, "initial": 0}"#).unwrap_err();
        assert_eq!(error.get("option"), Some("initial"));
    }

    #[test]
    fn no_slot_is_refused_b071() {
        assert!(ShuffleOptions::parse(r#"{"size": 0}"#).is_err());
        assert!(ShuffleOptions::parse(r#"{"size": -3}"#).is_err());
    }

    #[test]
    fn seed_epoch_and_pass_decide_b068() {
        let host = |seed, epoch, pass| small_host().seed(seed).epoch(epoch).pass(pass);
        let base = order(&host(1, 0, 0), 10, 20);
        assert_eq!(base, order(&host(1, 0, 0), 10, 20));
        for other in [host(2, 0, 0), host(1, 1, 0), host(1, 0, 1)] {
            assert_ne!(base, order(&other, 10, 20));
        }
    }

    #[test]
    fn a_buffer_for_all_gives_every_order_alike() {
        let mut counts = std::collections::HashMap::new();
        let runs = 24_000;
        for epoch in 0..runs {
            *counts.entry(order(&small_host().epoch(epoch), 4, 4)).or_insert(0_u32) += 1;
        }
        assert_eq!(counts.len(), 24);
        let expected = runs as f64 / 24.0;
        let chi: f64 = counts.values().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
        assert!(chi < 49.73, "chi-square with 23 degrees of freedom is {chi}, above the 99.9 % bound");
    }

    #[test]
    fn starts_over_after_a_reset() {
        let host = small_host();
        let input = numbers(30);
        let mut drive = Drive::with_host(shuffle(8), &input, 7, &host);
        drive.run(5, 11).unwrap();
        let mut pipe = drive.into_pipe();
        pipe.reset(&host.context()).unwrap();
        let mut again = Drive::with_host(pipe, &input, 7, &host);
        again.run(5, usize::MAX).unwrap();
        assert_eq!(ints(again.out(), "value"), order(&host, 8, 30));
    }

    #[test]
    fn goes_on_from_every_moment_b069() {
        for (size, count) in [(1, 4), (3, 2), (4, 12), (5, 20), (7, 7), (4, 0)] {
            check_resume(|| shuffle(size), &numbers(count));
        }
    }

    #[test]
    fn a_position_is_small_and_asks_again_from_the_oldest_on() {
        let input = numbers(20_000);
        let mut drive = Drive::new(shuffle(1000), &input, 64);
        drive.run(64, 10_000).unwrap();
        let state = drive.state().unwrap();
        assert!(state.bytes.len() < 2300, "{} bytes", state.bytes.len());
        let given: std::collections::HashSet<_> = ints(drive.out(), "value").into_iter().collect();
        let oldest = (0..).find(|value| !given.contains(value)).unwrap();
        assert_eq!(state.again[0], drive.taken(0) as u64 - oldest as u64);
    }

    #[test]
    fn states_of_others_are_refused_b071() {
        let host = small_host();
        let input = numbers(20);
        let mut drive = Drive::new(shuffle(5), &input, 1);
        drive.run(1, 3).unwrap();
        let state = drive.state().unwrap();
        let error = shuffle(10).restore(&state, &host.context()).unwrap_err();
        assert_eq!((error.kind(), error.get("option")), (ErrorKind::Invalid, Some("size")));
        let with = |numbers: &[u64]| State {
            version: VERSION,
            bytes: numbers::write(numbers.iter().copied()).into(),
            ..State::default()
        };
        assert!(shuffle(5).restore(&with(&[5, 3, 0, 1, 2]), &host.context()).is_ok());
        for wrong in [&[5][..], &[5, 3, 1, 1], &[5, 0, 1], &[5, u64::MAX, 0], &[5, 9, 0, 1, 2, 3, 4, 5]] {
            assert!(shuffle(5).restore(&with(wrong), &host.context()).is_err(), "{wrong:?}");
        }
        for bytes in [vec![0x80], vec![0xff; 10], vec![]] {
            let state = State { version: VERSION, bytes: bytes.into(), ..State::default() };
            assert!(shuffle(5).restore(&state, &host.context()).is_err());
        }
        assert!(shuffle(5).restore(&State { version: 9, ..state }, &host.context()).is_err());
    }

    #[test]
    fn an_input_that_became_shorter_is_an_error() {
        let input = numbers(20);
        let mut drive = Drive::new(shuffle(5), &input, 1);
        drive.run(1, 9).unwrap();
        let host = small_host();
        let mut pipe = shuffle(5);
        let state = drive.state().unwrap();
        let mut other = Drive::new(shuffle(5), &input[..2], 1);
        pipe.reset(&host.context()).unwrap();
        pipe.restore(&state, &host.context()).unwrap();
        other.replace(pipe);
        let error = other.run(1, 100).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert_eq!(other.step(1).unwrap(), Step::End);
    }
}
