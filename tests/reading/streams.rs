//! Pipes (of the system) as files: what is sent through one gives the samples of the file, as it comes, on every executor.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
    sync::mpsc,
    thread,
};

use forebay_loader::{ErrorKind, Loader, Sample, open};
use forebay_tests::{ALL, Setting, build, builder, registry, within_deadline};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

fn tar(samples: usize) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for number in 0..samples {
        for (field, bytes) in
            [("json", format!("{{\"n\": {number}}}").into_bytes()), ("bin", vec![7; 1000 * number])]
        {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            builder.append_data(&mut header, format!("{number:04}.{field}"), &bytes[..]).unwrap();
        }
    }
    builder.into_inner().unwrap()
}

fn rows(count: usize) -> Vec<u8> {
    (0..count).map(|row| format!("{{\"row\": {row}, \"text\": \"heron\"}}\n")).collect::<String>().into()
}

fn named_pipe(path: &Path) -> String {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    path.to_str().unwrap().to_owned()
}

/// Sends bytes through a named pipe, from a thread of its own.
fn send(path: &Path, bytes: Vec<u8>) {
    let path = path.to_owned();
    // Who reads may go before all is written.
    thread::spawn(move || File::options().write(true).open(path).unwrap().write_all(&bytes));
}

fn shown(sample: &Sample) -> String {
    let fields = sample.fields().filter(|(name, _)| name.as_str() != "path");
    let fields: Vec<_> = fields.map(|(name, value)| format!("{name}={value:?}")).collect();
    format!("{} {} {} {fields:?}", sample.uid(), sample.key().name, sample.key().index)
}

fn all(mut loader: Loader) -> Vec<String> {
    let found = loader.epoch(0).map(|sample| shown(&sample.unwrap())).collect();
    loader.finish().unwrap();
    found
}

/// Files by name, of which pipes can give the samples.
fn files() -> Vec<(&'static str, Vec<u8>)> {
    let csv = (0..3000).map(|row| format!("{row},heron\n")).collect::<String>();
    let csv = format!("row,name\n{csv}");
    vec![
        ("shard.tar", tar(40)),
        ("shard", tar(3)),
        ("shard.tar.gz", gzip(&tar(40))),
        ("rows.jsonl", rows(20_000)),
        ("rows.jsonl.gz", gzip(&rows(20_000))),
        ("table.csv", csv.into_bytes()),
        ("page.json", b"{\"title\": \"heron\"}".to_vec()),
        ("list.json", format!("[{}]", vec!["{\"n\": 1}"; 2000].join(",")).into_bytes()),
        ("word.txt", b"heron".to_vec()),
    ]
}

#[test]
fn what_comes_through_a_pipe_is_what_the_file_gives() {
    within_deadline(|| {
        let folder = tempfile::tempdir().unwrap();
        let place = |of: &str, name: &str| -> PathBuf {
            let folder = folder.path().join(of);
            fs::create_dir_all(&folder).unwrap();
            folder.join(name)
        };
        for (name, bytes) in files() {
            let file = place("files", name);
            fs::write(&file, &bytes).unwrap();
            let truth = {
                let registry = registry();
                let graph = open(file.to_str().unwrap(), &registry).unwrap();
                all(build(&graph, &registry, Setting::INLINE).unwrap())
            };
            assert!(!truth.is_empty(), "{name}");
            for (at, executor) in ALL.into_iter().enumerate() {
                let path = place(&format!("pipes-{at}"), name);
                let pipe = named_pipe(&path);
                send(&path, bytes.clone());
                let registry = registry();
                let graph = open(&pipe, &registry).unwrap();
                let setting = Setting { executor, ..Setting::INLINE };
                assert_eq!(all(build(&graph, &registry, setting).unwrap()), truth, "{name} {executor:?}");
            }
        }
    });
}

#[test]
fn samples_come_before_the_pipe_ends() {
    within_deadline(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.jsonl");
        let pipe = named_pipe(&path);
        let (had, wait) = mpsc::channel();
        let writer = thread::spawn(move || {
            let mut file = File::options().write(true).open(path).unwrap();
            file.write_all(&rows(200_000)).unwrap();
            // The end is written only when samples have come.
            wait.recv().unwrap();
            file.write_all(&rows(10)).unwrap();
        });
        let registry = registry();
        let graph = open(&pipe, &registry).unwrap();
        let mut loader = builder(&graph, Setting::INLINE).build(&registry).unwrap();
        let mut epoch = loader.epoch(0);
        for _ in 0..1000 {
            epoch.next().unwrap().unwrap();
        }
        had.send(()).unwrap();
        assert_eq!(epoch.count(), 199_010);
        writer.join().unwrap();
    });
}

#[test]
fn what_a_pipe_cannot_give_is_said() {
    within_deadline(|| {
        let folder = tempfile::tempdir().unwrap();
        for (name, file, graph) in [
            ("zip", "two.zip", "unzip"),
            ("parquet", "flat.parquet", "row_groups | read_rows"),
            ("hdf5", "chunks.h5", "hdf5_pieces | hdf5_rows"),
            ("index", "gnu.tar", "tar_pieces | untar_pieces"),
        ] {
            let path = folder.path().join(name);
            let pipe = named_pipe(&path);
            send(&path, fs::read(forebay_tests::seed(file)).unwrap());
            let graph = forebay_tests::line(&format!("files {pipe} | {graph}"));
            let (error, _) = forebay_tests::error_of(&graph, &registry(), Setting::INLINE);
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{name}: {error}");
            assert!(error.to_string().contains("save it to a file first"), "{name}: {error}");
        }
        // A second epoch.
        let path = folder.path().join("rows");
        let pipe = named_pipe(&path);
        send(&path, rows(200_000));
        let graph = forebay_tests::line(&format!("files {pipe} | lines | json_lines"));
        let mut loader = build(&graph, &registry(), Setting::INLINE).unwrap();
        assert_eq!(loader.epoch(0).map(Result::unwrap).count(), 200_000);
        let error = loader.epoch(1).find_map(Result::err).unwrap();
        assert!(error.to_string().contains("was read before"), "{error}");
    });
}

#[test]
fn files_that_say_they_are_empty_and_are_not_give_all_their_lines() {
    within_deadline(|| {
        let wanted = fs::read_to_string("/proc/cpuinfo").unwrap().lines().count();
        assert!(wanted > 0 && fs::metadata("/proc/cpuinfo").unwrap().len() == 0);
        for graph in
            ["files /proc/cpuinfo", "files /proc/cpuinfo open=read", "files /proc/cpuinfo open=none | read"]
        {
            for executor in ALL {
                let setting = Setting { executor, ..Setting::INLINE };
                let graph = forebay_tests::line(&format!("{graph} | text_lines"));
                let found =
                    build(&graph, &registry(), setting).unwrap().epoch(0).collect::<Result<Vec<_>, _>>();
                assert_eq!(found.unwrap().len(), wanted, "{graph}, {executor}");
            }
        }
    });
}
