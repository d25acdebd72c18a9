//! Pictures by many other programs, against what independent readers made of them.
//!
//! The corpora lie outside of the repository: in `FOREBAY_CORPORA`, or else in `../shared/corpora` beside it.

#![expect(clippy::print_stderr, reason = "a test that is skipped says so, and what was read is worth a look")]
#![expect(clippy::unwrap_used, reason = "the manifest is well-formed")]

use std::collections::BTreeMap;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use forebay_core::{Error, ErrorKind};
use forebay_image::{Format, Jpeg, Raster};
use serde_json::Value;
use sha2::{Digest, Sha256};

const MAX_PIXELS: u64 = 64 << 20;

/// Valid to the reference, and something else here: what, and why.
const KNOWN: &[(&str, &str, &str)] = &[
    ("image-rs/bmp/images/lenient/badplanes.bmp", "refused", "two planes"),
    ("pillow/no_palette.gif", "refused", "no palette"),
    ("image-tiff/images/quad-lzw-compat.tiff", "refused", "LZW of before the standard"),
    ("image-tiff/libtiffpic/quad-tile.tif", "refused", "tiles of unequal size"),
    ("pillow/multipage_single_frame_loop.tiff", "refused", "pages in a circle"),
    ("pillow/truncated_app14.jpg", "refused", "an Adobe marker that is too short"),
    ("image-rs/gif/anim/border_touching_layers.gif", "pixels", "the colour beside the first frame"),
    ("image-tiff/images/cmyk-3c-16b.tiff", "pixels", "another formula for CMYK"),
    ("image-tiff/images/cmyk-3c-8b.tiff", "pixels", "another formula for CMYK"),
    ("image-tiff/images/seq/seq-4c-8b-rgba-50969cda.tiff", "pixels", "associated alpha"),
    ("pillow/tiff_16bit_RGBa.tiff", "pixels", "associated alpha"),
    (
        "image-tiff/libtiffpic/depth/flower-rgb-planar-16.tif",
        "pixels",
        "the reference misreads planes of 16 bits; tifffile agrees with us",
    ),
    ("pillow/xmp_tags_orientation_exiftool.png", "grid", "orientation in XMP alone"),
];

#[test]
fn corpora() {
    let root = std::env::var_os("FOREBAY_CORPORA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora"), PathBuf::from);
    let Ok(manifest) = std::fs::read_to_string(root.join("manifest.jsonl")) else {
        eprintln!("SKIPPED: no corpora in {}; set FOREBAY_CORPORA", root.display());
        return;
    };
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    let mut faults = Vec::new();
    let mut counts = BTreeMap::<String, usize>::new();
    for line in manifest.lines() {
        let entry: Value = serde_json::from_str(line).unwrap();
        let path = text(&entry["path"]);
        let picture = ["image", "real", "webdataset"].contains(&text(&entry["kind"]));
        let Ok(bytes) = std::fs::read(root.join("files").join(path)) else { continue };
        let Some(kind) = kind(&bytes).filter(|_| picture) else { continue };
        let started = Instant::now();
        let mut outcome = judge(&entry, kind, &bytes);
        if started.elapsed() > Duration::from_secs(10) {
            outcome = Err(("slow", format!("{:?}", started.elapsed())));
        }
        if let Err((fault, _)) = &outcome
            && let Some((.., why)) = KNOWN.iter().find(|(end, what, _)| path.ends_with(end) && what == fault)
        {
            outcome = Ok(why);
        }
        let format = kind.map_or_else(|| "Jpeg".to_owned(), |format| format!("{format:?}"));
        match outcome {
            Ok(what) => *counts.entry(format!("{format:4} {what}")).or_default() += 1,
            Err((fault, why)) => faults.push(format!("{fault}: {path}: {why}")),
        }
    }
    std::panic::set_hook(hook);
    eprintln!("{counts:#?}");
    let seen =
        |what: &str| counts.iter().filter(|(name, _)| name.ends_with(what)).map(|(_, count)| count).sum();
    let (exact, near): (usize, usize) = (seen(" exact"), seen(" near"));
    assert!(exact >= 375 && near >= 97, "only {exact} exact and {near} near: too many are unsupported");
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// `None` is JPEG.
type Kind = Option<Format>;

