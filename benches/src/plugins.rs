//! What plugins cost: a call, a manifest, a folder of them, the death of a worker; and, where the command is named, a new plugin's size
//! and build.

use std::{
    env::consts::DLL_SUFFIX,
    fs,
    hint::black_box,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use forebay_bench_pipes::BenchLength;
use forebay_core::{Buffer, Context, Decoder as _, NoOptions, Value, Wanted};
use forebay_loader::{Error, Executor, Loader, Registry, Result, Search, registry::Manifest};
use forebay_testkit::Host;
use rustix::process::{Pid, Signal, kill_process};

use crate::{
    measure::{median, percentile, verdict},
    scratch::Scratch,
};

const ROUNDS: usize = 101;
const CALLS: u32 = 100_000;
const PLUGINS: usize = 100;
const CRASHES: usize = 50;

pub(crate) fn run(forebay: Option<&Path>) -> Result<Vec<String>> {
    let registry = crate::registry()?;
    let scratch = Scratch::new()?;
    let mut rows = calls(&registry)?;
    rows.extend(manifests(&registry)?);
    rows.push(start_up(&registry, &scratch.0)?);
    rows.push(crashes(&registry)?);
    rows.extend(forebay.map_or_else(
        || Ok(vec!["a new plugin's size and build: not measured, name the command `forebay`".to_owned()]),
        |forebay| new_plugin(forebay, &scratch.0),
    )?);
    Ok(rows)
}

/// What the loader calls, without the boundary.
trait Decodes {
    fn decode(&self, bytes: &Buffer, wanted: &Wanted, cx: &Context) -> Result<Value>;
}

impl Decodes for BenchLength {
    fn decode(&self, bytes: &Buffer, wanted: &Wanted, cx: &Context) -> Result<Value> {
        forebay_core::Decoder::decode(self, bytes, wanted, cx)
    }
}

/// The same decoder called in a library, by the handle that pipes have, and through a box; the difference is that of each pair.
fn calls(registry: &Registry) -> Result<Vec<String>> {
    let loaded = registry.choose("", &[], Some("bench_length"))?;
    let boxed: Box<dyn Decodes> = black_box(Box::new(BenchLength::new(NoOptions)?));
    let (host, bytes) = (Host::new(), Buffer::from(vec![7; 100]));
    let (cx, wanted) = (host.context(), Wanted::default());
    let (mut there, mut here, mut more) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let across = each(|| loaded.decode(black_box(&bytes), &wanted, &cx))?;
        let within = each(|| boxed.decode(black_box(&bytes), &wanted, &cx))?;
        there.push(across);
        here.push(within);
        more.push(across - within);
    }
    let got = format!(
        "{:.1} ns more ({:.1}, {:.1} through a Box<dyn>)",
        median(&mut more),
        median(&mut there),
        median(&mut here)
    );
    Ok(vec![verdict("a call into a plugin", "<= 5 ns more", &got)])
}

/// Nanoseconds of one call.
fn each(mut call: impl FnMut() -> Result<Value>) -> Result<f64> {
    let begin = Instant::now();
    for _ in 0..CALLS {
        black_box(call()?);
    }
    Ok(begin.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS))
}

/// Reading the manifest of each plugin, which is what a plugin costs that is not used.
fn manifests(registry: &Registry) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for path in registry.plugins().iter().filter_map(|plugin| plugin.path()) {
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            let begin = Instant::now();
            black_box(Manifest::read(path)?);
            times.push(begin.elapsed().as_secs_f64() * 1e3);
        }
        all.push((median(&mut times), path));
    }
    all.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (Some((least, _)), Some((most, path))) = (all.first(), all.last()) else {
        return Err(Error::invalid("no plugins beside this program"));
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let got = format!("{most:.3} ms at most ({name}), {least:.3} at least");
    Ok(vec![verdict("reading a manifest", "< 0.5 ms", &got)])
}

/// From nothing to the first batch, with a folder of plugins of which none is used, beside an empty one.
fn start_up(registry: &Registry, scratch: &Path) -> Result<String> {
    let of = |pipe: &str| registry.plugin_of(pipe).and_then(|plugin| plugin.path());
    let (Some(used), Some(unused)) = (of("range"), of("bench_wait")) else {
        return Err(Error::invalid("no plugins beside this program"));
    };
    let (full, empty) = (scratch.join("full"), scratch.join("empty"));
    fs::create_dir(&empty)?;
    hundred(unused, &full)?;
    let start = |folder: &Path| -> Result<f64> {
        let begin = Instant::now();
        let registry = Registry::new(Search::nowhere().first(folder).first(used))?;
        let graph = crate::graph("range 10 | batch 10")?;
        let mut loader = Loader::builder(graph).executor(Executor::Inline).build(&registry)?;
        loader.epoch(0).next().ok_or_else(|| Error::invalid("no batch came"))??;
        let spent = begin.elapsed().as_secs_f64() * 1e3;
        let found = registry.plugins().len();
        if found != 1 && found != 1 + PLUGINS {
            return Err(Error::invalid(format!("{found} plugins were found")));
        }
        loader.finish()?;
        Ok(spent)
    };
    let mut more = Vec::new();
    for _ in 0..ROUNDS {
        let (with, without) = (start(&full)?, start(&empty)?);
        more.push(with - without);
    }
    let got = format!("{:.2} ms more", median(&mut more));
    Ok(verdict("start-up with 100 plugins, none used", "< 10 ms more", &got))
}

