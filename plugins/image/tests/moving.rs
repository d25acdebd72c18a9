//! Animations to tensors of frames, and pictures to files and back.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::io::Cursor;

use forebay_core::{
    Buffer, DType, Error, ErrorKind, Key, Limits, Map, Options, Sample, Tensor, TensorExt, Value,
};
use forebay_image::{DecodeFrames, EncodeJpeg, EncodePng, EncodeWebP, Format, Frames, Jpeg, Raster};
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

/// A frame of one colour: its left, top, width and height, whether it blends, what becomes of it (0 stays, 1 is cleared, 2 is undone), and
/// for how many milliseconds it is shown.
#[derive(Clone, Copy)]
struct Shown {
    place: [u8; 4],
    color: [u8; 4],
    blends: bool,
    after: u8,
    delay: u8,
}

fn still(format: ImageFormat, shown: &Shown) -> Vec<u8> {
    let [.., width, height] = shown.place.map(u32::from);
    let mut bytes = Cursor::new(Vec::new());
    RgbaImage::from_pixel(width, height, image::Rgba(shown.color)).write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

/// An animated PNG, with an Exif block if it is to be turned.
fn apng_of([height, width]: [usize; 2], exif: &[u8], frames: &[Shown]) -> Vec<u8> {
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut number = 0_u32;
    for (at, shown) in frames.iter().enumerate() {
        let [mut header, data] = parts(&still(ImageFormat::Png, shown));
        if at == 0 {
            header[..8].copy_from_slice(&[0, 0, 0, width as u8, 0, 0, 0, height as u8]);
            file.extend(chunk(b"IHDR", &header));
            file.extend(chunk(b"acTL", &[0, 0, 0, frames.len() as u8, 0, 0, 0, 0]));
            if !exif.is_empty() {
                file.extend(chunk(b"eXIf", exif));
            }
        }
        let mut next = || {
            number += 1;
            (number - 1).to_be_bytes()
        };
        let [left, top, width, height] = shown.place.map(|side| u32::from(side).to_be_bytes());
        let rest = [0, shown.delay, 0x03, 0xe8, shown.after, u8::from(shown.blends)];
        let control = [&next()[..], &width, &height, &left, &top, &rest].concat();
        file.extend(chunk(b"fcTL", &control));
        match at {
            0 => file.extend(chunk(b"IDAT", &data)),
            _ => file.extend(chunk(b"fdAT", &[&next()[..], &data].concat())),
        }
    }
    file.extend(chunk(b"IEND", &[]));
    file
}

fn riff(name: &[u8; 4], data: &[u8]) -> Vec<u8> {
    [&name[..], &(data.len() as u32).to_le_bytes(), data, &vec![0; data.len() % 2]].concat()
}

/// An animated WebP of frames whose chunks are given.
fn webp_with([height, width]: [usize; 2], exif: &[u8], frames: &[(Shown, Vec<u8>)]) -> Vec<u8> {
    let mut body = b"WEBP".to_vec();
    let flags = 2 | if exif.is_empty() { 0 } else { 8 };
    body.extend(riff(b"VP8X", &[flags, 0, 0, 0, width as u8 - 1, 0, 0, height as u8 - 1, 0, 0]));
    body.extend(riff(b"ANIM", &[0; 6]));
    for (shown, chunks) in frames {
        let [left, top, width, height] = shown.place;
        let flags = shown.after | u8::from(!shown.blends) << 1;
        let head =
            [left / 2, 0, 0, top / 2, 0, 0, width - 1, 0, 0, height - 1, 0, 0, shown.delay, 0, 0, flags];
        body.extend(riff(b"ANMF", &[&head[..], chunks].concat()));
    }
    if !exif.is_empty() {
        body.extend(riff(b"EXIF", exif));
    }
    riff(b"RIFF", &body)
}

fn webp_of(size: [usize; 2], exif: &[u8], frames: &[Shown]) -> Vec<u8> {
    let stills = frames.iter().map(|shown| (*shown, still(ImageFormat::WebP, shown)[12..].to_vec()));
    webp_with(size, exif, &stills.collect::<Vec<_>>())
}

/// The frames that all animations here show, each of which fills the picture.
fn filling() -> [Shown; 3] {
    let [height, width] = SIZE.map(|side| side as u8);
    let frame = |([red, green, blue], delay): ([u8; 3], u8)| Shown {
        place: [0, 0, width, height],
        color: [red, green, blue, 255],
        blends: true,
        after: 0,
        delay,
    };
    let [first, second, third] = COLORS;
    [(first, 100), (second, 250), (third, 40)].map(frame)
}

fn apng() -> Vec<u8> {
    apng_of(SIZE, &[], &filling())
}

fn webp() -> Vec<u8> {
    webp_of(SIZE, &[], &filling())
}

/// Size and pixels of all frames.
fn frames(file: &[u8]) -> Result<([usize; 2], Vec<Vec<u8>>), Error> {
    let frames = Frames::open(file, 1000)?;
    let (size, count) = (frames.size(), frames.count());
    let mut out = vec![0x5a; count * size[0] * size[1] * 3];
    frames.read(&mut out, &mut vec![0.0; count])?;
    Ok((size, out.chunks(size[0] * size[1] * 3).map(<[u8]>::to_vec).collect()))
}

/// The colour of the pixel at this row and column of a picture that is six wide.
fn pixel(frame: &[u8], row: usize, column: usize) -> [u8; 3] {
    *frame[(row * 6 + column) * 3..].first_chunk().unwrap()
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
            assert!(read(&file[..len]).is_err(), "{len} bytes of {name}");
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

const RED: [u8; 4] = [250, 0, 10, 255];
const BLUE: [u8; 4] = [0, 20, 240, 255];
const NOTHING: [u8; 4] = [0; 4];

#[test]
fn frames_are_cleared_and_undone() {
    let red = Shown { place: [0, 0, 2, 2], color: RED, blends: false, after: 1, delay: 1 };
    let blue = Shown { place: [4, 2, 2, 2], color: BLUE, after: 0, ..red };
    let nothing = Shown { place: [0, 0, 6, 4], color: NOTHING, blends: true, ..blue };
    let webp = webp_of([4, 6], &[], &[red, blue, nothing]);
    // The first frame of a PNG fills it.
    let ground = Shown { place: [0, 0, 6, 4], color: NOTHING, ..red };
    let png = apng_of([4, 6], &[], &[ground, red, blue, nothing]);
    for (skip, file) in [(0, webp), (1, png)] {
        let shown = frames(&file).unwrap().1;
        let seen: Vec<_> = shown[skip..]
            .iter()
            .map(|frame| [pixel(frame, 1, 1), pixel(frame, 2, 4), pixel(frame, 3, 0)])
            .collect();
        let (red, blue, black) = ([250, 0, 10], [0, 20, 240], [0; 3]);
        assert_eq!(seen, [[red, black, black], [black, blue, black], [black, blue, black]]);
    }
    // Cleared, then hidden by a frame that is undone: nothing is left.
    let whole = Shown { place: [0, 0, 6, 4], ..red };
    let hiding = Shown { color: BLUE, after: 2, ..whole };
    let shown = frames(&apng_of([4, 6], &[], &[whole, hiding, nothing])).unwrap().1;
    assert_eq!(
        shown.iter().map(|frame| pixel(frame, 3, 5)).collect::<Vec<_>>(),
        [[250, 0, 10], [0, 20, 240], [0; 3]]
    );
    // Undone upon something: that is back.
    let stays = Shown { after: 0, ..whole };
    let part = Shown { place: [2, 2, 2, 2], ..hiding };
    let shown = frames(&apng_of([4, 6], &[], &[stays, part, nothing])).unwrap().1;
    assert_eq!(
        shown.iter().map(|frame| pixel(frame, 2, 2)).collect::<Vec<_>>(),
        [[250, 0, 10], [0, 20, 240], [250, 0, 10]]
    );
}

#[test]
fn what_is_half_transparent_is_mixed_as_libwebp_does() {
    let place = [0, 0, 6, 4];
    let under = Shown { place, color: [100, 200, 50, 255], blends: true, after: 0, delay: 1 };
    let over = Shown { color: [200, 100, 0, 128], ..under };
    let opaque = Shown { color: [201, 102, 3, 255], ..under };
    for file in [webp_of([4, 6], &[], &[under, over, opaque]), apng_of([4, 6], &[], &[under, over, opaque])] {
        let shown = frames(&file).unwrap().1;
        assert_eq!(
            shown.iter().map(|frame| pixel(frame, 0, 0)).collect::<Vec<_>>(),
            [[100, 200, 50], [150, 149, 24], [201, 102, 3]]
        );
    }
}

#[test]
fn animations_are_turned_and_decode_gives_the_first_frame() {
    let exif = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
    let ground = Shown { place: [0, 0, 6, 4], color: BLUE, blends: true, after: 0, delay: 1 };
    let corner = Shown { place: [0, 0, 2, 2], color: RED, ..ground };
    let png = apng_of([4, 6], exif, &[ground, corner]);
    let webp = webp_of([4, 6], exif, &[ground, corner]);
    for (format, file) in [(Format::Png, png), (Format::WebP, webp)] {
        let (size, shown) = frames(&file).unwrap();
        assert_eq!(size, [6, 4], "{format:?}");
        // By 90 degrees: what was at the upper left is at the upper right.
        let at = |row: usize, column: usize| &shown[1][(row * 4 + column) * 3..][..3];
        assert_eq!([at(0, 3), at(0, 0), at(5, 3)], [&RED[..3], &BLUE[..3], &BLUE[..3]], "{format:?}");
        let still = Raster::open(format, &file, 1000).unwrap();
        assert_eq!(still.size(), size, "{format:?}");
        let mut first = vec![0; 72];
        still.read(&mut first).unwrap();
        assert!(first == shown[0], "{format:?}");
    }
}

/// A lossy picture of one grey: a header and zeros.
fn vp8(width: u8, height: u8) -> Vec<u8> {
    let len = 200_u32;
    let tag = (len << 5 | 1 << 4).to_le_bytes();
    riff(b"VP8 ", &[&tag[..3], b"\x9d\x01\x2a", &[width, 0, height, 0], &[0; 600]].concat())
}

#[test]
fn a_lossy_frame_has_the_size_that_it_says() {
    let alpha =
        |len: usize| riff(b"ALPH", &[&[0][..], &vec![255; len / 2], &vec![0; len - len / 2]].concat());
    let red = Shown { place: [0, 0, 6, 4], color: RED, blends: true, after: 0, delay: 1 };
    let first = (red, still(ImageFormat::WebP, &red)[12..].to_vec());
    let good = (red, [alpha(24), vp8(6, 4)].concat());
    let shown = frames(&webp_with([4, 6], &[], &[first, good])).unwrap().1;
    let grey = pixel(&shown[1], 0, 0);
    assert!(grey[0].abs_diff(grey[1]) < 8 && pixel(&shown[1], 1, 5) == grey, "{grey:?}");
    assert_eq!(pixel(&shown[1], 2, 0), [250, 0, 10]);
    let small = Shown { place: [0, 0, 8, 8], ..red };
    for chunks in
        [[alpha(64), vp8(40, 40)].concat(), [alpha(1600), vp8(40, 40)].concat(), vp8(40, 40), vp8(4, 4)]
    {
        let file = webp_with([40, 40], &[], &[(small, chunks)]);
        let found = Frames::open(&file, 2000).unwrap().read(&mut [0; 4800], &mut [0.0]).unwrap_err();
        assert_eq!((found.kind(), found.get("frame")), (ErrorKind::Corrupt, Some("0")));
        let still = Raster::open(Format::WebP, &file, 2000).unwrap();
        assert_eq!(still.read(&mut [0; 4800]).unwrap_err().kind(), ErrorKind::Corrupt);
    }
}

#[test]
fn frames_are_counted_where_they_are() {
    let mut file = apng();
    let control = file.windows(4).position(|name| name == b"acTL").unwrap();
    let mut said = |count: u32| {
        let counted = chunk(b"acTL", &[&count.to_be_bytes()[..], &[0; 4]].concat());
        file.splice(control - 4..control + 16, counted);
        Frames::open(&file, 1000).map(|frames| frames.count())
    };
    assert_eq!(said(2).unwrap(), 2);
    assert_eq!(said(4).unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(said(300_000_000).unwrap_err().kind(), ErrorKind::Corrupt);
    // Three pixels, and the times of three frames.
    let dots = filling().map(|shown| Shown { place: [0, 0, 1, 1], ..shown });
    for (bytes, fits) in [(32, false), (33, true)] {
        let mut all = sample("png", Buffer::from(apng_of([1, 1], &[], &dots)));
        let read = apply::<DecodeFrames>("{}", &mut all, Limits { bytes, ..Limits::DEFAULT });
        assert_eq!(read.map_err(|error| error.kind()), if fits { Ok(()) } else { Err(ErrorKind::Limit) });
    }
}

#[test]
fn damaged_chunks_of_frames_are_told() {
    let good = apng();
    let places = good.windows(4).enumerate().filter(|(_, name)| *name == b"fdAT" || *name == b"fcTL");
    let places: Vec<usize> = places.map(|(at, _)| at).collect();
    assert_eq!(places.len(), 5);
    for at in places {
        for byte in 0..12 {
            let mut damaged = good.clone();
            damaged[at + 4 + byte] ^= 1;
            assert_eq!(frames(&damaged).unwrap_err().kind(), ErrorKind::Corrupt, "{byte} at {at}");
        }
    }
}

#[test]
fn the_frames_are_not_replaced_by_their_times() {
    let mut all = sample("png", Buffer::from(apng()));
    let error = apply::<DecodeFrames>(r#"{"delays": "png"}"#, &mut all, Limits::DEFAULT).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.message().contains("delays=png"), "{error}");
}

#[test]
fn what_is_missing_is_called_by_its_name() {
    let mut decoded = sample("png", Tensor::new(DType::U8, &[1, 1, 3], vec![0; 3].into()).unwrap());
    let error = apply::<DecodeFrames>("{}", &mut decoded, Limits::DEFAULT).unwrap_err();
    assert!(error.message().contains("decoded already?"), "{error}");
    let mut text = sample("txt", Buffer::from(b"no picture".to_vec()));
    let error = apply::<DecodeFrames>("{}", &mut text, Limits::DEFAULT).unwrap_err();
    assert!(error.message().contains("bytes that begin as a picture's file does"), "{error}");
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
