//! The plugins that are found, and what each of them can make.
//!
//! A [`Registry`] is a value: nothing here is global. Making it reads manifests. The code of a plugin is loaded
//! when something of it is first used.

mod c_plugin;
mod choice;
mod claims;
mod closures;
mod finder;
mod found;
pub mod handles;
mod hash;
mod isolation;
mod library;
mod lock;
mod manifest;
mod opener;
mod own;
mod sealed;
mod search;
mod stamp;
mod trust;
mod tuned;
mod writable;

use std::{
    collections::HashMap,
    fmt::Write,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use forebay_core::{AnyDecoder, AnyStore, Error, Result, abi::abi_stable::library::LibHeader};
use forebay_graph::{Catalog, Node, On, OptionSpec, PipeSpec};
use serde::Serialize;

pub use self::{c_plugin::CPlugin, claims::Claim, stamp::Stamp, tuned::Tuned};
pub use self::{
    choice::{Candidate, HEAD},
    isolation::{Isolation, IsolationLevel},
    lock::{Lock, LockState, Locked, Verdict},
    manifest::{DecoderSpec, Manifest, StoreSpec},
    opener::{Opener, OpenerCandidate},
    search::{Search, SearchPlace},
    trust::Trust,
};
use self::{finder::Finder, opener::OpenerSlot, sealed::Sealed};
use crate::handles::{Loaded, PipeHandle};

/// The most lines of the text that says where plugins were looked for.
const LINES: usize = 6;

/// The plugins that were found, and why other files were refused. Cheap to clone.
#[derive(Clone)]
pub struct Registry(Arc<Inner>, Own);

/// What a registry has beside the plugins.
#[derive(Clone, Default)]
struct Own {
    closures: Vec<Arc<closures::Closure>>,
    tag: u64,
}

struct Inner {
    plugins: Vec<FoundPlugin>,
    places: Vec<Looked>,
    trust: Trust,
    isolation: Isolation,
    refusals: Vec<Refusal>,
    /// Plugins that are left out, by name.
    skip: Vec<String>,
    /// Priorities of decoders that were set from outside.
    ranks: Vec<(String, Option<u32>)>,
    /// What those that were refused claim.
    claims: OnceLock<Vec<Claim>>,
    /// The plugin and the place in its manifest of each pipe.
    pipes: HashMap<String, (usize, usize)>,
    decoders: Vec<DecoderSlot>,
    openers: Vec<OpenerSlot>,
    stores: Vec<StoreSlot>,
}

/// A decoder that some plugin offers, ready to be compared with a value's head.
struct DecoderSlot {
    plugin: usize,
    index: usize,
    /// `None` when it was left out from outside.
    priority: Option<u32>,
    magic: Vec<(usize, Vec<u8>)>,
    made: OnceLock<Result<AnyDecoder>>,
}

/// A store that some plugin offers; one instance serves all, so that it may keep its connections.
struct StoreSlot {
    plugin: usize,
    index: usize,
    made: OnceLock<Result<AnyStore>>,
}

/// A plugin that was found.
pub struct FoundPlugin {
    manifest: Manifest,
    origin: Origin,
    level: IsolationLevel,
    loaded: OnceLock<Result<Loaded>>,
    hash: OnceLock<Result<String>>,
}

enum Origin {
    /// The file, which is loaded by its path.
    File(Stamp),
    /// The file as it was found, and the copy that is loaded.
    Sealed(Stamp, Sealed),
    /// Linked in: into this program alone, or with the feature `bundled`, here and in worker processes.
    Linked { header: &'static LibHeader, own: bool },
}

/// A place that was searched, and what was there.
#[derive(Debug, Clone)]
pub struct Looked {
    /// The file or folder.
    pub place: SearchPlace,
    /// How many libraries are there; `None` if the place does not exist.
    pub libraries: Option<usize>,
}

/// A file that was refused, and why.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Refusal {
    /// The file.
    pub path: PathBuf,
    /// The kind of reason.
    pub why: Why,
    /// The reason.
    pub reason: Error,
}

/// Why a file was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Why {
    /// It is a library, but no plugin.
    Stranger,
    /// It cannot be read, or was built for another host.
    Unfit,
    /// It is not [trusted](Trust).
    Distrusted,
    /// Another plugin, or a pipe of another plugin, takes precedence.
    Outdone,
    /// `FOREBAY_PLUGIN_SKIP` names it.
    LeftOut,
}

