//! One check in a process of its own: this program, called once more as it was, under limits of memory and time.

use std::{
    env,
    fs::{self, File},
    io::{self, Write as _},
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
    process::{self, Command, ExitStatus, Stdio},
    time::Instant,
};

use forebay_loader::{Error, Result, install_signal_handlers};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{
        Pid, PidfdFlags, Resource, Rlimit, Signal, getrlimit, pidfd_open, pidfd_send_signal, setrlimit,
    },
};
use serde::{Deserialize, Serialize};

use super::{
    Kit, Verdict,
    bench::Bench,
    checks::{CHECKS, Check, Miss},
    state::State,
    subject::Subject,
};

/// Set for a process that runs one check.
const TASK: &str = "FOREBAY_CONFORMANCE_TASK";
/// The memory of such a process that is its own, in bytes; what it shares with workers is not counted.
const MEMORY: u64 = 4 << 30;
/// So many seconds of waiting are allowed for one of working.
const PATIENCE: u64 = 4;
/// The most of what was printed that is shown.
const SHOWN: usize = 100;

/// What a process is to do.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Task {
    /// The place among the plugin's subjects.
    subject: usize,
    check: String,
    /// Where the answer goes.
    answer: PathBuf,
    /// What the process prints into.
    printed: PathBuf,
    /// Where it says what it works on, for the case that it dies over it.
    doing: PathBuf,
}

impl Task {
    /// That of this process, if it is one that was called for a check.
    pub(super) fn given() -> Option<Self> {
        let task = env::var(TASK).ok()?;
        // Written by `ask` below.
        serde_json::from_str(&task).ok()
    }
}

/// Runs a check in another process: how it ended, and what was seen.
///
/// # Errors
/// `Io`, when no process can be started.
pub(super) fn ask(kit: &Kit, subject: usize, check: &str) -> Result<(Verdict, String)> {
    let folder = tempfile::tempdir()?;
    let [answer, printed, doing] = ["answer", "printed", "doing"].map(|name| folder.path().join(name));
    let task = Task { subject, check: check.to_owned(), answer, printed, doing };
    let output = File::create(&task.printed)?;
    let mut command = Command::new(this_program()?);
    match kit.test {
        Some(test) => command.args([test, "--exact", "--nocapture", "--test-threads=1"]),
        None => command.args(env::args_os().skip(1)),
    };
    let json = serde_json::to_string(&task).map_err(|error| Error::bug(error.to_string()))?;
    // What the plugin prints of a panic is short.
    command.env(TASK, json).env("RUST_BACKTRACE", "0");
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    let Some(status) = wait(command, kit.seconds * PATIENCE)? else {
        let late = format!("no answer within {} s", kit.seconds * PATIENCE);
        return Ok((Verdict::Died, late + &over(&task.doing)));
    };
    match fs::read(&task.answer).ok().and_then(|answer| serde_json::from_slice(&answer).ok()) {
        Some(answer) => Ok(answer),
        None => Ok((Verdict::Died, last_words(status, &task.printed) + &over(&task.doing))),
    }
}

/// This program, by the name that it was called by if that leads to it: the interpreter of a virtual environment is a link to
/// another's, and only the link's place says which packages it has.
fn this_program() -> io::Result<PathBuf> {
    let program = env::current_exe()?;
    let called = env::args_os().next().map(PathBuf::from).unwrap_or_default();
    let places = match called.components().count() {
        1 => env::split_paths(&env::var_os("PATH").unwrap_or_default()).map(|at| at.join(&called)).collect(),
        _ => vec![called],
    };
    let leads_here = |place: &PathBuf| place.canonicalize().is_ok_and(|found| found == program);
    Ok(places.into_iter().find(leads_here).unwrap_or(program))
}

