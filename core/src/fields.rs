//! Fields of a sample by what they hold, with errors that name the field.

use std::{borrow::Cow, ops::Deref};

use forebay_abi::{Element, Sample, Struct, Tensor, Value, View};

use crate::{Error, Result, nearest};

/// Reads the fields of a [`Sample`] or a batch, for programs that know their types.
///
/// An error names the field, what was found, what was expected, and the sample. If there is no such field, it
/// suggests the nearest name.
///
/// ```
/// use forebay_core::{Key, Sample, SampleExt as _, Tensor, Value};
///
/// let mut batch = Sample::new(0, Key::default());
/// batch.set("label", Tensor::from(vec![3_i64, 1]));
/// batch.set("caption", Value::list(vec!["a heron".into(), "a stork".into()]));
///
/// assert_eq!(&*batch.tensor::<i64>("label")?, [3, 1]);
/// assert_eq!(batch.texts("caption")?, ["a heron", "a stork"]);
///
/// let error = batch.tensor::<i64>("lable").unwrap_err();
/// assert_eq!(error.message(), "no field called `lable`; did you mean `label`? there are: `label`, `caption`");
/// let error = batch.tensor::<f32>("label").unwrap_err();
/// assert_eq!(error.message(), "field `label` is int64 [2], expected a tensor of float32");
/// # Ok::<(), forebay_core::Error>(())
/// ```
pub trait SampleExt {
    /// The texts of a batch, one for each sample in it: the field is a list of texts.
    ///
    /// # Errors
    /// `Invalid` if there is no such field, if it is no list, or if it holds anything but texts.
    fn texts(&self, name: &str) -> Result<Vec<&str>>;

    /// The tensor in a field, as numbers of type `T`.
    ///
    /// # Errors
    /// `Invalid` if there is no such field, if it is no tensor, if its elements have another type, or if its bytes
    /// are not aligned for `T`.
    fn tensor<T: Element>(&self, name: &str) -> Result<TensorView<'_, T>>;

    /// Rows of different lengths, as `ragged_batch` puts them end to end: the field is a struct of the tensors
    /// `values` and `offsets`. It can also be a tensor with two axes or more, because `ragged_batch` gives one if
    /// all rows have the same length.
    ///
    /// # Errors
    /// `Invalid` if there is no such field, if it is neither, if its elements have another type, or if its offsets
    /// do not go from 0 to the end of the values.
    fn ragged<T: Element>(&self, name: &str) -> Result<Ragged<'_, T>>;
}

/// A tensor whose elements are numbers of type `T`: a slice of them, with a shape.
#[derive(Debug, Clone, Copy)]
pub struct TensorView<'a, T> {
    tensor: &'a Tensor,
    values: &'a [T],
}

impl<'a, T> TensorView<'a, T> {
    /// All elements, in row-major order.
    #[must_use]
    pub fn as_slice(&self) -> &'a [T] {
        self.values
    }

    /// The length of each axis.
    #[must_use]
    pub fn shape(&self) -> &'a [i64] {
        self.tensor.shape()
    }

    /// The length of each axis, if there are `N` axes.
    #[must_use]
    pub fn dims<const N: usize>(&self) -> Option<[usize; N]> {
        self.tensor.dims()
    }
}

impl<T> Deref for TensorView<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.values
    }
}

/// Rows of numbers that differ in length, end to end.
///
/// ```
/// use forebay_core::{Key, Sample, SampleExt as _, Tensor, Value};
///
/// let tokens = Value::structure(vec![
///     ("values".into(), Tensor::from(vec![7_i64, 8, 9]).into()),
///     ("offsets".into(), Tensor::from(vec![0_i64, 2, 2, 3]).into()),
/// ]);
/// let mut batch = Sample::new(0, Key::default());
/// batch.set("tokens", tokens);
///
/// let tokens = batch.ragged::<i64>("tokens")?;
/// assert_eq!(tokens.len(), 3);
/// assert_eq!(tokens.iter().collect::<Vec<_>>(), [&[7, 8][..], &[], &[9]]);
/// # Ok::<(), forebay_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Ragged<'a, T> {
    values: &'a [T],
    /// Where rows begin, and the last one's end, counted in `step` elements.
    offsets: Cow<'a, [i64]>,
    step: usize,
}

impl<'a, T> Ragged<'a, T> {
    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The row with this number, from 0. If the rows' items are tensors themselves, their elements follow one another.
    #[must_use]
    pub fn row(&self, at: usize) -> Option<&'a [T]> {
        let [start, end] = [at, at.checked_add(1)?].map(|at| self.offsets.get(at).map(|&at| at as usize));
        self.values.get(start? * self.step..end? * self.step)
    }

    /// The rows, in order.
    pub fn iter(&self) -> impl Iterator<Item = &'a [T]> {
        (0..self.len()).filter_map(|at| self.row(at))
    }

    /// All elements of all rows, end to end.
    #[must_use]
    pub fn values(&self) -> &'a [T] {
        self.values
    }
}

