//! A part of a JPEG equals that part of the whole, whatever its size, sampling, restarts and orientation.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::path::{Path, PathBuf};

use forebay_core::{Buffer, Error, ErrorKind, Key, Limits, Map, Options, Sample, Str, Tensor};
use forebay_core::{DType, Decoder, NoOptions, TensorExt, Wanted};
use forebay_image::{
    CenterCrop, Crop, Flip, Format, Jpeg, JpegDecoder, Pixels, RandomResizedCrop, Raster, Resize, cut,
};
use forebay_testkit::Host;
use jpeg_encoder::{ColorType, Encoder, SamplingFactor};
use sha2::{Digest, Sha256};

const MAX: u64 = 64 << 20;

struct Random(u64);

impl Random {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % count
    }

    /// A rectangle inside; each of its sides is at the picture's in every third.
    fn crop(&mut self, [height, width]: [usize; 2]) -> Crop {
        let mut span = |side: usize| {
            let start = if self.below(3) == 0 { 0 } else { self.below(side) };
            let len = if self.below(3) == 0 { side - start } else { 1 + self.below(side - start) };
            (start, len)
        };
        let ((top, height), (left, width)) = (span(height), span(width));
        Crop { top, left, height, width }
    }
}

fn whole(bytes: &[u8]) -> Result<([usize; 2], Vec<u8>), Error> {
    let jpeg = Jpeg::open(bytes, MAX)?;
    let [height, width] = jpeg.size();
    let mut out = vec![0x5a; height * width * 3];
    jpeg.read(&mut out).map(|()| ([height, width], out))
}

fn part(bytes: &[u8], crop: Crop) -> Result<Vec<u8>, Error> {
    let mut out = vec![0xa5; crop.height * crop.width * 3];
    Jpeg::open(bytes, MAX)?.read_region(crop, &mut out).map(|()| out)
}

/// Compares `count` parts with those of the whole.
fn check_parts(name: &str, bytes: &[u8], random: &mut Random, count: usize) {
    let (size, pixels) = whole(bytes).unwrap();
    let pixels = Pixels::new(&pixels, [size[0], size[1], 3]).unwrap();
    for _ in 0..count {
        let crop = random.crop(size);
        let mut expected = vec![0; crop.height * crop.width * 3];
        cut(&pixels, crop, &mut expected).unwrap();
        assert!(part(bytes, crop).unwrap() == expected, "{name}: {crop:?} of {size:?}");
    }
}

/// A picture with edges and noise.
fn picture(height: usize, width: usize) -> Vec<u8> {
    let mut random = Random(5);
    (0..height * width)
        .flat_map(|at| {
            let (y, x) = (at / width, at % width);
            let edge = if (x / 5 + y / 7) % 2 == 0 { 90 } else { 0 };
            [x * 3 + edge, y * 2 + random.below(40), 200 - edge].map(|level| level.min(255) as u8)
        })
        .collect()
}

fn encoded(
    [height, width]: [usize; 2],
    sampling: Option<SamplingFactor>,
    quality: u8,
    restart: u16,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, quality);
    encoder.set_restart_interval(restart);
    let rgb = picture(height, width);
    let (data, color) = match sampling {
        Some(sampling) => {
            encoder.set_sampling_factor(sampling);
            (rgb, ColorType::Rgb)
        }
        None => (rgb.iter().step_by(3).copied().collect(), ColorType::Luma),
    };
    encoder.encode(&data, width as u16, height as u16, color).unwrap();
    bytes
}

/// The same with each component in a scan of its own.
fn separate(size: [usize; 2], sampling: SamplingFactor) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, 90);
    encoder.set_sampling_factor(sampling);
    encoder.set_optimized_huffman_tables(true);
    let [height, width] = size;
    encoder.encode(&picture(height, width), width as u16, height as u16, ColorType::Rgb).unwrap();
    assert_eq!(bytes.windows(2).filter(|two| *two == [0xff, 0xda]).count(), 3);
    bytes
}

const SAMPLINGS: [Option<SamplingFactor>; 5] = [
    None,
    Some(SamplingFactor::R_4_4_4),
    Some(SamplingFactor::R_4_2_2),
    Some(SamplingFactor::R_4_4_0),
    Some(SamplingFactor::R_4_2_0),
];

#[test]
fn components_in_separate_scans_are_the_same_picture() {
    let mut random = Random(3);
    for sampling in SAMPLINGS.into_iter().flatten() {
        for size in [[1, 1], [8, 8], [9, 17], [16, 16], [31, 47], [101, 33]] {
            let bytes = separate(size, sampling);
            let (_, expected) = whole(&encoded(size, Some(sampling), 90, 0)).unwrap();
            assert!(whole(&bytes).unwrap() == (size, expected), "{sampling:?} {size:?}");
            check_parts("separate", &bytes, &mut random, 5);
        }
    }
    let bytes = separate([31, 47], SamplingFactor::R_4_2_0);
    for len in 0..bytes.len() - 2 {
        assert!(whole(&bytes[..len]).is_err(), "{len} of {}", bytes.len());
    }
}

