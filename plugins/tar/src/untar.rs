//! `untar`: a shard to its samples, each field a slice of the shard where that is in memory and not packed.
//!
//! ```toml
//! [untar]
//! examples = ['''forebay head -n 1 "files 'examples/photos/*.tar' | untar interleave=4 | decode"''']
//! ```

use std::{borrow::Cow, collections::HashMap};

use forebay_core::{
    Blob, Buffer, Context, DataPipe, Error, FlatMap, Items, Key, Magic, Opens, Others, PipeInfo, Result,
    Sample, Schema, State, StateExt as _, Str, Value, names::split_name, options,
};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::{
    archive::{Archive, Memory, filled, probe, whole},
    header::Kind,
    part::Part,
    sparse::Sparse,
    walk::Place,
    window::Window,
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
        /// What to do with a hard link: `skip` it, or `follow` it to the earlier file that it names.
        links: String = "skip", one_of ["skip", "follow"];
        /// Go on after the end of an archive, if another archive follows.
        concatenated: bool = false;
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

impl Group {
    pub(crate) fn of(name: &str) -> Self {
        if name == Self::None.name() { Self::None } else { Self::WebDataset }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::WebDataset => "webdataset",
            Self::None => "none",
        }
    }

    /// What the index of an archive so grouped is kept as.
    pub(crate) const fn kept_as(self) -> &'static str {
        match self {
            Self::WebDataset => "tar_pieces webdataset",
            Self::None => "tar_pieces none",
        }
    }
}

/// Turns each sample whose `bytes`, or the file at whose `path`, are a tar archive, packed or not, into the samples in it.
pub struct Untar {
    group: Group,
    follow: bool,
    concatenated: bool,
}

impl DataPipe for Untar {
    const INFO: PipeInfo = PipeInfo {
        name: "untar",
        summary: "Samples out of tar shards, without a copy",
        // The oldest archives have no magic and packed ones that of their packing: the probe is asked of every file.
        opens: Some(Opens { extensions: &["tar"], magic: &[Magic { offset: 0, bytes: b"" }], then: "" }),
        ..PipeInfo::DEFAULT
    };
    type Options = UntarOptions;

    fn new(options: UntarOptions) -> Result<Self> {
        let group = Group::of(&options.group);
        Ok(Self { group, follow: options.links == "follow", concatenated: options.concatenated })
    }

    fn probe(head: &[u8], extension: &str) -> u8 {
        probe(head, extension)
    }
}

impl FlatMap for Untar {
    type Items = UntarItems;

    fn open(&self, sample: Sample, cx: &Context) -> Result<UntarItems> {
        let origin = sample.key().origin.clone();
        let opened =
            Blob::of(&sample, cx).and_then(|blob| open(&blob, origin.clone(), sample.uid(), self.group));
        let mut items = opened.map_err(|error| error.context("file", &origin))?;
        items.others = Others::of(&sample, &[]);
        if self.follow {
            items = items.following_links();
        }
        Ok(if self.concatenated { items.concatenated() } else { items })
    }
}

/// The samples of the archive in `shard`, which was read from `origin` and is not packed. Each field is a slice of `shard`.
///
/// A sample's uid is a hash of `uid`, which is the shard's, and of the byte where its first member starts.
#[must_use]
pub fn samples(shard: Buffer, origin: Str, uid: u64, group: Group) -> UntarItems {
    piece(shard, 0, 0, origin, uid, group)
}

/// The samples of a piece of an archive that starts at byte `start` of it, with sample number `first`.
pub(crate) fn piece(
    bytes: Buffer,
    start: u64,
    first: u64,
    origin: Str,
    uid: u64,
    group: Group,
) -> UntarItems {
    let mut items = UntarItems::new(Archive::Here(Window::new(&bytes), start), bytes, origin, uid, group);
    (items.place, items.index) = (Place::new(start, false), first);
    items
}

