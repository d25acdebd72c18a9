//! `forebay plugins list`: all plugins, what was refused, and where was looked.

use std::io::{self, Write};

use forebay_loader::{Isolation, Registry, Trust, registry::Refusal};
use serde_json::json;

use super::{described, people};
use crate::{
    outcome::{Result, Stop},
    print::{self, TextTable, counted, near},
};

/// Shows them; the exit code says whether a plugin was refused.
pub(super) fn list(registry: &Registry, all: bool, json: bool) -> Result {
    if json {
        print::json(&listed(registry, all))?;
    } else {
        print::text(|out| write_list(registry, all, out))?;
    }
    let refused = registry.refusals().iter().any(|refusal| !refusal.is_stranger());
    if refused { Err(Stop::No) } else { Ok(()) }
}

fn listed(registry: &Registry, all: bool) -> serde_json::Value {
    let plugins: Vec<_> = registry.plugins().iter().map(described).collect();
    let strangers = registry.refusals().iter().filter(|refusal| refusal.is_stranger()).count();
    let places = registry.places().iter().map(
        |looked| json!({ "path": looked.place.path, "source": looked.place.source, "libraries": looked.libraries }),
    );
    json!({
        "plugins": plugins,
        "refused": refused(registry, all),
        "trust": registry.trust().to_string(),
        "isolation": registry.isolation().to_string(),
        "strangers": strangers,
        "places": places.collect::<Vec<_>>(),
    })
}

/// Files that were not taken; `all` of them, or those that would be plugins.
pub(super) fn refused(registry: &Registry, all: bool) -> Vec<serde_json::Value> {
    let refused = registry.refusals().iter().filter(|refusal| all || !refusal.is_stranger());
    let told = |refusal: &Refusal| json!({ "path": refusal.path, "why": refusal.why, "reason": refusal.reason.to_string() });
    refused.map(told).collect()
}

fn write_list(registry: &Registry, all: bool, out: &mut dyn Write) -> io::Result<()> {
    let mut table = TextTable::new(&["plugin", "version", "ABI", "licence", "file"]);
    for record in registry.plugins() {
        let manifest = record.manifest();
        let abi = manifest.abi_name();
        let name = manifest.name.clone();
        table.row([name, manifest.version.clone(), abi, manifest.license.clone(), near(&record.file())]);
    }
    table.write(out, "")?;
    for record in registry.plugins() {
        let manifest = record.manifest();
        writeln!(out, "\n{}", manifest.name)?;
        let mut table = TextTable::new(&["", ""]);
        for (what, names) in [
            ("pipes", people(&manifest.pipes).map(|pipe| pipe.name.as_str()).collect::<Vec<_>>()),
            ("decoders", manifest.decoders.iter().map(|decoder| decoder.name.as_str()).collect()),
            ("stores", manifest.stores.iter().map(|store| store.name.as_str()).collect()),
        ] {
            if !names.is_empty() {
                table.row([what.to_owned(), names.join(", ")]);
            }
        }
        table.write(out, "  ")?;
    }
    write_refusals(registry, all, out)?;
    writeln!(out, "\nlooked in")?;
    let mut table = TextTable::new(&["", "", ""]);
    for looked in registry.places() {
        let libraries = looked.libraries.map(|count| counted(count as u64, "library", "libraries"));
        let libraries = libraries.unwrap_or_else(|| "not there".to_owned());
        table.row([looked.place.path.display().to_string(), libraries, looked.place.source.to_owned()]);
    }
    if registry.places().is_empty() {
        writeln!(out, "  no place: plugins are switched off")?;
    }
    table.write(out, "  ")?;
    match registry.trust() {
        Trust::Open => {}
        trust => writeln!(out, "\ntrusted: {trust}")?,
    }
    match registry.isolation() {
        none if *none == Isolation::default() => Ok(()),
        isolation => writeln!(out, "\nisolated: {isolation}"),
    }
}

/// Files that were not taken, and why.
pub(super) fn write_refusals(registry: &Registry, all: bool, out: &mut dyn Write) -> io::Result<()> {
    let (strangers, refused): (Vec<_>, Vec<_>) =
        registry.refusals().iter().partition(|refusal| !all && refusal.is_stranger());
    if !refused.is_empty() {
        writeln!(out, "\nrefused")?;
    }
    for refusal in refused {
        writeln!(out, "  {}: {}", refusal.path.display(), refusal.reason)?;
    }
    match strangers.len() as u64 {
        0 => Ok(()),
        count => {
            let libraries = counted(count, "library is no plugin", "libraries are no plugins");
            writeln!(out, "\n{libraries}; --all names them")
        }
    }
}
