//! Bad input through the real plugins: the error names file, member, pipe and plugin, on every executor.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{fs, os::unix::fs::symlink, path::Path};

use forebay_loader::{Error, ErrorKind, Registry};
use forebay_tests::{ALL, Setting, error_of, line, registry, root, within_deadline};

const GRAPH: &str = "untar | decode | select jpg | random_resized_crop 224 | flip | normalize | batch 8";

/// A shard with one member after a good one.
fn shard(folder: &Path, name: &str, bytes: &[u8]) -> String {
    let file = folder.join("bad.tar");
    let mut builder = tar::Builder::new(fs::File::create(&file).unwrap());
    for (name, bytes) in [("0001.jpg", jpeg().as_slice()), (name, bytes)] {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        builder.append_data(&mut header, name, bytes).unwrap();
    }
    builder.finish().unwrap();
    file.to_str().unwrap().to_owned()
}

/// A photograph of the example.
fn jpeg() -> Vec<u8> {
    let mut archive =
        tar::Archive::new(fs::File::open(root().join("examples/photos/photos-000000.tar")).unwrap());
    let mut entries = archive.entries().unwrap().map(Result::unwrap);
    let mut entry =
        entries.find(|entry| entry.path().unwrap().extension().is_some_and(|end| end == "jpg")).unwrap();
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut entry, &mut bytes).unwrap();
    bytes
}

/// The head of a PNG that says it has so many pixels; nothing else of it is there.
fn png(width: u32, height: u32) -> Vec<u8> {
    let mut header = b"IHDR".to_vec();
    header.extend(width.to_be_bytes());
    header.extend(height.to_be_bytes());
    header.extend([8, 2, 0, 0, 0]);
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\x0d".to_vec();
    bytes.extend(&header);
    bytes.extend(crc(&header).to_be_bytes());
    bytes
}

/// CRC-32 as PNG has it.
fn crc(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), step))
}

/// The error of this source followed by the usual graph, which is the same wherever it runs.
fn error(source: &str, registry: &Registry) -> Error {
    let graph = line(&format!("{source} | {GRAPH}"));
    let errors = ALL.map(|executor| error_of(&graph, registry, Setting { executor, ..Setting::INLINE }).0);
    for error in &errors {
        assert_eq!(error, &errors[0]);
    }
    errors[0].clone()
}

#[track_caller]
fn assert_told(error: &Error, kind: ErrorKind, pipe: &str, plugin: &str, says: &[&str]) {
    let text = error.to_string();
    assert_eq!((error.kind(), error.get("pipe")), (kind, Some(pipe)), "{text}");
    assert!(error.get("plugin").is_some_and(|told| told.contains(plugin)), "{text}");
    for part in says {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
    assert!(text.lines().count() <= 10, "{text}");
}

#[test]
fn paths_that_are_not_there() {
    within_deadline(|| {
        let registry = registry();
        let missing = error("files /nowhere/photos.tar", &registry);
        assert_told(
            &missing,
            ErrorKind::Io,
            "files",
            "libforebay_files.so",
            &["/nowhere/photos.tar", "No such file"],
        );
        let nothing = error("files '/nowhere/*.tar'", &registry);
        assert_eq!(nothing.get("pipe"), Some("files"), "{nothing}");
        assert!(nothing.to_string().contains("/nowhere"), "{nothing}");
    });
}

#[test]
fn paths_that_cannot_be_read() {
    within_deadline(|| {
        let registry = registry();
        let folder = tempfile::tempdir().unwrap();
        // Refused to everybody; permissions would not stop root.
        let circle = folder.path().join("circle.tar");
        symlink(&circle, &circle).unwrap();
        let inside = folder.path().join("file/inside.tar");
        fs::write(folder.path().join("file"), "").unwrap();
        for (path, says) in [(circle, "symbolic links"), (inside, "Not a directory")] {
            let error = error(&format!("files {}", path.display()), &registry);
            assert_told(
                &error,
                ErrorKind::Io,
                "files",
                "libforebay_files.so",
                &[path.to_str().unwrap(), says],
            );
        }
    });
}

#[test]
fn archives_that_are_none_or_end_too_early() {
    within_deadline(|| {
        let registry = registry();
        let folder = tempfile::tempdir().unwrap();
        let file = shard(folder.path(), "0002.jpg", &jpeg());
        let source = format!("files {file}");
        let whole = fs::read(&file).unwrap();

        fs::write(&file, &whole[..whole.len() - 1024 - 6000]).unwrap();
        let error_ = error(&source, &registry);
        assert_told(
            &error_,
            ErrorKind::Corrupt,
            "untar",
            "libforebay_tar.so",
            &[&file, "0002.jpg", "truncated"],
        );

        let mut damaged = whole.clone();
        damaged[3] ^= 0x55;
        fs::write(&file, &damaged).unwrap();
        let error_ = error(&source, &registry);
        assert_told(&error_, ErrorKind::Corrupt, "untar", "libforebay_tar.so", &[&file, "checksum"]);

        fs::write(&file, "no archive at all\n".repeat(100)).unwrap();
        let error_ = error(&source, &registry);
        assert_told(&error_, ErrorKind::Corrupt, "untar", "libforebay_tar.so", &[&file]);
    });
}

#[test]
fn pictures_that_are_broken() {
    within_deadline(|| {
        let registry = registry();
        let folder = tempfile::tempdir().unwrap();
        let good = jpeg();
        let mut torn = good.clone();
        torn.truncate(good.len() / 2);
        for bytes in [&torn[..], &good[..40], b"\xff\xd8\xff\xe0", b"no picture"] {
            let file = shard(folder.path(), "0002.jpg", bytes);
            let error = error(&format!("files {file}"), &registry);
            let text = error.to_string();
            assert!(
                matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported | ErrorKind::Invalid),
                "{text}"
            );
            for part in [file.as_str(), "0002", "jpg", "pipe "] {
                assert!(text.contains(part), "{part:?} is not in: {text}");
            }
        }
    });
}

#[test]
fn a_picture_of_ten_thousand_million_pixels_is_refused_before_memory_is_taken() {
    within_deadline(|| {
        let registry = registry();
        let folder = tempfile::tempdir().unwrap();
        let file = shard(folder.path(), "0002.png", &png(100_000, 100_000));
        let graph = line(&format!("files {file} | untar | decode"));
        for executor in ALL {
            let (error, _) = error_of(&graph, &registry, Setting { executor, ..Setting::INLINE });
            assert_told(
                &error,
                ErrorKind::Limit,
                "decode",
                "libforebay_image.so",
                &[&file, "0002", "png", "pixels"],
            );
        }
        let peak = fs::read_to_string("/proc/self/status").unwrap();
        let peak = peak.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap().trim();
        let peak: u64 = peak.trim_end_matches(" kB").parse().unwrap();
        assert!(peak < 2_000_000, "{peak} kB at its peak");
    });
}