fn kind(bytes: &[u8]) -> Option<Kind> {
    let begins = |magic: &[u8]| bytes.starts_with(magic);
    Some(if begins(b"\xff\xd8") {
        None
    } else if begins(b"\x89PNG") {
        Some(Format::Png)
    } else if begins(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        Some(Format::WebP)
    } else if begins(b"GIF8") {
        Some(Format::Gif)
    } else if begins(b"BM") {
        Some(Format::Bmp)
    } else if begins(b"II*\0") || begins(b"MM\0*") {
        Some(Format::Tiff)
    } else {
        return None;
    })
}

/// Decodes into memory that holds `fill` everywhere.
fn decode(kind: Kind, bytes: &[u8], fill: u8) -> Result<([usize; 2], Vec<u8>), Error> {
    let ([height, width], out) = match kind {
        None => {
            let jpeg = Jpeg::open(bytes, MAX_PIXELS)?;
            let [height, width] = jpeg.size();
            let mut out = vec![fill; height * width * 3];
            jpeg.read(&mut out)?;
            ([height, width], out)
        }
        Some(format) => {
            let raster = Raster::open(format, bytes, MAX_PIXELS)?;
            let [height, width] = raster.size();
            let mut out = vec![fill; height * width * 3];
            raster.read(&mut out)?;
            ([height, width], out)
        }
    };
    Ok(([height, width], out))
}

/// What came of a file, or which promise is broken and how.
fn judge(entry: &Value, kind: Kind, bytes: &[u8]) -> Result<&'static str, (&'static str, String)> {
    let tried =
        |fill| catch_unwind(|| decode(kind, bytes, fill)).map_err(|_| ("panic", "in the decoder".to_owned()));
    let expect = text(&entry["expect"]);
    let (size, found) = match tried(0)? {
        Ok(_) if expect == "reject" => return Err(("accepted", "expected an error".to_owned())),
        Ok(decoded) => decoded,
        Err(error) if error.kind() == ErrorKind::Unsupported => return Ok("unsupported"),
        Err(error) if expect == "valid" => return Err(("refused", error.to_string())),
        Err(_) => return Ok("refused"),
    };
    // Memory is recycled: what a decoder leaves as it was would differ from run to run.
    if tried(255)?.is_ok_and(|(_, again)| again != found) {
        return Err(("unwritten", "some pixels are left as they were".to_owned()));
    }
    if expect != "valid" {
        return Ok("read, free");
    }
    let digest = &entry["digest"];
    if !digest["oriented_grid"].is_null() {
        return near(&digest["oriented_grid"], size, &found);
    }
    if digest["width"] != size[1] || digest["height"] != size[0] {
        return Err(("size", format!("{size:?}, expected {} x {}", digest["height"], digest["width"])));
    }
    if let Some(expected) = digest["rgb8_sha256"].as_str() {
        let hash: String = Sha256::digest(&found).iter().map(|byte| format!("{byte:02x}")).collect();
        return match hash == expected {
            true => Ok("exact"),
            false if !entry["tolerance"].is_null() => Ok("near, as readers differ"),
            false => Err(("pixels", "the hash differs".to_owned())),
        };
    }
    if digest["grid"].is_null() { Ok("read") } else { near(&digest["grid"], size, &found) }
}

/// Compares the means of 4 x 4 tiles, which are to be within 3.
fn near(
    expected: &Value,
    [height, width]: [usize; 2],
    found: &[u8],
) -> Result<&'static str, (&'static str, String)> {
    if height < 16 || width < 16 {
        // Between a handful of pixels the ways to enlarge the colour planes differ by more.
        return Ok("read, tiny");
    }
    let mut worst = 0.0_f64;
    for (index, cell) in expected.as_array().unwrap().iter().enumerate() {
        let rows = index / 4 * height / 4..(index / 4 + 1) * height / 4;
        let columns = index % 4 * width / 4..(index % 4 + 1) * width / 4;
        let count = (rows.len() * columns.len()) as f64;
        for channel in 0..3 {
            let row_sum = |y: usize| -> u64 {
                columns.clone().map(|x| u64::from(found[(y * width + x) * 3 + channel])).sum()
            };
            let mean = rows.clone().map(row_sum).sum::<u64>() as f64 / count;
            worst = worst.max((mean - cell[channel].as_f64().unwrap()).abs());
        }
    }
    if worst <= 3.0 { Ok("near") } else { Err(("grid", format!("{worst:.1} away"))) }
}
