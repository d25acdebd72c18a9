//! `forebay run`: runs a graph, or what is at a path, to its end, and tells what came out.

use std::{
    path::{self, Path, PathBuf},
    process,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use clap::Args as Arguments;
use forebay_loader::{
    Digest, Epoch, Error, ErrorKind, Executor, Graph, Loader, Registry, Sample, Snapshot, Stopper,
    graph::parse_bytes,
};

use crate::{
    coverage::Coverage,
    open::{self, Input},
    outcome::{self, Result, Stop},
    preview::Field,
    print,
    progress::{self, Progress},
    report::{Audited, Report, children_ticks},
    saves::{self, Saves},
    unit::Unit,
};

/// After how long without a sample a run says who works on what.
const STALL: Duration = Duration::from_secs(10);
/// How long a run that was interrupted waits for a pipe on its own thread.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long it waits for what other threads are at.
const GRACE: Duration = Duration::from_millis(500);

/// What `forebay run` is told.
#[derive(Arguments)]
pub(crate) struct Args {
    /// A graph file (.toml or .json), a graph in one line such as 'range 10 | batch 4', or a file, folder, pattern or URL; `-` reads standard input
    pub(crate) graph: String,
    /// Where the work runs: inline, threads, threads:N or processes:N [default: the graph's, else threads]
    #[arg(long, value_parser = |text: &str| text.parse::<Executor>().map_err(message))]
    executor: Option<Executor>,
    /// The seed of all random choices [default: the graph's, else 0]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Leave out pipes that shuffle, and let samplers draw in order: for validation
    #[arg(long)]
    no_shuffle: bool,
    /// How many epochs to run; epochs before a resume count [default: the graph's, else 1]
    #[arg(long, value_name = "N")]
    epochs: Option<u64>,
    /// Stop after N batches in all; N samples, if the graph makes no batches
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// The most memory that waiting samples may take, such as 64MiB; each thread works on one more sample [default: the graph's, else 64MiB]
    #[arg(long, value_name = "SIZE", value_parser = |text: &str| parse_bytes(text).map_err(message))]
    budget: Option<u64>,
    /// The most samples that may wait between two parts of the graph, within the budget [default: the graph's, else as many as fit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    ahead: Option<u64>,
    /// Deliver the share of rank R of W ranks, from 0/W on; `env` takes both from RANK and WORLD_SIZE
    #[arg(long, value_name = "R/W", value_parser = rank)]
    rank: Option<(u32, u32)>,
    /// The most memory that a sandboxed worker process may use [default: 4GiB]
    #[arg(long, value_name = "SIZE", value_parser = |text: &str| parse_bytes(text).map_err(message))]
    sandbox_memory: Option<u64>,
    /// Save the position of the run to FILE regularly and at the end, however the run ends
    #[arg(long, value_name = "FILE")]
    snapshot: Option<PathBuf>,
    /// Save it after every N batches; N samples, if the graph makes no batches
    #[arg(long, value_name = "N", default_value_t = 1000, requires = "snapshot",
          value_parser = clap::value_parser!(u64).range(1..))]
    every: u64,
    /// Continue from this snapshot, with its seed and epoch
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// A node, plugin or file that may differ from the snapshot; a source stands for all its files; can be given several times
    #[arg(long, value_name = "NAME", requires = "resume")]
    allow: Vec<String>,
    /// End a worker process that takes longer than this over one sample; that sample counts as a crash
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
    /// Exit with 0 even if samples failed under on_error=fail_at_end, which paths use; failures are still reported
    #[arg(long)]
    allow_failures: bool,
    /// Write samples that on_error=quarantine or fail_at_end left out to FILE, one JSON object a line
    #[arg(long, value_name = "FILE")]
    quarantine: Option<PathBuf>,
    /// Append a log for `forebay audit` to FILE, and report at the end whether every sample came exactly once
    #[arg(long, value_name = "FILE")]
    audit: Option<PathBuf>,
    /// Append the order in which maps with unordered=true gave their samples to FILE
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Make maps with unordered=true repeat the order that --record wrote to FILE
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
    /// Print a hash of all samples that this run delivered, in order
    #[arg(long)]
    digest: bool,
    /// Print the summary as one JSON object, and nothing else, on standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// Print only the digest or JSON that was asked for
    #[arg(long, short)]
    quiet: bool,
}

fn message(error: Error) -> String {
    error.message().to_owned()
}

