//! Secrets of URLs, which are in nothing that is written or said: they are planted, and everything is searched for them.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

#[path = "../../plugins/remote/tests/store/server.rs"]
#[expect(dead_code, reason = "the store's own tests use the rest")]
mod server;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Output,
};

use forebay_loader::{Executor, Graph, Loader, Snapshot};
use forebay_tests::{Setting, build, builder, command::forebay, line, registry, root, within_deadline};
use server::{Manner, Server};

/// What no file and no line may hold. They end as names do, so that they pass for a part of a path.
const SECRETS: [&str; 3] = ["planted-user", "planted-word", "planted-query.tar"];

/// A server, and where on it files are for who has the secrets.
fn planted() -> (Server, impl Fn(&str) -> String) {
    let server = Server::new(Manner::default());
    for shard in 0..3 {
        let bytes = fs::read(root().join(format!("examples/photos/photos-00000{shard}.tar"))).unwrap();
        server.put(&format!("data/{shard}.tar"), bytes);
    }
    server.put("data/rows.jsonl", "{\"n\": 1}\n{\"n\": }\n".repeat(500).into_bytes());
    let [user, word, query] = SECRETS;
    let address = server.address;
    (server, move |name: &str| format!("http://{user}:{word}@{address}/data/{name}?sig={query}"))
}

#[track_caller]
fn check(what: &str, bytes: &[u8]) {
    for secret in SECRETS {
        let found = bytes.windows(secret.len()).position(|part| part == secret.as_bytes());
        let around = found.map(|at| String::from_utf8_lossy(&bytes[at.saturating_sub(80)..]).into_owned());
        assert!(found.is_none(), "{what} holds {secret}: {:.300}", around.unwrap_or_default());
    }
}

#[track_caller]
fn check_output(what: &str, output: &Output) {
    check(what, &output.stdout);
    check(what, &output.stderr);
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn no_run_leaves_a_secret_in_what_it_writes_or_says() {
    within_deadline(|| {
        let ((_server, url), folder) = (planted(), tempfile::tempdir().unwrap());
        let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let cache = at("blocks");
        let variables = [("FOREBAY_CACHE", cache.as_str()), ("FOREBAY_REMOTE_ATTEMPTS", "1")];
        let run = |args: &[&str]| forebay(&variables, args);
        let kept = format!("cache folder='{}'", at("samples"));
        for (number, (graph, works)) in [
            (format!("files ['{}', '{}'] | untar | {kept} | shuffle 9", url("0.tar"), url("1.tar")), true),
            (format!("files '{}' | lines | json_lines on_error=quarantine", url("rows.jsonl")), true),
            (format!("files '{}' | lines | json_lines", url("rows.jsonl")), false),
            (format!("files '{}' open=none | read on_error=quarantine", url("none.tar")), true),
            (format!("files '{}' | untar", url("none.tar")), false),
            (format!("files '{}' nonsense=1 | untar", url("0.tar")), false),
            (format!("files '{}' | untar | decode ( | untar", url("0.tar")), false),
            (
                format!(
                    "files '{}' | map 'x = nothing()' | write_jsonl '{}'",
                    url("0.tar"),
                    url("out.jsonl")
                ),
                false,
            ),
        ]
        .into_iter()
        .enumerate()
        {
            let file = |kind: &str| at(&format!("{number}.{kind}"));
            for executor in ["inline", "threads:2", "processes:1"] {
                let (snapshot, list, audit) = (file("snapshot"), file("list"), file(executor));
                let args =
                    ["run", "--executor", executor, "--snapshot", &snapshot, "--every", "5", "--quarantine"];
                let ran = run(&[&args[..], &[&list, "--audit", &audit, "--json", &graph]].concat());
                check_output(&graph, &ran);
                assert_eq!(ran.status.success(), works, "{graph}: {ran:?}");
            }
            for command in ["head", "explain"] {
                check_output(&graph, &run(&[command, &graph]));
                check_output(&graph, &run(&[command, "--json", &graph]));
            }
        }
        // By path, and a resume that is refused.
        for name in ["0.tar", "{0..2}.tar", "rows.jsonl", "none.tar"] {
            for command in ["run", "head", "explain"] {
                check_output(name, &run(&[command, &url(name)]));
            }
        }
        let other = format!("files '{}' | untar | {kept} | shuffle 9", url("2.tar"));
        let refused = run(&["run", "--resume", &at("0.snapshot"), &other]);
        assert!(!refused.status.success(), "{refused:?}");
        check_output("a resume", &refused);
        check_output("a snapshot that is shown", &run(&["snapshot", "show", &at("0.snapshot")]));
        let written = files(folder.path());
        assert!(written.len() > 20, "{written:?}");
        for file in written {
            check(&file.display().to_string(), &fs::read(&file).unwrap());
            check("a file's name", file.as_os_str().as_encoded_bytes());
        }
    });
}

#[test]
fn neither_do_the_library_s_snapshots_keys_and_errors() {
    within_deadline(|| {
        let ((_server, url), registry) = (planted(), registry());
        let graph = line(&format!("files '{}' | untar | decode | shuffle 5", url("0.tar")));
        let mut loader = build(&graph, &registry, Setting::INLINE).unwrap();
        let mut epoch = loader.epoch(0);
        let sample = epoch.next().unwrap().unwrap();
        check("a key", sample.key().to_string().as_bytes());
        let snapshot: Snapshot = epoch.snapshot().unwrap();
        check("a snapshot", snapshot.to_json().as_bytes());
        check("a snapshot", &snapshot.to_bytes());
        let wrong = Graph::from_line(&format!("files '{}' |", url("0.tar"))).unwrap_err();
        check("an error of a graph", format!("{wrong} {wrong:?}").as_bytes());
        let setting = Setting { executor: Executor::Threads(1), ..Setting::INLINE };
        let missing = line(&format!("files '{}' open=read", url("none.tar")));
        let mut loader: Loader = builder(&missing, setting).build(&registry).unwrap();
        let error = loader.epoch(0).next().unwrap().unwrap_err();
        assert!(error.to_string().contains("none.tar?…"), "{error}");
        check("an error", format!("{error} {error:?}").as_bytes());
        // Where nothing is secret, nothing changes.
        assert_eq!(forebay_loader::without_secrets("s3://bucket/a?b.tar"), "s3://bucket/a?b.tar");
    });
}
