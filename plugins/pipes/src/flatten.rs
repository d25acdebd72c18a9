//! `flatten`: the fields of structs as fields of the sample.
//!
//! ```toml
//! [flatten]
//! page = "fields"
//! examples = [
//!     '''printf '{"meta": {"lang": "en", "year": 2026}}\n' > nested.jsonl''',
//!     'forebay head "files nested.jsonl | lines | json_lines | flatten meta"',
//! ]
//! cases = ['''range N | map "s={'a': value, 'b': 2}" | flatten''']
//! ```

use std::sync::Arc;

use forebay_core::{
    Context, DataPipe, Error, Map, OneOrMany, PipeInfo, Result, Sample, Schema, Str, View, options,
};

use crate::{
    plumbing::by_schema::BySchema,
    select::{place, repeated},
};

options! {
    /// Options of `flatten`.
    pub struct FlattenOptions {
        /// The structs; null for all that are structs.
        fields: Option<OneOrMany<String>> = null;
    }
}

/// Puts the fields of a struct in its place: `a` of the struct `meta` becomes `meta.a`.
///
/// One level, so what is a struct in the struct stays one. A name that is there twice in the end is an error. A struct without fields goes.
#[derive(Debug)]
pub struct Flatten {
    fields: Option<Vec<String>>,
    /// Where the structs of a schema may be, the last one first.
    places: BySchema<Arc<[usize]>>,
    /// Schemas without a name that is there twice.
    whole: BySchema<()>,
    /// For each schema and each place in it: what comes of the schema with a struct there, by the struct's.
    known: BySchema<Arc<[BySchema<Schema>]>>,
}

impl DataPipe for Flatten {
    const INFO: PipeInfo = PipeInfo {
        name: "flatten",
        summary: "The fields of structs as fields of the sample",
        ..PipeInfo::DEFAULT
    };
    type Options = FlattenOptions;

    fn new(options: FlattenOptions) -> Result<Self> {
        let fields = options.fields.map(|fields| fields.0);
        if let Some(twice) = fields.as_deref().and_then(repeated) {
            return Err(Error::invalid(format!("`{twice}` is named twice")).context("option", "fields"));
        }
        Ok(Self {
            fields,
            places: BySchema::default(),
            whole: BySchema::default(),
            known: BySchema::default(),
        })
    }
}

impl Map for Flatten {
    fn map(&self, sample: &mut Sample, _: &Context) -> Result<()> {
        let places = self.places.get(sample.schema(), || self.places_in(sample.schema()))?;
        // From the back, so that what is put in a struct's place moves none that is still to be looked at.
        for &at in places.iter() {
            if let View::Struct(_) = sample.values()[at].view() {
                self.spread(sample, at)?;
            } else if self.fields.is_some() {
                let name = &sample.schema().names()[at];
                return Err(Error::invalid("expected a struct").context("field", name));
            }
        }
        // At the end: a struct's field may have the name of another struct, which goes.
        self.whole.get(sample.schema(), || once_each(sample.schema()))?;
        Ok(())
    }
}

impl Flatten {
    /// Where in such a sample structs are, or must be.
    fn places_in(&self, schema: &Schema) -> Result<Arc<[usize]>> {
        let Some(fields) = &self.fields else { return Ok((0..schema.len()).rev().collect()) };
        let mut places: Vec<usize> = fields.iter().map(|name| place(schema, name)).collect::<Result<_>>()?;
        places.sort_unstable_by(|one, other| other.cmp(one));
        Ok(places.into())
    }

    /// Puts the fields of the struct at `at` in its place.
    fn spread(&self, sample: &mut Sample, at: usize) -> Result<()> {
        let value = std::mem::take(&mut sample.values_mut()[at]);
        let View::Struct(fields) = value.view() else { return Ok(()) };
        let count = sample.schema().len();
        let known =
            self.known.get(sample.schema(), || Ok((0..count).map(|_| BySchema::default()).collect()))?;
        let schema = known[at].get(fields.schema(), || Ok(spread(sample.schema(), at, fields.schema())))?;
        sample.reshape(&schema, |_, _, values| {
            values.splice(at..=at, fields.values().iter().cloned());
            Ok(())
        })
    }
}

/// Fails where a name is there twice.
fn once_each(schema: &Schema) -> Result<()> {
    let names: Vec<_> = schema.names().iter().map(Str::as_str).collect();
    match repeated(&names) {
        Some(twice) => Err(Error::invalid("a field of this name is there already").context("field", twice)),
        None => Ok(()),
    }
}

/// A schema with the names of a struct's fields in its place.
fn spread(schema: &Schema, at: usize, within: &Schema) -> Schema {
    let names = schema.names();
    let inner = within.names().iter().map(|name| Str::from(format!("{}.{name}", names[at])));
    Schema::new(names[..at].iter().cloned().chain(inner).chain(names[at + 1..].iter().cloned()))
}

#[cfg(test)]
mod tests {
    use forebay_core::{Options, Value, random::Rng};

    use super::*;
    use crate::testing::{map, sample, small_host};

    fn flatten(options: &str) -> Flatten {
        Flatten::new(FlattenOptions::parse(options).unwrap()).unwrap()
    }

    fn of(fields: &[(&str, Value)]) -> Value {
        Value::structure(fields.iter().map(|(name, value)| ((*name).into(), value.clone())).collect())
    }

    fn birds() -> Sample {
        let deep = of(&[("x", 3_i64.into())]);
        let meta = of(&[("lang", "de".into()), ("deep", deep)]);
        sample(
            1,
            &[("meta", meta), ("id", 7_i64.into()), ("none", of(&[])), ("size", of(&[("w", 2_i64.into())]))],
        )
    }

