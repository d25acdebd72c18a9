//! The command with real plugins: what the environment says, what runs print, and how bad input ends.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use forebay_loader::{Snapshot, registry::Manifest};
use forebay_tests::{
    PLUGINS,
    command::{all, command, forebay, json},
    folder_of, plugin_file, registry, root, within_deadline,
};
use serde_json::Value;

/// The plugins that the command finds, with their files.
#[track_caller]
fn found(variables: &[(&str, &str)]) -> Vec<(String, String)> {
    let list = json(&forebay(variables, &["plugins", "list", "--json"]));
    let text = |plugin: &Value, key: &str| plugin[key].as_str().unwrap().to_owned();
    list["plugins"]
        .as_array()
        .unwrap()
        .iter()
        .map(|plugin| (text(plugin, "name"), text(plugin, "file")))
        .collect()
}

fn names(found: &[(String, String)]) -> Vec<&str> {
    found.iter().map(|(name, _)| name.as_str()).collect()
}

#[test]
fn plugins_are_found_in_the_folders_that_the_environment_names() {
    let found_here = found(&[]);
    assert_eq!(names(&found_here), *PLUGINS);
    assert!(found_here.iter().all(|(name, file)| Path::new(file) == plugin_file(name)));

    let folder = folder_of(&["forebay-json", "forebay-pipes"]);
    let path = folder.path().to_str().unwrap();
    for variables in [
        &[("FOREBAY_PLUGIN_PATH", path)][..],
        &[("FOREBAY_PLUGIN_PATH", ""), ("FOREBAY_PLUGIN_SYSTEM_PATH", path)],
    ] {
        let moved = found(variables);
        assert_eq!(names(&moved), ["forebay-json", "forebay-pipes"]);
        assert!(moved.iter().all(|(_, file)| Path::new(file).starts_with(path)), "{moved:?}");
    }
}

#[test]
fn plugins_are_found_in_the_users_folder() {
    let target = Manifest::read(&plugin_file("forebay-json")).unwrap().target;
    let data = tempfile::tempdir().unwrap();
    let folder = data.path().join(format!("forebay/plugins/1-{target}"));
    fs::create_dir_all(&folder).unwrap();
    forebay_tests::copy(&plugin_file("forebay-json"), &folder);
    let mut list = Command::new(command());
    list.args(["plugins", "list", "--json"]).env_clear().env("XDG_DATA_HOME", data.path());
    let plugins = json(&list.output().unwrap())["plugins"].clone();
    assert_eq!(plugins[0]["name"], "forebay-json", "{plugins}");
    assert!(Path::new(plugins[0]["file"].as_str().unwrap()).starts_with(&folder), "{plugins}");
}

#[test]
fn plugins_can_be_switched_off_and_left_out() {
    assert_eq!(found(&[("FOREBAY_NO_PLUGINS", "1")]), []);
    let fewer = found(&[("FOREBAY_PLUGIN_SKIP", "forebay-rogue, forebay-image")]);
    let left_out = ["forebay-image", "forebay-rogue"];
    let rest: Vec<_> = PLUGINS.iter().copied().filter(|name| !left_out.contains(name)).collect();
    assert_eq!(names(&fewer), rest);
    let folder = tempfile::tempdir().unwrap();
    let picture = folder.path().join("x.json");
    fs::write(&picture, "{}").unwrap();
    let why = |rank: &str| {
        let rank = [("FOREBAY_PLUGIN_RANK", rank)];
        String::from_utf8(forebay(&rank, &["plugins", "why", picture.to_str().unwrap(), "--json"]).stdout)
            .unwrap()
    };
    assert!(
        why("json:7").contains("\"priority\":7") || why("json:7").contains("\"priority\": 7"),
        "{}",
        why("json:7")
    );
    assert!(why("json:NONE").contains("left out by FOREBAY_PLUGIN_RANK"), "{}", why("json:NONE"));
    let bad = forebay(&[("FOREBAY_PLUGIN_RANK", "json")], &["plugins", "list"]);
    assert!(!bad.status.success());
    assert!(String::from_utf8_lossy(&bad.stderr).contains("FOREBAY_PLUGIN_RANK"), "{bad:?}");
}

