//! `untar`: the bytes of a shard to its samples, each field a slice of the shard.

use std::{borrow::Cow, ops::Range};

use forebay_core::{
    Buffer, Context, DataPipe, Error, FlatMap, Items, Key, PipeInfo, Result, Sample, Schema, State,
    StateExt as _, Str, Value, View, options,
};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::{
    group::{field_name, split_name},
    header::Kind,
    walk::{Member, Place},
    window::{Window, Windowed},
};

/// More fields than this in one sample are refused: then the names are not meant to be grouped.
const FIELDS_LIMIT: usize = 1024;
/// The version of a saved position.
const STATE: u32 = 1;
/// How many lists of field names a shard's reader remembers.
const SCHEMAS_KEPT: usize = 64;

options! {
    /// Options of `untar`.
    pub struct UntarOptions {
        /// Which members make a sample: `webdataset` joins neighbours that share their name up to the first dot,
        /// `none` gives each file as a sample of its own.
        group: String = "webdataset", one_of ["webdataset", "none"];
    }
}

/// Which members make a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Neighbours that share their name up to the first dot of its last part.
    WebDataset,
    /// Each file by itself, in the fields `name` and `bytes`.
    None,
}

/// Turns each sample whose field `bytes` is a whole tar archive into the samples in it.
pub struct Untar {
    group: Group,
}

impl DataPipe for Untar {
    const INFO: PipeInfo =
        PipeInfo { name: "untar", summary: "Samples out of tar shards, without a copy", ..PipeInfo::DEFAULT };
    type Options = UntarOptions;

    fn new(options: UntarOptions) -> Result<Self> {
        let group = if options.group == "none" { Group::None } else { Group::WebDataset };
        Ok(Self { group })
    }
}

impl FlatMap for Untar {
    type Items = UntarItems;

    fn open(&self, sample: Sample, _: &Context) -> Result<UntarItems> {
        let bytes = match sample.get("bytes").map(Value::view) {
            Some(View::Bytes(bytes)) => bytes.clone(),
            found => {
                let found = found.map_or("none".to_owned(), |view| format!("{view:?}"));
                return Err(Error::invalid(format!(
                    "expected a field `bytes` with an archive's bytes, found {found}"
                )));
            }
        };
        Ok(samples(bytes, sample.key().origin.clone(), sample.uid(), self.group))
    }
}

/// The samples of the archive in `shard`, which was read from `origin`. Each field is a slice of `shard`.
///
/// A sample's uid is a hash of `uid`, which is the shard's, and of the byte where its first member starts.
#[must_use]
pub fn samples(shard: Buffer, origin: Str, uid: u64, group: Group) -> UntarItems {
    UntarItems {
        window: Window::new(&shard),
        shard,
        origin,
        uid,
        group,
        place: Place::default(),
        held: None,
        fields: Vec::new(),
        names: Vec::new(),
        schemas: Vec::new(),
        index: 0,
    }
}

/// The samples of one archive, in its order; made by [`samples`].
pub struct UntarItems {
    shard: Buffer,
    window: Window,
    origin: Str,
    uid: u64,
    group: Group,
    place: Place,
    /// The member that begins the next sample: it had to be read to see where the last one ends.
    held: Option<Part>,
    /// The members of the sample being collected; empty between calls, kept for its memory.
    fields: Vec<Part>,
    /// The names of those members and of the one held, one after the other.
    names: Vec<u8>,
    schemas: Vec<Schema>,
    index: u64,
}

/// A member of a sample: where its name lies in [`UntarItems::names`], and its contents.
struct Part {
    /// The name is a key, a dot and the field.
    name: Range<usize>,
    /// Where the name lies in the shard; nowhere, when it was read beside it or put together.
    place: Option<usize>,
    key_len: usize,
    data: Buffer,
    offset: u64,
    failed: Option<Error>,
}

impl Part {
    fn key<'a>(&self, names: &'a [u8]) -> &'a [u8] {
        names.get(self.name.start..self.name.start + self.key_len).unwrap_or_default()
    }

    fn field<'a>(&self, names: &'a [u8]) -> Cow<'a, str> {
        let start = self.name.start + self.key_len + 1;
        field_name(names.get(start..self.name.end).unwrap_or_default())
    }

    fn name<'a>(&self, names: &'a [u8]) -> Cow<'a, str> {
        String::from_utf8_lossy(names.get(self.name.clone()).unwrap_or_default())
    }
}

