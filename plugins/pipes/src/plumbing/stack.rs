//! Stacking: many values of one field become one value with one more axis.

use forebay_core::{
    Buffer, BufferMut, Context, DType, Error, Result, Schema, Tensor, TensorExt, Value, View,
};

/// The most fields of a struct that are matched by name when their order differs.
const MATCHED: usize = 64;

/// The most values of a list that memory is taken for before they come.
const MOST_AHEAD: usize = 1024;

/// Where values go: how many there will be at most, and whether numbers must fit.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) capacity: usize,
    /// Numbers of different types or shapes are an error; otherwise they become a list.
    pub(crate) strict: bool,
    pub(crate) cx: &'a Context<'a>,
}

/// Values of one field, on their way into one value.
#[derive(Debug, Default)]
pub(crate) enum Column {
    #[default]
    Empty,
    Scalars {
        dtype: DType,
        bytes: BufferMut,
    },
    /// Tensors that lie one after the other in one allocation, so far.
    Joined {
        first: Tensor,
        data: Buffer,
    },
    Tensors {
        first: Tensor,
        bytes: BufferMut,
    },
    Struct {
        schema: Schema,
        columns: Vec<Column>,
    },
    List(Vec<Value>),
}

impl Place<'_> {
    /// Memory for all values of so many bytes each.
    pub(crate) fn alloc(&self, each: usize) -> Result<BufferMut> {
        room(self.cx, self.capacity, each)
    }
}

/// Memory for so many values of `each` bytes, which together are one value.
pub(crate) fn room(cx: &Context, count: usize, each: usize) -> Result<BufferMut> {
    let limit = cx.limits().bytes;
    let len = count.checked_mul(each).filter(|&len| len as u64 <= limit).ok_or_else(|| {
        Error::limit(format!("{count} values of {each} bytes are more than the {limit} allowed"))
    })?;
    cx.alloc(len)
}

/// Whether one value may have so many bytes.
pub(crate) fn check_limit(len: usize, cx: &Context) -> Result<()> {
    let limit = cx.limits().bytes;
    if len as u64 > limit {
        return Err(Error::limit(format!("{len} bytes are more than the {limit} allowed")));
    }
    Ok(())
}

