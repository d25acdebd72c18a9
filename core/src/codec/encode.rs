//! Encodes chunks as bytes.

use super::{DEPTH, LARGE, PART, arrow, kind};
use crate::{Buffer, Chunk, DType, Error, Key, Result, Schema, Str, Tensor, Value, View};

/// Encodes chunks, and reuses its memory for each.
///
/// ```
/// use forebay_core::{Chunk, Key, Sample, codec::{Decoder, Encoder}};
///
/// let mut sample = Sample::new(1, Key::whole("birds/heron.jpg"));
/// sample.set("class", 4_i64);
/// let mut chunk = Chunk::new();
/// chunk.push_sample(&mut sample);
/// let mut encoder = Encoder::default();
/// encoder.encode(&chunk)?;
/// let again = Decoder::default().decode(&encoder.flat, &encoder.parts)?;
/// assert_eq!((again.len(), chunk.len()), (1, 1));
/// # Ok::<(), forebay_core::Error>(())
/// ```
#[derive(Default)]
pub struct Encoder {
    /// The flat bytes of the last chunk.
    pub flat: Vec<u8>,
    /// The large buffers of the last chunk.
    pub parts: Vec<Buffer>,
    names: Names,
}

/// What was written out in this message, by number.
#[derive(Default)]
struct Names {
    origins: Vec<Str>,
    schemas: Vec<Schema>,
}

/// Why a value cannot cross, and where in its field it is.
struct Refusal {
    path: String,
    error: Error,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self { path: String::new(), error }
    }
}

impl Refusal {
    /// The same, seen from the value around it.
    fn inside(self, place: impl std::fmt::Display) -> Self {
        Self { path: format!("{place}{}", self.path), error: self.error }
    }
}

impl Encoder {
    /// Writes `chunk` to `flat` and `parts`. They keep it until [`forget`](Encoder::forget).
    ///
    /// # Errors
    /// If a value cannot be sent, with its sample and field. Nothing is written then.
    pub fn encode(&mut self, chunk: &Chunk) -> Result<()> {
        self.forget();
        put_len(&mut self.flat, chunk.len())?;
        let mut samples = chunk.samples();
        let result = samples.try_for_each(|(uid, key, schema, values)| {
            self.put_sample(uid, key, schema, values).map_err(|error| error.context("sample", key))
        });
        if result.is_err() {
            self.forget();
        }
        result
    }

    /// Drops the last chunk.
    pub fn forget(&mut self) {
        self.flat.clear();
        self.parts.clear();
        self.names.origins.clear();
        self.names.schemas.clear();
    }

    fn put_sample(&mut self, uid: u64, key: &Key, schema: &Schema, values: &[Value]) -> Result<()> {
        let Self { flat, parts, names } = self;
        names.put_head(flat, uid, key, schema)?;
        for (name, value) in schema.names().iter().zip(values) {
            put_value(flat, parts, names, value, 0).map_err(|refusal| {
                let Refusal { path, error } = refusal.inside(name);
                error.context("field", path)
            })?;
        }
        Ok(())
    }
}

impl Names {
    fn put_head(&mut self, flat: &mut Vec<u8>, uid: u64, key: &Key, schema: &Schema) -> Result<()> {
        let Key { origin, name, index } = key;
        // At once: each piece asks for room.
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&uid.to_le_bytes());
        bytes[8..].copy_from_slice(&index.to_le_bytes());
        flat.extend_from_slice(&bytes);
        put_short(flat, name.as_bytes())?;
        self.put_origin(flat, origin)?;
        self.put_schema(flat, schema)
    }

    fn put_origin(&mut self, flat: &mut Vec<u8>, origin: &Str) -> Result<()> {
        if let Some(place) = recent(&self.origins, |known| known == origin) {
            return put_len(flat, place);
        }
        put_len(flat, self.origins.len())?;
        self.origins.push(origin.clone());
        put_short(flat, origin.as_bytes())
    }

    fn put_schema(&mut self, flat: &mut Vec<u8>, schema: &Schema) -> Result<()> {
        let known = recent(&self.schemas, |known| known.is(schema));
        if let Some(place) = known.or_else(|| recent(&self.schemas, |known| known == schema)) {
            return put_len(flat, place);
        }
        put_len(flat, self.schemas.len())?;
        self.schemas.push(schema.clone());
        put_len(flat, schema.len())?;
        schema.names().iter().try_for_each(|name| put_short(flat, name.as_bytes()))
    }
}

/// The place of what was written not long ago, the latest first: a stream seldom changes either.
fn recent<T>(all: &[T], mut is: impl FnMut(&T) -> bool) -> Option<usize> {
    let far = all.len().saturating_sub(16);
    all.iter().enumerate().skip(far).rev().find(|(_, known)| is(known)).map(|(place, _)| place)
}

