//! `Cells`: values of one field that may differ in shape.

use forebay_core::{
    Context, DType, Error, Result, Tensor, Value, View,
    abi::{MAX_DIMS, tag},
};

use crate::{
    collate::dense,
    plumbing::stack::{Column, Place, describe},
};

/// The lengths of a value's axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dims {
    lengths: [usize; MAX_DIMS],
    rank: usize,
}

impl Dims {
    /// `rank` axes without length.
    pub(crate) fn none(rank: usize) -> Self {
        Self { lengths: [0; MAX_DIMS], rank: rank.min(MAX_DIMS) }
    }

    /// The greater length of each axis; all of one if the other has fewer axes.
    pub(crate) fn max(&self, other: &Self) -> Self {
        let mut greater = *other;
        greater.iter_mut().zip(&**self).for_each(|(length, other)| *length = (*length).max(*other));
        greater
    }

    fn of_tensor(tensor: &Tensor) -> Self {
        let mut dims = Self::none(tensor.shape().len());
        for (length, &axis) in dims.lengths.iter_mut().zip(tensor.shape()) {
            *length = axis as usize;
        }
        dims
    }
}

impl std::ops::Deref for Dims {
    type Target = [usize];

    fn deref(&self) -> &[usize] {
        &self.lengths[..self.rank]
    }
}

impl std::ops::DerefMut for Dims {
    fn deref_mut(&mut self) -> &mut [usize] {
        &mut self.lengths[..self.rank]
    }
}

/// Values of one field on their way into one.
#[derive(Debug)]
pub(crate) enum Cells {
    /// Those that are joined as `batch` joins them.
    Plain(Column),
    /// Those that may differ in shape.
    Parts(Parts),
}

/// Tensors with axes, or lists of numbers.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    /// Each is a tensor or a list of scalars of one type, or an empty list, which goes with any.
    values: Vec<Value>,
    /// The type of all, once one is no empty list, and the greatest length of each axis.
    kind: Option<(DType, Dims)>,
    /// Other kinds of values are an error.
    only: bool,
}

impl Cells {
    /// For values that may differ in shape; with `only`, others are an error.
    pub(crate) fn parts(only: bool) -> Self {
        Self::Parts(Parts { only, ..Parts::default() })
    }

    /// Adds the value number `row`, if `check` has nothing against its type and shape.
    #[inline]
    pub(crate) fn push(
        &mut self,
        value: &mut Value,
        row: usize,
        place: &Place,
        check: impl FnOnce(&Parts, DType, &Dims) -> Result<()>,
    ) -> Result<()> {
        match self {
            Self::Plain(column) => column.push(value, row, place),
            Self::Parts(parts) => {
                let kept = parts.push(value, place.cx, check)?;
                if !kept {
                    let mut column = match std::mem::take(&mut parts.values) {
                        values if values.is_empty() => Column::default(),
                        values => Column::list(values),
                    };
                    let pushed = column.push(value, row, place);
                    *self = Self::Plain(column);
                    pushed?;
                }
                Ok(())
            }
        }
    }

    /// Forgets all values from number `rows` on.
    pub(crate) fn truncate(&mut self, rows: usize) {
        match self {
            Self::Plain(column) => column.truncate(rows),
            Self::Parts(parts) if parts.values.len() > rows => {
                parts.values.truncate(rows);
                let kinds = parts.values.iter().filter_map(|value| Some((dtype(value)?, dims(value))));
                parts.kind = kinds.reduce(|(dtype, longest), (_, dims)| (dtype, longest.max(&dims)));
            }
            Self::Parts(_) => {}
        }
    }
}

impl Parts {
    /// The values.
    pub(crate) fn values(&self) -> &[Value] {
        &self.values
    }

    /// Their type; that of integers where there are only empty lists, which have none.
    pub(crate) fn dtype(&self) -> DType {
        self.kind.map_or(DType::I64, |(dtype, _)| dtype)
    }

