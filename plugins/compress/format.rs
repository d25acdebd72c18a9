//! Packed values and zip archives, for the tests of all formats.

use forebay_bundled::forebay_compress;
use forebay_core::BufferMut;
use forebay_testkit::Costs;
use forebay_unpack::{Codec, Unpacked};

use crate::{BYTES, Format, apart, buffer, expand, opened, parser};

pub(crate) const FORMAT: Format = Format {
    parsers: &[
        parser("lz4", lz4, &["lz4"]),
        parser("lzw", lzw, &["Z"]),
        parser("unpack", unpack, &["gz", "zst", "xz", "bz2", "zlib"]),
        parser("zip", zip, &["zip", "npz"]),
    ],
    readers: &[
        opened("decompress", &["decompress", "lines", "json_lines"], PACKED),
        opened("unzip", &["unzip"], &["two.zip", "bzip2.zip", "birds.zip"]).costs(costs),
        opened("unzip_members", &["unzip group=none"], &["two.zip", "birds.zip"]).costs(costs),
        decoded!("bzip2", ["rows.jsonl.bz2"]),
        decoded!("compress", ["rows.jsonl.Z"]),
        decoded!("gzip", ["rows.jsonl.gz"]),
        decoded!("lz4", ["rows.jsonl.lz4"]),
        decoded!("xz", ["rows.jsonl.xz"]),
        decoded!("zlib", ["rows.zlib"]),
        decoded!("zstd", ["rows.jsonl.zst"]),
    ],
    ..Format::NONE
};

/// Lines of JSON, packed in every way.
const PACKED: &[&str] =
    &["rows.jsonl.gz", "rows.jsonl.zst", "rows.jsonl.xz", "rows.jsonl.bz2", "rows.jsonl.lz4", "rows.jsonl.Z"];

/// Members, which the directory behind them tells of.
fn costs(bytes: &[u8]) -> Costs {
    let starts = |mark: &[u8]| -> Vec<usize> {
        (0..bytes.len()).filter(|at| bytes[*at..].starts_with(mark)).collect()
    };
    let (members, directory) = (starts(b"PK\x03\x04"), starts(b"PK\x01\x02"));
    let ends = members.iter().skip(1).chain(directory.first());
    let parts = members.iter().zip(ends).enumerate();
    apart(&parts.map(|(sample, (start, end))| (*start..*end, sample..sample + 1)).collect::<Vec<_>>())
}

fn lz4(bytes: &[u8]) {
    unpack_as(Codec::Lz4, bytes);
}

fn lzw(bytes: &[u8]) {
    unpack_as(Codec::Compress, bytes);
}

fn unpack(bytes: &[u8]) {
    match Codec::of(bytes) {
        Some(codec) => unpack_as(codec, bytes),
        None => unpack_as(Codec::Zlib, bytes),
    }
}

fn zip(bytes: &[u8]) {
    expand::<forebay_compress::Unzip>("{}", bytes);
    let Ok(mut directory) = forebay_unpack::Directory::open(&buffer(bytes).into(), BYTES) else { return };
    let members: Vec<_> = directory.by_ref().map_while(|member| member.ok()).take(64).collect();
    for member in members {
        let _ = directory.read(&member, BYTES, |len| Ok(BufferMut::zeroed(len)));
    }
}

/// At once, and as a stream.
fn unpack_as(codec: Codec, bytes: &[u8]) {
    let _ = forebay_unpack::unpack(codec, &buffer(bytes), BYTES, |len| Ok(BufferMut::zeroed(len)));
    let source = std::io::Cursor::new(bytes.to_vec());
    if let Ok(stream) = Unpacked::new(codec, Box::new(source)) {
        let _ = std::io::copy(&mut std::io::Read::take(stream, BYTES), &mut std::io::sink());
    }
}
