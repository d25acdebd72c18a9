//! `collate`: lists of numbers become tensors.
//!
//! ```toml
//! [collate]
//! page = "fields"
//! examples = [
//!     '''printf '{"box": [1, 2, 3, 4]}\n' > boxes.jsonl''',
//!     'forebay head "files boxes.jsonl | lines | json_lines | collate box"',
//! ]
//! cases = ["range N | map 'list=[value, 2 * value]' | collate fields=list"]
//! ```

use forebay_core::{
    Context, DType, DataPipe, Error, Map, OneOrMany, PipeInfo, Result, Sample, Value, View, abi::MAX_DIMS,
    options,
};

use crate::{
    plumbing::{
        by_schema::BySchema,
        number::Number,
        stack::{Column, Place, write_scalar},
    },
    select::place,
};

options! {
    /// Options of `collate`.
    pub struct CollateOptions {
        /// The fields to stack; null for all.
        fields: Option<OneOrMany<String>> = null;
    }
}

/// Stacks each field that is a list of numbers or of tensors into one tensor, also within structs.
#[derive(Debug)]
pub struct Collate {
    fields: Option<Vec<String>>,
    /// Where the fields are.
    places: BySchema<Vec<usize>>,
}

impl DataPipe for Collate {
    const INFO: PipeInfo =
        PipeInfo { name: "collate", summary: "Lists of numbers to tensors", ..PipeInfo::DEFAULT };
    type Options = CollateOptions;

    fn new(options: CollateOptions) -> Result<Self> {
        Ok(Self { fields: options.fields.map(|fields| fields.0), places: BySchema::default() })
    }
}

impl Map for Collate {
    fn map(&self, sample: &mut Sample, cx: &Context) -> Result<()> {
        let Some(fields) = &self.fields else {
            return (0..sample.values().len()).try_for_each(|at| stack_field(sample, at, cx));
        };
        let schema = sample.schema();
        let places = self.places.get(schema, || fields.iter().map(|name| place(schema, name)).collect())?;
        places.iter().try_for_each(|&at| stack_field(sample, at, cx))
    }
}

fn stack_field(sample: &mut Sample, at: usize, cx: &Context) -> Result<()> {
    let value = &mut sample.values_mut()[at];
    stack(value, MAX_DIMS, None, cx).map_err(|error| error.context("field", &sample.schema().names()[at]))
}

/// `value` with every list of equal numbers, or of tensors of one type and shape, stacked into a tensor.
///
/// Integers become floats where a list, or the lists within it, has floats of one type too. Lists of structs of equal fields become a
/// struct of lists, and those are stacked in turn. Lists of anything else, and empty ones, stay lists; so does what lies deeper than
/// a tensor has axes.
///
/// # Errors
/// `Invalid` for numbers in one list that differ in type or shape; `Limit`.
pub fn dense(value: &Value, cx: &Context) -> Result<Value> {
    let mut value = value.clone();
    stack(&mut value, MAX_DIMS, None, cx)?;
    Ok(value)
}

/// The type of the floats in a list and those within it, if integers are among them, which then become such.
fn floats_among(items: &[Value]) -> Option<DType> {
    /// The type of a float, and whether there is an integer.
    fn look(items: &[Value], levels: usize, found: &mut (Option<DType>, bool)) {
        for item in items {
            match item.view() {
                View::Float(_) if found.0.is_none() => found.0 = item.dtype(),
                View::Int(_) | View::UInt(_) => found.1 = true,
                View::List(items) if levels > 0 => look(items, levels - 1, found),
                _ => {}
            }
        }
    }
    let mut found = (None, false);
    look(items, MAX_DIMS, &mut found);
    found.0.filter(|_| found.1)
}

/// An integer as a float of this type.
fn as_float(value: &Value, dtype: DType) -> Result<Value> {
    let number = match value.view() {
        View::Int(int) => Number::Int(int.into()),
        View::UInt(int) => Number::Int(int.into()),
        _ => return Ok(value.clone()),
    };
    let float = number.bits(dtype).map(|bits| Value::scalar(dtype, bits));
    let same = float.filter(|float| match float.view() {
        View::Float(float) => number.is(float),
        _ => false,
    });
    same.ok_or_else(|| {
        let message =
            format!("cannot stack: found {number} among floats, and there is no {dtype} of that value");
        Error::invalid(message)
    })
}

/// The type of all of these numbers, if they are and have one.
fn one_type(items: &[Value]) -> Option<DType> {
    let dtype = items.first()?.dtype()?;
    items.iter().all(|item| item.bits_of(dtype).is_some()).then_some(dtype)
}

/// Numbers of one type as a tensor.
fn scalars(items: &[Value], dtype: DType, cx: &Context) -> Result<Value> {
    let width = dtype.size();
    cx.tensor(dtype, &[items.len()], |bytes| {
        for (row, item) in items.iter().enumerate() {
            write_scalar(bytes, row, width, item.bits());
        }
    })
}

