//! How far plugins are kept away is a policy beside the graph, and changes no sample.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests, which say what is not tested here"
)]

use std::{fs, net::TcpListener, os::unix::net::UnixListener, time::Duration};

use forebay_loader::{
    ErrorKind, Executor, Isolation, IsolationLevel, Loader, Registry, Search, Value, graph::On,
};
use forebay_tests::{
    Run, Setting, build, builder,
    command::{forebay, json},
    error_of, folder_of, line, outcome, plugins, registry, within_deadline,
};

/// The plugins of the workspace, kept away like this.
fn isolated(isolation: &str) -> Registry {
    let isolation: Isolation = isolation.parse().unwrap();
    Registry::new(Search::nowhere().first(plugins()).isolation(isolation)).unwrap()
}

/// The levels that this machine has: all, unless its kernel knows no sandbox, which must be said as such.
fn levels<'a>(levels: &[&'a str]) -> Vec<&'a str> {
    let mut loader = build(&line("range 9"), &isolated("sandboxed"), on(Executor::Threads(1))).unwrap();
    let (Run { samples, .. }, Some(error)) = outcome(&mut loader, 0, |_, _| {}) else {
        return levels.to_vec();
    };
    assert!(
        samples == 0
            && error.kind() == ErrorKind::Unsupported
            && error.message().starts_with("this machine cannot make a sandbox: ")
    );
    println!("NOT TESTED: sandboxes, which this machine has not: {error}");
    levels.iter().copied().filter(|level| !level.contains("sandboxed")).collect()
}

fn on(executor: Executor) -> Setting {
    Setting { executor, ..Setting::INLINE }
}

fn truth(text: &str) -> Run {
    outcome(&mut build(&line(text), &registry(), Setting::INLINE).unwrap(), 0, |_, _| {}).0
}

#[test]
fn every_level_gives_the_same_samples() {
    within_deadline(|| {
        for text in [
            "range 300 | rogue_map spin=900 | shuffle 50 | increment | batch 7",
            "range 300 | rogue_stream | increment | take 100 | rogue_stream",
        ] {
            let truth = truth(text);
            for level in levels(&[
                "in-process",
                "on-crash",
                "process",
                "sandboxed",
                "rogue=sandboxed",
                "process,rogue=on-crash",
            ]) {
                let registry = isolated(level);
                for executor in [Executor::Threads(1), Executor::Threads(3), Executor::Processes(2)] {
                    let mut loader = build(&line(text), &registry, on(executor)).unwrap();
                    let got = outcome(&mut loader, 0, |_, _| {});
                    assert_eq!(got, (truth.clone(), None), "{text} {level} {executor}");
                    loader.finish().unwrap();
                }
                for record in registry.plugins() {
                    let kept = matches!(record.level(), IsolationLevel::Process | IsolationLevel::Sandboxed);
                    assert!(!(kept && record.is_loaded()), "{level}: {} was loaded here", record.label());
                }
            }
        }
    });
}

#[test]
fn nodes_go_where_their_plugins_may_run() {
    let places = |level: &str, text: &str| -> Vec<String> {
        let explained =
            forebay(&[], &["explain", text, "--isolate", level, "--json", "--executor", "threads:2"]);
        let segments = json(&explained)["segments"].clone();
        segments
            .as_array()
            .unwrap()
            .iter()
            .map(|segment| segment["on"].as_str().unwrap().to_owned())
            .collect()
    };
    let text = "range 9 | rogue_map on=threads | decode | batch 3";
    assert_eq!(places("rogue=process", text), ["threads", "process", "threads"]);
    // What decodes is as far away as decoders are.
    assert_eq!(places("image=sandboxed", text), ["threads", "threads", "sandboxed", "threads"]);
    assert_eq!(places("sandboxed", text), ["sandboxed"; 3]);
    assert_eq!(
        places("process", "range 9 | rogue_map on=sandboxed | batch 3"),
        ["process", "sandboxed", "process"]
    );
    assert_eq!(places("on-crash", text), ["threads"; 3]);
    let told = forebay(&[], &["explain", text, "--isolate", "sandboxed"]);
    assert!(String::from_utf8_lossy(&told.stdout).contains("sandboxed processes"), "{told:?}");
}

