//! Loaders with worker processes come and go, and leave nothing: alone in its program, since it counts descriptors.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    process::{Command, Stdio},
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use forebay_loader::{Executor, Registry, Rng};
use forebay_tests::{ALL, Gate, Setting, await_workers, build, line, registry, root, within_deadline};
use rustix::process::{Signal, getpid, kill_process};

/// How long what is to go away may take to.
const PATIENCE: Duration = Duration::from_secs(30);

/// Held by the one test that counts.
static COUNTING: Mutex<()> = Mutex::new(());

fn count(folder: &str) -> usize {
    fs::read_dir(folder).unwrap().count()
}

#[test]
fn nothing_is_left_behind() {
    // Others are waited for before the deadline begins to count.
    let _alone = COUNTING.lock().unwrap_or_else(PoisonError::into_inner);
    within_deadline(|| {
        let registry = registry();
        // One with maps on workers, one with pipes that have a worker each, one of which waits for ever.
        let gate = Gate::new();
        let wait = format!("rogue_stream fault=pending at=1 gate='{}' on=process", gate.path());
        let graphs = [
            line("range 1000000000 | increment | batch 4"),
            line("range 1000000000 on=process | rogue_stream | batch 4 on=process"),
            line(&format!("range 1000000000 | {wait} | increment on=threads")),
        ];
        let shared = || fs::read_to_string("/proc/self/maps").unwrap().matches("memfd:forebay").count();
        // Descriptors, threads, and pieces of shared memory.
        let held = || [count("/proc/self/fd"), count("/proc/self/task"), shared()];
        let mut before = [0; 3];
        let cycles = std::env::var("FOREBAY_CYCLES").ok().and_then(|n| n.parse().ok()).unwrap_or(1000);
        for cycle in 0..cycles {
            let setting = Setting { executor: Executor::Processes(2), ..Setting::INLINE };
            let mut loader = build(&graphs[cycle % 3], &registry, setting).unwrap();
            let taken = cycle / 3 % 2;
            assert_eq!(loader.epoch(0).take(taken).count(), taken);
            let workers = loader.worker_processes();
            drop(loader);
            for pid in workers {
                let alive = fs::read_to_string(format!("/proc/{pid}/stat"));
                assert!(alive.is_err(), "worker {pid} is still there: {alive:?}");
            }
            if cycle == 0 {
                before = held();
            }
            // A thread that was joined may be counted for a moment more.
            while held() != before {
                thread::yield_now();
            }
        }
    });
}

/// Descriptors, threads, processes, and pieces of shared memory.
fn held() -> [usize; 4] {
    let processes = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path().join("stat"));
    // One that ends meanwhile has none; behind the name, which is in parentheses, stand its state and its parent.
    let stats = processes.filter_map(|stat| fs::read_to_string(stat).ok());
    let own = std::process::id().to_string();
    let is_child =
        |stat: &String| stat.rsplit_once(')').is_some_and(|(_, rest)| rest.split(' ').nth(2) == Some(&*own));
    let children = stats.filter(is_child).count();
    let shared = fs::read_to_string("/proc/self/maps").unwrap().matches("memfd:forebay").count();
    [count("/proc/self/fd"), count("/proc/self/task"), children, shared]
}

