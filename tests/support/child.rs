//! Child processes that work on many things, each under limits of memory and of time, so that one that kills or hangs its process is seen
//! as one.
//!
//! A child is the running test run once more, told by a variable. It is asked for one thing after the other, and another takes its
//! place when it dies.

use std::{
    env,
    fs::File,
    io::{self, BufRead as _, BufReader, Read as _, Seek as _, Write as _},
    panic::{self, AssertUnwindSafe, catch_unwind},
    path::Path,
    process::{self, Command, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use forebay_loader::Error;
use rustix::{
    process::{Resource, Rlimit, getrlimit, setrlimit},
    time::{ClockId, clock_gettime},
};
use serde_json::{Value, json};

const IS_CHILD: &str = "FOREBAY_TEST_CHILD";
/// The address space of a child, in bytes: what it reads is small.
const MEMORY: u64 = 1 << 30;
/// How long an answer is waited for: only a child that sleeps takes so long.
const DEADLINE: Duration = Duration::from_secs(120);

/// What came of one thing.
pub enum Outcome {
    /// The work's answer.
    Read(Value),
    /// The work's error.
    Refused(String),
    /// It panicked, died, hung or took more than its limits.
    Crashed(String),
}

/// Whether this process is a child.
#[must_use]
pub fn is_child() -> bool {
    env::var_os(IS_CHILD).is_some()
}

/// What comes of each of these paths, or names, in their order: work of children that run the test `name` in `folder`.
pub fn read_all(name: &str, folder: &Path, paths: &[&str]) -> Vec<Outcome> {
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    let work = || {
        let mut child = None;
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(path) = paths.get(index) else { return };
            let asked = child.get_or_insert_with(|| Child::start(name, folder));
            let outcome = asked.ask(path).unwrap_or_else(|why| {
                child = None;
                Outcome::Crashed(why)
            });
            found.lock().unwrap().push((index, outcome));
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let mut found = found.into_inner().unwrap();
    found.sort_by_key(|(index, _)| *index);
    found.into_iter().map(|(_, outcome)| outcome).collect()
}

struct Child {
    process: process::Child,
    answers: Receiver<String>,
    errors: File,
}

impl Child {
    fn start(name: &str, folder: &Path) -> Self {
        let errors = tempfile::tempfile().unwrap();
        let mut process = Command::new(env::current_exe().unwrap())
            .args([name, "--exact", "--nocapture", "--test-threads=1"])
            .env(IS_CHILD, "1")
            .env("RUST_BACKTRACE", "0")
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors.try_clone().unwrap())
            .spawn()
            .unwrap();
        let (send, answers) = mpsc::channel();
        let output = BufReader::new(process.stdout.take().unwrap());
        // Between the answers are words of the test harness.
        let lines = output.lines().map_while(Result::ok).filter(|line| line.starts_with('{'));
        thread::spawn(move || lines.map(|line| send.send(line)).take_while(Result::is_ok).count());
        Self { process, answers, errors }
    }

    /// What comes of the file, or how the child died over it.
    fn ask(&mut self, path: &str) -> Result<Outcome, String> {
        // To a dead child nothing can be written; that is seen when it does not answer.
        let _ = writeln!(self.process.stdin.as_ref().unwrap(), "{path}");
        let answer = match self.answers.recv_timeout(DEADLINE) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout) => return Err("hangs".to_owned()),
            Err(RecvTimeoutError::Disconnected) => return Err(self.last_words()),
        };
        let mut answer: Value = serde_json::from_str(&answer).unwrap();
        let said = answer["said"].as_str().unwrap_or_default().to_owned();
        Ok(match answer["outcome"].as_str().unwrap() {
            "read" => Outcome::Read(answer["digest"].take()),
            "refused" => Outcome::Refused(said),
            _ => Outcome::Crashed(said),
        })
    }

    fn last_words(&mut self) -> String {
        let status = self.process.wait().unwrap();
        let mut errors = String::new();
        let _ = self.errors.rewind().and_then(|()| self.errors.read_to_string(&mut errors));
        let last = errors.lines().rfind(|line| !line.is_empty() && !line.starts_with("note: "));
        format!("died: {status}: {}", last.unwrap_or_default())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A child's work: `digest` of whatever it is asked for, each in so many seconds of the processor, whose clock does not run while others
/// have the machine, until nothing more is asked.
pub fn serve(digest: impl Fn(&Path) -> Result<Value, Error>, seconds: u64) {
    static PANIC: Mutex<String> = Mutex::new(String::new());
    panic::set_hook(Box::new(|panic| *PANIC.lock().unwrap() = panic.to_string().replace('\n', " ")));
    limit(Resource::As, MEMORY);
    limit(Resource::Core, 0);
    for path in io::stdin().lines() {
        let used = clock_gettime(ClockId::ProcessCPUTime).tv_sec;
        limit(Resource::Cpu, used.unsigned_abs() + seconds);
        let path = path.unwrap();
        let answer = match catch_unwind(AssertUnwindSafe(|| digest(Path::new(&path)))) {
            Ok(Ok(digest)) => json!({"outcome": "read", "digest": digest}),
            Ok(Err(error)) => json!({"outcome": "refused", "said": error.to_string()}),
            Err(_) => json!({"outcome": "crashed", "said": *PANIC.lock().unwrap()}),
        };
        // The harness may have left its last line open.
        io::stdout().write_all(format!("\n{answer}\n").as_bytes()).unwrap();
    }
}

/// Lowers a limit of this process; beyond it allocations fail, or a signal kills.
fn limit(resource: Resource, most: u64) {
    let maximum = getrlimit(resource).maximum;
    setrlimit(resource, Rlimit { current: Some(most), maximum }).unwrap();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does what the file's name says.
    fn misbehave(path: &Path) -> Result<Value, Error> {
        match path.to_str().unwrap() {
            "panics" => panic!("on purpose"),
            "dies" => process::abort(),
            "spins" => loop {
                std::hint::spin_loop();
            },
            "hoards" => Ok(json!(vec![1_u8; 2 << 30].len())),
            "refuses" => Err(Error::corrupt("odd")),
            _ => Ok(json!(1)),
        }
    }

    #[test]
    fn a_file_that_kills_its_reader_is_told_from_the_others() {
        if is_child() {
            return serve(misbehave, 1);
        }
        let folder = tempfile::tempdir().unwrap();
        let name = "child::tests::a_file_that_kills_its_reader_is_told_from_the_others";
        let paths = ["fine", "dies", "panics", "spins", "refuses", "hoards", "fine again"];
        let found = read_all(name, folder.path(), &paths);
        let said = |outcome: &Outcome| match outcome {
            Outcome::Read(value) => format!("read {value}"),
            Outcome::Refused(why) => format!("refused {why}"),
            Outcome::Crashed(why) => why.clone(),
        };
        let expected =
            ["read 1", "SIGABRT", "on purpose", "SIGXCPU", "refused odd", "memory allocation", "read 1"];
        for (outcome, expected) in found.iter().zip(expected) {
            assert!(said(outcome).contains(expected), "{} is not {expected}", said(outcome));
        }
        assert_eq!(found.len(), paths.len());
    }
}
