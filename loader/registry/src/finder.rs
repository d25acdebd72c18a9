//! Finding plugins: files are looked at in the order of the search, and of two that offer the same one is taken.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use forebay_core::{Error, ErrorKind, Registrar, Result, StaticPlugin};

use super::{
    DecoderSlot, FoundPlugin, Inner, Looked, Manifest, Origin, Own, Refusal, Registry, Search, StoreSlot,
    Why, opener::OpenerSlot, stamp::Stamp, trust,
};

/// Collects plugins, in the order of the search.
#[derive(Default)]
pub(super) struct Finder {
    plugins: Vec<FoundPlugin>,
    places: Vec<Looked>,
    refusals: Vec<Refusal>,
}

impl Registrar for Finder {
    /// Adds one that is linked into this program alone.
    fn add(&mut self, plugin: StaticPlugin) -> Result<()> {
        let manifest = Manifest::parse(&plugin.manifest)?;
        self.admit(FoundPlugin::new(manifest, Origin::Linked { header: plugin.header, own: true }));
        Ok(())
    }
}

/// Adds what is linked in here and in worker processes, as with the feature `bundled`.
pub(super) struct Everywhere<'a>(pub(super) &'a mut Finder);

impl Registrar for Everywhere<'_> {
    fn add(&mut self, plugin: StaticPlugin) -> Result<()> {
        let manifest = Manifest::parse(&plugin.manifest)?;
        self.0.admit(FoundPlugin::new(manifest, Origin::Linked { header: plugin.header, own: false }));
        Ok(())
    }
}

impl Finder {
    /// Beside the plugins that it has, those in the places of a search, and those linked in with the feature `bundled`.
    ///
    /// # Errors
    /// `Abi`, when a plugin that is linked in does not fit; `Invalid`, when a plugin is to be isolated that is not there.
    pub(super) fn find(mut self, mut search: Search) -> Result<Registry> {
        search.trust = search.trust.settled();
        #[cfg(feature = "bundled")]
        if !search.none {
            forebay_bundled::register(&mut Everywhere(&mut self))?;
        }
        self.leave_out(&search.skip);
        self.look(&search);
        self.finish(&search)
    }

    /// Leaves out plugins that are linked in, by name.
    fn leave_out(&mut self, skip: &[String]) {
        for record in self.plugins.extract_if(.., |record| skip.contains(&record.manifest.name)) {
            let reason =
                Error::invalid("left out by FOREBAY_PLUGIN_SKIP").context("plugin", &record.manifest.name);
            self.refusals.push(Refusal { path: PathBuf::from("this program"), why: Why::LeftOut, reason });
        }
    }

    fn look(&mut self, search: &Search) {
        let mut seen = Vec::new();
        for place in &search.places {
            let mut candidates = place.candidates().unwrap_or_else(|reason| {
                self.refuse(place.path.clone(), Why::Unfit, reason);
                Some(Vec::new())
            });
            candidates
                .iter_mut()
                .for_each(|files| files.retain(|file| search.program.as_ref() != Some(file)));
            let libraries = candidates.as_ref().map(Vec::len);
            self.places.push(Looked { place: place.clone(), libraries });
            for path in candidates.into_iter().flatten() {
                let id = identity(&path);
                if seen.contains(&id) {
                    continue;
                }
                match judge(&path, search) {
                    Ok(record) => self.admit(record),
                    Err((why, reason)) => {
                        self.refuse(path, why, reason);
                        // By another way it may be trusted.
                        if why == Why::Distrusted {
                            continue;
                        }
                    }
                }
                seen.push(id);
            }
        }
        for name in &search.skip {
            if !self.refusals.iter().any(|refusal| refusal.reason.get("plugin") == Some(name)) {
                let reason = Error::invalid(format!("FOREBAY_PLUGIN_SKIP names {name}, which is not there"));
                self.refuse(PathBuf::from(name), Why::LeftOut, reason);
            }
        }
    }

    fn refuse(&mut self, path: PathBuf, why: Why, reason: Error) {
        self.refusals.push(Refusal { path, why, reason });
    }

    /// Of two plugins with one name the higher version stays, and of equal versions the first; the other is told.
    fn admit(&mut self, new: FoundPlugin) {
        let twin = self.plugins.iter_mut().find(|record| record.manifest.name == new.manifest.name);
        let Some(old) = twin else { return self.plugins.push(new) };
        let newer = version(&new.manifest.version) > version(&old.manifest.version);
        let loser = if newer { std::mem::replace(old, new) } else { new };
        let winner = format!("{} {}", old.label(), old.file());
        let reason = Error::invalid(format!("{} gives way to {winner}", loser.label()));
        self.refuse(PathBuf::from(loser.file()), Why::Outdone, reason);
    }