/// Starts a loader, breaks it off somewhere, and ends it somehow.
fn cycle(text: &str, registry: &Registry, rng: &mut Rng) {
    let executors = [&ALL[..], &[Executor::Processes(1), Executor::Processes(2)]].concat();
    // A signal would end this process too, where everything runs in it.
    let away = text.contains("fault=signal").then_some(Executor::Processes(2));
    let executor = away.unwrap_or(executors[rng.below(executors.len() as u64) as usize]);
    let mut loader =
        build(&line(text), registry, Setting { executor, epochs: 3, ..Setting::INLINE }).unwrap();
    let taken = rng.below(40) as usize;
    match rng.below(6) {
        0 => return,
        1 => drop(loader.epoch(0)),
        2 => drop(loader.epoch(0).take(taken).map(|sample| sample.is_ok()).collect::<Vec<_>>()),
        3 => {
            let mut epoch = loader.epoch(0);
            let whole = epoch.by_ref().take(taken).all(|sample| sample.is_ok());
            let snapshot = epoch.snapshot().unwrap();
            drop(epoch);
            if whole {
                let _ = loader.resume(&snapshot).unwrap().take(taken).count();
            }
        }
        4 => {
            let stopper = loader.stopper();
            let mut epoch = loader.epoch(0);
            let _ = epoch.by_ref().take(taken).count();
            stopper.stop();
            let _ = epoch.count();
        }
        _ => (0..3).for_each(|epoch| {
            let _ = loader.epoch(epoch).take(taken).count();
        }),
    }
    if rng.bool(0.5) {
        let _ = loader.finish(); // A pipe may fail at its end.
    }
}

#[test]
fn loaders_of_every_kind_that_are_broken_off_leave_nothing() {
    let _alone = COUNTING.lock().unwrap_or_else(PoisonError::into_inner);
    within_deadline(|| {
        let (registry, folder) = (registry(), tempfile::tempdir().unwrap());
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        fs::write(path("in.jsonl"), (0..500).map(|n| format!("{{\"n\": {n}}}\n")).collect::<String>())
            .unwrap();
        let photos = format!("files '{}/examples/photos/*.tar' | untar | decode", root().display());
        let graphs = [
            "range 1000000000 | shuffle 100 | increment | batch 4".to_owned(),
            format!("{photos} | select cls | batch 7"),
            format!(
                "files '{}' | lines | json_lines | fork @f ; map @m <f.1> 'm=n + 1' ; mux <f, m>",
                path("in.jsonl")
            ),
            format!(
                "files '{}' | lines | json_lines | write_jsonl '{}' overwrite=true shard_size=9",
                path("in.jsonl"),
                path("out-{}.jsonl")
            ),
            "range 100 | rogue_map fault=error at=17 | batch 2".to_owned(),
            "range 100 | increment | rogue_stream fault=panic at=17".to_owned(),
            "range 50 | rogue_map fault=signal at=13 on=process on_error=skip".to_owned(),
            "range 1000000000 on=process | rogue_lag hold=7 state=true on=process | batch 4 on=own_thread"
                .to_owned(),
            "range 100 | increment | cache | take 30".to_owned(),
        ];
        let mut rng = Rng::new(9, 0);
        let cycles = std::env::var("FOREBAY_CYCLES").ok().and_then(|n| n.parse().ok()).unwrap_or(500);
        let mut before = None;
        for at in 0..cycles {
            let text = &graphs[at % graphs.len()];
            cycle(text, &registry, &mut rng);
            // What is made once is made by then: plugins are loaded, and the first threads have had their stacks.
            if at + 1 == 4 * graphs.len() {
                before = Some(held());
            }
            let Some(before) = before else { continue };
            let since = Instant::now();
            // A thread that was joined may be counted for a moment more.
            while held() != before {
                assert!(since.elapsed() < PATIENCE, "{text}, cycle {at}: {before:?} became {:?}", held());
                thread::yield_now();
            }
        }
    });
}

/// What the child is told to run.
const ORPHANS: &str = "FOREBAY_TEST_ORPHANS";

