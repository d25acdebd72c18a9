//! `forebay plugins`: which plugins there are, what one offers, and which decoder takes a file.

mod test;

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use clap::Subcommand;
use forebay_loader::{
    Error, Registry,
    graph::{List, OptionSpec, PipeSpec},
    registry::{Candidate, HEAD, Manifest, Record},
};
use serde::Serialize;
use serde_json::json;

use crate::{
    open,
    outcome::{Result, Stop},
    print::{self, Table, counted},
    report::near,
};

/// What `forebay plugins` is told.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// All plugins, the files that were refused and why, and the places looked at
    List {
        /// Show libraries that are no plugins one by one
        #[arg(long)]
        all: bool,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// What one plugin offers, with every option
    Show {
        /// The plugin's name, as in `forebay plugins list`
        name: String,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Check whether a library keeps what plugins promise
    Test(test::Args),
    /// Which decoders take a file, best first, and why
    Why {
        /// The file
        file: String,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

impl Command {
    /// Whether JSON was asked for.
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::List { json, .. } | Self::Show { json, .. } | Self::Why { json, .. } => *json,
            Self::Test(args) => args.json,
        }
    }
}

/// Shows plugins.
pub(crate) fn plugins(command: &Command, plugins: &[PathBuf]) -> Result {
    let registry = || open::any_registry(plugins);
    match command {
        Command::List { all, json } => list(&registry()?, *all, *json),
        Command::Show { name, json } => show(&registry()?, name, *json),
        Command::Test(args) => test::test(args, plugins),
        Command::Why { file, json } => why(&registry()?, file, *json),
    }
}

fn list(registry: &Registry, all: bool, json: bool) -> Result {
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
    let refused = registry.refusals().iter().filter(|refusal| all || !refusal.is_stranger());
    let refused =
        refused.map(|refusal| json!({ "path": refusal.path, "reason": refusal.reason.to_string() }));
    let strangers = registry.refusals().iter().filter(|refusal| refusal.is_stranger()).count();
    let places = registry.places().iter().map(
        |looked| json!({ "path": looked.place.path, "source": looked.place.source, "libraries": looked.libraries }),
    );
    json!({
        "plugins": plugins,
        "refused": refused.collect::<Vec<_>>(),
        "strangers": strangers,
        "places": places.collect::<Vec<_>>(),
    })
}

/// A plugin's manifest, with the file it is in.
fn described(record: &Record) -> serde_json::Value {
    #[derive(Serialize)]
    struct Described<'a> {
        #[serde(flatten)]
        manifest: &'a Manifest,
        file: String,
    }
    json!(Described { manifest: record.manifest(), file: record.file() })
}

fn write_list(registry: &Registry, all: bool, out: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::new(&["plugin", "version", "ABI", "licence", "file"]);
    for record in registry.plugins() {
        let manifest = record.manifest();
        let abi = format!("{}.{}", manifest.abi.0, manifest.abi.1);
        let name = manifest.name.clone();
        table.row([name, manifest.version.clone(), abi, manifest.license.clone(), near(&record.file())]);
    }
    table.write(out, "")?;
    for record in registry.plugins() {
        let manifest = record.manifest();
        writeln!(out, "\n{}", manifest.name)?;
        let mut table = Table::new(&["", ""]);
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
    let mut table = Table::new(&["", "", ""]);
    for looked in registry.places() {
        let libraries = looked.libraries.map(|count| counted(count as u64, "library", "libraries"));
        let libraries = libraries.unwrap_or_else(|| "not there".to_owned());
        table.row([looked.place.path.display().to_string(), libraries, looked.place.source.to_owned()]);
    }
    if registry.places().is_empty() {
        writeln!(out, "  no place: plugins are switched off")?;
    }
    table.write(out, "  ")
}

fn write_refusals(registry: &Registry, all: bool, out: &mut dyn Write) -> io::Result<()> {
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

fn show(registry: &Registry, name: &str, json: bool) -> Result {
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
    for (name, text) in [
        ("plugin", record.label()),
        ("file", near(&record.file())),
        ("ABI", format!("{}.{}", manifest.abi.0, manifest.abi.1)),
        ("licence", manifest.license.clone()),
        ("repository", manifest.repository.clone()),
        ("built with", format!("{} for {}, CPU: {cpu}", manifest.rustc, manifest.target)),
        ("panics", if manifest.unwinds { "are caught" } else { "end the process" }.to_owned()),
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

/// Those that a person writes in a graph.
fn people(pipes: &[PipeSpec]) -> impl Iterator<Item = &PipeSpec> {
    pipes.iter().filter(|pipe| !pipe.is_part())
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

fn why(registry: &Registry, file: &str, json: bool) -> Result {
    let head = registry.store("file")?.read(file, 0, HEAD as u64)?;
    let extension = Path::new(file).extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let ranking = registry.rank(extension, &head);
    if json {
        print::json(&json!({ "file": file, "extension": extension, "ranking": ranking }))?;
    } else {
        print::text(|out| write_ranking(&ranking, out))?;
    }
    match ranking.first() {
        Some(best) if best.score > 0 => Ok(()),
        _ => Err(Error::unsupported("no decoder takes this file").context("file", file).into()),
    }
}

/// Those that take it or came near, one a line, and how many did not.
fn write_ranking(ranking: &[Candidate], out: &mut dyn Write) -> io::Result<()> {
    let far = |candidate: &&Candidate| candidate.reason.starts_with("neither");
    let mut table = Table::new(&[">score", ">priority", "decoder", "plugin", "file", "reason"]);
    for candidate in ranking.iter().filter(|candidate| !far(candidate)) {
        table.row([
            if candidate.score > 0 { candidate.score.to_string() } else { "refused".to_owned() },
            candidate.priority.to_string(),
            candidate.decoder.clone(),
            candidate.plugin.clone(),
            near(&candidate.file),
            candidate.reason.clone(),
        ]);
    }
    if ranking.iter().any(|candidate| !far(&candidate)) {
        table.write(out, "")?;
    }
    let far: Vec<_> = ranking.iter().filter(far).map(|candidate| candidate.decoder.as_str()).collect();
    if far.is_empty() {
        return Ok(());
    }
    writeln!(out, "neither magic bytes nor extension match: {}", far.join(", "))
}