impl Items for UntarItems {
    fn next(&mut self, _: &Context) -> Result<Option<Sample>> {
        self.next_sample()
    }

    /// Where the first member of the next sample starts, and the sample's number.
    fn state(&self) -> Result<State> {
        let at = self.held.as_ref().map(|held| held.offset).or_else(|| self.place.at());
        match at.filter(|_| self.place.is_plain()) {
            Some(at) => State::json(STATE, &(at, self.index)),
            // Global headers hold for all that follows, so what came before matters.
            None => Err(Error::unsupported("the archive is read again from its start")),
        }
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        let (at, index) = state.parse::<(u64, u64)>(STATE)?;
        if at > self.shard.len() as u64 {
            let len = self.shard.len();
            return Err(Error::invalid(format!("the saved place is byte {at} of {len}"))
                .context("file", &self.origin));
        }
        (self.place, self.index) = (Place::going_on(at), index);
        Ok(())
    }
}

impl Iterator for UntarItems {
    type Item = Result<Sample>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_sample().transpose()
    }
}

impl UntarItems {
    /// The next sample; after an error, the one after the sample that has it.
    fn next_sample(&mut self) -> Result<Option<Sample>> {
        self.fields.clear();
        let found = match self.group {
            Group::WebDataset => self.collect(),
            Group::None => self.single(),
        };
        found.map_err(|error| error.context("file", &self.origin))
    }

    fn single(&mut self) -> Result<Option<Sample>> {
        let shard = self.shard.clone();
        while let Some(member) = next_member(&mut self.place, &shard, &mut self.window)? {
            if member.kind == Kind::Sparse {
                return Err(member.sparse_error());
            }
            if member.kind == Kind::File {
                let (name, offset) = (text(share(&shard, &member.name)), member.offset);
                let bytes = contents(&shard, &member);
                let schema = schema_of(&mut self.schemas, &["name".into(), "bytes".into()]);
                let values = vec![Value::from(name.clone()), Value::from(bytes)];
                return Ok(Some(self.sample(offset, name, schema, values)));
            }
        }
        Ok(None)
    }

    /// Collects members until one of another sample comes.
    fn collect(&mut self) -> Result<Option<Sample>> {
        let mut failed = None;
        let gone = self.held.as_ref().map_or(self.names.len(), |held| held.name.start);
        self.names.drain(..gone);
        if let Some(mut first) = self.held.take() {
            first.name = 0..self.names.len();
            failed = first.failed.take();
            self.fields.push(first);
        }
        loop {
            // A damaged archive ends here: the sample being collected may lack members, so it is not given.
            let Some(mut part) = self.next_part()? else { break };
            match self.fields.first() {
                Some(first) if first.key(&self.names) != part.key(&self.names) => {
                    self.held = Some(part);
                    break;
                }
                _ => {
                    let error = part.failed.take().or_else(|| self.clash(&part));
                    if failed.is_none() {
                        failed = error;
                        self.fields.push(part);
                    } else {
                        self.names.truncate(part.name.start);
                    }
                }
            }
        }
        match failed {
            Some(error) => Err(error),
            None => Ok(self.finish()),
        }
    }

    /// The next member that belongs to a sample.
    fn next_part(&mut self) -> Result<Option<Part>> {
        while let Some(member) = next_member(&mut self.place, &self.shard, &mut self.window)? {
            if !matches!(member.kind, Kind::File | Kind::Sparse) {
                continue;
            }
            let Some((key, _)) = split_name(&member.name) else { continue };
            let start = self.names.len();
            self.names.extend_from_slice(&member.name);
            return Ok(Some(Part {
                key_len: key.len(),
                name: start..self.names.len(),
                place: place_in(&self.shard, &member.name),
                data: contents(&self.shard, &member),
                offset: member.offset,
                failed: (member.kind == Kind::Sparse).then(|| member.sparse_error()),
            }));
        }
        Ok(None)
    }

