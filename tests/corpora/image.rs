//! Pictures: the hash of the pixels where the format keeps them, and means over 4 x 4 tiles where it loses some.

use std::{fs, path::Path};

use forebay_image::{Format, Jpeg, Raster};
use forebay_loader::{Error, ErrorKind};
use serde_json::{Value, json};

use crate::words::sha256;

const MAX_PIXELS: u64 = 64 << 20;

pub(crate) fn digest(path: &Path) -> Result<Value, Error> {
    let bytes = fs::read(path)?;
    let ([height, width], pixels) = decode(&bytes, 0)?;
    // Memory is recycled: what a decoder leaves as it was would differ from run to run.
    let again = decode(&bytes, 255)?;
    assert!(again.1 == pixels, "some pixels are left as they were");
    let grid = grid([height, width], &pixels);
    Ok(json!({"height": height, "width": width, "rgb8_sha256": sha256(pixels), "grid": grid}))
}

/// Decodes into memory that holds `fill` everywhere.
fn decode(bytes: &[u8], fill: u8) -> Result<([usize; 2], Vec<u8>), Error> {
    let begins = |magic: &[u8]| bytes.starts_with(magic);
    let format = if begins(b"\xff\xd8") {
        let jpeg = Jpeg::open(bytes, MAX_PIXELS)?;
        let [height, width] = jpeg.size();
        let mut out = vec![fill; height * width * 3];
        jpeg.read(&mut out)?;
        return Ok(([height, width], out));
    } else if begins(b"\x89PNG") {
        Format::Png
    } else if begins(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        Format::WebP
    } else if begins(b"GIF8") {
        Format::Gif
    } else if begins(b"BM") {
        Format::Bmp
    } else if begins(b"II*\0") || begins(b"MM\0*") {
        Format::Tiff
    } else {
        return Err(Error::new(ErrorKind::Unsupported, "no decoder knows these bytes"));
    };
    let raster = Raster::open(format, bytes, MAX_PIXELS)?;
    let [height, width] = raster.size();
    let mut out = vec![fill; height * width * 3];
    raster.read(&mut out)?;
    Ok(([height, width], out))
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
