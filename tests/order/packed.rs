//! Packed shards, shards in pieces, packed members and zip archives through the real plugins: the same values, on every executor and after
//! every resume.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{fs, io::Write as _, path::Path};

use forebay_loader::{ErrorKind, Registry, Sample};
use forebay_tests::{ALL, Setting, build, error_of, line, registry, within_deadline};

const SAMPLES: usize = 60;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

/// A shard whose members are packed, and the same shard packed, under a name that does not tell.
fn shards(folder: &Path) -> (String, String) {
    let mut builder = tar::Builder::new(Vec::new());
    for number in 0..SAMPLES {
        let json =
            gzip(format!("{{\"number\": {number}, \"text\": \"{}\"}}", "heron ".repeat(number)).as_bytes());
        let text = gzip(format!("text {number}").as_bytes());
        for (field, bytes) in [("json.gz", json), ("txt", text)] {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            builder.append_data(&mut header, format!("{number:04}.{field}"), &bytes[..]).unwrap();
        }
    }
    let plain = builder.into_inner().unwrap();
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    fs::write(path("plain.tar"), &plain).unwrap();
    fs::write(path("packed.tar"), gzip(&plain)).unwrap();
    (path("plain.tar"), path("packed.tar"))
}

fn values(text: &str, registry: &Registry, setting: Setting) -> Vec<String> {
    let mut loader = build(&line(text), registry, setting).unwrap();
    let found = loader.epoch(0).map(|sample| shown(&sample.unwrap())).collect();
    loader.finish().unwrap();
    found
}

fn shown(sample: &Sample) -> String {
    format!(
        "{} {:?}",
        sample.key().name,
        sample.fields().map(|(name, value)| format!("{name}={value:?}")).collect::<Vec<_>>()
    )
}

#[test]
fn fields_that_are_unpacked_are_decoded_by_the_rest_of_their_names() {
    let (registry, folder) = (registry(), tempfile::tempdir().unwrap());
    let (plain, _) = shards(folder.path());
    let found = values(&format!("files {plain} | untar | decompress | decode"), &registry, Setting::INLINE);
    assert_eq!(found.len(), SAMPLES);
    assert!(found[7].contains("\"json=Struct") && found[7].contains("Int(7)"), "{}", found[7]);
    let named = values(
        &format!("files {plain} | untar | decompress rename=false fields=[json.gz, txt]"),
        &registry,
        Setting::INLINE,
    );
    assert!(named[7].contains("\"json.gz=") && !named[7].contains("Struct"), "{}", named[7]);
}

#[test]
fn a_packed_shard_gives_what_the_plain_one_gives() {
    within_deadline(|| {
        let (registry, folder) = (registry(), tempfile::tempdir().unwrap());
        let (plain, packed) = shards(folder.path());
        let truth = values(&format!("files {plain} | untar | decode"), &registry, Setting::INLINE);
        assert_eq!(truth.len(), SAMPLES);
        assert!(truth[7].contains("Int(7)") && truth[7].contains("text 7"), "{}", truth[7]);
        for executor in ALL {
            let setting = Setting { executor, ..Setting::INLINE };
            for graph in [
                format!("files {packed} | untar | decode"),
                format!("files {packed} open=none | untar | decode"),
                format!("files {packed} | decompress | untar | decode"),
                format!("files {packed} open=none | decompress | untar | decode"),
            ] {
                assert_eq!(values(&graph, &registry, setting), truth, "{graph}");
            }
        }
    });
}

#[test]
fn a_resume_within_a_packed_shard_goes_on_exactly() {
    within_deadline(|| {
        let (registry, folder) = (registry(), tempfile::tempdir().unwrap());
        let (_, packed) = shards(folder.path());
        let graph = line(&format!("files {packed} | untar | decode"));
        let setting = Setting { marks: true, ..Setting::INLINE };
        let whole = values(&format!("files {packed} | untar | decode"), &registry, setting);
        for stop in [0, 1, 17, SAMPLES - 1] {
            let mut loader = build(&graph, &registry, setting).unwrap();
            let mut epoch = loader.epoch(0);
            let first: Vec<_> = epoch.by_ref().take(stop).map(|sample| shown(&sample.unwrap())).collect();
            let snapshot = epoch.snapshot().unwrap();
            let mut other = build(&graph, &registry, setting).unwrap();
            let rest = other.resume(&snapshot).unwrap().map(|sample| shown(&sample.unwrap()));
            assert_eq!(first.into_iter().chain(rest).collect::<Vec<_>>(), whole, "{stop}");
        }
    });
}

