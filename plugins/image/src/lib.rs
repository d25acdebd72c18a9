#![doc = include_str!("../README.md")]

mod center_crop;
mod decode_frames;
mod decoder;
mod encode;
mod encoded;
mod field;
mod flip;
mod frames;
mod jpeg;
mod moving;
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
pub use decode_frames::{DecodeFrames, DecodeFramesOptions};
pub use decoder::formats::{
    BmpDecoder, GifDecoder, IcoDecoder, PngDecoder, PnmDecoder, QoiDecoder, TgaDecoder, WebPDecoder,
};
pub use decoder::jpeg::{Jpeg, JpegDecoder};
pub use decoder::raster::{Format, Raster};
pub use decoder::tiff::TiffDecoder;
pub use encode::{EncodeJpeg, EncodeJpegOptions, EncodePng, EncodePngOptions, EncodeWebP, EncodeWebPOptions};
pub use flip::{Flip, FlipOptions, flip};
pub use frames::Frames;
pub use normalize::{IMAGENET_MEAN, IMAGENET_STD, Levels, Normalize, NormalizeOptions, levels, normalize};
pub use pixels::{Crop, Pixels, cut};
pub use random_resized_crop::{CropRange, RandomResizedCrop, RandomResizedCropOptions};
pub use resize::{Filter, Resize, ResizeOptions, by_shorter_side, resize};
pub use tiff::Tiff;

forebay_core::export_plugin! {
    state_version: 1,
    maps: [
        Resize, RandomResizedCrop, CenterCrop, Flip, Normalize, DecodeFrames, EncodeJpeg, EncodePng, EncodeWebP,
    ],
    decoders: [
        JpegDecoder, PngDecoder, WebPDecoder, GifDecoder, BmpDecoder, TiffDecoder, QoiDecoder, PnmDecoder, IcoDecoder,
        TgaDecoder,
    ],
}
