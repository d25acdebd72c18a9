//! `decompress`: packed values to what is in them, told by their first bytes.

use forebay_core::{
    Blob, Buffer, BufferMut, Context, DataPipe, Error, Map, PipeInfo, Result, Sample, Value, View, options,
};
use forebay_unpack::{Codec, LAYERS, unpack};

options! {
    /// Options of `decompress`.
    pub struct DecompressOptions {
        /// The fields to unpack. For `bytes`, where a sample has none, the file that its `path` names is taken.
        fields: Vec<String> = ["bytes"];
        /// What packed them: `auto` looks at the first bytes, and leaves values that are not packed as they are.
        codec: String = "auto", one_of ["auto", "gzip", "zlib", "zstd", "xz", "bzip2", "lz4", "compress"];
    }
}

/// Unpacks whole values, each layer of packing of them, in memory from the host.
#[derive(Debug)]
pub struct Decompress {
    fields: Vec<String>,
    codec: Option<Codec>,
}

impl DataPipe for Decompress {
    const INFO: PipeInfo = PipeInfo {
        name: "decompress",
        summary: "Packed values to what is in them: gzip, zlib, zstd, xz, bzip2, lz4, compress",
        ..PipeInfo::DEFAULT
    };
    type Options = DecompressOptions;

    fn new(options: DecompressOptions) -> Result<Self> {
        let codec = Codec::ALL.into_iter().find(|codec| codec.name() == options.codec);
        Ok(Self { fields: options.fields, codec })
    }
}

impl Map for Decompress {
    fn map(&self, sample: &mut Sample, cx: &Context) -> Result<()> {
        for field in &self.fields {
            let found = self.field(field, sample, cx).map_err(|error| error.context("field", field))?;
            sample.set(field, found);
        }
        Ok(())
    }
}

impl Decompress {
    fn field(&self, field: &str, sample: &Sample, cx: &Context) -> Result<Buffer> {
        let packed = match sample.get(field).map(Value::view) {
            Some(View::Bytes(bytes)) => bytes.clone(),
            Some(found) => return Err(Error::invalid(format!("found {found:?}, expected bytes"))),
            None if field == "bytes" => file(&Blob::of(sample, cx)?, cx)?,
            None => {
                let names: Vec<_> = sample.schema().names().iter().map(|name| name.as_str()).collect();
                return Err(Error::invalid(format!("no such field; found: {}", names.join(", "))));
            }
        };
        self.value(packed, cx.limits().bytes, |len| cx.alloc(len))
    }

    fn value(
        &self,
        mut bytes: Buffer,
        limit: u64,
        mut alloc: impl FnMut(usize) -> Result<BufferMut>,
    ) -> Result<Buffer> {
        if let Some(codec) = self.codec {
            return unpack(codec, &bytes, limit, alloc);
        }
        for _ in 0..LAYERS {
            let Some(codec) = Codec::of(&bytes) else { return Ok(bytes) };
            bytes = unpack(codec, &bytes, limit, &mut alloc)?;
        }
        match Codec::of(&bytes) {
            None => Ok(bytes),
            Some(_) => Err(Error::limit(format!("packed more than {LAYERS} times, one within the other"))),
        }
    }
}

/// All of a file, which may be far away.
fn file(blob: &Blob, cx: &Context) -> Result<Buffer> {
    let (len, limit) = (blob.len(), cx.limits().bytes);
    if blob.in_memory().is_none() && len > limit {
        return Err(Error::limit(format!("a file of {len} bytes, at most {limit} are taken into memory")));
    }
    blob.read(0..len)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use forebay_core::{ErrorKind, Options as _};

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        writer.write_all(text).unwrap();
        writer.finish().unwrap()
    }

    fn value(options: &str, bytes: Vec<u8>, limit: u64) -> Result<Vec<u8>> {
        let pipe = Decompress::new(DecompressOptions::parse(options)?)?;
        pipe.value(bytes.into(), limit, |len| Ok(BufferMut::zeroed(len))).map(|bytes| bytes.to_vec())
    }

    #[test]
    fn what_is_packed_is_unpacked_and_what_is_not_stays() {
        let twice = gzip(&gzip(b"heron"));
        assert_eq!(value("{}", twice.clone(), 100).unwrap(), b"heron");
        assert_eq!(value(r#"{"codec": "gzip"}"#, twice, 100).unwrap(), gzip(b"heron"));
        assert_eq!(value("{}", b"heron".to_vec(), 0).unwrap(), b"heron");
        assert_eq!(
            value(r#"{"codec": "gzip"}"#, b"heron".to_vec(), 9).unwrap_err().kind(),
            ErrorKind::Corrupt
        );
        assert_eq!(value("{}", gzip(&[0; 999]), 998).unwrap_err().kind(), ErrorKind::Limit);
        let deep = (0..=LAYERS).fold(b"heron".to_vec(), |bytes, _| gzip(&bytes));
        assert_eq!(value("{}", deep, 1000).unwrap_err().kind(), ErrorKind::Limit);
    }
}
