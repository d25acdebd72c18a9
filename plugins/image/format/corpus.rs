//! Pictures: the hash of the pixels where the format keeps them, and means over 4 x 4 tiles where it loses some.

use std::{fs, path::Path};

use forebay_bundled::forebay_image::{Format, Jpeg, Raster, Tiff};
use forebay_core::{DType, Error, ErrorKind};
use serde_json::{Value, json};

use crate::sha256;

const MAX_PIXELS: u64 = 64 << 20;

pub(crate) fn digest(path: &Path) -> Result<Value, Error> {
    let bytes = fs::read(path)?;
    let format = format(&bytes, path)?;
    let mut words = json!({});
    if format == Some(Format::Tiff) {
        let tiff = Tiff::open(&bytes, MAX_PIXELS)?;
        let found = samples(&tiff);
        if !tiff.has_range() {
            return found;
        }
        // A plane that is not shown may be missing.
        words = found.unwrap_or(words);
    }
    let ([height, width], pixels) = decode(format, &bytes, 0)?;
    // Memory is recycled: what a decoder leaves as it was would differ from run to run.
    let again = decode(format, &bytes, 255)?;
    assert!(again.1 == pixels, "some pixels are left as they were");
    words["height"] = height.into();
    words["width"] = width.into();
    words["grid"] = json!(grid([height, width], &pixels));
    words["rgb8_sha256"] = sha256(pixels).into();
    Ok(words)
}

/// `None` is JPEG.
fn format(bytes: &[u8], path: &Path) -> Result<Option<Format>, Error> {
    let begins = |magic: &[u8]| bytes.starts_with(magic);
    Ok(Some(if begins(b"\xff\xd8") {
        return Ok(None);
    } else if begins(b"\x89PNG") {
        Format::Png
    } else if begins(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        Format::WebP
    } else if begins(b"GIF8") {
        Format::Gif
    } else if begins(b"BM") {
        Format::Bmp
    } else if [b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"].iter().any(|magic| begins(*magic)) {
        Format::Tiff
    } else if begins(b"qoif") {
        Format::Qoi
    } else if begins(b"\0\0\x01\0") || begins(b"\0\0\x02\0") {
        Format::Ico
    } else if matches!(bytes, [b'P', b'1'..=b'7', ..]) {
        Format::Pnm
    } else if path.extension().is_some_and(|extension| extension == "tga") {
        Format::Tga
    } else {
        return Err(Error::new(ErrorKind::Unsupported, "no decoder knows these bytes"));
    }))
}

/// Decodes into memory that holds `fill` everywhere.
fn decode(format: Option<Format>, bytes: &[u8], fill: u8) -> Result<([usize; 2], Vec<u8>), Error> {
    let Some(format) = format else {
        let jpeg = Jpeg::open(bytes, MAX_PIXELS)?;
        let [height, width] = jpeg.size();
        let mut out = vec![fill; height * width * 3];
        jpeg.read(&mut out)?;
        return Ok(([height, width], out));
    };
    let raster = Raster::open(format, bytes, MAX_PIXELS)?;
    let [height, width] = raster.size();
    let mut out = vec![fill; height * width * 3];
    raster.read(&mut out)?;
    Ok(([height, width], out))
}

/// A page's samples as they are: as an array, as one with the planes first, and as wider numbers.
fn samples(tiff: &Tiff<'_>) -> Result<Value, Error> {
    let ([height, width, channels], dtype) = (tiff.shape(), tiff.dtype());
    let mut bytes = vec![0; height * width * channels * dtype.size()];
    tiff.read_samples(&mut bytes)?;
    let sort = ["i", "u", "f"][usize::from(dtype.code)];
    let order = if dtype.size() == 1 { "|" } else { "<" };
    let name = format!("{order}{sort}{}", dtype.size());
    let one = channels == 1;
    let shape = if one { vec![height, width] } else { vec![height, width, channels] };
    let pixels = || bytes.chunks_exact(dtype.size() * channels);
    let plane =
        |at: usize| pixels().flat_map(move |pixel| &pixel[at * dtype.size()..][..dtype.size()]).copied();
    let planes: Vec<u8> = (0..channels).flat_map(plane).collect();
    let wide =
        bytes.as_chunks::<2>().0.iter().flat_map(|bytes| i32::from(i16::from_le_bytes(*bytes)).to_le_bytes());
    let wide = sha256(wide.collect::<Vec<u8>>());
    let hash = sha256(&bytes);
    let widened = if dtype == DType::I16 { wide } else { hash.clone() };
    Ok(json!({
        "height": height, "width": width, "array": [name, shape, hash],
        "array_of_planes": [name, [channels, height, width], sha256(planes)],
        "plane_sha256": widened,
    }))
}

/// The means of 4 x 4 tiles; none of a picture so small that the ways to enlarge its colour planes show in them.
fn grid([height, width]: [usize; 2], pixels: &[u8]) -> Vec<[f64; 3]> {
    if height < 16 || width < 16 {
        return Vec::new();
    }
    let tile = |index: usize| {
        let rows = index / 4 * height / 4..(index / 4 + 1) * height / 4;
        let columns = index % 4 * width / 4..(index % 4 + 1) * width / 4;
        let count = (rows.len() * columns.len()) as f64;
        [0, 1, 2].map(|channel| {
            let value = |y: usize, x: usize| u64::from(pixels[(y * width + x) * 3 + channel]);
            rows.clone().flat_map(|y| columns.clone().map(move |x| value(y, x))).sum::<u64>() as f64 / count
        })
    };
    (0..16).map(tile).collect()
}

/// The pixels exactly, or within the tolerance; means within 3.
pub(crate) fn compare(expected: &Value, found: &Value) -> Result<(), String> {
    if !expected["oriented_grid"].is_null() {
        return near(&expected["oriented_grid"], &found["grid"]);
    }
    let size = |digest: &Value| [digest["height"].as_u64(), digest["width"].as_u64()];
    if size(expected) != size(found) {
        return Err(format!("{:?} pixels, expected {:?}", size(found), size(expected)));
    }
    if expected["array"].is_array() && found["array"].is_array() {
        let same = [&found["array"], &found["array_of_planes"]].contains(&&expected["array"]);
        return if same {
            Ok(())
        } else {
            Err(format!("samples are {}, expected {}", found["array"], expected["array"]))
        };
    }
    if expected["plane_sha256"].is_string() && found["plane_sha256"].is_string() {
        let same = expected["plane_sha256"] == found["plane_sha256"];
        return if same { Ok(()) } else { Err("other samples".to_owned()) };
    }
    if expected["rgb8_sha256"].is_string() {
        let same = expected["rgb8_sha256"] == found["rgb8_sha256"] || !expected["tolerance"].is_null();
        return if same { Ok(()) } else { Err("other pixels".to_owned()) };
    }
    if expected["grid"].is_null() { Ok(()) } else { near(&expected["grid"], &found["grid"]) }
}

fn near(expected: &Value, found: &Value) -> Result<(), String> {
    let means = |grid: &Value| -> Vec<f64> {
        let tiles = grid.as_array().into_iter().flatten();
        tiles.flat_map(|tile| tile.as_array().into_iter().flatten()).filter_map(Value::as_f64).collect()
    };
    let away = means(expected).into_iter().zip(means(found)).map(|(a, b)| (a - b).abs());
    let worst = away.fold(0.0, f64::max);
    if worst <= 3.0 { Ok(()) } else { Err(format!("means {worst:.1} away")) }
}