/// Copies of a plugin that differ in their names and those of their things, so that none gives way to another.
fn hundred(library: &Path, folder: &Path) -> Result<()> {
    fs::create_dir(folder)?;
    let bytes = fs::read(library)?;
    for number in 0..PLUGINS {
        let mut copy = bytes.clone();
        for (name, new) in [
            ("\"forebay-bench-pipes\"", format!("\"forebay-bench-{number:05}\"")),
            ("\"bench_wait\"", format!("\"wait_{number:05}\"")),
            ("\"bench_fill\"", format!("\"fill_{number:05}\"")),
            ("\"bench_length\"", format!("\"length_{number:05}\"")),
        ] {
            let at: Vec<_> = copy
                .windows(name.len())
                .enumerate()
                .filter_map(|(at, found)| (found == name.as_bytes()).then_some(at))
                .collect();
            if at.is_empty() || name.len() != new.len() {
                return Err(Error::bug(format!("{name} cannot become {new}")));
            }
            for at in at {
                copy[at..at + new.len()].copy_from_slice(new.as_bytes());
            }
        }
        fs::write(folder.join(format!("lib{number}{DLL_SUFFIX}")), copy)?;
    }
    Ok(())
}

/// A worker is ended by SIGABRT, as one that aborts is, while it waits for room: how long until samples come that only another can give.
fn crashes(registry: &Registry) -> Result<String> {
    // Room for as few chunks of one sample as may be, so that so many samples are more than were on their way.
    let behind = 16;
    let graph = crate::graph("range 1000000 | bench_fill 1000")?;
    let builder = crate::of_graph(graph, Executor::Processes(1))?.chunk(1).budget(1);
    let mut loader = builder.build(registry)?;
    let mut epoch = loader.epoch(0);
    let take = |epoch: &mut forebay_loader::Epoch| -> Result<Duration> {
        let begin = Instant::now();
        for _ in 0..behind {
            epoch.next().ok_or_else(|| Error::invalid("the samples ran out"))??;
        }
        Ok(begin.elapsed())
    };
    let (mut whole, mut broken) = (Vec::new(), Vec::new());
    for _ in 0..CRASHES {
        whole.push(take(&mut epoch)?.as_secs_f64() * 1e3);
        let worker = epoch.worker_processes().first().and_then(|&pid| Pid::from_raw(pid.cast_signed()));
        let worker = worker.ok_or_else(|| Error::invalid("there is no worker"))?;
        kill_process(worker, Signal::ABORT).map_err(std::io::Error::from)?;
        broken.push(take(&mut epoch)?.as_secs_f64() * 1e3);
        if epoch.worker_processes().first().is_some_and(|&pid| pid.cast_signed() == worker.as_raw_pid()) {
            return Err(Error::bug("the samples came of the worker that crashed"));
        }
    }
    drop(epoch);
    loader.finish()?;
    let worst = percentile(&mut broken, 0.95);
    let got = format!(
        "{:.1} ms, 95 of 100 in {worst:.1}; the same samples without it {:.2}",
        median(&mut broken),
        median(&mut whole)
    );
    Ok(verdict("a crashed worker, until another gives samples", "< 20 ms", &got))
}

/// The smallest plugin that `forebay plugins new` makes: its library, and a clean build by two jobs of crates that are here.
fn new_plugin(forebay: &Path, scratch: &Path) -> Result<Vec<String>> {
    let forebay = fs::canonicalize(forebay)?;
    let folder = scratch.join("minimal");
    done(
        Command::new(forebay).args(["plugins", "new", "minimal", "--kind", "decoder", "--path"]).arg(&folder),
    )?;
    let lock = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.lock"));
    fs::copy(lock, folder.join("Cargo.lock"))?;
    let target = scratch.join("target");
    let begin = Instant::now();
    let build = ["build", "--release", "--offline", "--quiet", "--jobs", "2"];
    done(Command::new("cargo").args(build).current_dir(&folder).env("CARGO_TARGET_DIR", &target))?;
    let seconds = begin.elapsed().as_secs_f64();
    let library = target.join(format!("release/libminimal{DLL_SUFFIX}"));
    let built = fs::metadata(&library)?.len();
    done(Command::new("strip").arg(&library))?;
    let stripped = fs::metadata(&library)?.len();
    let size = format!("{:.0} KB stripped, {:.0} as built", stripped as f64 / 1e3, built as f64 / 1e3);
    Ok(vec![
        verdict("a new plugin's library", "< 800 KB", &size),
        verdict("a clean build of it, two jobs", "< 60 s", &format!("{seconds:.1} s")),
    ])
}

fn done(command: &mut Command) -> Result<()> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(Error::invalid(format!("{command:?} failed: {said}")))
}
