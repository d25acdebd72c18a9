//! `parse_example`: the features of a `tf.train.Example` as fields.
//!
//! ```toml
//! [parse_example]
//! examples = ['''forebay explain "files 'train-*.tfrecord' | tfrecords | parse_example ['image=bytes', 'label=int64[]'] | decode"''']
//! ```

use std::sync::Mutex;

use forebay_core::{
    BufferMut, Context, DataPipe, Error, Map, PipeInfo, Result, Sample, Schema, Str, Value, View, options,
};
use forebay_unpack::peek;

use crate::{
    example::{Kind, Wish, begins_example, example, sequence_example, within},
    source::first_record,
};

options! {
    /// Options of `parse_example`.
    pub struct ParseExampleOptions {
        /// The features to give, in this order: `name`, `name=type` or `name=type[2,3]`; empty for all, sorted by name. Types are
        /// bytes, str, float32 and int64; `[]` is a single value.
        features: Vec<String> = [];
        /// The field with the message; it is removed.
        field: String = "bytes";
        /// The message is a `tf.train.SequenceExample`.
        sequence: bool = false;
    }
}

/// Replaces a field that holds a `tf.train.Example` by a field for each feature; see [`parse_example`](crate::parse_example).
#[derive(Debug)]
pub struct ParseExample {
    wishes: Vec<Wish>,
    field: String,
    sequence: bool,
    /// The last sample's names, so that samples share them. It never changes what comes out.
    last: Mutex<Schema>,
}

impl DataPipe for ParseExample {
    const INFO: PipeInfo = PipeInfo {
        name: "parse_example",
        summary: "The features of tf.train.Example messages as fields",
        ..PipeInfo::DEFAULT
    };
    type Options = ParseExampleOptions;

    /// Behind `tfrecords`: whether the first record is an Example, also in a head of packed bytes.
    fn probe(head: &[u8], _: &str) -> u8 {
        let inside = peek(head, head.len());
        let found = first_record(head).or_else(|| first_record(inside.as_deref()?));
        if found.is_some_and(|(len, data)| begins_example(data, len)) { 255 } else { 0 }
    }

    fn new(options: ParseExampleOptions) -> Result<Self> {
        let wishes: Vec<_> = options.features.iter().map(|text| wish(text)).collect::<Result<_>>()?;
        for (at, one) in wishes.iter().enumerate() {
            if wishes[..at].iter().any(|other| other.name == one.name) {
                return Err(Error::invalid(format!("`{}` stands there twice", one.name))
                    .context("option", "features"));
            }
        }
        let ParseExampleOptions { field, sequence, .. } = options;
        Ok(Self { wishes, field, sequence, last: Mutex::new(Schema::default()) })
    }
}

impl Map for ParseExample {
    fn map(&self, sample: &mut Sample, cx: &Context) -> Result<()> {
        let limit = cx.limits().bytes;
        self.parse(sample, &|len| {
            within(len, limit)?;
            cx.alloc(len)
        })
    }
}

impl ParseExample {
    fn parse(&self, sample: &mut Sample, alloc: &dyn Fn(usize) -> Result<BufferMut>) -> Result<()> {
        let message = match sample.get(&self.field).map(Value::view) {
            Some(View::Bytes(bytes)) => bytes.clone(),
            found => {
                let found = found.map_or("none".to_owned(), |view| format!("{view:?}"));
                let error =
                    format!("expected a field `{}` with the bytes of an Example, found {found}", self.field);
                return Err(Error::invalid(error));
            }
        };
        let parse = if self.sequence { sequence_example } else { example };
        let features =
            parse(&message, &self.wishes, alloc).map_err(|error| error.context("field", &self.field))?;
        let kept = sample.fields().filter(|(name, _)| name.as_str() != self.field);
        let kept: Vec<(Str, Value)> = kept.map(|(name, value)| (name.clone(), value.clone())).collect();
        if let Some((twice, _)) =
            kept.iter().find(|(name, _)| features.iter().any(|(other, _)| other == name))
        {
            let message = "a feature of the name of a field that the sample has; rename or drop the field";
            return Err(Error::invalid(message).context("feature", twice));
        }
        let (names, values): (Vec<Str>, Vec<Value>) = features.into_iter().chain(kept).unzip();
        let schema = self.schema(names);
        sample.replace(schema, values);
        Ok(())
    }

    /// The schema with these names: the last sample's, where it has the same.
    fn schema(&self, names: Vec<Str>) -> Schema {
        let Ok(mut last) = self.last.lock() else { return Schema::new(names) };
        if last.names() != names {
            *last = Schema::new(names);
        }
        last.clone()
    }
}

