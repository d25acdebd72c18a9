//! Every format: pipes that read it, small files of it, and what it promises when they are damaged.

use forebay_testkit::Costs;

use crate::framing;

/// Pipes behind a sample that has a file's bytes in a field, and files for them, which are seeds of plugins.
pub(crate) struct Format {
    pub(crate) name: &'static str,
    pub(crate) field: &'static str,
    pub(crate) pipes: &'static [&'static str],
    pub(crate) files: &'static [&'static str],
    /// What damage to a file may cost.
    pub(crate) costs: fn(&[u8]) -> Costs,
}

impl Format {
    /// With this promise of what damage may cost.
    const fn costs(self, costs: fn(&[u8]) -> Costs) -> Self {
        Self { costs, ..self }
    }
}

/// A format whose files pipes open.
const fn opened(
    name: &'static str,
    pipes: &'static [&'static str],
    files: &'static [&'static str],
) -> Format {
    Format { name, field: "bytes", pipes, files, costs: framing::nothing }
}

/// A format that a decoder of this name reads.
macro_rules! decoded {
    ($name:literal, $files:expr) => {
        Format {
            name: $name,
            field: "data",
            pipes: &[concat!("decode fields=['data'] decoders=['data=", $name, "']")],
            files: &$files,
            costs: framing::nothing,
        }
    };
}

pub(crate) const FORMATS: &[Format] = &[
    opened("csv", &["csv_blocks block=16", "csv"], &["birds.csv", "legs.csv"]).costs(framing::csv),
    opened("csv_whole", &["csv_blocks", "csv"], &["birds.csv", "legs.csv"]).costs(framing::csv),
    opened("csv_packed", &["csv_blocks block=16", "csv ragged=fill"], PACKED),
    opened("decompress", &["decompress", "lines", "json_lines"], PACKED),
    opened(
        "fixed_length_records",
        &["fixed_length_records dtype=\"[('label', 'u1'), ('image', 'u1', (3, 2, 2))]\""],
        &["cifar.bin"],
    ),
    opened("hdf5", &["hdf5_pieces piece_bytes=8", "hdf5_rows"], &["chunks.h5", "newer.h5", "words.h5"])
        .costs(framing::hdf5),
    // Rows whose text is elsewhere, all in one piece.
    opened("hdf5_whole", &["hdf5_pieces", "hdf5_rows"], &["words.h5"]).costs(framing::hdf5),
    opened("json_array", &["json_array"], &["list.json"]).costs(framing::json_array),
    opened("json_lines", &["lines block=16", "json_lines"], &["rows.jsonl", "two.jsonl"])
        .costs(framing::json_lines),
    opened("json_lines_packed", &["lines block=16", "json_lines"], PACKED),
    opened("read_columns", &["row_groups", "read_columns size=2"], COLUMNS).costs(framing::batches),
    opened("read_rows", &["row_groups", "read_rows"], COLUMNS).costs(framing::rows),
    opened("split_idx", &["split_idx"], &["two.idx"]),
    opened("split_safetensors", &["split_safetensors"], &["two.safetensors"]).costs(framing::safetensors),
    opened("tar_pieces", &["tar_pieces samples=2", "untar_pieces"], &["gnu.tar", "pax.tar", "birds.tar"])
        .costs(framing::tar),
    opened("text_lines", &["lines rows=1", "text_lines"], &["words.txt", "two.jsonl"])
        .costs(framing::text_lines),
    opened("tfrecords", &["tfrecords", "parse_example"], &["examples.tfrecord"]).costs(framing::tfrecord),
    opened("untar", &["untar"], &["gnu.tar", "pax.tar", "birds.tar"]).costs(framing::tar),
    opened("untar_files", &["untar group=none"], &["birds.tar"]).costs(framing::tar_files),
    opened("unzip", &["unzip"], &["two.zip", "bzip2.zip", "birds.zip"]).costs(framing::zip),
    opened("unzip_members", &["unzip group=none"], &["two.zip", "birds.zip"]).costs(framing::zip),
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

const PACKED: &[&str] =
    &["rows.jsonl.gz", "rows.jsonl.zst", "rows.jsonl.xz", "rows.jsonl.bz2", "rows.jsonl.lz4", "rows.jsonl.Z"];
const COLUMNS: &[&str] = &[
    "flat.parquet",
    "nested.parquet",
    "delta.parquet",
    "groups.parquet",
    "flat.arrow",
    "batches.arrow",
    "batches.arrows",
    "packed.arrows",
    "words.arrows",
];
const PICTURES: &[&str] = &["baseline.jpg", "progressive.jpg", "rgb.png", "rgb.tif", "rgb.qoi", "lossy.webp"];
