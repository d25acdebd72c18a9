//! The decoders of what the image crate reads: what each says of itself.
//!
//! ```toml
//! [bmp]
//! gives = "a uint8 tensor `[height, width, 3]`"
//! when = "photographs and drawings; put `resize` or a crop before `decode`, so that less is decoded"
//!
//! [gif]
//! gives = "a uint8 tensor `[height, width, 3]`, the first frame"
//! when = "single pictures; for all frames, use `decode_frames`"
//!
//! [ico]
//! gives = "a uint8 tensor `[height, width, 3]`, the largest one of the file"
//! when = "icons"
//!
//! [png]
//! gives = "a uint8 tensor `[height, width, 3]`"
//! when = "photographs and drawings; put `resize` or a crop before `decode`, so that less is decoded"
//!
//! [pnm]
//! gives = "a uint8 tensor `[height, width, 3]`"
//! when = "photographs and drawings; put `resize` or a crop before `decode`, so that less is decoded"
//!
//! [qoi]
//! gives = "a uint8 tensor `[height, width, 3]`"
//! when = "photographs and drawings; put `resize` or a crop before `decode`, so that less is decoded"
//!
//! [tga]
//! gives = "a uint8 tensor `[height, width, 3]`"
//! when = "old textures; name the files `.tga`, since the format has no first bytes of its own"
//!
//! [webp]
//! gives = "a uint8 tensor `[height, width, 3]`, the first frame"
//! when = "single pictures; for all frames, use `decode_frames`"
//! ```

use forebay_core::{Buffer, Context, Decoder, DecoderInfo, Magic, NoOptions, Result, Value, Wanted};

use crate::decoder::raster::{self, Format};

macro_rules! decoders {
    ($($type:ident = $format:ident, $name:literal, $summary:literal, [$($extension:literal),*], $media:literal,
        [$($offset:literal: $magic:literal),*], $probe:expr;)*) => {
        $(
            #[doc = concat!("The decoder `", $name, "`.")]
            pub struct $type;

            impl Decoder for $type {
                const INFO: DecoderInfo = DecoderInfo {
                    name: $name,
                    summary: concat!($summary, ", to a uint8 tensor [height, width, 3]"),
                    extensions: &[$($extension),*],
                    media_types: &[$media],
                    magic: &[$(Magic { offset: $offset, bytes: $magic }),*],
                    ..DecoderInfo::DEFAULT
                };
                type Options = NoOptions;

                fn new(_: NoOptions) -> Result<Self> {
                    Ok(Self)
                }

                fn probe(&self, head: &[u8], _: &str) -> u8 {
                    let probe: fn(&[u8]) -> u8 = $probe;
                    probe(head)
                }

                fn decode(&self, bytes: &Buffer, wanted: &Wanted<'_>, cx: &Context<'_>) -> Result<Value> {
                    raster::decode(Format::$format, bytes, wanted, cx)
                }
            }
        )*
    };
}

decoders! {
    PngDecoder = Png, "png", "PNG of 1 to 16 bits", ["png", "apng"], "image/png", [0: b"\x89PNG\r\n\x1a\n"],
        |head| super::by_magic(head, &Self::INFO);
    WebPDecoder = WebP, "webp", "WebP, lossy and lossless, the first frame", ["webp"], "image/webp", [8: b"WEBP"],
        |head| super::by_magic(head, &Self::INFO);
    GifDecoder = Gif, "gif", "GIF, the first frame", ["gif"], "image/gif", [0: b"GIF87a", 0: b"GIF89a"],
        |head| super::by_magic(head, &Self::INFO);
    BmpDecoder = Bmp, "bmp", "Windows bitmap", ["bmp", "dib"], "image/bmp", [0: b"BM"],
        |head| super::by_magic(head, &Self::INFO);
    QoiDecoder = Qoi, "qoi", "QOI", ["qoi"], "image/qoi", [0: b"qoif"],
        |head| super::by_magic(head, &Self::INFO);
    IcoDecoder = Ico, "ico", "Windows icon, its largest picture", ["ico", "cur"], "image/vnd.microsoft.icon",
        [0: b"\0\0\x01\0", 0: b"\0\0\x02\0"], |head| if is_ico(head) { 255 } else { 1 };
    PnmDecoder = Pnm, "pnm", "Netpbm", ["pnm", "pbm", "pgm", "ppm", "pam"], "image/x-portable-anymap",
        [0: b"P1", 0: b"P2", 0: b"P3", 0: b"P4", 0: b"P5", 0: b"P6", 0: b"P7"],
        // Two letters may as well begin a text.
        |head| if is_pnm(head) { 192 } else { 1 };
    TgaDecoder = Tga, "tga", "Targa", ["tga"], "image/x-tga", [],
        |head| if may_be_tga(head) { 128 } else { 1 };
}

/// Whether this is the directory of an icon or a cursor with pictures in it. Targa of true colour begins with the four bytes of
/// a cursor, but has zeros where pictures are counted.
pub(crate) fn is_ico(head: &[u8]) -> bool {
    matches!(*head, [0, 0, 1 | 2, 0, low, high, ..] if low | high != 0)
}

/// Whether a header's letter and number are followed by white space, and that by a number, a comment or a word.
pub(crate) fn is_pnm(head: &[u8]) -> bool {
    let [b'P', b'1'..=b'7', space, rest @ ..] = head else { return false };
    let next = rest.iter().find(|byte| !byte.is_ascii_whitespace());
    let is_word = head[1] == b'7' && next == Some(&b'W');
    space.is_ascii_whitespace()
        && (is_word || next.is_some_and(|byte| byte.is_ascii_digit() || *byte == b'#'))
}

/// Targa has no magic bytes: what its header says must be possible.
fn may_be_tga(head: &[u8]) -> bool {
    matches!(head, [_, 0 | 1, 1 | 2 | 3 | 9 | 10 | 11, ..])
        && head.get(16).is_some_and(|bits| [8, 15, 16, 24, 32].contains(bits))
}
