//! The decoders, on pictures made here: pixels, orientation, limits, and bytes that are broken or missing.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::io::Cursor;
use std::panic::catch_unwind;

use forebay_core::{Buffer, DType, Decoder, Error, ErrorKind, Limits, NoOptions, Value, Wanted};
use forebay_image::{
    BmpDecoder, Format, GifDecoder, IcoDecoder, Jpeg, JpegDecoder, PngDecoder, Raster, TgaDecoder,
    TiffDecoder, WebPDecoder,
};
use forebay_testkit::Host;
use image::{DynamicImage, ImageFormat};

const WIDTH: usize = 37;
const HEIGHT: usize = 21;
const MAX: u64 = 1 << 20;
const FORMATS: [(Format, ImageFormat); 9] = [
    (Format::Png, ImageFormat::Png),
    (Format::WebP, ImageFormat::WebP),
    (Format::Gif, ImageFormat::Gif),
    (Format::Bmp, ImageFormat::Bmp),
    (Format::Tiff, ImageFormat::Tiff),
    (Format::Qoi, ImageFormat::Qoi),
    (Format::Pnm, ImageFormat::Pnm),
    (Format::Ico, ImageFormat::Ico),
    (Format::Tga, ImageFormat::Tga),
];

/// A picture of few colours, so that GIF keeps them all.
fn picture() -> Vec<u8> {
    (0..HEIGHT * WIDTH)
        .flat_map(|at| {
            let (y, x) = (at / WIDTH, at % WIDTH);
            [(x / 6 * 40) as u8, (y / 5 * 50) as u8, if x > y { 255 } else { 3 }]
        })
        .collect()
}

fn encoded(format: ImageFormat, picture: DynamicImage) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

fn rgb() -> DynamicImage {
    image::RgbImage::from_raw(WIDTH as u32, HEIGHT as u32, picture()).unwrap().into()
}

fn jpeg(progressive: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = jpeg_encoder::Encoder::new(&mut bytes, 95);
    encoder.set_progressive(progressive);
    encoder.encode(&smooth(), WIDTH as u16, HEIGHT as u16, jpeg_encoder::ColorType::Rgb).unwrap();
    bytes
}

/// A picture without edges, which JPEG hardly changes.
fn smooth() -> Vec<u8> {
    (0..HEIGHT * WIDTH).flat_map(|at| [(at % WIDTH * 6) as u8, (at / WIDTH * 11) as u8, 90]).collect()
}

fn read_jpeg(bytes: &[u8]) -> Result<([usize; 2], Vec<u8>), Error> {
    let jpeg = Jpeg::open(bytes, MAX)?;
    let size = jpeg.size();
    let mut out = vec![0x5a; size[0] * size[1] * 3];
    jpeg.read(&mut out).map(|()| (size, out))
}

fn read_raster(format: Format, bytes: &[u8]) -> Result<([usize; 2], Vec<u8>), Error> {
    let raster = Raster::open(format, bytes, MAX)?;
    let size = raster.size();
    let mut out = vec![0x5a; size[0] * size[1] * 3];
    raster.read(&mut out).map(|()| (size, out))
}

#[test]
fn lossless_formats_give_the_very_pixels() {
    for (format, image_format) in FORMATS {
        let (size, found) = read_raster(format, &encoded(image_format, rgb())).unwrap();
        assert_eq!(size, [HEIGHT, WIDTH], "{format:?}");
        assert!(found == picture(), "{format:?}");
    }
}

