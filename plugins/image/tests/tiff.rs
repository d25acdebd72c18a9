//! TIFF pages made here by hand: depths, planes, palettes, predictors, tiles, and bytes that are broken or missing.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::io::Write as _;
use std::panic::catch_unwind;

use forebay_core::{Buffer, DType, Decoder, Error, ErrorKind, Limits, NoOptions, Value, Wanted};
use forebay_image::{Tiff, TiffDecoder};
use forebay_testkit::Host;

const MAX: u64 = 1 << 20;

/// A file of one page: its tags with their values, and the strips or tiles, which come first.
fn file(tags: &[(u16, &[u32])], chunks: &[&[u8]]) -> Vec<u8> {
    let mut bytes = b"II*\0\0\0\0\0".to_vec();
    let mut offsets = Vec::new();
    for chunk in chunks {
        offsets.push(bytes.len() as u32);
        bytes.extend_from_slice(chunk);
    }
    let lengths: Vec<u32> = chunks.iter().map(|chunk| chunk.len() as u32).collect();
    let tiled = tags.iter().any(|(tag, _)| *tag == 322);
    let mut all = tags.to_vec();
    all.push((if tiled { 324 } else { 273 }, &offsets));
    all.push((if tiled { 325 } else { 279 }, &lengths));
    all.sort_by_key(|(tag, _)| *tag);
    let mut entries = Vec::new();
    for (tag, values) in &all {
        entries.extend(tag.to_le_bytes());
        entries.extend(4_u16.to_le_bytes());
        entries.extend((values.len() as u32).to_le_bytes());
        match values {
            [value] => entries.extend(value.to_le_bytes()),
            _ => {
                entries.extend((bytes.len() as u32).to_le_bytes());
                bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
            }
        }
    }
    let at = bytes.len() as u32;
    bytes[4..8].copy_from_slice(&at.to_le_bytes());
    bytes.extend((all.len() as u16).to_le_bytes());
    bytes.extend(entries);
    bytes.extend([0; 4]);
    bytes
}

fn rgb(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let tiff = Tiff::open(bytes, MAX)?;
    let [height, width] = tiff.size();
    let mut out = vec![0x5a; height * width * 3];
    tiff.read(&mut out).map(|()| out)
}

fn samples(bytes: &[u8]) -> Result<(DType, [usize; 3], Vec<u8>), Error> {
    let tiff = Tiff::open(bytes, MAX)?;
    let [height, width, channels] = tiff.shape();
    let mut out = vec![0x5a; height * width * channels * tiff.dtype().size()];
    tiff.read_samples(&mut out).map(|()| (tiff.dtype(), tiff.shape(), out))
}

/// Two rows of three grey pixels of 12 bits, each row in a strip: 0x001 to 0x006.
fn grey12() -> Vec<u8> {
    let tags: [(u16, &[u32]); 5] = [(256, &[3]), (257, &[2]), (258, &[12]), (262, &[1]), (278, &[1])];
    file(&tags, &[&[0x00, 0x10, 0x02, 0x00, 0x30], &[0x00, 0x40, 0x05, 0x00, 0x60]])
}

/// 2 x 2 pixels of RGB, each colour in a strip of its own.
fn planes() -> Vec<u8> {
    let tags: [(u16, &[u32]); 6] =
        [(256, &[2]), (257, &[2]), (258, &[8, 8, 8]), (262, &[2]), (277, &[3]), (284, &[2])];
    file(&tags, &[&[1, 2, 3, 4], &[11, 12, 13, 14], &[21, 22, 23, 24]])
}

/// 3 x 1 pixels of two bits and four colours, packed with PackBits.
fn palette() -> Vec<u8> {
    let colors = [0, 0xff00, 0, 0x8000, 0, 0, 0xff00, 0x8000, 0x1234, 0, 0, 0x8000];
    let tags: [(u16, &[u32]); 6] =
        [(256, &[3]), (257, &[1]), (258, &[2]), (259, &[32773]), (262, &[3]), (320, &colors)];
    file(&tags, &[&[0, 0b01_10_11_00]])
}

/// 3 x 3 grey pixels in four tiles of 2 x 2, the numbers as differences, turned by 90 degrees.
fn tiles() -> Vec<u8> {
    let tags: [(u16, &[u32]); 8] = [
        (256, &[3]),
        (257, &[3]),
        (258, &[8]),
        (262, &[0]),
        (274, &[6]),
        (317, &[2]),
        (322, &[2]),
        (323, &[2]),
    ];
    file(&tags, &[&[1, 1, 4, 1], &[3, 0, 6, 0], &[7, 1, 0, 0], &[9, 0, 0, 0]])
}

/// Two floats, whose bytes stand sorted and as differences.
fn floats() -> Vec<u8> {
    let tags: [(u16, &[u32]); 6] =
        [(256, &[2]), (257, &[1]), (258, &[32]), (262, &[1]), (317, &[3]), (339, &[3])];
    let [one, two] = [1.5_f32.to_be_bytes(), (-0.25_f32).to_be_bytes()];
    let mut row: Vec<u8> = (0..4).flat_map(|byte| [one[byte], two[byte]]).collect();
    for index in (1..row.len()).rev() {
        row[index] = row[index].wrapping_sub(row[index - 1]);
    }
    file(&tags, &[&row])
}

