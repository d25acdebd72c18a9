//! Memory stays within the budget, whatever the size of samples: read from `/proc` while the command runs.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread,
    time::Duration,
};

use flate2::{Compression, write::GzEncoder};
use forebay_loader::{ErrorKind, Executor};
use forebay_tests::{
    Setting,
    command::{all, command, json},
    error_of, line, registry, run, skip, within_deadline,
};

const MIB: u64 = 1 << 20;

/// A gzip file of so many bytes that repeat, named by them.
fn packed(folder: &Path, bytes: u64) {
    let file = fs::File::create(folder.join(format!("{bytes:010}.bin.gz"))).unwrap();
    let mut writer = GzEncoder::new(file, Compression::fast());
    let block = vec![b'x'; 1 << 16];
    let mut left = bytes as usize;
    while left > 0 {
        let part = left.min(block.len());
        writer.write_all(&block[..part]).unwrap();
        left -= part;
    }
    writer.finish().unwrap();
}

/// The command `forebay` with our plugins and nothing else of the environment; behind `limit` KiB of addresses, if given.
fn forebay(args: &[&str], limit: Option<u64>) -> Command {
    let mut run = Command::new("sh");
    let limit = limit.map_or_else(String::new, |limit| format!("ulimit -v {limit}; "));
    run.args(["-c", &format!("{limit}exec \"$0\" \"$@\"")]).arg(command()).args(args);
    run.env_clear().env("FOREBAY_PLUGIN_SYSTEM_PATH", "").env("HOME", "/nowhere");
    run.env("FOREBAY_PLUGIN_PATH", all());
    run
}

/// A group of processes that the system gives no more memory than a limit.
struct Group(PathBuf);

impl Group {
    /// None where this program may make none.
    fn new(limit: u64) -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let own = |name: &str| {
            let line = own.lines().find_map(|line| line.split_once(name))?;
            Some(line.1.trim_start_matches('/').to_owned())
        };
        let of = |root: &str, own: Option<String>| Some(Path::new(root).join(own?));
        let parents = [of("/sys/fs/cgroup/memory", own(":memory:")), of("/sys/fs/cgroup", own("0::"))];
        let made = parents.into_iter().flatten().find_map(|parent| {
            let group = Self(parent.join(format!("forebay-test-{}-{limit}", std::process::id())));
            fs::create_dir(&group.0).ok()?;
            let limits = ["memory.limit_in_bytes", "memory.max"].map(|name| group.0.join(name));
            limits
                .iter()
                .any(|file| file.exists() && fs::write(file, limit.to_string()).is_ok())
                .then_some(group)
        });
        if made.is_none() {
            skip("control group", "this program may make none, so memory is read from /proc alone");
        }
        made
    }

    /// Has a command run in it.
    fn run(&self, args: &[&str]) -> Output {
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(self.0.join("cgroup.procs"));
        shell.arg(command()).args(args).env_clear().env("FOREBAY_PLUGIN_SYSTEM_PATH", "");
        shell.env("HOME", "/nowhere").env("FOREBAY_PLUGIN_PATH", all()).output().unwrap()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0); // All who were in it have ended.
    }
}

/// The number of KiB behind `name` in a file of `/proc`, if it is still there.
fn kib(path: &str, name: &str) -> u64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok()).unwrap_or(0)
}

/// The bytes that a process and its children have now, without those of files; of what several share each has its part.
fn memory(process: u32) -> u64 {
    let own = kib(&format!("/proc/{process}/status"), "RssAnon:");
    let shared = kib(&format!("/proc/{process}/smaps_rollup"), "Pss_Shmem:");
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let children = threads.flat_map(|thread| {
        let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        children.split_whitespace().map(|id| id.parse().unwrap()).collect::<Vec<u32>>()
    });
    (own + shared) * 1024 + children.map(memory).sum::<u64>()
}

/// Runs the command, and gives what it printed and the most memory that it and its workers were seen to have.
fn watched(args: &[&str]) -> (Output, u64) {
    let mut child = forebay(args, None).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut most = 0;
    while child.try_wait().unwrap().is_none() {
        most = most.max(memory(child.id()));
        thread::park_timeout(Duration::from_millis(1));
    }
    (child.wait_with_output().unwrap(), most)
}

/// Runs the graph with a budget of 64 MiB.
fn run_within_budget(graph: &str, executor: &str) -> (Output, u64) {
    watched(&["run", graph, "--executor", executor, "--budget", "64MiB", "--digest", "--json", "--quiet"])
}

#[test]
fn memory_stays_within_the_budget_and_one_sample_for_each_thread() {
    within_deadline(|| {
        let folder = tempfile::tempdir().unwrap();
        // No two are of one size, so none is put where another was.
        (4..24).for_each(|at| packed(folder.path(), at * 2 * MIB - at));
        let graph = format!("files '{}/*.gz' | decompress", folder.path().display());
        let mut digests = Vec::new();
        for (executor, count) in [("inline", 1), ("threads:2", 2), ("threads:8", 8), ("processes:4", 4)] {
            let (output, most) = run_within_budget(&graph, executor);
            assert_eq!(json(&output)["samples"], 20, "{executor}");
            digests.push(json(&output)["digest"].clone());
            let allowed = 64 * MIB + count * 46 * MIB + 100 * MIB;
            assert!(most <= allowed, "{executor}: {} MiB, allowed are {}", most / MIB, allowed / MIB);
            assert!(most > 46 * MIB, "{executor}: {most} bytes were seen");
            // What no reading of /proc can miss.
            if let Some(group) = Group::new(allowed) {
                let output = group.run(&[
                    "run",
                    &graph,
                    "--executor",
                    executor,
                    "--budget",
                    "64MiB",
                    "--json",
                    "--quiet",
                ]);
                assert_eq!(json(&output)["samples"], 20, "{executor}: {output:?}");
            }
        }
        digests.dedup();
        assert_eq!(digests.len(), 1, "waiting changes nothing of what comes");
    });
}

