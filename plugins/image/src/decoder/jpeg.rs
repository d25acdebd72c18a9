//! JPEG, decoded straight into the caller's memory.
//!
//! ```toml
//! [jpeg]
//! gives = "a uint8 tensor `[height, width, 3]`"
//! when = "photographs; a crop before `decode` decodes only what it needs"
//! ```

use forebay_core::{Buffer, Context, Decoder, DecoderInfo, Magic, NoOptions, Result, Value, Wanted};
use image::metadata::Orientation;

use crate::decoder::check_size;
use crate::jpeg::Picture;
use crate::orientation::{self, Layout};
use crate::pixels::{Crop, Pixels};
use crate::scratch;

/// The decoder `jpeg`.
pub struct JpegDecoder;

impl Decoder for JpegDecoder {
    const INFO: DecoderInfo = DecoderInfo {
        name: "jpeg",
        summary: "JPEG, baseline and progressive, to a uint8 tensor [height, width, 3]",
        extensions: &["jpg", "jpeg", "jpe", "jfif"],
        media_types: &["image/jpeg"],
        magic: &[Magic { offset: 0, bytes: b"\xff\xd8\xff" }],
        ..DecoderInfo::DEFAULT
    };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self)
    }

    fn probe(&self, head: &[u8], _: &str) -> u8 {
        super::by_magic(head, &Self::INFO)
    }

    fn decode(&self, bytes: &Buffer, wanted: &Wanted<'_>, cx: &Context<'_>) -> Result<Value> {
        let jpeg = Jpeg::open(bytes, cx.limits().pixels)?;
        super::picture(jpeg.size(), wanted, cx, |out| jpeg.read(out))
    }
}

/// A JPEG whose header has been read.
///
/// ```no_run
/// use forebay_image::{Crop, Jpeg};
///
/// let bytes = std::fs::read("photo.jpg")?;
/// let jpeg = Jpeg::open(&bytes, 100_000_000)?;
/// let [height, width] = jpeg.size();
/// let mut rgb = vec![0; height * width * 3];
/// jpeg.read(&mut rgb)?;
/// // The same bytes as those of the rectangle in `rgb`, for less work.
/// let mut part = vec![0; 64 * 80 * 3];
/// let crop = Crop { top: 10, left: 20, height: 64, width: 80 };
/// Jpeg::open(&bytes, 100_000_000)?.read_region(crop, &mut part)?;
/// # Ok::<(), forebay_core::Error>(())
/// ```
pub struct Jpeg<'a> {
    picture: Picture<'a>,
    orientation: Orientation,
}

impl<'a> Jpeg<'a> {
    /// Reads the header, without taking memory for pixels.
    ///
    /// # Errors
    /// [`Limit`](forebay_core::ErrorKind::Limit) if there are more than `max_pixels`, [`Corrupt`](forebay_core::ErrorKind::Corrupt) if the
    /// header is broken, [`Unsupported`](forebay_core::ErrorKind::Unsupported) for lossless, hierarchical and arithmetic coding and for 12 bits.
    pub fn open(bytes: &'a [u8], max_pixels: u64) -> Result<Self> {
        let picture = Picture::open(bytes)?;
        check_size(picture.size().map(|side| side as u64), max_pixels)?;
        let orientation = picture.exif().map_or(Orientation::NoTransforms, orientation::from_exif);
        Ok(Self { picture, orientation })
    }

    /// Height and width of the picture, turned as its Exif orientation says.
    #[must_use]
    pub fn size(&self) -> [usize; 2] {
        let [height, width] = self.picture.size();
        if orientation::turns(self.orientation) { [width, height] } else { [height, width] }
    }

    /// Decodes into `out` as RGB; a picture that must be turned goes through scratch memory of the thread.
    ///
    /// # Errors
    /// [`Corrupt`](forebay_core::ErrorKind::Corrupt) if the data is broken or ends early, [`Invalid`](forebay_core::ErrorKind::Invalid) if
    /// `out` is not height x width x 3 bytes.
    pub fn read(self, out: &mut [u8]) -> Result<()> {
        let [height, width] = self.size();
        self.read_region(Crop { top: 0, left: 0, height, width }, out)
    }

    /// Decodes the rectangle `crop` of the picture, as it is turned, into `out` as RGB: the same bytes as
    /// [`read`](Self::read) gives there.
    ///
    /// What is outside of the rectangle is only passed over. Of a file with one scan, what is below the rectangle is not looked at, so
    /// that a fault there goes unseen.
    ///
    /// # Errors
    /// [`Corrupt`](forebay_core::ErrorKind::Corrupt) if the data is broken or ends early, [`Invalid`](forebay_core::ErrorKind::Invalid) if
    /// `crop` is not inside of the picture or `out` is not height x width x 3 bytes of it.
    pub fn read_region(self, crop: Crop, out: &mut [u8]) -> Result<()> {
        crop.check(self.size())?;
        Pixels::check_out([crop.height, crop.width, 3], out)?;
        let part = orientation::stored(self.orientation, self.picture.size(), crop);
        if self.orientation == Orientation::NoTransforms {
            return self.picture.read(part, out);
        }
        scratch::with(out.len(), |upright| {
            self.picture.read(part, upright)?;
            orientation::write_rgb(upright, [part.height, part.width], Layout::RGB, self.orientation, out);
            Ok(())
        })
    }
}
