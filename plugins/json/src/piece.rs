//! A piece of a file on its way from the pipe that cuts to the one that reads: the field `block`, and the piece's bytes
//! where the file's are at hand.

use forebay_core::{
    Blob, Buffer, Context, Error, Others, Result, Sample, Schema, State, StateExt as _, Str, Value, View,
    scheme_of,
};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::{rows::Whose, source::Source};

/// Where a piece lies in its file: `from`, `to`, and the `uid` of the file's sample, exclusive-or the piece's own: so the rows of a piece
/// that is given again, with another uid, have others too.
pub(crate) const BLOCK: &str = "block";
const BYTES: &str = "bytes";
const PATH: &str = "path";

/// The version of a saved place.
pub(crate) const STATE: u32 = 1;

/// A byte to go on at, to be saved.
pub(crate) fn save(at: u64) -> Result<State> {
    State::json(STATE, &at)
}

/// The byte that was saved, in what has so many.
///
/// # Errors
/// `Invalid` when it does not lie there.
pub(crate) fn saved(state: &State, len: u64) -> Result<u64> {
    let at = state.parse(STATE)?;
    if at > len {
        return Err(Error::invalid(format!("the saved place is byte {at} of {len}")));
    }
    Ok(at)
}

/// Cuts the sample of one file into those of its pieces.
pub(crate) struct Cutter {
    sample: Sample,
    schema: Schema,
    values: Vec<Value>,
    /// Whether pieces have the bytes; else they name the file.
    holds: bool,
    place: Schema,
}

impl Cutter {
    /// For the file in `source`: a range of one that is packed is nothing that could be read again.
    pub(crate) fn new(sample: Sample, source: &Source) -> Self {
        let holds = source.is_packed() || matches!(sample.get(BYTES).map(Value::view), Some(View::Bytes(_)));
        let others = sample.fields().filter(|(name, _)| !matches!(name.as_str(), BYTES | BLOCK));
        let (mut names, values): (Vec<_>, Vec<_>) =
            others.map(|(name, value)| (name.clone(), value.clone())).unzip();
        names.extend(holds.then(|| Str::from_static(BYTES)));
        names.push(Str::from_static(BLOCK));
        let place = Schema::new(["from", "to", "uid", "more"].map(Str::from_static));
        Self { schema: Schema::new(names), values, sample, holds, place }
    }

    /// The file, for errors.
    pub(crate) fn origin(&self) -> &Str {
        &self.sample.key().origin
    }

    /// The piece with these bytes; `more` is what its reader must know of the file beside. Its key is the file's: that of the
    /// byte where it starts is the key of its first row.
    pub(crate) fn piece(
        &self,
        source: &mut Source,
        (from, to): (u64, u64),
        more: Value,
        cx: &Context<'_>,
    ) -> Result<Sample> {
        let bytes = if self.holds { Some(Value::from(source.read(from, to, cx)?)) } else { None };
        let uid = xxh3_64_with_seed(&from.to_le_bytes(), self.sample.uid());
        let place = vec![from.into(), to.into(), (self.sample.uid() ^ uid).into(), more];
        let block = Value::with_schema(self.place.clone(), place);
        let values = self.values.iter().cloned().chain(bytes).chain([block]).collect();
        Ok(Sample::with_schema(uid, self.sample.key().clone(), self.schema.clone(), values))
    }
}

/// A piece, or a whole file, to be read.
pub(crate) struct Piece {
    pub(crate) bytes: Buffer,
    /// Where in the file it starts.
    pub(crate) from: u64,
    pub(crate) whose: Whose,
    pub(crate) more: Value,
}

impl Piece {
    /// What the rows of a sample that is a whole file have in common.
    pub(crate) fn whose(sample: &Sample) -> Whose {
        let fields = Others::of(sample, &[BLOCK]).fields().to_vec();
        let origin = own_count(sample.key().origin.clone().into_buffer());
        Whose { origin: Str::from_utf8(origin).unwrap_or_default(), uid: sample.uid(), fields }
    }

    /// What a sample with or without a field `block` is about.
    pub(crate) fn of(sample: &Sample, cx: &Context<'_>) -> Result<Self> {
        let whole = Self::whose(sample);
        let Some(View::Struct(block)) = sample.get(BLOCK).map(Value::view) else {
            let blob = Blob::of(sample, cx)?;
            let bytes = own_count(blob.whole(cx.limits().bytes)?);
            return Ok(Self { bytes, from: 0, whose: whole, more: Value::NULL });
        };
        let number = |name| match block.get(name).map(Value::view) {
            Some(View::UInt(number)) => Ok(number),
            _ => Err(Error::invalid(format!("expected a field `{BLOCK}` with the number `{name}`"))),
        };
        let (from, to) = (number("from")?, number("to")?);
        let bytes = match (sample.get(BYTES).map(Value::view), sample.get(PATH).map(Value::view)) {
            (Some(View::Bytes(bytes)), _) => bytes.clone(),
            (_, Some(View::Str(path))) => fetch(path, from, to, cx)?,
            _ => {
                return Err(Error::invalid("expected a piece with a field `bytes` or `path`, found neither"));
            }
        };
        let more = block.get("more").cloned().unwrap_or_default();
        Ok(Self {
            bytes: own_count(bytes),
            from,
            whose: Whose { uid: number("uid")? ^ sample.uid(), ..whole },
            more,
        })
    }
}

/// The bytes of a piece, read anew.
fn fetch(path: &str, from: u64, to: u64, cx: &Context<'_>) -> Result<Buffer> {
    let len = to.saturating_sub(from);
    let most = cx.limits().bytes;
    if len > most {
        return Err(Error::limit(format!("a piece of {len} bytes, at most {most} are taken into memory")));
    }
    let bytes = cx.store(scheme_of(path))?.read(path, from, len)?;
    if bytes.len() as u64 != len {
        let found = bytes.len();
        return Err(Error::corrupt(format!(
            "the file has {found} bytes from byte {from} on, expected {len}"
        ))
        .context("file", path));
    }
    Ok(bytes)
}

/// The same bytes with a count of references of their own, so that threads at work on pieces of one file do not wait for
/// each other's counting.
fn own_count(bytes: Buffer) -> Buffer {
    if bytes.is_empty() { Buffer::EMPTY } else { Buffer::from_owner(bytes) }
}