fn put_value(
    flat: &mut Vec<u8>,
    parts: &mut Vec<Buffer>,
    names: &mut Names,
    value: &Value,
    depth: usize,
) -> Result<(), Refusal> {
    if depth > DEPTH {
        return Err(Error::limit(format!("lists and structures lie more than {DEPTH} deep")).into());
    }
    match value.view() {
        View::Null => flat.push(kind::NULL),
        View::Bool(_) | View::Int(_) | View::UInt(_) | View::Float(_) => put_scalar(flat, value),
        View::Unknown(_) if value.dtype().is_some() => put_scalar(flat, value),
        View::Str(_) => put_bytes(flat, parts, kind::STR, value)?,
        View::Bytes(_) => put_bytes(flat, parts, kind::BYTES, value)?,
        View::Tensor(tensor) => put_tensor(flat, parts, tensor)?,
        View::List(values) => {
            flat.push(kind::LIST);
            put_len(flat, values.len())?;
            for (at, value) in values.iter().enumerate() {
                let done = put_value(flat, parts, names, value, depth + 1);
                done.map_err(|refusal| refusal.inside(format_args!("[{at}]")))?;
            }
        }
        View::Struct(fields) => {
            flat.push(kind::STRUCT);
            names.put_schema(flat, fields.schema())?;
            for (name, value) in fields.fields() {
                let done = put_value(flat, parts, names, value, depth + 1);
                done.map_err(|refusal| refusal.inside(format_args!(".{name}")))?;
            }
        }
        View::Arrow(_) => {
            flat.push(kind::ARROW);
            let columns = arrow::to_value(value.arrow().map_err(Error::corrupt)?);
            put_value(flat, parts, names, &columns, depth + 1)?;
        }
        View::Opaque(name) => return Err(refused(&format!("a value that only its plugin reads (`{name}`)"))),
        _ => return Err(refused(&format!("a value of the unknown kind {}", value.tag()))),
    }
    Ok(())
}

fn refused(what: &str) -> Refusal {
    Error::unsupported(format!("{what} cannot leave its process")).into()
}

fn put_scalar(flat: &mut Vec<u8>, value: &Value) {
    let mut bytes = [kind::SCALAR; 13];
    bytes[1..5].copy_from_slice(&dtype_bytes(value.dtype().unwrap_or(DType::ANY)));
    bytes[5..].copy_from_slice(&value.bits().to_le_bytes());
    // At once: each piece asks for room.
    flat.extend_from_slice(&bytes);
}

fn put_bytes(flat: &mut Vec<u8>, parts: &mut Vec<Buffer>, kind: u8, value: &Value) -> Result<()> {
    flat.push(kind);
    put_buffer(flat, parts, value.as_bytes().unwrap_or(&Buffer::EMPTY))
}

fn put_tensor(flat: &mut Vec<u8>, parts: &mut Vec<Buffer>, tensor: &Tensor) -> Result<()> {
    let shape = tensor.shape();
    let mut stride = 1_i64;
    for (&len, &found) in shape.iter().zip(tensor.strides()).rev() {
        if found != stride {
            return Err(Error::unsupported(
                "a tensor that is not in row-major order cannot leave its process",
            ));
        }
        stride = stride.wrapping_mul(len);
    }
    flat.push(kind::TENSOR);
    flat.extend_from_slice(&dtype_bytes(tensor.dtype()));
    flat.push(shape.len() as u8); // At most MAX_DIMS.
    shape.iter().for_each(|axis| flat.extend_from_slice(&axis.to_le_bytes()));
    put_buffer(flat, parts, tensor.data())
}

fn dtype_bytes(dtype: DType) -> [u8; 4] {
    let [low, high] = dtype.lanes.to_le_bytes();
    [dtype.code, dtype.bits, low, high]
}

/// Bytes that may be large.
fn put_buffer(flat: &mut Vec<u8>, parts: &mut Vec<Buffer>, buffer: &Buffer) -> Result<()> {
    if buffer.len() < LARGE {
        return put_short(flat, buffer);
    }
    flat.extend_from_slice(&PART.to_le_bytes());
    put_len(flat, parts.len())?;
    parts.push(buffer.clone());
    Ok(())
}

/// Bytes that lie in the flat ones, however many.
fn put_short(flat: &mut Vec<u8>, bytes: &[u8]) -> Result<()> {
    put_len(flat, bytes.len())?;
    flat.extend_from_slice(bytes);
    Ok(())
}

fn put_len(flat: &mut Vec<u8>, len: usize) -> Result<()> {
    let len = u32::try_from(len).ok().filter(|len| *len != PART);
    let len = len.ok_or_else(|| Error::limit("a message holds at most 2^32 - 2 of anything"))?;
    flat.extend_from_slice(&len.to_le_bytes());
    Ok(())
}
