//! Pictures, for the tests of all formats.

mod corpus;

use forebay_bundled::forebay_image::{self, Frames, Jpeg, Raster, Tiff};
use forebay_core::Result;

use crate::{BYTES, Corpus, Format, PIXELS, opened, parser};

pub(crate) const FORMAT: Format = Format {
    parsers: &[
        parser("bmp", bmp, &["bmp", "dib"]),
        parser("frames", frames, &["gif", "webp", "apng"]),
        parser("gif", gif, &["gif"]),
        parser("ico", ico, &["ico"]),
        parser("jpeg", jpeg, &["jpg", "jpeg"]),
        parser("png", png, &["png", "apng"]),
        parser("pnm", pnm, &["ppm", "pgm", "pbm", "pam"]),
        parser("qoi", qoi, &["qoi"]),
        parser("tga", tga, &["tga"]),
        parser("tiff", tiff, &["tif", "tiff"]),
        parser("webp", webp, &["webp"]),
    ],
    readers: &[
        // Pictures, by the pipes that take them encoded, and by those behind.
        opened(
            "decode_frames",
            &["decode_frames field=bytes delays='ms'"],
            &["walk.gif", "walk.webp", "walk.apng"],
        ),
        opened("random_resized_crop", &["random_resized_crop 4 field=bytes", "flip", "normalize"], PICTURES),
        opened("center_crop", &["center_crop 4 field=bytes", "encode_png"], PICTURES),
        opened("resize", &["resize 5 field=bytes", "encode_jpeg"], &["rgb.png", "grey.jpg"]),
        opened("encode_webp", &["resize 3 field=bytes", "encode_webp"], &["rgb.png"]),
        decoded!("bmp", ["palette.bmp", "rgb.bmp"]),
        decoded!("gif", ["walk.gif"]),
        decoded!("ico", ["png.ico"]),
        decoded!("jpeg", ["baseline.jpg", "progressive.jpg", "grey.jpg"]),
        decoded!("png", ["rgb.png", "palette.png"]),
        decoded!("pnm", ["rgb.ppm", "grey.pgm", "bits.pbm", "alpha.pam"]),
        decoded!("qoi", ["rgb.qoi"]),
        decoded!("tga", ["plain.tga", "runs.tga"]),
        decoded!(
            "tiff",
            ["big.tif", "deflate.tif", "fax.tif", "float.tif", "lzw.tif", "packbits.tif", "rgb.tif"]
        ),
        decoded!("webp", ["lossy.webp", "lossless.webp"]),
    ],
    corpora: &[Corpus::new("image", corpus::digest, 0.97)
        .compare(corpus::compare)
        .aside(&["avif"])
        .known(include_str!("format/known.toml"))],
    ..Format::NONE
};

const PICTURES: &[&str] = &["baseline.jpg", "progressive.jpg", "rgb.png", "rgb.tif", "rgb.qoi", "lossy.webp"];

fn bmp(bytes: &[u8]) {
    raster(forebay_image::Format::Bmp, bytes);
}

fn frames(bytes: &[u8]) {
    let _ = (|| -> Result<()> {
        let frames = Frames::open(bytes, PIXELS)?;
        let ([height, width], count) = (frames.size(), frames.count().min(4));
        let len = height * width * 3 * count;
        if len as u64 > BYTES {
            return Ok(());
        }
        frames.read(&mut vec![0; len], &mut vec![0.0; count])
    })();
}

fn gif(bytes: &[u8]) {
    raster(forebay_image::Format::Gif, bytes);
}

fn ico(bytes: &[u8]) {
    raster(forebay_image::Format::Ico, bytes);
}

fn jpeg(bytes: &[u8]) {
    let _ = (|| -> Result<()> {
        let jpeg = Jpeg::open(bytes, PIXELS)?;
        let [height, width] = jpeg.size();
        jpeg.read(&mut vec![0; height * width * 3])
    })();
}

fn png(bytes: &[u8]) {
    raster(forebay_image::Format::Png, bytes);
}

fn pnm(bytes: &[u8]) {
    raster(forebay_image::Format::Pnm, bytes);
}

fn qoi(bytes: &[u8]) {
    raster(forebay_image::Format::Qoi, bytes);
}

fn tga(bytes: &[u8]) {
    raster(forebay_image::Format::Tga, bytes);
}

fn tiff(bytes: &[u8]) {
    raster(forebay_image::Format::Tiff, bytes);
    let _ = (|| -> Result<()> {
        let tiff = Tiff::open(bytes, PIXELS)?;
        let len = tiff.shape().iter().try_fold(tiff.dtype().size(), |len, axis| len.checked_mul(*axis));
        match len {
            Some(len) if len as u64 <= BYTES => tiff.read_samples(&mut vec![0; len]),
            _ => Ok(()),
        }
    })();
}

fn webp(bytes: &[u8]) {
    raster(forebay_image::Format::WebP, bytes);
}

fn raster(format: forebay_image::Format, bytes: &[u8]) {
    let _ = (|| -> Result<()> {
        let raster = Raster::open(format, bytes, PIXELS)?;
        let [height, width] = raster.size();
        raster.read(&mut vec![0; height * width * 3])
    })();
}