#[test]
fn odd_depths_are_kept_and_shown() {
    let (dtype, shape, bytes) = samples(&grey12()).unwrap();
    assert_eq!((dtype, shape), (DType::U16, [2, 3, 1]));
    let numbers: Vec<_> = bytes.as_chunks::<2>().0.iter().map(|bytes| u16::from_ne_bytes(*bytes)).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
    assert_eq!(rgb(&grey12()).unwrap(), [0; 18]);
}

#[test]
fn planes_are_put_together() {
    assert_eq!(rgb(&planes()).unwrap(), [1, 11, 21, 2, 12, 22, 3, 13, 23, 4, 14, 24]);
}

#[test]
fn numbers_of_colours_become_colours() {
    assert_eq!(rgb(&palette()).unwrap(), [0xff, 0, 0, 0, 0xff, 0, 0x80, 0x80, 0x80]);
}

#[test]
fn tiles_are_put_together_and_turned() {
    let expected: Vec<u8> = [7, 4, 1, 8, 5, 2, 9, 6, 3].iter().flat_map(|level| [255 - level; 3]).collect();
    assert_eq!(rgb(&tiles()).unwrap(), expected);
    assert_eq!(samples(&tiles()).unwrap().2, [7, 4, 1, 8, 5, 2, 9, 6, 3]);
}

fn decode(bytes: Vec<u8>, dtype: DType) -> Result<Value, Error> {
    let host = Host::new().limits(Limits { bytes: 1 << 24, pixels: MAX });
    let wanted = Wanted { dtype, extension: "" };
    TiffDecoder::new(NoOptions)?.decode(&Buffer::from(bytes), &wanted, &host.context())
}