impl SampleExt for Sample {
    fn texts(&self, name: &str) -> Result<Vec<&str>> {
        let value = field(self, name)?;
        let wrong = |found| wrong(self, name, found, "a list of texts");
        let items = value.as_list().ok_or_else(|| wrong(shown(value)))?;
        let items = items.iter().enumerate();
        let text = |(at, item)| {
            let is_other = |item| wrong(format!("a list whose item {at} is {}", shown(item)));
            Value::as_str(item).ok_or_else(|| is_other(item))
        };
        items.map(text).collect()
    }

    fn tensor<T: Element>(&self, name: &str) -> Result<TensorView<'_, T>> {
        let value = field(self, name)?;
        let expected = || format!("a tensor of {}", T::DTYPE);
        let tensor = value.as_tensor().ok_or_else(|| wrong(self, name, shown(value), &expected()))?;
        let values = elements(tensor).map_err(|found| wrong(self, name, found, &expected()))?;
        Ok(TensorView { tensor, values })
    }

    fn ragged<T: Element>(&self, name: &str) -> Result<Ragged<'_, T>> {
        let value = field(self, name)?;
        let rows = match value.view() {
            View::Struct(fields) => of_parts(fields),
            View::Tensor(tensor) => of_equal(tensor),
            _ => Err(shown(value)),
        };
        let expected =
            || format!("rows of {}, as `values` and `offsets` or in a tensor of two axes or more", T::DTYPE);
        rows.map_err(|found| wrong(self, name, found, &expected()))
    }
}

fn field<'a>(sample: &'a Sample, name: &str) -> Result<&'a Value> {
    sample.get(name).ok_or_else(|| {
        let names: Vec<&str> = sample.schema().names().iter().map(|name| name.as_str()).collect();
        let hint = nearest::did_you_mean(name, names.iter().copied());
        let there = match (names.is_empty(), hint.is_empty()) {
            (true, _) => "; there are none".to_owned(),
            (_, true) => format!("; there are: {}", nearest::quoted(&names, ", ")),
            (_, false) => format!(" there are: {}", nearest::quoted(&names, ", ")),
        };
        let message = format!("no field called `{name}`{hint}{there}");
        Error::invalid(message).context("field", name).of_sample(sample.key())
    })
}

#[cold]
fn wrong(sample: &Sample, name: &str, found: String, expected: &str) -> Error {
    let message = format!("field `{name}` is {found}, expected {expected}");
    Error::invalid(message).context("field", name).of_sample(sample.key())
}

/// What a value is, in a few words.
fn shown(value: &Value) -> String {
    match value.view() {
        View::Null => "null".to_owned(),
        View::Str(_) => "text".to_owned(),
        View::Bytes(bytes) => format!("{} bytes", bytes.len()),
        View::Tensor(tensor) => format!("{tensor:?}"),
        View::List(values) => format!("a list of {} values", values.len()),
        View::Struct(fields) => {
            let names: Vec<_> = fields.schema().names().iter().map(|name| name.as_str()).collect();
            format!("a struct of {}", nearest::quoted(&names, ", "))
        }
        View::Arrow(_) => "Arrow columns".to_owned(),
        View::Opaque(name) => format!("an object of type {name}"),
        _ => value
            .dtype()
            .map_or_else(|| "a value of a newer release".to_owned(), |dtype| format!("one {dtype}")),
    }
}

/// The elements, or what the tensor is instead.
fn elements<T: Element>(tensor: &Tensor) -> Result<&[T], String> {
    tensor.as_slice().ok_or_else(|| match tensor.dtype() == T::DTYPE {
        true => format!("{tensor:?} whose bytes do not start at a multiple of {}", size_of::<T>()),
        false => format!("{tensor:?}"),
    })
}

/// How many elements stand behind each step along an axis that `before` others stand before.
fn behind(tensor: &Tensor, before: usize) -> usize {
    tensor.shape().iter().skip(before).product::<i64>() as usize
}

/// Rows as `ragged_batch` gives them if their lengths differ.
fn of_parts<T: Element>(fields: &Struct) -> Result<Ragged<'_, T>, String> {
    fn part<'a, T: Element>(fields: &'a Struct, name: &str) -> Result<(&'a Tensor, &'a [T]), String> {
        let tensor = fields.get(name).and_then(Value::as_tensor);
        let tensor = tensor.ok_or_else(|| format!("a struct without a tensor `{name}`"))?;
        let elements = elements(tensor).map_err(|found| format!("a struct whose `{name}` is {found}"))?;
        Ok((tensor, elements))
    }
    let ((tensor, values), (_, offsets)) = (part::<T>(fields, "values")?, part::<i64>(fields, "offsets")?);
    let (first, last, items) = (offsets.first(), offsets.last(), tensor.shape().first());
    if first != Some(&0) || last != items || !offsets.is_sorted() {
        return Err(format!(
            "a struct whose `offsets` do not go from 0 to the end of its `values`, {tensor:?}"
        ));
    }
    Ok(Ragged { values, offsets: offsets.into(), step: behind(tensor, 1) })
}

