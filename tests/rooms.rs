//! A plugin that ends, crashes, prints, moves or closes where it should not is named, and the run does not end as if nothing had been.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    fs,
    os::unix::process::ExitStatusExt as _,
    path::Path,
    process::{Command, Output, Stdio},
    sync::{Arc, Mutex},
};

use forebay_loader::{ErrorKind, Executor, Loader, Stopper};
use forebay_tests::{
    Gate, Setting, build,
    command::{all, command, forebay, json},
    error_of, line, outcome, plugins, registry, within_deadline, worker,
};
use rustix::process::{Pid, Signal, kill_process};

const EXIT: &str = "range 9 | rogue_map fault=exit signal=0 at=5";
const CRASH: &str = "range 9 | rogue_map fault=abort at=5";
/// Where the plugin's code runs in the process of the command.
const HERE: [&[&str]; 3] = [
    &["--executor", "inline"],
    &["--executor", "threads:2"],
    &["--executor", "threads:2", "--isolate", "on-crash"],
];

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
fn assert_says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
}

/// The command with the tests' plugins, in a folder.
fn forebay_in(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(command());
    command.args(args).current_dir(folder).env("FOREBAY_PLUGIN_SYSTEM_PATH", "");
    command.env("FOREBAY_PLUGIN_PATH", all());
    within_deadline(move || command.output().unwrap())
}

#[test]
fn a_plugin_that_exits_is_an_error_and_named() {
    for place in HERE {
        for verb in ["run", "dump"] {
            let ran = forebay(&[], &[&[verb, EXIT][..], place].concat());
            assert_eq!(ran.status.code(), Some(1), "{verb} {place:?}: {ran:?}");
            let parts = [
                "ended the whole program",
                "pipe: rogue_map",
                "forebay-rogue",
                "sample: range#5",
                "--isolate process",
            ];
            assert_says(&told(&ran), &parts);
        }
    }
    let ran = forebay(&[], &["head", "-n", "9", EXIT]);
    assert_eq!(ran.status.code(), Some(1), "{ran:?}");
    // A worker process that exits has died in that sample.
    for place in [&["--executor", "processes:2"][..], &["--isolate", "process"]] {
        let ran = forebay(&[], &[&["run", EXIT, "--json"][..], place].concat());
        assert_eq!(ran.status.code(), Some(1), "{ran:?}");
        let error = json(&ran)["error"].clone();
        assert_says(error["message"].as_str().unwrap(), &["ended with status 0", "again and again"]);
        assert_eq!(error["context"]["sample"], "range#5", "{error}");
        assert_eq!(error["context"]["pipe"], "rogue_map", "{error}");
    }
}

#[test]
fn a_crash_in_the_program_is_told_before_it_ends() {
    let rogue = ["pipe: ", "plugin: forebay-rogue", "librogue.so", "signal ", "--isolate on-crash"];
    for executor in ["inline", "threads:2"] {
        for (graph, says) in [
            (CRASH, &["(SIGABRT", "pipe: rogue_map", "sample: range#5"][..]),
            ("range 9 | rogue_map fault=overflow at=5", &["(SIGSEGV", "pipe: rogue_map", "sample: range#5"]),
            (
                "range 9 | increment @first | rogue_map @second fault=abort at=5",
                &["pipe: second", "sample: range#4"],
            ),
            ("range 9 | rogue_stream fault=abort at=5", &["pipe: rogue_stream"]),
            (
                "rogue_source count=1 payload=abort | decode",
                &["pipe: decode", "decoder: rogue", "sample: rogue#0"],
            ),
        ] {
            let ran = forebay(&[], &["run", graph, "--executor", executor]);
            assert_eq!(ran.status.signal(), Some(6), "{graph} {executor}: {ran:?}");
            let told = told(&ran).replace("libforebay_rogue", "librogue");
            assert_says(&told, &rogue);
            assert_says(&told, says);
        }
    }
    // One that is sent from outside is nobody's crash.
    let ran =
        forebay(&[], &["run", "range 9 | rogue_map fault=signal signal=11 at=5", "--executor", "inline"]);
    assert_eq!(ran.status.signal(), Some(11), "{ran:?}");
    assert!(!told(&ran).contains("a plugin crashed"), "{ran:?}");
}