impl Refusal {
    /// Whether the file is a library, but no plugin.
    #[must_use]
    pub fn is_stranger(&self) -> bool {
        self.why == Why::Stranger
    }
}

impl Registry {
    /// Finds plugins in all places of the environment, and those linked in with the feature `bundled`.
    ///
    /// # Errors
    /// `Invalid` if a variable cannot be read. A place or file that cannot be read is reported in the registry; it
    /// is no error.
    pub fn from_env() -> Result<Self> {
        Self::new(Search::from_env()?)
    }

    /// Finds plugins in these places, and those linked in with the feature `bundled`.
    ///
    /// # Errors
    /// `Abi` if a plugin that is linked in does not fit. `Invalid` if a plugin that must be isolated is not
    /// there.
    pub fn new(search: Search) -> Result<Self> {
        Finder::default().find(search)
    }

    /// The plugins, in the order of the search.
    #[must_use]
    pub fn plugins(&self) -> &[FoundPlugin] {
        &self.0.plugins
    }

    /// The places that were searched, in order.
    #[must_use]
    pub fn places(&self) -> &[Looked] {
        &self.0.places
    }

    /// Which of the plugins that are found may load.
    #[must_use]
    pub fn trust(&self) -> &Trust {
        &self.0.trust
    }

    /// Files that were refused, in the order of the search.
    #[must_use]
    pub fn refusals(&self) -> &[Refusal] {
        &self.0.refusals
    }

    /// Priorities of decoders that were set from outside.
    pub fn ranks(&self) -> &[(String, Option<u32>)] {
        &self.0.ranks
    }

    /// The plugin that has a pipe.
    #[must_use]
    pub fn plugin_of(&self, pipe: &str) -> Option<&FoundPlugin> {
        self.locate(pipe).map(|(plugin, _)| &self.0.plugins[plugin])
    }

    /// Makes a pipe, loading its plugin if need be; of one that only worker processes may load, something that stands for it.
    ///
    /// # Errors
    /// `Invalid` for options that the pipe refuses; `Abi`; `Panic`.
    pub fn make_pipe(&self, pipe: &str, options: &str) -> Result<PipeHandle> {
        if let Some(closure) = self.make_closure(pipe) {
            return Ok(closure);
        }
        let (plugin, index) =
            self.locate(pipe).ok_or_else(|| Error::invalid(format!("unknown pipe {pipe}")))?;
        let record = &self.0.plugins[plugin];
        if record.is_withheld() {
            return Ok(PipeHandle::elsewhere());
        }
        let name = &record.manifest.pipes[index].name;
        let callee = record.callee(name);
        let made = record.load().and_then(|plugin| handles::make_pipe(plugin, name, options, callee));
        made.map_err(|error| record.blame(error))
    }

    /// The store for a URL scheme.
    ///
    /// # Errors
    /// `Unsupported` when no plugin serves it; `Abi`.
    pub fn store(&self, scheme: &str) -> Result<AnyStore> {
        let spec = |slot: &StoreSlot| &self.0.plugins[slot.plugin].manifest.stores[slot.index];
        let serves = |slot: &&StoreSlot| spec(slot).schemes.iter().any(|known| known == scheme);
        let Some(slot) = self.0.stores.iter().find(serves) else {
            let error = Error::unsupported(format!("no plugin reads `{scheme}:` paths"));
            return Err(error.context("plugins", self.looked_at()));
        };
        let make = || {
            let record = &self.0.plugins[slot.plugin];
            let made = record.load().and_then(|plugin| handles::make_store(plugin, &spec(slot).name, "{}"));
            made.map_err(|error| record.blame(error))
        };
        slot.made.get_or_init(make).clone()
    }

    /// The instance of a decoder, made when it is first asked for; with options that a node gives it, the node's own.
    fn decoder(&self, slot: &DecoderSlot, tuned: &Tuned) -> Result<AnyDecoder> {
        let (made, options) = tuned.of(slot).unwrap_or((&slot.made, "{}"));
        let make = || {
            let record = &self.0.plugins[slot.plugin];
            let name = &record.manifest.decoders[slot.index].name;
            let callee = self.callee_of(slot);
            let made = record.load().and_then(|plugin| handles::make_decoder(plugin, name, options, callee));
            made.map_err(|error| record.blame(error).context("decoder", name))
        };
        made.get_or_init(make).clone()
    }

