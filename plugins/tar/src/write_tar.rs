//! `write_tar`: samples to shards, by the WebDataset rule.
//!
//! Headers are POSIX.1-1988 ustar, with a pax record before those whose name is too long for one.
//!
//! ```toml
//! [write_tar]
//! examples = ['''forebay run "files 'examples/photos/*.tar' | untar | take 20 | write_tar 'small-{:05}.tar' shard_size=10"''']
//! ```

use forebay_core::{
    DType, Encode, Error, Files, Key, PipeInfo, Result, Sample, Tensor, Value, View, Writer,
    names::split_name, options, write_json,
};

use crate::header::BLOCK;

/// Extensions whose decoder gives text, and those whose decoder gives an integer.
const TEXTS: [&str; 4] = ["txt", "text", "caption", "transcript"];
const INTEGERS: [&str; 7] = ["cls", "cls2", "class", "count", "index", "inx", "id"];
/// The longest name that stands in a header.
const NAME: usize = 100;
/// What is too large for the header's eleven octal digits.
const LARGE: u64 = 1 << 33;

options! {
    /// Options of `write_tar`.
    pub struct WriteTarOptions {
        /// The files, such as `out-{:05}.tar`; `{rank}` and `{epoch}` may stand in it too.
        pattern: String = required;
        /// The most samples in a file.
        shard_size: Option<u64> = null;
        /// About how many bytes a file holds; 1 GiB if neither limit is given.
        shard_bytes: Option<u64> = null;
        /// Replace existing files.
        overwrite: bool = false;
        /// The names of members: the sample's own name, or its number in the file.
        keys: String = "source", one_of ["source", "number"];
    }
}

/// Writes samples to tar shards; see [`Writer`] for what it gives and saves.
pub type WriteTar = Writer<TarFormat>;

/// Samples as members: `KEY.FIELD`.
#[derive(Debug)]
pub struct TarFormat {
    numbered: bool,
    /// How many samples the file has, and the key of the last.
    count: u64,
    last: String,
}

impl Encode for TarFormat {
    const INFO: PipeInfo =
        PipeInfo { name: "write_tar", summary: "Samples to tar shards", ..PipeInfo::DEFAULT };
    type Options = WriteTarOptions;

    fn new(options: WriteTarOptions) -> Result<(Self, Files)> {
        let WriteTarOptions { pattern, shard_size, shard_bytes, overwrite, keys } = options;
        let files = Files::new(&pattern, shard_size, shard_bytes, overwrite)?;
        Ok((Self { numbered: keys == "number", count: 0, last: String::new() }, files))
    }

    fn begin(&mut self, _: &mut Vec<u8>) -> Result<()> {
        (self.count, self.last) = (0, String::new());
        Ok(())
    }

    fn sample(&mut self, sample: &Sample, out: &mut Vec<u8>) -> Result<()> {
        let key = if self.numbered { format!("{:09}", self.count) } else { key(sample.key(), self.count) };
        if key == self.last {
            let error = format!(
                "two samples in a row are called `{key}`, and would be read as one; choose keys=number"
            );
            return Err(Error::invalid(error));
        }
        let mut names: Vec<String> = Vec::with_capacity(sample.schema().len());
        for (field, value) in sample.fields() {
            let name =
                add(&key, field, value, out).map_err(|error| error.context("field", field.as_str()))?;
            if names.contains(&name) {
                let error = format!("two fields of one sample are written as `{name}`");
                return Err(Error::invalid(error).context("field", field.as_str()));
            }
            names.push(name);
        }
        if names.is_empty() {
            return Err(Error::invalid("a sample without fields has no members"));
        }
        (self.count, self.last) = (self.count + 1, key);
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<u8>) -> Result<()> {
        out.resize(out.len() + 2 * BLOCK, 0);
        Ok(())
    }
}

/// What the members of a sample share: the name that it has in its origin; of a whole file its folder and name; of others the file's name and
/// the sample's number. No more of the path, so that the same data elsewhere makes the same shard.
fn key(key: &Key, count: u64) -> String {
    let origin = key.origin.split_once("://").map_or(key.origin.as_str(), |(_, rest)| rest);
    let whole = key.name.is_empty();
    let text = if whole { origin } else { key.name.as_str() };
    let parts = text.split('/').filter(|part| !matches!(*part, "" | "." | ".."));
    let mut parts: Vec<_> = parts.map(|part| part.replace('\0', "_")).collect();
    if let Some(last) = parts.last_mut() {
        let stem = last.rfind('.').filter(|&dot| whole && dot > 0);
        // A dot would end the key.
        *last = last.get(..stem.unwrap_or(last.len())).unwrap_or_default().replace('.', "_");
    }
    if whole {
        let is_row = key.index != Key::WHOLE;
        parts.drain(..parts.len().saturating_sub(if is_row { 1 } else { 2 }));
        parts.extend(is_row.then(|| format!("{:09}", key.index)));
    }
    // What begins so is a note about the shard.
    let text = parts.join("/");
    let text = text.trim_start_matches('_');
    if text.is_empty() { format!("{count:09}") } else { text.to_owned() }
}