#[test]
fn photos_have_one_digest_however_they_are_run_and_wherever_the_plugins_are() {
    let moved = folder_of(&PLUGINS);
    let moved = [("FOREBAY_PLUGIN_PATH", moved.path().to_str().unwrap())];
    let mut digests = Vec::new();
    for (variables, executor) in [
        (&[][..], "inline"),
        (&[], "threads:1"),
        (&[], "threads:2"),
        (&[], "threads:4"),
        (&[], "threads:2"),
        (&moved, "threads:2"),
    ] {
        let args = ["run", "examples/photos.toml", "--digest", "--json", "--executor", executor];
        let output = forebay(variables, &args);
        assert!(output.status.success(), "{output:?}");
        let report = json(&output);
        assert!(report["batches"].as_u64().unwrap() >= 2, "{report}");
        let plugins = report["plugins"].to_string();
        assert!(variables.is_empty() || plugins.contains(variables[0].1), "{plugins}");
        for name in ["libforebay_files.so", "libforebay_tar.so", "libforebay_image.so", "libforebay_pipes.so"]
        {
            assert!(plugins.contains(name), "{name} is not in {plugins}");
        }
        digests.push(report["digest"].as_str().unwrap().to_owned());
    }
    digests.dedup();
    assert_eq!(digests.len(), 1, "{digests:?}");
}

/// A graph that takes a while: the command is killed in its middle.
const LONG: &str =
    "range 30000 | shuffle 1000 | rogue_map spin=60000 at=-1 | rogue_lag hold=7 state=true | batch 10";

/// The digest of the batches of an epoch after the first ones, and how many there are.
fn rest(seed: u64, epoch: u64, first: usize) -> (String, u64) {
    let graph = forebay_loader::Graph::from_line(LONG).unwrap();
    let mut loader = forebay_loader::Loader::builder(graph).seed(seed).build(&registry()).unwrap();
    let (mut digest, mut count) = (forebay_loader::Digest::default(), 0);
    for batch in loader.epoch(epoch).skip(first) {
        digest.update(&batch.unwrap());
        count += 1;
    }
    (digest.finish(), count)
}

/// Starts the command and kills it when its snapshot says that it has delivered more than so many batches; gives how
/// many the snapshot says then.
fn killed(args: &[&str], snapshot: &Path, more_than: u64) -> u64 {
    let mut command = Command::new(command());
    command.args(args).current_dir(root()).env_clear().env("FOREBAY_PLUGIN_PATH", all());
    let mut child = command.spawn().unwrap();
    let delivered = || {
        let text = fs::read_to_string(snapshot).unwrap_or_default();
        // What is there is whole at any time.
        (!text.is_empty()).then(|| Snapshot::from_json(&text).unwrap().delivered)
    };
    while delivered().is_none_or(|delivered| delivered <= more_than) {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was killed");
        std::thread::yield_now();
    }
    child.kill().unwrap();
    assert!(!child.wait().unwrap().success());
    delivered().unwrap()
}

/// The killed runs delivered what their snapshots say, and perhaps more that nobody kept; what the last one delivers is
/// exactly what comes after the last snapshot.
#[test]
fn a_killed_run_goes_on_where_its_snapshot_was_taken() {
    command(); // To build it takes as long as it takes.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.snapshot");
    let path = file.to_str().unwrap();
    let audits = tempfile::tempdir().unwrap();
    let audit = audits.path().join("audit");
    let audit = audit.to_str().unwrap();
    let common = ["run", LONG, "--audit", audit, "--snapshot", path, "--every", "10", "--quiet"];
    let first = within_deadline({
        let (args, file) =
            ([&common[..], &["--seed", "3", "--executor", "threads:2"]].concat().join("\n"), file.clone());
        move || killed(&args.split('\n').collect::<Vec<_>>(), &file, 100)
    });
    let second = within_deadline({
        let (args, file) =
            ([&common[..], &["--resume", path, "--executor", "inline"]].concat().join("\n"), file.clone());
        move || killed(&args.split('\n').collect::<Vec<_>>(), &file, first + 100)
    });
    assert!(second > first && second < 3000, "{first}, {second}");
    let left = fs::read_dir(folder.path()).unwrap().count();
    assert!(left <= 3, "at most one half-written file for each that was killed");
    let report = json(&forebay(&[], &[&common[..8], &["--resume", path, "--digest", "--json"]].concat()));
    let (digest, count) = rest(3, 0, second as usize);
    assert_eq!((report["digest"].as_str(), report["batches"].as_u64()), (Some(&*digest), Some(count)));
    assert_eq!(count + second, 3000);
    let told = json(&forebay(&[], &["audit", audit, "--json"]));
    let epoch = &told["epochs"][0];
    assert_eq!((&epoch["exactly_once"], &epoch["delivered"]), (&true.into(), &30_000.into()), "{told}");
    // It has ended; so the next epoch begins, if a second one is asked for.
    let none = json(&forebay(&[], &["run", LONG, "--resume", path, "--json"]));
    assert_eq!(none["batches"], 0);
    let next = json(&forebay(&[], &["run", LONG, "--resume", path, "--epochs", "2", "--digest", "--json"]));
    assert_eq!(next["digest"].as_str(), Some(&*rest(3, 1, 0).0));
}

