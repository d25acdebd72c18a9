//! Sequences as they come, and the memory of a row that they are written into.

use std::ops::Range;

use forebay_core::{BufferMut, Context, DType, Error, Result, Tensor, TensorExt, Value, View, abi::tag};

use super::plan::Column;
use crate::plumbing::stack::{Place, write_scalar};

/// One value that is packed.
#[derive(Clone, Copy)]
pub(super) enum Sequence<'a> {
    Tensor(&'a Tensor),
    List(&'a [Value]),
}

/// What one item of a sequence is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Kind {
    dtype: DType,
    /// Its axes, which are those of the sequence without the first.
    axes: Vec<i64>,
}

impl<'a> Sequence<'a> {
    /// The sequence in a value.
    ///
    /// # Errors
    /// `Invalid` for a value that is none, or a list of several types.
    pub(super) fn of(value: &'a Value) -> Result<Self> {
        let found = match value.view() {
            View::Tensor(tensor) if !tensor.shape().is_empty() => return Ok(Self::Tensor(tensor)),
            View::List(items) => return Self::list(items),
            View::Tensor(_) => "a tensor without axes",
            View::Null => "null",
            View::Str(_) => "text",
            View::Bytes(_) => "bytes",
            View::Struct(_) => "a struct",
            _ if value.tag() == tag::SCALAR => "a single number",
            _ => "a value without items",
        };
        let expected = "expected a tensor with axes or a list of numbers";
        Err(Error::invalid(format!("cannot pack: found {found}, {expected}")))
    }

    /// The sequence in a value that [`of`](Sequence::of) was seen to give one of.
    pub(super) fn seen(value: &'a Value) -> Self {
        match value.view() {
            View::Tensor(tensor) => Self::Tensor(tensor),
            View::List(items) => Self::List(items),
            _ => Self::List(&[]),
        }
    }

    fn list(items: &'a [Value]) -> Result<Self> {
        let dtype = |item: &Value| item.dtype().filter(|_| item.tag() == tag::SCALAR);
        let name = |item: &Value| dtype(item).map_or("no number".to_owned(), |dtype| dtype.to_string());
        let odd = items.iter().find(|item| dtype(item).is_none() || dtype(item) != dtype(&items[0]));
        match odd {
            None => Ok(Self::List(items)),
            Some(odd) => Err(Error::invalid(format!(
                "cannot pack: found {} in a list of {}, expected numbers of one type",
                name(odd),
                name(&items[0])
            ))),
        }
    }

    pub(super) fn len(self) -> usize {
        match self {
            Self::Tensor(tensor) => tensor.shape().first().map_or(0, |&len| len as usize),
            Self::List(items) => items.len(),
        }
    }

    /// The type and the axes of an item; none for an empty list, which goes with every type.
    fn item(self) -> Option<(DType, &'a [i64])> {
        match self {
            Self::Tensor(tensor) => Some((tensor.dtype(), tensor.shape().get(1..).unwrap_or_default())),
            Self::List(items) => items.first().and_then(Value::dtype).map(|dtype| (dtype, &[][..])),
        }
    }

    pub(super) fn kind(self) -> Option<Kind> {
        self.item().map(|(dtype, axes)| Kind { dtype, axes: axes.to_vec() })
    }

    /// Refuses a sequence whose items are of another kind; an empty list has some where it is to be written into.
    pub(super) fn check(self, kind: &Kind, written: bool) -> Result<()> {
        match self.item().or(written.then_some((DType::I64, &[]))) {
            Some((dtype, axes)) if !kind.is(dtype, axes) => {
                let found = Kind { dtype, axes: axes.to_vec() }.describe();
                Err(Error::invalid(format!("cannot pack: found {found} after {}", kind.describe())))
            }
            _ => Ok(()),
        }
    }
}

impl Kind {
    /// What the items of an empty list are, where nothing tells and something has to be written.
    pub(super) const INT64: Self = Self { dtype: DType::I64, axes: Vec::new() };

    fn is(&self, dtype: DType, axes: &[i64]) -> bool {
        // glibc compares no bytes by a masked load of the empty vectors' address, and where nothing is mapped that takes 60 ns.
        let same = self.axes.is_empty() && axes.is_empty() || self.axes == axes;
        self.dtype == dtype && same
    }

    fn describe(&self) -> String {
        if self.axes.is_empty() {
            self.dtype.to_string()
        } else {
            format!("items of {} {:?}", self.dtype, self.axes)
        }
    }
}

/// The values of one field of a row.
#[derive(Debug)]
pub(super) struct Values {
    pub(super) kind: Kind,
    /// Bytes of an item.
    each: usize,
    bytes: BufferMut,
    pad: u64,
    bos: u64,
    eos: u64,
}