    /// # Errors
    /// `Invalid`, when a plugin is to be isolated that is not there.
    pub(super) fn finish(mut self, search: &Search) -> Result<Registry> {
        search.isolation.check(&self.plugins)?;
        // What the program itself is cannot be kept away from it.
        for record in self.plugins.iter_mut().filter(|record| !record.is_own()) {
            record.level = search.isolation.of(record);
        }
        let mut pipes = HashMap::new();
        for (plugin, record) in self.plugins.iter().enumerate() {
            for (index, spec) in record.manifest.pipes.iter().enumerate() {
                let (first, _) = *pipes.entry(spec.name.clone()).or_insert((plugin, index));
                if first != plugin {
                    let winner = self.plugins[first].label();
                    let hint = format!("{}:{}", record.manifest.name, spec.name);
                    let reason = Error::invalid(format!(
                        "its pipe {} gives way to that of {winner}; call it {hint}",
                        spec.name
                    ));
                    let (path, why) = (PathBuf::from(record.file()), Why::Outdone);
                    self.refusals.push(Refusal { path, why, reason });
                }
            }
        }
        let mut decoders = Vec::new();
        let mut openers = Vec::new();
        let mut stores = Vec::new();
        for (plugin, record) in self.plugins.iter().enumerate() {
            for (index, spec) in record.manifest.decoders.iter().enumerate() {
                let set = search.ranks.iter().find(|(name, _)| *name == spec.name);
                let priority = set.map_or(Some(spec.priority), |(_, rank)| *rank);
                let magic = spec
                    .magic
                    .iter()
                    .map(|magic| (magic.offset, magic.decode().unwrap_or_default()))
                    .collect();
                decoders.push(DecoderSlot { plugin, index, priority, magic, made: OnceLock::new() });
            }
            let indices = 0..record.manifest.stores.len();
            openers.extend(OpenerSlot::all(plugin, &record.manifest));
            stores.extend(indices.map(|index| StoreSlot { plugin, index, made: OnceLock::new() }));
        }
        let Self { plugins, places, refusals } = self;
        let (trust, isolation) = (search.trust.clone(), search.isolation.clone());
        let inner = Inner {
            plugins,
            places,
            trust,
            isolation,
            refusals,
            skip: search.skip.clone(),
            ranks: search.ranks.clone(),
            claims: OnceLock::new(),
            pipes,
            decoders,
            openers,
            stores,
        };
        Ok(Registry(Arc::new(inner), Own::default()))
    }
}

/// Whether a file is a plugin that may be loaded.
fn judge(path: &Path, search: &Search) -> Result<FoundPlugin, (Why, Error)> {
    let unfit = |reason: Error| match reason.kind() {
        ErrorKind::Unsupported => (Why::Stranger, reason),
        _ => (Why::Unfit, reason),
    };
    // Before anything is read: a worker compares with it what it finds.
    let stamp = Stamp::of(path).map_err(unfit)?;
    let manifest = Manifest::read(path).map_err(unfit)?;
    if search.skip.contains(&manifest.name) {
        let reason = Error::invalid("left out by FOREBAY_PLUGIN_SKIP").context("plugin", &manifest.name);
        return Err((Why::LeftOut, reason));
    }
    let named = search.places.iter().any(|place| place.path == path);
    match search.trust.admit(manifest, path, named) {
        Ok((manifest, None)) => Ok(FoundPlugin::new(manifest, Origin::File(stamp))),
        Ok((manifest, Some(sealed))) => Ok(FoundPlugin::new(manifest, Origin::Sealed(stamp, sealed))),
        Err(reason) => Err((Why::Distrusted, trust::distrusted(&reason))),
    }
}

/// What makes two paths the same file.
fn identity(path: &Path) -> (u64, u64, PathBuf) {
    use std::os::unix::fs::MetadataExt;
    match fs::metadata(path) {
        Ok(metadata) => (metadata.dev(), metadata.ino(), PathBuf::new()),
        Err(_) => (0, 0, path.to_owned()),
    }
}

/// Numbers of a version, to be compared; a pre-release counts as its release.
fn version(text: &str) -> Vec<u64> {
    let release = text.split(['-', '+']).next().unwrap_or_default();
    release.split('.').map_while(|part| part.parse().ok()).collect()
}
