//! `unzip`: a zip archive to its samples.
//!
//! ```toml
//! [unzip]
//! examples = ['forebay head -n 1 "files plugins/compress/seeds/birds.zip | unzip"']
//! ```

use std::{collections::HashMap, ops::Range};

use forebay_core::{
    Blob, Context, DataPipe, Error, FlatMap, Items, Key, Magic, Opens, Others, PipeInfo, Result, Sample,
    Schema, State, StateExt as _, Str, Value,
    names::{field_name, split_name},
    options,
};
use forebay_unpack::{Directory, Member};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// More fields than this in one sample are refused: then the names are not meant to be grouped.
const FIELDS_LIMIT: usize = 1024;
/// The version of a saved position.
const STATE: u32 = 2;

options! {
    /// Options of `unzip`.
    pub struct UnzipOptions {
        /// Which members make a sample: `webdataset` joins those that share their name up to the first dot,
        /// `none` gives each file as a sample of its own.
        group: String = "webdataset", one_of ["webdataset", "none"];
    }
}

/// Turns each sample whose `bytes`, or the file at whose `path`, are a zip archive into the samples in it.
#[derive(Debug)]
pub struct Unzip {
    joins: bool,
}

impl DataPipe for Unzip {
    const INFO: PipeInfo = PipeInfo {
        name: "unzip",
        summary: "Samples out of zip archives",
        opens: Some(Opens {
            extensions: &["zip"],
            magic: &[Magic { offset: 0, bytes: b"PK\x03\x04" }, Magic { offset: 0, bytes: b"PK\x05\x06" }],
            then: "",
        }),
        ..PipeInfo::DEFAULT
    };
    type Options = UnzipOptions;

    fn new(options: UnzipOptions) -> Result<Self> {
        Ok(Self { joins: options.group == "webdataset" })
    }

    /// Many formats are zip archives by another name, and have decoders of their own.
    fn probe(_: &[u8], extension: &str) -> u8 {
        if matches!(extension.to_ascii_lowercase().as_str(), "zip" | "") { 192 } else { 96 }
    }
}

impl FlatMap for Unzip {
    type Items = UnzipItems;

    fn open(&self, sample: Sample, cx: &Context) -> Result<UnzipItems> {
        let origin = sample.key().origin.clone();
        let (uid, limit) = (sample.uid(), cx.limits().bytes);
        let open = || UnzipItems::open(&Blob::of(&sample, cx)?, origin.clone(), uid, limit, self.joins);
        let mut items = open().map_err(|error| error.context("file", &origin))?;
        items.others = Others::of(&sample, &[]);
        Ok(items)
    }
}

/// The files of the zip archive in `blob`, which was read from `origin`: a sample for each, with `name` and `bytes`.
///
/// A sample's uid is a hash of `uid`, which is the archive's, and of the byte where its local header starts.
///
/// # Errors
/// Those of [`Directory::open`].
pub fn members(blob: &Blob, origin: Str, uid: u64, limit: u64) -> Result<UnzipItems> {
    UnzipItems::open(blob, origin, uid, limit, false)
}

/// The samples of the zip archive in `blob`: its files, those joined that share their name up to its last part's first dot.
///
/// Where the files of a sample stand in the directory does not matter; its place is that of the first. Its uid is that of [`members`] for
/// that file.
///
/// # Errors
/// Those of [`Directory::open`].
pub fn samples(blob: &Blob, origin: Str, uid: u64, limit: u64) -> Result<UnzipItems> {
    UnzipItems::open(blob, origin, uid, limit, true)
}

/// The samples of one archive, in its directory's order; made by [`members`] and [`samples`].
pub struct UnzipItems {
    directory: Directory,
    joins: bool,
    /// The number of its sample and the place in the directory, of each file; in order.
    files: Vec<(u32, usize)>,
    /// How many of those were passed, and how many samples they are.
    passed: usize,
    index: u64,
    origin: Str,
    uid: u64,
    /// That of the last sample, which the next one's most often is too.
    schema: Schema,
    /// The fields of the archive's sample that go on.
    others: Others,
}

impl Items for UnzipItems {
    fn next(&mut self, cx: &Context) -> Result<Option<Sample>> {
        self.advance(cx).map_err(|error| error.context("file", &self.origin))
    }

    /// The next call begins behind the sample that failed.
    fn goes_on(&self) -> bool {
        true
    }

