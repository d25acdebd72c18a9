//! Pipes that write: round trips between formats, files that nobody ever sees half of, and a writer that is killed.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    collections::BTreeMap,
    env, fs,
    io::{self, BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Command, Stdio},
};

use forebay_loader::{ErrorKind, Sample, Snapshot};
use forebay_tests::{Setting, build, builder, command::forebay, error_of, line, registry, within_deadline};

/// Where the child writes, and how it is told to.
const FOLDER: &str = "FOREBAY_TEST_WRITE";
/// Samples in all, and in a file.
const SAMPLES: usize = 1000;
const SIZE: usize = 37;

fn source(folder: &Path) -> String {
    let path = folder.join("in.jsonl").to_str().unwrap().to_owned();
    let row = |number: usize| {
        let text = "heron \\\"é\\n".repeat(number % 5);
        format!(
            "{{\"n\": {number}, \"score\": {:?}, \"text\": \"{text}\", \"box\": [1.5, {number}.0], \"meta\": {{\"ok\": {}}}}}\n",
            number as f64 / 7.0,
            number.is_multiple_of(2)
        )
    };
    fs::write(&path, (0..SAMPLES).map(row).collect::<String>()).unwrap();
    path
}

/// Runs a graph that writes, and gives the names of its files.
#[track_caller]
fn write(graph: &str) -> Vec<String> {
    let mut loader = build(&line(graph), &registry(), Setting::threads(2)).unwrap();
    let path = |sample: &Sample| sample.get("path").unwrap().as_str().unwrap().to_owned();
    let paths =
        loader.epoch(0).map(|sample| path(&sample.unwrap_or_else(|error| panic!("{graph}: {error}"))));
    let paths = paths.collect();
    loader.finish().unwrap();
    paths
}

/// The fields of each sample, but that of the file that it was read from.
#[track_caller]
fn read(graph: &str) -> Vec<String> {
    let mut loader = build(&line(graph), &registry(), Setting::INLINE).unwrap();
    let shown = |sample: Sample| {
        let fields = sample.fields().filter(|(name, _)| name.as_str() != "path");
        fields.map(|(name, value)| format!("{name}={value:?}")).collect::<Vec<_>>().join(" ")
    };
    loader.epoch(0).map(|sample| shown(sample.unwrap_or_else(|error| panic!("{graph}: {error}")))).collect()
}

/// All files of a folder, by name.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}

#[test]
fn small_and_large_integers_are_one_column_of_a_table() {
    within_deadline(|| {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let (small, large, minus) = ("5", "18446744073709551615", "-5");
        for (rows, expected) in [
            ([small, large, minus], ["n=UInt(5)", "n=UInt(18446744073709551615)"]),
            ([large, minus, small], ["n=UInt(18446744073709551615)", "n=UInt(5)"]),
            ([small, minus, large], ["n=Int(5)", "n=Int(-5)"]),
        ] {
            let text: String = rows.iter().map(|row| format!("{{\"n\": {row}}}\n")).collect();
            fs::write(at("in.jsonl"), text).unwrap();
            for (writer, name) in [("write_parquet", "out.parquet"), ("write_ipc", "out.arrow")] {
                let (from, to) = (at("in.jsonl"), at(name));
                let graph = format!(
                    "files '{from}' | lines | json_lines | {writer} '{to}' overwrite=true on_error=skip:1"
                );
                write(&graph);
                assert_eq!(
                    read(&format!("files '{to}' | row_groups | read_rows")),
                    expected,
                    "{writer} {rows:?}"
                );
            }
        }
    });
}

