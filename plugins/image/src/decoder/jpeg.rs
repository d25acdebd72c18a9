//! JPEG, decoded straight into the caller's memory: the common kind by our own decoder, the others by zune-jpeg.

use forebay_core::{
    Buffer, Context, Decoder, DecoderInfo, Error, ErrorKind, Magic, NoOptions, Result, Value, Wanted,
};
use image::metadata::Orientation;
use zune_jpeg::errors::DecodeErrors;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use crate::decoder::check_size;
use crate::jpeg::Sequential;
use crate::orientation::{self, Layout};
use crate::pixels::{Crop, Pixels, cut};
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
    kind: Kind<'a>,
    stored: [usize; 2],
    orientation: Orientation,
}

/// What reads it.
enum Kind<'a> {
    Sequential(Sequential<'a>),
    Other(Box<zune_jpeg::JpegDecoder<ZCursor<&'a [u8]>>>, &'a [u8]),
}

impl<'a> Jpeg<'a> {
    /// Reads the header, without taking memory for pixels.
    ///
    /// # Errors
    /// [`Limit`](ErrorKind::Limit) if there are more than `max_pixels`, [`Corrupt`](ErrorKind::Corrupt) if the
    /// header is broken, [`Unsupported`](ErrorKind::Unsupported) for lossless, hierarchical and arithmetic coding and for 12 bits.
    pub fn open(bytes: &'a [u8], max_pixels: u64) -> Result<Self> {
        if let Some(jpeg) = Sequential::open(bytes) {
            let stored = jpeg.size();
            check_size(stored.map(|side| side as u64), max_pixels)?;
            let orientation = jpeg.exif().map_or(Orientation::NoTransforms, orientation::from_exif);
            return Ok(Self { kind: Kind::Sequential(jpeg), stored, orientation });
        }
        let options = DecoderOptions::default()
            .set_strict_mode(true)
            .set_max_width(usize::from(u16::MAX))
            .set_max_height(usize::from(u16::MAX))
            .jpeg_set_out_colorspace(ColorSpace::RGB);
        if let Some(kind) = unsupported(bytes) {
            return Err(Error::unsupported(kind));
        }
        let mut decoder = zune_jpeg::JpegDecoder::new_with_options(ZCursor::new(bytes), options);
        decoder.decode_headers().map_err(|error| broken(&error))?;
        let (width, height) = decoder.dimensions().unwrap_or_default();
        check_size([height as u64, width as u64], max_pixels)?;
        let orientation =
            decoder.exif().map_or(Orientation::NoTransforms, |exif| orientation::from_exif(exif));
        if let Some(ColorSpace::MultiBand(bands)) = decoder.input_colorspace() {
            return Err(Error::unsupported(format!("JPEG of {bands} components, expected 1, 3 or 4")));
        }
        Ok(Self { kind: Kind::Other(Box::new(decoder), bytes), stored: [height, width], orientation })
    }

    /// Height and width of the picture, turned as its Exif orientation says.
    #[must_use]
    pub fn size(&self) -> [usize; 2] {
        let [height, width] = self.stored;
        if orientation::turns(self.orientation) { [width, height] } else { [height, width] }
    }

    /// Decodes into `out` as RGB; a picture that must be turned goes through scratch memory of the thread.
    ///
    /// # Errors
    /// [`Corrupt`](ErrorKind::Corrupt) if the data is broken or ends early, [`Invalid`](ErrorKind::Invalid) if
    /// `out` is not height x width x 3 bytes.
    pub fn read(self, out: &mut [u8]) -> Result<()> {
        let [height, width] = self.size();
        self.read_region(Crop { top: 0, left: 0, height, width }, out)
    }

    /// Decodes the rectangle `crop` of the picture, as it is turned, into `out` as RGB: the same bytes as
    /// [`read`](Self::read) gives there.
    ///
    /// Of a sequential file, what is below the rectangle is not looked at, so that a fault there goes unseen, and
    /// the rest outside of it is only passed over. Any other file is decoded whole.
    ///
    /// # Errors
    /// [`Corrupt`](ErrorKind::Corrupt) if the data is broken or ends early, [`Invalid`](ErrorKind::Invalid) if
    /// `crop` is not inside of the picture or `out` is not height x width x 3 bytes of it.
    pub fn read_region(self, crop: Crop, out: &mut [u8]) -> Result<()> {
        crop.check(self.size())?;
        Pixels::check_out([crop.height, crop.width, 3], out)?;
        let part = orientation::stored(self.orientation, self.stored, crop);
        if self.orientation == Orientation::NoTransforms {
            return self.kind.read(self.stored, part, out);
        }
        scratch::with(out.len(), |upright| {
            self.kind.read(self.stored, part, upright)?;
            orientation::write_rgb(upright, [part.height, part.width], Layout::RGB, self.orientation, out);
            Ok(())
        })
    }
}