    fn state(&self) -> Result<State> {
        State::json(STATE, &(self.passed, self.index))
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        let (passed, index) = state.parse::<(usize, u64)>(STATE)?;
        if passed > self.files.len() {
            let found = self.files.len();
            return Err(Error::invalid(format!("the saved place is file {passed} of {found}")));
        }
        (self.passed, self.index) = (passed, index);
        Ok(())
    }
}

impl UnzipItems {
    fn open(blob: &Blob, origin: Str, uid: u64, limit: u64, joins: bool) -> Result<Self> {
        let mut directory = Directory::open(blob, limit)?;
        let files = files(&mut directory, joins)?;
        let schema = Schema::new(["name", "bytes"].map(Str::from_static));
        let others = Others::default();
        Ok(Self { directory, joins, files, passed: 0, index: 0, origin, uid, schema, others })
    }

    fn advance(&mut self, cx: &Context) -> Result<Option<Sample>> {
        let rest = self.files.get(self.passed..).unwrap_or_default();
        let Some(&(number, place)) = rest.first() else { return Ok(None) };
        let count = rest.iter().take_while(|(other, _)| *other == number).count();
        // A sample that cannot be given counts too: those behind it are called what they are in a whole archive.
        let (from, index) = (self.passed, self.index);
        (self.passed, self.index) = (from + count, index + 1);
        let first = self.directory.member(place)?;
        let name = match split_name(first.name.as_bytes()).filter(|_| self.joins) {
            Some((key, _)) => Str::from(first.name.get(..key.len()).unwrap_or(&first.name)),
            None => Str::from(&*first.name),
        };
        let uid = xxh3_64_with_seed(&first.offset.to_le_bytes(), self.uid);
        let mut values = match self.joins {
            true => self.fields(first, from..from + count, cx)?,
            false => vec![name.clone().into(), self.read(&first, cx)?],
        };
        let key = Key { origin: self.origin.clone(), name, index };
        let schema = self.others.join(self.schema.clone(), &mut values);
        Ok(Some(Sample::with_schema(uid, key, schema, values)))
    }

    /// The fields of a sample, whose schema becomes that of this.
    fn fields(&mut self, first: Member, files: Range<usize>, cx: &Context) -> Result<Vec<Value>> {
        let count = files.len();
        if count > FIELDS_LIMIT {
            return Err(Error::limit(format!(
                "a sample of {count} members, at most {FIELDS_LIMIT} are joined; `group=none` gives each by itself"
            )));
        }
        let mut members = Vec::with_capacity(count);
        members.push(first);
        for &(_, place) in self.files.get(files).unwrap_or_default().iter().skip(1) {
            members.push(self.directory.member(place)?);
        }
        let names: Vec<_> = members.iter().map(self::field).collect();
        let mut seen = HashMap::with_capacity(count);
        for (name, member) in names.iter().zip(&members) {
            if let Some(other) = seen.insert(name, &member.name) {
                let error = format!("two members give the field `{name}`: `{other}` and this one");
                return Err(Error::invalid(error).context("member", &member.name));
            }
        }
        if !self.schema.names().iter().map(Str::as_str).eq(names.iter().map(|name| &**name)) {
            self.schema = Schema::new(names.iter().map(|name| Str::from(&**name)));
        }
        members.iter().map(|member| self.read(member, cx)).collect()
    }

    fn read(&self, member: &Member, cx: &Context) -> Result<Value> {
        self.directory.read(member, cx.limits().bytes, |len| cx.alloc(len)).map(Value::from)
    }
}

/// The name of the field that a member is, which has one.
fn field(member: &Member) -> std::borrow::Cow<'_, str> {
    field_name(split_name(member.name.as_bytes()).map_or(&[], |(_, field)| field))
}

/// The files in a directory, by sample: its number, that of its first file among all, and where in the directory each stands.
fn files(directory: &mut Directory, joins: bool) -> Result<Vec<(u32, usize)>> {
    let (mut files, mut samples) = (Vec::new(), HashMap::new());
    loop {
        let place = directory.place();
        let Some(member) = directory.next().transpose()? else { break };
        if !member.is_file() {
            continue;
        }
        let number = u32::try_from(files.len()).map_err(|error| Error::limit(error.to_string()))?;
        match split_name(member.name.as_bytes()) {
            Some((key, _)) if joins => files.push((*samples.entry(key.to_vec()).or_insert(number), place)),
            None if joins => {}
            _ => files.push((number, place)),
        }
    }
    files.sort_unstable();
    Ok(files)
}
