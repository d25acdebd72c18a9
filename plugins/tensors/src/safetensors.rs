//! `safetensors`: named tensors behind a header in JSON.
//!
//! <https://github.com/huggingface/safetensors#format>
//!
//! ```toml
//! [safetensors]
//! gives = "a struct of tensors; `__metadata__` where the file has it"
//! when = "one file a sample; for one tensor a sample, use `split_safetensors`"
//! ```

use std::{collections::HashSet, fmt, ops::Range};

use forebay_core::{
    Blob, Buffer, Context, DType, Decoder, DecoderInfo, Error, NoOptions, Result, Str, Value, Wanted,
};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};

use crate::{dtype::count, memory::Memory};

/// The most bytes that a header may have, as in the reference.
const HEADER: u64 = 100_000_000;
/// The name that stands for no tensor, but for what is said of the file.
const METADATA: &str = "__metadata__";

/// Decodes a safetensors file: see [`parse_safetensors`].
#[derive(Debug)]
pub struct Safetensors;

impl Decoder for Safetensors {
    const INFO: DecoderInfo = DecoderInfo {
        name: "safetensors",
        summary: "Named tensors to a struct, without a copy",
        extensions: &["safetensors"],
        ..DecoderInfo::DEFAULT
    };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self)
    }

    fn decode(&self, bytes: &Buffer, _: &Wanted, cx: &Context) -> Result<Value> {
        parse_within(bytes, &Memory::of(cx))
    }
}

/// Reads a safetensors file: a struct of its tensors, in the order in which they lie in the file.
///
/// The tensors share the memory of `bytes`, apart from those that do not lie on a boundary of their elements. What the file says
/// of itself is the last field, `__metadata__`, a struct of text.
///
/// ```
/// use forebay_core::View;
///
/// let header = br#"{"w":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}"#;
/// let file = [&(header.len() as u64).to_le_bytes()[..], header, &[3, 4]].concat();
/// let value = forebay_tensors::parse_safetensors(&file.into())?;
/// let View::Struct(fields) = value.view() else { unreachable!() };
/// assert_eq!(&**fields.get("w").and_then(|w| w.as_tensor()).unwrap().data(), &[3, 4]);
/// # Ok::<(), forebay_core::Error>(())
/// ```
///
/// # Errors
/// `Corrupt` when the header breaks the rules: two of one name, or tensors that overlap, leave a gap or end elsewhere than the file;
/// `Unsupported` for floats of 8 bits and fewer, and for more than 8 axes; `Limit`.
pub fn parse_safetensors(bytes: &Buffer) -> Result<Value> {
    parse_within(bytes, &Memory::own())
}

fn parse_within(bytes: &Buffer, memory: &Memory) -> Result<Value> {
    let blob = Blob::from(bytes.clone());
    let header = Header::read(&blob)?;
    let mut fields = Vec::with_capacity(header.entries.len());
    for entry in &header.entries {
        fields.push((entry.name.clone(), entry.tensor_within(&blob, memory)?));
    }
    if !header.metadata.is_empty() {
        let text =
            header.metadata.iter().map(|(name, text)| (Str::from(name.as_str()), text.as_str().into()));
        fields.push((METADATA.into(), Value::structure(text.collect())));
    }
    Ok(Value::structure(fields))
}

/// What a file holds: tensors in the order in which they lie there.
#[derive(Debug, Clone)]
pub struct Header {
    /// What the file says of itself.
    pub metadata: Vec<(String, String)>,
    /// The tensors.
    pub entries: Vec<Entry>,
}

/// One tensor of a file.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Its name.
    pub name: Str,
    /// Its type as the file has it, such as `BF16`.
    pub code: String,
    /// The length of each axis.
    pub shape: Vec<usize>,
    /// Where its numbers lie in the file.
    pub range: Range<u64>,
}

impl Header {
    /// Reads the header, and nothing else.
    ///
    /// Cost: two reads.
    ///
    /// # Errors
    /// As [`parse_safetensors`].
    pub fn read(file: &Blob) -> Result<Self> {
        if file.len() < 8 {
            return Err(
                Error::corrupt(format!("{} bytes, expected at least 8", file.len())).context("byte", 0)
            );
        }
        let len = file.read(0..8)?;
        let len = len.iter().rev().fold(0, |len, &byte| len << 8 | u64::from(byte));
        if len > HEADER {
            let message =
                format!("a header of {len} bytes, expected at most {HEADER}; is it a safetensors file?");
            return Err(Error::limit(message).context("byte", 0));
        }
        let start = 8 + len;
        if start > file.len() {
            let message = format!("a header of {len} bytes in a file of {}", file.len());
            return Err(Error::corrupt(message).context("byte", 0));
        }
        let text = file.read(8..start)?;
        let read: Entries = serde_json::from_slice(&text)
            .map_err(|error| Error::corrupt(format!("unreadable header: {error}")).context("byte", 8))?;
        read.check(start, file.len())
    }
}

