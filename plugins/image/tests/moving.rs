//! Animations to tensors of frames, and pictures to files and back.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::io::Cursor;

use forebay_core::{
    Buffer, DType, Error, ErrorKind, Key, Limits, Map, Options, Sample, Tensor, TensorExt, Value,
};
use forebay_image::{DecodeFrames, EncodeJpeg, EncodePng, EncodeWebP, Frames, Jpeg};
use forebay_testkit::Host;
use image::{Delay, Frame, ImageFormat, RgbaImage, codecs::gif::GifEncoder};

const SIZE: [usize; 2] = [5, 7];
const COLORS: [[u8; 3]; 3] = [[250, 10, 20], [0, 200, 30], [7, 8, 240]];

/// The frames that all animations here show: one colour each.
fn expected() -> Vec<u8> {
    COLORS.iter().flat_map(|color| color.repeat(SIZE[0] * SIZE[1])).collect()
}

fn frame(color: [u8; 3]) -> RgbaImage {
    RgbaImage::from_pixel(SIZE[1] as u32, SIZE[0] as u32, image::Rgba([color[0], color[1], color[2], 255]))
}

fn encoded(format: ImageFormat, color: [u8; 3]) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    frame(color).write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

fn gif() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = GifEncoder::new(&mut bytes);
    for (color, delay) in COLORS.into_iter().zip([100, 250, 40]) {
        let delay = Delay::from_numer_denom_ms(delay, 1);
        encoder.encode_frame(Frame::from_parts(frame(color), 0, 0, delay)).unwrap();
    }
    drop(encoder);
    bytes
}

fn chunk(name: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let body = [&name[..], data].concat();
    let mut sum = flate2::Crc::new();
    sum.update(&body);
    [&(data.len() as u32).to_be_bytes()[..], &body, &sum.sum().to_be_bytes()].concat()
}

/// The parts of a PNG: its header's data, and that of its first `IDAT`.
fn parts(png: &[u8]) -> [Vec<u8>; 2] {
    let mut at = 8;
    let mut found = [Vec::new(), Vec::new()];
    while at < png.len() {
        let len = u32::from_be_bytes(png[at..at + 4].try_into().unwrap()) as usize;
        let data = &png[at + 8..at + 8 + len];
        match &png[at + 4..at + 8] {
            b"IHDR" => found[0].extend(data),
            b"IDAT" => found[1].extend(data),
            _ => {}
        }
        at += 12 + len;
    }
    found
}

fn apng() -> Vec<u8> {
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut number = 0_u32;
    for (at, color) in COLORS.into_iter().enumerate() {
        let [header, data] = parts(&encoded(ImageFormat::Png, color));
        if at == 0 {
            file.extend(chunk(b"IHDR", &header));
            file.extend(chunk(b"acTL", &[0, 0, 0, 3, 0, 0, 0, 0]));
        }
        let mut next = || {
            number += 1;
            (number - 1).to_be_bytes()
        };
        let [height, width] = SIZE.map(|side| (side as u32).to_be_bytes());
        let delay = [0, [1, 2, 4][at], 0, [10, 8, 100][at]];
        file.extend(chunk(b"fcTL", &[&next()[..], &width, &height, &[0; 8], &delay, &[0, 0]].concat()));
        match at {
            0 => file.extend(chunk(b"IDAT", &data)),
            _ => file.extend(chunk(b"fdAT", &[&next()[..], &data].concat())),
        }
    }
    file.extend(chunk(b"IEND", &[]));
    file
}

/// Its frames take the place of what was there: blended, the image crate gives levels that are one less.
fn webp() -> Vec<u8> {
    let part = |name: &[u8; 4], data: &[u8]| {
        [&name[..], &(data.len() as u32).to_le_bytes(), data, &vec![0; data.len() % 2]].concat()
    };
    let sides = [SIZE[1] as u8 - 1, 0, 0, SIZE[0] as u8 - 1, 0, 0];
    let mut body = b"WEBP".to_vec();
    body.extend(part(b"VP8X", &[&[2, 0, 0, 0][..], &sides].concat()));
    body.extend(part(b"ANIM", &[0; 6]));
    for (color, delay) in COLORS.into_iter().zip([100, 250, 40]) {
        let still = encoded(ImageFormat::WebP, color);
        body.extend(part(b"ANMF", &[&[0; 6][..], &sides, &[delay, 0, 0, 2], &still[12..]].concat()));
    }
    part(b"RIFF", &body)
}

fn sample(field: &str, value: impl Into<Value>) -> Sample {
    let mut sample = Sample::new(1, Key::default());
    sample.set("cls", 5_i64);
    sample.set(field, value.into());
    sample
}

fn apply<M: Map>(options: &str, sample: &mut Sample, limits: Limits) -> Result<(), Error> {
    let pipe = M::new(M::Options::parse(options)?)?;
    pipe.map(sample, &Host::new().limits(limits).context())
}

fn tensor(sample: &Sample, field: &str) -> Tensor {
    sample.get(field).unwrap().as_tensor().unwrap().clone()
}

