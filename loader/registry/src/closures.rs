//! Maps, flat maps and filters that are closures of the program: pipes without a plugin.

use std::sync::Arc;

use forebay_core::{Context, Drops, Error, PipeAudit, PipePlacement, Result, Sample, shim};
use forebay_graph::{Catalog as _, Class, PipeSpec};

use super::Registry;
use crate::handles::{self, PipeHandle};

/// A closure, and what it is as a pipe.
pub(super) struct Closure {
    spec: PipeSpec,
    call: shim::Closure,
}

impl Registry {
    /// This registry with one more pipe: the map `name`, without options, which calls `map` on each sample.
    ///
    /// Many threads call it at once. Fingerprints and snapshots know it only by its name, so change the name if
    /// you change what it does. No other process has the closure. So a loader refuses `on=process`, and
    /// `processes:N` without `on=threads`.
    ///
    /// # Errors
    /// `Invalid` if a pipe has this name.
    ///
    /// # Examples
    /// ```
    /// use forebay_graph::{Catalog, Class};
    /// use forebay_registry::Registry;
    ///
    /// let registry = Registry::from_env()?.with_map("halve", |sample, _| {
    ///     let half = sample.get("value").and_then(|value| value.as_i64()).unwrap_or(0) / 2;
    ///     sample.set("value", half);
    ///     Ok(())
    /// })?;
    /// // From here on graphs have it: `range 10 | halve | batch 5`.
    /// assert!(registry.pipe("halve").is_some_and(|pipe| pipe.class == Class::Map));
    /// # Ok::<(), forebay_core::Error>(())
    /// ```
    pub fn with_map(
        &self,
        name: &str,
        map: impl Fn(&mut Sample, &Context<'_>) -> Result<()> + Send + Sync + 'static,
    ) -> Result<Self> {
        self.with(name, shim::Closure::Map(Arc::new(map)))
    }

    /// This registry with one more pipe: the flat map `name`, without options, which gives the samples that
    /// `expand` makes of each sample, in their order. It works on several samples at once. Each new sample gets
    /// its own uid, and the key of the original unless it has another. Otherwise as
    /// [`with_map`](Registry::with_map).
    ///
    /// # Errors
    /// `Invalid` if a pipe has this name.
    ///
    /// # Examples
    /// ```
    /// use forebay_graph::{Catalog, Class};
    /// use forebay_registry::Registry;
    ///
    /// let registry = Registry::from_env()?.with_flat_map("twice", |sample, _| Ok(vec![sample.clone(), sample]))?;
    /// // `range 10 | twice` gives 20 samples.
    /// assert!(registry.pipe("twice").is_some_and(|pipe| pipe.class == Class::FlatMap));
    /// # Ok::<(), forebay_core::Error>(())
    /// ```
    pub fn with_flat_map(
        &self,
        name: &str,
        expand: impl Fn(Sample, &Context<'_>) -> Result<Vec<Sample>> + Send + Sync + 'static,
    ) -> Result<Self> {
        self.with(name, shim::Closure::FlatMap(Arc::new(expand)))
    }

    /// This registry with one more pipe: the filter `name`, without options, which leaves out samples for which
    /// `passes` is false. It works on several samples at once. Otherwise as [`with_map`](Registry::with_map).
    ///
    /// # Errors
    /// `Invalid` if a pipe has this name.
    ///
    /// # Examples
    /// ```
    /// use forebay_graph::Catalog;
    /// use forebay_registry::Registry;
    ///
    /// let registry = Registry::from_env()?.with_filter("even", |sample, _| {
    ///     Ok(sample.get("value").and_then(|value| value.as_i64()).is_some_and(|value| value % 2 == 0))
    /// })?;
    /// // `range 10 | even` gives 5 samples.
    /// assert!(registry.pipe("even").is_some());
    /// # Ok::<(), forebay_core::Error>(())
    /// ```
    pub fn with_filter(
        &self,
        name: &str,
        passes: impl Fn(&Sample, &Context<'_>) -> Result<bool> + Send + Sync + 'static,
    ) -> Result<Self> {
        self.with(name, shim::Closure::Filter(Arc::new(passes)))
    }

    fn with(&self, name: &str, call: shim::Closure) -> Result<Self> {
        if self.pipe(name).is_some() {
            return Err(Error::invalid(format!(
                "there is a pipe called `{name}`; give the closure another name"
            )));
        }
        let map = PipeSpec::map(name, "A closure of this program");
        let flat_map = |drops: Drops| PipeSpec {
            class: Class::FlatMap,
            placement: PipePlacement { parallel: true, ..PipePlacement::DEFAULT },
            audit: PipeAudit { drops, ..PipeAudit::DEFAULT },
            ..map.clone()
        };
        let spec = match &call {
            shim::Closure::Map(_) => map,
            shim::Closure::FlatMap(_) => flat_map(Drops::Never),
            shim::Closure::Filter(_) => flat_map(Drops::Always),
        };
        let mut with = self.clone();
        with.1.closures.push(Arc::new(Closure { spec, call }));
        Ok(with)
    }

    /// The closures as pipes.
    pub(super) fn closures(&self) -> impl Iterator<Item = &PipeSpec> {
        self.1.closures.iter().map(|closure| &closure.spec)
    }

    /// With such pipes, for a process that has to know of them and not to run them.
    pub fn knowing(mut self, own: &[PipeSpec]) -> Self {
        let call = || {
            shim::Closure::Map(Arc::new(|_, _| Err(Error::bug("what one program has was called in another"))))
        };
        self.1.closures =
            own.iter().map(|spec| Arc::new(Closure { spec: spec.clone(), call: call() })).collect();
        self
    }

    pub(super) fn closure_spec(&self, name: &str) -> Option<&PipeSpec> {
        self.closure(name).map(|closure| &closure.spec)
    }

    pub(super) fn make_closure(&self, name: &str) -> Option<PipeHandle> {
        self.closure(name).map(|closure| handles::closure(closure.call.clone()))
    }

    fn closure(&self, name: &str) -> Option<&Closure> {
        self.1.closures.iter().find(|closure| closure.spec.name == name).map(|closure| &**closure)
    }
}
