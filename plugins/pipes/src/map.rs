//! `map`: fields that expressions give.
//!
//! ```toml
//! [map]
//! page = "fields"
//! examples = ['''forebay head -n 2 "range 5 | map ['double = value * 2', 'even = value % 2 == 0']"''']
//! cases = ["range N | map 'twice=value * 2'"]
//! ```

use std::sync::Arc;

use forebay_core::{
    Condition, Context, DataPipe, Error, OneOrMany, PipeInfo, PipeOrder, Randomness, Result, Sample, Schema,
    options,
};

use crate::{
    plumbing::{
        by_schema::BySchema,
        expression::{Draws, Expression, Places},
    },
    rename::pair,
    select::repeated,
};

options! {
    /// Options of `map`.
    pub struct MapOptions {
        /// `name=expression`, for each field to set: `area=width * height`. Every expression sees the sample as it
        /// came.
        fields: OneOrMany<String> = required;
    }
}

/// Sets fields to what expressions over the sample's fields give; new ones come behind those that are there.
#[derive(Debug)]
pub struct Map {
    fields: Vec<(String, Expression)>,
    shapes: BySchema<Arc<Shape>>,
}

/// What samples of one schema become.
#[derive(Debug)]
struct Shape {
    schema: Schema,
    /// Those of the expressions that set new fields, in the order of these, and behind them those that set fields that are there.
    each: Vec<Set>,
    /// How many fields are new.
    new: usize,
}

/// A field that is set.
#[derive(Debug)]
struct Set {
    /// Which of the expressions it is, and where its fields are.
    expression: usize,
    places: Places,
    /// Where what it gives goes.
    at: usize,
}

impl DataPipe for Map {
    const INFO: PipeInfo = PipeInfo {
        name: "map",
        summary: "Fields that expressions give",
        also: &["mapper"],
        order: PipeOrder {
            draws: Randomness::If(&[Condition::Contains("fields", "random(")]),
            ..PipeOrder::DEFAULT
        },
        ..PipeInfo::DEFAULT
    };
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
        Ok(Self { fields, shapes: BySchema::default() })
    }
}

impl forebay_core::Map for Map {
    fn map(&self, sample: &mut Sample, cx: &Context) -> Result<()> {
        let shape = self.shapes.get(sample.schema(), || Ok(Arc::new(self.shape(sample.schema()))))?;
        let draws = Draws::new(cx, sample.uid());
        sample.reshape(&shape.schema, |key, schema, values| {
            let came = values.len();
            for set in &shape.each {
                let (name, expression) = &self.fields[set.expression];
                match expression.quick(&set.places, &values[..came], &draws) {
                    Some(given) => values.push(given.into_value()),
                    None => {
                        let value = expression.long_value(&set.places, key, schema, &values[..came], &draws);
                        values.push(value.map_err(|error| error.context("sets", name))?);
                    }
                }
            }
            for set in shape.each[shape.new..].iter().rev() {
                if let Some(value) = values.pop() {
                    values[set.at] = value;
                }
            }
            Ok(())
        })
    }
}

impl Map {
    fn shape(&self, schema: &Schema) -> Shape {
        let mut names = schema.names().to_vec();
        let (mut each, mut old) = (Vec::new(), Vec::new());
        for (expression, (name, compiled)) in self.fields.iter().enumerate() {
            let places = compiled.places(schema);
            match schema.position(name) {
                Some(at) => old.push(Set { expression, places, at }),
                None => {
                    each.push(Set { expression, places, at: names.len() });
                    names.push(name.as_str().into());
                }
            }
        }
        let new = each.len();
        each.append(&mut old);
        Shape { schema: if new == 0 { schema.clone() } else { Schema::new(names) }, each, new }
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::{Value, View};

    use super::*;
    use crate::testing::{Host, map, sample, small_host};

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

    /// The second expression cannot go the short way to its end, and must not leave out the numbers that it drew there.
    #[test]
    fn random_numbers_come_in_one_order_whichever_way_is_taken() {
        let host = small_host();
        let pipe = make(&["a=random()", "b=random() + random() < 3.0 ? text : 1", "c=random()"]).unwrap();
        let out = map(&pipe, &sample(3, &[("text", "x".into())]), &host).unwrap();
        let mut rng = host.context().rng(3);
        let wanted: Vec<_> = (0..4).map(|_| Value::from(rng.f64())).collect();
        let given = ["a", "b", "c"].map(|name| out.get(name).unwrap().clone());
        assert_eq!(given, [wanted[0].clone(), "x".into(), wanted[3].clone()]);
    }

    #[test]
    fn random_numbers_are_the_samples_own() {
        let host = small_host();
        let pipe = make(&["a=random()", "b=random() + 1.0", "c=[random(), random()]"]).unwrap();
        let draw = |uid, host: &Host| {
            let out = map(&pipe, &sample(uid, &[]), host).unwrap();
            let number = |value: &Value| match value.view() {
                View::Float(number) => number,
                other => panic!("{other:?}"),
            };
            let Some(View::List(items)) = out.get("c").map(Value::view) else { panic!("{out:?}") };
            [number(&out.values()[0]), number(&out.values()[1]) - 1.0, number(&items[0]), number(&items[1])]
        };
        let drawn = draw(3, &host);
        assert_eq!(drawn, draw(3, &host), "the same again");
        assert!(
            drawn.iter().enumerate().all(|(at, one)| drawn[..at].iter().all(|other| other != one)),
            "{drawn:?}"
        );
        assert!(drawn != draw(4, &host) && drawn != draw(3, &small_host().epoch(1)));
        let mut counts = [0_u32; 10];
        for uid in 0..2500 {
            draw(uid, &host).iter().for_each(|number| counts[(number * 10.0) as usize] += 1);
        }
        let chi: f64 = counts.iter().map(|&count| (f64::from(count) - 1000.0).powi(2) / 1000.0).sum();
        assert!(chi < 27.88, "chi-square with 9 degrees of freedom is {chi}, above the 99.9 % bound");
    }
}