/// The samples of the archive in `blob`, wherever it lies, packed or not; otherwise as [`samples`].
///
/// Of one far away 1 MiB is fetched at a time. A packed one is unpacked as it is read, so that one sample is in memory at a time; its
/// samples are those of the archive in it, uids included.
///
/// # Errors
/// Those of the blob; `Corrupt` for packed bytes that are broken at once.
pub fn open(blob: &Blob, origin: Str, uid: u64, group: Group) -> Result<UntarItems> {
    let (archive, shard) = Archive::open(blob)?;
    Ok(UntarItems::new(archive, shard, origin, uid, group))
}

/// The samples of one archive, in its order; made by [`samples`] and [`open`].
pub struct UntarItems {
    archive: Archive,
    /// Its bytes, where they are in memory.
    shard: Buffer,
    origin: Str,
    uid: u64,
    pub(crate) others: Others,
    group: Group,
    place: Place,
    /// The member that begins the next sample: it had to be read to see where the last one ends.
    held: Option<Part>,
    /// The members of the sample being collected; empty between calls, kept for its memory.
    fields: Vec<Part>,
    /// The names of those members and of the one held, one after the other.
    names: Vec<u8>,
    schemas: Vec<Schema>,
    usual: Usual,
    index: u64,
    /// What hard links may name, by name; none where they are not followed.
    targets: Option<HashMap<Vec<u8>, Target>>,
    /// Damage behind the last sample, which is told next.
    damage: Option<Error>,
    /// Whether the archive ended with damage.
    damaged: bool,
}

/// The fields of the last sample, as they are written, and their schema: the next sample's are most often the same.
struct Usual {
    fields: Vec<Vec<u8>>,
    schema: Schema,
}

/// Where a file is stored that a hard link may name.
struct Target {
    at: u64,
    len: u64,
    sparse: Option<Sparse>,
}

impl Items for UntarItems {
    fn next(&mut self, cx: &Context) -> Result<Option<Sample>> {
        self.next_sample(Memory(Some(cx)))
    }

    /// An error of one sample leaves the next ones as they are; behind damage there is nothing.
    fn goes_on(&self) -> bool {
        !self.damaged
    }

    /// Where the first member of the next sample starts, and the sample's number.
    fn state(&self) -> Result<State> {
        let at = self.held.as_ref().map(|held| held.offset).or_else(|| self.place.at());
        match at.filter(|_| self.place.is_plain() && self.targets.is_none() && self.damage.is_none()) {
            Some(at) => State::json(STATE, &(at, self.index)),
            // Global headers hold for all that follows, and links name what came before.
            None => Err(Error::unsupported("the archive is read again from its start")),
        }
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        let (at, index) = state.parse::<(u64, u64)>(STATE)?;
        if let Some(len) = self.archive.len(&self.shard).filter(|&len| at > len) {
            return Err(Error::invalid(format!("the saved place is byte {at} of {len}"))
                .context("file", &self.origin));
        }
        (self.place, self.index) = (self.place.going_on(at), index);
        Ok(())
    }
}

impl Iterator for UntarItems {
    type Item = Result<Sample>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_sample(Memory(None)).transpose()
    }
}

impl UntarItems {
    fn new(archive: Archive, shard: Buffer, origin: Str, uid: u64, group: Group) -> Self {
        Self {
            archive,
            shard,
            origin,
            uid,
            others: Others::default(),
            group,
            place: Place::default(),
            held: None,
            fields: Vec::new(),
            names: Vec::new(),
            schemas: Vec::new(),
            usual: Usual { fields: Vec::new(), schema: Schema::new([""; 0]) },
            index: 0,
            targets: None,
            damage: None,
            damaged: false,
        }
    }

    /// Goes on behind the end of an archive, where another one may follow.
    #[must_use]
    pub fn concatenated(mut self) -> Self {
        self.place = Place::new(0, true);
        self
    }