/// Does what [`dense`] says in the value's place: what stays as it is is not moved.
///
/// `floats` is, within a list, the type that integers in it become, if they do.
fn stack(value: &mut Value, levels: usize, floats: Option<Option<DType>>, cx: &Context) -> Result<()> {
    *value = match value.view() {
        View::List(items) if levels > 0 && !items.is_empty() => {
            match one_type(items).filter(|&dtype| floats.flatten().is_none_or(|float| float == dtype)) {
                Some(dtype) => scalars(items, dtype, cx)?,
                None => stacked_list(items, levels, floats, cx)?,
            }
        }
        View::Struct(fields) if levels > 0 => {
            let mut values = fields.values().to_vec();
            values.iter_mut().try_for_each(|value| stack(value, levels - 1, None, cx))?;
            Value::with_schema(fields.schema().clone(), values)
        }
        _ => match floats.flatten() {
            Some(dtype) => as_float(value, dtype)?,
            None => return Ok(()),
        },
    };
    Ok(())
}

fn stacked_list(
    items: &[Value],
    levels: usize,
    floats: Option<Option<DType>>,
    cx: &Context,
) -> Result<Value> {
    let floats = floats.unwrap_or_else(|| floats_among(items));
    let place = Place { capacity: items.len(), strict: true, cx };
    let mut column = Column::default();
    for (row, item) in items.iter().enumerate() {
        let mut item = item.clone();
        stack(&mut item, levels - 1, Some(floats), cx)?;
        column.push(&mut item, row, &place)?;
    }
    column.finish(items.len())
}

#[cfg(test)]
mod tests {
    use forebay_core::{ErrorKind, Tensor, TensorExt, random::Rng};

    use super::*;
    use crate::testing::{map, sample, small_host};

    fn ints(values: &[i64]) -> Value {
        Value::list(values.iter().map(|&value| value.into()).collect())
    }

    fn tensor(shape: &[usize], values: &[i64]) -> Value {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        Tensor::new(DType::I64, shape, bytes.into()).unwrap().into()
    }

    fn collate(fields: Option<&[&str]>, name: &str, value: Value) -> Result<Value> {
        let fields = fields.map(|fields| fields.iter().map(|&field| field.to_owned()).collect());
        let pipe = Collate::new(CollateOptions { fields: fields.map(OneOrMany) })?;
        Ok(map(&pipe, &sample(1, &[(name, value)]), &small_host())?.take(name).unwrap_or_default())
    }

    #[test]
    fn lists_of_numbers_become_tensors() {
        assert_eq!(collate(None, "a", ints(&[1, 2, 3])).unwrap(), tensor(&[3], &[1, 2, 3]));
        let boxes = Value::list(vec![ints(&[1, 2]), ints(&[3, 4]), ints(&[5, 6])]);
        assert_eq!(collate(Some(&["a"]), "a", boxes.clone()).unwrap(), tensor(&[3, 2], &[1, 2, 3, 4, 5, 6]));
        let tensors = Value::list(vec![tensor(&[1, 2], &[1, 2]), tensor(&[1, 2], &[3, 4])]);
        assert_eq!(collate(None, "a", tensors).unwrap(), tensor(&[2, 1, 2], &[1, 2, 3, 4]));
        let nested = |value| Value::structure(vec![("box".into(), value), ("name".into(), "x".into())]);
        assert_eq!(collate(None, "a", nested(boxes)).unwrap(), nested(tensor(&[3, 2], &[1, 2, 3, 4, 5, 6])));
    }

    #[test]
    fn integers_among_floats_become_floats() {
        let floats = |shape: &[usize], values: &[f64]| -> Value {
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
            Tensor::new(DType::F64, shape, bytes.into()).unwrap().into()
        };
        let list = |values: &[Value]| Value::list(values.to_vec());
        let mixed = list(&[1_i64.into(), 2.5.into(), 3_u64.into()]);
        assert_eq!(collate(None, "a", mixed.clone()).unwrap(), floats(&[3], &[1.0, 2.5, 3.0]));
        let boxes = list(&[ints(&[1, 2]), list(&[0.5.into(), 4_i64.into()])]);
        assert_eq!(collate(None, "a", boxes).unwrap(), floats(&[2, 2], &[1.0, 2.0, 0.5, 4.0]));
        let nested = Value::structure(vec![("box".into(), mixed), ("id".into(), ints(&[1]))]);
        let expected =
            vec![("box".into(), floats(&[3], &[1.0, 2.5, 3.0])), ("id".into(), tensor(&[1], &[1]))];
        assert_eq!(collate(None, "a", nested).unwrap(), Value::structure(expected));
        let large = list(&[0.5.into(), ((1_i64 << 53) + 1).into()]);
        let error = collate(None, "a", large).unwrap_err();
        let message =
            "cannot stack: found 9007199254740993 among floats, and there is no float64 of that value";
        assert_eq!((error.message(), error.get("field")), (message, Some("a")));
        let exact = list(&[0.5.into(), i64::MIN.into()]);
        assert_eq!(collate(None, "a", exact).unwrap(), floats(&[2], &[0.5, -(2_f64.powi(63))]));
        let half = Value::scalar(DType::F16, 0x3c00);
        assert!(collate(None, "a", list(&[half.clone(), 2049_i64.into()])).is_err(), "no half is 2049");
        assert!(collate(None, "a", list(&[half, 0.5.into()])).is_err(), "floats of two types");
    }

