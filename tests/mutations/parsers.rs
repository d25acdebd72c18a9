//! One function for each parser: it is given any bytes and may refuse them, and that is all that may happen. The tests here run
//! them over damaged files, those of `fuzz/` over whatever libFuzzer thinks of.

use std::collections::BTreeSet;

use forebay_core::{Blob, Buffer, BufferMut, DType, Key, Limits, Result, Sample};
use forebay_hdf5::{Group, Object, Target};
use forebay_image::{Format, Frames, Jpeg, Raster, Tiff};

/// What a file may take.
const BYTES: u64 = 4 << 20;
const PIXELS: u64 = 1 << 18;
const LIMITS: Limits = Limits { bytes: BYTES, pixels: PIXELS };

/// A parser's name, and the extensions of its files.
pub(crate) type Parser = (&'static str, fn(&[u8]), &'static [&'static str]);

/// All of them.
pub(crate) const PARSERS: &[Parser] = &[
    ("csv", csv, &["csv"]),
    ("flac", flac, &["flac"]),
    ("frames", frames, &["gif", "webp", "apng"]),
    ("hdf5", hdf5, &["h5", "hdf5"]),
    ("ico", ico, &["ico"]),
    ("idx", idx, &["idx"]),
    ("jpeg", jpeg, &["jpg"]),
    ("json", json, &["json"]),
    ("jsonl", jsonl, &["jsonl"]),
    ("msgpack", msgpack, &["msgpack"]),
    ("npy", npy, &["npy"]),
    ("npz", npz, &["npz"]),
    ("pnm", pnm, &["ppm", "pgm", "pbm", "pam"]),
    ("qoi", qoi, &["qoi"]),
    ("safetensors", safetensors, &["safetensors"]),
    ("tar", tar, &["tar"]),
    ("tfrecord", tfrecord, &["tfrecord"]),
    ("tga", tga, &["tga"]),
    ("tiff", tiff, &["tif", "tiff"]),
    ("wav", wav, &["wav"]),
    ("zip", zip, &["zip"]),
];

fn buffer(bytes: &[u8]) -> Buffer {
    bytes.to_vec().into()
}

fn csv(bytes: &[u8]) {
    let _ = forebay_json::records(&buffer(bytes), forebay_json::Dialect::CSV);
}

fn flac(bytes: &[u8]) {
    let _ = forebay_audio::parse_flac(&buffer(bytes), DType::ANY);
    let _ = forebay_audio::parse_flac(&buffer(bytes), DType::F32);
}

fn frames(bytes: &[u8]) {
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

fn hdf5(bytes: &[u8]) {
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

fn idx(bytes: &[u8]) {
    let _ = forebay_tensors::parse_idx(&buffer(bytes));
}

fn jpeg(bytes: &[u8]) {
    let _ = (|| -> Result<()> {
        let jpeg = Jpeg::open(bytes, PIXELS)?;
        let [height, width] = jpeg.size();
        jpeg.read(&mut vec![0; height * width * 3])
    })();
}

fn json(bytes: &[u8]) {
    let _ = forebay_json::parse(&buffer(bytes));
}

fn jsonl(bytes: &[u8]) {
    for fields in [&[][..], &["a".to_owned(), "/b/0".to_owned()]] {
        if let Ok(form) = forebay_json::Form::new(fields, forebay_json::Rules::DEFAULT) {
            forebay_json::rows(buffer(bytes), "file".into(), 0, form).for_each(drop);
        }
    }
}

fn msgpack(bytes: &[u8]) {
    let _ = forebay_msgpack::parse(&buffer(bytes));
}

fn npy(bytes: &[u8]) {
    let _ = forebay_tensors::parse_npy(&buffer(bytes));
}

fn npz(bytes: &[u8]) {
    let _ = forebay_tensors::parse_npz(&buffer(bytes));
}

fn raster(format: Format, bytes: &[u8]) {
    let _ = (|| -> Result<()> {
        let raster = Raster::open(format, bytes, PIXELS)?;
        let [height, width] = raster.size();
        raster.read(&mut vec![0; height * width * 3])
    })();
}

fn ico(bytes: &[u8]) {
    raster(Format::Ico, bytes);
}

fn pnm(bytes: &[u8]) {
    raster(Format::Pnm, bytes);
}

fn qoi(bytes: &[u8]) {
    raster(Format::Qoi, bytes);
}

fn safetensors(bytes: &[u8]) {
    let _ = forebay_tensors::parse_safetensors(&buffer(bytes));
}

fn tar(bytes: &[u8]) {
    forebay_tar::walk(bytes).for_each(|member| drop(member.map(|member| drop(member.contents(BYTES)))));
    forebay_tar::samples(buffer(bytes), "file".into(), 0, forebay_tar::Group::WebDataset).for_each(drop);
    let _ = forebay_tar::Index::build(&Blob::from(buffer(bytes)), forebay_tar::Group::None);
}

fn tfrecord(bytes: &[u8]) {
    let sample = Sample::new(1, Key::default());
    for check in [true, false] {
        for record in forebay_tfrecord::records(buffer(bytes).into(), &sample, check).flatten() {
            if let Some(message) = record.get("bytes").and_then(|bytes| bytes.as_bytes()) {
                let _ = forebay_tfrecord::parse_example(message, &[]);
                let _ = forebay_tfrecord::parse_sequence_example(message, &[]);
            }
        }
    }
}

fn tga(bytes: &[u8]) {
    raster(Format::Tga, bytes);
}

fn tiff(bytes: &[u8]) {
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

fn wav(bytes: &[u8]) {
    let _ = forebay_audio::parse_wav(&buffer(bytes), DType::ANY);
    let _ = forebay_audio::parse_wav(&buffer(bytes), DType::F32);
}

fn zip(bytes: &[u8]) {
    let Ok(mut directory) = forebay_compress::Directory::open(&buffer(bytes).into(), BYTES) else { return };
    let members: Vec<_> = directory.by_ref().map_while(|member| member.ok()).take(64).collect();
    for member in members {
        let _ = directory.read(&member, BYTES, |len| Ok(BufferMut::zeroed(len)));
    }
}
