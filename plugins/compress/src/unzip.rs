//! `unzip`: a zip archive to its members.

use forebay_core::{
    Blob, Context, DataPipe, FlatMap, Items, Key, Magic, NoOptions, Opens, PipeInfo, Result, Sample, Schema,
    State, StateExt as _, Str, Value,
};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::Directory;

/// The version of a saved position.
const STATE: u32 = 1;

/// Turns each sample whose `bytes`, or the file at whose `path`, are a zip archive into the files in it.
#[derive(Debug)]
pub struct Unzip;

impl DataPipe for Unzip {
    const INFO: PipeInfo = PipeInfo {
        name: "unzip",
        summary: "The files in zip archives",
        opens: Some(Opens {
            extensions: &["zip"],
            magic: &[Magic { offset: 0, bytes: b"PK\x03\x04" }, Magic { offset: 0, bytes: b"PK\x05\x06" }],
            then: "",
        }),
        ..PipeInfo::DEFAULT
    };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self)
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
        let open = || members(&Blob::of(&sample, cx)?, origin.clone(), sample.uid(), cx.limits().bytes);
        open().map_err(|error| error.context("file", &origin))
    }
}

/// The files of the zip archive in `blob`, which was read from `origin`.
///
/// A sample's uid is a hash of `uid`, which is the archive's, and of the byte where its local header starts.
///
/// # Errors
/// Those of [`Directory::open`].
pub fn members(blob: &Blob, origin: Str, uid: u64, limit: u64) -> Result<UnzipItems> {
    Ok(UnzipItems {
        directory: Directory::open(blob, limit)?,
        passed: 0,
        index: 0,
        origin,
        uid,
        schema: Schema::new([Str::from_static("name"), Str::from_static("bytes")]),
        damaged: false,
    })
}

/// The files of one archive, in its directory's order; made by [`members`].
pub struct UnzipItems {
    directory: Directory,
    /// How many members of the directory were passed, and how many samples were given.
    passed: u64,
    index: u64,
    origin: Str,
    uid: u64,
    schema: Schema,
    /// Whether the directory itself is damaged.
    damaged: bool,
}

impl Items for UnzipItems {
    fn next(&mut self, cx: &Context) -> Result<Option<Sample>> {
        self.advance(cx).map_err(|error| error.context("file", &self.origin))
    }

    fn goes_on(&self) -> bool {
        !self.damaged
    }

    fn state(&self) -> Result<State> {
        State::json(STATE, &(self.passed, self.index))
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        let (passed, index) = state.parse::<(u64, u64)>(STATE)?;
        self.directory.pass_over(passed)?;
        (self.passed, self.index) = (passed, index);
        Ok(())
    }
}

impl UnzipItems {
    fn advance(&mut self, cx: &Context) -> Result<Option<Sample>> {
        while let Some(member) = self.directory.next().transpose().inspect_err(|_| self.damaged = true)? {
            self.passed += 1;
            if !member.is_file() {
                continue;
            }
            let bytes = self.directory.read(&member, cx.limits().bytes, |len| cx.alloc(len))?;
            let name = Str::from(member.name);
            let key = Key { origin: self.origin.clone(), name: name.clone(), index: self.index };
            self.index += 1;
            let uid = xxh3_64_with_seed(&member.offset.to_le_bytes(), self.uid);
            return Ok(Some(Sample::with_schema(
                uid,
                key,
                self.schema.clone(),
                vec![Value::from(name), bytes.into()],
            )));
        }
        Ok(None)
    }
}