    fn spec(&self, slot: &DecoderSlot) -> &DecoderSpec {
        &self.0.plugins[slot.plugin].manifest.decoders[slot.index]
    }

    /// The place of a pipe, named alone or as `PLUGIN:PIPE`.
    fn locate(&self, pipe: &str) -> Option<(usize, usize)> {
        if let Some((plugin, pipe)) = pipe.split_once(':') {
            let exact = self.0.plugins.iter().position(|record| record.manifest.name == plugin);
            let at = exact.or_else(|| self.0.plugins.iter().position(|record| record.is_called(plugin)))?;
            let index = self.0.plugins[at].manifest.pipes.iter().position(|spec| spec.name == pipe)?;
            return Some((at, index));
        }
        self.0.pipes.get(pipe).copied()
    }

    /// The places that were searched and why files were refused, in at most ten lines.
    #[must_use]
    pub fn looked_at(&self) -> String {
        let mut lines = Vec::new();
        let mut refused = Vec::new();
        for looked in &self.0.places {
            let found = match looked.libraries {
                None => "not there".to_owned(),
                Some(_) => {
                    let ours =
                        self.0.plugins.iter().filter(|record| record.is_in(&looked.place.path)).count();
                    format!("{ours} plugins")
                }
            };
            lines.push(format!("{} ({}): {found}", looked.place.path.display(), looked.place.source));
        }
        for refusal in self.0.refusals.iter().filter(|refusal| !refusal.is_stranger()) {
            let reason = refusal.reason.message().lines().next().unwrap_or_default().to_owned();
            refused.push(format!("{} refused: {reason}", refusal.path.display()));
        }
        let strangers = self.0.refusals.iter().filter(|refusal| refusal.is_stranger()).count();
        if strangers > 0 {
            refused.push(format!("{strangers} libraries that are no plugins"));
        }
        let all = lines.len() + refused.len();
        if all > LINES {
            // Many places are no reason not to hear why something was refused.
            lines.truncate(LINES - refused.len().min(LINES / 2));
        }
        lines.append(&mut refused);
        lines.truncate(LINES);
        if all > LINES {
            let more = all - LINES;
            lines.push(format!("and {more} more; `forebay plugins list` shows all"));
        }
        let mut text = "looked in".to_owned();
        if lines.is_empty() {
            text.push_str(" no place: plugins are switched off");
        }
        for line in lines {
            let _ = write!(text, "\n  {line}");
        }
        if self.plugins().is_empty() {
            text.push_str(
                "\n  found no plugin: name the folder of their libraries in FOREBAY_PLUGIN_PATH, or build with the \
                 feature `bundled`",
            );
        }
        text
    }
}

impl Catalog for Registry {
    fn pipe(&self, name: &str) -> Option<&PipeSpec> {
        // First, as where pipes are made: a worker knows those of the program, and may find others of these names.
        let found = || self.locate(name).map(|(plugin, index)| &self.0.plugins[plugin].manifest.pipes[index]);
        self.closure_spec(name).or_else(found)
    }

    fn names(&self) -> Vec<String> {
        let own = |name: &&String| !self.pipe(name).is_some_and(PipeSpec::is_part);
        let mut names: Vec<_> = self
            .0
            .pipes
            .keys()
            .filter(own)
            .cloned()
            .chain(self.closures().map(|spec| spec.name.clone()))
            .collect();
        names.sort();
        names.dedup();
        names
    }

    fn called(&self, name: &str) -> Vec<&str> {
        let specs = self.0.plugins.iter().flat_map(|plugin| &plugin.manifest.pipes);
        specs
            .filter(|spec| spec.also.iter().any(|also| also == name))
            .map(|spec| spec.name.as_str())
            .collect()
    }

    fn looked(&self) -> String {
        self.looked_at()
    }

    fn decoders(&self, name: &str) -> Vec<&[OptionSpec]> {
        self.called_so(name).map(|slot| self.spec(slot).options.as_slice()).collect()
    }

    fn decoder_names(&self) -> Vec<String> {
        self.0.decoders.iter().map(|slot| self.spec(slot).name.clone()).collect()
    }

    fn isolates(&self, node: &Node) -> Option<On> {
        self.level_of(node).place()
    }
}