#[test]
fn what_happens_in_a_decoder_is_of_the_decoders_plugin() {
    within_deadline(|| {
        let registry = registry();
        for (payload, kind) in
            [("panic", ErrorKind::Panic), ("error", ErrorKind::Corrupt), ("abort", ErrorKind::Worker)]
        {
            for executor in [Executor::Inline, Executor::Threads(2), Executor::Processes(2)] {
                if kind == ErrorKind::Worker && !matches!(executor, Executor::Processes(_)) {
                    continue;
                }
                let graph = line(&format!("rogue_source count=9 payload={payload} | decode"));
                let (error, _) = error_of(&graph, &registry, Setting { executor, ..Setting::INLINE });
                assert_eq!(error.kind(), kind, "{error}");
                assert_eq!(error.get("pipe"), Some("decode"), "{error}");
                assert!(
                    error.get("plugin").is_some_and(|plugin| plugin.ends_with("libforebay_rogue.so")),
                    "{error}"
                );
                assert!(error.get("decoder").is_some_and(|decoder| decoder.contains("rogue")), "{error}");
                assert_eq!(error.get("sample"), Some("rogue#0"), "{error}");
            }
        }
    });
    let graph = "rogue_source count=1 payload=abort | decode";
    let ran = forebay(&[], &["run", graph, "--isolate", "on-crash", "--executor", "threads:2"]);
    assert_eq!(ran.status.code(), Some(1), "{ran:?}");
    let told = told(&ran);
    let outlived = told.lines().find(|line| line.contains("it crashed with")).unwrap_or_default();
    assert_says(outlived, &["libforebay_rogue.so", "decoder rogue", "sample rogue#0"]);
}

#[test]
fn an_error_of_a_member_has_file_and_member_apart() {
    let graph = "files 'tests/corpora/../../examples/photos/*.tar' | untar | rogue_map refuse=1";
    let ran = forebay(&[], &["run", graph, "--json", "--executor", "inline"]);
    let error = json(&ran)["error"].clone();
    let (file, member) =
        (error["context"]["file"].as_str().unwrap(), error["context"]["member"].as_str().unwrap());
    assert!(file.ends_with(".tar") && !member.is_empty(), "{error}");
    assert_eq!(error["context"]["sample"], format!("{file}!/{member}"), "{error}");
}

#[test]
fn descriptors_that_a_plugin_closed_hang_nothing() {
    for graph in [
        "range 90 | rogue_map fault=close at=5",
        "range 90 | rogue_map fault=close at=5 | rogue_map @second fault=abort at=70",
    ] {
        // Whatever comes of it, it ends; the deadline is the test.
        let ran = forebay(&[], &["run", graph, "--isolate", "on-crash", "--executor", "threads:2"]);
        assert!(ran.status.code().is_some(), "{ran:?}");
    }
}

#[test]
fn standard_output_is_the_commands_alone() {
    for place in [&["--executor", "inline"][..], &["--executor", "threads:2"], &["--executor", "processes:2"]]
    {
        let graph = "range 9 | rogue_map fault=print at=5";
        let dumped = forebay(&[], &[&["dump", graph][..], place].concat());
        let lines: Vec<_> =
            dumped.stdout.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).collect();
        assert_eq!(lines.len(), 9, "{dumped:?}");
        for line in lines {
            assert!(serde_json::from_slice::<serde_json::Value>(line).is_ok(), "{dumped:?}");
        }
        assert_says(&told(&dumped), &["rogue prints a line"]);
        let ran = forebay(&[], &[&["run", graph, "--json"][..], place].concat());
        assert!(json(&ran)["samples"].is_number(), "{ran:?}");
    }
}