#[test]
fn other_pixels_become_rgb() {
    let grey: Vec<u8> = rgb().to_luma8().iter().flat_map(|level| [*level; 3]).collect();
    for (kind, expected) in [
        (DynamicImage::from(rgb().to_luma8()), &grey),
        (rgb().to_luma_alpha8().into(), &grey),
        (rgb().to_luma16().into(), &grey),
        (rgb().to_rgba8().into(), &picture()),
        (rgb().to_rgb16().into(), &picture()),
        (rgb().to_rgba16().into(), &picture()),
    ] {
        let color = kind.color();
        let (_, found) = read_raster(Format::Png, &encoded(ImageFormat::Png, kind)).unwrap();
        // Luminance of 16 bits is rounded after it is scaled up.
        assert!(
            found.iter().zip(expected).all(|(found, expected)| found.abs_diff(*expected) <= 1),
            "{color:?}"
        );
    }
    let float = encoded(ImageFormat::Tiff, rgb().to_rgb32f().into());
    assert_eq!(read_raster(Format::Tiff, &float).unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn jpeg_is_close() {
    for progressive in [false, true] {
        let (size, found) = read_jpeg(&jpeg(progressive)).unwrap();
        assert_eq!(size, [HEIGHT, WIDTH]);
        let worst = found.iter().zip(smooth()).map(|(found, expected)| found.abs_diff(expected)).max();
        assert!(worst <= Some(12), "{worst:?}, progressive {progressive}");
    }
}

#[test]
fn jpeg_of_one_and_four_components_become_rgb() {
    let pixels = WIDTH * HEIGHT;
    let mut bytes = Vec::new();
    let encoder = jpeg_encoder::Encoder::new(&mut bytes, 100);
    encoder.encode(&vec![77; pixels], WIDTH as u16, HEIGHT as u16, jpeg_encoder::ColorType::Luma).unwrap();
    assert!(read_jpeg(&bytes).unwrap().1.iter().all(|level| level.abs_diff(77) <= 1));
    for color in [jpeg_encoder::ColorType::Cmyk, jpeg_encoder::ColorType::CmykAsYcck] {
        let mut bytes = Vec::new();
        let ink = [0, 255, 0, 51].repeat(pixels);
        jpeg_encoder::Encoder::new(&mut bytes, 100).encode(&ink, WIDTH as u16, HEIGHT as u16, color).unwrap();
        let (_, found) = read_jpeg(&bytes).unwrap();
        let near = |pixel: &[u8]| pixel.iter().zip([204, 0, 204]).all(|(a, b)| a.abs_diff(b) <= 3);
        assert!(found.chunks(3).all(near), "{color:?} {:?}", &found[..3]);
    }
}

#[test]
fn jpeg_whose_scan_has_another_length_is_refused() {
    let mut bytes = jpeg(false);
    let scan = bytes.windows(2).position(|marker| marker == [0xff, 0xda]).unwrap();
    assert_eq!(bytes[scan + 4], 3);
    bytes[scan + 4] = 1;
    let error = read_jpeg(&bytes).unwrap_err();
    assert_eq!((error.kind(), error.get("byte")), (ErrorKind::Corrupt, Some(&*scan.to_string())));
}

#[test]
fn jpeg_of_a_kind_that_is_not_read_says_so() {
    let good = jpeg(false);
    let frame = good.windows(2).position(|marker| marker == [0xff, 0xc0]).unwrap();
    for (markers, word) in [
        (&[0xc3, 0xcb][..], "lossless"),
        (&[0xc5, 0xc6, 0xc7, 0xcd, 0xce, 0xcf], "hierarchical"),
        (&[0xc9, 0xca], "arithmetic"),
    ] {
        for marker in markers {
            let mut bytes = good.clone();
            bytes[frame + 1] = *marker;
            let error = read_jpeg(&bytes).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{marker:x}");
            assert!(error.message().contains(word), "{error}");
        }
    }
    for marker in [0xc0, 0xc1, 0xc2] {
        let mut bytes = good.clone();
        bytes[frame + 1] = marker;
        bytes[frame + 4] = 12;
        let error = read_jpeg(&bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{marker:x}");
        assert!(error.message().contains("12 bits"), "{error}");
    }
}

/// The JPEG with its components called so, without its JFIF segment if that is not wanted, and with this Adobe segment.
fn said_to_be(names: [u8; 3], is_jfif: bool, adobe: Option<u8>) -> Vec<u8> {
    let mut bytes = jpeg(false);
    let place = |bytes: &[u8], marker| bytes.windows(2).position(|two| two == [0xff, marker]).unwrap();
    let (frame, scan) = (place(&bytes, 0xc0) + 10, place(&bytes, 0xda) + 5);
    for (index, name) in names.into_iter().enumerate() {
        bytes[frame + index * 3] = name;
        bytes[scan + index * 2] = name;
    }
    let jfif = place(&bytes, 0xe0);
    let behind = jfif + 2 + usize::from(bytes[jfif + 3]);
    if let Some(transform) = adobe {
        let segment = [b"\xff\xee\0\x0eAdobe\0\x64\0\0\0\0", &[transform][..]].concat();
        bytes.splice(behind..behind, segment);
    }
    if !is_jfif {
        bytes.drain(jfif..behind);
    }
    bytes
}

#[test]
fn jpeg_is_ycbcr_or_rgb_as_libjpeg_takes_it() {
    let ycc = read_jpeg(&jpeg(false)).unwrap().1;
    for (names, is_jfif, adobe, is_ycc) in [
        (*b"\x01\x02\x03", true, Some(0), true),
        (*b"RGB", true, None, true),
        (*b"RGB", true, Some(0), true),
        (*b"RGB", false, Some(1), true),
        (*b"\x01\x02\x03", false, None, true),
        (*b"RGB", false, None, false),
        (*b"\x01\x02\x03", false, Some(0), false),
    ] {
        let found = read_jpeg(&said_to_be(names, is_jfif, adobe)).unwrap().1;
        assert_eq!(found == ycc, is_ycc, "{names:?} {is_jfif} {adobe:?}");
    }
}

/// The JPEG with an Exif block of this orientation behind its first two bytes.
fn turned(mut bytes: Vec<u8>, orientation: u8) -> Vec<u8> {
    let mut block =
        b"\xff\xe1\0\x22Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\0\0\0\0\0\0\0".to_vec();
    block[29] = orientation;
    bytes.splice(2..2, block);
    bytes
}

#[test]
fn jpeg_is_turned_as_exif_says() {
    let upright = read_jpeg(&jpeg(false)).unwrap().1;
    for orientation in 0..=9 {
        let (size, found) = read_jpeg(&turned(jpeg(false), orientation)).unwrap();
        let picture = image::RgbImage::from_raw(WIDTH as u32, HEIGHT as u32, upright.clone()).unwrap();
        let mut expected = DynamicImage::from(picture);
        if let Some(orientation) = image::metadata::Orientation::from_exif(orientation) {
            expected.apply_orientation(orientation);
        }
        assert_eq!(size, [expected.height() as usize, expected.width() as usize], "{orientation}");
        assert!(found == expected.into_bytes(), "{orientation}");
    }
}

#[test]
fn every_prefix_is_an_error_or_a_picture() {
    for progressive in [false, true] {
        let bytes = jpeg(progressive);
        for len in 0..bytes.len() {
            let read = catch_unwind(|| read_jpeg(&bytes[..len])).unwrap();
            // Without its last two bytes, the marker of the end, all of the picture is there.
            assert_eq!(read.is_err(), len + 2 < bytes.len(), "{len} of {} bytes", bytes.len());
        }
    }
    for (format, image_format) in FORMATS {
        let bytes = encoded(image_format, rgb());
        for len in 0..bytes.len() {
            let _ = catch_unwind(|| read_raster(format, &bytes[..len])).unwrap();
        }
        assert!(read_raster(format, &bytes[..bytes.len() / 2]).is_err(), "half of {format:?}");
    }
}

#[test]
fn flipped_bytes_do_not_panic() {
    let jpeg = jpeg(false);
    for at in 0..jpeg.len() {
        let mut bytes = jpeg.clone();
        bytes[at] ^= 0xff;
        let _ = catch_unwind(|| read_jpeg(&bytes)).unwrap();
    }
    for (format, image_format) in FORMATS {
        let good = encoded(image_format, rgb());
        for at in 0..good.len() {
            let mut bytes = good.clone();
            bytes[at] ^= 0xff;
            let _ = catch_unwind(|| read_raster(format, &bytes)).unwrap();
        }
    }
}

fn decode<D: Decoder<Options = NoOptions>>(bytes: Vec<u8>, wanted: &Wanted<'_>) -> Result<Value, Error> {
    let bytes = Buffer::from(bytes);
    let host = Host::new().limits(Limits { bytes: 1 << 24, pixels: MAX });
    D::new(NoOptions)?.decode(&bytes, wanted, &host.context())
}

#[test]
fn huge_headers_are_refused_by_the_limit() {
    let mut png = encoded(ImageFormat::Png, rgb());
    for at in [16, 20] {
        png[at..at + 4].copy_from_slice(&100_000_u32.to_be_bytes());
    }
    let error = decode::<PngDecoder>(png[..33].to_vec(), &Wanted::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert!(error.message().contains("100000 x 100000"), "{error}");
    assert!(error.message().contains(&MAX.to_string()), "{error}");

    let mut bmp = encoded(ImageFormat::Bmp, rgb());
    for at in [18, 22] {
        bmp[at..at + 4].copy_from_slice(&100_000_u32.to_le_bytes());
    }
    assert_eq!(decode::<BmpDecoder>(bmp, &Wanted::default()).unwrap_err().kind(), ErrorKind::Limit);

    let mut gif = encoded(ImageFormat::Gif, rgb());
    gif[6..10].fill(0xff);
    assert_eq!(decode::<GifDecoder>(gif, &Wanted::default()).unwrap_err().kind(), ErrorKind::Limit);

    let mut big = jpeg(false);
    let sof = big.windows(2).position(|marker| marker == [0xff, 0xc0]).unwrap();
    big[sof + 5..sof + 9].fill(0xff);
    assert_eq!(decode::<JpegDecoder>(big, &Wanted::default()).unwrap_err().kind(), ErrorKind::Limit);

    let mut webp = b"RIFF\x16\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0".to_vec();
    webp.extend([0xff, 0xff, 0, 0xff, 0xff, 0]);
    let kind = decode::<WebPDecoder>(webp, &Wanted::default()).unwrap_err().kind();
    assert!([ErrorKind::Limit, ErrorKind::Corrupt].contains(&kind), "{kind:?}");
}

#[test]
fn what_stands_beside_the_pixels_is_held_to_their_size() {
    let png = encoded(ImageFormat::Png, rgb());
    let profile = vec![0; 9 << 20];
    let mut sum = flate2::Crc::new();
    sum.update(b"iCCP");
    sum.update(&profile);
    let chunk =
        [&(profile.len() as u32).to_be_bytes()[..], b"iCCP", &profile, &sum.sum().to_be_bytes()].concat();
    let heavy = [&png[..33], &chunk, &png[33..]].concat();
    assert_eq!(read_raster(Format::Png, &heavy).unwrap_err().kind(), ErrorKind::Limit);
}

#[test]
fn targa_of_true_colour_is_no_cursor() {
    let mut tga = b"\0\0\x02\0\0\0\0\0\0\0\0\0\x02\0\x01\0\x18\x20".to_vec();
    tga.extend([30, 20, 10, 60, 50, 40]);
    let cursor = b"\0\0\x02\0\x01\0\x07\x05\0\0\0\0\0\0";
    let scores = |head: &[u8]| {
        (
            TgaDecoder::new(NoOptions).unwrap().probe(head, "tga"),
            IcoDecoder::new(NoOptions).unwrap().probe(head, "tga"),
        )
    };
    assert_eq!(scores(&tga), (128, 1));
    assert_eq!(scores(cursor).1, 255);
    assert_eq!(scores(&encoded(ImageFormat::Ico, rgb())).1, 255);
    assert_eq!(read_raster(Format::Tga, &tga).unwrap(), ([1, 2], vec![10, 20, 30, 40, 50, 60]));
}

#[test]
fn decoders_give_tensors_and_refuse_other_types() {
    let value = decode::<JpegDecoder>(jpeg(false), &Wanted { dtype: DType::U8, extension: "jpg" }).unwrap();
    let tensor = value.as_tensor().unwrap();
    assert_eq!((tensor.dtype(), tensor.shape()), (DType::U8, &[HEIGHT as i64, WIDTH as i64, 3][..]));
    assert!(tensor.data().as_slice() == read_jpeg(&jpeg(false)).unwrap().1);
    let wanted = Wanted { dtype: DType::F32, extension: "" };
    assert_eq!(decode::<JpegDecoder>(jpeg(false), &wanted).unwrap_err().kind(), ErrorKind::Unsupported);
    let tiff = decode::<TiffDecoder>(encoded(ImageFormat::Tiff, rgb()), &Wanted::default()).unwrap();
    assert!(tiff.as_tensor().unwrap().data().as_slice() == picture());
}

#[test]
fn probes_know_their_own() {
    fn sure<D: Decoder<Options = NoOptions>>(head: &[u8]) -> u8 {
        D::new(NoOptions).unwrap().probe(head, "jpg")
    }
    let heads = [
        jpeg(false),
        encoded(ImageFormat::Png, rgb()),
        encoded(ImageFormat::WebP, rgb()),
        encoded(ImageFormat::Gif, rgb()),
        encoded(ImageFormat::Bmp, rgb()),
        encoded(ImageFormat::Tiff, rgb()),
        Vec::new(),
    ];
    for (index, head) in heads.iter().enumerate() {
        let scores = [
            sure::<JpegDecoder>(head),
            sure::<PngDecoder>(head),
            sure::<WebPDecoder>(head),
            sure::<GifDecoder>(head),
            sure::<BmpDecoder>(head),
            sure::<TiffDecoder>(head),
        ];
        for (other, score) in scores.into_iter().enumerate() {
            assert_eq!(score, if other == index { 255 } else { 1 }, "decoder {other}, head {index}");
        }
    }
}