#[test]
fn samples_go_from_any_format_to_any_b144() {
    within_deadline(|| {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let rows = format!("files '{}' | lines | json_lines", source(folder.path()));
        // Names as the shards will have them, and lists as tensors, as tables give them.
        let names = "['n=n.cls', 'score=score.json', 'text=text.txt', 'box=box.npy', 'meta=meta.json']";
        let named = format!("{rows} | collate fields=[box] | rename {names}");
        let truth = read(&named);
        assert_eq!(truth.len(), SAMPLES);

        let shards = write(&format!("{named} | write_tar '{}' shard_size={SIZE}", at("t/out-{:03}.tar")));
        assert_eq!((shards.len(), &shards[0]), (SAMPLES.div_ceil(SIZE), &at("t/out-000.tar")));
        let from_tar = format!("files '{}' | untar | decode", at("t/*.tar"));
        assert_eq!(read(&from_tar), truth);

        for (writer, name) in [("write_parquet", "table-{}.parquet"), ("write_ipc", "table-{}.arrow")] {
            let tables = write(&format!("{from_tar} | {writer} '{}' shard_size=400", at(name)));
            assert_eq!(tables.len(), 3);
            let fields = "['n.cls', 'score.json', 'text.txt', 'box.npy', 'meta.json']";
            let files = at(&name.replace("{}", "*"));
            let from_table = format!("files '{files}' | row_groups | read_rows | select {fields}");
            assert_eq!(read(&from_table), truth, "{writer}");
            let lines = write(&format!("{from_table} | write_jsonl '{}'", at(&format!("{writer}.jsonl"))));
            let from_lines = format!("files '{}' | lines | json_lines | collate fields=[box.npy]", lines[0]);
            assert_eq!(read(&from_lines), truth, "{writer}");
            let again = format!("{from_lines} | write_tar '{}'", at(&format!("{writer}.tar")));
            assert_eq!(read(&format!("files '{}' | untar | decode", write(&again)[0])), truth, "{writer}");
        }

        let csv = write(&format!("{rows} | select [n, score, text] | write_csv '{}'", at("all.csv")));
        let back = format!("files '{}' | csv_blocks | csv types={{n = int, score = float}}", csv[0]);
        assert_eq!(read(&back), read(&format!("{rows} | select [n, score, text]")));
    });
}

#[test]
fn nothing_that_is_there_is_overwritten() {
    within_deadline(|| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("out.jsonl");
        let graph =
            |count: usize, more: &str| format!("range {count} | write_jsonl '{}' {more}", file.display());
        write(&graph(3, ""));
        assert_eq!(fs::read_to_string(&file).unwrap(), "{\"value\":0}\n{\"value\":1}\n{\"value\":2}\n");
        // The same bytes are no other file.
        write(&graph(3, ""));
        let (error, _) = error_of(&line(&graph(4, "")), &registry(), Setting::INLINE);
        assert_eq!((error.kind(), error.get("file")), (ErrorKind::Invalid, file.to_str()), "{error}");
        assert_eq!(fs::read(&file).unwrap().len(), 36);
        write(&graph(4, "overwrite=true"));
        assert_eq!(fs::read(&file).unwrap().len(), 48);
        assert_eq!(files(folder.path()).len(), 1, "nothing else is left");
        let (error, _) =
            error_of(&line("range 3 | write_tar out.tar shard_size=2"), &registry(), Setting::INLINE);
        assert_eq!(error.get("option"), Some("pattern"), "{error}");
    });
}

