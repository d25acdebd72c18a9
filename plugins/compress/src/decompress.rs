//! `decompress`: packed values to what is in them, told by their first bytes.
//!
//! ```toml
//! [decompress]
//! examples = ['forebay head -n 1 "files plugins/compress/seeds/rows.jsonl.gz open=read | decompress | lines | json_lines"']
//! ```

use std::sync::{Mutex, PoisonError};

use forebay_core::{
    Blob, Buffer, BufferMut, Context, DataPipe, Error, Magic, Map, Opens, PipeInfo, Result, Sample, Schema,
    Str, Value, View, options,
};
use forebay_unpack::{Codec, Forward, LAYERS, unpack};

use crate::decoders::DECODERS;

options! {
    /// Options of `decompress`.
    pub struct DecompressOptions {
        /// The fields to unpack; null for all fields whose names end like those of packed files, such as `json.gz`,
        /// or else `bytes`. If a sample has no `bytes`, the file at its `path` is unpacked.
        fields: Option<Vec<String>> = null;
        /// The compression. `auto` looks at the first bytes, and leaves values that are not packed as they are.
        codec: String = "auto", one_of ["auto", "gzip", "zlib", "zstd", "xz", "bzip2", "lz4", "compress"];
        /// Take the extension of packing off the names of unpacked fields: `json.gz` becomes `json`.
        rename: bool = true;
        /// Unpack at most so many bytes, to look at them: no more of the file is read than they take.
        first: Option<u64> = null;
    }
}

/// Unpacks whole values, each layer of packing of them, in memory from the host.
#[derive(Debug)]
pub struct Decompress {
    fields: Option<Vec<String>>,
    codec: Option<Codec>,
    rename: bool,
    first: Option<u64>,
    /// The names of the last sample, how they were changed, and what came of them.
    last: Mutex<Option<Renamed>>,
}

type Renamed = (Schema, Vec<(Str, Str)>, Schema);

impl DataPipe for Decompress {
    const INFO: PipeInfo = PipeInfo {
        name: "decompress",
        summary: "Packed values to what is in them: gzip, zlib, zstd, xz, bzip2, lz4, compress",
        opens: Some(Opens {
            extensions: &["gz", "gzip", "zst", "zstd", "xz", "bz2", "lz4", "z"],
            magic: &[
                Magic { offset: 0, bytes: b"\x1f\x8b" },
                Magic { offset: 0, bytes: b"\x28\xb5\x2f\xfd" },
                // A frame to be passed over.
                Magic { offset: 1, bytes: b"\x2a\x4d\x18" },
                Magic { offset: 0, bytes: b"\xfd7zXZ" },
                Magic { offset: 0, bytes: b"BZh" },
                Magic { offset: 0, bytes: b"\x04\x22\x4d\x18" },
                Magic { offset: 0, bytes: b"\x02\x21\x4c\x18" },
                Magic { offset: 0, bytes: b"\x1f\x9d" },
            ],
            then: "",
        }),
        ..PipeInfo::DEFAULT
    };
    type Options = DecompressOptions;

    fn new(options: DecompressOptions) -> Result<Self> {
        let DecompressOptions { fields, codec, rename, first } = options;
        let codec = Codec::ALL.into_iter().find(|known| known.name() == codec);
        Ok(Self { fields, codec, rename, first, last: Mutex::default() })
    }

    fn probe(head: &[u8], _: &str) -> u8 {
        if Codec::of(head).is_some() { 192 } else { 0 }
    }
}

impl Map for Decompress {
    fn map(&self, sample: &mut Sample, cx: &Context) -> Result<()> {
        let all: Vec<Str>;
        let fields: Vec<&str> = match &self.fields {
            Some(fields) => fields.iter().map(String::as_str).collect(),
            None => {
                all = sample
                    .schema()
                    .names()
                    .iter()
                    .filter(|name| bare(name, 1) != name.as_str())
                    .cloned()
                    .collect();
                if all.is_empty() { vec!["bytes"] } else { all.iter().map(|name| name.as_str()).collect() }
            }
        };
        let mut names = Vec::new();
        for field in fields {
            let (found, layers) =
                self.field(field, sample, cx).map_err(|error| error.context("field", field))?;
            sample.set(field, found);
            let name = bare(field, layers);
            if self.rename && name != field {
                names.push((Str::from(field), Str::from(name)));
            }
        }
        if !names.is_empty() {
            sample.relabel(self.renamed(sample.schema(), &names)?);
        }
        Ok(())
    }
}

/// A name without its last endings of packing, at most so many: `json.gz` is `json`.
fn bare(name: &str, most: usize) -> &str {
    let is_packing = |end: &str| DECODERS.iter().any(|decoder| decoder.extensions.contains(&end));
    (0..most).fold(name, |name, _| match name.rsplit_once('.') {
        Some((before, end)) if !before.is_empty() && is_packing(end) => before,
        _ => name,
    })
}

