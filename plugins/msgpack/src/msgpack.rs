//! `msgpack`: one document to a value.
//!
//! <https://github.com/msgpack/msgpack/blob/master/spec.md>
//!
//! ```toml
//! [msgpack]
//! gives = "maps as structs, arrays as lists, numbers, text and bytes"
//! when = "one document a sample"
//! ```

use std::collections::HashMap;

use forebay_core::{
    Buffer, Context, Decoder, DecoderInfo, Error, Limits, NoOptions, Result, Str, Value, Wanted,
};

/// The most arrays and maps that may lie within each other.
pub const DEPTH: usize = 512;
/// The extension that is a timestamp.
const TIMESTAMP: i8 = -1;

/// Decodes MessagePack: see [`parse`].
#[derive(Debug)]
pub struct Msgpack;

impl Decoder for Msgpack {
    const INFO: DecoderInfo = DecoderInfo {
        name: "msgpack",
        summary: "MessagePack documents to structs, lists and numbers",
        extensions: &["msgpack", "mp", "msg"],
        media_types: &["application/vnd.msgpack", "application/msgpack"],
        ..DecoderInfo::DEFAULT
    };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self)
    }

    fn decode(&self, bytes: &Buffer, _: &Wanted, cx: &Context) -> Result<Value> {
        parse_within(bytes, cx.limits().bytes)
    }
}

/// Reads one document. Text and bytes share its memory.
///
/// ```
/// use forebay_core::View;
///
/// let value = forebay_msgpack::parse(&b"\x81\xa5label\xa5heron".to_vec().into())?;
/// let View::Struct(fields) = value.view() else { unreachable!() };
/// assert_eq!(fields.get("label").and_then(|label| label.as_str()), Some("heron"));
/// # Ok::<(), forebay_core::Error>(())
/// ```
///
/// # Errors
/// `Corrupt` with the byte, also for bytes after the document; `Limit` when it nests deeper than [`DEPTH`] or its values need
/// more memory than is usual ([`Limits::DEFAULT`]).
pub fn parse(bytes: &Buffer) -> Result<Value> {
    parse_within(bytes, Limits::DEFAULT.bytes)
}

fn parse_within(bytes: &Buffer, limit: u64) -> Result<Value> {
    let mut reader = Reader { bytes, at: 0, left: limit };
    let value = reader.value(DEPTH)?;
    match bytes.len() - reader.at {
        0 => Ok(value),
        rest => {
            Err(Error::corrupt(format!("found {rest} bytes after the document")).context("byte", reader.at))
        }
    }
}

struct Reader<'a> {
    bytes: &'a Buffer,
    at: usize,
    /// The bytes of memory that values may still take.
    left: u64,
}

