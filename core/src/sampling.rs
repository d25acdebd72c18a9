//! The fields that samplers read and write, between a source with random access and the pipe that draws from it.
//!
//! A sampler is a [`Stream`](crate::Stream) whose layout has [`Access::Sampler`](crate::Access::Sampler). Its input
//! is one sample with the field [`COUNT`]. Each sample that it gives has the field [`DRAWN`]. The host replaces it
//! by the source's sample of that number.

use forebay_abi::{Key, Schema, Str, Value};

use crate::{Error, Io, Result};

/// The end of the name of the pipe that counts the samples of a source.
pub const COUNTS: &str = ".len";

/// The end of the name of the pipe that gets samples of a source by number.
pub const GETS: &str = ".get";

/// The field that tells a sampler how many samples there are: an int64, which holds the bits of counts from 2^63
/// up.
pub const COUNT: &str = "count";

/// The field with the number of a drawn sample, in the same form.
pub const DRAWN: &str = "drawn";

/// The field that a sampler adds to it. 0 means that the sample keeps its uid. For a sample that is drawn again it
/// is another number, from which the node that gets the sample makes a new uid by
/// [`Context::uid_of`](crate::Context::uid_of).
pub const AGAIN: &str = "again";

/// The option that turns off the shuffling of a sampler, or of another pipe that does more than shuffle. A run
/// without shuffling turns it off.
pub const SHUFFLE: &str = "shuffle";

/// The number of samples, if it waits at the only input.
///
/// # Errors
/// `Invalid` if no count waits: the input is not a source with random access.
pub fn take_count(io: &mut Io) -> Result<Option<u64>> {
    let Some(sample) = io.pop(0) else { return Ok(None) };
    let count = sample.get(COUNT).and_then(Value::as_i64).map(i64::cast_unsigned);
    let wrong = || {
        Error::invalid("found no count of samples, expected a source with random access before the sampler")
    };
    count.map(Some).ok_or_else(wrong)
}

/// The schema of the samples that a sampler gives.
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