#[test]
fn an_interrupted_run_leaves_a_snapshot_and_a_limit_does() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (limited, pressed) = (path("limited"), path("pressed"));
    let graph = "range 100 | shuffle 10 | batch 4";
    let run =
        forebay(&[], &["run", graph, "--snapshot", &limited, "--limit", "6", "--epochs", "2", "--json"]);
    assert_eq!(json(&run)["samples"], 24);
    let shown = json(&forebay(&[], &["snapshot", "show", &limited, "--json"]));
    assert_eq!((&shown["epoch"], &shown["delivered"]), (&0.into(), &6.into()));
    let rest = json(&forebay(&[], &["run", graph, "--resume", &limited, "--epochs", "2", "--json"]));
    assert_eq!(rest["samples"], 176);

    let mut command = Command::new(command());
    command.args(["run", "rogue_source | rogue_map spin=9000 at=-1", "--snapshot", &pressed, "--every", "5"]);
    let mut child = command.env_clear().env("FOREBAY_PLUGIN_PATH", all()).spawn().unwrap();
    while !Path::new(&pressed).exists() {
        assert!(child.try_wait().unwrap().is_none());
        std::thread::yield_now();
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(within_deadline(move || child.wait().unwrap()).code(), Some(130));
    let shown = json(&forebay(&[], &["snapshot", "show", &pressed, "--json"]));
    assert!(shown["delivered"].as_u64().unwrap() >= 5 && shown["ended"] == false, "{shown}");
    let differ = forebay(&[], &["snapshot", "diff", &limited, &pressed]);
    assert_eq!(differ.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&differ.stdout).contains("delivered: 6 / "), "{differ:?}");
    assert_eq!(forebay(&[], &["snapshot", "diff", &limited, &limited]).status.code(), Some(0));
}

#[test]
fn snapshots_that_do_not_fit_are_refused_and_say_which_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (good, bytes, bad, none) = (path("good"), path("bytes"), path("bad"), path("none"));
    let graph = "range 100 | batch 4";
    forebay(&[], &["run", graph, "--snapshot", &good, "--limit", "5"]);
    let text = fs::read_to_string(&good).unwrap();
    assert!(text.ends_with("}\n") && text.len() < 1000, "{text}");
    fs::write(&bytes, Snapshot::from_json(&text).unwrap().to_bytes()).unwrap();
    let rest = json(&forebay(&[], &["run", graph, "--resume", &bytes, "--json"]));
    assert_eq!(rest["batches"], 20);
    fs::write(&bad, &text[..text.len() / 2]).unwrap();
    for (args, says) in [
        (vec!["run", graph, "--resume", &*bad], vec![&*bad, "cannot be read"]),
        (vec!["run", graph, "--resume", &*none], vec![&*none, "No such file"]),
        (vec!["snapshot", "show", &*none], vec![&*none, "No such file"]),
        (vec!["run", "range 90 | batch 4", "--resume", &*good], vec![&*good, "node range"]),
        (vec!["run", graph, "--resume", &*good, "--seed", "5"], vec![&*good, "seed: was 0, is 5"]),
        (vec!["run", graph, "--resume", &*good, "--allow", "nobody"], vec!["`nobody`"]),
        (vec!["run", graph, "--allow", "range"], vec!["--resume"]),
    ] {
        let output = forebay(&[], &args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(says.iter().all(|part| told.contains(part)), "{args:?}: {told}");
    }
    for option in ["--snapshot", "--quarantine"] {
        // Told before anything runs, which here would take for ever.
        let output = forebay(&[], &["run", "rogue_source", option, "/nowhere/file"]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("file: /nowhere/file"), "{output:?}");
    }
    let allowed = ["run", "range 90 | batch 4", "--resume", &good, "--allow", "range"];
    assert!(forebay(&[], &allowed).status.success());
    assert_eq!(fs::read_to_string(&good).unwrap(), text, "a snapshot that is only read stays as it is");
}

