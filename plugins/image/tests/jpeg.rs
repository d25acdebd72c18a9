//! Files that libjpeg-turbo wrote by scripts of its own making: progressive, with all kinds of planes, colours and restarts. They give the
//! pixels that Pillow has of them, whole and in part; what is cut off or broken is an error with its byte.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::path::Path;

use forebay_core::{Error, ErrorKind};
use forebay_image::{Crop, Jpeg, Pixels, cut};
use jpeg_encoder::{ColorType, Encoder, SamplingFactor};
use sha2::{Digest, Sha256};

const MAX: u64 = 64 << 20;

fn whole(bytes: &[u8]) -> Result<([usize; 2], Vec<u8>), Error> {
    let jpeg = Jpeg::open(bytes, MAX)?;
    let [height, width] = jpeg.size();
    let mut out = vec![0x5a; height * width * 3];
    jpeg.read(&mut out).map(|()| ([height, width], out))
}

/// Some rectangles of a picture, all over it, equal those of the whole.
fn check_parts(name: &str, bytes: &[u8]) {
    let ([height, width], pixels) = whole(bytes).unwrap();
    let pixels = Pixels::new(&pixels, [height, width, 3]).unwrap();
    for at in 0..12 {
        let (top, left) = (at * 5 % height, at * 7 % width);
        let (rows, columns) = (1 + at * 11 % (height - top), 1 + at * 13 % (width - left));
        let crop = Crop { top, left, height: rows, width: columns };
        let (mut expected, mut found) = (vec![0; rows * columns * 3], vec![0xa5; rows * columns * 3]);
        cut(&pixels, crop, &mut expected).unwrap();
        Jpeg::open(bytes, MAX).unwrap().read_region(crop, &mut found).unwrap();
        assert!(found == expected, "{name}: {crop:?} of {height} x {width}");
    }
}

/// The files in `jpeg/`, with the hashes of the pixels that Pillow 13 with libjpeg-turbo 3.2 makes of them.
fn files() -> Vec<(String, Vec<u8>, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/jpeg");
    let list = std::fs::read_to_string(folder.join("pixels.sha256")).unwrap();
    let file = |line: &str| {
        let (hash, name) = line.split_once("  ").unwrap();
        (name.to_owned(), std::fs::read(folder.join(name)).unwrap(), hash.to_owned())
    };
    list.lines().map(file).collect()
}

#[test]
fn files_by_libjpeg_give_its_pixels() {
    let files = files();
    assert_eq!(files.len(), 20);
    for (name, bytes, expected) in files {
        let (_, pixels) = whole(&bytes).unwrap();
        let hash: String = Sha256::digest(pixels).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hash, expected, "{name}");
        check_parts(&name, &bytes);
    }
}

#[test]
fn what_is_cut_off_is_told_with_a_marker_of_the_end_and_without() {
    for (name, bytes, _) in files() {
        let needed = bytes.len() - 2;
        assert_eq!(bytes[needed..], [0xff, 0xd9]);
        assert!(whole(&bytes[..needed]).unwrap() == whole(&bytes).unwrap(), "{name}");
        for len in 0..needed {
            let error = whole(&bytes[..len]).unwrap_err();
            assert!(error.message().contains("ends early"), "{name}, {len} of {needed}: {error}");
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            assert!(error.get("byte").unwrap().parse::<usize>().unwrap() <= len);
            assert!(whole(&[&bytes[..len], &[0xff, 0xd9]].concat()).is_err(), "{name}, {len} of {needed}");
        }
    }
}

/// A picture with edges and some noise.
fn picture(height: usize, width: usize) -> Vec<u8> {
    let level = |at: usize| {
        let (y, x) = (at / width, at % width);
        let edge = if (x / 5 + y / 7) % 2 == 0 { 90 } else { 0 };
        [x * 3 + edge, y * 2 + at * at % 41, 200 - edge].map(|level| level.min(255) as u8)
    };
    (0..height * width).flat_map(level).collect()
}

#[test]
fn progressive_files_are_the_same_picture_as_sequential_ones() {
    use SamplingFactor::{F_1_1, F_1_2, F_1_4, F_2_1, F_2_2, F_2_4, F_4_1, F_4_2};
    for (index, sampling) in [F_1_1, F_2_1, F_1_2, F_2_2, F_4_1, F_4_2, F_1_4, F_2_4].into_iter().enumerate()
    {
        for step in 0..40 {
            let (height, width) = (1 + step * (index + 3) % 40, 1 + step);
            let encoded = |scans: Option<u8>| {
                let mut bytes = Vec::new();
                let mut encoder = Encoder::new(&mut bytes, [40, 80, 95][step % 3]);
                encoder.set_sampling_factor(sampling);
                encoder.set_restart_interval([0, 1, 3][step % 3]);
                if let Some(scans) = scans {
                    encoder.set_progressive_scans(scans);
                }
                let size = (width as u16, height as u16);
                encoder.encode(&picture(height, width), size.0, size.1, ColorType::Rgb).unwrap();
                bytes
            };
            let sequential = whole(&encoded(None)).unwrap();
            let bytes = encoded(Some(2 + step as u8 % 30));
            assert!(whole(&bytes).unwrap() == sequential, "{sampling:?}, {height} x {width}");
            check_parts("progressive", &bytes);
        }
    }
}