/// What `rogue_reach` says of an attempt, in a sandbox and out of it.
fn reached(options: &str, isolation: &str) -> String {
    let graph = line(&format!("range 1 | rogue_reach {options}"));
    let mut loader = builder(&graph, on(Executor::Threads(1))).build(&isolated(isolation)).unwrap();
    let sample = loader.epoch(0).next().unwrap().unwrap_or_else(|error| panic!("{options}: {error}"));
    sample.get("reached").and_then(Value::as_str).unwrap().to_owned()
}

#[test]
fn a_sandbox_is_kept_to_what_the_graph_names() {
    within_deadline(|| {
        if levels(&["sandboxed"]).is_empty() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let wrote = folder.path().join("wrote").display().to_string();
        let secret = folder.path().join("secret");
        fs::write(&secret, "x").unwrap();
        let secret = secret.display().to_string();
        let socket = folder.path().join("socket");
        let _unix = UnixListener::bind(&socket).unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = tcp.local_addr().unwrap();
        let inside = "PermissionDenied";
        for (options, expected) in [
            ("read at='@/etc/passwd'".to_owned(), inside),
            (format!("read at='@{secret}'"), inside),
            ("list at='@/tmp'".to_owned(), inside),
            (format!("write at='@{wrote}'"), inside),
            (format!("link at='@{wrote}'"), inside),
            (format!("chmod at='@{secret}'"), inside),
            // Named, and still not to be changed.
            (format!("chmod at='{secret}'"), inside),
            (format!("write at='{secret}'"), inside),
            (format!("remove at='{secret}'"), inside),
            (format!("tcp at='{address}'"), inside),
            ("udp at='127.0.0.1:0'".to_owned(), inside),
            (format!("unix at='{}'", socket.display()), inside),
            ("pair".to_owned(), inside),
            ("run at='/bin/true'".to_owned(), inside),
            (format!("memory bytes={}", 6_u64 << 30), "OutOfMemory"),
            ("environment at='HOME'".to_owned(), "NotFound"),
        ] {
            assert_eq!(reached(&options, "sandboxed"), expected, "{options}");
            // Or the test would show nothing.
            assert_eq!(reached(&options, "process"), "reached", "{options}");
            let _ = fs::remove_file(&wrote);
            fs::write(&secret, "x").unwrap();
        }
        for options in [
            format!("read at='{secret}'"),
            format!("read at='@{secret}' named='{secret}'"),
            "thread".to_owned(),
        ] {
            assert_eq!(reached(&options, "sandboxed"), "reached", "{options}");
        }
    });
}

#[test]
fn time_and_memory_in_a_sandbox_are_limited() {
    within_deadline(|| {
        if levels(&["sandboxed"]).is_empty() {
            return;
        }
        let registry = isolated("rogue=sandboxed");
        let graph = line("range 4 | rogue_reach memory bytes=50000000");
        for (memory, expected) in [(1 << 30, "reached"), (40 << 20, "OutOfMemory")] {
            let builder = builder(&graph, on(Executor::Threads(1))).sandbox_memory(memory);
            let mut loader = builder.build(&registry).unwrap();
            let sample = loader.epoch(0).next().unwrap().unwrap();
            assert_eq!(sample.get("reached").and_then(Value::as_str), Some(expected), "{memory}");
        }
        let text = "range 4 | rogue_map fault=loop at=2 on_error=quarantine";
        let builder = builder(&line(text), on(Executor::Threads(1))).timeout(Duration::from_millis(100));
        let mut loader = builder.build(&registry).unwrap();
        assert_eq!(loader.epoch(0).map(Result::unwrap).count(), 3);
        let told = loader.quarantine()[0].error.to_string();
        assert!(told.contains("it took longer than"), "{told}");
        // What sees samples in order may wait as long as it likes elsewhere.
        let graph = line("range 9 | rogue_stream fault=loop at=4");
        let builder =
            forebay_tests::builder(&graph, on(Executor::Threads(1))).timeout(Duration::from_millis(100));
        let mut loader = builder.build(&registry).unwrap();
        let error = loader.epoch(0).find_map(Result::err).unwrap().to_string();
        assert!(error.contains("it took longer than") && error.contains("rogue_stream"), "{error}");
    });
}

