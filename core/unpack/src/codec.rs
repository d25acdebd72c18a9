//! Finds the codec of packed bytes by their first bytes.

/// A way of packing bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Codec {
    /// gzip, RFC 1952.
    Gzip,
    /// zlib, RFC 1950.
    Zlib,
    /// Zstandard, RFC 8878.
    Zstd,
    /// xz.
    Xz,
    /// bzip2.
    Bzip2,
    /// Frames of LZ4 blocks.
    Lz4,
    /// compress(1), `.Z`.
    Compress,
}

impl Codec {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Gzip, Self::Zlib, Self::Zstd, Self::Xz, Self::Bzip2, Self::Lz4, Self::Compress];

    /// How many first bytes [`of`](Codec::of) looks at.
    pub const HEAD: usize = 10;

    /// The codec of bytes with these first bytes; `None` if they are not packed.
    ///
    /// ```
    /// use forebay_unpack::Codec;
    ///
    /// assert_eq!(Codec::of(b"\x1f\x8b\x08\0"), Some(Codec::Gzip));
    /// assert_eq!(Codec::of(b"BZhang Wei"), None);
    /// ```
    #[must_use]
    pub fn of(head: &[u8]) -> Option<Self> {
        Some(match head {
            [0x1f, 0x8b, 8, ..] => Self::Gzip,
            [0x78, 0x01 | 0x9c | 0xda, ..] => Self::Zlib,
            // Frames to be passed over may come first.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Xz,
            [b'B', b'Z', b'h', b'1'..=b'9', rest @ ..] if bzip2_goes_on(rest) => Self::Bzip2,
            [0x04, 0x22, 0x4d, 0x18, ..] | [0x02, 0x21, 0x4c, 0x18, ..] => Self::Lz4,
            [0x1f, 0x9d, ..] => Self::Compress,
            _ => return None,
        })
    }

    /// The name, as in options.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zlib => "zlib",
            Self::Zstd => "zstd",
            Self::Xz => "xz",
            Self::Bzip2 => "bzip2",
            Self::Lz4 => "lz4",
            Self::Compress => "compress",
        }
    }
}

/// Whether what follows `BZh1` begins with the mark of a block (pi) or of the end (its square root), as far as it is there.
fn bzip2_goes_on(rest: &[u8]) -> bool {
    const BLOCK: [u8; 6] = [0x31, 0x41, 0x59, 0x26, 0x53, 0x59];
    const END: [u8; 6] = [0x17, 0x72, 0x45, 0x38, 0x50, 0x90];
    let seen = rest.get(..rest.len().min(6)).unwrap_or_default();
    BLOCK.starts_with(seen) || END.starts_with(seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_not_packed() {
        for text in ["", "x", "x^2 + 1", "BZ", "BZhello", "{}", "PK\x03\x04", "7z"] {
            assert_eq!(Codec::of(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn names_differ() {
        let names: std::collections::HashSet<_> = Codec::ALL.iter().map(|codec| codec.name()).collect();
        assert_eq!(names.len(), Codec::ALL.len());
    }
}
