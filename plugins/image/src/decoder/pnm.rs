//! PBM, PGM, PPM and PAM by the image crate.

use forebay_core::{Buffer, Context, Decoder, DecoderInfo, Magic, NoOptions, Result, Value, Wanted};

use crate::decoder::raster::{self, Format};

/// The decoder `pnm`.
pub struct PnmDecoder;

impl Decoder for PnmDecoder {
    const INFO: DecoderInfo = DecoderInfo {
        name: "pnm",
        summary: "Netpbm, to a uint8 tensor [height, width, 3]",
        extensions: &["pnm", "pbm", "pgm", "ppm", "pam"],
        media_types: &["image/x-portable-anymap"],
        magic: &[
            Magic { offset: 0, bytes: b"P1" },
            Magic { offset: 0, bytes: b"P2" },
            Magic { offset: 0, bytes: b"P3" },
            Magic { offset: 0, bytes: b"P4" },
            Magic { offset: 0, bytes: b"P5" },
            Magic { offset: 0, bytes: b"P6" },
            Magic { offset: 0, bytes: b"P7" },
        ],
        ..DecoderInfo::DEFAULT
    };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self)
    }

    /// Two letters may as well begin a text.
    fn probe(&self, head: &[u8], _: &str) -> u8 {
        if is_pnm(head) { 192 } else { 1 }
    }

    fn decode(&self, bytes: &Buffer, wanted: &Wanted<'_>, cx: &Context<'_>) -> Result<Value> {
        raster::decode(Format::Pnm, bytes, wanted, cx)
    }
}

/// Whether a header's letter and number are followed by white space, and that by a number, a comment or a word.
pub(crate) fn is_pnm(head: &[u8]) -> bool {
    let [b'P', b'1'..=b'7', space, rest @ ..] = head else { return false };
    let next = rest.iter().find(|byte| !byte.is_ascii_whitespace());
    let is_word = head[1] == b'7' && next == Some(&b'W');
    space.is_ascii_whitespace()
        && (is_word || next.is_some_and(|byte| byte.is_ascii_digit() || *byte == b'#'))
}
