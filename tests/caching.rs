//! What `cache` keeps in a folder: later runs read nothing else, a killed one leaves nothing, and what the graph or the seed changes is another's.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use forebay_loader::{Executor, Graph, Registry};
use forebay_tests::{
    Cargo, PLUGINS, Setting, build, digest, line, plugin_file, read, registry, root, within_deadline,
};

const PROCESSES: Setting = Setting { executor: Executor::Processes(2), ..Setting::INLINE };

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn pieces(folder: &Path) -> usize {
    files(folder).iter().filter(|path| path.extension().is_some_and(|ending| ending == "piece")).count()
}

fn graph(data: &Path, cache: &Path, more: &str) -> Graph {
    let (data, cache) = (data.display(), cache.display());
    line(&format!(
        "files '{data}' open=none | lines | text_lines | map 'text=text + \"!\"' | cache folder='{cache}'{more} | batch 16"
    ))
}

fn all(graph: &Graph, registry: &Registry, setting: Setting) -> Vec<String> {
    let (samples, failed) = read(build(graph, registry, setting).unwrap().epoch(0));
    assert!(failed.is_none(), "{graph}: {failed:?}");
    samples
}

#[test]
fn a_later_run_on_any_executor_reads_what_an_earlier_one_kept() {
    let registry = registry();
    within_deadline(move || {
        let folder = tempfile::tempdir().unwrap();
        let (data, cache) = (folder.path().join("data.txt"), folder.path().join("cache"));
        let text: String = (0..5000).map(|number| format!("line {number}\n")).collect();
        for (write, read) in [
            (Setting::INLINE, Setting::threads(3)),
            (Setting::threads(2), PROCESSES),
            (PROCESSES, Setting::INLINE),
        ] {
            fs::write(&data, &text).unwrap();
            let _ = fs::remove_dir_all(&cache);
            let graph = graph(&data, &cache, "");
            let first = all(&graph, &registry, write);
            assert!(first.len() > 300 && pieces(&cache) > 0);
            // Nothing of the data is looked at any more.
            fs::remove_file(&data).unwrap();
            assert_eq!(all(&graph, &registry, read), first, "{write:?} then {read:?}");
        }
    });
}

#[test]
fn another_graph_seed_or_name_is_kept_by_itself() {
    let registry = registry();
    let folder = tempfile::tempdir().unwrap();
    let (data, cache) = (folder.path().join("data.txt"), folder.path().join("cache"));
    fs::write(&data, "one\ntwo\n").unwrap();
    let with = |text: &str| {
        line(&text.replace("DATA", data.to_str().unwrap()).replace("CACHE", cache.to_str().unwrap()))
    };
    let graphs = [
        with("files DATA open=none | lines | text_lines | cache CACHE"),
        with("files DATA open=none | lines | text_lines field=line | cache CACHE"),
        with("files DATA open=none | lines | text_lines | cache CACHE identity=mine"),
    ];
    for (number, graph) in graphs.iter().enumerate() {
        all(graph, &registry, Setting::INLINE);
        assert_eq!(pieces(&cache), number + 1, "{graph}");
    }
    all(&graphs[0], &registry, Setting { seed: 77, ..Setting::INLINE });
    assert_eq!(pieces(&cache), 4);
    // What stands behind it changes nothing of what is kept.
    all(
        &with("files DATA open=none | lines | text_lines | cache CACHE | shuffle 9 | batch 2"),
        &registry,
        Setting::INLINE,
    );
    assert_eq!(pieces(&cache), 4);
}

#[test]
fn a_killed_run_leaves_nothing_that_stays() {
    let registry = registry();
    let built = Cargo::workspace(&root()).arg("--bin").arg("forebay").build("forebay");
    within_deadline(move || {
        let cache = tempfile::tempdir().unwrap();
        let text =
            format!("range 200000 | map 'value=value * 2' | cache '{}' | batch 100", cache.path().display());
        let mut command = Command::new(built);
        command.args(["run", &format!("{text} | repeat")]).env_clear();
        command.env("FOREBAY_PLUGIN_PATH", env::join_paths(PLUGINS.map(plugin_file)).unwrap());
        let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
        while pieces(cache.path()) < 3 {
            assert!(child.try_wait().unwrap().is_none(), "it ended before it was killed");
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let left = files(cache.path());
        let graph = line(&text);
        let samples = all(&graph, &registry, Setting::threads(2).seed(0));
        assert_eq!(samples.len(), 2000);
        let plain = line("range 200000 | map 'value=value * 2' | batch 100");
        assert_eq!(samples, all(&plain, &registry, Setting::INLINE));
        let now = files(cache.path());
        if !left.iter().any(|path| path.ends_with("index")) {
            assert!(left.iter().all(|path| !now.contains(path)), "{left:?} and then {now:?}");
        }
        assert_eq!(
            now.iter().filter(|path| path.extension().is_some_and(|ending| ending == "lock")).count(),
            1
        );
    });
}

#[test]
fn a_run_goes_on_within_what_is_kept() {
    let registry = registry();
    let cache = tempfile::tempdir().unwrap();
    // Of the samples about a half is kept: the rest is read anew.
    for limit in ["", " limit=600000"] {
        let graph = line(&format!("range 20000 | cache '{}'{limit} | shuffle 10", cache.path().display()));
        let whole = all(&graph, &registry, Setting::INLINE);
        for taken in [0, 1, 4095, 4097, 12_000, 19_999] {
            let mut loader = build(&graph, &registry, Setting::threads(2)).unwrap();
            let begun: Vec<_> = loader.epoch(0).take(taken).map(|sample| digest(&sample.unwrap())).collect();
            let snapshot = loader.snapshot().unwrap();
            drop(loader);
            let mut loader = build(&graph, &registry, Setting::INLINE).unwrap();
            let rest = loader.resume(&snapshot).unwrap().map(|sample| digest(&sample.unwrap()));
            let joined: Vec<_> = begun.into_iter().chain(rest).collect();
            assert!(joined == whole, "{taken} {limit}");
        }
    }
}