/// Bytes that belong together: shared where they lie side by side in one allocation, copied once where they do not.
pub(crate) fn join_or_copy(parts: &[&Buffer], cx: &Context) -> Result<Buffer> {
    if let Some(joined) = Buffer::join(parts.iter().copied()) {
        return Ok(joined);
    }
    let len: usize = parts.iter().map(|part| part.len()).sum();
    check_limit(len, cx)?;
    let (mut bytes, mut at) = (cx.alloc(len)?, 0);
    for part in parts {
        bytes[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    Ok(bytes.freeze())
}

impl Column {
    /// A column with these values, which stay a list.
    pub(crate) fn list(values: Vec<Value>) -> Self {
        Self::List(values)
    }

    /// Makes place for `capacity` values, where there was some for fewer, of which `rows` are taken.
    pub(crate) fn grow(&mut self, rows: usize, place: &Place) -> Result<()> {
        let (bytes, each) = match self {
            Self::Scalars { dtype, bytes } => (bytes, dtype.size()),
            Self::Tensors { first, bytes } => (bytes, first.data().len()),
            Self::Struct { columns, .. } => {
                return columns.iter_mut().try_for_each(|column| column.grow(rows, place));
            }
            Self::Empty | Self::Joined { .. } | Self::List(_) => return Ok(()),
        };
        let mut larger = place.alloc(each)?;
        larger[..rows * each].copy_from_slice(&bytes[..rows * each]);
        *bytes = larger;
        Ok(())
    }

    /// Adds the value number `row`, moving it out of its place.
    #[inline]
    pub(crate) fn push(&mut self, value: &mut Value, row: usize, place: &Place) -> Result<()> {
        if let Self::Scalars { dtype, bytes } = self
            && let Some(bits) = value.bits_of(*dtype)
        {
            write_scalar(bytes, row, dtype.size(), bits);
            return Ok(());
        }
        self.push_other(value, row, place)
    }

    fn push_other(&mut self, value: &mut Value, row: usize, place: &Place) -> Result<()> {
        match (&mut *self, value.view()) {
            (Self::Empty, _) => *self = Self::start(value, place)?,
            (Self::List(values), _) => values.push(std::mem::take(value)),
            (Self::Joined { first, data }, View::Tensor(tensor)) if first.is_like(tensor) => {
                match Buffer::join([&*data, tensor.data()]) {
                    Some(joined) => *data = joined,
                    None => {
                        let each = tensor.data().len();
                        let mut bytes = place.alloc(each)?;
                        bytes[..data.len()].copy_from_slice(data);
                        bytes[row * each..][..each].copy_from_slice(tensor.data());
                        *self = Self::Tensors { first: first.clone(), bytes };
                    }
                }
            }
            (Self::Tensors { first, bytes }, View::Tensor(tensor)) if first.is_like(tensor) => {
                let each = tensor.data().len();
                bytes[row * each..][..each].copy_from_slice(tensor.data());
            }
            (Self::Struct { schema, columns }, View::Struct(fields)) if matching(schema, fields.schema()) => {
                let nested = Place { strict: false, ..*place };
                for (name, column) in schema.names().iter().zip(columns) {
                    let mut value = fields.get(name).cloned().unwrap_or_default();
                    column.push(&mut value, row, &nested)?;
                }
            }
            _ => self.push_unlike(value, row, place)?,
        }
        Ok(())
    }

    /// Adds a value that does not go with those before it: all become a list, unless they are
    /// numbers and have to fit.
    fn push_unlike(&mut self, value: &mut Value, row: usize, place: &Place) -> Result<()> {
        let found = describe(value);
        let held = match self {
            Self::Scalars { dtype, .. } => Some(dtype.to_string()),
            Self::Joined { first, .. } | Self::Tensors { first, .. } => Some(format!("{first:?}")),
            _ => None,
        };
        if let (true, Some(held), Some(found)) = (place.strict, held, found) {
            return Err(Error::invalid(format!("cannot stack: found {found} after {held}")));
        }
        let mut values = std::mem::take(self).into_values(row)?;
        values.push(std::mem::take(value));
        *self = Self::List(values);
        Ok(())
    }

    /// The pipes that batch this value with those before it, which it does not go with; none where it differs in more than shape.
    pub(crate) fn wants(&self, value: &Value) -> Option<&'static str> {
        let (Self::Joined { first, .. } | Self::Tensors { first, .. }, View::Tensor(tensor)) =
            (self, value.view())
        else {
            return None;
        };
        let (held, found) = (first.shape(), tensor.shape());
        if first.dtype() != tensor.dtype() || held.len() != found.len() || held == found {
            return None;
        }
        Some(match held[1..] == found[1..] {
            true => "`ragged_batch` puts what differs in length end to end, `padded_batch` pads it",
            false => "`padded_batch` pads what differs in shape",
        })
    }

    /// A column with this first value.
    fn start(value: &mut Value, place: &Place) -> Result<Self> {
        Ok(match value.view() {
            View::Tensor(tensor) => Self::Joined { first: tensor.clone(), data: tensor.data().clone() },
            View::Struct(fields) => {
                let nested = Place { strict: false, ..*place };
                let columns = fields.values().iter().map(|value| Self::start(&mut value.clone(), &nested));
                Self::Struct { schema: fields.schema().clone(), columns: columns.collect::<Result<_>>()? }
            }
            View::Bool(_) | View::Int(_) | View::UInt(_) | View::Float(_) => {
                let dtype = value.dtype().unwrap_or(DType::ANY);
                let mut bytes = place.alloc(dtype.size())?;
                write_scalar(&mut bytes, 0, dtype.size(), value.bits());
                Self::Scalars { dtype, bytes }
            }
            _ => {
                let mut values = Vec::with_capacity(place.capacity.min(MOST_AHEAD));
                values.push(std::mem::take(value));
                Self::List(values)
            }
        })
    }

    /// Forgets all values from number `rows` on.
    pub(crate) fn truncate(&mut self, rows: usize) {
        match self {
            Self::List(values) => values.truncate(rows),
            Self::Struct { columns, .. } => columns.iter_mut().for_each(|column| column.truncate(rows)),
            Self::Joined { first, data } => *data = data.slice(..data.len().min(rows * first.data().len())),
            Self::Empty | Self::Scalars { .. } | Self::Tensors { .. } => {}
        }
    }

    /// The one value of the first `rows` values.
    pub(crate) fn finish(self, rows: usize) -> Result<Value> {
        Ok(match self {
            Self::Empty => Value::list(Vec::new()),
            Self::List(values) => Value::list(values),
            Self::Scalars { dtype, mut bytes } => {
                bytes.truncate(rows * dtype.size());
                Tensor::new(dtype, &[rows], bytes.freeze())?.into()
            }
            Self::Joined { first, data } => stacked(&first, rows, data)?.into(),
            Self::Tensors { first, mut bytes } => {
                bytes.truncate(rows * first.data().len());
                stacked(&first, rows, bytes.freeze())?.into()
            }
            Self::Struct { schema, columns } => {
                let fields = schema.names().iter().zip(columns);
                let fields = fields.map(|(name, column)| Ok((name.clone(), column.finish(rows)?)));
                Value::structure(fields.collect::<Result<_>>()?)
            }
        })
    }

    /// The first `rows` values, each by itself again.
    fn into_values(self, rows: usize) -> Result<Vec<Value>> {
        match self {
            Self::Empty => Ok(Vec::new()),
            Self::List(values) => Ok(values),
            Self::Scalars { dtype, bytes } => {
                Ok((0..rows).map(|row| Value::scalar(dtype, read_scalar(&bytes, row, dtype))).collect())
            }
            Self::Joined { first, data } => split(&first, rows, &data),
            Self::Tensors { first, bytes } => split(&first, rows, &bytes.freeze()),
            Self::Struct { schema, columns } => {
                let columns: Result<Vec<_>> =
                    columns.into_iter().map(|column| column.into_values(rows)).collect();
                let mut columns: Vec<_> = columns?.into_iter().map(Vec::into_iter).collect();
                let rows = (0..rows).map(|_| {
                    let values = columns.iter_mut().map(|column| column.next().unwrap_or_default());
                    Value::structure(schema.names().iter().cloned().zip(values).collect())
                });
                Ok(rows.collect())
            }
        }
    }
}

/// Whether both have the same names, in any order.
fn matching(one: &Schema, other: &Schema) -> bool {
    let same_set = || one.names().iter().all(|name| other.position(name).is_some());
    one == other || (one.len() == other.len() && one.len() <= MATCHED && same_set())
}

/// The type and shape of a number or of a block of them.
pub(crate) fn describe(value: &Value) -> Option<String> {
    match value.view() {
        View::Tensor(tensor) => Some(format!("{tensor:?}")),
        _ => value.dtype().map(|dtype| dtype.to_string()),
    }
}

fn axes(tensor: &Tensor) -> impl Iterator<Item = usize> {
    tensor.shape().iter().map(|&axis| axis as usize)
}

fn stacked(first: &Tensor, rows: usize, data: Buffer) -> Result<Tensor> {
    let shape: Vec<_> = [rows].into_iter().chain(axes(first)).collect();
    Tensor::new(first.dtype(), &shape, data)
}

fn split(first: &Tensor, rows: usize, data: &Buffer) -> Result<Vec<Value>> {
    let shape: Vec<_> = axes(first).collect();
    let each = first.data().len();
    let tensors = (0..rows).map(|row| {
        let part = data.slice(row * each..(row + 1) * each);
        Tensor::new(first.dtype(), &shape, part).map(Value::from)
    });
    tensors.collect()
}

/// Writes the lower bytes of `bits` as number `row`, in the machine's order.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the width says which bits count")]
pub(crate) fn write_scalar(bytes: &mut [u8], row: usize, width: usize, bits: u64) {
    let place = &mut bytes[row * width..][..width];
    match width {
        8 => place.copy_from_slice(&bits.to_ne_bytes()),
        4 => place.copy_from_slice(&(bits as u32).to_ne_bytes()),
        2 => place.copy_from_slice(&(bits as u16).to_ne_bytes()),
        _ => place[0] = bits as u8,
    }
}

/// The bits that [`write_scalar`] wrote; those of signed integers are extended, as in every scalar.
pub(crate) fn read_scalar(bytes: &[u8], row: usize, dtype: DType) -> u64 {
    let width = dtype.size();
    dtype.scalar_bits(&bytes[row * width..][..width]).unwrap_or(0)
}
