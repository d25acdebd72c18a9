//! `collate`: lists of numbers become tensors.

use forebay_core::{Context, DataPipe, Map, PipeInfo, Result, Sample, Value, View, abi::MAX_DIMS, options};

use crate::{
    select::place,
    stack::{Column, Place},
};

options! {
    /// Options of `collate`.
    pub struct CollateOptions {
        /// The fields to stack; null for all.
        fields: Option<Vec<String>> = null;
    }
}

/// Stacks each field that is a list of numbers or of tensors into one tensor, also within structs.
#[derive(Debug)]
pub struct Collate {
    fields: Option<Vec<String>>,
}

impl DataPipe for Collate {
    const INFO: PipeInfo =
        PipeInfo { name: "collate", summary: "Lists of numbers to tensors", ..PipeInfo::DEFAULT };
    type Options = CollateOptions;

    fn new(options: CollateOptions) -> Result<Self> {
        Ok(Self { fields: options.fields })
    }
}

impl Map for Collate {
    fn map(&self, sample: &mut Sample, cx: &Context) -> Result<()> {
        let schema = sample.schema().clone();
        let places = match &self.fields {
            None => (0..schema.len()).collect(),
            Some(fields) => fields.iter().map(|name| place(&schema, name)).collect::<Result<Vec<_>>>()?,
        };
        for at in places {
            let value = &mut sample.values_mut()[at];
            *value = dense(value, cx).map_err(|error| error.context("field", &schema.names()[at]))?;
        }
        Ok(())
    }
}

/// `value` with every list of equal numbers, or of tensors of one type and shape, stacked into a tensor.
///
/// Lists of structs of equal fields become a struct of lists, and those are stacked in turn. Lists of
/// anything else, and empty ones, stay lists; so does what lies deeper than a tensor has axes.
///
/// # Errors
/// `Invalid` for numbers in one list that differ in type or shape; `Limit`.
pub fn dense(value: &Value, cx: &Context) -> Result<Value> {
    dense_at(value, MAX_DIMS, cx)
}

fn dense_at(value: &Value, levels: usize, cx: &Context) -> Result<Value> {
    match value.view() {
        View::List(items) if levels > 0 && !items.is_empty() => {
            let place = Place { capacity: items.len(), strict: true, cx };
            let mut column = Column::default();
            for (row, item) in items.iter().enumerate() {
                column.push(&mut dense_at(item, levels - 1, cx)?, row, &place)?;
            }
            column.finish(items.len())
        }
        View::Struct(fields) if levels > 0 => {
            let fields = fields.fields();
            let fields = fields.map(|(name, value)| Ok((name.clone(), dense_at(value, levels - 1, cx)?)));
            Ok(Value::structure(fields.collect::<Result<_>>()?))
        }
        _ => Ok(value.clone()),
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::{DType, Tensor, TensorExt};

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
        let pipe = Collate::new(CollateOptions { fields })?;
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
    fn a_deep_nest_stays_a_list() {
        let deep = (0..10_000).fold(ints(&[1]), |value, _| Value::list(vec![value]));
        let kept = collate(None, "a", deep.clone()).unwrap();
        assert!(matches!(kept.view(), View::List([_])));
        std::mem::forget((deep, kept)); // Dropping goes as deep as the nest does.
    }
}
