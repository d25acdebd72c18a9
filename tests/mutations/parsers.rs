//! One function for each parser: it is given any bytes and may refuse them, and that is all that may happen. The tests here run
//! them over damaged files, those of `fuzz/` over whatever libFuzzer thinks of.

use std::collections::BTreeSet;

use forebay_core::{
    Blob, Buffer, BufferMut, DType, Decoder, FlatMap, Key, Limits, Options as _, Result, Sample, Value,
    Wanted,
};
use forebay_hdf5::{Group, Object, Target};
use forebay_image::{Format, Frames, Jpeg, Raster, Tiff};
use forebay_testkit::{Host, answers};
use forebay_unpack::{Codec, Unpacked};

/// What a file may take.
const BYTES: u64 = 4 << 20;
const PIXELS: u64 = 1 << 18;
const LIMITS: Limits = Limits { bytes: BYTES, pixels: PIXELS };
/// So many samples of one file are looked at, or pieces and samples.
const MOST: usize = 2000;

/// A parser's name, and the extensions of its files.
pub type Parser = (&'static str, fn(&[u8]), &'static [&'static str]);

/// All of them.
pub const PARSERS: &[Parser] = &[
    ("bmp", bmp, &["bmp", "dib"]),
    ("csv", csv, &["csv", "tsv", "tab"]),
    ("example", example, &["example"]),
    ("flac", flac, &["flac"]),
    ("frames", frames, &["gif", "webp", "apng"]),
    ("gif", gif, &["gif"]),
    ("hdf5", hdf5, &["h5", "hdf5", "mat", "nc"]),
    ("hdf5_rows", hdf5_rows, &["h5", "hdf5", "mat", "nc"]),
    ("ico", ico, &["ico"]),
    ("idx", idx, &["idx"]),
    ("ipc", ipc, &["arrow", "arrows", "arrow_file", "feather", "ipc", "stream"]),
    ("jpeg", jpeg, &["jpg", "jpeg"]),
    ("json", json, &["json"]),
    ("json_array", json_array, &["json"]),
    ("jsonl", jsonl, &["jsonl"]),
    ("lz4", lz4, &["lz4"]),
    ("lzw", lzw, &["Z"]),
    ("msgpack", msgpack, &["msgpack"]),
    ("npy", npy, &["npy"]),
    ("npz", npz, &["npz"]),
    ("parquet", parquet, &["parquet", "parq"]),
    ("png", png, &["png", "apng"]),
    ("pnm", pnm, &["ppm", "pgm", "pbm", "pam"]),
    ("qoi", qoi, &["qoi"]),
    ("safetensors", safetensors, &["safetensors"]),
    ("tar", tar, &["tar"]),
    ("tar_pieces", tar_pieces, &["tar"]),
    ("text", text, &["txt", "cls", "jsonl", "csv"]),
    ("tfrecord", tfrecord, &["tfrecord"]),
    ("tga", tga, &["tga"]),
    ("tiff", tiff, &["tif", "tiff"]),
    ("unpack", unpack, &["gz", "zst", "xz", "bz2", "zlib"]),
    ("wav", wav, &["wav"]),
    ("webp", webp, &["webp"]),
    ("zip", zip, &["zip", "npz"]),
];

pub fn bmp(bytes: &[u8]) {
    raster(Format::Bmp, bytes);
}

pub fn csv(bytes: &[u8]) {
    let _ = forebay_json::records(&buffer(bytes), forebay_json::Dialect::CSV);
    type Blocks = forebay_json::CsvBlocks;
    for options in ["{}", r##"{"header": false, "block": 64, "separator": "\t", "comment": "#"}"##] {
        pieces::<Blocks, forebay_json::Csv>(bytes, options);
    }
}

pub fn example(bytes: &[u8]) {
    let _ = forebay_tfrecord::parse_example(&buffer(bytes), &[]);
    let _ = forebay_tfrecord::parse_sequence_example(&buffer(bytes), &[]);
}

pub fn flac(bytes: &[u8]) {
    let _ = forebay_audio::parse_flac(&buffer(bytes), DType::ANY);
    let _ = forebay_audio::parse_flac(&buffer(bytes), DType::F32);
}

pub fn frames(bytes: &[u8]) {
    let _ = (|| -> Result<()> {
        let frames = Frames::open(bytes, PIXELS)?;
        let ([height, width], count) = (frames.size(), frames.count().min(4));
        let len = height * width * 3 * count;
        if len as u64 > BYTES {
            return Ok(());
        }
        frames.read(&mut vec![0; len], &mut vec![0.0; count])
    })();
}

pub fn gif(bytes: &[u8]) {
    raster(Format::Gif, bytes);
}

pub fn hdf5(bytes: &[u8]) {
    fn visit(group: &Group, seen: &mut BTreeSet<u64>, depth: usize) -> Result<()> {
        for link in group.links()? {
            let Target::Object(address) = link.target else { continue };
            if seen.len() > 64 || depth > 8 || !seen.insert(address) {
                continue;
            }
            match group.follow(&link) {
                Ok(Object::Group(group)) => {
                    let _ = group.attributes();
                    let _ = visit(&group, seen, depth + 1);
                }
                Ok(Object::Dataset(dataset)) => {
                    let _ = dataset.attributes();
                    let _ = dataset.read_rows(0..dataset.rows().min(100));
                }
                _ => {}
            }
        }
        Ok(())
    }
    let _ = (|| -> Result<()> {
        let file = forebay_hdf5::File::open_limited(buffer(bytes).into(), &LIMITS)?;
        visit(&file.root()?, &mut BTreeSet::new(), 0)
    })();
}

pub fn hdf5_rows(bytes: &[u8]) {
    pieces::<forebay_hdf5::Hdf5Pieces, forebay_hdf5::Hdf5Rows>(bytes, r#"{"piece_bytes": 4096}"#);
}

pub fn ico(bytes: &[u8]) {
    raster(Format::Ico, bytes);
}

pub fn idx(bytes: &[u8]) {
    let _ = forebay_tensors::parse_idx(&buffer(bytes));
}

pub fn ipc(bytes: &[u8]) {
    decode::<forebay_arrow::Arrow>(bytes);
    pieces::<forebay_arrow::RowGroups, forebay_arrow::ReadRows>(bytes, "{}");
}

pub fn jpeg(bytes: &[u8]) {
    let _ = (|| -> Result<()> {
        let jpeg = Jpeg::open(bytes, PIXELS)?;
        let [height, width] = jpeg.size();
        jpeg.read(&mut vec![0; height * width * 3])
    })();
}

pub fn json(bytes: &[u8]) {
    let _ = forebay_json::parse(&buffer(bytes));
}

pub fn json_array(bytes: &[u8]) {
    expand::<forebay_json::JsonArray>("{}", bytes);
}

pub fn jsonl(bytes: &[u8]) {
    for fields in [&[][..], &["a".to_owned(), "/b/0".to_owned()]] {
        if let Ok(form) = forebay_json::Form::new(fields, forebay_json::Rules::DEFAULT) {
            forebay_json::rows(buffer(bytes), "file".into(), 0, form).take(MOST).for_each(drop);
        }
    }
    for options in ["{}", r#"{"block": 1}"#, r#"{"rows": 2}"#] {
        pieces::<forebay_json::Lines, forebay_json::JsonLines>(bytes, options);
    }
}

pub fn lz4(bytes: &[u8]) {
    unpack_as(Codec::Lz4, bytes);
}

pub fn lzw(bytes: &[u8]) {
    unpack_as(Codec::Compress, bytes);
}

pub fn msgpack(bytes: &[u8]) {
    let _ = forebay_msgpack::parse(&buffer(bytes));
}

pub fn npy(bytes: &[u8]) {
    let _ = forebay_tensors::parse_npy(&buffer(bytes));
}

pub fn npz(bytes: &[u8]) {
    let _ = forebay_tensors::parse_npz(&buffer(bytes));
    decode::<forebay_tensors::Npz>(bytes);
}

pub fn parquet(bytes: &[u8]) {
    ipc(bytes);
    // Damaged statistics and indexes are looked at by a filter alone.
    let filter = forebay_arrow::Predicate::parse("a > 1 and b != 'x' and c is not null").ok();
    let options = forebay_arrow::ReadOptions { filter, limits: LIMITS, ..Default::default() };
    if let Ok(table) = forebay_arrow::read(&buffer(bytes).into(), &options) {
        table.take(MOST).for_each(drop);
    }
}

pub fn png(bytes: &[u8]) {
    raster(Format::Png, bytes);
}

pub fn pnm(bytes: &[u8]) {
    raster(Format::Pnm, bytes);
}

pub fn qoi(bytes: &[u8]) {
    raster(Format::Qoi, bytes);
}

pub fn safetensors(bytes: &[u8]) {
    let _ = forebay_tensors::parse_safetensors(&buffer(bytes));
    expand::<forebay_tensors::SplitSafetensors>("{}", bytes);
}

pub fn tar(bytes: &[u8]) {
    let members = forebay_tar::walk(bytes).take(MOST);
    members.for_each(|member| drop(member.map(|member| drop(member.contents(BYTES)))));
    forebay_tar::samples(buffer(bytes), "file".into(), 0, forebay_tar::Group::WebDataset)
        .take(MOST)
        .for_each(drop);
    let _ = forebay_tar::Index::build(&Blob::from(buffer(bytes)), forebay_tar::Group::None);
}

pub fn tar_pieces(bytes: &[u8]) {
    pieces::<forebay_tar::TarPieces, forebay_tar::UntarPieces>(bytes, "{}");
    expand::<forebay_tar::Untar>(r#"{"links": "follow", "concatenated": true}"#, bytes);
}

pub fn text(bytes: &[u8]) {
    let _ = forebay_json::parse_text(&buffer(bytes));
    decode::<forebay_json::Number>(bytes);
    pieces::<forebay_json::Lines, forebay_json::TextLines>(bytes, "{}");
}

pub fn tfrecord(bytes: &[u8]) {
    for check in [true, false] {
        for record in forebay_tfrecord::records(buffer(bytes).into(), &file(&[]), check).take(MOST).flatten()
        {
            if let Some(message) = record.get("bytes").and_then(|bytes| bytes.as_bytes()) {
                let _ = forebay_tfrecord::parse_example(message, &[]);
                let _ = forebay_tfrecord::parse_sequence_example(message, &[]);
            }
        }
    }
}

pub fn tga(bytes: &[u8]) {
    raster(Format::Tga, bytes);
}

pub fn tiff(bytes: &[u8]) {
    raster(Format::Tiff, bytes);
    let _ = (|| -> Result<()> {
        let tiff = Tiff::open(bytes, PIXELS)?;
        let len = tiff.shape().iter().try_fold(tiff.dtype().size(), |len, axis| len.checked_mul(*axis));
        match len {
            Some(len) if len as u64 <= BYTES => tiff.read_samples(&mut vec![0; len]),
            _ => Ok(()),
        }
    })();
}

pub fn unpack(bytes: &[u8]) {
    match Codec::of(bytes) {
        Some(codec) => unpack_as(codec, bytes),
        None => unpack_as(Codec::Zlib, bytes),
    }
}

pub fn wav(bytes: &[u8]) {
    let _ = forebay_audio::parse_wav(&buffer(bytes), DType::ANY);
    let _ = forebay_audio::parse_wav(&buffer(bytes), DType::F32);
}

pub fn webp(bytes: &[u8]) {
    raster(Format::WebP, bytes);
}

pub fn zip(bytes: &[u8]) {
    expand::<forebay_compress::Unzip>("{}", bytes);
    let Ok(mut directory) = forebay_unpack::Directory::open(&buffer(bytes).into(), BYTES) else { return };
    let members: Vec<_> = directory.by_ref().map_while(|member| member.ok()).take(64).collect();
    for member in members {
        let _ = directory.read(&member, BYTES, |len| Ok(BufferMut::zeroed(len)));
    }
}

fn buffer(bytes: &[u8]) -> Buffer {
    bytes.to_vec().into()
}

/// The sample of a file with these bytes.
fn file(bytes: &[u8]) -> Sample {
    let mut sample = Sample::new(1, Key::whole("file"));
    sample.set("bytes", Value::from(buffer(bytes)));
    sample
}

fn raster(format: Format, bytes: &[u8]) {
    let _ = (|| -> Result<()> {
        let raster = Raster::open(format, bytes, PIXELS)?;
        let [height, width] = raster.size();
        raster.read(&mut vec![0; height * width * 3])
    })();
}

/// At once, and as a stream.
fn unpack_as(codec: Codec, bytes: &[u8]) {
    let _ = forebay_unpack::unpack(codec, &buffer(bytes), BYTES, |len| Ok(BufferMut::zeroed(len)));
    let source = std::io::Cursor::new(bytes.to_vec());
    if let Ok(stream) = Unpacked::new(codec, Box::new(source)) {
        let _ = std::io::copy(&mut std::io::Read::take(stream, BYTES), &mut std::io::sink());
    }
}

fn decode<D: Decoder>(bytes: &[u8]) {
    let _ = D::Options::parse("{}").and_then(D::new).and_then(|decoder| {
        decoder.decode(&buffer(bytes), &Wanted::default(), &Host::new().limits(LIMITS).context())
    });
}

/// What one pipe cuts a file into, and another makes of each piece.
fn pieces<Cut: FlatMap, Read: FlatMap>(bytes: &[u8], options: &str) {
    let mut left = MOST;
    let read = pipe::<Read>("{}");
    each(&pipe::<Cut>(options), file(bytes), |piece| {
        each(&read, piece, |_| {
            left -= 1;
            left > 0
        });
        left = left.saturating_sub(1);
        left > 0
    });
}

/// What a pipe makes of a file.
fn expand<P: FlatMap>(options: &str, bytes: &[u8]) {
    let mut left = MOST;
    each(&pipe::<P>(options), file(bytes), |_| {
        left -= 1;
        left > 0
    });
}

fn pipe<P: FlatMap>(options: &str) -> P {
    // Options that are no more would leave nothing to test.
    P::Options::parse(options).and_then(P::new).unwrap_or_else(|error| panic!("{options}: {error}"))
}

/// Calls `more` with each sample that a pipe makes of one, beyond its errors where it goes on, until that says no.
fn each<P: FlatMap>(pipe: &P, sample: Sample, more: impl FnMut(Sample) -> bool) {
    let host = Host::new().limits(LIMITS);
    let cx = &host.context();
    let Ok(mut items) = pipe.open(sample, cx) else { return };
    answers(&mut items, cx).take(MOST).filter_map(Result::ok).all(more);
}
