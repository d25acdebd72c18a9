//! `forebay plugins doctor`: what may be wrong with plugins and workers on this machine.

use std::{
    collections::BTreeSet,
    env, fs,
    io::{self, Write},
    os::unix::fs::PermissionsExt as _,
};

use clap::Args as Arguments;
use forebay_loader::{
    Registry, Trust,
    registry::{Looked, Refusal, Why},
    worker_program,
};
use rustix::{
    fs::MemfdFlags,
    process::{Resource, getrlimit},
};
use serde::Serialize;
use serde_json::json;

use crate::{
    open::{self, Plugins},
    outcome::{Result, Stop},
    print::{self, bytes, count, counted},
};

/// The variables that Forebay reads: the loader's, the command's, and those of the plugins in the box.
const VARIABLES: [&str; 16] = [
    "FOREBAY_CACHE",
    "FOREBAY_CACHE_BYTES",
    "FOREBAY_NO_PLUGINS",
    "FOREBAY_PLUGIN_ISOLATION",
    "FOREBAY_PLUGIN_PATH",
    "FOREBAY_PLUGIN_RANK",
    "FOREBAY_PLUGIN_SKIP",
    "FOREBAY_PLUGIN_SYSTEM_PATH",
    "FOREBAY_PLUGIN_TRUST",
    "FOREBAY_REMOTE_AHEAD",
    "FOREBAY_REMOTE_ATTEMPTS",
    "FOREBAY_REMOTE_MEMORY",
    "FOREBAY_REMOTE_RATE",
    "FOREBAY_REMOTE_TIMEOUT",
    "FOREBAY_WORKER",
    "FOREBAY_WORKER_PROGRAM",
];
/// How many files a run may want open: shards that are read at once, and a few for each worker.
const FILES: u64 = 1024;
/// Addresses, not memory, that a loader shares with each worker, about.
const ADDRESSES: u64 = 100 << 30;

/// What `forebay plugins doctor` is told.
#[derive(Arguments)]
#[command(
    after_help = "Exit codes: 0 if there is no problem (there may be warnings), 1 if there is one, 2 for wrong arguments."
)]
pub(crate) struct Args {
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Ok,
    Warning,
    Problem,
}

/// One thing that was looked at.
#[derive(Serialize)]
struct Finding {
    status: Status,
    about: &'static str,
    found: String,
    /// What to do about it; empty where nothing is to be done.
    advice: String,
}

/// Everything that was looked at, in order.
#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn ok(&mut self, about: &'static str, found: impl Into<String>) {
        self.push(Status::Ok, about, found, "");
    }

    fn warn(&mut self, about: &'static str, found: impl Into<String>, advice: impl Into<String>) {
        self.push(Status::Warning, about, found, advice);
    }

    fn problem(&mut self, about: &'static str, found: impl Into<String>, advice: impl Into<String>) {
        self.push(Status::Problem, about, found, advice);
    }

    fn push(
        &mut self,
        status: Status,
        about: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.0.push(Finding { status, about, found: found.into(), advice: advice.into() });
    }

    fn count(&self, status: Status) -> u64 {
        self.0.iter().filter(|finding| finding.status == status).count() as u64
    }
}

/// Looks at everything, and tells.
pub(super) fn doctor(args: &Args, plugins: &Plugins) -> Result {
    let mut findings = Findings::default();
    variables(&mut findings);
    match open::any_registry(plugins) {
        Ok(registry) => {
            trust(&registry, &mut findings);
            places(&registry, &mut findings);
            found(&registry, &mut findings);
            refused(&registry, &mut findings);
        }
        // Of the environment: then everything else is still worth knowing.
        Err(Stop::Usage(error)) if plugins.first.iter().all(|place| place.exists()) => {
            findings.problem("plugins", error.to_string(), "correct the variable, or unset it");
        }
        Err(stop) => return Err(stop),
    }
    worker(&mut findings);
    limits(&mut findings);
    let (problems, warnings) = (findings.count(Status::Problem), findings.count(Status::Warning));
    if args.json {
        print::json(&json!({ "problems": problems, "warnings": warnings, "findings": findings.0 }))?;
    } else {
        print::text(|out| write(&findings, out))?;
    }
    if problems > 0 { Err(Stop::No) } else { Ok(()) }
}

fn write(findings: &Findings, out: &mut dyn Write) -> io::Result<()> {
    for Finding { status, about, found, advice } in &findings.0 {
        let status = match status {
            Status::Ok => "ok",
            Status::Warning => "warning",
            Status::Problem => "problem",
        };
        let found = found.replace('\n', "\n    ");
        writeln!(out, "{status:<7}  {about:<8}  {found}")?;
        if !advice.is_empty() {
            writeln!(out, "{:<7}  {:<8}  {advice}", "", "")?;
        }
    }
    let problems = counted(findings.count(Status::Problem), "problem", "problems");
    writeln!(out, "{problems}, {}", counted(findings.count(Status::Warning), "warning", "warnings"))
}

fn variables(findings: &mut Findings) {
    for (name, value) in env::vars_os() {
        let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
        if VARIABLES.contains(&&*name) {
            findings.ok("variable", format!("{name}={value}"));
        } else if name.starts_with("FOREBAY_") {
            let known = VARIABLES.map(|known| known.trim_start_matches("FOREBAY_")).join(", ");
            let advice = format!("if it is misspelt, the names that can follow FOREBAY_ are {known}");
            findings.warn("variable", format!("{name} is set, but nothing here reads it"), advice);
        }
    }
}