impl Entry {
    /// Reads the tensor: shared where the file's bytes are in memory, else by one read.
    ///
    /// # Errors
    /// As [`parse_safetensors`]; the store's own.
    pub fn tensor(&self, file: &Blob, cx: &Context) -> Result<Value> {
        self.tensor_within(file, &Memory::of(cx))
    }

    pub(crate) fn tensor_within(&self, file: &Blob, memory: &Memory) -> Result<Value> {
        let read = || {
            let (dtype, parts) = self.dtype()?;
            memory.check(usize::try_from(self.range.end - self.range.start).unwrap_or(usize::MAX))?;
            let mut shape = self.shape.clone();
            shape.extend((parts > 1).then_some(parts));
            memory.tensor(dtype, &shape, file.read(self.range.clone())?)
        };
        let tensor =
            read().map_err(|error| error.context("tensor", &self.name).context("byte", self.range.start))?;
        Ok(tensor.into())
    }

    /// The type, and how many numbers make one element.
    fn dtype(&self) -> Result<(DType, usize)> {
        let dtype = match self.code.as_str() {
            "BOOL" => DType::BOOL,
            "U8" => DType::U8,
            "I8" => DType::I8,
            "U16" => DType::U16,
            "I16" => DType::I16,
            "F16" => DType::F16,
            "BF16" => DType::BF16,
            "U32" => DType::U32,
            "I32" => DType::I32,
            "F32" => DType::F32,
            "U64" => DType::U64,
            "I64" => DType::I64,
            "F64" => DType::F64,
            "C64" => return Ok((DType::F32, 2)),
            code => {
                return Err(Error::unsupported(format!("the type `{code}` has no place in a tensor here")));
            }
        };
        Ok((dtype, 1))
    }

    /// Bits in one element; none for a type that nobody knows.
    fn bits(&self) -> Option<usize> {
        match self.code.as_str() {
            "F4" => Some(4),
            "F6_E2M3" | "F6_E3M2" => Some(6),
            "F8_E5M2" | "F8_E4M3" | "F8_E8M0" | "F8_E4M3FNUZ" | "F8_E5M2FNUZ" => Some(8),
            _ => self.dtype().ok().map(|(dtype, parts)| dtype.size() * 8 * parts),
        }
    }
}

/// The header as it stands there.
struct Entries {
    metadata: Vec<(String, String)>,
    tensors: Vec<(String, Info)>,
}

#[derive(Deserialize)]
struct Info {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

impl Entries {
    /// The header, if the tensors fill the file from `start` to `end`, one after the other.
    fn check(self, start: u64, end: u64) -> Result<Header> {
        let mut entries = Vec::with_capacity(self.tensors.len());
        for (name, info) in self.tensors {
            let entry = entry(&name, info, start)
                .map_err(|error| error.context("tensor", &name).context("byte", 8))?;
            entries.push(entry);
        }
        entries.sort_by_key(|entry| (entry.range.start, entry.range.end));
        let mut at = start;
        for entry in &entries {
            if entry.range.start != at {
                let message = format!(
                    "begins at byte {} of the file, expected {at}, where the one before ends",
                    entry.range.start
                );
                return Err(Error::corrupt(message).context("tensor", &entry.name).context("byte", 8));
            }
            at = entry.range.end;
        }
        if at != end {
            let message = format!("the tensors end at byte {at} and the file at {end}");
            return Err(Error::corrupt(message).context("byte", at.min(end)));
        }
        Ok(Header { metadata: self.metadata, entries })
    }
}

fn entry(name: &str, info: Info, start: u64) -> Result<Entry> {
    let shape: Option<Vec<_>> = info.shape.iter().map(|&axis| usize::try_from(axis).ok()).collect();
    let shape = shape.ok_or_else(|| Error::limit("an axis longer than memory"))?;
    let (begin, end) = info.data_offsets;
    let range = begin.checked_add(start).zip(end.checked_add(start)).filter(|(begin, end)| begin <= end);
    let (begin, end) = range.ok_or_else(|| Error::corrupt(format!("found the offsets {begin} to {end}")))?;
    let entry = Entry { name: name.into(), code: info.dtype, shape, range: begin..end };
    let Some(bits) = entry.bits() else {
        return Err(Error::corrupt(format!(
            "found the type `{}`, which safetensors does not have",
            entry.code
        )));
    };
    let bytes = count(&entry.shape).and_then(|count| count.checked_mul(bits)).filter(|bits| bits % 8 == 0);
    if bytes.map(|bits| bits as u64 / 8) != Some(end - begin) {
        let message = format!("{} {:?} does not fill {} bytes", entry.code, entry.shape, end - begin);
        return Err(Error::corrupt(message));
    }
    Ok(entry)
}

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        reader.deserialize_map(EntriesVisitor)
    }
}