#[test]
fn all_frames_and_their_times_are_read() {
    for (name, file) in [("gif", gif()), ("png", apng()), ("webp", webp())] {
        let mut all = sample(name, Buffer::from(file.clone()));
        apply::<DecodeFrames>(r#"{"delays": "ms"}"#, &mut all, Limits::DEFAULT).unwrap();
        let frames = tensor(&all, name);
        assert_eq!((frames.dtype(), frames.shape()), (DType::U8, &[3, 5, 7, 3][..]), "{name}");
        assert!(frames.data().as_slice() == expected(), "{name}");
        let times = tensor(&all, "ms");
        let times = times.data().as_chunks::<8>().0.iter().map(|bytes| f64::from_ne_bytes(*bytes));
        assert_eq!(times.collect::<Vec<_>>(), [100.0, 250.0, 40.0], "{name}");

        let mut first = sample(name, Buffer::from(file));
        apply::<DecodeFrames>(r#"{"most": 2}"#, &mut first, Limits::DEFAULT).unwrap();
        assert_eq!(tensor(&first, name).shape(), [2, 5, 7, 3]);
        assert_eq!(first.schema().names().len(), 2);
    }
}

#[test]
fn a_picture_that_does_not_move_is_one_frame() {
    for format in [ImageFormat::Png, ImageFormat::WebP, ImageFormat::Bmp] {
        let mut still = sample("picture", Buffer::from(encoded(format, COLORS[1])));
        apply::<DecodeFrames>("{}", &mut still, Limits::DEFAULT).unwrap();
        assert_eq!(tensor(&still, "picture").shape(), [1, 5, 7, 3]);
        assert!(tensor(&still, "picture").data().starts_with(&COLORS[1]));
    }
}

#[test]
fn limits_come_before_memory_and_damage_is_an_error() {
    let tight = Limits { bytes: 3 * 5 * 7 * 3 - 1, ..Limits::DEFAULT };
    for (name, file) in [("gif", gif()), ("png", apng()), ("webp", webp())] {
        let kind = |limits| {
            let mut all = sample(name, Buffer::from(file.clone()));
            apply::<DecodeFrames>("{}", &mut all, limits).unwrap_err().kind()
        };
        assert_eq!(kind(tight), ErrorKind::Limit, "{name}");
        assert_eq!(kind(Limits { pixels: 34, ..Limits::DEFAULT }), ErrorKind::Limit, "{name}");
        let read = |bytes: &[u8]| {
            let frames = Frames::open(bytes, 1000)?;
            let count = frames.count().min(50);
            let size = frames.size();
            frames.read(&mut vec![0; count * size[0] * size[1] * 3], &mut vec![0.0; count])
        };
        read(&file).unwrap();
        for len in 0..file.len() {
            let _ = read(&file[..len]);
        }
        let mut refused = 0;
        for at in 0..file.len() {
            let mut damaged = file.clone();
            damaged[at] ^= 0x41;
            refused += u32::from(read(&damaged).is_err());
        }
        assert!(refused > 20, "{name}: {refused}");
    }
}

#[test]
fn what_is_packed_without_loss_comes_back() {
    for channels in 1..=4 {
        let bytes: Vec<u8> = (0..9 * 11 * channels).map(|at| (at * 37) as u8).collect();
        let picture = || Tensor::new(DType::U8, &[9, 11, channels], bytes.clone().into()).unwrap();
        for effort in ["fast", "default", "best"] {
            let mut packed = sample("image", picture());
            apply::<EncodePng>(&format!(r#"{{"effort": "{effort}"}}"#), &mut packed, Limits::DEFAULT)
                .unwrap();
            let file = packed.get("image").unwrap().as_bytes().unwrap().clone();
            let read = image::load_from_memory_with_format(&file, ImageFormat::Png).unwrap();
            assert!(read.as_bytes() == bytes, "{channels} {effort}");
        }
        let mut packed = sample("image", picture());
        apply::<EncodeWebP>("{}", &mut packed, Limits::DEFAULT).unwrap();
        let file = packed.get("image").unwrap().as_bytes().unwrap().clone();
        let read = image::load_from_memory_with_format(&file, ImageFormat::WebP).unwrap();
        let grey = |rgba: &[u8]| match channels {
            1 => vec![rgba[0]],
            2 => vec![rgba[0], rgba[3]],
            _ => rgba[..channels].to_vec(),
        };
        let found: Vec<u8> = read.to_rgba8().as_raw().chunks(4).flat_map(grey).collect();
        assert!(found == bytes, "{channels}");
    }
}

#[test]
fn jpeg_is_near_and_better_with_more_quality() {
    let smooth: Vec<u8> =
        (0..64 * 64).flat_map(|at| [(at % 64 * 3) as u8, (at / 64 * 3) as u8, 90]).collect();
    let mut last = (usize::MAX, 0_i32);
    for quality in [100, 90, 20] {
        let mut packed = sample("jpg", Tensor::new(DType::U8, &[64, 64, 3], smooth.clone().into()).unwrap());
        apply::<EncodeJpeg>(&format!(r#"{{"quality": {quality}}}"#), &mut packed, Limits::DEFAULT).unwrap();
        let file = packed.get("jpg").unwrap().as_bytes().unwrap().clone();
        let mut found = vec![0; smooth.len()];
        Jpeg::open(&file, 1 << 20).unwrap().read(&mut found).unwrap();
        let away =
            found.iter().zip(&smooth).map(|(a, b)| (i32::from(*a) - i32::from(*b)).abs()).max().unwrap();
        assert!(file.len() < last.0 && away >= last.1 && away < 40, "{quality}: {} {away}", file.len());
        last = (file.len(), away);
    }
    let mut alpha = sample("jpg", Tensor::new(DType::U8, &[1, 1, 4], vec![0; 4].into()).unwrap());
    let error = apply::<EncodeJpeg>("{}", &mut alpha, Limits::DEFAULT).unwrap_err();
    assert_eq!((error.kind(), error.get("field")), (ErrorKind::Invalid, Some("jpg")));
}