impl Reader<'_> {
    fn value(&mut self, levels: usize) -> Result<Value> {
        let at = self.at;
        let [mark] = self.take_array()?;
        // The order of the specification's table.
        match mark {
            0x00..=0x7f => Ok(i64::from(mark).into()),
            0x80..=0x8f => self.map(usize::from(mark & 0x0f), at, levels),
            0x90..=0x9f => self.array(usize::from(mark & 0x0f), at, levels),
            0xa0..=0xbf => self.text(usize::from(mark & 0x1f)),
            0xc0 => Ok(Value::NULL),
            0xc1 => Err(Error::corrupt("found the byte 0xc1, which begins nothing").context("byte", at)),
            0xc2 => Ok(false.into()),
            0xc3 => Ok(true.into()),
            0xc4..=0xc6 => {
                let len = self.number(1 << (mark - 0xc4))?;
                Ok(self.take(len as usize)?.into())
            }
            0xc7..=0xc9 => {
                let len = self.number(1 << (mark - 0xc7))?;
                self.extension(len as usize, at)
            }
            0xca => Ok(f32::from_be_bytes(self.take_array()?).into()),
            0xcb => Ok(f64::from_be_bytes(self.take_array()?).into()),
            0xcc..=0xcf => {
                let number = self.number(1 << (mark - 0xcc))?;
                Ok(i64::try_from(number).map_or_else(|_| number.into(), Value::from))
            }
            0xd0 => Ok(i64::from(i8::from_be_bytes(self.take_array()?)).into()),
            0xd1 => Ok(i64::from(i16::from_be_bytes(self.take_array()?)).into()),
            0xd2 => Ok(i64::from(i32::from_be_bytes(self.take_array()?)).into()),
            0xd3 => Ok(i64::from_be_bytes(self.take_array()?).into()),
            0xd4..=0xd8 => self.extension(1 << (mark - 0xd4), at),
            0xd9..=0xdb => {
                let len = self.number(1 << (mark - 0xd9))?;
                self.text(len as usize)
            }
            0xdc | 0xdd => {
                let count = self.number(2 << (mark - 0xdc))?;
                self.array(count as usize, at, levels)
            }
            0xde | 0xdf => {
                let count = self.number(2 << (mark - 0xde))?;
                self.map(count as usize, at, levels)
            }
            0xe0..=0xff => Ok(i64::from(mark as i8).into()),
        }
    }

    fn array(&mut self, count: usize, at: usize, levels: usize) -> Result<Value> {
        let levels = self.enter(count, 1, at, levels)?;
        let mut items = Vec::with_capacity(count);
        for _ in 0..count {
            items.push(self.value(levels)?);
        }
        Ok(Value::list(items))
    }

    fn map(&mut self, count: usize, at: usize, levels: usize) -> Result<Value> {
        let levels = self.enter(count, 2, at, levels)?;
        let mut entries = Vec::with_capacity(count);
        for _ in 0..count {
            entries.push((self.value(levels)?, self.value(levels)?));
        }
        if entries.iter().any(|(key, _)| key.as_str().is_none()) {
            return Ok(Value::list(
                entries.into_iter().map(|(key, value)| Value::list(vec![key, value])).collect(),
            ));
        }
        let mut places: HashMap<String, usize> = HashMap::with_capacity(count);
        let mut fields: Vec<(Str, Value)> = Vec::with_capacity(count);
        for (key, value) in entries {
            let name = key.as_str().unwrap_or_default();
            match places.get(name).and_then(|&place| fields.get_mut(place)) {
                Some(field) => field.1 = value,
                None => {
                    places.insert(name.to_owned(), fields.len());
                    fields.push((shared(&key), value));
                }
            }
        }
        Ok(Value::structure(fields))
    }

    /// Checks depth and memory of `count` times `each` values, which take a byte at least; gives the levels left within.
    fn enter(&mut self, count: usize, each: usize, at: usize, levels: usize) -> Result<usize> {
        let values = count.saturating_mul(each);
        let rest = self.bytes.len() - self.at;
        if values > rest {
            let message = format!("found a count of {count}, and the document ends after {rest} bytes");
            return Err(Error::corrupt(message).context("byte", at));
        }
        // A map holds its names twice while it is made, and its values.
        let memory = (values * each * size_of::<Value>() + size_of::<Value>()) as u64;
        self.left = self.left.checked_sub(memory).ok_or_else(|| {
            Error::limit("more values than the limit of memory for one allows").context("byte", at)
        })?;
        levels
            .checked_sub(1)
            .ok_or_else(|| Error::limit(format!("nested deeper than {DEPTH} levels")).context("byte", at))
    }

    fn text(&mut self, len: usize) -> Result<Value> {
        let at = self.at;
        let bytes = self.take(len)?;
        let text = Str::from_utf8(bytes).map_err(|bytes| {
            let valid = std::str::from_utf8(&bytes).map_or_else(|error| error.valid_up_to(), str::len);
            Error::corrupt("the text is not UTF-8").context("byte", at + valid)
        })?;
        Ok(text.into())
    }

    fn extension(&mut self, len: usize, at: usize) -> Result<Value> {
        let kind = i8::from_be_bytes(self.take_array()?);
        let data = self.take(len)?;
        if kind != TIMESTAMP {
            return Ok(Value::structure(vec![("type".into(), kind.into()), ("data".into(), data.into())]));
        }
        let number = |bytes: &[u8]| bytes.iter().fold(0_u64, |number, &byte| number << 8 | u64::from(byte));
        let (seconds, nanoseconds) = match len {
            4 => (number(&data), 0),
            8 => (number(&data) & ((1 << 34) - 1), number(&data) >> 34),
            12 => (number(&data[4..]), number(&data[..4])),
            _ => {
                return Err(Error::corrupt(format!("a timestamp of {len} bytes, expected 4, 8 or 12"))
                    .context("byte", at));
            }
        };
        if nanoseconds > 999_999_999 {
            return Err(
                Error::corrupt(format!("a timestamp with {nanoseconds} nanoseconds")).context("byte", at)
            );
        }
        let fields = vec![
            ("seconds".into(), (seconds as i64).into()),
            ("nanoseconds".into(), (nanoseconds as u32).into()),
        ];
        Ok(Value::structure(fields))
    }

    /// A number of `len` bytes, at most 8.
    fn number(&mut self, len: usize) -> Result<u64> {
        Ok(self.take(len)?.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    fn take_array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let found = self.bytes.as_slice().get(self.at..).and_then(|rest| rest.first_chunk::<N>());
        let found = *found.ok_or_else(|| self.cut(N))?;
        self.at += N;
        Ok(found)
    }

    fn take(&mut self, len: usize) -> Result<Buffer> {
        let bytes = self.at.checked_add(len).and_then(|end| self.bytes.get(self.at..end));
        let bytes = bytes.ok_or_else(|| self.cut(len))?;
        self.at += len;
        Ok(bytes)
    }

    fn cut(&self, len: usize) -> Error {
        let rest = self.bytes.len() - self.at;
        Error::corrupt(format!("expected {len} bytes, and the document ends after {rest}"))
            .context("byte", self.at)
    }
}

