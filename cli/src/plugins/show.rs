//! `forebay plugins show`: what one plugin offers, with every option.

use std::io::{self, Write};

use forebay_loader::{
    Error, Registry,
    graph::{List, OptionSpec},
    registry::Record,
};

use super::{described, people};
use crate::{
    outcome::{Result, Stop},
    print::{self, Table},
    report::near,
};

/// Shows it, and loads it to see whether it fits.
pub(super) fn show(registry: &Registry, name: &str, json: bool) -> Result {
    let called = |record: &&Record| {
        let own = &record.manifest().name;
        own == name || own.strip_prefix("forebay-") == Some(name)
    };
    let record = registry.plugins().iter().find(called).ok_or_else(|| {
        let error = Error::invalid(format!("no plugin is called `{name}`"));
        Stop::Usage(error.context("plugins", registry.looked_at()))
    })?;
    if json {
        print::json(&described(record))?
    } else {
        print::text(|out| write_plugin(record, out))?
    }
    // The manifest is read without the code: whether that fits is worth knowing too.
    Ok(record.check()?)
}

fn write_plugin(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    let manifest = record.manifest();
    let mut table = Table::new(&["", ""]);
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
        table.row([name.to_owned(), text]);
    }
    table.write(out, "")?;
    for pipe in people(&manifest.pipes) {
        writeln!(out, "\npipe {}: {}", pipe.name, pipe.summary)?;
        write_options(&pipe.options, out)?;
    }
    for decoder in &manifest.decoders {
        writeln!(out, "\ndecoder {}: {}", decoder.name, decoder.summary)?;
        let extensions = decoder.extensions.join(", ");
        writeln!(out, "  priority {}, extensions: {extensions}", decoder.priority)?;
        write_options(&decoder.options, out)?;
    }
    for store in &manifest.stores {
        writeln!(out, "\nstore {}: {}", store.name, store.summary)?;
        writeln!(out, "  schemes: {}", store.schemes.join(", "))?;
        write_options(&store.options, out)?;
    }
    Ok(())
}

fn write_options(options: &[OptionSpec], out: &mut dyn Write) -> io::Result<()> {
    if options.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(&["option", "type", "default", "range", "what it is"]);
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
