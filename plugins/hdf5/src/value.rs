//! Elements as values: numbers as tensors, text as text, records as structs, lists as lists.

use std::cell::Cell;

use forebay_core::{Buffer, DType, Error, Result, Str, Tensor, TensorExt as _, Value};

use crate::{
    bytes::size,
    dataset::Alloc,
    datatype::{Class, Datatype},
    structure::global_heap::GlobalHeap,
};

/// The most axes a tensor has.
const TENSOR_AXES: usize = 8;

/// Makes values of elements; those of one reading may take so much memory and no more.
pub(crate) struct Values<'a> {
    heap: &'a GlobalHeap,
    alloc: Alloc<'a>,
    /// How many more bytes the values may take. The same elements of a heap can be named over and over.
    left: Cell<u64>,
}

impl<'a> Values<'a> {
    pub(crate) fn new(heap: &'a GlobalHeap, alloc: Alloc<'a>) -> Self {
        Self { heap, alloc, left: Cell::new(heap.file().limit()) }
    }

    /// The value of a block of elements of this shape, whose bytes as they are in the file are `bytes`.
    pub(crate) fn make(&self, datatype: &Datatype, dims: &[usize], bytes: &Buffer) -> Result<Value> {
        let count = dims.iter().try_fold(1_usize, |count, &dim| count.checked_mul(dim));
        let len = count.and_then(|count| count.checked_mul(datatype.size));
        let Some(bytes) = len.and_then(|len| bytes.get(..len)) else {
            let found = bytes.len();
            return Err(Error::corrupt(format!("{found} bytes, expected {dims:?} of {}", datatype.size)));
        };
        self.spend(32 + bytes.len() as u64)?;
        if let Some((dtype, inner)) = datatype.numbers() {
            let shape = [dims, &inner].concat();
            if shape.len() <= TENSOR_AXES {
                return self.numbers(datatype, dtype, &shape, &bytes);
            }
        }
        let Some((&first, rest)) = dims.split_first() else { return self.one(datatype, &bytes) };
        let step = bytes.len().checked_div(first).unwrap_or(0);
        let values = (0..first).map(|at| self.make(datatype, rest, &bytes.slice(at * step..(at + 1) * step)));
        Ok(Value::list(values.collect::<Result<_>>()?))
    }

    fn spend(&self, bytes: u64) -> Result<()> {
        let Some(left) = self.left.get().checked_sub(bytes) else {
            let limit = self.heap.file().limit();
            return Err(Error::limit(format!("the values take more than {limit} bytes")));
        };
        self.left.set(left);
        Ok(())
    }

    fn numbers(&self, datatype: &Datatype, dtype: DType, shape: &[usize], bytes: &Buffer) -> Result<Value> {
        if shape.is_empty() {
            return Ok(scalar(dtype, &datatype.native(bytes)));
        }
        let native = self.native(datatype, bytes)?;
        Ok(Tensor::new(dtype, shape, native)?.into())
    }

    /// Elements of numbers in this machine's form: the very bytes, where they are so already.
    pub(crate) fn native(&self, datatype: &Datatype, bytes: &Buffer) -> Result<Buffer> {
        let dtype = datatype.numbers().map_or(1, |(dtype, _)| dtype.size().max(1));
        let aligned = bytes.as_ptr().addr().is_multiple_of(dtype);
        if datatype.is_native() && aligned {
            return Ok(bytes.clone());
        }
        let len = bytes.len() / datatype.size * datatype.native_size();
        let limit = self.heap.file().limit();
        if len as u64 > limit {
            return Err(Error::limit(format!("values of {len} bytes, at most {limit} are taken")));
        }
        let mut out = (self.alloc)(len)?;
        datatype.write_native(bytes, &mut out);
        Ok(out.freeze())
    }

    fn one(&self, datatype: &Datatype, bytes: &Buffer) -> Result<Value> {
        match &datatype.class {
            Class::Text { pad, .. } => Ok(text(bytes, *pad)),
            Class::VarText { .. } => match self.heap_object(bytes)? {
                Some((len, found)) => Ok(text(&found.get(..len).unwrap_or(found), 0)),
                None => Ok(Value::from(Str::EMPTY)),
            },
            Class::VarList(base) => match self.heap_object(bytes)? {
                Some((len, found)) => self.make(base, &[len], &found),
                None => self.make(base, &[0], &Buffer::EMPTY),
            },
            Class::Compound(members) => {
                let field = |member: &crate::datatype::Member| {
                    let part = bytes.slice(member.offset..member.offset + member.datatype.size);
                    let value = self.make(&member.datatype, &[], &part);
                    Ok((
                        Str::from(member.name.as_str()),
                        value.map_err(|error| error.context("member", &member.name))?,
                    ))
                };
                Ok(Value::structure(members.iter().map(field).collect::<Result<_>>()?))
            }
            Class::Array { base, dims } => self.make(base, dims, bytes),
            _ => Ok(Value::from(bytes.clone())),
        }
    }

    /// How many elements, and the bytes that hold them; `None` for none.
    fn heap_object(&self, bytes: &[u8]) -> Result<Option<(usize, Buffer)>> {
        let file = self.heap.file();
        let mut cursor = file.cursor(bytes, 0);
        let len = size(cursor.u32()?.into())?;
        let (collection, number) = (cursor.address()?, cursor.u32()?);
        match collection {
            Some(collection) if len > 0 && collection > 0 => {
                Ok(Some((len, self.heap.object(collection, number)?)))
            }
            _ => Ok(None),
        }
    }
}

/// One number from its bytes.
pub(crate) fn scalar(dtype: DType, native: &[u8]) -> Value {
    let bits = crate::bytes::uint(native);
    Value::scalar(dtype, if dtype == DType::BOOL { u64::from(bits != 0) } else { bits })
}

/// Text without its padding, sharing the bytes; bytes that are not UTF-8 stay bytes.
fn text(bytes: &Buffer, pad: u8) -> Value {
    let end = match pad {
        0 => bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len()),
        1 => bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1),
        _ => bytes.iter().rposition(|&byte| byte != b' ').map_or(0, |last| last + 1),
    };
    let bytes = bytes.slice(..end);
    Str::from_utf8(bytes).map_or_else(Value::from, Value::from)
}
