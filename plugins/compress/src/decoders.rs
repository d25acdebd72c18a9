//! A decoder for each codec: packed bytes to the bytes in them, which another decoder may go on with.
//!
//! ```toml
//! [bzip2]
//! gives = "the bytes that were packed; `decode` goes on with those"
//! when = "a packed value in a sample; for whole files of many samples, pipes unpack by themselves"
//!
//! [compress]
//! gives = "the bytes that were packed; `decode` goes on with those"
//! when = "a packed value in a sample; for whole files of many samples, pipes unpack by themselves"
//!
//! [gzip]
//! gives = "the bytes that were packed; `decode` goes on with those"
//! when = "a packed value in a sample; for whole files of many samples, pipes unpack by themselves"
//!
//! [lz4]
//! gives = "the bytes that were packed; `decode` goes on with those"
//! when = "a packed value in a sample; for whole files of many samples, pipes unpack by themselves"
//!
//! [xz]
//! gives = "the bytes that were packed; `decode` goes on with those"
//! when = "a packed value in a sample; for whole files of many samples, pipes unpack by themselves"
//!
//! [zlib]
//! gives = "the bytes that were packed; `decode` goes on with those"
//! when = "a packed value in a sample; for whole files of many samples, pipes unpack by themselves"
//!
//! [zstd]
//! gives = "the bytes that were packed; `decode` goes on with those"
//! when = "a packed value in a sample; for whole files of many samples, pipes unpack by themselves"
//! ```

use forebay_core::{Buffer, Context, Decoder, DecoderInfo, Magic, NoOptions, Result, Value, Wanted};
use forebay_unpack::{Codec, unpack};

macro_rules! decoders {
    ($($(#[$doc:meta])* $type:ident = $codec:ident, [$($extension:literal),*], [$($media:literal),*], [$($magic:literal),*];)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug)]
            pub struct $type;

            impl Decoder for $type {
                const INFO: DecoderInfo = DecoderInfo {
                    name: Codec::$codec.name(),
                    summary: concat!("What ", stringify!($codec), " packed, as bytes"),
                    extensions: &[$($extension),*],
                    media_types: &[$($media),*],
                    magic: &[$(Magic { offset: 0, bytes: $magic }),*],
                    ..DecoderInfo::DEFAULT
                };
                type Options = NoOptions;

                fn new(_: NoOptions) -> Result<Self> {
                    Ok(Self)
                }

                fn probe(&self, head: &[u8], _: &str) -> u8 {
                    sure(Codec::$codec, head)
                }

                fn decode(&self, bytes: &Buffer, _: &Wanted, cx: &Context) -> Result<Value> {
                    unpack(Codec::$codec, bytes, cx.limits().bytes, |len| cx.alloc(len)).map(Value::from)
                }
            }
        )*

        /// What each says of itself.
        pub(crate) const DECODERS: &[DecoderInfo] = &[$($type::INFO),*];
    };
}

decoders! {
    /// Decodes gzip, of one member or several.
    Gzip = Gzip, ["gz", "gzip"], ["application/gzip"], [b"\x1f\x8b\x08"];
    /// Decodes zlib. It has no magic, so the extension must say so.
    Zlib = Zlib, ["zz", "zlib"], ["application/zlib"], [];
    /// Decodes Zstandard.
    Zstd = Zstd, ["zst", "zstd"], ["application/zstd"], [b"\x28\xb5\x2f\xfd"];
    /// Decodes xz.
    Xz = Xz, ["xz"], ["application/x-xz"], [b"\xfd7zXZ\0"];
    /// Decodes bzip2.
    Bzip2 = Bzip2, ["bz2"], ["application/x-bzip2"], [b"BZh"];
    /// Decodes frames of LZ4 blocks.
    Lz4 = Lz4, ["lz4"], ["application/x-lz4"], [b"\x04\x22\x4d\x18", b"\x02\x21\x4c\x18"];
    /// Decodes what compress(1) packed.
    Lzw = Compress, ["z"], ["application/x-compress"], [b"\x1f\x9d"];
}

/// How sure it is that bytes that begin so were packed by `codec`.
fn sure(codec: Codec, head: &[u8]) -> u8 {
    match (codec, head) {
        (codec, head) if Codec::of(head) == Some(codec) => 200,
        // Deflate, a window of at most 32 KiB, and a sum of both bytes that is checked.
        (Codec::Zlib, [method, flags, ..])
            if method & 0x8f == 8 && u16::from_be_bytes([*method, *flags]) % 31 == 0 =>
        {
            100
        }
        // A name says so and nothing else will: broken bytes had better be told than left as they are.
        (Codec::Zlib, _) => 16,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_own_are_told_by_the_head() {
        assert!(Gzip.probe(b"\x1f\x8b\x08\0", "json") > 128);
        assert_eq!(Bzip2.probe(b"BZhang Wei", "txt"), 0);
        assert!(Zlib.probe(b"\x78\x5e\x4b", "zz") > Zlib.probe(b"plain", "zz"));
    }
}
