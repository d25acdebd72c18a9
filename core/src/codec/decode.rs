//! Decodes bytes to chunks. No number is trusted: memory is allocated only for bytes that are there.

use forebay_abi::MAX_DIMS;

use super::{DEPTH, PART, arrow, kind};
use crate::{Buffer, Chunk, DType, Error, Key, Result, Schema, Str, Tensor, Value};

/// The most schemas that are remembered from message to message.
const REMEMBERED: usize = 16;

/// Decodes chunks. It remembers schemas, so that the chunks of one stream share them.
#[derive(Default)]
pub struct Decoder {
    /// By the bytes that they were written as.
    schemas: Vec<(Box<[u8]>, Schema)>,
    origin: Str,
}

/// What was written out in this message, by number.
struct Message<'a> {
    parts: &'a [Buffer],
    origins: Vec<Str>,
    schemas: Vec<Schema>,
}

/// The bytes not yet read.
struct Reader<'a>(&'a [u8]);

impl Decoder {
    /// The chunk that was written as `flat` and `parts`.
    ///
    /// # Errors
    /// [`Corrupt`](crate::ErrorKind::Corrupt) for bytes that no encoder writes.
    pub fn decode(&mut self, flat: &[u8], parts: &[Buffer]) -> Result<Chunk> {
        if u32::try_from(flat.len()).is_err() {
            return Err(Error::corrupt("a chunk's flat bytes are 4 GiB or more"));
        }
        let mut reader = Reader(flat);
        let mut message = Message { parts, origins: Vec::new(), schemas: Vec::new() };
        let mut chunk = Chunk::new();
        // That of the sample before: references are counted where it changes.
        let mut schema = Schema::empty();
        for _ in 0..reader.u32()? {
            let uid = reader.u64()?;
            let index = reader.u64()?;
            let name = reader.text()?;
            let origin = self.origin(&mut reader, &mut message)?;
            let found = self.schema(&mut reader, &mut message)?;
            if !schema.is(found) {
                schema = found.clone();
            }
            let values = schema.names().iter().map(|_| self.value(&mut reader, &mut message, 0));
            chunk.try_push(uid, Key { origin, name, index }, &schema, values)?;
        }
        if reader.0.is_empty() { Ok(chunk) } else { Err(Error::corrupt("bytes follow the last sample")) }
    }

    fn origin(&mut self, reader: &mut Reader<'_>, message: &mut Message<'_>) -> Result<Str> {
        let place = reader.u32()? as usize;
        if place == message.origins.len() {
            let text = reader.short()?;
            if self.origin.as_bytes() != text {
                self.origin = to_text(text)?;
            }
            message.origins.push(self.origin.clone());
        }
        message.origins.get(place).cloned().ok_or_else(|| Error::corrupt("an origin was not written out"))
    }

