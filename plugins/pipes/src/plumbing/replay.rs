//! Taking samples again, after a restore, that a pipe held when it was saved: the one loop for all pipes that hold some.
//!
//! Which they are each pipe saves in its own way: `lists` those of several lists, as how old each is; `held` those that wait for others, as
//! runs; `shuffle`, `sort` and `pack` by the slot or the row that each is in.

use forebay_core::{Chunk, Error, Io, Result};

/// Which of the samples that come again were held.
pub(crate) trait Wanted {
    /// Where one of them belongs.
    type Place;

    /// The place of the sample with this ordinal, if it was held. Asked for each, in their order.
    fn take(&mut self, ordinal: u64) -> Option<Self::Place>;
}

/// Each with its ordinal, the oldest last.
impl<T> Wanted for Vec<(u64, T)> {
    type Place = T;

    fn take(&mut self, ordinal: u64) -> Option<T> {
        self.pop_if(|(wanted, _)| *wanted == ordinal).map(|(_, place)| place)
    }
}

/// Taking samples again that were held or given before.
#[derive(Debug)]
pub(crate) struct Replay<W = Vec<(u64, usize)>> {
    wanted: W,
    /// The ordinal of the first sample that comes again, of the next, and of the first that is new.
    start: u64,
    next: u64,
    end: u64,
}

/// How taking samples again goes on.
pub(crate) enum Next<T> {
    /// The foremost sample is one that was held: it is to be taken, and belongs here.
    Held(T),
    /// The input has no more for now.
    Wait,
    /// All are there.
    Done,
}

impl Replay {
    /// For samples with these ordinals, one for each slot, of `end` that were taken. None within, where none was held; none at all, where
    /// an ordinal is twice or too large.
    pub(crate) fn new(ordinals: &[u64], end: u64) -> Option<Option<Self>> {
        let mut wanted: Vec<_> = ordinals.iter().copied().zip(0..).collect();
        wanted.sort_unstable_by(|one, two| two.cmp(one));
        let apart = wanted.windows(2).all(|pair| pair[0].0 != pair[1].0);
        let within = wanted.first().is_none_or(|&(newest, _)| newest < end);
        let oldest = wanted.last().map(|&(ordinal, _)| ordinal);
        (apart && within).then(|| oldest.map(|start| Self { start, next: start, end, wanted }))
    }
}

impl<W: Wanted> Replay<W> {
    /// For samples that are counted from the first that comes again, of `end` in all.
    pub(crate) fn from_the_first(wanted: W, end: u64) -> Self {
        Self { wanted, start: 0, next: 0, end }
    }

    /// How many samples were taken again so far.
    pub(crate) fn taken(&self) -> u64 {
        self.next - self.start
    }

    /// The ordinal of the first sample that is new.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Those that were held and have not come.
    pub(crate) fn wanted(&self) -> &W {
        &self.wanted
    }
}

/// Goes on to the next sample that was held, past those that were not. The replay is forgotten at its end.
///
/// # Errors
/// `Invalid` when the input has become shorter; the replay is forgotten with it.
pub(crate) fn next<W: Wanted>(
    replay: &mut Option<Replay<W>>,
    io: &mut Io,
    input: usize,
) -> Result<Next<W::Place>> {
    let Some(going) = replay else { return Ok(Next::Done) };
    while let Some(chunk) = io.input(input).filter(|chunk| going.next < going.end && !chunk.is_empty()) {
        going.next += 1;
        if let Some(place) = going.wanted.take(going.next - 1) {
            return Ok(Next::Held(place));
        }
        chunk.advance();
    }
    if going.next < going.end && !io.ended(input) {
        return Ok(Next::Wait);
    }
    let missing = going.end - going.next;
    *replay = None;
    match missing {
        0 => Ok(Next::Done),
        _ => Err(Error::invalid(format!("the input ended {missing} samples before the saved position"))),
    }
}

/// Takes again what waits at the only input: `put` is to take each sample that was held, for its place. Says whether all are there.
///
/// # Errors
/// Those of [`next`] and of `put`, after which a later call goes on.
pub(crate) fn take_again<W: Wanted>(
    replay: &mut Option<Replay<W>>,
    io: &mut Io,
    mut put: impl FnMut(W::Place, &mut Chunk) -> Result<()>,
) -> Result<bool> {
    loop {
        match (next(replay, io, 0)?, io.input(0)) {
            (Next::Held(place), Some(input)) => put(place, input)?,
            (Next::Done, _) => return Ok(true),
            _ => return Ok(false),
        }
    }
}
