//! The decoders: JPEG, TIFF, those of the image crate, and what they share.

pub(crate) mod formats;
mod ico;
pub(crate) mod jpeg;
pub(crate) mod raster;
pub(crate) mod tiff;

use forebay_core::{Context, DType, DecoderInfo, Error, Result, Tensor, TensorExt, Value, Wanted};

use crate::pixels::output;

/// Sure of bytes that begin as these files do. Of others it is the last resort: whoever named them so gets
/// the decoder's own reason.
pub(crate) fn by_magic(head: &[u8], info: &DecoderInfo) -> u8 {
    if has_magic(head, info) { 255 } else { 1 }
}

/// Whether bytes begin as the files of this decoder do.
pub(crate) fn has_magic(head: &[u8], info: &DecoderInfo) -> bool {
    info.magic.iter().any(|magic| {
        let rest = usize::try_from(magic.offset).ok().and_then(|offset| head.get(offset..));
        rest.is_some_and(|rest| rest.starts_with(magic.bytes))
    })
}

/// The tensor [height, width, 3] that `read` fills, in the host's memory.
pub(crate) fn picture(
    [height, width]: [usize; 2],
    wanted: &Wanted<'_>,
    cx: &Context<'_>,
    read: impl FnOnce(&mut [u8]) -> Result<()>,
) -> Result<Value> {
    if wanted.dtype != DType::ANY && wanted.dtype != DType::U8 {
        return Err(Error::unsupported(format!("pictures decode to uint8, wanted is {}", wanted.dtype)));
    }
    let shape = [height, width, 3];
    let mut out = output(shape, DType::U8, cx)?;
    read(&mut out)?;
    Ok(Tensor::new(DType::U8, &shape, out.freeze())?.into())
}

/// Fails unless a picture of `height` x `width` has some pixels, and at most `max_pixels`.
pub(crate) fn check_size([height, width]: [u64; 2], max_pixels: u64) -> Result<()> {
    let pixels = height.saturating_mul(width);
    if pixels == 0 {
        return Err(Error::corrupt(format!("picture of {width} x {height} pixels has none")));
    }
    if pixels > max_pixels || usize::try_from(pixels.saturating_mul(8)).is_err() {
        return Err(Error::limit(format!(
            "picture of {width} x {height} has {pixels} pixels, the limit is {max_pixels}"
        )));
    }
    Ok(())
}