#[test]
fn every_size_sampling_and_restart() {
    let mut random = Random(1);
    let sides = [1, 2, 3, 4, 5, 7, 8, 9, 13, 15, 16, 17, 23, 31, 32, 33, 47, 67, 101];
    for sampling in SAMPLINGS {
        for (index, height) in sides.into_iter().enumerate() {
            for (step, width) in sides.into_iter().enumerate() {
                let restart = [0, 1, 2, 5, 13][(index + step) % 5];
                let quality = [30, 75, 90, 99][(index * 3 + step) % 4];
                let bytes = encoded([height, width], sampling, quality, restart);
                let name = format!("{height} x {width}, {sampling:?}, restart {restart}, quality {quality}");
                check_parts(&name, &bytes, &mut random, 6);
            }
        }
    }
}

#[test]
fn every_orientation() {
    let mut random = Random(2);
    for orientation in 1..=8 {
        for progressive in [false, true] {
            let mut bytes = Vec::new();
            let mut encoder = Encoder::new(&mut bytes, 85);
            encoder.set_progressive(progressive);
            encoder.encode(&picture(53, 71), 71, 53, ColorType::Rgb).unwrap();
            let mut block =
                b"\xff\xe1\0\x22Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\0\0\0\0\0\0\0"
                    .to_vec();
            block[29] = orientation;
            bytes.splice(2..2, block);
            check_parts(
                &format!("orientation {orientation}, progressive {progressive}"),
                &bytes,
                &mut random,
                20,
            );
        }
    }
}

#[test]
fn every_file_of_the_corpora() {
    let root = std::env::var_os("FOREBAY_CORPORA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora"), PathBuf::from);
    let mut folders = vec![root.join("files")];
    let mut random = Random(3);
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        for path in entries.map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let Ok(bytes) = std::fs::read(&path) else { continue };
            if bytes.starts_with(b"\xff\xd8") && whole(&bytes).is_ok() {
                check_parts(&path.display().to_string(), &bytes, &mut random, 8);
            }
        }
    }
}

/// The JPEG files in the shards of the examples.
fn photos() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/photos");
    let mut shards: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    shards.retain(|path| path.extension().is_some_and(|extension| extension == "tar"));
    shards.sort();
    let mut photos = Vec::new();
    for shard in shards {
        let bytes = std::fs::read(shard).unwrap();
        let mut rest = bytes.as_slice();
        while rest.first().is_some_and(|byte| *byte != 0) {
            let octal =
                |digits: &[u8]| digits.iter().fold(0, |sum, digit| sum * 8 + usize::from(digit - b'0'));
            let len = octal(&rest[124..135]);
            let name = rest[..100].split(|byte| *byte == 0).next().unwrap();
            if name.ends_with(b".jpg") {
                photos.push(rest[512..512 + len].to_vec());
            }
            rest = &rest[512 + len.next_multiple_of(512)..];
        }
    }
    photos
}

/// What Pillow 12 with libjpeg-turbo 3.2 makes of them, as RGB, one after the other.
const BY_LIBJPEG: &str = "deb18bc5aa8c72f1f6a23e1a9807bec460f3d939aff07356e381680e5ca2f454";

#[test]
fn photographs_equal_those_by_libjpeg() {
    let photos = photos();
    assert_eq!(photos.len(), 198);
    let mut digest = Sha256::new();
    for photo in &photos {
        digest.update(whole(photo).unwrap().1);
    }
    let digest: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(digest, BY_LIBJPEG);
}

#[test]
fn what_is_below_the_part_is_not_read_and_broken_data_is_an_error() {
    for restart in [0, 4] {
        let good = encoded([160, 200], Some(SamplingFactor::R_4_2_0), 90, restart);
        let (_, pixels) = whole(&good).unwrap();
        let cut_off = &good[..good.len() / 2];
        let error = whole(cut_off).unwrap_err();
        assert_eq!((error.kind(), error.message()), (ErrorKind::Corrupt, "JPEG data ends early"));
        let top = Crop { top: 0, left: 0, height: 30, width: 200 };
        assert!(part(cut_off, top).unwrap() == pixels[..30 * 200 * 3]);
        let bottom = Crop { top: 130, ..top };
        assert_eq!(part(cut_off, bottom).unwrap_err().kind(), ErrorKind::Corrupt);
    }
    let mut wrong = encoded([64, 64], None, 90, 3);
    let second = wrong.windows(2).position(|pair| pair == [0xff, 0xd1]).unwrap();
    wrong[second + 1] = 0xd5;
    let error = whole(&wrong).unwrap_err();
    assert!(error.message().contains("restart marker"), "{error}");
    let bytes = encoded([20, 30], None, 90, 0);
    for crop in [
        Crop { top: 0, left: 0, height: 21, width: 1 },
        Crop { top: 0, left: 30, height: 1, width: 1 },
        Crop { top: 1, left: 1, height: 0, width: 1 },
        Crop { top: usize::MAX, left: 1, height: 2, width: 1 },
    ] {
        let mut out = vec![0; 63];
        let error = Jpeg::open(&bytes, MAX).unwrap().read_region(crop, &mut out).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{crop:?}");
    }
}

