//! Every format: pipes that read it, and small files of it.

/// Pipes behind a sample that has a file's bytes in a field, and files for them, in `tests/mutations/seeds`.
pub(crate) struct Format {
    pub(crate) name: &'static str,
    pub(crate) field: &'static str,
    pub(crate) pipes: &'static [&'static str],
    pub(crate) files: &'static [&'static str],
}

/// A format whose files pipes open.
const fn opened(
    name: &'static str,
    pipes: &'static [&'static str],
    files: &'static [&'static str],
) -> Format {
    Format { name, field: "bytes", pipes, files }
}

/// A format that a decoder of this name reads.
macro_rules! decoded {
    ($name:literal, $files:expr) => {
        Format {
            name: $name,
            field: "data",
            pipes: &[concat!("decode fields=['data'] decoders=['data=", $name, "']")],
            files: &$files,
        }
    };
}

pub(crate) const FORMATS: &[Format] = &[
    opened("csv", &["csv_blocks block=16", "csv"], &["birds.csv"]),
    opened(
        "decompress",
        &["decompress", "lines", "json_lines"],
        &[
            "rows.jsonl.gz",
            "rows.jsonl.zst",
            "rows.jsonl.xz",
            "rows.jsonl.bz2",
            "rows.jsonl.lz4",
            "rows.jsonl.Z",
        ],
    ),
    opened("hdf5", &["hdf5_pieces piece_bytes=8", "hdf5_rows"], &["chunks.h5", "newer.h5", "words.h5"]),
    opened("json_array", &["json_array"], &["list.json"]),
    opened("json_lines", &["lines block=16", "json_lines"], &["rows.jsonl", "two.jsonl"]),
    opened("read_columns", &["row_groups", "read_columns size=2"], COLUMNS),
    opened("read_rows", &["row_groups", "read_rows"], COLUMNS),
    opened("split_safetensors", &["split_safetensors"], &["two.safetensors"]),
    opened("tar_pieces", &["tar_pieces", "untar_pieces"], &["gnu.tar", "pax.tar"]),
    opened("text_lines", &["lines rows=1", "text_lines"], &["words.txt", "two.jsonl"]),
    opened("tfrecords", &["tfrecords", "parse_example"], &["examples.tfrecord"]),
    opened("untar", &["untar"], &["gnu.tar", "pax.tar"]),
    opened("unzip", &["unzip"], &["two.zip", "bzip2.zip"]),
    opened("unzip_members", &["unzip group=none"], &["two.zip"]),
    opened("parse_example", &["parse_example"], &["one.example"]),
    opened("parse_sequence_example", &["parse_example sequence=true"], &["sequence.example"]),
    // Pictures, by the pipes that take them encoded, and by those behind.
    opened(
        "decode_frames",
        &["decode_frames field=bytes delays='ms'"],
        &["walk.gif", "walk.webp", "walk.apng"],
    ),
    opened("random_resized_crop", &["random_resized_crop 4 field=bytes", "flip", "normalize"], PICTURES),
    opened("center_crop", &["center_crop 4 field=bytes", "encode_png"], PICTURES),
    opened("resize", &["resize 5 field=bytes", "encode_jpeg"], &["rgb.png", "grey.jpg"]),
    opened("encode_webp", &["resize 3 field=bytes", "encode_webp"], &["rgb.png"]),
    decoded!("arrow", ["flat.parquet", "words.arrows"]),
    decoded!("bmp", ["palette.bmp", "rgb.bmp"]),
    decoded!("bzip2", ["rows.jsonl.bz2"]),
    decoded!("compress", ["rows.jsonl.Z"]),
    decoded!("flac", ["mono.flac", "stereo.flac"]),
    decoded!("gif", ["walk.gif"]),
    decoded!("gzip", ["rows.jsonl.gz"]),
    decoded!("ico", ["png.ico"]),
    decoded!("idx", ["two.idx"]),
    decoded!("jpeg", ["baseline.jpg", "progressive.jpg", "grey.jpg"]),
    decoded!("json", ["doc.json", "list.json"]),
    decoded!("lz4", ["rows.jsonl.lz4"]),
    decoded!("msgpack", ["doc.msgpack"]),
    decoded!("npy", ["c.npy", "fortran.npy", "struct.npy"]),
    decoded!("npz", ["two.npz", "stored.npz"]),
    decoded!("number", ["label.cls"]),
    decoded!("pickle", ["list.pkl"]),
    decoded!("png", ["rgb.png", "palette.png"]),
    decoded!("pnm", ["rgb.ppm", "grey.pgm", "bits.pbm", "alpha.pam"]),
    decoded!("qoi", ["rgb.qoi"]),
    decoded!("safetensors", ["two.safetensors"]),
    decoded!("text", ["words.txt"]),
    decoded!("tga", ["plain.tga", "runs.tga"]),
    decoded!(
        "tiff",
        ["big.tif", "deflate.tif", "fax.tif", "float.tif", "lzw.tif", "packbits.tif", "rgb.tif"]
    ),
    decoded!("wav", ["mono.wav", "stereo.wav"]),
    decoded!("webp", ["lossy.webp", "lossless.webp"]),
    decoded!("xz", ["rows.jsonl.xz"]),
    decoded!("zlib", ["rows.zlib"]),
    decoded!("zstd", ["rows.jsonl.zst"]),
];

const COLUMNS: &[&str] =
    &["flat.parquet", "nested.parquet", "delta.parquet", "flat.arrow", "packed.arrows", "words.arrows"];
const PICTURES: &[&str] = &["baseline.jpg", "progressive.jpg", "rgb.png", "rgb.tif", "rgb.qoi", "lossy.webp"];