#[test]
fn lost_samples_are_counted_and_listed() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (list, snapshot) = (path("lost.jsonl"), path("snapshot"));
    let graph = "range 100 | rogue_map @m at=-1 refuse=9 on_error=quarantine";
    let base = ["run", graph, "--quarantine", &list, "--snapshot", &snapshot, "--executor", "inline"];
    let begin = forebay(&[], &[&base[..], &["--limit", "40"]].concat());
    let told = String::from_utf8_lossy(&begin.stdout).into_owned();
    assert!(told.contains(" samples: ") && told.contains(" at m; ") && told.contains(&list), "{told}");
    let rest = forebay(&[], &[&base[..], &["--resume", &snapshot, "--json"]].concat());
    let rest = json(&rest);
    assert_eq!(rest["samples"], 48);
    assert!(rest["nodes"][1]["lost"].as_u64().unwrap() >= 6, "{rest}");
    let lines = fs::read_to_string(&list).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let uids: Vec<_> = lines.iter().map(|line| line["uid"].as_u64().unwrap()).collect();
    assert_eq!(uids, (0..100).step_by(9).collect::<Vec<_>>(), "each once, though both runs met some of them");
    assert!(
        lines.iter().all(|line| line["node"] == "m" && line["error"].as_str().unwrap().contains("refuses"))
    );
    assert_eq!(lines[1]["key"], "range#9");
}

#[test]
fn every_fault_ends_the_command_with_an_error_that_says_where() {
    for (graph, says) in [
        ("files /nowhere.tar | untar", &["/nowhere.tar", "files", "libforebay_files.so"][..]),
        ("range 9 | nothing", &["unknown pipe `nothing`", "looked in"]),
        ("range 9 | cycle", &["unknown pipe `cycle`; here that is `repeat`", "looked in"]),
        ("range 9 | batch sise=3", &["sise", "size"]),
        ("rogue_source fault=panic_in_new", &["rogue in new", "rogue_source", "libforebay_rogue.so"]),
        ("rogue_source fault=panic at=3", &["rogue in next", "rogue_source", "libforebay_rogue.so"]),
        ("range 9 | rogue_map fault=panic at=3", &["rogue in map", "rogue_map", "libforebay_rogue.so"]),
        ("rogue_source payload=panic count=3 | decode", &["rogue in decode", "decode", "rogue#0"]),
        (
            "rogue_source fault=panic_in_drop count=3",
            &["rogue in drop", "rogue_source", "libforebay_rogue.so"],
        ),
        ("range 9 | rogue_stream fault=idle", &["takes nothing, gives nothing", "rogue_stream"]),
    ] {
        for executor in ["inline", "threads:2"] {
            let output = forebay(&[], &["run", graph, "--executor", executor]);
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.code().is_some_and(|code| code != 0), "{graph} on {executor}: {output:?}");
            for part in says {
                assert!(told.contains(part), "{part:?} is not in: {told}");
            }
            assert!(told.lines().count() <= 14, "{told}");
        }
    }
}

#[test]
fn a_file_that_is_no_plugin_is_told_and_ends_the_list_with_a_failure() {
    let folder = folder_of(&["forebay-json"]);
    let file = folder.path().join("libforebay_json.so");
    let mut bytes = fs::read(&file).unwrap();
    let at = bytes.windows(8).position(|window| window == b"FOREBAY\0").unwrap();
    bytes[at + 16] = 9;
    fs::write(&file, bytes).unwrap();
    let output = forebay(&[("FOREBAY_PLUGIN_PATH", folder.path().to_str().unwrap())], &["plugins", "list"]);
    assert!(!output.status.success());
    let told = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(told.contains("libforebay_json.so") && told.contains("ABI 9."), "{told}");
}

