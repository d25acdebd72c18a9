//! Graphs over files far away: the same samples as from the files here, on every executor and after every resume.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

#[path = "../../plugins/remote/tests/store/server.rs"]
#[expect(dead_code, reason = "the store's own tests use the rest")]
mod server;

use std::{fs, path::Path};

use forebay_loader::{Digest, Error, Executor, Graph, Loader, Sample, Value, open};
use forebay_tests::{Setting, build, error_of, line, registry, root, run, within_deadline};
use server::{Manner, Server};

/// A folder with files of all kinds, and a server that has them too.
fn both() -> (tempfile::TempDir, Server) {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(Manner::default());
    let put = |name: &str, bytes: Vec<u8>| {
        fs::write(folder.path().join(name), &bytes).unwrap();
        server.put(&format!("data/{name}"), bytes);
    };
    for shard in 0..3 {
        put(
            &format!("{shard}.tar"),
            fs::read(root().join(format!("examples/photos/photos-00000{shard}.tar"))).unwrap(),
        );
        put(&format!("{shard}.arrows"), fs::read(root().join("tests/columns/birds.arrows")).unwrap());
    }
    put("birds.parquet", fs::read(root().join("tests/columns/birds.parquet")).unwrap());
    put("rows.h5", fs::read(root().join("plugins/hdf5/tests/data/latest.h5")).unwrap());
    let mut npy = b"\x93NUMPY\x01\0\x76\0{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }".to_vec();
    npy.resize(127, b' ');
    npy.extend(b"\n\x01\x02\x03");
    put("bird.npy", npy);
    put("rows.jsonl", (0..5000).map(|row| format!("{{\"row\": {row}}}\n")).collect::<String>().into_bytes());
    (folder, server)
}

const GRAPHS: [(&str, &str); 8] = [
    ("{0..2}.tar", "untar"),
    ("{0..2}.tar", "prefetch ahead=2 | untar"),
    ("{0..2}.tar", "tar_pieces samples=2 | untar_pieces"),
    ("{0..2}.arrows", "row_groups | read_rows"),
    ("birds.parquet", "row_groups columns=[bird] | read_rows"),
    ("rows.h5", "hdf5_pieces datasets=[label] piece_bytes=100 | hdf5_rows"),
    ("rows.jsonl", "lines block=1000 | json_lines"),
    ("{0..2}.tar", "read | untar"),
];

fn graph(place: &str, (files, rest): (&str, &str)) -> Graph {
    line(&format!("files '{place}/{files}' open=none | {rest}"))
}

fn place(folder: &Path) -> String {
    folder.display().to_string()
}

/// How many samples come, and the digest of all that is in them but the file's path.
fn contents(loader: &mut Loader) -> Result<(usize, String), Error> {
    let (mut count, mut digest) = (0, Digest::default());
    for sample in loader.epoch(0) {
        let mut sample = sample?;
        if sample.get("path").is_some() {
            sample.set("path", Value::NULL);
        }
        digest.update(&sample);
        count += 1;
    }
    Ok((count, digest.finish()))
}

#[test]
fn files_far_away_give_the_same_samples_on_every_executor() {
    within_deadline(|| {
        let ((folder, server), registry) = (both(), registry());
        for text in GRAPHS {
            let near = graph(&place(folder.path()), text);
            let wanted = contents(&mut build(&near, &registry, Setting::INLINE).unwrap()).unwrap();
            assert!(wanted.0 > 0, "{text:?}");
            let far = graph(&server.url("data"), text);
            for executor in [Executor::Inline, Executor::Threads(2), Executor::Processes(2)] {
                let setting = Setting { executor, ..Setting::INLINE };
                let found = contents(&mut build(&far, &registry, setting).unwrap());
                assert_eq!(
                    found.unwrap_or_else(|error| panic!("{text:?}: {error}")),
                    wanted,
                    "{text:?}: {executor:?}"
                );
            }
        }
    });
}