    /// Gives for a hard link the contents of the earlier file that it names. It saves no place then: what came before matters.
    #[must_use]
    pub fn following_links(mut self) -> Self {
        self.targets = Some(HashMap::new());
        self
    }

    /// The next sample; after an error, the one after the sample that has it.
    fn next_sample(&mut self, memory: Memory<'_>) -> Result<Option<Sample>> {
        self.fields.clear();
        let found = match self.group {
            _ if self.damage.is_some() => self.damage.take().map_or(Ok(None), Err),
            Group::WebDataset => self.collect(memory),
            Group::None => self.single(memory),
        };
        found.map_err(|error| {
            // It counts: samples behind it have the numbers that they have in an archive without errors.
            self.index += 1;
            error.context("file", &self.origin)
        })
    }

    fn single(&mut self, memory: Memory<'_>) -> Result<Option<Sample>> {
        self.names.clear();
        let Some(part) = self.next_part(memory)? else { return Ok(None) };
        if let Some(error) = part.failed {
            return Err(error);
        }
        let name = self.key(&part);
        let schema = schema_of(&mut self.schemas, &["name".into(), "bytes".into()]);
        let values = vec![Value::from(name.clone()), Value::from(part.data)];
        Ok(Some(self.sample(part.offset, name, schema, values)))
    }