#[test]
fn a_thread_that_crashes_is_outlived() {
    within_deadline(|| {
        for (text, plain) in [
            (
                "range 400 | increment | rogue_map fault=abort at=90 here=true | batch 7",
                "range 400 | increment | batch 7",
            ),
            ("range 400 | rogue_map fault=overflow at=300 here=true | shuffle 40", "range 400 | shuffle 40"),
            (
                "range 400 | shuffle 40 | rogue_stream fault=abort at=200 | increment",
                "range 400 | shuffle 40 | increment",
            ),
            (
                "range 60 | rogue_map fault=abort at=9 here=true | repeat 3 | rogue_stream fault=abort at=100",
                "range 60 | repeat 3",
            ),
        ] {
            let truth = truth(plain);
            for executor in [Executor::Threads(1), Executor::Threads(4)] {
                let mut loader = build(&line(text), &isolated("rogue=on-crash"), on(executor)).unwrap();
                for epoch in 0..2 {
                    let got = outcome(&mut loader, 0, |_, _| {});
                    assert_eq!(got, (truth.clone(), None), "{text} on {executor}, time {epoch}");
                }
                assert_told(&loader, text);
                let moved = loader.plan().segments.iter().filter(|segment| segment.on == On::Process).count();
                assert!(moved > 0, "{text}");
                loader.finish().unwrap();
            }
        }
    });
}

#[test]
fn a_sample_that_crashes_everywhere_is_quarantined() {
    within_deadline(|| {
        let text = "range 200 | rogue_map fault=abort at=90 on_error=quarantine | increment";
        let expected = truth("range 200 | rogue_map fault=error at=90 on_error=quarantine | increment");
        let mut loader = build(&line(text), &isolated("on-crash"), on(Executor::Threads(2))).unwrap();
        let (got, error) = outcome(&mut loader, 0, |_, _| {});
        assert_eq!((got, error), (expected, None));
        let lost = loader.quarantine();
        assert_eq!(lost.len(), 1);
        let told = lost[0].error.to_string();
        for part in ["signal 6 (SIGABRT", "rogue_map", "forebay-rogue", ".so"] {
            assert!(told.contains(part), "{told}");
        }
        assert_eq!(lost[0].key.as_deref(), Some("range#90"));
    });
}

#[test]
fn a_crash_as_an_epoch_is_broken_off_is_outlived() {
    within_deadline(|| {
        let text = "range 4000 | rogue_map fault=abort at=20 here=true | batch 5";
        let truth = truth("range 4000 | batch 5");
        for taken in [0, 1, 3, 4, 5] {
            let mut loader = build(&line(text), &isolated("on-crash"), on(Executor::Threads(2))).unwrap();
            let begun = loader.epoch(7).take(taken).map(Result::unwrap).count();
            assert_eq!(begun, taken);
            assert_eq!(outcome(&mut loader, 0, |_, _| {}), (truth.clone(), None), "{taken}");
            assert_told(&loader, text);
            loader.finish().unwrap();
        }
    });
}

/// The log has one crash on a thread for each fault, whenever that was noticed.
#[track_caller]
fn assert_told(loader: &Loader, text: &str) {
    let log: Vec<_> = loader.take_log().into_iter().map(|(_, line)| line).collect();
    let told: Vec<_> = log.iter().filter(|line| line.contains("it crashed with signal ")).collect();
    assert_eq!(told.len(), text.matches("fault=").count(), "{text}: {log:?}");
    for told in told {
        for part in ["rogue", "(SIG", "from here on it runs in worker processes"] {
            assert!(told.contains(part), "{told}");
        }
    }
}

