//! What `cache` keeps in a folder: later runs read nothing else, a killed one leaves nothing, and what the graph or the seed changes is another's.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    collections::HashSet,
    fs, io,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
};

use forebay_loader::{Executor, Graph, Registry};
use forebay_tests::{
    Cargo, Setting, build, builder, command, digest, line, read, registry, root, within_deadline,
};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

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

/// Puts something else into a file, as long and as old as what was there.
fn write_unseen(file: &Path, bytes: &[u8]) {
    let before = fs::metadata(file).unwrap();
    assert_eq!(before.len(), bytes.len() as u64);
    fs::write(file, bytes).unwrap();
    fs::File::options().append(true).open(file).unwrap().set_modified(before.modified().unwrap()).unwrap();
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
            // Nothing of the data is read any more: what is as long and as old as it was is taken for the same.
            write_unseen(&data, "x".repeat(text.len()).as_bytes());
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
    // Nothing draws before it.
    all(&graphs[0], &registry, Setting { seed: 77, ..Setting::INLINE });
    assert_eq!(pieces(&cache), 3);
    for drawing in ["map 'x=random()'", "shuffle 2", "subsample 0.9"] {
        let graph = with(&format!("files DATA open=none | lines | text_lines | {drawing} | cache CACHE"));
        let before = pieces(&cache);
        for (seed, more) in [(7, 1), (77, 2), (7, 2)] {
            all(&graph, &registry, Setting { seed, ..Setting::INLINE });
            assert_eq!(pieces(&cache), before + more, "{graph} with seed {seed}");
        }
    }
    let before = pieces(&cache);
    // What stands behind it changes nothing of what is kept.
    all(
        &with("files DATA open=none | lines | text_lines | cache CACHE | shuffle 9 | batch 2"),
        &registry,
        Setting::INLINE,
    );
    assert_eq!(pieces(&cache), before);
}

#[test]
fn a_file_that_was_replaced_in_place_added_or_removed_has_everything_read_anew() {
    let registry = registry();
    within_deadline(move || {
        let folder = tempfile::tempdir().unwrap();
        let (data, cache) = (folder.path().join("data"), folder.path().join("cache"));
        fs::create_dir(&data).unwrap();
        let write = |name: &str, text: &str| fs::write(data.join(name), text).unwrap();
        write("a.txt", "one\n");
        write("b.txt", "two\n");
        let path = data.join("*.txt");
        let graph = line(&format!(
            "files '{}' open=none | lines | text_lines | cache '{}'",
            path.display(),
            cache.display()
        ));
        let read = |wanted: &[&str], why: &str| {
            for setting in [Setting::INLINE, PROCESSES] {
                let mut loader = build(&graph, &registry, setting).unwrap();
                let texts: Vec<_> = loader
                    .epoch(0)
                    .map(|sample| {
                        sample.unwrap().get("text").and_then(|text| text.as_str()).unwrap().to_owned()
                    })
                    .collect();
                assert_eq!(texts, wanted, "{why}, {setting:?}");
            }
        };
        read(&["one", "two"], "as it was");
        let before = fs::metadata(data.join("a.txt")).unwrap().modified().unwrap();
        write("a.txt", "ONE\n"); // As long as before.
        let file = fs::File::options().append(true).open(data.join("a.txt")).unwrap();
        // A disk may count in whole seconds.
        file.set_modified(before + std::time::Duration::from_secs(1)).unwrap();
        read(&["ONE", "two"], "replaced in place");
        write("c.txt", "three\n");
        read(&["ONE", "two", "three"], "one more");
        fs::remove_file(data.join("b.txt")).unwrap();
        read(&["ONE", "three"], "one less");
        // Nobody looks for what is missing in what was kept.
        fs::remove_file(data.join("a.txt")).unwrap();
        fs::remove_file(data.join("c.txt")).unwrap();
        let (samples, failed) =
            forebay_tests::read(build(&graph, &registry, Setting::INLINE).unwrap().epoch(0));
        assert!(samples.is_empty() && failed.is_some(), "{failed:?}");
    });
}

#[test]
fn it_is_told_where_a_change_would_not_be_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let told = |files: &str| {
        let graph = line(&format!("{files} | lines | text_lines | cache '{}'", folder.path().display()));
        build(&graph, &registry(), Setting::INLINE).unwrap().take_log()
    };
    let lines = told("files 'http://localhost:9/a.txt' open=none");
    assert!(
        matches!(&lines[..], [(2, line)] if line.contains("are not seen") && line.contains("`files`")),
        "{lines:?}"
    );
    assert!(told(&format!("files '{}' open=none", file!())).is_empty());
}