fn sample(uid: u64, picture: impl Into<forebay_core::Value>) -> Sample {
    let key = Key { origin: Str::from("shard.tar"), name: Str::from("0001"), index: 0 };
    let mut sample = Sample::new(uid, key);
    sample.set("cls", Buffer::from(b"BMW is not a picture".to_vec()));
    sample.set("image", picture);
    sample
}

fn apply<M: Map>(options: &str, sample: &mut Sample) -> Result<Tensor, Error> {
    let pipe = M::new(M::Options::parse(options)?)?;
    let host = Host::new().limits(Limits { pixels: 100_000, ..Limits::DEFAULT });
    pipe.map(sample, &host.context())?;
    let tensor = sample.get("image").unwrap().as_tensor();
    tensor.map(|tensor| (*tensor).clone()).ok_or_else(|| Error::invalid("still encoded"))
}

fn same<M: Map>(options: &str, file: &[u8], decoded: &Tensor, uid: u64) {
    let found = apply::<M>(options, &mut sample(uid, Buffer::from(file.to_vec()))).unwrap();
    let expected = apply::<M>(options, &mut sample(uid, decoded.clone())).unwrap();
    assert_eq!(found.shape(), expected.shape(), "{options}");
    assert!(found.data().as_slice() == expected.data().as_slice(), "{options}, sample {uid}");
}

#[test]
fn pipes_take_files_as_if_they_were_decoded() {
    let rgb = image::RgbImage::from_raw(90, 60, picture(60, 90)).unwrap();
    let png_like = [image::ImageFormat::Png, image::ImageFormat::Bmp, image::ImageFormat::Tiff];
    let mut files: Vec<Vec<u8>> = png_like
        .map(|format| {
            let mut bytes = std::io::Cursor::new(Vec::new());
            rgb.write_to(&mut bytes, format).unwrap();
            bytes.into_inner()
        })
        .into();
    files.push(encoded([60, 90], Some(SamplingFactor::R_4_2_0), 90, 0));
    files.push(encoded([60, 90], None, 80, 7));
    for (index, file) in files.iter().enumerate() {
        let pixels = match index {
            0..3 => {
                let format = [Format::Png, Format::Bmp, Format::Tiff][index];
                let mut out = vec![0; 60 * 90 * 3];
                Raster::open(format, file, MAX).unwrap().read(&mut out).unwrap();
                out
            }
            _ => whole(file).unwrap().1,
        };
        let decoded = Tensor::new(DType::U8, &[60, 90, 3], pixels.into()).unwrap();
        for uid in 0..20 {
            same::<RandomResizedCrop>(r#"{"size": 16}"#, file, &decoded, uid);
        }
        same::<RandomResizedCrop>(
            r#"{"size": [9, 7], "filter": "nearest", "field": "image"}"#,
            file,
            &decoded,
            3,
        );
        same::<CenterCrop>(r#"{"size": [31, 40]}"#, file, &decoded, 0);
        same::<CenterCrop>(r#"{"size": [60, 90]}"#, file, &decoded, 0);
        same::<Resize>(r#"{"size": 20, "shorter": true}"#, file, &decoded, 0);
        same::<Resize>(r#"{"size": [60, 90]}"#, file, &decoded, 0);
    }
}

#[test]
fn a_decoded_picture_comes_first_and_limits_hold() {
    let file = Buffer::from(encoded([60, 90], None, 80, 0));
    let mut two = sample(0, file.clone());
    two.set("mask", Tensor::new(DType::U8, &[2, 2, 1], vec![0; 4].into()).unwrap());
    let error = apply::<Resize>(r#"{"size": 1}"#, &mut two).unwrap_err();
    assert_eq!(error.message(), "still encoded", "the mask was resized");
    assert_eq!(two.get("mask").unwrap().as_tensor().unwrap().shape(), [1, 1, 1]);
    let error = apply::<Flip>("{}", &mut sample(0, file)).unwrap_err();
    assert!(error.message().contains("is it decoded"), "{error}");
    let huge = Buffer::from(encoded([400, 400], None, 80, 0));
    let error = apply::<RandomResizedCrop>(r#"{"size": 4}"#, &mut sample(0, huge)).unwrap_err();
    assert_eq!((error.kind(), error.get("field")), (ErrorKind::Limit, Some("image")));
    let error = apply::<Resize>(r#"{"size": 4, "field": "cls"}"#, &mut sample(0, 1_i64)).unwrap_err();
    assert_eq!(error.get("field"), Some("cls"));
}

#[test]
fn the_decoder_gives_the_same() {
    let file = encoded([33, 47], Some(SamplingFactor::R_4_2_0), 90, 0);
    let bytes = Buffer::from(file.clone());
    let decoder = JpegDecoder::new(NoOptions).unwrap();
    let value = decoder.decode(&bytes, &Wanted::default(), &Host::new().context());
    assert!(value.unwrap().as_tensor().unwrap().data().as_slice() == whole(&file).unwrap().1);
}