    #[test]
    fn structs_become_fields() {
        let host = small_host();
        let deep = of(&[("x", 3_i64.into())]);
        let (lang, id, width) = (("meta.lang", "de".into()), ("id", 7_i64.into()), ("size.w", 2_i64.into()));
        let all = sample(1, &[lang.clone(), ("meta.deep", deep.clone()), id.clone(), width.clone()]);
        let pipe = flatten("{}");
        assert_eq!(map(&pipe, &birds(), &host).unwrap(), all);
        let more = map(&pipe, &all, &host).unwrap();
        let wanted = [lang.clone(), ("meta.deep.x", 3_i64.into()), id.clone(), width.clone()];
        assert_eq!(more, sample(1, &wanted), "one level at a time");
        assert_eq!(map(&pipe, &more, &host).unwrap(), more);
        let one = map(&flatten(r#"{"fields": "size"}"#), &birds(), &host).unwrap();
        let mut wanted = birds();
        wanted.take("size");
        wanted.set("size.w", 2_i64);
        assert_eq!(one, wanted);
        let two = map(&flatten(r#"{"fields": ["none", "meta"]}"#), &birds(), &host).unwrap();
        let size = ("size", of(&[("w", 2_i64.into())]));
        assert_eq!(two, sample(1, &[lang, ("meta.deep", deep), id, size]));
    }

    #[test]
    fn the_fields_are_those_of_each_sample() {
        let host = small_host();
        let pipe = flatten("{}");
        for round in 0..2 {
            for (value, wanted) in [
                (of(&[("a", round.into())]), vec![("s.a", round.into())]),
                (
                    of(&[("b", round.into()), ("a", 1_i64.into())]),
                    vec![("s.b", round.into()), ("s.a", 1_i64.into())],
                ),
                (Value::from(round), vec![("s", round.into())]),
            ] {
                assert_eq!(map(&pipe, &sample(1, &[("s", value)]), &host).unwrap(), sample(1, &wanted));
            }
        }
    }

    #[test]
    fn refuses_what_does_not_work() {
        let host = small_host();
        let twice = sample(1, &[("s.a", 1_i64.into()), ("s", of(&[("a", 2_i64.into())]))]);
        let error = map(&flatten("{}"), &twice, &host).unwrap_err();
        assert_eq!(
            (error.get("field"), error.message()),
            (Some("s.a"), "a field of this name is there already")
        );
        let error = map(&flatten(r#"{"fields": "id"}"#), &birds(), &host).unwrap_err();
        assert_eq!((error.get("field"), error.message()), (Some("id"), "expected a struct"));
        assert_eq!(
            map(&flatten(r#"{"fields": ["z"]}"#), &birds(), &host).unwrap_err().get("field"),
            Some("z")
        );
        let twice = FlattenOptions { fields: Some(OneOrMany(vec!["a".into(), "a".into()])) };
        assert_eq!(Flatten::new(twice).unwrap_err().get("option"), Some("fields"));
    }

    /// A field of this name: a number, or a struct of up to three fields, some of which are structs.
    fn random_value(rng: &mut Rng, depth: u32) -> Value {
        if depth == 0 || rng.bool(0.4) {
            return (rng.below(100) as i64).into();
        }
        let names: Vec<_> = ["x", "y", "z"].into_iter().filter(|_| rng.bool(0.5)).collect();
        of(&names.into_iter().map(|name| (name, random_value(rng, depth - 1))).collect::<Vec<_>>())
    }

    #[test]
    fn equals_the_definition_whatever_comes() {
        let (mut rng, host, all) = (Rng::new(38, 0), small_host(), flatten("{}"));
        let (mut clashes, mut whole) = (0, 0);
        for uid in 0..400 {
            let mut names = ["s", "t", "s.x", "u"];
            names.rotate_left(rng.below(4) as usize);
            let names: Vec<_> = names.into_iter().filter(|_| rng.bool(0.7)).collect();
            let input: Vec<_> = names.iter().map(|&name| (name, random_value(&mut rng, 2))).collect();
            let chosen: Option<Vec<&str>> = rng.bool(0.5).then(|| {
                let structs = input.iter().filter(|(_, value)| matches!(value.view(), View::Struct(_)));
                structs.map(|(name, _)| *name).filter(|_| rng.bool(0.5)).rev().collect()
            });
            let mut wanted: Vec<(String, Value)> = Vec::new();
            for (name, value) in &input {
                match value.view() {
                    View::Struct(fields) if chosen.as_ref().is_none_or(|chosen| chosen.contains(name)) => {
                        wanted.extend(
                            fields.fields().map(|(inner, value)| (format!("{name}.{inner}"), value.clone())),
                        )
                    }
                    _ => wanted.push(((*name).to_owned(), value.clone())),
                }
            }
            let input = sample(uid, &input);
            let found = match &chosen {
                Some(chosen) => map(&flatten(&format!(r#"{{"fields": {chosen:?}}}"#)), &input, &host),
                None => map(&all, &input, &host),
            };
            if wanted.iter().filter(|(name, _)| name == "s.x").count() == 2 {
                clashes += 1;
                assert_eq!(found.unwrap_err().get("field"), Some("s.x"));
            } else {
                whole += 1;
                let wanted: Vec<_> =
                    wanted.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
                assert_eq!(found.unwrap(), sample(uid, &wanted), "{chosen:?} of {input:?}");
            }
        }
        assert!(clashes > 10 && whole > 200, "{clashes} clashes, {whole} others");
    }
}
