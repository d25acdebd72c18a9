#![doc = include_str!("../README.md")]

mod center_crop;
mod decoder;
mod encoded;
mod field;
mod flip;
mod jpeg;
mod normalize;
mod orientation;
mod pixels;
mod random_resized_crop;
mod resize;
mod scratch;
#[expect(unsafe_code, reason = "vector instructions, which load and store through raw pointers")]
mod simd;
mod tiff;

pub use center_crop::{CenterCrop, CenterCropOptions};
pub use decoder::bmp::BmpDecoder;
pub use decoder::gif::GifDecoder;
pub use decoder::ico::IcoDecoder;
pub use decoder::jpeg::{Jpeg, JpegDecoder};
pub use decoder::png::PngDecoder;
pub use decoder::pnm::PnmDecoder;
pub use decoder::qoi::QoiDecoder;
pub use decoder::raster::{Format, Raster};
pub use decoder::tga::TgaDecoder;
pub use decoder::tiff::TiffDecoder;
pub use decoder::webp::WebPDecoder;
pub use flip::{Flip, FlipOptions, flip};
pub use normalize::{IMAGENET_MEAN, IMAGENET_STD, Levels, Normalize, NormalizeOptions, levels, normalize};
pub use pixels::{Crop, Pixels, cut};
pub use random_resized_crop::{CropRange, RandomResizedCrop, RandomResizedCropOptions};
pub use resize::{Filter, Resize, ResizeOptions, by_shorter_side, resize};
pub use tiff::Tiff;

forebay_core::export_plugin! {
    maps: [Resize, RandomResizedCrop, CenterCrop, Flip, Normalize],
    decoders: [
        JpegDecoder, PngDecoder, WebPDecoder, GifDecoder, BmpDecoder, TiffDecoder, QoiDecoder, PnmDecoder, IcoDecoder,
        TgaDecoder,
    ],
}