/// Adds the member for a field, and gives its name.
fn add(key: &str, field: &str, value: &Value, out: &mut Vec<u8>) -> Result<String> {
    let mut own = Vec::new();
    let (bytes, extension): (&[u8], &[&str]) = match value.view() {
        View::Bytes(bytes) => (bytes, &[]),
        View::Str(text) => (text.as_bytes(), &TEXTS),
        View::Int(_) | View::UInt(_) if value.as_i64().is_some() => {
            write_json(value, &mut own)?;
            (&own, &INTEGERS)
        }
        View::Tensor(tensor) => {
            npy(tensor, &mut own)?;
            (&own, &["npy"])
        }
        _ => {
            write_json(value, &mut own)?;
            (&own, &["json"])
        }
    };
    let field = field.replace(['/', '\0'], "_").to_lowercase();
    let last = field.rsplit('.').next().unwrap_or_default();
    let field = match extension.first() {
        Some(usual) if !extension.contains(&last) => format!("{field}.{usual}"),
        _ => field,
    };
    let name = format!("{key}.{field}");
    match split_name(name.as_bytes()) {
        Some((read, _)) if read == key.as_bytes() => {}
        _ => return Err(Error::invalid(format!("`{name}` is no name for a member"))),
    }
    member(&name, bytes, out);
    Ok(name)
}

/// Adds a member.
fn member(name: &str, bytes: &[u8], out: &mut Vec<u8>) {
    let size = bytes.len() as u64;
    let mut records = Vec::new();
    if name.len() > NAME {
        record("path", name, &mut records);
    }
    if size >= LARGE {
        record("size", &size.to_string(), &mut records);
    }
    if !records.is_empty() {
        contents(b"././@PaxHeader", b'x', &records, out);
    }
    contents(name.as_bytes(), b'0', bytes, out);
}

fn contents(name: &[u8], kind: u8, bytes: &[u8], out: &mut Vec<u8>) {
    header(name, kind, bytes.len() as u64, out);
    out.extend_from_slice(bytes);
    out.resize(out.len().next_multiple_of(BLOCK), 0);
}

/// Adds a pax record: its length with itself, a key and a value.
fn record(key: &str, value: &str, out: &mut Vec<u8>) {
    let rest = key.len() + value.len() + 3;
    let mut len = rest + 1;
    while len != rest + len.to_string().len() {
        len = rest + len.to_string().len();
    }
    out.extend(format!("{len} {key}={value}\n").into_bytes());
}

/// Adds a header: of nobody, at no time, so that the same samples give the same bytes.
fn header(name: &[u8], kind: u8, size: u64, out: &mut Vec<u8>) {
    let mut block = [0_u8; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &name[..name.len().min(NAME)]);
    put(100, b"0000644\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    // A pax record says what has more digits.
    put(124, format!("{:011o}\0", size % LARGE).as_bytes());
    put(136, b"00000000000\0");
    put(148, b"        ");
    put(156, &[kind]);
    put(257, b"ustar\x0000");
    let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    out.extend_from_slice(&block);
}

/// Adds a tensor as an npy file of version 1: <https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>
fn npy(tensor: &Tensor, out: &mut Vec<u8>) -> Result<()> {
    let dtype = tensor.dtype();
    let kind = match dtype {
        DType::BOOL => 'b',
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => 'i',
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => 'u',
        DType::F16 | DType::F32 | DType::F64 => 'f',
        _ => return Err(Error::unsupported(format!("elements of {dtype} have no form in npy"))),
    };
    let order = match dtype.size() {
        1 => '|',
        _ if cfg!(target_endian = "little") => '<',
        _ => '>',
    };
    let axes: String = tensor.shape().iter().map(|axis| format!("{axis},")).collect();
    let size = dtype.size();
    let mut text = format!("{{'descr': '{order}{kind}{size}', 'fortran_order': False, 'shape': ({axes}), }}");
    let padded = (10 + text.len() + 1).next_multiple_of(64) - 10;
    text.extend(std::iter::repeat_n(' ', padded - text.len() - 1));
    text.push('\n');
    let len = u16::try_from(text.len()).map_err(|_| Error::limit("the header of an npy file is too long"))?;
    out.extend_from_slice(b"\x93NUMPY\x01\x00");
    out.extend_from_slice(&len.to_le_bytes());
    out.extend(text.into_bytes());
    out.extend_from_slice(tensor.data());
    Ok(())
}
