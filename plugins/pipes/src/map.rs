//! `map`: fields that expressions give.

use std::sync::Arc;

use forebay_core::{Context, DataPipe, Error, OneOrMany, PipeInfo, Result, Sample, Schema, options};

use crate::{
    cache::Cache,
    expression::{Expression, Places},
    rename::pair,
    select::repeated,
};

options! {
    /// Options of `map`.
    pub struct MapOptions {
        /// `name=expression`, one for each field to set: `area=width * height`. All see the sample as it came.
        fields: OneOrMany<String> = required;
    }
}

/// Sets fields to what expressions over the sample's fields give; new ones come behind those that are there.
#[derive(Debug)]
pub struct Map {
    fields: Vec<(String, Expression)>,
    shapes: Cache<Arc<Shape>>,
}

/// What samples of one schema become.
#[derive(Debug)]
struct Shape {
    schema: Schema,
    /// Where the fields of each expression are, and where what it gives goes.
    each: Vec<(Places, usize)>,
}

impl DataPipe for Map {
    const INFO: PipeInfo =
        PipeInfo { name: "map", summary: "Fields that expressions give", ..PipeInfo::DEFAULT };
    type Options = MapOptions;

    fn new(options: MapOptions) -> Result<Self> {
        let refuse = |error: Error| error.context("option", "fields");
        let mut fields = Vec::new();
        for text in &options.fields.0 {
            let (name, expression) = pair(text).ok_or_else(|| {
                refuse(Error::invalid(format!("found `{text}`, expected `name=expression`")))
            })?;
            fields.push((name.trim().to_owned(), Expression::new(expression.trim()).map_err(refuse)?));
        }
        let names: Vec<_> = fields.iter().map(|(name, _)| name).collect();
        if let Some(twice) = repeated(&names) {
            return Err(refuse(Error::invalid(format!("`{twice}` is set twice"))));
        }
        Ok(Self { fields, shapes: Cache::default() })
    }
}

impl forebay_core::Map for Map {
    fn map(&self, sample: &mut Sample, _: &Context) -> Result<()> {
        let shape = self.shapes.get(sample.schema(), || Ok(Arc::new(self.shape(sample.schema()))))?;
        let (key, schema, values) = (sample.key(), sample.schema(), sample.values());
        let mut made = Vec::with_capacity(self.fields.len());
        for ((name, expression), (places, _)) in self.fields.iter().zip(&shape.each) {
            let value = expression.value(places, key, schema, values);
            made.push(value.map_err(|error| error.context("sets", name))?);
        }
        if shape.schema.len() > values.len() {
            let mut wider = Vec::with_capacity(shape.schema.len());
            wider.extend(sample.values_mut().iter_mut().map(std::mem::take));
            wider.resize_with(shape.schema.len(), Default::default);
            sample.replace(shape.schema.clone(), wider);
        }
        for (value, &(_, at)) in made.into_iter().zip(&shape.each) {
            sample.values_mut()[at] = value;
        }
        Ok(())
    }
}

impl Map {
    fn shape(&self, schema: &Schema) -> Shape {
        let mut names = schema.names().to_vec();
        let each = self.fields.iter().map(|(name, expression)| {
            let at = names.iter().position(|known| known.as_str() == name).unwrap_or_else(|| {
                names.push(name.as_str().into());
                names.len() - 1
            });
            (expression.places(schema), at)
        });
        let each = each.collect();
        Shape { schema: Schema::new(names), each }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{map, sample, small_host};

    fn make(fields: &[&str]) -> Result<Map> {
        Map::new(MapOptions { fields: OneOrMany(fields.iter().map(|&field| field.to_owned()).collect()) })
    }

    #[test]
    fn sets_fields_from_the_sample_as_it_came() {
        let host = small_host();
        let input = sample(3, &[("w", 4_i64.into()), ("h", 5_i64.into())]);
        let out = map(&make(&["area = w * h", "w=h", "h = w", "wide=w==h"]).unwrap(), &input, &host).unwrap();
        let wanted = sample(
            3,
            &[("w", 5_i64.into()), ("h", 4_i64.into()), ("area", 20_i64.into()), ("wide", false.into())],
        );
        assert_eq!(out, wanted);
    }

    #[test]
    fn refuses_what_does_not_work() {
        let host = small_host();
        let input = sample(3, &[("w", 4_i64.into())]);
        let error = map(&make(&["area=w * h"]).unwrap(), &input, &host).unwrap_err();
        assert_eq!(error.get("field"), Some("h"));
        assert!(error.to_string().contains("sets area"), "{error}");
        assert!(map(&make(&["x=1", "y=nowhere"]).unwrap(), &input, &host).is_err());
        for wrong in [&["w"][..], &["=w"], &["w="], &["a=1", "a=2"], &["a=1 +"]] {
            assert_eq!(make(wrong).unwrap_err().get("option"), Some("fields"), "{wrong:?}");
        }
    }
}
