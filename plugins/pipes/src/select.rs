//! `select`: some of the fields, in a new order.
//!
//! ```toml
//! [select]
//! page = "fields"
//! examples = ['''forebay head -n 1 "files 'examples/photos/*.tar' | untar | select [jpg, cls]"''']
//! cases = ["range N | map 'more=1' | select more"]
//! ```

use std::sync::Arc;

use forebay_core::{Context, DataPipe, Error, Map, OneOrMany, PipeInfo, Result, Sample, Schema, options};

use crate::plumbing::by_schema::BySchema;

options! {
    /// Options of `select`.
    pub struct SelectOptions {
        /// The fields to keep, in this order.
        fields: OneOrMany<String> = required;
    }
}

/// Keeps the named fields, in the order given.
#[derive(Debug)]
pub struct Select {
    fields: Schema,
    places: BySchema<Arc<[usize]>>,
}

impl DataPipe for Select {
    const INFO: PipeInfo =
        PipeInfo { name: "select", summary: "Some of the fields, in a new order", ..PipeInfo::DEFAULT };
    type Options = SelectOptions;

    fn new(options: SelectOptions) -> Result<Self> {
        let names = options.fields.0;
        if let Some(twice) = repeated(&names) {
            return Err(Error::invalid(format!("`{twice}` is named twice")).context("option", "fields"));
        }
        Ok(Self { fields: Schema::new(names), places: BySchema::default() })
    }
}

impl Map for Select {
    fn map(&self, sample: &mut Sample, _: &Context) -> Result<()> {
        let places = self.places.get(sample.schema(), || {
            self.fields.names().iter().map(|name| place(sample.schema(), name)).collect()
        })?;
        sample.reshape(&self.fields, |_, _, values| {
            let came = values.len();
            for &at in &**places {
                let value = std::mem::take(&mut values[at]);
                values.push(value);
            }
            values.drain(..came);
            Ok(())
        })
    }
}

/// Where the field called `name` is.
pub(crate) fn place(schema: &Schema, name: &str) -> Result<usize> {
    schema.position(name).ok_or_else(|| absent(schema, &[name]))
}

/// The error for samples that have no field of any of these names.
#[cold]
pub(crate) fn absent<T: AsRef<str>>(schema: &Schema, names: &[T]) -> Error {
    let there: Vec<_> = schema.names().iter().map(|name| name.as_str()).collect();
    let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
    let names: Vec<_> = names.iter().map(AsRef::as_ref).collect();
    let error = Error::invalid(format!("no field called `{}`; there are: {there}", names.join("` or `")));
    error.context("field", names.first().copied().unwrap_or_default())
}

/// The first name that stands there twice.
pub(crate) fn repeated<T: AsRef<str>>(names: &[T]) -> Option<&str> {
    let names = || names.iter().map(AsRef::as_ref);
    names().enumerate().find(|(at, name)| names().take(*at).any(|other| other == *name)).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use forebay_core::random::Rng;

    use super::*;
    use crate::testing::{map, named, sample, small_host, some};

    fn select(fields: &[&str]) -> Result<Select> {
        let fields = OneOrMany(fields.iter().map(|&name| name.to_owned()).collect());
        Select::new(SelectOptions { fields })
    }

    #[test]
    fn keeps_fields_in_the_order_given() {
        let host = small_host();
        let pipe = select(&["c", "a"]).unwrap();
        let one = sample(4, &[("a", 1_i64.into()), ("b", 2_i64.into()), ("c", 3_i64.into())]);
        let two = sample(5, &[("c", 3_i64.into()), ("a", 1_i64.into())]);
        for input in [&one, &two, &one] {
            let out = map(&pipe, input, &host).unwrap();
            let expected = sample(input.uid(), &[("c", 3_i64.into()), ("a", 1_i64.into())]);
            assert_eq!(out, expected);
        }
    }

    #[test]
    fn refuses_what_is_not_there_b138() {
        let host = small_host();
        let input = sample(0, &[("a", 1_i64.into()), ("b", 2_i64.into())]);
        let error = map(&select(&["a", "x"]).unwrap(), &input, &host).unwrap_err();
        assert_eq!(error.message(), "no field called `x`; there are: a, b");
        assert_eq!(error.get("field"), Some("x"));
        assert!(select(&["a", "b", "a"]).is_err());
        assert!(map(&select(&[]).unwrap(), &input, &host).unwrap().schema().is_empty());
    }

    #[test]
    fn remembers_only_so_many_schemas() {
        let host = small_host();
        let pipe = select(&["a"]).unwrap();
        for other in 0..100 {
            let input = sample(0, &[(&format!("x{other}"), 2_i64.into()), ("a", 1_i64.into())]);
            assert_eq!(map(&pipe, &input, &host).unwrap(), sample(0, &[("a", 1_i64.into())]));
        }
    }

    #[test]
    fn equals_the_definition_for_any_fields() {
        const NAMES: [&str; 4] = ["a", "b", "c", "d"];
        let (mut rng, host, mut good) = (Rng::new(43, 0), small_host(), 0);
        for _ in 0..50 {
            let chosen = some(&mut rng, &NAMES);
            let pipe = select(&chosen).unwrap();
            for uid in 0..20 {
                let input = named(uid, &some(&mut rng, &NAMES));
                let found = map(&pipe, &input, &host);
                match chosen.iter().find(|name| input.get(name).is_none()) {
                    Some(&missing) => assert_eq!(found.unwrap_err().get("field"), Some(missing)),
                    None => {
                        good += 1;
                        assert_eq!(found.unwrap(), named(uid, &chosen), "of {input:?}");
                    }
                }
            }
        }
        assert!((200..800).contains(&good), "{good}");
    }
}
