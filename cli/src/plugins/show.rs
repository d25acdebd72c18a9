//! `forebay plugins show`: what one plugin offers, with every option, or one pipe, decoder or store of any.

use std::io::{self, Write};

use forebay_loader::{
    Error, Registry,
    graph::{List, MagicSpec, OPTIONS, OptionSpec},
    nearest,
    registry::{FoundPlugin, Manifest, StoreSpec},
};
use serde_json::json;

use super::{described, people};
use crate::{
    outcome::{Result, Stop},
    print::{self, TextTable, near},
};

/// The most magic bytes of one decoder or pipe that are shown.
const MAGIC: usize = 16;

/// Shows a plugin, or the one thing of this name that some plugin offers, and loads the plugin to see whether it fits.
pub(super) fn show(registry: &Registry, name: &str, json: bool) -> Result {
    let called = |record: &&FoundPlugin| {
        let own = &record.manifest().name;
        own == name || own.strip_prefix("forebay-") == Some(name)
    };
    if let Some(record) = registry.plugins().iter().find(called) {
        if json {
            print::json(&described(record))?
        } else {
            print::text(|out| write_plugin(record, out))?
        }
        // The manifest is read without the code: whether that fits is worth knowing too.
        return Ok(record.check()?);
    }
    let offering: Vec<_> =
        registry.plugins().iter().filter(|record| offers(record.manifest(), name)).collect();
    if offering.is_empty() {
        let names = names(registry);
        let hint = nearest::did_you_mean(name, names.iter().map(String::as_str));
        let error = Error::invalid(format!("no plugin, pipe, decoder or store is called `{name}`{hint}"));
        return Err(Stop::Usage(error.context("plugins", registry.looked_at())));
    }
    if json {
        let parts: Vec<_> = offering.iter().map(|record| part(record, name)).collect();
        print::json(&json!({ "name": name, "offered_by": parts }))?;
    } else {
        print::text(|out| {
            for record in &offering {
                writeln!(out, "{}, {}", record.label(), near(&record.file()))?;
                write_offers(record.manifest(), Some(name), out)?;
                writeln!(out)?;
            }
            Ok(())
        })?;
    }
    Ok(offering.into_iter().try_for_each(FoundPlugin::check)?)
}

/// Whether a plugin has a pipe, decoder or store of this name.
fn offers(manifest: &Manifest, name: &str) -> bool {
    people(&manifest.pipes).any(|pipe| pipe.name == name)
        || manifest.decoders.iter().any(|decoder| decoder.name == name)
        || manifest.stores.iter().any(|store| serves(store, name))
}

/// Whether a store is called so, or serves this scheme.
fn serves(store: &StoreSpec, name: &str) -> bool {
    store.name == name || store.schemes.iter().any(|scheme| scheme == name)
}

/// What a plugin offers under this name.
fn part(record: &FoundPlugin, name: &str) -> serde_json::Value {
    let manifest = record.manifest();
    json!({
        "plugin": record.label(),
        "file": record.file(),
        "pipes": people(&manifest.pipes).filter(|pipe| pipe.name == name).collect::<Vec<_>>(),
        "decoders": manifest.decoders.iter().filter(|decoder| decoder.name == name).collect::<Vec<_>>(),
        "stores": manifest.stores.iter().filter(|store| serves(store, name)).collect::<Vec<_>>(),
    })
}

/// All names that can be shown.
fn names(registry: &Registry) -> Vec<String> {
    let of = |record: &FoundPlugin| {
        let manifest = record.manifest();
        let pipes = people(&manifest.pipes).map(|pipe| pipe.name.clone());
        let decoders = manifest.decoders.iter().map(|decoder| decoder.name.clone());
        let stores = manifest.stores.iter().flat_map(|store| store.schemes.clone());
        [manifest.name.clone()].into_iter().chain(pipes).chain(decoders).chain(stores).collect::<Vec<_>>()
    };
    registry.plugins().iter().flat_map(of).collect()
}

fn write_plugin(record: &FoundPlugin, out: &mut dyn Write) -> io::Result<()> {
    let manifest = record.manifest();
    let mut table = TextTable::new(&["", ""]);
    let cpu = if manifest.cpu.is_empty() { "any".to_owned() } else { manifest.cpu.join(", ") };
    let panics = match (manifest.c, manifest.unwinds) {
        (true, _) => "C has none",
        (false, true) => "are caught",
        (false, false) => "end the process",
    };
    for (name, text) in [
        ("plugin", record.label()),
        ("file", near(&record.file())),
        ("ABI", manifest.abi_name()),
        ("licence", manifest.license.clone()),
        ("repository", manifest.repository.clone()),
        ("built with", format!("{} for {}, CPU: {cpu}", manifest.rustc, manifest.target)),
        ("panics", panics.to_owned()),
    ] {
        if !text.is_empty() {
            table.row([name.to_owned(), text]);
        }
    }
    table.write(out, "")?;
    write_offers(manifest, None, out)
}

