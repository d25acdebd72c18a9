//! What a sampler is told and what it gives: the words between a source with random access and who draws from it.
//!
//! A sampler is a [`Stream`](crate::Stream) whose descriptor says [`samples`](crate::PipeInfo::samples). Its input is one sample
//! with the field [`COUNT`]; each sample that it gives has the field [`DRAWN`]. The host puts the source's sample of
//! that number in its place.

use forebay_abi::{Key, Schema, Str, Value};

use crate::{Error, Io, Result};

/// What the name of the pipe that counts the samples of a source ends in.
pub const COUNTS: &str = ".len";

/// What the name of the pipe that gets samples of a source by number ends in.
pub const GETS: &str = ".get";

/// The field that tells a sampler how many samples there are, an int64 (of a count from 2^63 up its bits).
pub const COUNT: &str = "count";

/// The field of what a sampler gives: the number of a sample, in the same way.
pub const DRAWN: &str = "drawn";

/// The field that a sampler gives beside it. 0 means that the sample keeps its uid. With any other number,
/// for a sample that is drawn again, the node that gets it makes it a new uid by
/// [`Context::uid_of`](crate::Context::uid_of).
pub const AGAIN: &str = "again";

/// The switch of a sampler, or another pipe that does more than that, by which it shuffles: where a run is to shuffle nothing, it is off.
pub const SHUFFLE: &str = "shuffle";

/// How many samples there are, if that waits at the only input.
///
/// # Errors
/// `Invalid`, when what waits is no count: the input is no source with random access.
pub fn take_count(io: &mut Io) -> Result<Option<u64>> {
    let Some(sample) = io.pop(0) else { return Ok(None) };
    let count = sample.get(COUNT).and_then(Value::as_i64).map(i64::cast_unsigned);
    let wrong =
        || Error::invalid("a sampler stands behind a source with random access, and is told its count");
    count.map(Some).ok_or_else(wrong)
}

/// The schema of what a sampler gives.
#[must_use]
pub fn drawn() -> Schema {
    Schema::new([DRAWN, AGAIN])
}

/// Adds what is drawn at a place, which is its uid: a sample's number, and what tells it from the same sample drawn before.
#[inline]
pub fn push(io: &mut Io, schema: &Schema, place: u64, (number, again): (u64, u64)) {
    let key = Key { origin: Str::from_static("sampler"), index: place, ..Key::default() };
    io.push_row(place, key, schema, [number, again].map(|word| word.cast_signed().into()));
}
