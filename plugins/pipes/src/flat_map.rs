//! `flat_map`: a sample for each item of a list that an expression gives.
//!
//! ```toml
//! [flat_map]
//! page = "choose"
//! examples = ['''forebay head -n 3 "range 3 | map 'words = \"a b c\".split(\" \")' | flat_map words field=word"''']
//! cases = ["range N | flat_map '[value, value + 1]'"]
//! counted = false
//! ```

use std::{iter, sync::Arc};

use forebay_core::{
    Condition, Context, DataPipe, Error, Items, Output, PipeInfo, PipeOrder, Randomness, Result, Sample,
    Schema, State, StateExt, Value, View, options,
};

use crate::{
    plumbing::{
        by_schema::BySchema,
        expression::{Draws, Expression, Places},
    },
    unbatch::{Names, tensor_row},
};

options! {
    /// Options of `flat_map`.
    pub struct FlatMapOptions {
        /// An expression for a list or a tensor, which is taken apart along its first axis: `boxes`, `text.split('
        /// ')`.
        items: String = required;
        /// The field that gets an item.
        field: String = "item";
        /// Keep the other fields; otherwise the item is the only field.
        keep: bool = true;
        /// The most items of one sample; a sample with more fails as a whole. Null for no bound.
        most: Option<u64> = null, in 1..=18446744073709551615;
    }
}

/// Turns each sample into one for each item of the list, or row of the tensor, that an expression over its fields gives.
///
/// The first has the sample's uid and key, the others get their own: `KEY#NUMBER`. No items, no samples. State: how many items were given.
#[derive(Debug)]
pub struct FlatMap {
    items: Expression,
    field: String,
    keep: bool,
    most: Option<u64>,
    shapes: BySchema<Arc<Shape>>,
}

/// What samples of one schema become.
#[derive(Debug)]
struct Shape {
    places: Places,
    schema: Schema,
    /// Where the item goes.
    at: usize,
}

impl DataPipe for FlatMap {
    const INFO: PipeInfo = PipeInfo {
        name: "flat_map",
        summary: "A sample for each item of a list that an expression gives",
        also: &["flatmap", "flat_mapper", "interleave"],
        order: PipeOrder {
            draws: Randomness::If(&[Condition::Contains("items", "random(")]),
            ..PipeOrder::DEFAULT
        },
        ..PipeInfo::DEFAULT
    };
    type Options = FlatMapOptions;

    fn new(options: FlatMapOptions) -> Result<Self> {
        let FlatMapOptions { items, field, keep, most } = options;
        let items = Expression::new(&items).map_err(|error| error.context("option", "items"))?;
        Ok(Self { items, field, keep, most, shapes: BySchema::default() })
    }
}

impl forebay_core::FlatMap for FlatMap {
    type Items = Each;

    fn open(&self, sample: Sample, cx: &Context) -> Result<Each> {
        let shape = self.shapes.get(sample.schema(), || Ok(Arc::new(self.shape(sample.schema()))))?;
        let shape = shape.into_owned();
        let draws = Draws::new(cx, sample.uid());
        let items =
            self.items.value(&shape.places, sample.key(), sample.schema(), sample.values(), &draws)?;
        let count = count(&items)?;
        if let Some(most) = self.most
            && count as u64 > most
        {
            return Err(Error::limit(format!("found {count} items, `most` is {most}")));
        }
        Ok(Each { sample, shape, keep: self.keep, names: Names::default(), items, count, next: 0 })
    }
}

impl FlatMap {
    fn shape(&self, schema: &Schema) -> Shape {
        let mut names = if self.keep { schema.names().to_vec() } else { Vec::new() };
        let at = names.iter().position(|name| name.as_str() == self.field).unwrap_or_else(|| {
            names.push(self.field.as_str().into());
            names.len() - 1
        });
        Shape { places: self.items.places(schema), schema: Schema::new(names), at }
    }
}

/// How many items a value has.
fn count(items: &Value) -> Result<usize> {
    let found = match items.view() {
        View::List(items) => return Ok(items.len()),
        View::Tensor(tensor) if let Some(&count) = tensor.shape().first() => return Ok(count as usize),
        View::Null => "null",
        View::Str(_) => "text",
        View::Bytes(_) => "bytes",
        View::Tensor(_) => "a tensor without axes",
        View::Struct(_) => "a struct",
        _ if items.dtype().is_some() => "a single number",
        _ => "a value without items",
    };
    Err(Error::invalid(format!("`items` gives {found}, expected a list or a tensor")))
}