#[test]
fn pieces_of_a_shard_give_what_the_whole_gives() {
    within_deadline(|| {
        let (registry, folder) = (registry(), tempfile::tempdir().unwrap());
        let (plain, packed) = shards(folder.path());
        let truth = samples(&format!("files {plain} | untar"), &registry);
        assert_eq!(truth.len(), SAMPLES);
        let index = format!("{plain}.index");
        for source in [format!("files {plain}"), format!("files {plain} open=none")] {
            for options in ["", "samples=1", "samples=7 index=beside", "samples=1000 index=beside"] {
                let graph = format!("{source} | tar_pieces {options} | untar_pieces");
                assert_eq!(samples(&graph, &registry), truth, "{graph}");
            }
        }
        let kept = fs::read(&index).unwrap();
        let mut shuffled =
            samples(&format!("files {plain} | tar_pieces samples=1 | shuffle 99 | untar_pieces"), &registry);
        assert_ne!(shuffled, truth);
        shuffled.sort_by_key(|sample| sample.0);
        let mut sorted = truth.clone();
        sorted.sort_by_key(|sample| sample.0);
        assert_eq!(shuffled, sorted);

        // An index of another file, or a broken one, is made anew.
        let with_index = format!("files {plain} | tar_pieces index=beside | untar_pieces");
        for broken in
            [kept[..kept.len() - 8].to_vec(), kept.iter().map(|byte| byte ^ 1).collect(), Vec::new()]
        {
            fs::write(&index, broken).unwrap();
            assert_eq!(samples(&with_index, &registry), truth);
            assert_eq!(fs::read(&index).unwrap(), kept);
        }
        let shorter = fs::read(&plain).unwrap()[..10 * 4 * 512].to_vec();
        fs::write(&plain, shorter).unwrap();
        let found = samples(&with_index, &registry);
        assert!(!found.is_empty() && found.len() < SAMPLES && found[..] == truth[..found.len()]);

        let refused = error_of(
            &line(&format!("files {packed} | tar_pieces | untar_pieces")),
            &registry,
            Setting::INLINE,
        );
        assert_eq!(refused.0.kind(), ErrorKind::Unsupported, "{}", refused.0);
    });
}

/// Uid, key, number and values of each sample.
fn samples(text: &str, registry: &Registry) -> Vec<(u64, String)> {
    let mut loader = build(&line(text), registry, Setting::threads(2)).unwrap();
    let epoch = loader.epoch(0).map(Result::unwrap);
    epoch
        .map(|sample| (sample.uid(), format!("{} {} {}", sample.key(), sample.key().index, shown(&sample))))
        .collect()
}

#[test]
fn damage_is_met_by_the_piece_before_it() {
    within_deadline(|| {
        let (registry, folder) = (registry(), tempfile::tempdir().unwrap());
        let (plain, _) = shards(folder.path());
        let mut bytes = fs::read(&plain).unwrap();
        let middle = bytes.len() / 2048 * 1024;
        bytes[middle..middle + 1024].fill(7);
        fs::write(&plain, bytes).unwrap();
        let error =
            |graph: &str| error_of(&line(&format!("files {plain} | {graph}")), &registry, Setting::INLINE);
        let (whole, pieces) = (error("untar"), error("tar_pieces samples=3 | untar_pieces"));
        assert_eq!(
            (whole.0.message(), whole.0.get("byte"), whole.1),
            (pieces.0.message(), pieces.0.get("byte"), pieces.1)
        );
        assert_eq!(whole.0.kind(), ErrorKind::Corrupt);
    });
}

#[test]
fn a_shard_that_ends_early_is_an_error_that_names_it() {
    within_deadline(|| {
        let (registry, folder) = (registry(), tempfile::tempdir().unwrap());
        let (_, packed) = shards(folder.path());
        let bytes = fs::read(&packed).unwrap();
        fs::write(&packed, &bytes[..bytes.len() / 2]).unwrap();
        for (graph, pipe) in [("untar", "untar"), ("decompress | untar", "decompress")] {
            let graph = line(&format!("files {packed} | {graph} | decode"));
            let (error, _) = error_of(&graph, &registry, Setting::INLINE);
            let text = error.to_string();
            assert_eq!((error.kind(), error.get("pipe")), (ErrorKind::Corrupt, Some(pipe)), "{text}");
            assert!(text.contains("packed.tar") && text.contains("truncated gzip data"), "{text}");
        }
    });
}

#[test]
fn the_files_of_a_zip_archive_are_samples_and_their_fields() {
    within_deadline(|| {
        let (registry, folder) = (registry(), tempfile::tempdir().unwrap());
        let path = folder.path().join("a.zip");
        // One stored member, `a.txt`, with the text `heron`.
        let head = |magic: &[u8], made: &[u8]| [magic, made, &[20, 0, 0, 0, 0, 0, 0, 0, 0, 0]].concat();
        let sums = [&flate2_crc(b"heron").to_le_bytes()[..], &[5, 0, 0, 0, 5, 0, 0, 0, 5, 0, 0, 0]].concat();
        let local = [&head(b"PK\x03\x04", &[])[..], &sums, b"a.txtheron"].concat();
        let entry = [&head(b"PK\x01\x02", &[20, 0])[..], &sums, &[0; 14], b"a.txt"].concat();
        let places = [entry.len() as u32, local.len() as u32].map(u32::to_le_bytes).concat();
        let end = [&b"PK\x05\x06\0\0\0\0\x01\0\x01\0"[..], &places, &[0, 0]].concat();
        fs::write(&path, [local, entry, end].concat()).unwrap();
        let path = path.to_str().unwrap();
        for source in [format!("files {path}"), format!("files {path} open=none")] {
            for (options, key, field) in [("", "a ", "txt="), ("group=none", "a.txt ", "name=")] {
                let found = values(&format!("{source} | unzip {options}"), &registry, Setting::threads(2));
                assert_eq!(found.len(), 1);
                assert!(found[0].starts_with(key) && found[0].contains(field), "{found:?}");
            }
        }
    });
}

fn flate2_crc(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}
