//! Plugins in C: their tables, read and checked, and the decoders and sources that are made of them.
//!
//! An adapter has the traits of this host and calls the functions of C, so executors, workers and snapshots know nothing of it.

mod builder;
mod host;
mod options;
mod tables;

use std::{path::Path, sync::Arc};

use forebay_core::{
    AnyDecoder, Buffer, Context, DataPipe, Error, Key, NoOptions, PipeInfo, Result, Sample, Schema, Source,
    State, Str, Value, Wanted, abi::Pipe, shim,
};
use forebay_graph::OptionSpec;

use self::{options::COptions, tables::Tables};
use super::Manifest;

/// A plugin in C whose tables fit its manifest.
#[derive(Clone)]
pub struct CPlugin(Arc<Inner>);

struct Inner {
    tables: Tables,
    /// Name and version.
    label: String,
    /// The options of decoders and of sources, in the order of the tables.
    decoders: Vec<Vec<OptionSpec>>,
    sources: Vec<Vec<OptionSpec>>,
}

impl CPlugin {
    /// Loads the library at `path`, which has this manifest.
    ///
    /// # Errors
    /// `Abi`, when it cannot be loaded, is of another version, or is not what its manifest says.
    pub(crate) fn load(path: &Path, manifest: &Manifest) -> Result<Self> {
        let tables = Tables::load(path, manifest)?;
        Ok(Self(Arc::new(Inner {
            tables,
            label: format!("{} {}", manifest.name, manifest.version),
            decoders: manifest.decoders.iter().map(|spec| spec.options.clone()).collect(),
            sources: manifest.pipes.iter().map(|spec| spec.options.clone()).collect(),
        })))
    }

    /// Makes a decoder.
    ///
    /// # Errors
    /// That of its `open`.
    pub(crate) fn decoder(&self, name: &str, options: &str) -> Result<AnyDecoder> {
        let inner = &self.0;
        let at = inner.tables.decoders.iter().position(|decoder| decoder.name == name);
        let (at, specs) = find(at, &inner.decoders)?;
        let opened = inner.tables.decoders[at].open(&COptions::new(options, specs)?)?;
        let place = format!("{name} of {}", inner.label);
        Ok(AnyDecoder::new(shim::decoder(CDecoder { opened, place })))
    }

    /// Makes a source.
    ///
    /// # Errors
    /// That of its `open`.
    pub(crate) fn source(&self, name: &str, options: &str) -> Result<Pipe> {
        let inner = &self.0;
        let at = inner.tables.sources.iter().position(|source| source.name == name);
        let (at, specs) = find(at, &inner.sources)?;
        let opened = inner.tables.sources[at].open(&COptions::new(options, specs)?)?;
        let (origin, schema) = (Str::from(name), Schema::empty());
        Ok(shim::source(CSource { opened, origin, schema, calls: 0 }))
    }
}

fn find(at: Option<usize>, specs: &[Vec<OptionSpec>]) -> Result<(usize, &[OptionSpec])> {
    let found = at.and_then(|at| Some((at, specs.get(at)?.as_slice())));
    found.ok_or_else(|| Error::bug("the manifest names what the plugin does not have"))
}

struct CDecoder {
    opened: tables::OpenDecoder,
    /// Its name and its plugin, for errors: the pipe that calls may be of another.
    place: String,
}

impl shim::Decodes for CDecoder {
    fn probe(&self, head: &[u8], extension: &str) -> Result<u8> {
        self.opened.probe(head, extension)
    }

    fn decode(&self, bytes: &Buffer, wanted: &Wanted, cx: &Context) -> Result<Value> {
        self.opened.decode(bytes, wanted, cx)
    }

    fn blame(&self, error: Error) -> Error {
        error.context("decoder", &self.place)
    }
}

struct CSource {
    opened: tables::OpenSource,
    /// The key of samples that are given none.
    origin: Str,
    /// The names of the last sample, which most share.
    schema: Schema,
    /// How many samples were asked for in this epoch.
    calls: u64,
}

/// The version of what [`CSource`] saves: the number of calls, then the plugin's own bytes.
const STATE: u32 = 1;

impl DataPipe for CSource {
    const INFO: PipeInfo = PipeInfo::DEFAULT;
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Err(Error::bug("a source in C is not made without its table"))
    }
}

impl Source for CSource {
    fn reset(&mut self, cx: &Context) -> Result<()> {
        self.calls = 0;
        self.opened.reset(cx)
    }

    fn next(&mut self, cx: &Context) -> Result<Option<Sample>> {
        let index = self.calls;
        // Counted even when it fails: the next call goes on behind that place.
        self.calls += 1;
        let Some(given) = self.opened.next(cx)? else {
            self.calls = index;
            return Ok(None);
        };
        if self.schema.names() != given.names {
            self.schema = Schema::new(given.names);
        }
        let key = given.key.unwrap_or_else(|| Key { origin: self.origin.clone(), name: Str::EMPTY, index });
        let uid = given.number.unwrap_or(index);
        Ok(Some(Sample::with_schema(uid, key, self.schema.clone(), given.values)))
    }

    fn len(&self) -> Option<u64> {
        self.opened.len()
    }

    fn state(&self) -> Result<State> {
        let mut bytes = self.calls.to_le_bytes().to_vec();
        bytes.extend(self.opened.state()?);
        Ok(State { version: STATE, bytes: bytes.into(), ..State::default() })
    }

    fn restore(&mut self, state: &State, cx: &Context) -> Result<()> {
        let unlike = || Error::invalid("the state is not of a source in C");
        let (calls, own) =
            state.bytes.split_first_chunk().filter(|_| state.version == STATE).ok_or_else(unlike)?;
        self.opened.restore(own, cx)?;
        self.calls = u64::from_le_bytes(*calls);
        Ok(())
    }
}
