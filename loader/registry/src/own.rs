//! Pipes that only this program has: linked plugins and closures.

use forebay_core::{Registrar, Result};
use forebay_graph::{Catalog as _, Graph, PipeSpec};

use super::{
    FoundPlugin, Origin, Registry, Search,
    finder::{Everywhere, Finder},
};

impl Registry {
    /// A registry of only the plugins that `register` adds, for programs that link all they need.
    ///
    /// No worker process has these plugins: see [`with_linked`](Registry::with_linked).
    ///
    /// # Errors
    /// The error of `register`.
    pub fn linked(register: impl FnOnce(&mut dyn Registrar) -> Result<()>) -> Result<Self> {
        let mut finder = Finder::default();
        register(&mut finder)?;
        finder.finish(&Search::nowhere())
    }

    /// The plugins that `register` adds and those that [`new`](Registry::new) finds. It is for a program with
    /// pipes of its own, such as a source with state, a decoder or a store. If two plugins have one name, the
    /// higher version wins; if the versions are equal, the linked plugin wins.
    ///
    /// [`export_plugin!`](forebay_core::export_plugin) makes a crate a plugin, and writes its `register`. No other
    /// process has plugins that are linked into this one. So a loader refuses `on=process` for them, and
    /// `processes:N` unless they have `on=threads`.
    ///
    /// # Errors
    /// The error of `register`, and those of [`new`](Registry::new).
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

    /// As [`with_linked`](Registry::with_linked), for a program whose worker processes have these plugins too. The
    /// worker program calls `serve_if_worker_with` with the same `register`. So their pipes can run on
    /// `processes:N` and with `on=process`.
    ///
    /// A worker without one of these plugins, or with another version of it, is refused when it starts.
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

    /// This registry, whose pipes get `tag` from [`Context::tag`](forebay_core::Context::tag). A program with its
    /// own pipes gives each of its loaders another tag, so that a pipe finds the data of its loader. Worker
    /// processes do not get the tag, because each works for one loader.
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

    /// Whether a pipe is a closure of this program, or comes from a plugin that only this program links.
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