#[test]
fn each_sample_is_written_by_one_rank() {
    within_deadline(|| {
        let registry = registry();
        for text in [
            "range 10 | write_jsonl 'OUT'",
            "range 10 | shuffle 4 | increment | write_jsonl 'OUT' | rogue_map at=-1",
            // What comes behind it may see all files in order.
            "range 10 | write_jsonl 'OUT' shard_size=2 | shuffle 3 | batch 2",
            "range 10 | batch 2 | unbatch | write_jsonl 'OUT'",
        ] {
            let folder = tempfile::tempdir().unwrap();
            let name = if text.contains("shard_size") { "{rank}-{}.jsonl" } else { "{rank}.jsonl" };
            let text = text.replace("OUT", folder.path().join(name).to_str().unwrap());
            for rank in 0..3 {
                let builder = builder(&line(&text), Setting::threads(2)).ranks(rank, 3);
                let mut loader = builder.build(&registry).unwrap();
                let pipes: Vec<_> = loader.graph().nodes().iter().map(|node| node.pipe.clone()).collect();
                let place = |name: &str| pipes.iter().position(|pipe| pipe == name).unwrap();
                assert!(place("shard") < place("write_jsonl"), "{pipes:?}");
                for sample in loader.epoch(0) {
                    sample.unwrap_or_else(|error| panic!("{text}: {error}"));
                }
                loader.finish().unwrap();
            }
            let written = files(folder.path()).into_values().collect::<Vec<_>>().concat();
            let mut lines: Vec<_> = str::from_utf8(&written).unwrap().lines().map(str::to_owned).collect();
            lines.sort_by_key(|line| (line.len(), line.clone()));
            let first = i64::from(text.contains("4 | increment"));
            let expected: Vec<_> = (first..first + 10).map(|n| format!("{{\"value\":{n}}}")).collect();
            assert_eq!(lines, expected, "{text}");
        }
    });
}

#[test]
fn a_writer_before_the_ranks_part_is_refused() {
    let registry = registry();
    for text in [
        "range 10 | write_jsonl '/tmp/{rank}.jsonl' | shard",
        // No place before it is before all that is read.
        "range @a 5 ; range @b 5 | write_jsonl '/tmp/{rank}.jsonl' ; concat <a, write_jsonl>",
    ] {
        let error = builder(&line(text), Setting::INLINE).ranks(1, 2).build(&registry).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{text}: {error}");
        let says =
            "`write_jsonl` writes samples before they are assigned to ranks: every rank would write all";
        assert!(error.message().starts_with(says) && error.message().contains("before it"), "{error}");
    }
}

#[test]
fn a_writer_goes_on_with_the_ranks_that_began() {
    within_deadline(|| {
        let (registry, folder) = (registry(), tempfile::tempdir().unwrap());
        let text =
            format!("range 90 | write_jsonl '{}/{{rank}}-{{}}.jsonl' shard_size=4", folder.path().display());
        let mut loader = builder(&line(&text), Setting::INLINE).ranks(0, 2).build(&registry).unwrap();
        let mut epoch = loader.epoch(0);
        assert_eq!(epoch.by_ref().take(3).count(), 3);
        let snapshot = epoch.snapshot().unwrap();
        let mut other = builder(&line(&text), Setting::INLINE).ranks(0, 1).build(&registry).unwrap();
        let error = other.resume(&snapshot).err().unwrap();
        assert!(error.message().contains("`write_jsonl` wrote other samples on each rank"), "{error}");
        let mut same = builder(&line(&text), Setting::INLINE).ranks(0, 2).build(&registry).unwrap();
        assert!(same.resume(&snapshot).unwrap().all(|sample| sample.is_ok()));
        assert_eq!(files(folder.path()).len(), 12);
    });
}

#[test]
fn explain_shows_the_split_before_the_writer() {
    let graph = "range 10 | write_jsonl 'u{rank}.jsonl'";
    let explained = forebay(&[], &["explain", graph, "--rank", "0/3"]);
    let text = String::from_utf8(explained.stdout).unwrap();
    assert!(text.contains("range 10 | shard | write_jsonl 'u{rank}.jsonl'"), "{text}");
}

#[test]
fn a_sample_that_cannot_be_written_is_left_out_whole() {
    within_deadline(|| {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("in.csv"), "n\n1\nx\n3\n").unwrap();
        let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let rows = format!("files '{}' | csv_blocks | csv types=auto", at("in.csv"));
        let graph = format!("{rows} | write_parquet '{}' on_error=skip", at("out.parquet"));
        let out = write(&graph);
        assert_eq!(read(&format!("files '{}' | row_groups | read_rows", out[0])), ["n=Int(1)", "n=Int(3)"]);
    });
}

/// The graph of the killed writer.
fn shards(folder: &Path) -> String {
    let (input, out) = (folder.join("in.jsonl"), folder.join("out/{:04}.tar"));
    format!(
        "files '{}' | lines block=500 | json_lines | shuffle 50 | write_tar '{}' shard_size={SIZE}",
        input.display(),
        out.display()
    )
}