/// The settings of one run, after the graph's own were taken in.
pub(crate) struct Settings {
    pub(crate) executor: Executor,
    pub(crate) seed: u64,
    /// The first epoch, and the one after the last.
    pub(crate) epochs: (u64, u64),
    /// Where to begin.
    pub(crate) resume: Option<Snapshot>,
}

impl Settings {
    /// Whether the snapshot is of the end of the last epoch, so that nothing is left to deliver.
    pub(crate) fn all_over(&self) -> bool {
        self.resume.is_some() && self.epochs.0 == self.epochs.1
    }
}

/// Runs the graph; `begun` is when the process did.
pub(crate) fn run(args: &Args, plugins: &open::Plugins, begun: Instant) -> Result {
    let registry = open::registry(plugins)?;
    let Input { graph, survey } = open::input(&args.graph, &registry)?;
    let resume = args.resume.as_deref().map(saves::read).transpose().map_err(Stop::Usage)?;
    let (mut loader, settings) = build(args, plugins, graph, resume, &registry)?;
    // A plugin may change the folder that this process works in.
    let absolute = |path: &Option<PathBuf>| path.as_deref().map(path::absolute).transpose();
    let (snapshot, resumed) = (absolute(&args.snapshot)?, absolute(&args.resume)?);
    let resumed = resumed.as_deref().zip(settings.resume.as_ref());
    let mut saves = Saves::new(snapshot, args.every, args.quarantine.as_deref(), resumed)?;
    let (back, gone) = mpsc::channel();
    let inline = settings.executor == Executor::Inline;
    let interrupted = interruptible(loader.stopper(), gone, inline)?;
    let mut progress = Progress::begin(args.quiet, &args.graph, &loader, &settings);
    let mut tally = Tally::new(begun, Unit::of(loader.graph(), &registry), args.digest);
    tally.coverage = survey.map(|survey| Coverage::new(survey, &registry));
    let driven = drive(&mut loader, args, &settings, &mut tally, (&mut progress, &mut saves));
    drop(back);
    progress.end(&loader);
    let coverage = tally.coverage.take().map(|coverage| coverage.finish(&loader));
    let mut report = Report::new(&loader, &settings, &tally, args.quarantine.as_deref());
    if interrupted.load(Ordering::Relaxed) {
        leave(loader);
        return match driven {
            Err(Stop::Failed(error)) if error.kind() != ErrorKind::Cancelled => Err(error.into()),
            _ => Err(Stop::Interrupted),
        };
    }
    if !args.quiet && (coverage.is_none() || args.json) {
        progress::tell_notes(&loader);
    }
    let failed = loader.failure();
    let finished = outcome::finish(loader);
    driven?;
    finished?;
    if let Some(coverage) = coverage.as_ref().filter(|_| !args.quiet && !args.json) {
        coverage.tell();
    }
    report.coverage = coverage;
    report.error = failed.as_ref().map(outcome::object);
    report.audit = args.audit.as_deref().map(|file| Audited::new(file, args.rank)).transpose()?;
    match (args.json, args.quiet) {
        (true, _) => print::json(&report),
        (false, true) => {
            print::text(|out| report.digest.iter().try_for_each(|digest| writeln!(out, "{digest}")))
        }
        (false, false) => print::text(|out| report.write(out)),
    }?;
    failed.map_or(Ok(()), |error| Err(Stop::Told(error)))?;
    report.audit.map_or(Ok(()), Audited::end)
}

/// Reads a number of seconds.
fn seconds(text: &str) -> std::result::Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds: &f64| *seconds > 0.0);
    let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    time.ok_or_else(|| format!("the time is `{text}`, expected seconds such as 30 or 0.5"))
}

/// Reads `R/W`, or of `env` what launchers of several processes set.
pub(crate) fn rank(text: &str) -> std::result::Result<(u32, u32), String> {
    if text == "env" {
        let number = |name: &str| {
            let value = std::env::var(name).map_err(|_| format!("rank is `env`, but {name} is not set"))?;
            value.parse::<u32>().map_err(|_| format!("{name} is `{value}`, expected a number"))
        };
        return rank(&format!("{}/{}", number("RANK")?, number("WORLD_SIZE")?));
    }
    let parts =
        text.split_once('/').and_then(|(rank, world)| Some((rank.parse().ok()?, world.parse().ok()?)));
    parts
        .filter(|(rank, world)| rank < world)
        .ok_or_else(|| format!("rank is `{text}`, expected R/W with R below W, such as 0/4, or `env`"))
}