/// The text of a key, sharing its memory.
fn shared(key: &Value) -> Str {
    key.as_bytes().and_then(|bytes| Str::from_utf8(bytes.clone()).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use forebay_core::{ErrorKind, View};

    use super::*;

    fn read(bytes: &[u8]) -> Result<Value> {
        parse(&bytes.to_vec().into())
    }

    fn bytes(bytes: &[u8]) -> Value {
        Buffer::from(bytes.to_vec()).into()
    }

    #[test]
    fn reads_every_kind_of_value() {
        let cases: Vec<(&[u8], Value)> = vec![
            (b"\x7f", 127_i64.into()),
            (b"\xe0", (-32_i64).into()),
            (b"\xcc\xff", 255_i64.into()),
            (b"\xcd\x01\x00", 256_i64.into()),
            (b"\xce\xff\xff\xff\xff", 4_294_967_295_i64.into()),
            (b"\xcf\xff\xff\xff\xff\xff\xff\xff\xff", u64::MAX.into()),
            (b"\xd0\x80", (-128_i64).into()),
            (b"\xd1\x80\x00", (-32768_i64).into()),
            (b"\xd2\x80\x00\x00\x00", (-2_147_483_648_i64).into()),
            (b"\xd3\x80\x00\x00\x00\x00\x00\x00\x00", i64::MIN.into()),
            (b"\xca\x3f\x80\x00\x00", 1.0_f32.into()),
            (b"\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00", 1.5_f64.into()),
            (b"\xc0", Value::NULL),
            (b"\xc2", false.into()),
            (b"\xc3", true.into()),
            (b"\xa3abc", "abc".into()),
            (b"\xd9\x01a", "a".into()),
            (b"\xda\x00\x01a", "a".into()),
            (b"\xdb\x00\x00\x00\x01a", "a".into()),
            (b"\xc4\x01\xff", bytes(&[255])),
            (b"\xc5\x00\x01\xff", bytes(&[255])),
            (b"\xc6\x00\x00\x00\x01\xff", bytes(&[255])),
            (b"\x91\x01", Value::list(vec![1_i64.into()])),
            (b"\xdc\x00\x01\x01", Value::list(vec![1_i64.into()])),
            (b"\xdd\x00\x00\x00\x01\x01", Value::list(vec![1_i64.into()])),
            (b"\x81\xa1a\x01", Value::structure(vec![("a".into(), 1_i64.into())])),
            (b"\xde\x00\x01\xa1a\x01", Value::structure(vec![("a".into(), 1_i64.into())])),
            (b"\xdf\x00\x00\x00\x01\xa1a\x01", Value::structure(vec![("a".into(), 1_i64.into())])),
            (b"\x80", Value::structure(vec![])),
        ];
        for (text, expected) in cases {
            assert_eq!(read(text).unwrap(), expected, "{text:02x?}");
            for len in 0..text.len() {
                let error = read(&text[..len]).unwrap_err();
                assert!(
                    error.kind() == ErrorKind::Corrupt && error.get("byte").is_some(),
                    "{text:02x?} {len}"
                );
            }
            let more = [text, b"\x01"].concat();
            assert_eq!(read(&more).unwrap_err().get("byte"), Some(&*text.len().to_string()), "{text:02x?}");
        }
    }

    #[test]
    fn extensions_and_timestamps() {
        let time = |seconds: i64, nanoseconds: u32| {
            Value::structure(vec![
                ("seconds".into(), seconds.into()),
                ("nanoseconds".into(), nanoseconds.into()),
            ])
        };
        let ext = |kind: i8, data: &[u8]| {
            Value::structure(vec![("type".into(), kind.into()), ("data".into(), bytes(data))])
        };
        assert_eq!(read(b"\xd4\x05\xff").unwrap(), ext(5, &[255]));
        assert_eq!(read(b"\xc7\x00\x80").unwrap(), ext(-128, &[]));
        assert_eq!(read(b"\xd6\xff\x00\x00\x00\x07").unwrap(), time(7, 0));
        let packed = (5_u64 << 34 | 1 << 33).to_be_bytes();
        assert_eq!(read(&[&b"\xd7\xff"[..], &packed].concat()).unwrap(), time(1 << 33, 5));
        let wide = [&b"\xc7\x0c\xff\x00\x00\x00\x05"[..], &(-7_i64).to_be_bytes()].concat();
        assert_eq!(read(&wide).unwrap(), time(-7, 5));
        assert_eq!(read(b"\xd5\xff\x00\x00").unwrap_err().kind(), ErrorKind::Corrupt);
        assert_eq!(read(b"\xd7\xff\xff\xff\xff\xff\x00\x00\x00\x00").unwrap_err().kind(), ErrorKind::Corrupt);
    }

    #[test]
    fn of_equal_keys_the_last_counts_and_other_keys_make_pairs() {
        let value = read(b"\x83\xa1a\x01\xa1b\x02\xa1a\x03").unwrap();
        assert_eq!(value, Value::structure(vec![("a".into(), 3_i64.into()), ("b".into(), 2_i64.into())]));
        let pairs = Value::list(vec![Value::list(vec![1_i64.into(), "x".into()])]);
        assert_eq!(read(b"\x81\x01\xa1x").unwrap(), pairs);
    }

    #[test]
    fn text_shares_the_documents_memory() {
        let document = Buffer::from(b"\x92\xa5heron\xc4\x02ab".to_vec());
        let value = parse(&document).unwrap();
        let View::List([text, data]) = value.view() else { panic!("no list") };
        assert!(
            text.as_bytes().unwrap().same_owner(&document) && data.as_bytes().unwrap().same_owner(&document)
        );
    }

    #[test]
    fn refuses_what_would_take_too_much() {
        assert!(read(&[vec![0x91; DEPTH], vec![0xc0]].concat()).is_ok());
        assert_eq!(read(&vec![0x91; 1_000_000]).unwrap_err().kind(), ErrorKind::Limit);
        assert_eq!(read(b"\xdd\xff\xff\xff\xff").unwrap_err().kind(), ErrorKind::Corrupt);
        assert_eq!(read(b"\xdf\xff\xff\xff\xff\x01").unwrap_err().kind(), ErrorKind::Corrupt);
        assert_eq!(read(b"\xc6\xff\xff\xff\xff").unwrap_err().kind(), ErrorKind::Corrupt);
        let many = Buffer::from([&b"\xdc\x03\xe8"[..], &[0; 1000]].concat());
        assert!(parse_within(&many, 32_032).is_ok());
        assert_eq!(parse_within(&many, 32_031).unwrap_err().kind(), ErrorKind::Limit);
        assert_eq!(read(b"\xa2\xc3\x28").unwrap_err().get("byte"), Some("1"));
        assert_eq!(read(b"\xc1").unwrap_err().get("byte"), Some("0"));
    }

    #[test]
    fn flipped_bits_are_an_error_or_a_value() {
        let whole = b"\x83\xa1a\x93\x01\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00\xc0\xa1t\xd6\xff\x00\x00\x00\x07\xa1b\xc4\x02ab";
        assert!(read(whole).is_ok());
        let mut refused = 0;
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut bytes = whole.to_vec();
                bytes[at] ^= 1 << bit;
                refused += u32::from(read(&bytes).is_err());
            }
        }
        assert!(refused > 50, "{refused}");
    }
}