#[test]
fn any_path_far_away_opens() {
    within_deadline(|| {
        let ((folder, server), registry) = (both(), registry());
        for names in ["{0..2}.tar", "birds.parquet", "{0.tar,rows.jsonl,0.arrows}", "bird.npy"] {
            let open = |place: &str| {
                let graph = open(&format!("{place}/{names}"), &registry).unwrap();
                contents(&mut build(&graph, &registry, Setting::INLINE).unwrap()).unwrap()
            };
            let wanted = open(&folder.path().display().to_string());
            assert!(wanted.0 > 0, "{names}");
            assert_eq!(open(&server.url("data")), wanted, "{names}");
        }
    });
}

#[test]
fn a_resume_goes_on_with_the_next_sample() {
    within_deadline(|| {
        let ((_folder, server), registry) = (both(), registry());
        let words = |sample: Sample| format!("{:016x} {sample:?}", sample.uid());
        let setting = Setting { marks: true, ..Setting::INLINE };
        for text in &GRAPHS[..3] {
            let far = graph(&server.url("data"), *text);
            let all: Vec<_> = build(&far, &registry, setting)
                .unwrap()
                .epoch(0)
                .map(|sample| words(sample.unwrap()))
                .collect();
            for stop in [1, all.len() / 2, all.len() - 1] {
                let mut loader = build(&far, &registry, setting).unwrap();
                let mut epoch = loader.epoch(0);
                let mut found: Vec<_> =
                    epoch.by_ref().take(stop).map(|sample| words(sample.unwrap())).collect();
                let snapshot = epoch.snapshot().unwrap();
                drop(epoch);
                let mut loader = build(&far, &registry, setting).unwrap();
                found.extend(loader.resume(&snapshot).unwrap().map(|sample| words(sample.unwrap())));
                assert!(found == all, "{text:?} after {stop}");
            }
        }
    });
}

#[test]
fn the_first_sample_of_a_large_shard_costs_few_requests_and_bytes() {
    within_deadline(|| {
        let (registry, server) = (registry(), Server::new(Manner::default()));
        let shard = fs::read(root().join("examples/photos/photos-000000.tar")).unwrap();
        // Without its end, so that one follows the other.
        let members = &shard[..shard.len() / 512 * 512 - 1024];
        let end = members.chunks(512).rposition(|block| block.iter().any(|&byte| byte != 0)).unwrap() + 1;
        let members = &members[..end * 512];
        let large: Vec<_> =
            std::iter::repeat_n(members, (200 << 20) / members.len()).flatten().copied().collect();
        server.put("large.tar", large);
        let graph = line(&format!("files '{}' | untar group=none | take 1", server.url("large.tar")));
        assert_eq!(run(&mut build(&graph, &registry, Setting::INLINE).unwrap(), 0).unwrap().samples, 1);
        let requests = server.requests();
        let sent: u64 = requests.iter().map(|request| request.sent).sum();
        assert!(requests.len() <= 4 && sent < 6 << 20, "{} requests, {sent} bytes", requests.len());
    });
}

#[test]
fn errors_name_the_file_and_no_secret() {
    within_deadline(|| {
        let (registry, server) = (registry(), Server::new(Manner::default()));
        let url = format!("http://me:geheim@{}/none.tar?Signature=geheim", server.address);
        for graph in [format!("files '{url}' | untar"), format!("files '{url}' open=read")] {
            let error = error_of(&line(&graph), &registry, Setting::INLINE).0.to_string();
            assert!(
                error.contains("404") && error.contains("/none.tar?…") && !error.contains("geheim"),
                "{error}"
            );
        }
        let error = error_of(&line("files 'ftp://host/a.tar' | untar"), &registry, Setting::INLINE).0;
        assert!(error.to_string().contains("no plugin reads `ftp:` paths"), "{error}");
    });
}