fn build(
    args: &Args,
    plugins: &open::Plugins,
    graph: Graph,
    resume: Option<Snapshot>,
    registry: &Registry,
) -> Result<(Loader, Settings)> {
    let executor = match (args.executor, &graph.run.executor) {
        (Some(executor), _) => executor,
        (None, Some(text)) => text.parse().map_err(Stop::Usage)?,
        (None, None) => Executor::default(),
    };
    let of_snapshot = resume.as_ref().map(|snapshot| snapshot.seed);
    let seed = args.seed.or(of_snapshot).or(graph.run.seed).unwrap_or(0);
    let epochs = epochs(args.epochs, graph.run.epochs, resume.as_ref());
    let mut builder =
        plugins.builder(graph).executor(executor).seed(seed).epochs(epochs.1).shuffles(!args.no_shuffle);
    builder = builder.allow_failures(args.allow_failures);
    if let Some(limit) = args.limit {
        builder = builder.limit(limit);
    }
    if let Some(budget) = args.budget {
        builder = builder.budget(budget);
    }
    if let Some(ahead) = args.ahead {
        builder = builder.ahead(ahead);
    }
    if let Some(file) = &args.audit {
        saves::refuse_output(file)?;
        builder = builder.audit(file);
    }
    if let Some(file) = &args.record {
        saves::refuse_output(file)?;
        builder = builder.record(file);
    }
    if let Some(file) = &args.replay {
        builder = builder.replay(file);
    }
    if let Some((rank, world_size)) = args.rank {
        builder = builder.ranks(rank, world_size);
    }
    if let Some(limit) = args.timeout {
        builder = builder.timeout(limit);
    }
    if let Some(memory) = args.sandbox_memory {
        builder = builder.sandbox_memory(memory);
    }
    builder = builder.on_stall(STALL, |stall| progress::warn(&stall.to_string()));
    let loader = builder.build(registry).map_err(Stop::early)?;
    let ended = loader.plan().segments.iter().any(|segment| segment.on.is_elsewhere() && segment.parallel);
    if args.timeout.is_some() && !ended {
        let message =
            "--timeout needs maps in worker processes, and none runs in one; use processes:N or on=process";
        return Err(Stop::Usage(Error::invalid(message).context("option", "--timeout")));
    }
    for name in &args.allow {
        let is_node = loader.graph().node(name).is_some();
        let is_plugin = resume.as_ref().is_some_and(|snapshot| snapshot.plugins.contains_key(name));
        let mut files = resume.iter().flat_map(|snapshot| &snapshot.nodes).flat_map(|node| &node.files);
        if !is_node && !is_plugin && !files.any(|file| file.path == *name) {
            let message = format!("the graph and the snapshot have no node, plugin or file called `{name}`");
            let error = Error::invalid(message);
            return Err(Stop::Usage(error.context("option", "--allow")));
        }
    }
    Ok((loader, Settings { executor, seed, epochs, resume }))
}

/// The first epoch, and the one after the last. An epoch that a snapshot began is always finished. After one that it ended the
/// next begins only if as many were `asked` for: those before a resume count.
fn epochs(asked: Option<u64>, usual: Option<u64>, resume: Option<&Snapshot>) -> (u64, u64) {
    let end = asked.or(usual).unwrap_or(1);
    let Some(snapshot) = resume else { return (0, end) };
    let first = snapshot.epoch + u64::from(snapshot.ended);
    (first, end.max(snapshot.epoch + 1))
}

/// Goes through the epochs, and saves where it got to.
fn drive(
    loader: &mut Loader,
    args: &Args,
    settings: &Settings,
    tally: &mut Tally,
    (progress, saves): (&mut Progress, &mut Saves),
) -> Result {
    let limit = args.limit.unwrap_or(u64::MAX);
    let mut resume = settings.resume.as_ref();
    tally.started = Instant::now();
    let refused = |error: Error| {
        let file = args.resume.as_deref().unwrap_or(Path::new(""));
        let next = "to resume anyway, allow each difference by its name: --allow NAME";
        Stop::early(error.context("snapshot", file.display()).context("next", next))
    };
    if settings.all_over()
        && let Some(snapshot) = resume
    {
        // Nothing is left to deliver. A snapshot of another graph is refused all the same.
        let nothing = loader.remainder_allowing(snapshot, &args.allow).map_err(refused)?;
        return Ok(saves.save(&nothing)?);
    }
    for epoch in settings.epochs.0..settings.epochs.1 {
        let mut samples = match resume.take() {
            None => loader.epoch(epoch),
            Some(snapshot) => loader.resume_allowing(snapshot, &args.allow).map_err(refused)?,
        };
        let read = deliver(&mut samples, limit, tally, (progress, saves));
        let saved = saves.save(&samples);
        match read {
            // It is told at the end of all epochs.
            Err(error) if outcome::is_at_end(&error, &samples) => saved?,
            Err(error) if error.kind() != ErrorKind::Cancelled => return Err(error.into()),
            read => saved.and(read)?,
        }
        if tally.delivered >= limit {
            break;
        }
    }
    tally.seconds = tally.started.elapsed().as_secs_f64();
    Ok(())
}

