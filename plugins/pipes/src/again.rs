//! Samples that a pipe holds out of order: how old each is, and getting them again.

use forebay_core::{Chunk, Error, Io, Result, State, StateExt};

use crate::numbers;

/// The version of the saved position's form: for each list its length, and for each sample in it how many were taken after it.
const VERSION: u32 = 1;

/// Which samples are held, by the order in which they were taken, in some lists; and what is still to be taken again.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// Of each list, the samples in its order.
    lists: Vec<Vec<u64>>,
    taken: u64,
    replay: Option<Replay>,
}

#[derive(Debug)]
struct Replay {
    /// The number of each sample that was held, with its list and the place in it, the oldest last.
    wanted: Vec<(u64, (usize, usize))>,
    /// The next sample that comes again; the first, which is the oldest, is number 0.
    next: u64,
}

impl Held {
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
        let Some(replay) = &mut self.replay else { return Ok(true) };
        while let Some(input) = io.input(0).filter(|input| replay.next < self.taken && !input.is_empty()) {
            let number = replay.next;
            replay.next += 1;
            match replay.wanted.last() {
                Some(&(wanted, place)) if wanted == number => {
                    replay.wanted.pop();
                    keep(input, place, number)?;
                }
                _ => input.advance(),
            }
        }
        if replay.next < self.taken && !io.ended(0) {
            return Ok(false);
        }
        let missing = self.taken - replay.next;
        self.replay = None;
        if missing > 0 {
            self.clear();
            return Err(Error::invalid(format!(
                "the input ended {missing} samples before the saved position"
            )));
        }
        Ok(true)
    }

    /// Two to three bytes for each sample held, which comes again with all that came after the oldest.
    pub(crate) fn state(&self) -> State {
        self.state_with(0, std::iter::empty())
    }

    /// As [`state`](Held::state), with more samples in one of the lists.
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
        let again = self.replay.as_ref().map_or(self.taken - oldest, |replay| replay.next);
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
            numbers.iter().enumerate().map(move |(place, &number)| (number, (list, place)))
        });
        let mut wanted: Vec<_> = places.collect();
        wanted.sort_unstable_by(|one, other| other.cmp(one));
        if !rest.is_empty() || wanted.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(unreadable());
        }
        self.replay = (!wanted.is_empty()).then_some(Replay { wanted, next: 0 });
        Ok(())
    }
}
