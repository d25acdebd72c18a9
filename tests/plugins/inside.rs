//! Packed files of lines, records and rows, and packed documents, through the real plugins: what the plain file gives, whatever packed it and
//! whatever it is called, a piece at a time.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{fs, io::Write as _, path::Path};

use forebay_core::{Key, Schema};
use forebay_loader::{Digest, Error, ErrorKind, Executor, Graph, Limits, Registry, Sample, Survey};
use forebay_tests::{Setting, build, builder, line, registry, within_deadline};

type Pack = fn(&[u8]) -> Vec<u8>;

/// Each codec by the ending of its files.
const CODECS: [(&str, Pack); 5] = [("gz", gzip), ("zst", zstd), ("xz", xz), ("bz2", bzip2), ("lz4", lz4)];

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut writer = liblzma::write::XzEncoder::new(Vec::new(), 1);
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut writer = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

fn lz4(bytes: &[u8]) -> Vec<u8> {
    let mut writer = lz4_flex::frame::FrameEncoder::new(Vec::new());
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

/// Text that hardly packs, so that the first 4 KiB of a packed file give nothing where a codec packs in blocks.
fn noise(number: usize) -> String {
    let word = |at: usize| (number * 31 + at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(at as u32);
    (0..6).map(|at| format!("{:016x}", word(at).wrapping_mul(0xd6e8_feb8_6659_fd93))).collect()
}

fn rows(count: usize) -> String {
    (0..count).map(|at| format!("{{\"id\": {at}, \"text\": \"{}\"}}\n", noise(at))).collect()
}

fn table(count: usize, separator: char) -> String {
    let row = |at: usize| match at % 3 {
        0 => format!("{at}{separator}\"two\nlines {}\"\n", noise(at)),
        _ => format!("{at}{separator}{}\r\n", noise(at)),
    };
    format!("id{separator}text\n") + &(0..count).map(row).collect::<String>()
}

fn seed(name: &str) -> Vec<u8> {
    fs::read(forebay_tests::seed(name)).unwrap()
}

/// A file of each kind, by its extension.
fn kinds() -> [(&'static str, Vec<u8>); 6] {
    let document = format!("{{\"rows\": [{}]}}", rows(300).trim_end().replace('\n', ","));
    [
        ("jsonl", rows(1500).into()),
        ("csv", table(1500, ',').into()),
        ("tsv", table(1500, '\t').into()),
        ("tfrecord", seed("examples.tfrecord").repeat(300)),
        ("json", document.into()),
        ("jpg", seed("baseline.jpg")),
    ]
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> String {
    let path = folder.join(name);
    fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The number and the values of a sample, but for the path; names may be those of a packed file.
fn shown(sample: &Sample) -> String {
    let values = sample.fields().filter(|(name, _)| name.as_str() != "path").map(|(_, value)| value.clone());
    let values: Vec<_> = values.collect();
    let mut digest = Digest::default();
    let (names, key) = ((0..values.len()).map(|at| at.to_string()), Key::default());
    digest.update(&Sample::with_schema(0, key, Schema::new(names), values.clone()));
    format!("{} {values:?} {}", sample.key().index, digest.finish())
}

/// What a graph gives, and the error that ends it.
fn read(graph: &Graph, registry: &Registry, setting: Setting) -> (Vec<String>, Option<Error>) {
    let mut loader = build(graph, registry, setting).unwrap_or_else(|error| panic!("{graph}: {error}"));
    let (mut found, mut failed) = (Vec::new(), None);
    for sample in loader.epoch(0) {
        match sample {
            Ok(sample) => found.push(shown(&sample)),
            Err(error) => failed = Some(error),
        }
    }
    let lost: Vec<_> = loader.quarantine().iter().map(|lost| lost.error.to_string()).collect();
    assert!(lost.is_empty(), "{graph}: {lost:?}");
    (found, failed)
}

fn whole(graph: &str, registry: &Registry, setting: Setting) -> Vec<String> {
    let (found, failed) = read(&line(graph), registry, setting);
    assert!(failed.is_none(), "{graph}: {failed:?}");
    found
}

/// What is at a path, and what opens or decodes it.
fn opened(path: &str, registry: &Registry) -> (Vec<String>, String) {
    let survey = Survey::of(path, registry).unwrap();
    let [kind] = &survey.kinds[..] else { panic!("{path}: {:?}", survey.kinds) };
    let how = match (&kind.unpacked_by, &kind.decoder, &kind.left) {
        (_, _, Some(_)) => "left".to_owned(),
        (unpacked, Some(decoder), _) => {
            unpacked.iter().map(String::as_str).chain([&**decoder]).collect::<Vec<_>>().join(", ")
        }
        _ => kind.opened_by.join(" | "),
    };
    let (found, failed) = read(&survey.graph, registry, Setting::INLINE);
    assert!(failed.is_none(), "{path}: {failed:?}");
    (found, how)
}

#[test]
fn a_packed_file_opens_as_the_plain_one_whatever_it_is_called() {
    within_deadline(|| {
        let (registry, folder) = (registry(), tempfile::tempdir().unwrap());
        let folder = folder.path();
        for (kind, bytes) in kinds() {
            let named = opened(&write(folder, &format!("plain.{kind}"), &bytes), &registry);
            let bare = opened(&write(folder, "plain", &bytes), &registry);
            assert!(!named.0.is_empty() && named.1 != "left", "{kind}: {}", named.1);
            for (at, (ending, pack)) in CODECS.iter().enumerate() {
                let packed = pack(&bytes);
                let other = CODECS[(at + 1) % CODECS.len()].0;
                let names = [
                    (format!("a.{kind}.{ending}"), &named),
                    (format!("a.{kind}.{other}"), &named),
                    (format!("a.{kind}"), &named),
                    (format!("a.{ending}"), &bare),
                    ("a".to_owned(), &bare),
                ];
                for (name, (samples, how)) in names {
                    let path = write(folder, &name, &packed);
                    let (found, by) = opened(&path, &registry);
                    assert_eq!(found, *samples, "{ending} as {name}");
                    // Unpacked as it is read, where a pipe opens it.
                    let expected = match *ending {
                        _ if how == "left" || how.contains('|') || how == "tfrecords" => how.clone(),
                        "gz" => format!("gzip, {how}"),
                        "zst" => format!("zstd, {how}"),
                        "bz2" => format!("bzip2, {how}"),
                        other => format!("{other}, {how}"),
                    };
                    assert_eq!(by, expected, "{ending} as {name}");
                }
            }
        }
    });
}

#[test]
fn what_is_inside_decides_and_not_the_name() {
    within_deadline(|| {
        let (registry, folder) = (registry(), tempfile::tempdir().unwrap());
        let folder = folder.path();
        let array = format!("[{}]", rows(300).trim_end().replace('\n', ","));
        let cases: [(&str, Vec<u8>, &str); 6] = [
            ("lines.json.zst", zstd(rows(900).as_bytes()), "lines | json_lines"),
            ("lines.csv.bz2", bzip2(rows(900).as_bytes()), "lines | json_lines"),
            ("list.zst", zstd(array.as_bytes()), "decompress | json_array"),
            ("photo.json.gz", gzip(&seed("baseline.jpg")), "gzip, jpeg"),
            ("photo.jsonl", gzip(&seed("baseline.jpg")), "gzip, jpeg"),
            ("twice.bin", xz(&zstd(rows(900).as_bytes())), "lines | json_lines"),
        ];
        for (name, bytes, expected) in cases {
            let (found, how) = opened(&write(folder, name, &bytes), &registry);
            assert_eq!(how, expected, "{name}");
            assert!(!found.is_empty(), "{name}");
        }
        let (_, how) = opened(&write(folder, "unknown.gz", &gzip(b"\x00\x01\x02")), &registry);
        assert_eq!(how, "left");
    });
}

/// Pipes that unpack as they read, and a plain file for them with so many samples.
fn streamed(count: usize) -> [(&'static str, Vec<u8>); 6] {
    let (lines, records) = (rows(count), seed("examples.tfrecord").repeat(count));
    [
        ("lines block=900 | json_lines", lines.clone().into()),
        ("lines rows=3 index=beside | json_lines", lines.clone().into()),
        ("lines block=1 | text_lines", format!("\u{feff}{}", lines.trim_end()).into()),
        ("csv_blocks block=900 | csv", table(count, ',').into()),
        ("csv_blocks header=false block=1 | csv", table(count, ',').into()),
        ("tfrecords", records),
    ]
}

#[test]
fn every_executor_gives_the_same_and_goes_on_from_every_sample() {
    within_deadline(|| {
        let (registry, folder) = (registry(), tempfile::tempdir().unwrap());
        for (at, (pipes, bytes)) in streamed(40).into_iter().enumerate() {
            let plain = write(folder.path(), "plain", &bytes);
            let truth = whole(&format!("files {plain} | {pipes}"), &registry, Setting::INLINE);
            assert!(truth.len() >= 40, "{pipes}");
            let (ending, pack) = CODECS[at % CODECS.len()];
            let packed = write(folder.path(), &format!("packed.{ending}"), &pack(&bytes));
            for source in [format!("files {packed}"), format!("files {packed} open=none")] {
                let graph = format!("{source} | {pipes}");
                for executor in [Executor::Inline, Executor::Threads(3), Executor::Processes(2)] {
                    assert_eq!(
                        whole(&graph, &registry, Setting { executor, ..Setting::INLINE }),
                        truth,
                        "{graph}"
                    );
                }
                let setting = Setting { marks: true, chunk: Some(3), ..Setting::INLINE };
                for stop in 0..=truth.len() {
                    let mut loader = build(&line(&graph), &registry, setting).unwrap();
                    let mut epoch = loader.epoch(0);
                    assert_eq!(epoch.by_ref().take(stop).map(Result::unwrap).count(), stop);
                    let snapshot = epoch.snapshot().unwrap();
                    let mut other = build(&line(&graph), &registry, setting).unwrap();
                    let rest = other.resume(&snapshot).unwrap().map(|sample| shown(&sample.unwrap()));
                    assert_eq!(rest.collect::<Vec<_>>(), truth[stop..], "{graph} after {stop}");
                }
            }
            assert!(!folder.path().join(format!("packed.{ending}.index")).exists());
        }
    });
}

#[test]
fn a_file_that_is_cut_off_gives_what_is_whole_and_then_the_error() {
    within_deadline(|| {
        let (registry, folder) = (registry(), tempfile::tempdir().unwrap());
        for (pipes, bytes) in streamed(2000) {
            let plain = write(folder.path(), "plain", &bytes);
            let truth = whole(&format!("files {plain} | {pipes}"), &registry, Setting::INLINE);
            for (ending, pack) in CODECS {
                let packed = pack(&bytes);
                let mut most = 0;
                for len in [20, packed.len() / 4, packed.len() / 2, packed.len() - 9, packed.len() - 1] {
                    let path = write(folder.path(), &format!("cut.{ending}"), &packed[..len]);
                    let graph = format!("files {path} | {pipes}");
                    let (found, failed) = read(&line(&graph), &registry, Setting::INLINE);
                    let error = failed.unwrap_or_else(|| panic!("{graph}: no error after {len} bytes"));
                    assert_eq!(error.kind(), ErrorKind::Corrupt, "{graph}: {error}");
                    assert!(error.message().contains("truncated"), "{graph}: {error}");
                    assert_eq!(error.get("file"), Some(&*path), "{graph}: {error}");
                    assert_eq!(error.get("sample"), Some(&*path), "{graph}: {error}");
                    assert!(truth.starts_with(&found), "{graph}");
                    most = most.max(found.len());
                }
                // But for what one block of bzip2 or xz holds.
                assert!(most > 0, "{pipes}, {ending}: {most} of {}", truth.len());
            }
        }
    });
}

#[test]
fn packed_streams_one_after_the_other_are_one_file() {
    within_deadline(|| {
        let (registry, folder) = (registry(), tempfile::tempdir().unwrap());
        for (pipes, bytes) in streamed(60) {
            let plain = write(folder.path(), "plain", &bytes);
            let truth = whole(&format!("files {plain} | {pipes}"), &registry, Setting::INLINE);
            for (ending, pack) in CODECS {
                let parts: Vec<_> = bytes.chunks(bytes.len() / 3).flat_map(pack).collect();
                let path = write(folder.path(), &format!("parts.{ending}"), &parts);
                assert_eq!(
                    whole(&format!("files {path} | {pipes}"), &registry, Setting::INLINE),
                    truth,
                    "{path}"
                );
            }
        }
    });
}

#[test]
fn the_first_bytes_are_unpacked_alone() {
    within_deadline(|| {
        let (registry, folder) = (registry(), tempfile::tempdir().unwrap());
        let text = rows(2000).into_bytes();
        let twice = gzip(&zstd(&text));
        let broken = [&gzip(&text)[..30_000], b"no gzip"].concat();
        let cases = [
            ("first=7", gzip(&text), Some(&text[..7])),
            ("first=7", text.clone(), Some(&text[..7])),
            ("first=70000", twice.clone(), Some(&text[..70_000])),
            ("first=4 codec=gzip", twice, Some(&b"\x28\xb5\x2f\xfd"[..])),
            ("first=99999999", gzip(&text), Some(&text[..])),
            ("first=0", gzip(&text), Some(&b""[..])),
            ("first=100", broken.clone(), Some(&text[..100])),
            ("first=100", broken[..10].to_vec(), None),
        ];
        for (options, bytes, expected) in cases {
            let path = write(folder.path(), "file", &bytes);
            for source in [format!("files {path}"), format!("files {path} open=none")] {
                let graph = line(&format!("{source} | decompress {options}"));
                let mut loader = build(&graph, &registry, Setting::INLINE).unwrap();
                let found = loader.epoch(0).next().unwrap();
                let found = found.map(|sample| sample.get("bytes").unwrap().as_bytes().unwrap().to_vec());
                assert_eq!(found.as_deref().ok(), expected, "{graph} of {} bytes", bytes.len());
            }
        }
    });
}

#[test]
fn no_more_is_in_memory_than_a_piece() {
    within_deadline(|| {
        let (registry, folder) = (registry(), tempfile::tempdir().unwrap());
        let limits = Limits { bytes: 1 << 18, ..Limits::DEFAULT };
        let record = |text: &str| format!("{{\"text\": \"{}\"}}\n", text.repeat(500));
        let lines: String = (0..4000).map(|at| record(&format!("{at:08}"))).collect();
        let table = lines.replace(['{', '}', ':'], ",");
        let large = seed("examples.tfrecord").repeat(40_000);
        let cases = [
            ("lines | text_lines", lines.clone().into_bytes(), 4000),
            ("lines rows=7 | text_lines", lines.clone().into_bytes(), 4000),
            ("lines block=1073741824 | json_lines", lines.clone().into_bytes(), 4000),
            ("csv_blocks | csv ragged=fill", table.into_bytes(), 3999),
            ("tfrecords", large, 40_000),
        ];
        for (pipes, bytes, least) in cases {
            assert!(bytes.len() as u64 > 16 * limits.bytes, "{}", bytes.len());
            let path = write(folder.path(), "large", &zstd(&bytes));
            let count = |graph: &str| {
                let mut loader =
                    builder(&line(graph), Setting::INLINE).limits(limits).build(&registry).unwrap();
                loader.epoch(0).map(|sample| sample.map(|_| 1)).sum::<Result<usize, _>>()
            };
            let found = count(&format!("files {path} | {pipes}")).unwrap();
            assert!(found >= least, "{pipes}: {found}");
            let error = count(&format!("files {path} | decompress | {pipes}")).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
        }
        // Of one line that is longer than that nothing is held beyond the limit either.
        let path = write(folder.path(), "long", &gzip(&vec![b'x'; 1 << 22]));
        for pipes in ["lines | text_lines", "lines rows=2 | text_lines", "csv_blocks header=false | csv"] {
            let graph = line(&format!("files {path} | {pipes}"));
            let mut loader = builder(&graph, Setting::INLINE).limits(limits).build(&registry).unwrap();
            let error = loader.epoch(0).next().unwrap().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Limit, "{pipes}: {error}");
        }
    });
}