    fn schema<'m>(&mut self, reader: &mut Reader<'_>, message: &'m mut Message<'_>) -> Result<&'m Schema> {
        let place = reader.u32()? as usize;
        if place == message.schemas.len() {
            let schema = self.new_schema(reader)?;
            message.schemas.push(schema);
        }
        message.schemas.get(place).ok_or_else(|| Error::corrupt("a schema was not written out"))
    }

    fn new_schema(&mut self, reader: &mut Reader<'_>) -> Result<Schema> {
        let start = reader.0;
        for _ in 0..reader.u32()? {
            reader.short()?;
        }
        let written = start.get(..start.len() - reader.0.len()).unwrap_or_default();
        if let Some((_, schema)) = self.schemas.iter().find(|(known, _)| **known == *written) {
            return Ok(schema.clone());
        }
        let mut again = Reader(written);
        let names: Vec<Str> = (0..again.u32()?).map(|_| again.text()).collect::<Result<_>>()?;
        let schema = Schema::new(names);
        if self.schemas.len() == REMEMBERED {
            self.schemas.remove(0);
        }
        self.schemas.push((written.into(), schema.clone()));
        Ok(schema)
    }

    fn value(&mut self, reader: &mut Reader<'_>, message: &mut Message<'_>, depth: usize) -> Result<Value> {
        if depth > DEPTH {
            return Err(Error::corrupt(format!("lists and structures lie more than {DEPTH} deep")));
        }
        match reader.u8()? {
            kind::NULL => Ok(Value::NULL),
            kind::SCALAR => Ok(Value::scalar(reader.dtype()?, reader.u64()?)),
            kind::STR => {
                let text = Str::from_utf8(reader.buffer(message.parts)?);
                text.map(Value::from).map_err(|_| Error::corrupt("a text is not UTF-8"))
            }
            kind::BYTES => Ok(reader.buffer(message.parts)?.into()),
            kind::TENSOR => reader.tensor(message.parts).map(Value::from),
            kind::LIST => {
                let count = reader.u32()?;
                let values = (0..count).map(|_| self.value(reader, message, depth + 1));
                values.collect::<Result<Vec<_>>>().map(Value::list)
            }
            kind::STRUCT => {
                let schema = self.schema(reader, message)?.clone();
                let fields = schema.names().iter();
                let fields = fields.map(|name| Ok((name.clone(), self.value(reader, message, depth + 1)?)));
                fields.collect::<Result<Vec<_>>>().map(Value::structure)
            }
            kind::ARROW => arrow::from_value(&self.value(reader, message, depth + 1)?),
            other => Err(Error::corrupt(format!("a value is of the unknown kind {other}"))),
        }
    }
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or_else(|| self.lacks(len))?;
        self.0 = rest;
        Ok(taken)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk().ok_or_else(|| self.lacks(N))?;
        self.0 = rest;
        Ok(*array)
    }

    #[cold]
    fn lacks(&self, len: usize) -> Error {
        Error::corrupt(format!("{len} bytes expected, {} are left", self.0.len()))
    }

    fn u8(&mut self) -> Result<u8> {
        self.array().map(|[byte]| byte)
    }

    fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn short(&mut self) -> Result<&'a [u8]> {
        let len = self.u32()?;
        self.take(len as usize)
    }

    fn text(&mut self) -> Result<Str> {
        to_text(self.short()?)
    }

    fn dtype(&mut self) -> Result<DType> {
        let [code, bits, low, high] = self.array()?;
        Ok(DType { code, bits, lanes: u16::from_le_bytes([low, high]) })
    }

    /// Bytes that may be large: short ones are copied, so that they keep no more than themselves.
    fn buffer(&mut self, parts: &[Buffer]) -> Result<Buffer> {
        let len = self.u32()?;
        if len != PART {
            return self.take(len as usize).map(|bytes| bytes.to_vec().into());
        }
        let place = self.u32()? as usize;
        parts.get(place).cloned().ok_or_else(|| {
            Error::corrupt(format!("large buffer {place} is named, there are {}", parts.len()))
        })
    }

    fn tensor(&mut self, parts: &[Buffer]) -> Result<Tensor> {
        let dtype = self.dtype()?;
        let axes = usize::from(self.u8()?);
        if axes > MAX_DIMS {
            return Err(Error::corrupt(format!("a tensor has {axes} axes, at most {MAX_DIMS} expected")));
        }
        let mut shape = [0_usize; MAX_DIMS];
        for axis in shape.iter_mut().take(axes) {
            let len = i64::from_le_bytes(self.array()?);
            *axis =
                usize::try_from(len).map_err(|_| Error::corrupt(format!("an axis has the length {len}")))?;
        }
        let data = self.buffer(parts)?;
        Tensor::try_new(dtype, shape.get(..axes).unwrap_or_default(), data).map_err(Error::corrupt)
    }
}

#[inline]
fn to_text(bytes: &[u8]) -> Result<Str> {
    if bytes.is_empty() {
        return Ok(Str::EMPTY);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| Error::corrupt("a text is not UTF-8"))?;
    Ok(text.into())
}
