//! Checks of a plugin as a whole.

use std::{fs, path::Path};

use forebay_loader::{graph::OptionSpec, registry::Manifest};
use object::Object as _;

use super::{Check, Found, Kind, Miss, expect};
use crate::conformance::bench::Bench;

pub(super) const MANIFEST: Check = Check {
    name: "manifest",
    kind: Kind::Plugin,
    promise: "its manifest names its parts, its licence and every option, and can be read without its code",
    run: |bench| {
        let registry = bench.registry()?;
        let manifest = bench.kit.record(&registry)?.manifest();
        let lacks = lacks(manifest);
        expect(lacks.is_empty(), || lacks.join("; "))?;
        let Manifest { pipes, decoders, stores, .. } = manifest;
        let pipes = pipes.iter().filter(|pipe| !pipe.is_part()).count();
        let offers = [("pipe", pipes), ("decoder", decoders.len()), ("store", stores.len())];
        let offers = offers.into_iter().filter(|(_, count)| *count > 0);
        let offers =
            offers.map(|(what, count)| format!("{count} {what}{}", if count == 1 { "" } else { "s" }));
        Ok(offers.collect::<Vec<_>>().join(", "))
    },
};

/// What a manifest leaves out.
fn lacks(manifest: &Manifest) -> Vec<String> {
    let mut lacks = Vec::new();
    for (what, text) in [("version", &manifest.version), ("licence", &manifest.license)] {
        if text.is_empty() {
            lacks.push(format!("no {what}"));
        }
    }
    let pipes = manifest.pipes.iter().filter(|pipe| !pipe.is_part());
    let pipes = pipes.map(|pipe| ("pipe", &pipe.name, &pipe.summary, &pipe.options));
    let decoders = manifest.decoders.iter().map(|it| ("decoder", &it.name, &it.summary, &it.options));
    let stores = manifest.stores.iter().map(|it| ("store", &it.name, &it.summary, &it.options));
    let mut count = 0;
    for (what, name, summary, options) in pipes.chain(decoders).chain(stores) {
        count += 1;
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '.');
        if name.is_empty() || !name.chars().all(plain) {
            lacks.push(format!("{what} `{name}` has a bad name, expected small letters, digits and `_`"));
        }
        if summary.trim().is_empty() {
            lacks.push(format!("{what} {name} has no summary"));
        }
        let bare = |option: &&OptionSpec| option.doc.trim().is_empty();
        lacks.extend(
            options
                .iter()
                .filter(bare)
                .map(|option| format!("option {} of {what} {name} has no documentation", option.name)),
        );
    }
    for decoder in &manifest.decoders {
        if decoder.extensions.is_empty() && decoder.magic.is_empty() {
            lacks.push(format!(
                "decoder {} has no extension and no magic bytes, so it is never chosen",
                decoder.name
            ));
        }
    }
    for store in manifest.stores.iter().filter(|store| store.schemes.is_empty()) {
        lacks.push(format!("store {} serves no scheme, so it is never chosen", store.name));
    }
    if count == 0 {
        lacks.push("it has no pipe, no decoder and no store".to_owned());
    }
    lacks
}

pub(super) const SYMBOLS: Check = Check {
    name: "symbols",
    kind: Kind::Plugin,
    promise: "its library exports its entry, and no symbol that could clash with another library's",
    run: |bench| {
        let registry = bench.registry()?;
        let record = bench.kit.record(&registry)?;
        let Some(path) = record.path() else { return Err(Miss::Skipped("it is linked in".to_owned())) };
        let shown = exports(path)?;
        let entry = &record.manifest().entry;
        let others: Vec<_> = shown.iter().filter(|name| *name != entry).map(String::as_str).collect();
        expect(others.is_empty(), || {
            let some = others.iter().take(5).copied().collect::<Vec<_>>().join(", ");
            format!(
                "exports {} symbols besides its entry: {some}; link it so that they are local",
                others.len()
            )
        })?;
        expect(!shown.is_empty(), || format!("does not export its entry {entry}"))?;
        Ok(entry.clone())
    },
};

/// The dynamic symbols that a library defines.
fn exports(path: &Path) -> Result<Vec<String>, Miss> {
    let locate = |error: String| Miss::Failed(format!("{}: {error}", path.display()));
    let bytes = fs::read(path).map_err(|error| locate(error.to_string()))?;
    let library = object::File::parse(&*bytes).map_err(|error| locate(error.to_string()))?;
    let exports = library.exports().map_err(|error| locate(error.to_string()))?;
    Ok(exports.iter().map(|export| String::from_utf8_lossy(export.name()).into_owned()).collect())
}

pub(crate) const LAYOUT: Check = Check {
    name: "layout",
    kind: Kind::Plugin,
    promise: "it loads, and its tables match the layout of this host",
    run: |bench: &Bench| -> Found {
        let registry = bench.registry()?;
        let record = bench.kit.record(&registry)?;
        record.check()?;
        Ok(format!("ABI {}", record.manifest().abi_name()))
    },
};