impl Decompress {
    /// The names with some of them changed; that of the samples before is known.
    fn renamed(&self, schema: &Schema, names: &[(Str, Str)]) -> Result<Schema> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((from, known, to)) = &*last
            && from.is(schema)
            && known == names
        {
            return Ok(to.clone());
        }
        let change =
            |name: &Str| names.iter().find(|(from, _)| from == name).map_or(name, |(_, to)| to).clone();
        let changed: Vec<Str> = schema.names().iter().map(change).collect();
        if let Some((_, twice)) =
            names.iter().find(|(_, to)| changed.iter().filter(|name| *name == to).count() > 1)
        {
            let message =
                format!("unpacked there would be two fields `{twice}`; `rename=false` keeps the names");
            return Err(Error::invalid(message).context("field", twice));
        }
        let to = Schema::new(changed);
        *last = Some((schema.clone(), names.to_vec(), to.clone()));
        Ok(to)
    }

    /// What is in a field, and in how many layers it was packed.
    fn field(&self, field: &str, sample: &Sample, cx: &Context) -> Result<(Buffer, usize)> {
        let packed = match sample.get(field).map(Value::view) {
            Some(View::Bytes(bytes)) => Blob::from(bytes.clone()),
            Some(found) => return Err(Error::invalid(format!("found {found:?}, expected bytes"))),
            None if field == "bytes" => Blob::of(sample, cx)?,
            None => {
                let names: Vec<_> = sample.schema().names().iter().map(|name| name.as_str()).collect();
                return Err(Error::invalid(format!("no such field; found: {}", names.join(", "))));
            }
        };
        match self.first {
            Some(first) => self.begins(&packed, first.min(cx.limits().bytes), cx),
            None => self.value(packed.whole(cx.limits().bytes)?, cx.limits().bytes, |len| cx.alloc(len)),
        }
    }

    /// The first bytes of what is packed, at most so many; fewer where it is broken behind them.
    fn begins(&self, packed: &Blob, most: u64, cx: &Context) -> Result<(Buffer, usize)> {
        let opened = match self.codec {
            Some(codec) => Some(Forward::of(codec, packed)?),
            None => Forward::open(packed)?,
        };
        let Some(mut inside) = opened else {
            return Ok((packed.ahead(0, most)?, 0));
        };
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let alloc = &mut |len| cx.alloc(len);
        let there = inside.ahead(most, alloc)?.len().min(most);
        if there == 0 && most > 0 {
            inside.ended()?;
        }
        Ok((inside.part(there, alloc)?, inside.layers()))
    }

    fn value(
        &self,
        mut bytes: Buffer,
        limit: u64,
        mut alloc: impl FnMut(usize) -> Result<BufferMut>,
    ) -> Result<(Buffer, usize)> {
        if let Some(codec) = self.codec {
            return Ok((unpack(codec, &bytes, limit, alloc)?, 1));
        }
        for layers in 0..LAYERS {
            let Some(codec) = Codec::of(&bytes) else { return Ok((bytes, layers)) };
            bytes = unpack(codec, &bytes, limit, &mut alloc)?;
        }
        match Codec::of(&bytes) {
            None => Ok((bytes, LAYERS)),
            Some(_) => Err(Error::limit(format!("packed more than {LAYERS} times, one within the other"))),
        }
    }
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
        pipe.value(bytes.into(), limit, |len| Ok(BufferMut::zeroed(len))).map(|(bytes, _)| bytes.to_vec())
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

    #[test]
    fn names_lose_as_many_endings_as_there_were_layers() {
        let cases = [
            ("json.gz", 1, "json"),
            ("json.gz", 0, "json.gz"),
            ("tar.gz.xz", 1, "tar.gz"),
            ("a.tar.gz.xz", 4, "a.tar"),
        ];
        for (name, layers, expected) in
            cases.into_iter().chain([("gz", 2, "gz"), (".gz", 1, ".gz"), ("a.json", 3, "a.json")])
        {
            assert_eq!(bare(name, layers), expected);
        }
    }

    #[test]
    fn renamed_fields_keep_their_places_and_do_not_meet() {
        let pipe = Decompress::new(DecompressOptions::parse("{}").unwrap()).unwrap();
        let schema = Schema::new(["cls", "json.gz", "txt"]);
        let names = [(Str::from("json.gz"), Str::from("json"))];
        let renamed = pipe.renamed(&schema, &names).unwrap();
        assert_eq!(
            renamed.names().iter().map(|name| name.as_str()).collect::<Vec<_>>(),
            ["cls", "json", "txt"]
        );
        assert!(pipe.renamed(&schema, &names).unwrap().is(&renamed));
        let error = pipe.renamed(&Schema::new(["json", "json.gz"]), &names).unwrap_err();
        assert_eq!((error.kind(), error.get("field")), (ErrorKind::Invalid, Some("json")));
    }
}