/// The process that the next test starts, and that dies.
#[expect(clippy::print_stdout, reason = "what its parent reads")]
fn parent(text: &str) {
    let setting = Setting { executor: Executor::Processes(2), ..Setting::INLINE };
    let mut loader = build(&line(text), &registry(), setting).unwrap();
    let count = if text.contains("rogue_lag") { 1 } else { 2 };
    let mut epoch = loader.epoch(0);
    assert!(epoch.by_ref().take(3).all(|sample| sample.is_ok()));
    await_workers(&epoch, count);
    println!("workers {:?}", epoch.worker_processes());
    // It dies in the midst of its work, when it is told how.
    let mut signal = String::new();
    std::io::stdin().read_line(&mut signal).unwrap();
    match signal.trim() {
        // The first is Rust's own, which looks whether a stack is full, and leaves the next to the system; two at once are one.
        "11" => loop {
            kill_process(getpid(), Signal::SEGV).unwrap();
            thread::yield_now();
        },
        "6" => std::process::abort(),
        "9" => kill_process(getpid(), Signal::KILL).unwrap(),
        _ => std::process::exit(3),
    }
    epoch.for_each(drop);
}

#[test]
fn workers_and_shared_memory_go_with_a_parent_that_dies() {
    if let Ok(text) = std::env::var(ORPHANS) {
        return parent(&text);
    }
    let _alone = COUNTING.lock().unwrap_or_else(PoisonError::into_inner);
    within_deadline(|| {
        let gate = Gate::new();
        let stuck = format!("range 1000000000 | rogue_map at=90 gate='{}'", gate.path());
        let graphs = [
            "range 1000000000 | increment | batch 4",
            &stuck,
            // One sample takes so long that the worker hears nothing else.
            "range 1000000000 | rogue_map fault=loop at=90",
            "range 1000000000 on=process | rogue_lag hold=7 state=true on=process",
        ];
        for text in graphs {
            for signal in ["11", "6", "9", "exit"] {
                let mut child = Command::new(std::env::current_exe().unwrap())
                    .args(["--exact", "workers_and_shared_memory_go_with_a_parent_that_dies", "--nocapture"])
                    .env(ORPHANS, text)
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .stderr(Stdio::null())
                    .spawn()
                    .unwrap();
                let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
                let line =
                    lines.find_map(|line| line.split_once("workers [").map(|(_, pids)| pids.to_owned()));
                let line = line.unwrap();
                let workers: Vec<u32> =
                    line.trim_end_matches(']').split(", ").map(|pid| pid.parse().unwrap()).collect();
                writeln!(child.stdin.take().unwrap(), "{signal}").unwrap();
                let status = child.wait().unwrap();
                assert!(!status.success(), "{text}: {status}");
                let since = Instant::now();
                for pid in workers {
                    // One that ended and that nobody waits for has no memory any more.
                    let alive = || {
                        fs::read_to_string(format!("/proc/{pid}/maps"))
                            .is_ok_and(|maps| maps.contains("memfd:forebay"))
                    };
                    while alive() {
                        assert!(since.elapsed() < PATIENCE, "{text}: worker {pid} outlives {signal}");
                        thread::yield_now();
                    }
                }
            }
        }
    });
}

#[test]
fn files_whose_samples_are_held_are_not_held_open() {
    // Others are waited for before the deadline begins to count.
    let _alone = COUNTING.lock().unwrap_or_else(PoisonError::into_inner);
    within_deadline(|| {
        let (registry, folder) = (registry(), tempfile::tempdir().unwrap());
        for number in 0..1000 {
            fs::write(folder.path().join(format!("{number:04}.txt")), number.to_string()).unwrap();
        }
        for open in ["mmap", "read"] {
            for order in ["shuffle 700", "random_sampler"] {
                let graph = line(&format!("files '{}/*.txt' open={open} | {order}", folder.path().display()));
                let mut loader = build(&graph, &registry, Setting::threads(2)).unwrap();
                let mut samples = loader.epoch(0);
                let mut held = vec![samples.next().unwrap().unwrap()];
                let before = count("/proc/self/fd");
                for sample in samples {
                    held.push(sample.unwrap());
                    // Each thread may be opening one, and another lists a folder.
                    assert!(count("/proc/self/fd") <= before + 4, "{graph}: after {} files", held.len());
                }
                assert_eq!(held.len(), 1000, "{graph}");
            }
        }
    });
}