#[test]
fn a_plugin_that_changes_the_folder_moves_no_file() {
    for executor in ["inline", "threads:2"] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.txt"), "one\ntwo\n").unwrap();
        fs::write(folder.path().join("b.txt"), "three\n").unwrap();
        let graph = "files '*.txt' | lines | enumerate field=value | rogue_map fault=chdir at=0 | write_jsonl 'out-{}.jsonl' shard_size=1";
        let args = ["run", graph, "--executor", executor, "--snapshot", "s.json", "--every", "1"];
        let ran = forebay_in(folder.path(), &args);
        assert!(ran.status.success(), "{executor}: {ran:?}");
        for name in ["s.json", "out-0.jsonl", "out-1.jsonl"] {
            assert!(folder.path().join(name).exists(), "{executor}: no {name} after {ran:?}");
        }
    }
}

#[test]
fn a_worker_that_does_not_serve_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let count = folder.path().join("count");
    fs::write(&count, "").unwrap();
    let mut command = Command::new(worker().with_file_name("forebay-test-nested"));
    command.env("COUNT", &count).env("PLUGINS", plugins()).env("GRAPH", "range 90 | increment");
    let ran = within_deadline(move || command.output().unwrap());
    assert!(!ran.status.success(), "{ran:?}");
    assert_says(&told(&ran), &["serve_if_worker", "main"]);
    let starts = fs::read(&count).unwrap().len();
    assert!((2..=5).contains(&starts), "{starts} processes began: {ran:?}");
}

#[test]
fn no_threads_are_as_many_as_the_machine_has() {
    let cores = std::thread::available_parallelism().unwrap().get();
    let loader = build(&line("range 9 | increment"), &registry(), Setting::threads(0)).unwrap();
    assert_eq!(loader.stats().threads, cores);
}

#[test]
fn the_first_ctrl_c_ends_an_inline_run_whose_pipe_never_comes_back() {
    let gate = Gate::new();
    let graph = format!("range 9 | rogue_map fault=loop at=5 gate='{}'", gate.path());
    let mut command = Command::new(command());
    command.args(["run", &graph, "--executor", "inline"]).env("FOREBAY_PLUGIN_PATH", all());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let arrived = gate.arrival();
    kill_process(Pid::from_raw(child.id().cast_signed()).unwrap(), Signal::INT).unwrap();
    drop(arrived);
    let ended = within_deadline(move || child.wait_with_output().unwrap());
    assert_eq!(ended.status.code(), Some(130), "{ended:?}");
    assert_says(&told(&ended), &["a pipe did not return"]);
}

#[test]
fn a_stop_reaches_an_expression_that_runs_for_minutes() {
    within_deadline(|| {
        // 10^9 items.
        let list = "[0,1,2,3,4,5,6,7,8,9]";
        let expression = ["a", "b", "c", "d", "e", "f", "g", "h", "i"]
            .iter()
            .fold("true".to_owned(), |inner, name| format!("{list}.all({name}, {inner})"));
        for executor in [Executor::Inline, Executor::Threads(1)] {
            let stopper: Arc<Mutex<Option<Stopper>>> = Arc::default();
            let stops = Arc::clone(&stopper);
            let graph = line(&format!("range 2 | map 'x={expression}'"));
            let mut loader = Loader::builder(graph)
                .executor(executor)
                .worker(worker())
                .on_stall(std::time::Duration::from_millis(1), move |stall| {
                    let told = stall.to_string();
                    if told.contains("map for") {
                        stops.lock().unwrap().iter().for_each(Stopper::stop);
                    }
                })
                .build(&registry())
                .unwrap();
            *stopper.lock().unwrap() = Some(loader.stopper());
            let error = outcome(&mut loader, 0, |_, _| {}).1.unwrap();
            assert_eq!(error.kind(), ErrorKind::Cancelled, "{executor}: {error}");
            loader.finish().unwrap();
        }
    });
}