/// Rows as `ragged_batch` gives them if all are of one length.
fn of_equal<T: Element>(tensor: &Tensor) -> Result<Ragged<'_, T>, String> {
    let &[rows, each, ..] = tensor.shape() else { return Err(format!("{tensor:?}")) };
    let offsets: Vec<i64> = (0..=rows).map(|row| row * each).collect();
    Ok(Ragged { values: elements(tensor)?, offsets: offsets.into(), step: behind(tensor, 2) })
}

#[cfg(test)]
mod tests {
    use forebay_abi::{Buffer, DType, Key};

    use super::*;

    fn with(value: impl Into<Value>) -> Sample {
        let key = Key { origin: "a.tar".into(), name: "7".into(), ..Key::default() };
        let mut sample = Sample::new(0, key);
        sample.set("x", value);
        sample
    }

    fn parts(values: Tensor, offsets: &[i64]) -> Sample {
        let offsets = Tensor::from(offsets.to_vec());
        with(Value::structure(vec![("values".into(), values.into()), ("offsets".into(), offsets.into())]))
    }

    #[test]
    fn errors_say_field_sample_what_was_found_and_what_was_expected() {
        let error = with("text").texts("x").unwrap_err();
        let said = "field `x` is text, expected a list of texts (invalid; field x, sample a.tar";
        assert!(error.to_string().starts_with(said), "{error}");
        assert_eq!((error.get("file"), error.get("member")), (Some("a.tar"), Some("7")));
        let found = |value: Value| with(value).tensor::<i64>("x").unwrap_err().message().to_owned();
        assert_eq!(found(3_i64.into()), "field `x` is one int64, expected a tensor of int64");
        assert_eq!(found(Value::NULL), "field `x` is null, expected a tensor of int64");
        let error = with(Value::list(vec!["a".into(), 1.into()])).texts("x").unwrap_err();
        assert_eq!(
            error.message(),
            "field `x` is a list whose item 1 is one int32, expected a list of texts"
        );
        assert_eq!(
            with(1).texts("caption").unwrap_err().message(),
            "no field called `caption`; there are: `x`"
        );
        let none = Sample::default().texts("x").unwrap_err();
        assert_eq!(none.message(), "no field called `x`; there are none");
    }

    #[test]
    fn a_tensor_that_is_not_aligned_is_told_so() {
        let memory = Buffer::from_owner(Tensor::from(vec![0_i64; 2]).data().clone());
        let tensor = Tensor::try_new(DType::I64, &[1], memory.slice(1..9)).unwrap();
        let error = with(tensor).tensor::<i64>("x").unwrap_err();
        assert!(error.message().contains("int64 [1] whose bytes do not start at a multiple of 8"), "{error}");
    }

    #[test]
    fn rows_of_tensors_are_cut_where_offsets_say() {
        let values = Tensor::try_new(DType::U8, &[3, 2], vec![1, 2, 3, 4, 5, 6].into()).unwrap();
        let sample = parts(values.clone(), &[0, 0, 1, 3]);
        let rows = sample.ragged::<u8>("x").unwrap();
        assert_eq!(rows.iter().collect::<Vec<_>>(), [&[][..], &[1, 2], &[3, 4, 5, 6]]);
        assert_eq!((rows.row(3), rows.row(usize::MAX), rows.is_empty()), (None, None, false));
        for offsets in [&[][..], &[0, 2], &[1, 3], &[0, 2, 1, 3], &[0, 4]] {
            let error = parts(values.clone(), offsets).ragged::<u8>("x").unwrap_err();
            assert!(
                error.message().contains("`offsets` do not go from 0 to the end"),
                "{offsets:?}: {error}"
            );
        }
        let error = parts(values, &[0, 3]).ragged::<f32>("x").unwrap_err();
        assert!(error.message().contains("is a struct whose `values` is uint8 [3, 2]"), "{error}");
    }

    #[test]
    fn rows_of_one_length_are_rows_too() {
        let tensor =
            |shape: &[usize]| Tensor::try_new(DType::U8, shape, (0..12).collect::<Vec<_>>().into()).unwrap();
        for shape in [&[2, 6][..], &[2, 3, 2], &[2, 1, 6]] {
            let sample = with(tensor(shape));
            let rows = sample.ragged::<u8>("x").unwrap();
            assert_eq!(rows.iter().collect::<Vec<_>>(), [&[0, 1, 2, 3, 4, 5][..], &[6, 7, 8, 9, 10, 11]]);
        }
        let error = with(tensor(&[12])).ragged::<u8>("x").unwrap_err();
        assert!(error.message().starts_with("field `x` is uint8 [12], expected rows of uint8"), "{error}");
    }
}