/// Reads `name`, `name=type` or `name=type[2,3]`. A name may have `=` in it, if a type follows.
fn wish(text: &str) -> Result<Wish> {
    let Some((name, rest)) = text.rsplit_once('=') else {
        return Ok(Wish { name: text.into(), kind: None, shape: None });
    };
    let refuse = || {
        let message = format!(
            "found `{text}`, expected name, name=type or name=type[2,3], with bytes, str, float32 or int64"
        );
        Error::invalid(message).context("option", "features")
    };
    let (kind, shape) = match rest.split_once('[') {
        Some((kind, axes)) => (kind, Some(axes.strip_suffix(']').ok_or_else(refuse)?)),
        None => (rest, None),
    };
    let kinds = [Kind::Bytes, Kind::Text, Kind::Float, Kind::Int];
    let kind = kinds.into_iter().find(|known| known.name() == kind).ok_or_else(refuse)?;
    let axes = |text: &str| match text.trim() {
        "" => Ok(Vec::new()),
        text => text.split(',').map(|axis| axis.trim().parse().map_err(|_| refuse())).collect(),
    };
    Ok(Wish { name: name.into(), kind: Some(kind), shape: shape.map(axes).transpose()? })
}

#[cfg(test)]
mod tests {
    use forebay_core::{Buffer, ErrorKind, Key, Options as _};