/// The samples of one list.
#[derive(Debug)]
pub struct Each {
    sample: Sample,
    shape: Arc<Shape>,
    keep: bool,
    names: Names,
    items: Value,
    count: usize,
    next: usize,
}

impl Items for Each {
    fn next(&mut self, cx: &Context) -> Result<Option<Sample>> {
        Output::one(|out| self.fill(out, cx))
    }

    fn fill(&mut self, out: &mut Output, cx: &Context) -> Result<bool> {
        let Self { sample, shape, keep, names, items, count, next } = self;
        let kept = if *keep { sample.values() } else { &[] };
        while out.room() > 0 && *next < *count {
            let at = *next;
            *next += 1;
            let item = || match items.view() {
                View::List(items) => Ok(items.get(at).cloned().unwrap_or_default()),
                View::Tensor(tensor) => tensor_row(tensor, at),
                _ => Ok(Value::NULL),
            };
            let (uid, key) = names.at(sample, at, cx);
            if kept.is_empty() {
                out.try_push_row(uid, key, &shape.schema, iter::once_with(item))?;
            } else {
                let before = kept.iter().take(shape.at).cloned().map(Ok);
                let behind = kept.iter().skip(shape.at + 1).cloned().map(Ok);
                let values = before.chain(iter::once_with(item)).chain(behind);
                out.try_push_row(uid, key, &shape.schema, values)?;
            }
        }
        Ok(*next < *count)
    }

