//! `forebay plugins check`: whether plugin files can be loaded here, step by step.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use clap::Args as Arguments;
use forebay_loader::{
    Error, Registry, Search, Trust,
    registry::{Manifest, Why},
};
use serde::Serialize;
use serde_json::json;

use super::people;
use crate::{
    open::Plugins,
    outcome::{Result, Stop},
    print::{self, counted},
};

/// The most lines that a step takes.
const LINES: usize = 10;

/// What `forebay plugins check` is told.
#[derive(Arguments)]
#[command(after_help = "Exit codes: 0 if every file can be loaded, 1 if not, 2 for wrong arguments.")]
pub(crate) struct Args {
    /// The libraries
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// One step on the way to a plugin that works; those behind one that failed are not taken.
#[derive(Serialize)]
struct Step {
    step: &'static str,
    ok: bool,
    /// What was found, or why it failed.
    found: String,
}

/// Checks each file.
pub(super) fn check(args: &Args, plugins: &Plugins) -> Result {
    let trust = plugins.search()?.trust;
    for file in &args.files {
        let usage = |error: Error| Stop::Usage(error.context("file", file.display()));
        let data = fs::metadata(file).map_err(|error| usage(error.into()))?;
        if data.is_dir() {
            return Err(usage(Error::invalid("found a folder, expected a library; name the files in it")));
        }
    }
    let checked = args.files.iter().map(|file| Ok((file, steps(file, &trust)?)));
    let checked = checked.collect::<forebay_loader::Result<Vec<_>>>()?;
    let ok = |steps: &[Step]| steps.iter().all(|step| step.ok);
    let all = checked.iter().all(|(_, steps)| ok(steps));
    if args.json {
        let files =
            checked.iter().map(|(file, steps)| json!({ "file": file, "ok": ok(steps), "steps": steps }));
        print::json(&json!({ "ok": all, "files": files.collect::<Vec<_>>() }))?;
    } else {
        print::text(|out| checked.iter().try_for_each(|(file, steps)| write(file, steps, out)))?;
    }
    if all { Ok(()) } else { Err(Stop::No) }
}

fn steps(file: &Path, trust: &Trust) -> forebay_loader::Result<Vec<Step>> {
    let step = |step, found: Result<String, Error>| {
        let ok = found.is_ok();
        let found = found.unwrap_or_else(|error| short(&error.to_string()));
        Step { step, ok, found }
    };
    // The file alone: one that is linked in would stand before it.
    let search = Search { none: true, ..Search::nowhere() };
    let registry = Registry::new(search.first(file).trust(trust.clone()))?;
    let refusal = registry.refusals().first();
    if let Some(refusal) = refusal.filter(|refusal| refusal.why != Why::Distrusted) {
        return Ok(vec![step("manifest", Err(refusal.reason.clone()))]);
    }
    let record = registry.plugins().first();
    let manifest = record.map_or_else(|| Manifest::read(file), |record| Ok(record.manifest().clone()));
    let mut steps = vec![step("manifest", manifest.map(|manifest| described(&manifest)))];
    if let Some(refusal) = refusal {
        steps.push(step("trust", Err(refusal.reason.clone())));
    }
    if let Some(record) = record {
        steps.push(step("trust", Ok(registry.trust().to_string())));
        let loaded = record.check().map(|()| "its layout matches this host".to_owned());
        // Which file it is stands above.
        steps.push(step("load", loaded.map_err(|error| Error::new(error.kind(), error.message()))));
    }
    Ok(steps)
}

fn described(manifest: &Manifest) -> String {
    let Manifest { name, version, target, .. } = manifest;
    let count = |count: usize, one, many| counted(count as u64, one, many);
    let pipes = count(people(&manifest.pipes).count(), "pipe", "pipes");
    let decoders = count(manifest.decoders.len(), "decoder", "decoders");
    let stores = count(manifest.stores.len(), "store", "stores");
    format!("{name} {version}, ABI {}, for {target}: {pipes}, {decoders}, {stores}", manifest.abi_name())
}

/// The first lines of a reason.
fn short(text: &str) -> String {
    text.lines().take(LINES).collect::<Vec<_>>().join("\n")
}

fn write(file: &Path, steps: &[Step], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", file.display())?;
    for Step { step, ok, found } in steps {
        let found = found.replace('\n', "\n    ");
        writeln!(out, "  {step:<8}  {:<6}  {found}", if *ok { "ok" } else { "failed" })?;
    }
    Ok(())
}
