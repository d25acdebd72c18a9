//! What this program has and no other process: plugins that are linked into it, and closures.

use forebay_core::{Registrar, Result};
use forebay_graph::{Catalog as _, Graph, PipeSpec};

use super::{
    FoundPlugin, Origin, Registry, Search,
    finder::{Everywhere, Finder},
};

impl Registry {
    /// Only the plugins that `register` adds: for programs that link all they need.
    ///
    /// No worker process has them: see [`with_linked`](Registry::with_linked).
    ///
    /// # Errors
    /// That of `register`.
    pub fn linked(register: impl FnOnce(&mut dyn Registrar) -> Result<()>) -> Result<Self> {
        let mut finder = Finder::default();
        register(&mut finder)?;
        finder.finish(&Search::nowhere())
    }

    /// The plugins that `register` adds, and those that [`new`](Registry::new) finds: for a program with pipes of its own, such as a source
    /// with state, or a decoder or store. Of plugins with one name the higher version counts, and of equal ones the linked one.
    ///
    /// A crate is a plugin by [`export_plugin!`](forebay_core::export_plugin), which writes `register`. No other process has what is linked
    /// into this one, so `on=process`, and `processes:N` for what has no `on=threads`, are refused when a loader is built.
    ///
    /// # Errors
    /// That of `register`, and those of [`new`](Registry::new).
    ///
    /// # Examples
    /// ```
    /// mod own {
    ///     use forebay_core::{Context, DataPipe, Key, NoOptions, PipeInfo, Result, Sample, Source, State, StateExt};
    ///
    ///     /// The Fibonacci numbers up to 100.
    ///     struct Fibonacci(i64, i64);
    ///
    ///     impl DataPipe for Fibonacci {
    ///         const INFO: PipeInfo = PipeInfo { name: "fibonacci", summary: "Sums of the last two", ..PipeInfo::DEFAULT };
    ///         type Options = NoOptions;
    ///
    ///         fn new(_: NoOptions) -> Result<Self> {
    ///             Ok(Self(0, 1))
    ///         }
    ///     }
    ///
    ///     impl Source for Fibonacci {
    ///         fn reset(&mut self, _: &Context) -> Result<()> {
    ///             (self.0, self.1) = (0, 1);
    ///             Ok(())
    ///         }
    ///
    ///         fn next(&mut self, _: &Context) -> Result<Option<Sample>> {
    ///             let value = self.0;
    ///             (self.0, self.1) = (self.1, self.0 + self.1);
    ///             let mut sample = Sample::new(self.1.cast_unsigned(), Key::default());
    ///             sample.set("value", value);
    ///             Ok((value <= 100).then_some(sample))
    ///         }
    ///
    ///         fn state(&self) -> Result<State> {
    ///             State::json(1, &(self.0, self.1))
    ///         }
    ///
    ///         fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
    ///             (self.0, self.1) = state.parse(1)?;
    ///             Ok(())
    ///         }
    ///     }
    ///
    ///     forebay_core::export_plugin! { sources: [Fibonacci] }
    /// }
    ///
    /// use forebay_graph::Catalog;
    /// use forebay_registry::{Registry, Search};
    ///
    /// # fn main() -> forebay_core::Result<()> {
    /// let registry = Registry::with_linked(Search::from_env()?, own::register)?;
    /// // From here on graphs have it: `fibonacci | batch 4`.
    /// assert!(registry.pipe("fibonacci").is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_linked(
        search: Search,
        register: impl FnOnce(&mut dyn Registrar) -> Result<()>,
    ) -> Result<Self> {
        let mut finder = Finder::default();
        register(&mut finder)?;
        finder.find(search)
    }

    /// As [`with_linked`](Registry::with_linked), for a program whose worker processes have these plugins too: its
    /// worker program calls `serve_if_worker_with` with the same `register`. So
    /// their pipes may run on `processes:N` and with `on=process`.
    ///
    /// A worker that lacks one of them, or has it in another version, is refused as it starts.
    ///
    /// # Errors
    /// As [`with_linked`](Registry::with_linked).
    pub fn with_linked_in_workers(
        search: Search,
        register: impl FnOnce(&mut dyn Registrar) -> Result<()>,
    ) -> Result<Self> {
        let mut finder = Finder::default();
        register(&mut Everywhere(&mut finder))?;
        finder.find(search)
    }

    /// This registry, whose pipes are told `tag` by [`Context::tag`](forebay_core::Context::tag): a program with pipes of its own gives each of its loaders
    /// another, and they find what belongs to theirs. It is told to no worker process, which works for one loader.
    #[must_use]
    pub fn with_tag(&self, tag: u64) -> Self {
        let mut with = self.clone();
        with.1.tag = tag;
        with
    }

    /// What [`with_tag`](Registry::with_tag) gave; 0 unless it did.
    pub fn tag(&self) -> u64 {
        self.1.tag
    }

    /// The plugins that are linked in here and must be in worker processes: name and version.
    pub fn linked_in_workers(&self) -> Vec<(String, String)> {
        let everywhere = |record: &&FoundPlugin| matches!(record.origin, Origin::Linked { own: false, .. });
        let named = |record: &FoundPlugin| (record.manifest.name.clone(), record.manifest.version.clone());
        self.plugins().iter().filter(everywhere).map(named).collect()
    }

    /// The pipes of a graph that no other process has, by the names that it calls them.
    pub fn own_pipes(&self, graph: &Graph) -> Vec<PipeSpec> {
        let own = graph.nodes().iter().filter(|node| self.is_own(&node.pipe));
        let named = own
            .filter_map(|node| Some(PipeSpec { name: node.pipe.clone(), ..self.pipe(&node.pipe)?.clone() }));
        let mut pipes: Vec<PipeSpec> = named.collect();
        pipes.sort_by(|a, b| a.name.cmp(&b.name));
        pipes.dedup_by(|a, b| a.name == b.name);
        pipes
    }

    /// A plugin that is linked into this program and has what any pipe may ask for.
    pub fn serves_others(&self) -> Option<&FoundPlugin> {
        let serves = |record: &&FoundPlugin| {
            !(record.manifest.decoders.is_empty() && record.manifest.stores.is_empty())
        };
        self.plugins().iter().filter(|record| record.is_own()).find(serves)
    }

    /// Whether a pipe is a closure of this program, or of a plugin that is linked into it alone.
    #[must_use]
    pub fn is_own(&self, pipe: &str) -> bool {
        match self.plugin_of(pipe) {
            Some(plugin) => plugin.is_own(),
            None => self.closures().any(|closure| closure.name == pipe),
        }
    }
}

impl FoundPlugin {
    /// Whether it is linked into this program alone.
    pub(super) fn is_own(&self) -> bool {
        matches!(self.origin, Origin::Linked { own: true, .. })
    }
}
