//! Samples that a pipe holds in some lists, saved as how old each is.

use forebay_core::{Chunk, Error, Io, Result, State, StateExt};

use crate::plumbing::{
    numbers,
    replay::{self, Replay},
};

/// The version of the saved position's form: for each list its length, and for each sample in it how many were taken after it.
const VERSION: u32 = 1;

/// Which samples are held, by the order in which they were taken, in some lists; and what is still to be taken again.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    /// Of each list, the samples in its order.
    lists: Vec<Vec<u64>>,
    taken: u64,
    replay: Option<Replay<Vec<(u64, Place)>>>,
}

/// A list, the place in it, and the number of the sample there.
type Place = (usize, usize, u64);

impl Lists {
    pub(crate) fn new(lists: usize) -> Self {
        Self { lists: vec![Vec::new(); lists], taken: 0, replay: None }
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.lists.len());
    }

    /// A sample was taken: its number.
    #[inline]
    pub(crate) fn take(&mut self) -> u64 {
        self.taken += 1;
        self.taken - 1
    }

    /// The samples in a list.
    #[inline]
    pub(crate) fn list(&mut self, list: usize) -> &mut Vec<u64> {
        &mut self.lists[list]
    }

    /// Takes again what waits, until all that was held is: `keep` is told its list, its place in that and its number, and
    /// takes it off the front. Says whether all are there.
    ///
    /// # Errors
    /// Those of `keep`; `Invalid` when the input ends before.
    pub(crate) fn again(
        &mut self,
        io: &mut Io,
        mut keep: impl FnMut(&mut Chunk, (usize, usize), u64) -> Result<()>,
    ) -> Result<bool> {
        let put = |(list, place, number): Place, input: &mut Chunk| keep(input, (list, place), number);
        let all = replay::take_again(&mut self.replay, io, put);
        if all.is_err() && self.replay.is_none() {
            self.clear();
        }
        all
    }

    /// Two to three bytes for each sample held, which comes again with all that came after the oldest.
    pub(crate) fn state(&self) -> State {
        self.state_with(0, std::iter::empty())
    }

    /// As [`state`](Lists::state), with more samples in one of the lists.
    pub(crate) fn state_with(&self, list: usize, more: impl Iterator<Item = u64>) -> State {
        let more: Vec<u64> = more.collect();
        let (mut saved, mut oldest) = (Vec::new(), self.taken);
        for (at, numbers) in self.lists.iter().enumerate() {
            let more = if at == list { more.as_slice() } else { &[] };
            saved.push((numbers.len() + more.len()) as u64);
            for &number in numbers.iter().chain(more) {
                oldest = oldest.min(number);
                saved.push(self.taken - 1 - number);
            }
        }
        let again = self.replay.as_ref().map_or(self.taken - oldest, |replay| replay.taken());
        let bytes = numbers::write(saved.into_iter());
        State { version: VERSION, bytes: bytes.into(), ..State::default() }.again(0, again)
    }

    /// Goes to a saved position; `fits` says of the lengths of the lists whether there can be such.
    ///
    /// # Errors
    /// `Invalid` for the state of something else.
    pub(crate) fn restore(&mut self, state: &State, fits: impl Fn(usize, usize) -> bool) -> Result<()> {
        let unreadable = || Error::invalid("a state of another pipe, or of one with other options");
        if state.version != VERSION {
            let found = state.version;
            return Err(Error::invalid(format!("found a state of version {found}, expected {VERSION}")));
        }
        let saved = numbers::read(&state.bytes).ok_or_else(unreadable)?;
        let (mut rest, mut lists) = (saved.as_slice(), Vec::new());
        for list in 0..self.lists.len() {
            let (&len, behind) = rest.split_first().ok_or_else(unreadable)?;
            let len = usize::try_from(len).ok().filter(|&len| len <= behind.len() && fits(list, len));
            let (ages, behind) = behind.split_at(len.ok_or_else(unreadable)?);
            lists.push(ages);
            rest = behind;
        }
        let oldest = lists.iter().copied().flatten().max();
        self.taken = match oldest {
            Some(oldest) => oldest.checked_add(1).ok_or_else(unreadable)?,
            None => 0,
        };
        self.lists = lists.iter().map(|ages| ages.iter().map(|age| self.taken - 1 - age).collect()).collect();
        let places = self.lists.iter().enumerate().flat_map(|(list, numbers)| {
            numbers.iter().enumerate().map(move |(place, &number)| (number, (list, place, number)))
        });
        let mut wanted: Vec<_> = places.collect();
        wanted.sort_unstable_by(|one, other| other.cmp(one));
        if !rest.is_empty() || wanted.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(unreadable());
        }
        self.replay = (!wanted.is_empty()).then(|| Replay::from_the_first(wanted, self.taken));
        Ok(())
    }
}