struct EntriesVisitor;

impl<'de> Visitor<'de> for EntriesVisitor {
    type Value = Entries;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
        let mut read = Entries { metadata: Vec::new(), tensors: Vec::new() };
        let mut names = HashSet::new();
        while let Some(name) = map.next_key::<String>()? {
            if !names.insert(name.clone()) {
                return Err(serde::de::Error::custom(format_args!("two tensors are called `{name}`")));
            }
            if name == METADATA {
                let metadata: std::collections::BTreeMap<String, String> = map.next_value()?;
                read.metadata = metadata.into_iter().collect();
            } else {
                read.tensors.push((name, map.next_value()?));
            }
        }
        Ok(read)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use forebay_core::{ErrorKind, View};

    use super::*;

    /// A file with this header and data.
    pub(crate) fn file(header: &str, data: &[u8]) -> Buffer {
        [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), data].concat().into()
    }

    pub(crate) const TWO: &str = r#"{"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[2],"data_offsets":[3,7]},"a":{"dtype":"U8","shape":[3,1],"data_offsets":[0,3]}}"#;

    #[test]
    fn tensors_come_as_they_lie_and_on_their_own_boundaries() {
        let bytes = file(TWO, &[1, 2, 3, 4, 5, 6, 7]);
        let value = parse_safetensors(&bytes).unwrap();
        let View::Struct(fields) = value.view() else { panic!("no struct") };
        let names: Vec<_> = fields.schema().names().iter().map(|name| name.as_str()).collect();
        assert_eq!(names, ["a", "b", "__metadata__"]);
        let a = fields.get("a").and_then(Value::as_tensor).unwrap();
        let b = fields.get("b").and_then(Value::as_tensor).unwrap();
        assert!(a.data().same_owner(&bytes));
        assert_eq!((a.shape(), &**a.data()), (&[3, 1][..], &[1, 2, 3][..]));
        assert_eq!((b.dtype(), b.shape(), &**b.data()), (DType::BF16, &[2][..], &[4, 5, 6, 7][..]));
        assert!(b.data().as_ptr().addr().is_multiple_of(2));
        let View::Struct(metadata) = fields.get(METADATA).unwrap().view() else { panic!("no struct") };
        assert_eq!(metadata.get("format").and_then(Value::as_str), Some("pt"));
    }

    #[test]
    fn refuses_gaps_overlaps_and_wrong_lengths() {
        let one = |dtype: &str, shape: &str, offsets: &str| {
            format!(r#"{{"a":{{"dtype":"{dtype}","shape":{shape},"data_offsets":{offsets}}}}}"#)
        };
        let cases = [
            (one("U8", "[2]", "[0,2]"), 3, ErrorKind::Corrupt),
            (one("U8", "[2]", "[1,3]"), 3, ErrorKind::Corrupt),
            (one("U8", "[2]", "[2,0]"), 2, ErrorKind::Corrupt),
            (one("U16", "[2]", "[0,2]"), 2, ErrorKind::Corrupt),
            (one("Q9", "[2]", "[0,2]"), 2, ErrorKind::Corrupt),
            (one("F4", "[1]", "[0,1]"), 1, ErrorKind::Corrupt),
            (one("F8_E4M3", "[1]", "[0,1]"), 1, ErrorKind::Unsupported),
            (one("U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]"), 1, ErrorKind::Unsupported),
            (one("U8", "[18446744073709551615,2]", "[0,2]"), 2, ErrorKind::Corrupt),
            (one("U8", "[0]", "[18446744073709551615,18446744073709551615]"), 0, ErrorKind::Corrupt),
            (r#"{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}"#.into(), 0, ErrorKind::Corrupt),
            (format!("{{\"a\":{}", "[".repeat(10_000)), 0, ErrorKind::Corrupt),
            ("[]".into(), 0, ErrorKind::Corrupt),
        ];
        for (header, len, kind) in cases {
            let error = parse_safetensors(&file(&header, &vec![0; len])).unwrap_err();
            assert_eq!(error.kind(), kind, "{header:.80}: {error}");
        }
        assert_eq!(
            parse_safetensors(&b"not a safetensors file".to_vec().into()).unwrap_err().kind(),
            ErrorKind::Limit
        );
        assert_eq!(parse_safetensors(&file("{}", &[])).unwrap(), Value::structure(vec![]));
    }

    #[test]
    fn damage_is_an_error_or_a_value() {
        let whole = file(TWO, &[0; 7]);
        for len in 0..whole.len() {
            assert!(parse_safetensors(&whole.slice(..len)).is_err(), "{len}");
        }
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut bytes = whole.to_vec();
                bytes[at] ^= 1 << bit;
                let read = parse_safetensors(&bytes.into());
                assert!(at >= 8 || read.is_err(), "the length matters: byte {at}");
            }
        }
    }
}