impl Kind<'_> {
    /// Decodes a rectangle of the picture as it is stored.
    fn read(self, [height, width]: [usize; 2], part: Crop, out: &mut [u8]) -> Result<()> {
        match self {
            Self::Sequential(jpeg) => jpeg.read(part, out),
            Self::Other(decoder, bytes) if [part.height, part.width] == [height, width] => {
                read_other(*decoder, bytes, out)
            }
            Self::Other(decoder, bytes) => scratch::with(height * width * 3, |whole| {
                read_other(*decoder, bytes, whole)?;
                cut(&Pixels::new(whole, [height, width, 3])?, part, out)
            }),
        }
    }
}

/// Reads all of a picture by zune-jpeg, which takes one that is cut off for whole.
fn read_other(
    mut decoder: zune_jpeg::JpegDecoder<ZCursor<&[u8]>>,
    bytes: &[u8],
    out: &mut [u8],
) -> Result<()> {
    decoder.decode_into(out).map_err(|error| broken(&error))?;
    if has_end(bytes) { Ok(()) } else { Err(Error::corrupt("JPEG data ends early: no marker of the end")) }
}

/// Whether the marker of the end follows what stands before it.
fn has_end(bytes: &[u8]) -> bool {
    let mut rest = bytes.get(2..).unwrap_or_default();
    loop {
        rest = match *rest {
            [0xff, 0xd9, ..] => return true,
            [0xff, 0xff, ..] => &rest[1..],
            // A coded byte, or a marker that is no segment's.
            [0xff, 0x00 | 0x01 | 0xd0..=0xd7, ref after @ ..] => after,
            [0xff, _, high, low, ref after @ ..] => {
                behind([high, low], after).map_or(&[], |(_, after)| after)
            }
            [0xff, ..] | [] => return false,
            [..] => rest.iter().position(|byte| *byte == 0xff).map_or(&[], |at| &rest[at..]),
        }
    }
}

/// A segment of this length, and what follows it.
fn behind(len: [u8; 2], rest: &[u8]) -> Option<(&[u8], &[u8])> {
    rest.split_at_checked(usize::from(u16::from_be_bytes(len)).saturating_sub(2))
}

/// Which kind of JPEG this is, if zune-jpeg is not to read it: some it calls broken, and of some sequential ones whose first scan lacks
/// some components zune-jpeg up to 0.5.16 gives wrong colours and no error (its issues 422 and 448).
fn unsupported(bytes: &[u8]) -> Option<&'static str> {
    let mut rest = bytes.get(2..)?;
    let mut components = None;
    loop {
        match *rest {
            [0xff, 0xff | 0x00, ..] => rest = &rest[1..],
            [0xff, marker, high, low, ref after @ ..] => {
                let (segment, after) = behind([high, low], after)?;
                // ITU-T T.81, table B.1.
                match marker {
                    0xc3 | 0xcb => return Some("lossless JPEG"),
                    0xc5..=0xc7 | 0xcd..=0xcf => return Some("hierarchical JPEG"),
                    0xc9 | 0xca => return Some("JPEG of arithmetic coding"),
                    0xc0..=0xc2 if segment.first() == Some(&12) => {
                        return Some("JPEG of 12 bits, expected 8");
                    }
                    0xc0 | 0xc1 => components = segment.get(5).copied(),
                    0xda => {
                        let few = *segment.first()?;
                        return components.filter(|all| few < *all).map(|_| {
                            "sequential JPEG with its components in separate scans, which end early or are no common YCbCr"
                        });
                    }
                    _ => {}
                }
                rest = after;
            }
            [_, ref after @ ..] => rest = after,
            [] => return None,
        }
    }
}

/// zune-jpeg's error as ours.
fn broken(error: &DecodeErrors) -> Error {
    match error {
        DecodeErrors::ExhaustedData | DecodeErrors::IoErrors(_) => {
            return Error::corrupt("JPEG data ends early");
        }
        DecodeErrors::IllegalMagicBytes(found) => {
            return Error::corrupt(format!("JPEG begins with {found:04x}, expected ffd8"));
        }
        _ => {}
    }
    let text = error.to_string();
    let kind = match error {
        DecodeErrors::Unsupported(_) => ErrorKind::Unsupported,
        DecodeErrors::LargeDimensions(_) => ErrorKind::Limit,
        // Some features that it lacks are told in words only.
        _ if text.contains("not supported") => ErrorKind::Unsupported,
        _ => ErrorKind::Corrupt,
    };
    Error::new(kind, format!("JPEG cannot be decoded: {}", text.trim().trim_matches('"')))
}