/// How the process ended; none when it had to be ended.
fn wait(mut command: Command, seconds: u64) -> Result<Option<ExitStatus>> {
    let mut child = command.spawn()?;
    // A descriptor of the process cannot come to mean another one, as its number could.
    let process = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).map_err(io::Error::from)?;
    let limit = Timespec { tv_sec: seconds.cast_signed(), tv_nsec: 0 };
    let mut ends = [PollFd::new(&process, PollFlags::IN)];
    let ended = loop {
        match poll(&mut ends, Some(&limit)) {
            Err(rustix::io::Errno::INTR) => {}
            other => break other.map_err(io::Error::from)? > 0,
        }
    };
    if !ended {
        pidfd_send_signal(&process, Signal::KILL).map_err(io::Error::from)?;
    }
    let status = child.wait()?;
    Ok(ended.then_some(status))
}

/// What it worked on when it died, as far as that is known.
fn over(doing: &Path) -> String {
    let doing = fs::read_to_string(doing).unwrap_or_default();
    match doing.trim_end() {
        "" => String::new(),
        doing => format!(" (over {doing})"),
    }
}

fn last_words(status: ExitStatus, printed: &Path) -> String {
    let printed = String::from_utf8_lossy(&fs::read(printed).unwrap_or_default()).into_owned();
    // What the host says of a crash, and the lines of it that say where, is known from the status.
    let others = ["note: ", "  ", "error: a plugin "];
    let own = |line: &&str| !line.is_empty() && !others.iter().any(|start| line.starts_with(start));
    let last = printed.lines().rfind(own);
    format!("{status}: {}", last.unwrap_or("it printed nothing"))
}

/// Runs a check in this process, and ends it.
pub(super) fn serve(kit: &Kit, subjects: &[Subject], task: &Task) -> ! {
    limit(Resource::Data, MEMORY);
    limit(Resource::Core, 0);
    limit(Resource::Cpu, kit.seconds);
    // What the harness of a test has printed before.
    let before = printed(&task.printed).len();
    // Those of the host are no plugin's.
    install_signal_handlers();
    let state = State::now();
    let answer =
        match subjects.get(task.subject).and_then(|subject| Some((subject, find(subject, &task.check)?))) {
            None => (Verdict::Failed, "the plugin file changed during the test".to_owned()),
            Some((subject, check)) => {
                let doing = File::create(&task.doing).ok();
                let bench = Bench { kit, subject, begun: Instant::now(), doing };
                let found = panic::catch_unwind(AssertUnwindSafe(|| (check.run)(&bench)));
                drop(bench);
                let found = found.map(|found| {
                    found.and_then(|detail| state.changed().map_or(Ok(detail), |why| Err(Miss::Failed(why))))
                });
                match found.unwrap_or_else(|_| Err(Miss::Failed("the kit itself panicked".to_owned()))) {
                    Ok(detail) => quiet(&task.printed, before, detail),
                    Err(Miss::Skipped(why)) => (Verdict::Skipped, why),
                    Err(Miss::Failed(why)) => (Verdict::Failed, why),
                }
            }
        };
    let written = serde_json::to_vec(&answer).ok().map(|answer| fs::write(&task.answer, answer));
    // Whoever asked sees that there is no answer.
    process::exit(i32::from(!matches!(written, Some(Ok(())))))
}

fn find(subject: &Subject, check: &str) -> Option<&'static Check> {
    CHECKS.iter().find(|known| known.kind == subject.kind() && known.name == check)
}

/// A check passed if nothing was printed in it.
fn quiet(file: &Path, before: usize, detail: String) -> (Verdict, String) {
    let _ = io::stdout().flush();
    match printed(file).get(before..) {
        None | Some([]) => (Verdict::Passed, detail),
        Some(more) => {
            let text: String = String::from_utf8_lossy(more).trim().chars().take(SHOWN).collect();
            (
                Verdict::Failed,
                format!("printed {} bytes: {text:?}; plugins log through their context", more.len()),
            )
        }
    }
}

fn printed(file: &Path) -> Vec<u8> {
    fs::read(file).unwrap_or_default()
}

/// Lowers a limit of this process: beyond it allocations fail, or a signal ends it.
fn limit(resource: Resource, most: u64) {
    let maximum = getrlimit(resource).maximum;
    // One that is lower already cannot be raised, and need not be.
    let _ = setrlimit(
        resource,
        Rlimit { current: Some(maximum.map_or(most, |maximum| most.min(maximum))), maximum },
    );
}