#[test]
fn an_audit_is_told_at_the_end_and_over_many_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (file, snapshot) = (path("audit"), path("snapshot"));
    let text = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
    let base = ["run", "examples/photos.toml", "--audit", &file, "--snapshot", &snapshot];
    let begin = forebay(&[], &[&base[..], &["--limit", "2", "--executor", "inline"]].concat());
    assert!(begin.status.success() && text(&begin).contains("epoch 0: not finished"), "{begin:?}");
    assert_eq!(forebay(&[], &["audit", &file]).status.code(), Some(1), "not finished is not exactly once");
    let rest = forebay(&[], &[&base[..], &["--resume", &snapshot, "--executor", "threads:2"]].concat());
    assert!(rest.status.success() && text(&rest).contains("epoch 0: exactly once: "), "{rest:?}");
    let told = forebay(&[], &["audit", &file]);
    assert!(told.status.success() && text(&told).contains("exactly once"), "{told:?}");
    assert!(text(&rest).ends_with(&text(&told)), "{rest:?}");

    let graph = "range 100 | shuffle 9 | rogue_keep @bad fault=twice at=7 | batch 8";
    let bad = forebay(&[], &["run", graph, "--audit", &path("bad"), "--json"]);
    assert_eq!(bad.status.code(), Some(1), "{bad:?}");
    let offence = &json(&bad)["audit"]["epochs"][0]["offences"][0];
    assert_eq!((&offence["what"], &offence["node"]), (&"twice".into(), &"bad".into()), "{offence}");
    assert!(String::from_utf8_lossy(&bad.stderr).contains("not every sample of epoch 0"), "{bad:?}");

    let graph = "range 100 | shuffle 9 | batch 8 drop_last=true";
    let ranks: Vec<String> = (0..3).map(|rank| path(&rank.to_string())).collect();
    for (rank, file) in ranks.iter().enumerate() {
        let said = if rank == 1 { "env".to_owned() } else { format!("{rank}/3") };
        let launched = [("RANK", "1"), ("WORLD_SIZE", "3")];
        let run = forebay(&launched, &["run", graph, "--rank", &said, "--audit", file]);
        assert!(run.status.success() && text(&run).contains("with the files of all ranks"), "{run:?}");
    }
    let lost = forebay(&[("RANK", "1")], &["run", graph, "--rank", "env"]);
    assert_eq!(lost.status.code(), Some(2), "{lost:?}");
    assert!(String::from_utf8_lossy(&lost.stderr).contains("WORLD_SIZE is not set"), "{lost:?}");
    let all = forebay(&[], &["audit", &ranks[2], &ranks[0], &ranks[1], "--json"]);
    let told = json(&all);
    assert!(all.status.success(), "{all:?}");
    assert_eq!((&told["exactly_once"], &told["epochs"][0]["given"]), (&true.into(), &100.into()), "{told}");
    // 34, 33 and 33 samples in batches of 8.
    assert_eq!(
        told["epochs"][0]["left_out"],
        serde_json::json!([{"node": "batch", "samples": 4, "failed": false}])
    );
    let two = forebay(&[], &["audit", &ranks[0], &ranks[1]]);
    assert_eq!(two.status.code(), Some(1));
    assert!(text(&two).contains("rank 2 of 3: its file is missing"), "{two:?}");
    let none = forebay(&[], &["audit", &path("none")]);
    assert_eq!(none.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&none.stderr).contains("file: "), "{none:?}");
}

#[test]
fn a_recorded_order_is_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let order = folder.path().join("order");
    let graph = "range 600 | rogue_map at=-1 spin=200000 unordered=true | batch 8";
    let digest = |executor, option| {
        let file = order.to_str().unwrap();
        let args = ["run", graph, "--executor", executor, option, file, "--digest", "--json"];
        json(&forebay(&[], &args))["digest"].as_str().unwrap().to_owned()
    };
    let recorded = digest("threads:4", "--record");
    for executor in ["inline", "threads:1", "processes:2"] {
        assert_eq!(digest(executor, "--replay"), recorded, "{executor}");
    }
    let explained = String::from_utf8(forebay(&[], &["explain", graph]).stdout).unwrap();
    assert!(explained.contains("in parallel, unordered"), "{explained}");
    let refused = forebay(&[], &["run", "range 5", "--replay", order.to_str().unwrap()]);
    let error = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && error.contains("no map of the graph is unordered"), "{error}");
}

#[test]
fn a_word_that_is_neither_file_nor_pipe_is_told_so() {
    for command in ["run", "dump", "head"] {
        let refused = forebay(&[], &[command, "nosuch"]);
        let error = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(2), "{error}");
        assert!(error.contains("nothing is called `nosuch`: no file, no folder and no pipe"), "{error}");
        assert!(error.contains("folder: ") && error.contains("plugins: "), "{error}");
    }
}