    #[test]
    fn the_rest_stays() {
        let texts = Value::list(vec!["a".into(), "b".into()]);
        for value in [texts, Value::list(vec![]), 7_i64.into(), Value::NULL, "x".into()] {
            assert_eq!(collate(None, "a", value.clone()).unwrap(), value);
        }
    }

    #[test]
    fn ragged_numbers_are_refused() {
        let ragged = Value::list(vec![ints(&[1, 2]), ints(&[3])]);
        let error = collate(None, "a", ragged).unwrap_err();
        assert_eq!(error.message(), "cannot stack: found int64 [1] after int64 [2]");
        assert_eq!(error.get("field"), Some("a"));
        assert_eq!(collate(Some(&["b"]), "a", ints(&[1])).unwrap_err().get("field"), Some("b"));
    }

    #[test]
    fn a_list_of_more_bytes_than_allowed_is_refused() {
        let most = 1 << 17; // Of eight bytes each, in a host that allows 2^20.
        assert!(collate(None, "a", ints(&vec![3; most])).is_ok());
        let error = collate(None, "a", ints(&vec![3; most + 1])).unwrap_err();
        let message = "int64 [131073] has more than the 1048576 bytes allowed";
        assert_eq!((error.kind(), error.message()), (ErrorKind::Limit, message));
    }

    #[test]
    fn a_deep_nest_stays_a_list() {
        let deep = (0..10_000).fold(ints(&[1]), |value, _| Value::list(vec![value]));
        let kept = collate(None, "a", deep.clone()).unwrap();
        assert!(matches!(kept.view(), View::List([_])));
        std::mem::forget((deep, kept)); // Dropping goes as deep as the nest does.
    }

    /// Lists within lists of this shape, with these numbers in them.
    fn nest(shape: &[usize], numbers: &[Value]) -> Value {
        let Some((&count, inner)) = shape.split_first() else { return numbers[0].clone() };
        Value::list(numbers.chunks(numbers.len() / count).map(|part| nest(inner, part)).collect())
    }

    #[test]
    fn equals_the_definition_for_any_shape() {
        let mut rng = Rng::new(39, 0);
        let collate = |value: Value| collate(None, "a", value);
        for _ in 0..50 {
            // Up to 1,000 bytes: small tensors and larger ones.
            let shape: Vec<usize> = (0..=rng.below(3)).map(|_| 1 + rng.below(5) as usize).collect();
            let count: usize = shape.iter().product();
            let numbers: Vec<i64> = (0..count).map(|_| rng.below(100) as i64 - 50).collect();
            let whole = tensor(&shape, &numbers);
            let mut values: Vec<Value> = numbers.iter().map(|&number| number.into()).collect();
            assert_eq!(collate(nest(&shape, &values)).unwrap(), whole);
            let rows = numbers.chunks(count / shape[0]).map(|row| tensor(&shape[1..], row));
            assert_eq!(collate(Value::list(rows.collect())).unwrap(), whole, "tensors stack as lists do");
            // Structs in a list become one of stacked fields.
            let texts = vec![Value::from("x"); shape[0]];
            let of =
                |number: Value, text: Value| Value::structure(vec![("p".into(), number), ("q".into(), text)]);
            let nested = nest(&shape, &values);
            let View::List(rows) = nested.view() else { unreachable!() };
            let structs = rows.iter().map(|row| of(row.clone(), "x".into()));
            assert_eq!(collate(Value::list(structs.collect())).unwrap(), of(whole, Value::list(texts)));
            // One float makes all of them floats, one text leaves the list as it is, one more number is too many.
            let at = rng.below(count as u64) as usize;
            values[at] = (numbers[at] as f64 + 0.5).into();
            let floats = numbers
                .iter()
                .enumerate()
                .map(|(place, &number)| number as f64 + if place == at { 0.5 } else { 0.0 });
            let bytes: Vec<u8> = floats.flat_map(f64::to_ne_bytes).collect();
            let floats = Value::from(Tensor::new(DType::F64, &shape, bytes.into()).unwrap());
            assert_eq!(collate(nest(&shape, &values)).unwrap(), floats);
            values[at] = "x".into();
            let odd = Value::list(values);
            assert_eq!(collate(odd.clone()).unwrap(), odd);
            let ragged = Value::list(vec![ints(&numbers), ints(&[&numbers[..], &[1]].concat())]);
            assert_eq!(collate(ragged).unwrap_err().get("field"), Some("a"));
        }
    }
}
