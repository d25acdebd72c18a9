//! Files that another program cuts short while they are mapped: an error with file and byte wherever the pipes run, and no sample that is
//! made of zeros.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    fs::{self, File},
    path::Path,
};

use forebay_loader::{Error, ErrorKind, Executor, Loader, Registry, Sample, Search, View};
use forebay_tests::{Setting, builder, line, plugins, within_deadline};

/// About how many bytes a file has at first, and how many in the end: more than any reader is ahead of the consumer.
const LEN: usize = 24 << 20;
const CUT: u64 = 16_700_000;

/// A graph over a file, what the file holds, and whether a sample is what the file held.
struct Case {
    graph: &'static str,
    make: fn() -> Vec<u8>,
    holds: fn(&Sample) -> bool,
}

const CASES: [Case; 3] = [
    Case {
        graph: "lines block=16384 | json_lines",
        make: || rows(String::new(), |n| format!("{{\"n\": {n}, \"text\": \"heron\"}}\n")),
        holds: |sample| is_text(sample, "text", "heron"),
    },
    Case {
        graph: "csv_blocks block=16384 | csv types={n = int}",
        make: || rows("n,text\n".into(), |n| format!("{n},heron\n")),
        holds: |sample| is_text(sample, "text", "heron"),
    },
    Case {
        graph: "untar | decode",
        make: shard,
        holds: |sample| is_text(sample, "txt", &"heron".repeat(400)),
    },
];

fn is_text(sample: &Sample, field: &str, text: &str) -> bool {
    matches!(sample.get(field).unwrap().view(), View::Str(found) if found == text)
}

fn rows(head: String, row: impl Fn(usize) -> String) -> Vec<u8> {
    let mut all = head;
    let mut number = 0;
    while all.len() < LEN {
        all += &row(number);
        number += 1;
    }
    all.into_bytes()
}

fn shard() -> Vec<u8> {
    let mut shard = tar::Builder::new(Vec::new());
    let text = "heron".repeat(400);
    for number in 0..LEN / 2560 {
        let mut header = tar::Header::new_ustar();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        shard.append_data(&mut header, format!("{number:06}.txt"), text.as_bytes()).unwrap();
    }
    shard.into_inner().unwrap()
}

/// A registry with plugins kept away like this.
fn isolated(level: &str) -> Registry {
    Registry::new(Search::nowhere().first(plugins()).isolation(level.parse().unwrap())).unwrap()
}

fn loader(graph: &str, level: &str, executor: Executor) -> Loader {
    let setting = Setting { executor, chunk: Some(4), budget: Some(1 << 18), ..Setting::INLINE };
    builder(&line(graph), setting).build(&isolated(level)).unwrap()
}

/// Reads the first sample, cuts the file short, and reads on to the error, which is the last that comes.
fn read_and_cut(case: &Case, file: &Path, loader: &mut Loader) -> Error {
    let mut epoch = loader.epoch(0);
    let first = epoch.next().unwrap().unwrap();
    assert!((case.holds)(&first), "{first:?}");
    File::options().write(true).open(file).unwrap().set_len(CUT).unwrap();
    while let Some(sample) = epoch.next() {
        match sample {
            Ok(sample) if (case.holds)(&sample) => {}
            Ok(sample) => panic!("{}: made of zeros: {sample:?}", case.graph),
            Err(error) => {
                assert!(epoch.next().is_none());
                return error;
            }
        }
    }
    panic!("{}: it ended as if nothing had happened", case.graph);
}

#[test]
fn a_file_that_is_cut_short_is_an_error_with_its_name_and_a_byte_wherever_pipes_run() {
    within_deadline(|| {
        let folder = tempfile::tempdir().unwrap();
        for case in CASES {
            let file = folder.path().join("data");
            let bytes = (case.make)();
            for (level, executor) in [
                ("in-process", Executor::Inline),
                ("in-process", Executor::Threads(2)),
                ("in-process", Executor::Processes(2)),
                ("on-crash", Executor::Threads(2)),
                ("process", Executor::Threads(1)),
                ("sandboxed", Executor::Threads(1)),
            ] {
                fs::write(&file, &bytes).unwrap();
                let told = format!("{}, {level}, {executor}", case.graph);
                let mut loader =
                    loader(&format!("files '{}' | {}", file.display(), case.graph), level, executor);
                let error = read_and_cut(&case, &file, &mut loader);
                // Headers of archives are read beside the map.
                assert!([ErrorKind::Io, ErrorKind::Corrupt].contains(&error.kind()), "{told}: {error}");
                assert!(error.message().contains("cut"), "{told}: {error}");
                assert!(error.to_string().contains(file.to_str().unwrap()), "{told}: {error}");
                let byte: u64 = error.get("byte").unwrap().parse().unwrap();
                assert!((CUT / 4096 * 4096..bytes.len() as u64).contains(&byte), "{told}: {error}");
                drop(loader);
            }
        }
    });
}