/// The pipes, decoders and stores, or those of this name, and their options.
fn write_offers(manifest: &Manifest, name: Option<&str>, out: &mut dyn Write) -> io::Result<()> {
    let is = |known: &str| name.is_none_or(|name| name == known);
    for pipe in people(&manifest.pipes).filter(|pipe| is(&pipe.name)) {
        writeln!(out, "\npipe {}: {}", pipe.name, pipe.summary)?;
        if let Some(opens) = &pipe.opens {
            let then = if opens.then.is_empty() { String::new() } else { format!(", for {}", opens.then) };
            writeln!(out, "  opens files{then}, extensions: {}", opens.extensions.join(", "))?;
            write_magic(&opens.magic, out)?;
        }
        write_options(&pipe.options, out)?;
    }
    for decoder in manifest.decoders.iter().filter(|decoder| is(&decoder.name)) {
        writeln!(out, "\ndecoder {}: {}", decoder.name, decoder.summary)?;
        let extensions = decoder.extensions.join(", ");
        writeln!(out, "  priority {}, extensions: {extensions}", decoder.priority)?;
        write_magic(&decoder.magic, out)?;
        if let Some(first) = decoder.options.first() {
            let (decoder, option) = (&decoder.name, &first.name);
            writeln!(out, "  set by a pipe that decodes: {OPTIONS}={{{decoder}={{{option}=...}}}}")?;
        }
        write_options(&decoder.options, out)?;
    }
    for store in manifest.stores.iter().filter(|store| name.is_none_or(|name| serves(store, name))) {
        writeln!(out, "\nstore {}: {}", store.name, store.summary)?;
        writeln!(out, "  schemes: {}", store.schemes.join(", "))?;
        write_options(&store.options, out)?;
    }
    Ok(())
}

/// Writes how files begin: bytes in hexadecimal, and as text where they are.
fn write_magic(magic: &[MagicSpec], out: &mut dyn Write) -> io::Result<()> {
    if magic.is_empty() {
        return writeln!(out, "  magic bytes: none, the extension decides");
    }
    let shown = magic.iter().take(MAGIC).map(|magic| {
        let bytes: Vec<u8> = (0..magic.bytes.len() / 2)
            .filter_map(|at| u8::from_str_radix(magic.bytes.get(2 * at..2 * at + 2)?, 16).ok())
            .collect();
        let hex: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let text = str::from_utf8(&bytes).ok().filter(|text| text.chars().all(|c| c.is_ascii_graphic()));
        match (text, magic.offset) {
            (Some(""), _) => "any; its code decides".to_owned(),
            (text, offset) => {
                let text = text.map(|text| format!(" `{text}`")).unwrap_or_default();
                let at = if offset > 0 { format!(" at byte {offset}") } else { String::new() };
                hex.join(" ") + &text + &at
            }
        }
    });
    let mut shown: Vec<_> = shown.collect();
    if magic.len() > MAGIC {
        shown.push(format!("{} more, which --json lists", magic.len() - MAGIC));
    }
    writeln!(out, "  magic bytes: {}", shown.join("; "))
}

fn write_options(options: &[OptionSpec], out: &mut dyn Write) -> io::Result<()> {
    if options.is_empty() {
        return Ok(());
    }
    let mut table = TextTable::new(&["option", "type", "default", "range", "what it is"]);
    for option in options {
        let default = if option.required { "required".to_owned() } else { option.default.to_string() };
        table.row([option.name.clone(), kind(option), default, range(option), option.doc.trim().to_owned()]);
    }
    table.write(out, "  ")
}

fn kind(option: &OptionSpec) -> String {
    let one = format!("{:?}", option.kind).to_lowercase();
    match option.list {
        List::No => one,
        List::Yes => format!("list of {one}"),
        List::Either => format!("{one} or list"),
    }
}

fn range(option: &OptionSpec) -> String {
    match (&option.min, &option.max) {
        (None, None) => option.choices.join(", "),
        (Some(min), None) => format!("from {min}"),
        (None, Some(max)) => format!("to {max}"),
        (Some(min), Some(max)) => format!("{min} to {max}"),
    }
}