    use super::*;

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, bytes.len() as u8], bytes].concat()
    }

    fn entry(name: &str, feature: &[u8]) -> Vec<u8> {
        field(1, &[field(1, name.as_bytes()), field(2, feature)].concat())
    }

    fn bytes(values: &[&[u8]]) -> Vec<u8> {
        field(1, &values.iter().flat_map(|value| field(1, value)).collect::<Vec<_>>())
    }

    fn floats(values: &[f32]) -> Vec<u8> {
        field(2, &field(1, &values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>()))
    }

    /// Numbers that are not packed, as proto2 has them.
    fn ints(values: &[u8]) -> Vec<u8> {
        field(3, &values.iter().flat_map(|&value| [8, value]).collect::<Vec<_>>())
    }

    fn message() -> Vec<u8> {
        let minus = field(3, &field(1, &[255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 7]));
        let entries = [
            entry("z", &bytes(&[b"heron"])),
            entry("f", &floats(&[1.5, -2.0])),
            entry("i", &minus),
            entry("u", &ints(&[4, 5, 6])),
            entry("list", &bytes(&[b"a", b"b"])),
            entry("e", &[]),
        ];
        field(1, &entries.concat())
    }

    fn sequence() -> Vec<u8> {
        let list = |name: &str, steps: &[Vec<u8>]| {
            let steps: Vec<u8> = steps.iter().flat_map(|step| field(1, step)).collect();
            field(1, &[field(1, name.as_bytes()), field(2, &steps)].concat())
        };
        let lists = [
            list("even", &[ints(&[1, 2]), ints(&[3, 4])]),
            list("ragged", &[ints(&[1]), ints(&[2, 3])]),
            list("words", &[bytes(&[b"a"]), bytes(&[b"b"])]),
            list("none", &[]),
        ];
        [field(1, &entry("id", &bytes(&[b"x"]))), field(2, &lists.concat())].concat()
    }

    fn parse(options: &str, message: &[u8]) -> Result<Sample> {
        let pipe = ParseExample::new(ParseExampleOptions::parse(options)?)?;
        let mut sample = Sample::new(1, Key::default());
        sample.set("label", 9_i64);
        sample.set("bytes", Buffer::from(message.to_vec()));
        pipe.parse(&mut sample, &|len| Ok(BufferMut::from_owner(vec![0xa5; len])))?;
        Ok(sample)
    }

    fn tensor(sample: &Sample, name: &str) -> (Vec<i64>, Vec<u8>) {
        let tensor = sample.get(name).and_then(Value::as_tensor).unwrap();
        (tensor.shape().to_vec(), tensor.data().to_vec())
    }

    fn le(values: &[i64]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    #[test]
    fn all_features_come_sorted_by_name() {
        let sample = parse("{}", &message()).unwrap();
        let names: Vec<_> = sample.schema().names().iter().map(|name| name.as_str()).collect();
        assert_eq!(names, ["e", "f", "i", "list", "u", "z", "label"]);
        assert_eq!(tensor(&sample, "i"), (vec![2], le(&[-1, 7])));
        assert_eq!(tensor(&sample, "u"), (vec![3], le(&[4, 5, 6])));
        assert_eq!(tensor(&sample, "f").1, [1.5_f32.to_le_bytes(), (-2_f32).to_le_bytes()].concat());
        assert_eq!(sample.get("z").unwrap(), &Value::from(Buffer::from(b"heron".to_vec())));
        assert!(matches!(sample.get("list").unwrap().view(), View::List([_, _])));
        assert_eq!(sample.get("e").unwrap(), &Value::NULL);
    }

    #[test]
    fn wishes_choose_order_types_and_shapes() {
        let options = r#"{"features": ["z=str", "u=int64[3,1]", "missing=float32", "f", "list=bytes[2]"]}"#;
        let sample = parse(options, &message()).unwrap();
        let names: Vec<_> = sample.schema().names().iter().map(|name| name.as_str()).collect();
        assert_eq!(names, ["z", "u", "missing", "f", "list", "label"]);
        assert_eq!(sample.get("z").and_then(Value::as_str), Some("heron"));
        assert_eq!(tensor(&sample, "u"), (vec![3, 1], le(&[4, 5, 6])));
        assert_eq!(sample.get("missing").unwrap(), &Value::NULL);
        for (wrong, feature) in
            [("u=float32", "u"), ("u=int64[2]", "u"), ("z=int64", "z"), ("u=int64[]", "u")]
        {
            let error = parse(&format!(r#"{{"features": ["{wrong}"]}}"#), &message()).unwrap_err();
            assert_eq!((error.kind(), error.get("feature")), (ErrorKind::Corrupt, Some(feature)), "{wrong}");
        }
        for wrong in ["u=int32", "u=int64[2", "u=int64[a]", "u=", "u\", \"u"] {
            let error = parse(&format!(r#"{{"features": ["{wrong}"]}}"#), &message()).unwrap_err();
            assert_eq!(
                (error.kind(), error.get("option")),
                (ErrorKind::Invalid, Some("features")),
                "{wrong}"
            );
        }
        assert_eq!(parse(r#"{"field": "other"}"#, &message()).unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(
            parse("{}", &field(1, &entry("label", &ints(&[1])))).unwrap_err().get("feature"),
            Some("label")
        );
    }

    #[test]
    fn steps_of_one_length_are_stacked() {
        let sample = parse(r#"{"sequence": true}"#, &sequence()).unwrap();
        assert_eq!(tensor(&sample, "even"), (vec![2, 2], le(&[1, 2, 3, 4])));
        assert!(matches!(sample.get("ragged").unwrap().view(), View::List([_, _])));
        let word = |text: &[u8]| Value::from(Buffer::from(text.to_vec()));
        assert_eq!(sample.get("words").unwrap(), &Value::list(vec![word(b"a"), word(b"b")]));
        assert_eq!(sample.get("none").unwrap(), &Value::list(vec![]));
        assert_eq!(sample.get("id").unwrap(), &word(b"x"));
        let single = parse(r#"{"sequence": true, "features": ["even=int64[1,2]"]}"#, &sequence()).unwrap();
        assert_eq!(tensor(&single, "even").0, [2, 1, 2]);
    }

    #[test]
    fn an_example_is_told_by_how_it_begins() {
        let tells = |message: &[u8], seen: usize| {
            let len = (message.len() as u64).to_le_bytes();
            let sum = crc32c::crc32c(&len).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes();
            let head = [&len[..], &sum, message].concat();
            ParseExample::probe(&head[..head.len().min(12 + seen)], "") > 0
        };
        let whole = message();
        for seen in 0..=whole.len() {
            // The first feature is called `z`: 4 bytes of lengths, 3 of the name, 4 of the list's.
            assert_eq!(tells(&whole, seen), seen >= 11, "{seen}");
        }
        assert!(tells(&field(1, &entry("e", &[])), 4096));
        for other in [&b"heron"[..], b"", b"\x0a\x00", &sequence()] {
            assert!(!tells(other, 4096), "{other:?}");
        }
        // Any length that is another no longer adds up.
        for at in [1, 3, 5, 8, 10] {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            assert!(!tells(&changed, 4096), "{at}");
        }
        assert_eq!(ParseExample::probe(&[], "tfrecord"), 0);
    }

    #[test]
    fn samples_of_equal_names_share_them() {
        let pipe = ParseExample::new(ParseExampleOptions::parse("{}").unwrap()).unwrap();
        let one = || {
            let mut sample = Sample::new(1, Key::default());
            sample.set("bytes", Buffer::from(message()));
            pipe.parse(&mut sample, &|len| Ok(BufferMut::zeroed(len))).unwrap();
            sample
        };
        assert!(one().schema().is(one().schema()));
    }

    #[test]
    fn damage_is_an_error_or_a_value() {
        for (options, whole) in [("{}", message()), (r#"{"sequence": true}"#, sequence())] {
            let mut refused = 0;
            for len in 1..whole.len() {
                refused += u32::from(parse(options, &whole[..len]).is_err());
            }
            for at in 0..whole.len() {
                for bit in 0..8 {
                    let mut bytes = whole.clone();
                    bytes[at] ^= 1 << bit;
                    refused += u32::from(parse(options, &bytes).is_err());
                }
            }
            assert!(refused > whole.len() as u32, "{refused}");
        }
    }
}