    /// Whether there is one that says of which type and how many axes all are.
    pub(crate) fn is_known(&self) -> bool {
        self.kind.is_some()
    }

    /// The greatest length of each axis.
    pub(crate) fn longest(&self) -> Dims {
        self.kind.map_or(Dims::none(1), |(_, longest)| longest)
    }

    /// The lengths of a value's axes.
    pub(crate) fn dims(&self, value: &Value) -> Dims {
        match (value.view(), self.kind) {
            (View::List([]), Some((_, longest))) => Dims::none(longest.len()),
            _ => dims(value),
        }
    }

    /// Whether `value` is in now; otherwise it is of another kind, and all must become a list.
    fn push(
        &mut self,
        value: &mut Value,
        cx: &Context,
        check: impl FnOnce(&Self, DType, &Dims) -> Result<()>,
    ) -> Result<bool> {
        if !measurable(value, cx)? {
            let found = describe(value);
            return match (found, self.values.first(), self.only) {
                (found, _, true) => {
                    let found = found.unwrap_or_else(|| "another value".to_owned());
                    Err(Error::invalid(format!(
                        "found {found}, expected a tensor with axes or a list of numbers"
                    )))
                }
                (Some(found), Some(first), _) if self.kind.is_some() => Err(unlike(&found, first)),
                _ => Ok(false),
            };
        }
        if let Some(dtype) = dtype(value) {
            let dims = dims(value);
            if let Some((known, longest)) = &self.kind
                && (*known, longest.len()) != (dtype, dims.len())
            {
                let first = self.values.iter().find(|value| self::dtype(value).is_some());
                return Err(unlike(&shown(dtype, &dims), first.unwrap_or(value)));
            }
            check(self, dtype, &dims)?;
            self.kind = Some((dtype, self.kind.map_or(dims, |(_, longest)| longest.max(&dims))));
        }
        self.values.push(std::mem::take(value));
        Ok(true)
    }
}

/// A type and a shape, for errors.
pub(crate) fn shown(dtype: DType, dims: &[usize]) -> String {
    format!("{dtype} {dims:?}")
}

fn unlike(found: &str, first: &Value) -> Error {
    let after = dtype(first).map_or_else(|| "a list".to_owned(), |dtype| shown(dtype, &dims(first)));
    Error::invalid(format!("cannot stack: found {found} after {after}"))
}

/// Whether this is a tensor with axes or a list of numbers, which it becomes if it is a list of lists of numbers.
#[inline]
fn measurable(value: &mut Value, cx: &Context) -> Result<bool> {
    let items = match value.view() {
        View::Tensor(tensor) => return Ok(!tensor.shape().is_empty()),
        View::List(items) => items,
        _ => return Ok(false),
    };
    let Some(first) = items.first() else { return Ok(true) };
    let scalars = first.tag() == tag::SCALAR;
    if scalars && items.iter().all(|item| item.tag() == tag::SCALAR && item.dtype() == first.dtype()) {
        return Ok(true);
    }
    if !scalars && !matches!(first.tag(), tag::TENSOR | tag::LIST) {
        return Ok(false);
    }
    let stacked = dense(value, cx)?;
    let is = stacked.tag() == tag::TENSOR;
    if is {
        *value = stacked;
    }
    Ok(is)
}

/// The type of the numbers in a value that is [`measurable`]; none of an empty list.
fn dtype(value: &Value) -> Option<DType> {
    match value.view() {
        View::Tensor(tensor) => Some(tensor.dtype()),
        View::List(items) => items.first()?.dtype(),
        _ => None,
    }
}

/// The lengths of the axes of a value that is [`measurable`].
fn dims(value: &Value) -> Dims {
    match value.view() {
        View::Tensor(tensor) => Dims::of_tensor(tensor),
        View::List(items) => {
            let mut dims = Dims::none(1);
            dims[0] = items.len();
            dims
        }
        _ => Dims::none(0),
    }
}