#[test]
fn floats_come_as_they_are_and_integers_where_they_are_wanted() {
    let value = decode(floats(), DType::ANY).unwrap();
    let tensor = value.as_tensor().unwrap();
    assert_eq!((tensor.dtype(), tensor.shape()), (DType::F32, &[1, 2, 1][..]));
    assert_eq!(tensor.data().as_slice(), [1.5_f32.to_ne_bytes(), (-0.25_f32).to_ne_bytes()].concat());
    assert_eq!(decode(floats(), DType::U8).unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(decode(grey12(), DType::U16).unwrap().as_tensor().unwrap().shape(), [2, 3, 1]);
    assert_eq!(decode(grey12(), DType::ANY).unwrap().as_tensor().unwrap().shape(), [2, 3, 3]);
}

#[test]
fn what_is_missing_is_told() {
    let cut = file(&[(256, &[3]), (257, &[2]), (258, &[8]), (262, &[1])], &[&[1, 2, 3, 4, 5]]);
    let error = rgb(&cut).unwrap_err();
    assert_eq!((error.kind(), error.get("byte")), (ErrorKind::Corrupt, Some("8")));
    assert!(error.message().contains("5 bytes of 6"), "{error}");
    let huge = file(&[(256, &[1 << 20]), (257, &[1 << 20]), (258, &[8]), (262, &[1])], &[&[1]]);
    assert_eq!(rgb(&huge).unwrap_err().kind(), ErrorKind::Limit);
    // A tile far larger than the picture would be unpacked whole.
    let tags: [(u16, &[u32]); 6] =
        [(256, &[1]), (257, &[1]), (258, &[8]), (262, &[1]), (322, &[1 << 16]), (323, &[1 << 16])];
    assert_eq!(rgb(&file(&tags, &[&[1]])).unwrap_err().kind(), ErrorKind::Limit);
}

/// 16 x 32 pixels of RGB, each row darker than the one above it.
fn smooth() -> Vec<u8> {
    (0..32).flat_map(|y| [200 - y * 4, 90 + y * 2, 30 + y].repeat(16)).collect()
}

/// They are as JPEG without YCbCr, which the numbers of the components say, as libtiff writes them.
fn jpeg_of_rgb() -> Vec<u8> {
    let mut jpeg = Vec::new();
    let encoder = jpeg_encoder::Encoder::new(&mut jpeg, 100);
    encoder.encode(&smooth(), 16, 32, jpeg_encoder::ColorType::Ycbcr).unwrap();
    let place = |jpeg: &[u8], marker| jpeg.windows(2).position(|two| two == [0xff, marker]).unwrap();
    let jfif = place(&jpeg, 0xe0);
    jpeg.drain(jfif..jfif + 2 + usize::from(jpeg[jfif + 3]));
    let (frame, scan) = (place(&jpeg, 0xc0) + 10, place(&jpeg, 0xda) + 5);
    for (index, name) in b"RGB".iter().enumerate() {
        jpeg[frame + index * 3] = *name;
        jpeg[scan + index * 2] = *name;
    }
    jpeg
}

#[test]
fn jpeg_of_rgb_stays_rgb_and_must_be_whole() {
    let tags: [(u16, &[u32]); 6] =
        [(256, &[16]), (257, &[32]), (258, &[8, 8, 8]), (259, &[7]), (262, &[2]), (277, &[3])];
    let jpeg = jpeg_of_rgb();
    let found = rgb(&file(&tags, &[&jpeg])).unwrap();
    let worst = found.iter().zip(smooth()).map(|(found, expected)| found.abs_diff(expected)).max();
    assert!(worst <= Some(3), "{worst:?}");
    let error = rgb(&file(&tags, &[&jpeg[..jpeg.len() - 40]])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
}

#[test]
fn deflate_is_held_to_its_checksum() {
    let tags: [(u16, &[u32]); 5] = [(256, &[40]), (257, &[2]), (258, &[8]), (259, &[8]), (262, &[1])];
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(&[7; 80]).unwrap();
    let mut packed = packed.finish().unwrap();
    assert_eq!(rgb(&file(&tags, &[&packed])).unwrap(), [7; 240]);
    // What follows is of no concern.
    assert_eq!(rgb(&file(&tags, &[&[&packed[..], &[1, 2]].concat()])).unwrap(), [7; 240]);
    for cut in 1..=4 {
        let error = rgb(&file(&tags, &[&packed[..packed.len() - cut]])).unwrap_err();
        assert_eq!((error.kind(), error.get("byte")), (ErrorKind::Corrupt, Some("8")), "{cut}");
    }
    *packed.last_mut().unwrap() ^= 1;
    assert_eq!(rgb(&file(&tags, &[&packed])).unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn the_last_line_of_a_fax_needs_no_mark_behind_it() {
    let tags: [(u16, &[u32]); 5] = [(256, &[8]), (257, &[2]), (258, &[1]), (259, &[3]), (262, &[0])];
    // A mark, 8 white; a mark, 0 white and 8 black.
    let lines = [0b0000_0000, 0b0001_1001, 0b1000_0000, 0b0000_1001, 0b1010_1000, 0b1010_0000];
    let expected = [[255; 24], [0; 24]].concat();
    assert_eq!(rgb(&file(&tags, &[&lines])).unwrap(), expected);
    assert_eq!(rgb(&file(&tags, &[&[&lines[..], &[0, 1]].concat()])).unwrap(), expected);
    // Cut within the last line, and before it.
    for len in [5, 4, 3, 2] {
        let error = rgb(&file(&tags, &[&lines[..len]])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{len}");
    }
    let marked = [0b0000_0000, 0b0001_1001, 0b1000_0000, 0b0000_1000];
    assert_eq!(rgb(&file(&tags, &[&marked])).unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn differences_of_ycbcr_are_summed() {
    let page = |sharing: [u32; 2], predictor: u32, row: &[u8]| {
        let tags: [(u16, &[u32]); 7] = [
            (256, &[2]),
            (257, &[1]),
            (258, &[8, 8, 8]),
            (262, &[6]),
            (277, &[3]),
            (317, &[predictor]),
            (530, &sharing),
        ];
        rgb(&file(&tags, &[row]))
    };
    let plain = page([1, 1], 1, &[100, 120, 140, 110, 125, 130]).unwrap();
    assert_eq!(page([1, 1], 2, &[100, 120, 140, 10, 5, 246]).unwrap(), plain);
    assert_eq!(page([2, 1], 1, &[100, 110, 120, 140]).unwrap()[..3], plain[..3]);
    assert_eq!(page([2, 1], 2, &[100, 110, 120, 140]).unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn a_tag_without_a_value_is_broken() {
    let tags: [(u16, &[u32]); 4] = [(256, &[2]), (257, &[1]), (258, &[8]), (262, &[1])];
    assert!(rgb(&file(&tags, &[&[1, 2]])).is_ok());
    for tag in [274, 277, 278, 317, 338] {
        let error = rgb(&file(&[&tags[..], &[(tag, &[])]].concat(), &[&[1, 2]])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{tag}");
        assert!(error.message().contains(&tag.to_string()), "{error}");
    }
}

#[test]
fn more_samples_than_can_be_counted_are_over_the_limit() {
    let tags = [(256, 4), (257, 4), (258, 8), (262, 1), (273, 8), (277, 1_u64 << 60), (279, 16)];
    let mut big = b"II+\0\x08\0\0\0\x10\0\0\0\0\0\0\0".to_vec();
    big.extend((tags.len() as u64).to_le_bytes());
    for (tag, value) in tags {
        big.extend([&u16::to_le_bytes(tag)[..], &16_u16.to_le_bytes(), &1_u64.to_le_bytes()].concat());
        big.extend(value.to_le_bytes());
    }
    assert_eq!(Tiff::open(&big, MAX).unwrap_err().kind(), ErrorKind::Limit);
}

#[test]
fn broken_files_never_panic() {
    for good in [grey12(), planes(), palette(), tiles(), floats()] {
        for at in 0..good.len() {
            let _ = catch_unwind(|| (rgb(&good[..at]), samples(&good[..at]))).unwrap();
            for flip in [0x01, 0x80, 0xff] {
                let mut bytes = good.clone();
                bytes[at] ^= flip;
                let _ = catch_unwind(|| (rgb(&bytes), samples(&bytes))).unwrap();
            }
        }
    }
}
