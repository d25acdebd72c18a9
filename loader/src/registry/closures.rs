//! Maps that are closures of the program itself: pipes without a plugin.

use std::sync::Arc;

use forebay_core::{Context, Error, Result, Sample, shim::MapFn};

use super::Registry;
use crate::{
    Graph,
    graph::{Catalog as _, On, PipeSpec},
    handles::{self, PipeHandle},
    plan::Plan,
};

/// A closure, and what it is as a pipe.
pub(super) struct Closure {
    spec: PipeSpec,
    map: Arc<MapFn>,
}

impl Registry {
    /// This registry with one more pipe: the map `name`, without options, which calls `map` on each sample.
    ///
    /// It is called from many threads at once. Nothing but its name tells it from others, in fingerprints and in snapshots: who changes
    /// what it does changes its name. No other process has it, so `on=process`, and `processes:N` without `on=threads`, are refused
    /// when a loader is built.
    ///
    /// # Errors
    /// `Invalid` when there is a pipe with this name.
    ///
    /// # Examples
    /// ```
    /// use forebay_loader::{Executor, Graph, Loader, Registry};
    ///
    /// let registry = Registry::from_env()?.with_map("halve", |sample, _| {
    ///     let half = sample.get("value").and_then(|value| value.as_i64()).unwrap_or(0) / 2;
    ///     sample.set("value", half);
    ///     Ok(())
    /// })?;
    /// # #[cfg(feature = "bundled")] {
    /// let graph = Graph::from_line("range 10 | halve | batch 5")?;
    /// let mut loader = Loader::builder(graph).executor(Executor::Threads(2)).build(&registry)?;
    /// assert_eq!(loader.epoch(0).count(), 2);
    /// # }
    /// # Ok::<(), forebay_core::Error>(())
    /// ```
    pub fn with_map(
        &self,
        name: &str,
        map: impl Fn(&mut Sample, &Context<'_>) -> Result<()> + Send + Sync + 'static,
    ) -> Result<Self> {
        if self.pipe(name).is_some() {
            return Err(Error::invalid(format!(
                "there is a pipe called `{name}`; give the closure another name"
            )));
        }
        let spec = PipeSpec::map(name, "A closure of this program");
        let Self(found, closures) = self;
        let one = Arc::new(Closure { spec, map: Arc::new(map) });
        Ok(Self(Arc::clone(found), closures.iter().cloned().chain([one]).collect()))
    }

    /// The names of the closures.
    pub(crate) fn closures(&self) -> Vec<String> {
        self.1.iter().map(|closure| closure.spec.name.clone()).collect()
    }

    /// With maps of these names, for a process that has to know of them and not to run them.
    pub(crate) fn knowing(self, closures: &[String]) -> Result<Self> {
        closures.iter().try_fold(self, |registry, name| {
            registry.with_map(name, |_, _| Err(Error::bug("a closure was called in another process")))
        })
    }

    pub(super) fn closure_spec(&self, name: &str) -> Option<&PipeSpec> {
        self.closure(name).map(|closure| &closure.spec)
    }

    pub(super) fn make_closure(&self, name: &str) -> Option<PipeHandle> {
        self.closure(name).map(|closure| handles::closure(Arc::clone(&closure.map)))
    }

    /// Refuses a plan by which a closure would run in another process.
    pub(crate) fn check_closures(&self, graph: &Graph, plan: &Plan) -> Result<()> {
        let away = plan.segments.iter().filter(|segment| segment.on == On::Process);
        for node in away.flat_map(|segment| &segment.nodes).filter_map(|&at| graph.nodes().get(at)) {
            if self.closure(&node.pipe).is_some() {
                return Err(Error::invalid(format!(
                    "`{}` is a closure of this program, which no worker process has: give it on=threads, or make it a plugin",
                    node.pipe
                ))
                .context("pipe", &node.name));
            }
        }
        Ok(())
    }

    fn closure(&self, name: &str) -> Option<&Closure> {
        self.1.iter().find(|closure| closure.spec.name == name).map(|closure| &**closure)
    }
}