    fn state(&self) -> Result<State> {
        State::json(1, &self.next)
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        let next: usize = state.parse(1)?;
        if next > self.count {
            let count = self.count;
            return Err(Error::invalid(format!("found a position after item {next} of {count}")));
        }
        self.next = next;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::{DType, FlatMap as _, Options, Tensor, TensorExt, random::Rng};

    use super::*;
    use crate::testing::{expand, ints, sample, small_host};

    fn flat_map(options: &str) -> FlatMap {
        FlatMap::new(FlatMapOptions::parse(options).unwrap()).unwrap()
    }

    fn list(uid: u64, numbers: impl IntoIterator<Item = i64>) -> Sample {
        let numbers = numbers.into_iter().map(Value::from).collect();
        sample(uid, &[("x", Value::list(numbers)), ("name", "n".into())])
    }

    fn names(sample: &Sample) -> Vec<&str> {
        sample.schema().names().iter().map(|name| name.as_str()).collect()
    }

    #[test]
    fn lists_come_apart_and_every_place_can_be_saved_b041() {
        let lists: [&[i64]; 7] = [&[0, 1, 2, 3], &[], &[4, 5], &[6, 7, 8, 9], &[], &[], &[10, 11, 12]];
        let input: Vec<_> = lists.iter().zip(0..).map(|(list_, uid)| list(uid, list_.to_vec())).collect();
        for (options, field, wanted) in [
            (r#"{"items": "x"}"#, "item", &["x", "name", "item"][..]),
            (r#"{"items": "x", "field": "x"}"#, "x", &["x", "name"]),
            (r#"{"items": "x", "field": "name", "keep": false}"#, "name", &["name"]),
        ] {
            let out = expand(&flat_map(options), &input).unwrap();
            assert_eq!(ints(&out, field), (0..13).collect::<Vec<_>>(), "{options}");
            assert!(out.iter().all(|sample| names(sample) == wanted), "{options}");
            let mut uids: Vec<_> = out.iter().map(Sample::uid).collect();
            assert_eq!((uids[0], uids[4], uids[6]), (0, 2, 3));
            uids.sort_unstable();
            uids.dedup();
            assert_eq!(uids.len(), 13);
            assert_eq!(
                (out[0].key().to_string(), out[1].key().to_string()),
                ("test#0".into(), "test#0#1".into())
            );
        }
        assert!(expand(&flat_map(r#"{"items": "x"}"#), &[]).unwrap().is_empty());
    }

    #[test]
    fn more_items_than_the_most_fail_b042() {
        let pipe = flat_map(r#"{"items": "x", "most": 10}"#);
        assert_eq!(expand(&pipe, &[list(1, 0..10)]).unwrap().len(), 10);
        let error = expand(&pipe, &[list(1, 0..11)]).unwrap_err();
        assert_eq!(error.message(), "found 11 items, `most` is 10");
        assert_eq!(
            FlatMapOptions::parse(r#"{"items": "x", "most": 0}"#).unwrap_err().get("option"),
            Some("most")
        );
    }

    #[test]
    fn tensors_come_apart_along_their_first_axis_and_expressions_make_lists() {
        let data: forebay_core::Buffer = (0..6).collect::<Vec<u8>>().into();
        let tensor = |shape: &[usize]| {
            sample(1, &[("x", Tensor::new(DType::U8, shape, data.clone()).unwrap().into())])
        };
        let out = expand(&flat_map(r#"{"items": "x", "keep": false}"#), &[tensor(&[3, 2])]).unwrap();
        let second = out[1].get("item").and_then(Value::as_tensor).unwrap();
        assert_eq!((second.shape(), second.data().as_ptr()), (&[2][..], data[2..].as_ptr()));
        let out = expand(&flat_map(r#"{"items": "x"}"#), &[tensor(&[6])]).unwrap();
        assert_eq!(out[5].get("item"), Some(&5_u8.into()));
        let text = sample(1, &[("text", "a b c".into())]);
        let out = expand(&flat_map(r#"{"items": "text.split(' ')", "field": "text"}"#), &[text]).unwrap();
        let words: Vec<_> =
            out.iter().map(|sample| sample.get("text").and_then(Value::as_str).unwrap()).collect();
        assert_eq!(words, ["a", "b", "c"]);
    }

    #[test]
    fn what_has_no_items_is_refused() {
        let input = sample(1, &[("t", "x".into()), ("n", 1_i64.into()), ("s", Value::structure(vec![]))]);
        for (items, wanted) in [
            ("t", "`items` gives text, expected a list or a tensor"),
            ("n", "`items` gives a single number, expected a list or a tensor"),
            ("n + 1", "`items` gives a single number, expected a list or a tensor"),
            ("s", "`items` gives a struct, expected a list or a tensor"),
            ("null", "`items` gives null, expected a list or a tensor"),
            ("z", "no field called `z`; there are: t, n, s"),
        ] {
            let pipe = flat_map(&format!(r#"{{"items": "{items}"}}"#));
            assert_eq!(expand(&pipe, std::slice::from_ref(&input)).unwrap_err().message(), wanted);
        }
        let wrong =
            FlatMapOptions { items: "x <".into(), ..FlatMapOptions::parse(r#"{"items": "x"}"#).unwrap() };
        assert_eq!(FlatMap::new(wrong).unwrap_err().get("option"), Some("items"));
        let host = small_host();
        let mut each = flat_map(r#"{"items": "x"}"#).open(list(1, 0..2), &host.context()).unwrap();
        assert!(each.restore(&State::json(1, &3).unwrap(), &host.context()).is_err());
    }

    #[test]
    fn equals_the_definition_for_lists_and_tensors_of_any_length() {
        let mut rng = Rng::new(42, 0);
        for round in 0..40_u64 {
            let (field, keep) = (["item", "x", "name"][round as usize % 3], rng.bool(0.5));
            let (mut input, mut wanted) = (Vec::new(), Vec::new());
            for uid in 0..rng.below(4) {
                let numbers: Vec<u8> = (0..rng.below(5)).map(|_| rng.below(200) as u8).collect();
                let items = match rng.bool(0.5) {
                    true => Value::list(numbers.iter().map(|&number| number.into()).collect()),
                    false => Tensor::new(DType::U8, &[numbers.len()], numbers.clone().into()).unwrap().into(),
                };
                let whole = sample(uid, &[("x", items), ("name", "n".into())]);
                for (at, number) in numbers.into_iter().enumerate() {
                    let mut one = if keep { whole.clone() } else { sample(uid, &[]) };
                    one.set(field, number);
                    wanted.push((uid, at, one));
                }
                input.push(whole);
            }
            let options = format!(r#"{{"items": "x", "field": "{field}", "keep": {keep}}}"#);
            let out = expand(&flat_map(&options), &input).unwrap();
            assert_eq!(out.len(), wanted.len(), "{options}");
            for (found, (uid, at, wanted)) in out.iter().zip(&wanted) {
                assert!(found.fields().eq(wanted.fields()), "{options}: {found:?} for {wanted:?}");
                let key = if *at == 0 { format!("test#{uid}") } else { format!("test#{uid}#{at}") };
                assert_eq!(found.key().to_string(), key);
                assert!(*at > 0 || found.uid() == *uid);
            }
            let uids: std::collections::HashSet<_> = out.iter().map(Sample::uid).collect();
            assert_eq!(uids.len(), out.len(), "{options}");
        }
    }
}
