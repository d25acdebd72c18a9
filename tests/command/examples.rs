//! The worked examples: each is built outside of the workspace, as its author would, passes its own tests, keeps what plugins promise
//! as a library too, and does what its README says.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use forebay_tests::{
    Cargo,
    command::{all, forebay, json},
    lock_file, root, within_deadline, write,
};
use serde_json::Value;

fn folder(example: &str) -> PathBuf {
    root().join("examples").join(example)
}

/// The library of an example, whose own tests pass.
fn built(example: &str) -> PathBuf {
    let folder = folder(example);
    // The versions that are here already; the file is left out of the repository.
    write(&folder.join("Cargo.lock"), &fs::read(lock_file()).unwrap());
    let (said, passed) = Cargo::apart(&folder).test();
    assert!(passed, "{said}");
    Cargo::apart(&folder).build(&format!("lib{example}.so"))
}

/// Has the kit check the library, also in worker processes.
fn keeps_its_promises(library: &Path, args: &[&str]) {
    let path = std::env::var("PATH").unwrap();
    let output = forebay(
        &[("PATH", &path)],
        &[&["plugins", "test", "--json", library.to_str().unwrap()], args].concat(),
    );
    assert!(output.status.success(), "{}", json(&output));
}

/// What `forebay dump` prints with the library and ours, line by line.
fn dump(library: &Path, graph: &str) -> Vec<Value> {
    let paths = std::env::join_paths(std::env::split_paths(&all()).chain([library.to_owned()])).unwrap();
    let path = std::env::var("PATH").unwrap();
    let variables = [("FOREBAY_PLUGIN_PATH", paths.to_str().unwrap()), ("PATH", &path)];
    let output = forebay(&variables, &["dump", "--fields", graph]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn pcap_is_a_source_and_opens_any_path_with_captures() {
    let library = built("pcap_plugin");
    let data = folder("pcap_plugin").join("tests/data");
    let file = data.join("ping.pcap").display().to_string();
    let by_source = dump(&library, &format!("pcap '{file}'"));
    assert_eq!(by_source, dump(&library, &file));
    let told: Vec<_> = by_source.iter().map(|packet| (&packet["time"], &packet["length"])).collect();
    let time = 1_700_000_000_123_456_000_i64;
    assert_eq!(
        told,
        [
            (&Value::from(time), &Value::from(98)),
            (&Value::from(time + 1_000_000), &Value::from(98)),
            (&Value::from(time + 2_000_000), &Value::from(1514)),
        ]
    );
    // A folder of them, packed or not: the kit's own graph, on workers too.
    keeps_its_promises(
        &library,
        &[
            "--graph",
            &format!("pcap '{file}'"),
            "--graph",
            &format!("files '{}/*.pcap' | packets", data.display()),
        ],
    );
}

#[test]
fn dedup_leaves_out_what_is_nearly_the_same() {
    let library = built("dedup_plugin");
    let lines = folder("dedup_plugin").join("tests/data/headlines.txt");
    let graph = format!("files '{}' | lines | text_lines | dedup text distance=12", lines.display());
    let left = dump(&library, &graph);
    let begins =
        |text: &str| left.iter().filter(|line| line["text"].as_str().unwrap().starts_with(text)).count();
    assert_eq!((left.len(), fs::read_to_string(&lines).unwrap().lines().count()), (13, 20));
    for once in ["Heron seen", "Council votes", "New bridge", "Local bakery", "Library", "Rare orchid"] {
        assert_eq!(begins(once), 1, "{once}");
    }
    keeps_its_promises(&library, &["--graph", &graph]);
}

#[test]
fn git_reads_files_at_a_revision() {
    let library = built("git_plugin");
    let repository = tempfile::tempdir().unwrap();
    let git = |args: &[&str]| {
        let who = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"];
        let mut command = Command::new("git");
        let output = command.arg("-C").arg(repository.path()).args(who).args(args).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    git(&["init", "-q"]);
    for (tag, text) in [("one", "{\"bird\": \"heron\"}"), ("two", "{\"bird\": \"grebe\"}")] {
        fs::create_dir_all(repository.path().join("labels")).unwrap();
        fs::write(repository.path().join("labels/0.json"), text).unwrap();
        git(&["add", "."]);
        git(&["commit", "-q", "-m", tag]);
        git(&["tag", tag]);
    }
    for (tag, bird) in [("one", "heron"), ("two", "grebe"), ("two~1", "heron")] {
        let url = format!("git://{}@{tag}/labels", repository.path().display());
        let found = dump(&library, &format!("files '{url}/*.json' | read | group | decode"));
        assert_eq!((found.len(), &found[0]["json"]["bird"]), (1, &Value::from(bird)), "{found:?}");
        keeps_its_promises(&library, &["--data", &format!("{url}/0.json")]);
    }
}

#[test]
fn the_examples_want_no_more_than_they_say() {
    for (example, dependencies) in [
        ("hello_plugin", &["forebay-core"][..]),
        ("pcap_plugin", &["forebay-core"]),
        ("dedup_plugin", &["forebay-core", "xxhash-rust"]),
        ("git_plugin", &["forebay-core"]),
    ] {
        let manifest = fs::read_to_string(folder(example).join("Cargo.toml")).unwrap();
        let manifest: toml::Table = manifest.parse().unwrap();
        let found: Vec<_> = manifest["dependencies"].as_table().unwrap().keys().collect();
        assert_eq!(found, dependencies, "{example}");
    }
}

/// What a program of `examples/rust` prints, run at the root of the repository with our plugins.
fn printed(program: &str) -> String {
    let file = Cargo::workspace(&root()).arg("--examples").build(&format!("examples/{program}"));
    let mut command = Command::new(file);
    command.current_dir(root()).env_clear().env("HOME", "/nowhere");
    command.env("FOREBAY_PLUGIN_SYSTEM_PATH", "").env("FOREBAY_PLUGIN_PATH", all());
    let output = within_deadline(move || command.output().unwrap());
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn brightness_reads_every_photograph_in_workers_that_are_the_program_itself() {
    let printed = printed("brightness");
    let counts = printed.lines().map(|line| line.split(' ').nth(2).unwrap().parse::<u32>().unwrap());
    assert_eq!((counts.clone().count(), counts.sum::<u32>()), (5, 198), "{printed}");
}

#[test]
fn resume_gives_each_line_once_over_two_loaders() {
    let printed = printed("resume");
    let mut found: Vec<_> = printed.lines().map(|line| line.split_once("] ").unwrap()).collect();
    for (letters, text) in &found {
        let words: Vec<_> = text.split_whitespace().map(|word| word.chars().count().to_string()).collect();
        assert_eq!(*letters, format!("[{}", words.join(", ")));
    }
    found.sort_by_key(|(_, text)| *text);
    let file = folder("dedup_plugin").join("tests/data/headlines.txt");
    let text = fs::read_to_string(file).unwrap();
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    assert_eq!(found.into_iter().map(|(_, text)| text).collect::<Vec<_>>(), lines);
}

#[test]
fn other_programs_print_what_they_say() {
    let programs = [
        ("which_decoder", &["255 jpeg of forebay-image", "420.jpg is decoded by jpeg of forebay-image"][..]),
        ("own_source", &["[1, 1, 2, 3, 5]", "[89, 144, 233, 377, 610]", "[987]"]),
        ("closures", &["[0, 0, 2, 2, 4, 4, 6, 6, 8, 8] ["]),
        ("tasks", &["epoch 0: 4999950000", "epoch 1: 4999950000"]),
        ("broken_files", &["2 files were read", "b.json is damaged: ", "the epoch failed: true"]),
        (
            "exactly_once",
            &["epoch 0: 1000 samples, exactly once: true", "of one rank alone: exactly once: false"],
        ),
    ];
    for (program, lines) in programs {
        let printed = printed(program);
        for line in lines {
            assert!(printed.lines().any(|found| found.starts_with(line)), "{program}: {printed}");
        }
    }
    // Inline and on threads.
    let alike = printed("closures");
    let lines: Vec<_> = alike.lines().collect();
    assert!(matches!(lines[..], [inline, threads] if inline == threads), "{alike}");
}