#[test]
fn samples_larger_than_the_budget_wait_for_each_other() {
    within_deadline(|| {
        let folder = tempfile::tempdir().unwrap();
        (0..8).for_each(|at| packed(folder.path(), 300 * MIB + at));
        let graph = format!("files '{}/*.gz' | decompress", folder.path().display());
        for (executor, count) in [("threads:4", 4), ("threads:8", 8), ("processes:4", 4)] {
            let (output, most) = run_within_budget(&graph, executor);
            assert_eq!(json(&output)["samples"], 8, "{executor}");
            // Of those for each of eight most wait: without that they took 2,400 MiB.
            let allowed = (64 + count.min(5) * 300) * MIB + 100_000_000;
            assert!(most <= allowed, "{executor}: {} MiB", most / MIB);
        }
    });
}

#[test]
fn memory_that_the_system_refuses_is_an_error_of_its_sample() {
    within_deadline(|| {
        let folder = tempfile::tempdir().unwrap();
        [MIB, 900 * MIB, 2 * MIB].into_iter().for_each(|bytes| packed(folder.path(), bytes));
        let graph = |policy: &str| format!("files '{}/*.gz' | decompress {policy}", folder.path().display());
        for executor in ["inline", "threads:2"] {
            let limited = |policy: &str| {
                let graph = graph(policy);
                let args = ["run", &graph, "--executor", executor, "--json", "--quiet"];
                forebay(&args, Some(800_000)).output().unwrap()
            };
            let failed = limited("");
            let said = String::from_utf8_lossy(&failed.stderr);
            assert_eq!(failed.status.code(), Some(1), "{executor}: {said}");
            assert!(said.contains("the system has no") && said.contains("0943718400.bin.gz"), "{said}");
            let skipped = limited("on_error=skip");
            assert_eq!(json(&skipped)["samples"], 2, "{executor}: {skipped:?}");
        }
    });
}

#[test]
fn memory_that_a_plugin_takes_by_itself_is_an_error_of_its_sample_too() {
    within_deadline(|| {
        let folder = tempfile::tempdir().unwrap();
        // A tar file with the holes of a file of 900 MB, which come as zeros.
        let holes = fs::File::create(folder.path().join("holes.bin")).unwrap();
        holes.set_len(900 * MIB).unwrap();
        let made =
            Command::new("tar").args(["--sparse", "-cf", "a.tar", "holes.bin"]).current_dir(&folder).status();
        assert!(made.unwrap().success());
        let tar = folder.path().join("a.tar");
        assert!(fs::metadata(&tar).unwrap().len() < MIB, "the holes are not stored");
        let graph = format!("files '{}' | untar", tar.display());
        for executor in ["inline", "threads:2"] {
            let args = ["run", &graph, "--executor", executor, "--quiet"];
            let failed = forebay(&args, Some(800_000)).output().unwrap();
            let said = String::from_utf8_lossy(&failed.stderr);
            assert_eq!(failed.status.code(), Some(1), "{executor}: {said}");
            assert!(said.contains("the system has no 943718400 bytes") && said.contains("a.tar"), "{said}");
        }
    });
}

#[test]
fn how_large_a_sample_may_be_follows_from_the_budget() {
    within_deadline(|| {
        let (registry, folder) = (registry(), tempfile::tempdir().unwrap());
        packed(folder.path(), 300 * MIB);
        let graph = line(&format!("files '{}/*.gz' | decompress | select path", folder.path().display()));
        let setting = |budget| Setting { budget, executor: Executor::Threads(2), ..Setting::INLINE };
        let (error, _) = error_of(&graph, &registry, setting(Some(16 * MIB)));
        assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
        for budget in [None, Some(64 * MIB), Some(20 * MIB)] {
            let mut loader = forebay_tests::build(&graph, &registry, setting(budget)).unwrap();
            assert_eq!(run(&mut loader, 0).unwrap().samples, 1, "{budget:?}");
        }
    });
}

#[test]
fn the_peak_that_is_told_counts_workers() {
    within_deadline(|| {
        let folder = tempfile::tempdir().unwrap();
        packed(folder.path(), 200 * MIB);
        // Only the worker ever has what is in it.
        let graph = format!("files '{}/*.gz' | decompress | select path", folder.path().display());
        let (output, seen) = run_within_budget(&graph, "processes:1");
        let told = json(&output)["peak_rss_bytes"].as_u64().unwrap();
        assert!(told >= 200 * MIB && told + 50 * MIB > seen, "{told} bytes are told, {seen} were seen");
    });
}