/// A progressive file of one grey block with these scans, each the first and the last coefficient and the bits; all that comes is zero.
fn with_scans(scans: &[[u8; 3]]) -> Vec<u8> {
    let mut bytes = b"\xff\xd8\xff\xdb\0\x43\0".to_vec();
    bytes.extend([1; 64]);
    bytes.extend(b"\xff\xc2\0\x0b\x08\0\x08\0\x08\x01\x01\x11\0");
    for kind in [0x00, 0x10] {
        // One code, the bit 0: no difference, and the end of the block.
        bytes.extend([0xff, 0xc4, 0, 20, kind, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }
    for scan in scans {
        bytes.extend(b"\xff\xda\0\x08\x01\x01\0");
        bytes.extend(scan);
        bytes.push(0x7f);
    }
    bytes.extend(b"\xff\xd9");
    bytes
}

#[test]
fn every_bit_of_every_coefficient_comes_once() {
    let (before, scan) = (with_scans(&[]).len() - 2, 11);
    let grey = ([8, 8], vec![128; 8 * 8 * 3]);
    for scans in [
        &[[0, 0, 0], [1, 63, 0]][..],
        &[[1, 63, 1], [0, 0, 0x0d], [0, 0, 0xdc], [1, 9, 0x10], [0, 0, 0xcb], [10, 63, 0x10]],
    ] {
        let mut scans = scans.to_vec();
        // What is left of the first coefficient.
        let lowest = if scans.len() > 2 { 11 } else { 0 };
        scans.extend((0..lowest).rev().map(|low| [0, 0, (low + 1) << 4 | low]));
        assert!(whole(&with_scans(&scans)).unwrap() == grey, "{scans:?}");
    }
    let missing: [&[[u8; 3]]; 6] = [
        &[],
        &[[0, 0, 0]],
        &[[1, 63, 0]],
        &[[0, 0, 1], [1, 63, 0]],
        &[[0, 0, 0], [1, 5, 0], [7, 63, 0]],
        &[[0, 0, 0], [1, 63, 2], [1, 63, 0x21]],
    ];
    for scans in missing {
        let bytes = with_scans(scans);
        let error = whole(&bytes).unwrap_err();
        assert!(error.message().contains("ends early: scans are missing"), "{scans:?}: {error}");
        assert_eq!(error.get("byte"), Some(&*(bytes.len() - 2).to_string()));
    }
    let wrong: [(&[[u8; 3]], &str); 10] = [
        (&[[0, 5, 0]], "cannot be"),
        (&[[5, 4, 0]], "cannot be"),
        (&[[1, 64, 0]], "cannot be"),
        (&[[1, 63, 14]], "cannot be"),
        (&[[0, 0, 2], [0, 0, 0x20]], "cannot be"),
        (&[[0, 0, 0x10]], "came before"),
        (&[[0, 0, 0], [0, 0, 0]], "came before"),
        (&[[0, 0, 2], [0, 0, 0x10]], "came before"),
        (&[[0, 0, 0], [1, 9, 0], [9, 63, 0]], "came before"),
        (&[[1, 63, 1], [1, 63, 0x10], [1, 63, 0x10]], "came before"),
    ];
    for (scans, word) in wrong {
        let error = whole(&with_scans(scans)).unwrap_err();
        assert!(error.message().contains(word), "{scans:?}: {error}");
        assert_eq!(error.get("byte"), Some(&*(before + (scans.len() - 1) * scan).to_string()));
    }
}

#[test]
fn scans_are_counted() {
    let scans = |bits: u8| {
        let of_one = |at| {
            (0..bits).rev().map(move |low| [at, at, if low + 1 == bits { low } else { (low + 1) << 4 | low }])
        };
        let scans: Vec<_> = (1..=63).flat_map(of_one).chain([[0, 0, 0]]).collect();
        whole(&with_scans(&scans))
    };
    assert!(scans(4).is_ok(), "253 scans");
    let error = scans(5).unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Limit, "JPEG has more than 256 scans"));
}

#[test]
fn tables_and_components_that_are_missing_are_told() {
    let good = with_scans(&[[0, 0, 0], [1, 63, 0]]);
    let scan = with_scans(&[]).len() - 2;
    for (at, value, word) in
        [(scan + 6, 0x10, "tables"), (scan + 5, 9, "components"), (scan + 4, 2, "components")]
    {
        let mut bytes = good.clone();
        bytes[at] = value;
        let error = whole(&bytes).unwrap_err();
        assert!(error.message().contains(word), "{error}");
        assert_eq!(error.get("byte"), Some(&*scan.to_string()));
    }
    // A code that the table lacks, in the second scan.
    let mut bytes = good.clone();
    let data = good.len() - 3;
    bytes[data] = 0xbf;
    let error = whole(&bytes).unwrap_err();
    assert!(error.message().contains("a code"), "{error}");
    assert_eq!(error.get("byte"), Some(&*data.to_string()));
}

#[test]
fn a_short_file_gets_no_large_memory() {
    let mut bytes = with_scans(&[[0, 0, 0]]);
    let frame = bytes.windows(2).position(|two| two == [0xff, 0xc2]).unwrap();
    bytes[frame + 5..frame + 9].copy_from_slice(&[0xff, 0xff, 0xff, 0xff]);
    let jpeg = Jpeg::open(&bytes, u64::MAX).unwrap();
    let error = jpeg.read_region(Crop { top: 0, left: 0, height: 1, width: 1 }, &mut [0; 3]).unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Corrupt, "JPEG data ends early"));
}

#[test]
fn motion_jpeg_leaves_out_the_tables_of_the_standard() {
    let mut bytes = Vec::new();
    Encoder::new(&mut bytes, 90).encode(&picture(30, 50), 50, 30, ColorType::Rgb).unwrap();
    let mut without = bytes.clone();
    while let Some(at) = without.windows(2).position(|two| two == [0xff, 0xc4]) {
        let len = usize::from(without[at + 2]) << 8 | usize::from(without[at + 3]);
        without.drain(at..at + 2 + len);
    }
    assert!(without.len() < bytes.len() - 400);
    assert!(whole(&without).unwrap() == whole(&bytes).unwrap());
}
