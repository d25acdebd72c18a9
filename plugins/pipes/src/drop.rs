//! `drop`: all fields but some.
//!
//! ```toml
//! [drop]
//! page = "fields"
//! examples = ['''forebay head -n 1 "range 5 | map 'double = value * 2' | drop value"''']
//! cases = ["range N | map 'more=1' | drop more"]
//! ```

use std::sync::Arc;

use forebay_core::{Context, DataPipe, Error, Map, OneOrMany, PipeInfo, Result, Sample, Schema, options};

use crate::{
    plumbing::by_schema::BySchema,
    select::{place, repeated},
};

options! {
    /// Options of `drop`.
    pub struct DropOptions {
        /// The fields to leave out.
        fields: OneOrMany<String> = required;
    }
}

/// Leaves out the named fields; the others stay in their order.
#[derive(Debug)]
pub struct Drop {
    fields: Vec<String>,
    shapes: BySchema<Arc<Shape>>,
}

/// What samples of one schema become.
#[derive(Debug)]
struct Shape {
    schema: Schema,
    /// Of each field, whether it stays.
    stays: Vec<bool>,
}

impl DataPipe for Drop {
    const INFO: PipeInfo = PipeInfo { name: "drop", summary: "Leaves out some fields", ..PipeInfo::DEFAULT };
    type Options = DropOptions;

    fn new(options: DropOptions) -> Result<Self> {
        let fields = options.fields.0;
        if let Some(twice) = repeated(&fields) {
            return Err(Error::invalid(format!("`{twice}` is named twice")).context("option", "fields"));
        }
        Ok(Self { fields, shapes: BySchema::default() })
    }
}

impl Map for Drop {
    fn map(&self, sample: &mut Sample, _: &Context) -> Result<()> {
        let shape = self.shapes.get(sample.schema(), || self.shape(sample.schema()).map(Arc::new))?;
        sample.reshape(&shape.schema, |_, _, values| {
            let mut stays = shape.stays.iter();
            values.retain(|_| stays.next().is_some_and(|&stays| stays));
            Ok(())
        })
    }
}

impl Drop {
    fn shape(&self, schema: &Schema) -> Result<Shape> {
        let mut stays = vec![true; schema.len()];
        for name in &self.fields {
            stays[place(schema, name)?] = false;
        }
        let left = schema.names().iter().zip(&stays).filter(|(_, stays)| **stays);
        Ok(Shape { schema: Schema::new(left.map(|(name, _)| name.clone())), stays })
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::random::Rng;

    use super::*;
    use crate::testing::{map, named, sample, small_host, some};

    fn drop_of(fields: &[&str]) -> Result<Drop> {
        let fields = OneOrMany(fields.iter().map(|&name| name.to_owned()).collect());
        Drop::new(DropOptions { fields })
    }

    #[test]
    fn leaves_out_what_is_named() {
        let host = small_host();
        let input = sample(3, &[("a", 1_i64.into()), ("b", 2_i64.into()), ("c", "x".into())]);
        for (fields, left) in [
            (&["b"][..], sample(3, &[("a", 1_i64.into()), ("c", "x".into())])),
            (&["c", "a"], sample(3, &[("b", 2_i64.into())])),
            (&["a", "b", "c"], sample(3, &[])),
            (&[], input.clone()),
        ] {
            assert_eq!(map(&drop_of(fields).unwrap(), &input, &host).unwrap(), left, "{fields:?}");
        }
    }

    #[test]
    fn refuses_what_is_missing_or_named_twice() {
        let host = small_host();
        let error =
            map(&drop_of(&["a", "z"]).unwrap(), &sample(3, &[("a", 1_i64.into())]), &host).unwrap_err();
        let found = (error.get("field"), error.message());
        assert_eq!(found, (Some("z"), "no field called `z`; there are: a"));
        assert_eq!(drop_of(&["a", "a"]).unwrap_err().get("option"), Some("fields"));
    }

    #[test]
    fn equals_the_definition_for_any_fields() {
        const NAMES: [&str; 4] = ["a", "b", "c", "d"];
        let (mut rng, host, mut good) = (Rng::new(44, 0), small_host(), 0);
        for _ in 0..50 {
            let chosen = some(&mut rng, &NAMES);
            let pipe = drop_of(&chosen).unwrap();
            for uid in 0..20 {
                let names = some(&mut rng, &NAMES);
                let found = map(&pipe, &named(uid, &names), &host);
                match chosen.iter().find(|name| !names.contains(name)) {
                    Some(&missing) => assert_eq!(found.unwrap_err().get("field"), Some(missing)),
                    None => {
                        good += 1;
                        let left: Vec<_> =
                            names.iter().copied().filter(|name| !chosen.contains(name)).collect();
                        assert_eq!(found.unwrap(), named(uid, &left), "{chosen:?} of {names:?}");
                    }
                }
            }
        }
        assert!((200..800).contains(&good), "{good}");
    }
}
