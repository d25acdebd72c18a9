//! Reads the manifest of a plugin, before any of its code runs.

mod spelling;

use std::{
    fs::File,
    io::{Read as _, Seek as _, SeekFrom},
    path::Path,
};

use forebay_core::{
    DecoderInfo, Error, ErrorKind, PipeLayout, PipePlacement, Result,
    abi::{
        ABI_MAJOR, ABI_MINOR,
        c::{FOREBAY_MAJOR, FOREBAY_MINOR},
    },
    manifest::{HEAD, MAGIC, TARGET, VERSION},
};
use forebay_graph::{Class, MagicSpec, OptionSpec, PipeSpec};
use object::{Object, ObjectSection, ReadCache};
use serde::{Deserialize, Serialize};

/// The most bytes a manifest may have.
const LIMIT: u64 = 16 << 20;

/// The manifest: what a plugin says about itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Manifest {
    /// The crate's name.
    pub name: String,
    /// The crate's version.
    pub version: String,
    /// Its licence.
    pub license: String,
    /// Its repository.
    #[serde(default)]
    pub repository: String,
    /// The symbol that leads to the plugin's table.
    pub entry: String,
    /// The compiler that built it; for people.
    pub rustc: String,
    /// The target that it was built for.
    pub target: String,
    /// CPU features it was compiled to need.
    pub cpu: Vec<String>,
    /// The version of what its pipes save and give, if it declares one. Snapshots store it instead of a hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_version: Option<u32>,
    /// DataPipes.
    #[serde(default)]
    pub pipes: Vec<PipeSpec>,
    /// Decoders.
    #[serde(default)]
    pub decoders: Vec<DecoderSpec>,
    /// Stores.
    #[serde(default)]
    pub stores: Vec<StoreSpec>,
    /// Whether it consists of C tables, and not of Rust's.
    #[serde(skip_deserializing)]
    pub c: bool,
    /// Major and minor number of the ABI it was built against, Rust's or C's.
    #[serde(skip_deserializing)]
    pub abi: (u32, u32),
    /// Whether a panic in it can be caught.
    #[serde(skip_deserializing)]
    pub unwinds: bool,
}

/// The entry of one decoder in a manifest.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DecoderSpec {
    /// The name, which also pins it.
    pub name: String,
    /// One sentence for people.
    #[serde(default)]
    pub summary: String,
    /// Among decoders that are equally sure, the one with the higher priority wins.
    #[serde(default = "usual_priority")]
    pub priority: u32,
    /// Extensions in lower case.
    #[serde(default)]
    pub extensions: Vec<String>,
    /// Media types.
    #[serde(default)]
    pub media_types: Vec<String>,
    /// Each of these makes it a candidate.
    #[serde(default)]
    pub magic: Vec<MagicSpec>,
    /// Its options.
    #[serde(default)]
    pub options: Vec<OptionSpec>,
}

fn usual_priority() -> u32 {
    DecoderInfo::DEFAULT.priority
}

/// The entry of one store in a manifest.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StoreSpec {
    /// Its name.
    pub name: String,
    /// One sentence for people.
    pub summary: String,
    /// URL schemes.
    pub schemes: Vec<String>,
    /// Its options.
    pub options: Vec<OptionSpec>,
}

impl Manifest {
    /// Reads the manifest of a library, without running its code.
    ///
    /// # Errors
    /// `Io`; `Unsupported` if the file is no plugin; `Abi` if it is built for another host.
    pub fn read(path: &Path) -> Result<Self> {
        // Asked before it is opened: to open a pipe would wait for its other end.
        if !std::fs::metadata(path)?.is_file() {
            return Err(Error::unsupported("not a regular file"));
        }
        Self::read_open(&File::open(path)?)
    }

    /// Reads that of an open file.
    pub(super) fn read_open(file: &File) -> Result<Self> {
        let cache = ReadCache::new(file);
        let library = object::File::parse(&cache).map_err(|error| {
            let stranger = || Error::unsupported(format!("not a plugin: no library ({error})"));
            cut_off(file).unwrap_or_else(stranger)
        })?;
        let section = library
            .section_by_name(".forebay")
            .or_else(|| library.section_by_name("__forebay"))
            .ok_or_else(|| Error::unsupported("not a plugin: a library without a .forebay section"))?;
        if section.size() > LIMIT {
            return Err(Error::limit(format!("a manifest of {} bytes, at most {LIMIT}", section.size())));
        }
        let bytes =
            section.data().map_err(|error| Error::corrupt(format!("unreadable manifest: {error}")))?;
        Self::parse(bytes)
    }