#[test]
fn what_is_isolated_is_never_called_here_instead() {
    within_deadline(|| {
        if levels(&["sandboxed"]).is_empty() {
            return;
        }
        // A value that only its own process can read comes from there, or goes there.
        for text in ["range 9 | rogue_stream fault=opaque on=threads | increment on=sandboxed"] {
            for level in ["in-process", "rogue=on-crash"] {
                let registry = isolated(level);
                let (error, _) = error_of(&line(text), &registry, on(Executor::Threads(2)));
                let told = error.to_string();
                assert!(
                    error.kind() == ErrorKind::Unsupported && told.contains("is isolated in one"),
                    "{told}"
                );
            }
        }
        // What a graph has in a sandbox is not even made here.
        let registry = isolated("in-process");
        let mut loader =
            build(&line("range 9 | rogue_map on=sandboxed"), &registry, on(Executor::Threads(2))).unwrap();
        assert_eq!(outcome(&mut loader, 0, |_, _| {}), (truth("range 9"), None));
        let rogue =
            registry.plugins().iter().find(|record| record.manifest().name == "forebay-rogue").unwrap();
        assert!(!rogue.is_loaded());
    });
}

#[test]
fn commands_that_look_at_some_samples_isolate_too() {
    let folder = forebay_tests::root().join("examples/photos");
    let (folder, shards) = (folder.display().to_string(), format!("{}/*.tar", folder.display()));
    let fields = |path: &str, isolate: &[&str]| {
        let told = forebay(&[], &[&["head", path, "--json"], isolate].concat());
        assert!(told.status.success(), "{told:?}");
        json(&told)["samples"].clone()
    };
    // Who may not be asked is judged by its manifest, which is enough for shards.
    for (path, level) in [
        (&folder, "on-crash"),
        (&shards, "process,files=in-process"),
        (&shards, "sandboxed,files=in-process"),
    ] {
        if levels(&[level]).is_empty() {
            continue;
        }
        assert!(fields(path, &["--isolate", level]) == fields(path, &[]), "{path} {level}");
    }
}

#[test]
fn what_cannot_be_isolated_is_refused() {
    let parse = |text: &str| text.parse::<Isolation>().unwrap_err().to_string();
    assert!(parse("proces").contains("expected in-process, on-crash, process or sandboxed"));
    assert!(parse("process,sandboxed").contains("after another level"));
    assert!(parse("rogue=process,rogue=on-crash").contains("after another level"));
    assert_eq!(
        "on-crash, rogue=sandboxed".parse::<Isolation>().unwrap().to_string(),
        "on-crash,rogue=sandboxed"
    );
    let nobody = Search::nowhere().first(plugins()).isolation("nobody=process".parse().unwrap());
    let error = Registry::new(nobody).map(drop).unwrap_err().to_string();
    assert!(error.contains("cannot isolate `nobody`: found no such plugin"), "{error}");
    for level in ["on-crash", "process", "sandboxed"] {
        let (error, _) = error_of(&line("range 9"), &isolated(level), Setting::INLINE);
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("expected threads:N or processes:N"), "{error}");
    }
    let error = isolated("files=process").store("file").map(drop).unwrap_err();
    assert!(error.to_string().contains("only worker processes can call it"), "{error}");
    let folder = folder_of(&["forebay-pipes"]);
    let run = |variable: &str, args: &[&str]| {
        let folder = folder.path().to_str().unwrap();
        let variables = [("FOREBAY_PLUGIN_PATH", folder), ("FOREBAY_PLUGIN_ISOLATION", variable)];
        let ran = forebay(&variables, &[&["run", "range 9 | shuffle 3", "--quiet"], args].concat());
        (ran.status.code(), String::from_utf8_lossy(&ran.stderr).into_owned())
    };
    assert_eq!(run("process", &[]).0, Some(0));
    for (variable, args) in [("sandbox", &[][..]), ("", &["--isolate", "sandbox"])] {
        let (code, told) = run(variable, args);
        assert!(code == Some(2) && told.contains("plugins are isolated as `sandbox`"), "{code:?} {told}");
    }
}

/// Loaders are sent between threads.
#[test]
fn a_loader_may_change_threads() {
    fn sent<T: Send>() {}
    sent::<Loader>();
}
