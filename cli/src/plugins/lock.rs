//! `forebay plugins lock` and `verify`: which plugins there were, byte for byte, and whether they are still those.

use std::path::PathBuf;

use clap::Args;
use forebay_loader::{
    Error, Registry, Trust,
    registry::{FoundPlugin, Lock, LockState},
};
use serde_json::json;

use super::list;
use crate::{
    open::Plugins,
    outcome::{Result, Stop},
    print::{self, TextTable, counted, near},
    saves,
};

/// How many digits of a hash people are shown.
const DIGITS: usize = 16;

/// What `forebay plugins lock` is told.
#[derive(Args)]
#[command(after_help = "Exit codes: 0 if the lock was written, 1 if not, 2 for wrong arguments.")]
pub(crate) struct LockArgs {
    /// The lock to write
    #[arg(default_value = "plugins.lock")]
    file: PathBuf,
    /// Lock only these plugins, by name
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `forebay plugins verify` is told.
#[derive(Args)]
#[command(
    after_help = "Exit codes: 0 if every plugin is as locked; 1 if one differs, is missing or is not locked; 2 for wrong arguments."
)]
pub(crate) struct VerifyArgs {
    /// The lock
    #[arg(default_value = "plugins.lock")]
    file: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Writes a lock of the plugins that are there.
pub(super) fn lock(args: &LockArgs, plugins: &Plugins) -> Result {
    let LockArgs { file, only, json } = args;
    let registry = found(plugins)?;
    if let Some(name) = only.iter().find(|name| !registry.plugins().iter().any(|found| is(found, name))) {
        let error = Error::invalid(format!("--only {name}: found no plugin of this name"));
        return Err(Stop::Usage(error.context("plugins", registry.looked_at())));
    }
    if registry.plugins().is_empty() {
        let error = Error::invalid("found no plugin to lock; name a folder of plugins with --plugin");
        return Err(Stop::Failed(error.context("plugins", registry.looked_at())));
    }
    let wanted = |record: &&FoundPlugin| only.is_empty() || only.iter().any(|name| is(record, name));
    let lock = Lock::of(file, registry.plugins().iter().filter(wanted))?;
    saves::replace(file, lock.to_toml()?.as_bytes()).map_err(|error| saves::in_file(error.into(), file))?;
    if *json {
        return print::json(
            &json!({ "file": file, "plugins": lock.plugins(), "refused": list::refused(&registry, false) }),
        );
    }
    print::text(|out| {
        let count = counted(lock.plugins().len() as u64, "plugin", "plugins");
        writeln!(out, "{}: {count}", file.display())?;
        let mut table = TextTable::new(&["plugin", "version", "ABI", "SHA-256"]);
        for locked in lock.plugins() {
            let digits = locked.sha256.chars().take(DIGITS).collect::<String>() + "…";
            table.row([locked.name.clone(), locked.version.clone(), locked.abi.clone(), digits]);
        }
        table.write(out, "  ")?;
        list::write_refusals(&registry, false, out)
    })
}

/// Compares the plugins that are there with a lock.
pub(super) fn verify(args: &VerifyArgs, plugins: &Plugins) -> Result {
    let lock = Lock::read(&args.file).map_err(Stop::Usage)?;
    let registry = found(plugins)?;
    let verdicts = lock.verify(&registry)?;
    let all = verdicts.iter().all(|verdict| verdict.state == LockState::AsLocked);
    if args.json {
        let refused = list::refused(&registry, false);
        print::json(
            &json!({ "file": args.file, "as_locked": all, "plugins": verdicts, "refused": refused }),
        )?;
    } else {
        print::text(|out| {
            let mut table = TextTable::new(&["plugin", "version", "", "file"]);
            for verdict in &verdicts {
                let state = match verdict.state {
                    LockState::AsLocked => "as locked",
                    LockState::Changed => "changed",
                    LockState::NotLocked => "not locked",
                    LockState::Missing => "missing",
                };
                let file = verdict.file.as_ref().map_or(String::new(), |file| near(&file.to_string_lossy()));
                table.row([verdict.plugin.clone(), verdict.version.clone(), state.to_owned(), file]);
            }
            table.write(out, "")?;
            for verdict in verdicts.iter().filter(|verdict| !verdict.reason.is_empty()) {
                writeln!(out, "\n{}: {}", verdict.plugin, verdict.reason)?;
            }
            list::write_refusals(&registry, false, out)
        })?;
    }
    if all { Ok(()) } else { Err(Stop::No) }
}

/// What there is, whatever is trusted: a lock that is in force would hide what differs from it.
fn found(plugins: &Plugins) -> Result<Registry> {
    plugins.registry(plugins.search_trusting(Trust::Open)?)
}

/// Whether a plugin is the file with this name.
fn is(record: &FoundPlugin, name: &str) -> bool {
    record.path().is_some() && record.manifest().name == name
}