    /// Reads the bytes of a manifest, and refuses one for another host.
    ///
    /// # Errors
    /// `Corrupt`; or `Abi`, with the versions of both sides.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let corrupt = |what: &str| Error::corrupt(format!("not a plugin: {what}"));
        let head = bytes.get(..HEAD).ok_or_else(|| corrupt("its manifest is too short"))?;
        if head[..8] != MAGIC {
            return Err(corrupt("its manifest does not begin with FOREBAY"));
        }
        let word = |at: usize| u32::from_ne_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let abi = |message: String| Error::new(ErrorKind::Abi, message);
        if word(8) != VERSION {
            return Err(abi(format!("its manifest is of version {}, this host reads {VERSION}", word(8))));
        }
        let (ours, mend) = match word(12) {
            1 => (("ABI", ABI_MAJOR, ABI_MINOR), "rebuild it with the forebay-core of this host"),
            2 => (("C", FOREBAY_MAJOR, FOREBAY_MINOR), "compile it again with the header of this host"),
            kind => {
                return Err(abi(format!("its tables are of kind {kind}, this host knows kinds 1 and 2")));
            }
        };
        if word(16) != ours.1 {
            let (theirs, minor, (abi_of, major, our_minor)) = (word(16), word(20), ours);
            return Err(abi(format!(
                "built against {abi_of} {theirs}.{minor}, this host has {major}.{our_minor}: {mend}"
            )));
        }
        let (low, high) =
            if cfg!(target_endian = "little") { (word(32), word(36)) } else { (word(36), word(32)) };
        let (len, rest) = (u64::from(low) | u64::from(high) << 32, bytes.len() - HEAD);
        let json = usize::try_from(len).ok().and_then(|len| bytes[HEAD..].get(..len));
        // The section may end with padding; more would be a second manifest.
        let json = json
            .filter(|json| rest - json.len() < 8)
            .ok_or_else(|| corrupt(&format!("its manifest has {rest} bytes, but says {len}")))?;
        // One of a later version may say more.
        let typed = word(12) == 2 && (0..=FOREBAY_MINOR).contains(&word(20));
        if typed {
            spelling::keys(json)?;
        }
        let mut manifest: Self = serde_json::from_slice(json)
            .map_err(|error| corrupt(&format!("its manifest is unreadable: {error}")))?;
        if typed {
            spelling::values(&manifest)?;
        }
        manifest.c = word(12) == 2;
        manifest.abi = (word(16), word(20));
        manifest.unwinds = head[26] == 1;
        manifest.preflight()?;
        Ok(manifest)
    }

    /// The ABI that it was built against, for people. Rust's ABI is given by its numbers alone.
    #[must_use]
    pub fn abi_name(&self) -> String {
        let (major, minor) = self.abi;
        if self.c { format!("C {major}.{minor}") } else { format!("{major}.{minor}") }
    }

    /// Refuses what would not run here.
    fn preflight(&self) -> Result<()> {
        // The rest of what a pipe may say of itself has no meaning there.
        let is_of_c = |pipe: &&PipeSpec| {
            let placement = PipePlacement { on: pipe.placement.on, ..PipePlacement::DEFAULT };
            let layout = PipeLayout { inputs: (0, 0), ..PipeLayout::DEFAULT };
            let (class, options) = (Class::Source, pipe.options.clone());
            let source =
                PipeSpec { class, layout, placement, options, ..PipeSpec::map(&pipe.name, &pipe.summary) };
            **pipe == source
        };
        let other = self.pipes.iter().find(|pipe| !is_of_c(pipe)).map(|pipe| &pipe.name);
        if let Some(name) = other.or(self.stores.first().map(|store| &store.name)).filter(|_| self.c) {
            let message = format!(
                "its manifest names `{name}`, which is no decoder and no source: a plugin in C can have only those, \
                     and describe a source only by name, class, summary, options and on"
            );
            return Err(Error::new(ErrorKind::Abi, message));
        }
        if self.target != TARGET {
            let message = format!("built for {}, this host is {TARGET}", self.target);
            return Err(Error::new(ErrorKind::Abi, message));
        }
        match self.cpu.iter().find(|feature| !cpu_has(feature)) {
            Some(feature) => Err(Error::new(
                ErrorKind::Abi,
                format!("compiled for a CPU with {feature}, which this one lacks; rebuild it without"),
            )),
            None => Ok(()),
        }
    }
}

/// The error for the file of a library that is not all there, by what its header says.
fn cut_off(mut file: &File) -> Option<Error> {
    let mut head = Vec::new();
    file.seek(SeekFrom::Start(0)).ok()?;
    file.take(64).read_to_end(&mut head).ok()?;
    let len = file.metadata().ok()?.len();
    if len > 0 && !head.starts_with(b"\x7fELF") {
        return None;
    }
    // The list of sections stands at the end of what compilers and linkers write: where, how long each, how many.
    let number = |at: usize, len: usize| {
        let digits = head.get(at..at + len)?.iter();
        let add = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
        Some(if head[5] == 2 { digits.fold(0, add) } else { digits.rev().fold(0, add) })
    };
    let end = || number(40, 8)?.checked_add(number(58, 2)? * number(60, 2)?);
    let end = end().unwrap_or(u64::MAX);
    (end > len).then(|| {
        let of = if end == u64::MAX { String::new() } else { format!("of {end} ") };
        Error::corrupt(format!("the library is cut off after {len} {of}bytes; copy or build it again"))
    })
}

#[cfg(target_arch = "x86_64")]
fn cpu_has(feature: &str) -> bool {
    match feature {
        "avx2" => std::is_x86_feature_detected!("avx2"),
        "fma" => std::is_x86_feature_detected!("fma"),
        "avx512f" => std::is_x86_feature_detected!("avx512f"),
        _ => false,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn cpu_has(_feature: &str) -> bool {
    false
}