    /// Collects members until one of another sample comes.
    fn collect(&mut self, memory: Memory<'_>) -> Result<Option<Sample>> {
        let mut failed = None;
        let gone = self.held.as_ref().map_or(self.names.len(), |held| held.name.start);
        self.names.drain(..gone);
        let mut usual = true;
        if let Some(mut first) = self.held.take() {
            first.name = 0..self.names.len();
            failed = first.failed.take();
            usual = self.is_usual(&first);
            self.fields.push(first);
        }
        loop {
            let mut part = match self.next_part(memory) {
                Ok(Some(part)) => part,
                Ok(None) => break,
                // The sample being collected may lack members, unless what is damaged is known to be of another.
                Err(error) if failed.is_none() && self.is_of_another(&error) => {
                    self.damage = Some(error);
                    break;
                }
                Err(error) => return Err(error),
            };
            match self.fields.first() {
                Some(first) if first.key(&self.names) != part.key(&self.names) => {
                    self.held = Some(part);
                    break;
                }
                _ => {
                    usual = usual && self.is_usual(&part);
                    // Those of the last sample did not clash.
                    let error = part.failed.take().or_else(|| if usual { None } else { self.clash(&part) });
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
            None => Ok(self.finish(usual)),
        }
    }

    /// Whether the member that an error names is not of the sample being collected.
    fn is_of_another(&self, error: &Error) -> bool {
        let known = |name: &&str| !name.contains(char::REPLACEMENT_CHARACTER);
        let key = error.get("member").filter(known).and_then(|name| split_name(name.as_bytes()));
        match (self.fields.first(), key) {
            (Some(first), Some((key, _))) => first.key(&self.names) != key,
            _ => false,
        }
    }

    /// Whether the next field of the sample being collected is that of the last one in its place.
    fn is_usual(&self, part: &Part) -> bool {
        self.usual.fields.get(self.fields.len()).is_some_and(|field| field == part.raw_field(&self.names))
    }

    /// The next member that belongs to a sample.
    fn next_part(&mut self, memory: Memory<'_>) -> Result<Option<Part>> {
        loop {
            let next = self.archive.next(&self.shard, &mut self.place, memory);
            let Some(member) = next.inspect_err(|_| self.damaged = true)? else { return Ok(None) };
            let link = member.kind == Kind::HardLink && self.targets.is_some();
            if !link && !matches!(member.kind, Kind::File | Kind::Sparse) {
                continue;
            }
            let key_len = match self.group {
                Group::WebDataset => split_name(&member.name).map(|(key, _)| key.len()),
                Group::None => Some(member.name.len()),
            };
            if key_len.is_none() && self.targets.is_none() {
                continue;
            }
            let start = self.names.len();
            self.names.extend_from_slice(&member.name);
            let (place, offset) = (place_in(&self.shard, &member.name), member.offset);
            let found = if link {
                let target = member.link.into_owned();
                self.linked(&target, memory)
            } else {
                if let Some(targets) = &mut self.targets {
                    let (at, len) = (member.data_offset, member.data.len() as u64);
                    let target = Target { at, len, sparse: member.sparse.clone() };
                    targets.insert(member.name.to_vec(), target);
                }
                whole(member, memory)
            };
            let Some(key_len) = key_len else {
                self.names.truncate(start);
                continue;
            };
            let name = start..self.names.len();
            let (data, failed) = match found {
                Ok(data) => (data, None),
                Err(error) => (Buffer::EMPTY, Some(error)),
            };
            let mut part = Part { name, place, key_len, data, offset, failed };
            part.failed = part.failed.map(|error| {
                let name = String::from_utf8_lossy(self.names.get(part.name.clone()).unwrap_or_default());
                error.context("member", name).context("byte", offset)
            });
            return Ok(Some(part));
        }
    }

    /// The contents of the file that a hard link names.
    fn linked(&mut self, name: &[u8], memory: Memory<'_>) -> Result<Buffer> {
        let target = self.targets.as_ref().and_then(|targets| targets.get(name)).ok_or_else(|| {
            Error::corrupt(format!(
                "a hard link to `{}`, which is no file before it",
                String::from_utf8_lossy(name)
            ))
        })?;
        let stored = self.archive.again(&self.shard, target.at, target.len, memory)?;
        match &target.sparse {
            None => Ok(stored),
            Some(sparse) => filled(sparse, &stored, memory),
        }
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

    /// The sample of the members collected; `usual` where their fields begin as those of the last sample.
    fn finish(&mut self, usual: bool) -> Option<Sample> {
        let mut fields = std::mem::take(&mut self.fields);
        let first = fields.first()?;
        let (offset, key) = (first.offset, self.key(first));
        if !usual || fields.len() != self.usual.fields.len() {
            let names: Vec<_> = fields.iter().map(|part| part.field(&self.names)).collect();
            let schema = schema_of(&mut self.schemas, &names);
            let written = fields.iter().map(|part| part.raw_field(&self.names).to_vec()).collect();
            self.usual = Usual { fields: written, schema };
        }
        let values = fields.drain(..).map(|part| Value::from(part.data)).collect();
        self.fields = fields;
        Some(self.sample(offset, key, self.usual.schema.clone(), values))
    }

    /// The key as text: a slice of the shard, if that is where it lies.
    fn key(&self, part: &Part) -> Str {
        let shared = part.place.and_then(|start| self.shard.get(start..start + part.key_len));
        shared.map_or_else(|| Str::from(&*String::from_utf8_lossy(part.key(&self.names))), text)
    }

    fn sample(&mut self, offset: u64, name: Str, schema: Schema, mut values: Vec<Value>) -> Sample {
        let schema = self.others.join(schema, &mut values);
        let uid = xxh3_64_with_seed(&offset.to_le_bytes(), self.uid);
        let key = Key { origin: self.origin.clone(), name, index: self.index };
        self.index += 1;
        Sample::with_schema(uid, key, schema, values)
    }
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

/// Where in `shard` the bytes lie, if they do.
fn place_in(shard: &Buffer, bytes: &[u8]) -> Option<usize> {
    let start = bytes.as_ptr().addr().checked_sub(shard.as_ptr().addr())?;
    (start.checked_add(bytes.len())? <= shard.len()).then_some(start)
}

/// Bytes as text, shared if they are UTF-8.
fn text(bytes: Buffer) -> Str {
    Str::from_utf8(bytes).unwrap_or_else(|bytes| Str::from(String::from_utf8_lossy(&bytes).into_owned()))
}
