//! Samples that a pipe holds, saved as which of all that it took they are, and taken again after a restore.

use forebay_core::{Chunk, Error, Io, Result};

/// Taking samples again that were held or given before.
#[derive(Debug)]
pub(crate) struct Replay {
    /// The ordinal and the slot of each sample that was held, the oldest last.
    wanted: Vec<(u64, usize)>,
    /// The ordinal of the first sample that comes again, of the next, and of the first that is new.
    start: u64,
    next: u64,
    end: u64,
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

    /// How many samples were taken again so far.
    pub(crate) fn taken(&self) -> u64 {
        self.next - self.start
    }
}

/// Takes again what waits: `put` is to take each sample that was held, for its slot. Says whether all are there, and then forgets
/// the replay.
///
/// # Errors
/// `Invalid` when the input has become shorter, and those of `put`; the replay is forgotten with them.
pub(crate) fn take_again(
    replay: &mut Option<Replay>,
    io: &mut Io,
    mut put: impl FnMut(usize, &mut Chunk) -> Result<()>,
) -> Result<bool> {
    let Some(going) = replay else { return Ok(true) };
    while let Some(input) = io.input(0).filter(|input| going.next < going.end && !input.is_empty()) {
        going.next += 1;
        match going.wanted.pop_if(|(ordinal, _)| *ordinal == going.next - 1) {
            Some((_, slot)) => {
                if let Err(error) = put(slot, input) {
                    *replay = None;
                    return Err(error);
                }
            }
            None => input.advance(),
        }
    }
    if going.next < going.end && !io.ended(0) {
        return Ok(false);
    }
    let missing = going.end - going.next;
    *replay = None;
    match missing {
        0 => Ok(true),
        _ => Err(Error::invalid(format!("the input ended {missing} samples before the saved position"))),
    }
}