#[test]
fn a_killed_run_leaves_nothing_that_stays() {
    let registry = registry();
    let built = Cargo::workspace(&root()).arg("--bin").arg("forebay").build("forebay");
    within_deadline(move || {
        let cache = tempfile::tempdir().unwrap();
        let text =
            format!("range 2000000 | map 'value=value * 2' | cache '{}' | batch 100", cache.path().display());
        let mut run = Command::new(built);
        run.args(["run", &format!("{text} | repeat")]).env_clear();
        run.env("FOREBAY_PLUGIN_PATH", command::all());
        let mut child = run.stdout(std::process::Stdio::null()).spawn().unwrap();
        while pieces(cache.path()) < 3 {
            assert!(child.try_wait().unwrap().is_none(), "it ended before it was killed");
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let left = files(cache.path());
        let graph = line(&text);
        let samples = all(&graph, &registry, Setting::threads(2).seed(0));
        assert_eq!(samples.len(), 20_000);
        let plain = line("range 2000000 | map 'value=value * 2' | batch 100");
        assert!(samples == all(&plain, &registry, Setting::INLINE));
        let now = files(cache.path());
        assert!(!left.iter().any(|path| path.ends_with("index")), "it wrote all before it was killed");
        let is_piece = |path: &&PathBuf| path.extension().is_some_and(|ending| ending == "piece");
        assert!(left.iter().filter(is_piece).all(|path| !now.contains(path)), "{left:?} and then {now:?}");
        let of_run = |path: &&PathBuf| {
            path.extension().is_some_and(|ending| ending == "lock") && path.file_stem().unwrap().len() == 16
        };
        assert_eq!(now.iter().filter(of_run).count(), 1);
    });
}

/// Whether a cache has been written to its end.
fn is_whole(cache: &Path) -> bool {
    files(cache).iter().any(|path| path.ends_with("index"))
}

/// A run of the command, which is ended with the test.
struct Live(Child);

impl Live {
    fn run(graph: &Graph) -> Self {
        let mut command = Command::new(command::command());
        command.args(["run", "--digest", "--quiet", "--epochs", "2", "--", &graph.to_string()]).env_clear();
        command.env("FOREBAY_PLUGIN_PATH", command::all()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(command.spawn().unwrap())
    }

    /// One that is stopped while it writes a cache.
    fn run_and_stop(graph: &Graph, cache: &Path) -> Self {
        for _ in 0..100 {
            let mut run = Self::run(graph);
            while pieces(cache) == 0 && run.is_live() {
                thread::yield_now();
            }
            if run.is_live() {
                run.signal(Signal::STOP);
                let ways = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
                waitid(WaitId::Pid(Pid::from_child(&run.0)), ways).unwrap();
                if !is_whole(cache) && run.is_live() {
                    return run;
                }
                run.signal(Signal::CONT);
            }
            run.digest();
            fs::remove_dir_all(cache).unwrap();
        }
        panic!("a hundred runs wrote all before they were stopped");
    }

    fn is_live(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }

    /// The digest of all that it gave.
    fn digest(mut self) -> String {
        let text = |pipe: &mut dyn io::Read| io::read_to_string(pipe).unwrap();
        let (out, said) = (text(self.0.stdout.as_mut().unwrap()), text(self.0.stderr.as_mut().unwrap()));
        assert!(self.0.wait().unwrap().success() && !out.is_empty(), "{out}{said}");
        out
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a run gives that reads no data, which is not what it was; the folder has one cache and nothing of another run.
fn kept(graph: &Graph, data: &Path, cache: &Path) -> String {
    let text = fs::read(data).unwrap();
    write_unseen(data, &vec![b'x'; text.len()]);
    let before = files(cache);
    let digest = Live::run(graph).digest();
    write_unseen(data, &text);
    let named = |ending: &str| before.iter().filter(|path| path.to_str().unwrap().ends_with(ending)).count();
    let runs: HashSet<_> = before
        .iter()
        .filter(|path| path.extension().is_some_and(|ending| ending == "piece"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().split('-').next().unwrap())
        .collect();
    // One lock is the cache's, the other one its run's.
    assert_eq!((runs.len(), named("/index"), named("index"), named(".lock")), (1, 1, 1, 2), "{before:?}");
    digest
}

#[test]
fn processes_that_live_at_one_time_share_a_folder() {
    command::command();
    within_deadline(|| {
        let folder = tempfile::tempdir().unwrap();
        let (data, cache) = (folder.path().join("data.txt"), folder.path().join("cache"));
        let text: String = (0..300_000).map(|number| format!("line {number} of a file\n")).collect();
        fs::write(&data, text).unwrap();
        let graph = graph(&data, &cache, "");
        let truth = {
            let plain = self::graph(&data, &folder.path().join("another"), "");
            Live::run(&plain).digest()
        };
        // The first stops while it writes: the other one runs from beginning to end beside it, and keeps nothing.
        let mut first = Live::run_and_stop(&graph, &cache);
        let all = || files(&cache).into_iter().collect::<HashSet<_>>();
        let written = all();
        assert_eq!(Live::run(&graph).digest(), truth, "beside one that is stopped");
        assert!(first.is_live() && !is_whole(&cache));
        assert_eq!(all(), written, "both wrote");
        first.signal(Signal::CONT);
        assert_eq!(first.digest(), truth, "the one that was stopped");
        assert_eq!(kept(&graph, &data, &cache), truth);
        // All at once, however they come to lie.
        for _ in 0..3 {
            fs::remove_dir_all(&cache).unwrap();
            let runs = [0; 3].map(|_| Live::run(&graph));
            assert_eq!(runs.map(Live::digest), [0; 3].map(|_| truth.clone()));
            assert_eq!(kept(&graph, &data, &cache), truth);
        }
    });
}

#[test]
fn each_output_has_samples_of_its_own() {
    let registry = registry();
    let folder = tempfile::tempdir().unwrap();
    let text = "range 40 | demux @d ; cache @a <d> 'CACHE' ; cache @b <d.1> 'CACHE' ; concat <a, b>";
    let graph = line(&text.replace("CACHE", folder.path().to_str().unwrap()));
    let first = all(&graph, &registry, Setting::INLINE);
    assert_eq!((first.len(), pieces(folder.path())), (40, 2));
    assert_eq!(all(&graph, &registry, Setting::threads(2)), first);
}

#[test]
fn how_many_ranks_there_are_is_told_apart_and_so_are_dealt_ones() {
    let registry = registry();
    let folder = tempfile::tempdir().unwrap();
    let text = |graph: &str| line(&graph.replace("CACHE", folder.path().to_str().unwrap()));
    let whole = text("range 7 | pad_to_length multiple=2 ranks=true | cache 'CACHE'");
    let dealt = text("range 12 | shard | increment | cache 'CACHE' identity=mine");
    for graph in [&whole, &dealt] {
        for world_size in [1, 2, 3] {
            let ranks = (0..world_size).map(|rank| {
                let builder = builder(graph, Setting::INLINE).ranks(rank, world_size);
                let (samples, failed) = read(builder.build(&registry).unwrap().epoch(0));
                assert!(failed.is_none(), "{failed:?}");
                samples
            });
            let ranks: Vec<_> = ranks.collect();
            assert!(ranks.iter().all(|rank| rank.len() == ranks[0].len()), "{graph}: {ranks:?}");
            let unlike: HashSet<_> = ranks.concat().into_iter().collect();
            assert_eq!(unlike.len(), ranks.concat().len(), "{graph}: {world_size} ranks");
        }
    }
}

#[test]
fn what_keeps_no_order_cannot_be_kept() {
    let graph = line("range 40 | increment unordered=true | cache");
    let refused = build(&graph, &registry(), Setting::threads(2)).err().unwrap();
    assert!(refused.to_string().contains("`increment` is unordered, and `cache` keeps"), "{refused}");
}

#[test]
fn a_run_goes_on_within_what_is_kept() {
    let registry = registry();
    let cache = tempfile::tempdir().unwrap();
    // Of the samples about a half is kept: the rest is read anew.
    for limit in ["", " limit=600000"] {
        let graph = line(&format!("range 20000 | cache '{}'{limit} | shuffle 10", cache.path().display()));
        let plain = line("range 20000 | cache | shuffle 10");
        let whole = all(&plain, &registry, Setting::INLINE);
        for taken in [0, 1, 4095, 4097, 12_000, 19_999] {
            // The first to come writes, and the other goes on in the middle of that.
            let _ = fs::remove_dir_all(cache.path().join("forebay-samples"));
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