impl Values {
    /// Memory for a row of such items.
    ///
    /// # Errors
    /// `Limit`; `Invalid` where a number of the options is none of this type.
    pub(super) fn new(column: &Column, kind: Kind, cx: &Context) -> Result<Self> {
        let bits = |option: &str, number: f64| {
            bits(number, kind.dtype).ok_or_else(|| {
                Error::invalid(format!("{number} is no {}", kind.dtype)).context("option", option)
            })
        };
        let pad = bits("pad", column.pad)?;
        let bos = bits("bos", column.bos.unwrap_or_default())?;
        let eos = bits("eos", column.eos.unwrap_or_default())?;
        let each =
            kind.axes.iter().try_fold(kind.dtype.size(), |each, &axis| each.checked_mul(axis as usize));
        let place = Place { capacity: column.length, strict: true, cx };
        let bytes = place.alloc(each.unwrap_or(usize::MAX))?;
        Ok(Self { each: each.unwrap_or(0), kind, bytes, pad, bos, eos })
    }

    /// Writes the items of `range` behind the first `used`. The sequence is counted with what is put before and behind it.
    pub(super) fn write(&mut self, used: usize, sequence: Sequence, column: &Column, range: Range<usize>) {
        let (mut at, Range { mut start, mut end }) = (used, range);
        let before = usize::from(column.bos.is_some());
        if start < before && start < end {
            self.fill(at..at + 1, self.bos);
            (at, start) = (at + 1, start + 1);
        }
        if end > before + sequence.len() && start < end {
            end -= 1;
            self.fill(at + end - start..at + end - start + 1, self.eos);
        }
        let (start, end) = (start.saturating_sub(before), end.saturating_sub(before));
        let place = &mut self.bytes[at * self.each..][..(end - start) * self.each];
        match sequence {
            Sequence::Tensor(tensor) => {
                place.copy_from_slice(&tensor.data()[start * self.each..end * self.each])
            }
            Sequence::List(items) => {
                for (row, item) in items[start..end].iter().enumerate() {
                    write_scalar(place, row, self.each, item.bits());
                }
            }
        }
    }

    /// Fills items with one number.
    fn fill(&mut self, items: Range<usize>, bits: u64) {
        let place = &mut self.bytes[items.start * self.each..items.end * self.each];
        if bits == 0 {
            return place.fill(0);
        }
        let width = self.kind.dtype.size().max(1);
        for row in 0..place.len() / width {
            write_scalar(place, row, width, bits);
        }
    }

    /// The tensor, with what is behind the first `used` items filled.
    pub(super) fn finish(mut self, used: usize, length: usize) -> Result<Value> {
        self.fill(used..length, self.pad);
        let axes = self.kind.axes.iter().map(|&axis| axis as usize);
        let shape: Vec<_> = [length].into_iter().chain(axes).collect();
        Ok(Tensor::new(self.kind.dtype, &shape, self.bytes.freeze())?.into())
    }
}

/// A number as a type has it; none where the type does not have it.
#[expect(
    clippy::cast_possible_truncation,
    reason = "whole numbers are checked against the type's range, floats are rounded"
)]
fn bits(number: f64, dtype: DType) -> Option<u64> {
    match dtype {
        DType::F64 => Some(number.to_bits()),
        DType::F32 => Some((number as f32).to_bits().into()),
        DType::BOOL => [0.0, 1.0].contains(&number).then_some(number as u64),
        _ if number == 0.0 => Some(0),
        _ => {
            let unused = 64 - u32::from(dtype.bits).clamp(1, 64);
            let (least, most) = match dtype.code {
                code if code == DType::I8.code => (i64::MIN >> unused, u64::MAX >> unused >> 1),
                code if code == DType::U8.code => (0, u64::MAX >> unused),
                _ => return None,
            };
            let whole = number as i128;
            let fits = number.fract() == 0.0 && (i128::from(least)..=i128::from(most)).contains(&whole);
            fits.then_some(whole as u64)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_their_type_or_none() {
        let cases = [
            (-100.0, DType::I64, Some((-100_i64).cast_unsigned())),
            (-1.0, DType::I8, Some(u64::MAX)),
            (-128.0, DType::I8, Some((-128_i64).cast_unsigned())),
            (128.0, DType::I8, None),
            (255.0, DType::U8, Some(255)),
            (-1.0, DType::U32, None),
            (0.5, DType::I32, None),
            (0.5, DType::F32, Some(0.5_f32.to_bits().into())),
            (1.0, DType::BOOL, Some(1)),
            (2.0, DType::BOOL, None),
            (0.0, DType::F16, Some(0)),
            (1.0, DType::BF16, None),
            (f64::NAN, DType::I64, None),
            (18_446_744_073_709_549_568.0, DType::U64, Some(18_446_744_073_709_549_568)),
            (18_446_744_073_709_551_616.0, DType::U64, None),
        ];
        for (number, dtype, expected) in cases {
            assert_eq!(bits(number, dtype), expected, "{number} as {dtype}");
        }
    }
}