/// Goes through the rest of an epoch.
fn deliver(
    samples: &mut Epoch<'_>,
    limit: u64,
    tally: &mut Tally,
    (progress, saves): (&mut Progress, &mut Saves),
) -> Result<(), Error> {
    while tally.delivered < limit {
        let Some(sample) = samples.next() else { break };
        tally.add(&sample?);
        progress.tick(samples, tally);
        saves.delivered(samples)?;
    }
    Ok(())
}

/// Makes the first Ctrl-C stop the loader and the second one the process; tells whether there was one.
///
/// `gone` hears when nothing runs any more. Inline nobody waits for a pipe beside it, so the first one ends the process where a pipe does not come back.
fn interruptible(stopper: Stopper, gone: mpsc::Receiver<()>, inline: bool) -> Result<Arc<AtomicBool>> {
    let pressed = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&pressed);
    let handler = move || {
        if seen.swap(true, Ordering::Relaxed) {
            process::exit(130);
        }
        stopper.stop();
        if inline && gone.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
            let seconds = PATIENCE.as_secs();
            progress::warn(&format!(
                "interrupted, but a pipe did not return within {seconds} s; no new snapshot was written"
            ));
            process::exit(130);
        }
    };
    ctrlc::set_handler(handler).map_err(|error| Error::bug(format!("cannot handle Ctrl-C: {error}")))?;
    Ok(pressed)
}

/// Ends an interrupted run. A thread that waits for a pipe of the system, or is long at one sample, is left behind: it ends with the
/// process, which is about to.
fn leave(loader: Loader) {
    let (done, wait) = mpsc::channel();
    thread::spawn(move || done.send(loader.finish()));
    let _ = wait.recv_timeout(GRACE);
}

/// What was delivered so far.
pub(crate) struct Tally {
    /// When the process began.
    begun: Instant,
    /// Clock ticks of children that ended before that.
    pub(crate) children: u64,
    /// When the first epoch did.
    started: Instant,
    /// What is delivered.
    pub(crate) unit: Unit,
    /// How often something was delivered.
    pub(crate) delivered: u64,
    /// Samples, those in batches and files counted one by one, as far as these show how many they hold.
    pub(crate) samples: u64,
    /// What the first delivery held, and how many milliseconds after the process began it came.
    pub(crate) first: Option<(Vec<Field>, f64)>,
    /// How long the epochs took.
    pub(crate) seconds: f64,
    digest: Option<Digest>,
    /// What became of the files at a path.
    coverage: Option<Coverage>,
}

impl Tally {
    fn new(begun: Instant, unit: Unit, digest: bool) -> Self {
        let digest = digest.then(Digest::default);
        let children = children_ticks();
        Self {
            begun,
            children,
            started: begun,
            unit,
            delivered: 0,
            samples: 0,
            first: None,
            seconds: 0.0,
            digest,
            coverage: None,
        }
    }

    fn add(&mut self, sample: &Sample) {
        if self.first.is_none() {
            let after = self.begun.elapsed().as_secs_f64() * 1e3;
            self.first = Some((Field::all(sample), after));
        }
        self.delivered += 1;
        self.samples += self.unit.samples_in(sample);
        if let Some(digest) = &mut self.digest {
            digest.update(sample);
        }
        if let Some(coverage) = &mut self.coverage {
            coverage.add(sample);
        }
    }

    /// How many deliveries were batches.
    pub(crate) fn batches(&self) -> u64 {
        if self.unit.name() == "batch" { self.delivered } else { 0 }
    }

    /// Seconds since the first epoch began.
    pub(crate) fn elapsed(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// The digest of all that was delivered, if it was asked for.
    pub(crate) fn digest(&self) -> Option<String> {
        self.digest.as_ref().map(Digest::finish)
    }
}
