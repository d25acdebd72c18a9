//! A borrowed picture, the rectangle cut from it, and the checks that keep both inside their bytes.

use forebay_core::{BufferMut, Context, DType, Error, Result};

/// A borrowed picture: interleaved bytes, row after row, without padding.
#[derive(Debug, Clone, Copy)]
pub struct Pixels<'a> {
    bytes: &'a [u8],
    height: usize,
    width: usize,
    channels: usize,
}

impl<'a> Pixels<'a> {
    /// A view of `bytes` as `height` x `width` pixels of `channels` bytes.
    ///
    /// # Errors
    /// [`Invalid`](forebay_core::ErrorKind::Invalid) if `bytes` has another length, or a size is zero.
    ///
    /// ```
    /// use forebay_image::Pixels;
    ///
    /// assert_eq!(Pixels::new(&[0; 24], [2, 4, 3])?.width(), 4);
    /// assert!(Pixels::new(&[0; 23], [2, 4, 3]).is_err());
    /// # Ok::<(), forebay_core::Error>(())
    /// ```
    pub fn new(bytes: &'a [u8], [height, width, channels]: [usize; 3]) -> Result<Self> {
        let len = byte_len([height, width, channels])?;
        if len != bytes.len() {
            return Err(Error::invalid(format!(
                "a picture of {height} x {width} x {channels} takes {len} bytes, found {}",
                bytes.len()
            )));
        }
        Ok(Self { bytes, height, width, channels })
    }

    /// The bytes, row after row.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Rows.
    #[must_use]
    pub fn height(&self) -> usize {
        self.height
    }

    /// Pixels of a row.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Bytes of a pixel.
    #[must_use]
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// The rectangle that covers all of it.
    #[must_use]
    pub fn whole(&self) -> Crop {
        Crop { top: 0, left: 0, height: self.height, width: self.width }
    }

    /// Fails unless `out` has as many bytes as `shape` takes.
    pub(crate) fn check_out(shape: [usize; 3], out: &[u8]) -> Result<()> {
        let len = byte_len(shape)?;
        if out.len() == len {
            return Ok(());
        }
        Err(Error::invalid(format!("the output takes {len} bytes, found room for {}", out.len())))
    }
}

/// The bytes that a picture of `height` x `width` x `channels` takes; none of them may be zero.
pub(crate) fn byte_len([height, width, channels]: [usize; 3]) -> Result<usize> {
    let len = height.checked_mul(width).and_then(|pixels| pixels.checked_mul(channels));
    match len {
        Some(len) if len > 0 => Ok(len),
        _ => Err(Error::invalid(format!("a picture cannot be {height} x {width} x {channels}"))),
    }
}

/// The host's memory for a picture of this shape, if its limits allow it.
pub(crate) fn output(shape: [usize; 3], dtype: DType, cx: &Context<'_>) -> Result<BufferMut> {
    let limits = cx.limits();
    let [height, width, channels] = shape;
    let pixels = (height as u64).saturating_mul(width as u64);
    let bytes = pixels.saturating_mul(channels as u64).saturating_mul(dtype.size() as u64);
    if pixels > limits.pixels || bytes > limits.bytes {
        return Err(Error::limit(format!(
            "a picture of {height} x {width} x {channels} has {pixels} pixels and {bytes} bytes, the limits are \
             {} and {}",
            limits.pixels, limits.bytes
        )));
    }
    cx.alloc(byte_len(shape)? * dtype.size())
}

/// A rectangle of whole pixels inside a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crop {
    /// Rows above it.
    pub top: usize,
    /// Pixels left of it.
    pub left: usize,
    /// Its rows.
    pub height: usize,
    /// Its pixels in a row.
    pub width: usize,
}

impl Crop {
    /// The rectangle of this size in the middle of a `height` x `width` picture.
    ///
    /// An odd rest is halved as torchvision halves it: to the nearest, ties to even.
    ///
    /// # Errors
    /// [`Invalid`](forebay_core::ErrorKind::Invalid) if the picture is smaller than `size`.
    pub fn center([height, width]: [usize; 2], size: [usize; 2]) -> Result<Self> {
        let [rows, columns] = size;
        let (Some(below), Some(right)) = (height.checked_sub(rows), width.checked_sub(columns)) else {
            return Err(Error::invalid(format!(
                "cannot cut {rows} x {columns} out of a picture of {height} x {width}; resize it first"
            )));
        };
        Ok(Self { top: half_even(below), left: half_even(right), height: rows, width: columns })
    }

    /// Fails unless the rectangle is inside of a `height` x `width` picture and not empty.
    pub(crate) fn check(&self, [height, width]: [usize; 2]) -> Result<()> {
        let fits = |start: usize, len: usize, whole: usize| {
            len > 0 && start.checked_add(len).is_some_and(|end| end <= whole)
        };
        if fits(self.top, self.height, height) && fits(self.left, self.width, width) {
            return Ok(());
        }
        Err(Error::invalid(format!("{self:?} is not inside a picture of {height} x {width}")))
    }
}

/// Half of `rest`, rounded to the nearest and ties to even.
fn half_even(rest: usize) -> usize {
    rest / 2 + usize::from(rest % 4 == 3)
}

/// Copies the rectangle `crop` of `src` to `out`.
///
/// # Errors
/// [`Invalid`](forebay_core::ErrorKind::Invalid) if `crop` is not inside `src` or `out` has another length.
pub fn cut(src: &Pixels<'_>, crop: Crop, out: &mut [u8]) -> Result<()> {
    crop.check([src.height, src.width])?;
    Pixels::check_out([crop.height, crop.width, src.channels], out)?;
    let start = crop.left * src.channels;
    let len = crop.width * src.channels;
    let rows = src.bytes.chunks_exact(src.width * src.channels).skip(crop.top);
    for (row, out) in rows.zip(out.chunks_exact_mut(len)) {
        out.copy_from_slice(&row[start..start + len]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn centers_as_torchvision_does() {
        // int(round((h - th) / 2.0)) of Python rounds ties to even.
        for (rest, top) in [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (5, 2), (6, 3), (7, 4), (9, 4), (11, 6)] {
            assert_eq!(Crop::center([10 + rest, 10], [10, 10]).unwrap().top, top, "rest {rest}");
        }
        assert!(Crop::center([9, 10], [10, 10]).unwrap_err().to_string().contains("resize it first"));
    }

    #[test]
    fn cuts_rows() {
        let bytes: Vec<u8> = (0..24).collect();
        let src = Pixels::new(&bytes, [4, 3, 2]).unwrap();
        let mut out = [0; 8];
        cut(&src, Crop { top: 1, left: 1, height: 2, width: 2 }, &mut out).unwrap();
        assert_eq!(out, [8, 9, 10, 11, 14, 15, 16, 17]);
        assert!(cut(&src, Crop { top: 3, left: 1, height: 2, width: 2 }, &mut out).is_err());
        assert!(cut(&src, Crop { top: usize::MAX, left: 0, height: 2, width: 2 }, &mut out).is_err());
    }
}