    /// Why `part` cannot join the sample being collected.
    fn clash(&self, part: &Part) -> Option<Error> {
        let field = part.field(&self.names);
        if let Some(other) = self.fields.iter().find(|other| other.field(&self.names) == field) {
            let (one, two) = (other.name(&self.names), part.name(&self.names));
            let error = format!("two members of one sample give the field `{field}`: {one} and {two}");
            return Some(Error::corrupt(error).context("member", two).context("byte", part.offset));
        }
        (self.fields.len() >= FIELDS_LIMIT).then(|| {
            Error::limit(format!("more than {FIELDS_LIMIT} members in one sample"))
                .context("member", part.name(&self.names))
                .context("byte", part.offset)
        })
    }

    /// The sample of the members collected.
    fn finish(&mut self) -> Option<Sample> {
        let mut fields = std::mem::take(&mut self.fields);
        let first = fields.first()?;
        let (offset, key) = (first.offset, self.key(first));
        let schema = self.known_schema(&fields).unwrap_or_else(|| {
            let names: Vec<_> = fields.iter().map(|part| part.field(&self.names)).collect();
            schema_of(&mut self.schemas, &names)
        });
        let values = fields.drain(..).map(|part| Value::from(part.data)).collect();
        self.fields = fields;
        Some(self.sample(offset, key, schema, values))
    }

    /// The key as text: a slice of the shard, if that is where it lies.
    fn key(&self, part: &Part) -> Str {
        let shared = part.place.and_then(|start| self.shard.get(start..start + part.key_len));
        shared.map_or_else(|| Str::from(&*String::from_utf8_lossy(part.key(&self.names))), text)
    }

    fn known_schema(&self, fields: &[Part]) -> Option<Schema> {
        let fits = |schema: &&Schema| {
            schema.len() == fields.len()
                && schema
                    .names()
                    .iter()
                    .zip(fields)
                    .all(|(name, part)| name.as_str() == part.field(&self.names))
        };
        self.schemas.iter().find(fits).cloned()
    }

    fn sample(&mut self, offset: u64, name: Str, schema: Schema, values: Vec<Value>) -> Sample {
        let uid = xxh3_64_with_seed(&offset.to_le_bytes(), self.uid);
        let key = Key { origin: self.origin.clone(), name, index: self.index };
        self.index += 1;
        Sample::with_schema(uid, key, schema, values)
    }
}

/// The next member, with its headers from the window where there is one.
fn next_member<'a>(
    place: &mut Place,
    shard: &'a Buffer,
    window: &'a mut Window,
) -> Result<Option<Member<'a>>> {
    if let Some(at) = place.at() {
        window.cover(shard, at).inspect_err(|_| place.stop())?;
    }
    place.next(&mut Windowed { archive: shard, window })
}

/// The schema with these names: a known one, so that samples share it.
fn schema_of(schemas: &mut Vec<Schema>, names: &[Cow<'_, str>]) -> Schema {
    let known = |schema: &&Schema| {
        schema.len() == names.len() && schema.names().iter().zip(names).all(|(one, two)| one.as_str() == two)
    };
    if let Some(schema) = schemas.iter().find(known) {
        return schema.clone();
    }
    let schema = Schema::new(names.iter().map(|name| Str::from(&**name)));
    if schemas.len() < SCHEMAS_KEPT {
        schemas.push(schema.clone());
    }
    schema
}

/// A member's contents as a slice of the shard.
fn contents(shard: &Buffer, member: &Member<'_>) -> Buffer {
    share(shard, &member.data)
}

/// `bytes` as a slice of `shard`, if that is where they lie; otherwise a copy.
fn share(shard: &Buffer, bytes: &[u8]) -> Buffer {
    if bytes.is_empty() {
        return Buffer::EMPTY;
    }
    let shared = place_in(shard, bytes).and_then(|start| shard.get(start..start + bytes.len()));
    shared.unwrap_or_else(|| bytes.to_vec().into())
}

/// Where in `shard` the bytes lie, if they do.
fn place_in(shard: &Buffer, bytes: &[u8]) -> Option<usize> {
    let start = bytes.as_ptr().addr().checked_sub(shard.as_ptr().addr())?;
    (start.checked_add(bytes.len())? <= shard.len()).then_some(start)
}

/// Bytes as text, shared if they are UTF-8.
fn text(bytes: Buffer) -> Str {
    Str::from_utf8(bytes).unwrap_or_else(|bytes| Str::from(String::from_utf8_lossy(&bytes).into_owned()))
}