/// The process that the next test starts and kills.
fn child(folder: &Path) {
    let mut out = io::stdout();
    let mut loader = build(&line(&shards(folder)), &registry(), Setting::threads(2)).unwrap();
    let saved = folder.join("snapshot");
    let snapshot = fs::read(&saved).ok().map(|bytes| Snapshot::from_bytes(&bytes).unwrap());
    let mut epoch = match &snapshot {
        Some(snapshot) => loader.resume(snapshot).unwrap(),
        None => loader.epoch(0),
    };
    while let Some(sample) = epoch.next() {
        sample.unwrap();
        let part = folder.join("snapshot.part");
        fs::write(&part, epoch.snapshot().unwrap().to_bytes()).unwrap();
        fs::rename(part, &saved).unwrap();
        writeln!(out, "written").unwrap();
    }
}

#[test]
fn a_killed_writer_goes_on_and_the_files_are_those_of_an_unbroken_run() {
    if let Some(folder) = env::var_os(FOLDER) {
        return child(Path::new(&folder));
    }
    within_deadline(|| {
        let (whole, broken) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        source(whole.path());
        source(broken.path());
        write(&shards(whole.path()));
        let start = || {
            Command::new(env::current_exe().unwrap())
                .args([
                    "--exact",
                    "writers::a_killed_writer_goes_on_and_the_files_are_those_of_an_unbroken_run",
                    "--nocapture",
                ])
                .env(FOLDER, broken.path())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        };
        for kill_after in [1, 4, 2, 7] {
            let mut child = start();
            let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
            assert_eq!(lines.filter(|line| line.contains("written")).take(kill_after).count(), kill_after);
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert!(start().wait_with_output().unwrap().status.success());
        let expected = files(&whole.path().join("out"));
        assert_eq!(expected.len(), SAMPLES.div_ceil(SIZE));
        let found = files(&broken.path().join("out"));
        assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
        assert!(found == expected, "the same bytes");
    });
}

/// A run of the command that writes numbers, which it is given by a pipe, to `out`.
fn writes(out: &Path) -> std::process::Child {
    let graph = format!("files - | lines | text_lines | write_jsonl '{}'", out.display());
    let mut run = Command::new(forebay_tests::command::command());
    run.args(["run", "--quiet", &graph]).env("FOREBAY_PLUGIN_PATH", forebay_tests::command::all());
    run.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn of_two_runs_that_write_the_same_file_the_second_is_refused_and_names_the_first() {
    within_deadline(|| {
        let folder = tempfile::tempdir().unwrap();
        let (out, part) = (folder.path().join("out.jsonl"), folder.path().join(".out.jsonl.part"));
        let begin = || {
            let mut run = writes(&out);
            // More than a reader takes before it gives a line.
            run.stdin.as_mut().unwrap().write_all("heron\n".repeat(1 << 20).as_bytes()).unwrap();
            run
        };
        let mut first = begin();
        while !part.exists() {
            std::thread::yield_now();
        }
        let mut second = writes(&out);
        let _ = second.stdin.as_mut().unwrap().write_all(b"stork\n"); // It may be over by then.
        let refused = second.wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(1), "{error}");
        assert!(error.contains(&format!("process {} has been writing this file", first.id())), "{error}");
        assert!(!out.exists(), "the second published something");
        // A run that died holds nothing.
        first.kill().unwrap();
        first.wait().unwrap();
        assert!(part.exists());
        let last = begin().wait_with_output().unwrap();
        assert!(last.status.success(), "{last:?}");
        let lines = fs::read_to_string(&out).unwrap();
        assert_eq!(lines.lines().filter(|line| line.contains("heron")).count(), 1 << 20);
        assert!(!lines.contains("stork"));
        assert_eq!(files(folder.path()).len(), 1, "nothing else is left");
    });
}