fn trust(registry: &Registry, findings: &mut Findings) {
    let found = match registry.trust() {
        Trust::Open => "open: every plugin that is found may be loaded".to_owned(),
        Trust::Allow(items) => format!("allowed: {}", items.join(", ")),
        Trust::Locked(lock) => {
            let plugins = counted(lock.plugins().len() as u64, "plugin", "plugins");
            format!("locked: {plugins} of {}", lock.file().display())
        }
    };
    findings.ok("trust", found);
}

fn places(registry: &Registry, findings: &mut Findings) {
    for Looked { place, libraries } in registry.places() {
        let (path, source) = (place.path.display(), place.source);
        match libraries {
            Some(found) => {
                let libraries = counted(*found as u64, "library", "libraries");
                findings.ok("place", format!("{path} ({source}): {libraries}"));
            }
            None if source.starts_with("FOREBAY_") => findings.warn(
                "place",
                format!("{path} is not there"),
                format!("make it, or remove it from {source}"),
            ),
            None => findings.ok("place", format!("{path} ({source}): not there, and need not be")),
        }
    }
}

fn found(registry: &Registry, findings: &mut Findings) {
    let mut loaded = 0;
    // What only worker processes may load is not loaded here.
    for record in registry.plugins().iter().filter(|record| !record.is_withheld()) {
        match record.check() {
            Ok(()) => loaded += 1,
            Err(error) => {
                let advice = match record.manifest().c {
                    true => "compile it again with the forebay.h of this host, or remove it",
                    false => "rebuild it with the forebay-core of this host, or remove it",
                };
                findings.problem("plugin", error.to_string(), advice);
            }
        }
        if !record.manifest().unwinds && !record.manifest().c {
            findings.warn(
                "plugin",
                format!("{}: a panic in it ends the process", record.label()),
                "build it with panic = \"unwind\", or run its pipes with on=process",
            );
        }
    }
    if registry.plugins().is_empty() {
        let advice =
            "put plugins beside the program, or name their folder with --plugin or FOREBAY_PLUGIN_PATH";
        findings.problem("plugins", "found no plugin that can be used", advice);
        return;
    }
    findings.ok("plugins", format!("{}, loaded", counted(loaded, "plugin", "plugins")));
    let asked: BTreeSet<_> =
        registry.plugins().iter().flat_map(|record| &record.manifest().cpu).map(String::as_str).collect();
    findings.ok(
        "CPU",
        match asked.is_empty() {
            true => "no plugin needs special features of the CPU".to_owned(),
            false => {
                format!("plugins need its features {}, and it has them", Vec::from_iter(asked).join(", "))
            }
        },
    );
}

fn refused(registry: &Registry, findings: &mut Findings) {
    let mut strangers = 0;
    for Refusal { path, why, reason, .. } in registry.refusals() {
        let found = format!("{}: {reason}", path.display());
        match why {
            Why::Stranger => strangers += 1,
            Why::Outdone => findings.warn("twice", found, "remove one of them, unless you want both"),
            Why::LeftOut => findings.warn(
                "left out",
                found,
                "remove it from FOREBAY_PLUGIN_SKIP, unless you want it left out",
            ),
            // The reason says what to do.
            Why::Distrusted => findings.problem("refused", found, ""),
            _ => {
                findings.problem("refused", found, "rebuild it for this machine and this host, or remove it")
            }
        }
    }
    if strangers > 0 {
        let libraries = counted(strangers, "library is no plugin", "libraries are no plugins");
        findings.ok("refused", format!("{libraries}, as is usual beside a program"));
    }
}

fn worker(findings: &mut Findings) {
    let advice = "only processes:N and on=process need it: put forebay beside the program, or name it in FOREBAY_WORKER_PROGRAM";
    match worker_program() {
        Err(error) => findings.warn("worker", error.to_string(), advice),
        Ok(program) => {
            let shown = program.display();
            let runs = |data: &fs::Metadata| data.is_file() && data.permissions().mode() & 0o111 != 0;
            match fs::metadata(&program) {
                Ok(data) if runs(&data) => findings.ok("worker", format!("worker processes run {shown}")),
                Ok(_) => findings.problem("worker", format!("{shown} is no program that can run"), advice),
                Err(error) => findings.problem("worker", format!("{shown}: {error}"), advice),
            }
        }
    }
}

fn limits(findings: &mut Findings) {
    // No limit at all is more than any number.
    let limit = |resource| getrlimit(resource).current.unwrap_or(u64::MAX);
    let files = limit(Resource::Nofile);
    match files {
        u64::MAX => findings.ok("limit", "any number of open files"),
        FILES.. => findings.ok("limit", format!("{} open files", count(files))),
        _ => findings.warn("limit", format!("{} open files", count(files)), "raise it: ulimit -n 4096"),
    }
    match limit(Resource::As) {
        u64::MAX => findings.ok("limit", "any amount of address space"),
        addresses => {
            let found = format!("{} of address space", bytes(addresses));
            match addresses >= ADDRESSES {
                true => findings.ok("limit", found),
                false => findings.warn(
                    "limit",
                    found,
                    "each worker process shares about 100 GB of address space, not memory: use ulimit -v unlimited, or threads",
                ),
            }
        }
    }
    match rustix::fs::memfd_create("forebay-doctor", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING) {
        Ok(_) => findings.ok("memory", "memfd_create works; named shared memory and locked memory are not used"),
        Err(error) => findings.problem(
            "memory",
            format!("memfd_create: {error}"),
            "worker processes and locked plugins need it: allow it in the container's seccomp profile, and check vm.memfd_noexec",
        ),
    }
}
