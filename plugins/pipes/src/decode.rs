//! `decode`: bytes to values, by the host's choice among all decoders.
//!
//! ```toml
//! [decode]
//! page = "fields"
//! examples = ['''forebay head -n 1 "files 'examples/photos/*.tar' | untar | decode [jpg] decoders=['jpg=jpeg']"''']
//! cases = ['range N | map "a.txt=string(value)" | decode']
//! ```

use forebay_core::{
    AnyDecoder, Buffer, Context, DataPipe, Error, ErrorKind, Level, Map, OneOrMany, PipeInfo, PipePlacement,
    Result, Sample, Value, View, Wanted, options,
};

use crate::{
    rename::pair,
    select::{place, repeated},
};

/// As many bytes as a decoder is shown to tell whether they are its own.
const HEAD: usize = 4096;
/// The most decoders for one value, each for the bytes that the one before gave: some packed bytes unpack to themselves, for ever.
const LAYERS: usize = 5;
/// So sure must a decoder be that bytes are its own, where their name does not say so.
const SURE: u8 = 128;
/// So many first bytes may be those of a format by chance.
const CHANCE: usize = 2;
/// What tables call the parts of an encoded picture or sound.
const BYTES: &str = "bytes";
const PATH: &str = "path";

options! {
    /// Options of `decode`.
    pub struct DecodeOptions {
        /// The fields to decode; null for all that hold bytes for which there is a decoder.
        fields: Option<OneOrMany<String>> = null;
        /// `field=decoder`, for each field whose decoder you choose yourself.
        decoders: Vec<String> = [];
        /// Fail on bytes that no decoder takes; null fails for those in `fields` only.
        strict: Option<bool> = null;
    }
}

/// Decodes fields that hold bytes, each by the decoder that the host ranks highest for its extension
/// and its first bytes.
///
/// A struct of `bytes` and `path` and nothing else, as tables have for pictures and sound, is what its bytes are decoded to, by the path's
/// extension.
///
/// Where a decoder gives bytes, as one of packed bytes does, they are decoded in turn, by what stands before the last dot of the field's
/// name: `json.gz` is unpacked and gives JSON. The choice is asked for anew for each value, so that it depends on nothing but that value.
///
/// Bytes that a decoder claims, by the name of their field or by how they begin, and that it cannot decode are an error. Bytes that only
/// happen to begin as a format does stay as they are: text, and bytes of which two at most are those of a format. What stays bytes is noted for
/// the host, by field; in `fields`, and in all fields if `strict` is true, it is an error.
#[derive(Debug)]
pub struct Decode {
    fields: Option<Vec<String>>,
    pins: Vec<(String, String)>,
    strict: Option<bool>,
}

impl DataPipe for Decode {
    const INFO: PipeInfo = PipeInfo {
        name: "decode",
        summary: "Bytes to values, by the best decoder that is installed",
        placement: PipePlacement { decodes: true, ..PipePlacement::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = DecodeOptions;

    fn new(options: DecodeOptions) -> Result<Self> {
        let refuse = |message: String| Error::invalid(message).context("option", "decoders");
        let fields = options.fields.map(|fields| fields.0);
        let mut pins = Vec::new();
        for text in &options.decoders {
            let (field, decoder) =
                pair(text).ok_or_else(|| refuse(format!("found `{text}`, expected `field=decoder`")))?;
            if fields.as_ref().is_some_and(|fields| fields.iter().all(|known| known != field)) {
                return Err(refuse(format!("`{field}` is not among the fields to decode")));
            }
            pins.push((field.to_owned(), decoder.to_owned()));
        }
        let pinned: Vec<_> = pins.iter().map(|(field, _)| field).collect();
        if let Some(twice) = repeated(&pinned) {
            return Err(refuse(format!("`{twice}` has two decoders")));
        }
        Ok(Self { fields, pins, strict: options.strict })
    }
}

impl Map for Decode {
    fn map(&self, sample: &mut Sample, cx: &Context) -> Result<()> {
        if let Some(fields) = &self.fields {
            for name in fields {
                let at = place(sample.schema(), name)?;
                self.decode(name, &mut sample.values_mut()[at], cx)?;
            }
            return Ok(());
        }
        let schema = sample.schema().clone();
        for (name, value) in schema.names().iter().zip(sample.values_mut()) {
            self.decode(name, value, cx)?;
        }
        Ok(())
    }
}

impl Decode {
    fn decode(&self, name: &str, value: &mut Value, cx: &Context) -> Result<()> {
        let pin = self.pins.iter().find(|(field, _)| field == name).map(|(_, decoder)| decoder.as_str());
        // One that was asked for must decode.
        let must = pin.is_some() || self.strict.unwrap_or(self.fields.is_some());
        let Some((bytes, path)) = encoded(value) else { return Ok(()) };
        let decoded = layers(path.unwrap_or(name), bytes, (pin, must), cx);
        let Layers { found, left } = decoded.map_err(|error| error.context("field", name))?;
        if let Some(found) = found {
            *value = found;
        }
        if let Some(left) = left {
            cx.log(Level::Info, &format!("field `{name}` stays bytes\n{}", left.message()));
        }
        Ok(())
    }
}

/// What bytes decode to.
#[derive(Default)]
struct Layers {
    /// None where nothing decodes them.
    found: Option<Value>,
    /// Why what was found, or all of it, is still bytes.
    left: Option<Error>,
}

/// The bytes of a value, and what they are called if it says so.
fn encoded(value: &Value) -> Option<(&Buffer, Option<&str>)> {
    match value.view() {
        View::Bytes(bytes) => Some((bytes, None)),
        View::Struct(fields) if fields.values().len() == 2 => {
            let path = fields.get(PATH)?;
            let path = path.as_str().map(Some).or(matches!(path.view(), View::Null).then_some(None))?;
            Some((fields.get(BYTES)?.as_bytes()?, path))
        }
        _ => None,
    }
}

/// What bytes decode to, layer by layer.
fn layers(name: &str, bytes: &Buffer, (pin, must): (Option<&str>, bool), cx: &Context) -> Result<Layers> {
    let (mut found, mut rest): (Option<Value>, _) = (None, name);
    for layer in 0..LAYERS {
        let bytes = match found.as_ref().map(Value::view) {
            None => bytes,
            Some(View::Bytes(bytes)) => bytes,
            Some(_) => return Ok(Layers { found, left: None }),
        };
        // What follows the last dot, as `png` in `seg.png`.
        let (before, extension) = rest.rsplit_once('.').unwrap_or((rest, rest));
        let head = &bytes[..bytes.len().min(HEAD)];
        let outer = layer == 0;
        // A name such as `gz` is that of the layer around, and may say nothing of what is inside.
        let told = outer || before != extension;
        let decoder = match cx.decoder(extension, head, pin.filter(|_| outer)) {
            Err(error) if error.kind() == ErrorKind::Unsupported && !(must && outer) => {
                return Ok(Layers { found, left: Some(error) });
            }
            Err(error) if error.kind() == ErrorKind::Corrupt && !told => {
                return Ok(Layers { found, left: Some(error) });
            }
            decoder => decoder?,
        };
        found = match decoder.decode(bytes, &Wanted { extension, ..Wanted::default() }, cx) {
            Err(error)
                if outer
                    && !must
                    && is_refusal(&error)
                    && !claims(&decoder, (extension, head), &error, cx) =>
            {
                return Ok(Layers { left: Some(error), ..Layers::default() });
            }
            decoded => Some(decoded?),
        };
        rest = before;
    }
    match found.as_ref().map(Value::view) {
        Some(View::Bytes(_)) => Err(Error::limit(format!("still bytes after {LAYERS} decoders"))),
        _ => Ok(Layers { found, left: None }),
    }
}

/// Whether bytes that a decoder was chosen for, and cannot decode, must be its own: by their name, or by more of how they begin than
/// may be chance. Text begins as it likes, and numbers begin with zeros and ones.
///
/// A kind of the format that its decoder does not read is no damage: unless the name says otherwise such bytes stay, and that is told.
fn claims(decoder: &AnyDecoder, (extension, head): (&str, &[u8]), error: &Error, cx: &Context) -> bool {
    let by_chance = || {
        let few = &head[..head.len().min(CHANCE)];
        is_text(head)
            || [[0; CHANCE], [0xff; CHANCE]].iter().any(|few| head.starts_with(few))
            || cx.decoder(extension, few, None).is_ok()
    };
    let sure = || decoder.probe(head, extension).is_ok_and(|sure| sure >= SURE);
    is_named(extension, cx) || error.kind() != ErrorKind::Unsupported && sure() && !by_chance()
}

/// Whether bytes are text, which may be cut off within a letter.
fn is_text(bytes: &[u8]) -> bool {
    let text = match str::from_utf8(bytes) {
        Ok(text) => text,
        Err(cut) if cut.error_len().is_none() => {
            str::from_utf8(&bytes[..cut.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return false,
    };
    !text.chars().any(|letter| letter.is_control() && !letter.is_whitespace())
}

/// Whether there are decoders for an extension.
fn is_named(extension: &str, cx: &Context) -> bool {
    !matches!(cx.decoder(extension, &[], None), Err(error) if error.kind() == ErrorKind::Unsupported)
}

/// Whether an error says that bytes are not what a decoder reads.
fn is_refusal(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported | ErrorKind::Invalid)
}

#[cfg(test)]
mod tests {
    use forebay_core::{Decoder, DecoderInfo, NoOptions, Options};
    use forebay_testkit::{decoder, logged};

    use super::*;
    use crate::testing::{Host, map, sample, small_host};

    /// Gives how many bytes there were.
    struct Count;

    impl Decoder for Count {
        const INFO: DecoderInfo = DecoderInfo { name: "count", ..DecoderInfo::DEFAULT };
        type Options = NoOptions;

        fn new(_: NoOptions) -> Result<Self> {
            Ok(Self)
        }

        fn decode(&self, bytes: &Buffer, wanted: &Wanted, _: &Context) -> Result<Value> {
            if bytes.is_empty() {
                return Err(Error::corrupt(format!("an empty {}", wanted.extension)));
            }
            Ok((bytes.len() as u64).into())
        }
    }

    /// Refuses everything.
    struct Empty;

    impl Decoder for Empty {
        const INFO: DecoderInfo = DecoderInfo { name: "empty", ..DecoderInfo::DEFAULT };
        type Options = NoOptions;

        fn new(_: NoOptions) -> Result<Self> {
            Ok(Self)
        }

        fn decode(&self, _: &Buffer, _: &Wanted, _: &Context) -> Result<Value> {
            Err(Error::corrupt("an empty bin"))
        }
    }

    /// What `Empty` says is its own, no text; the first without doubt.
    const BEGINNINGS: [&[u8]; 3] = [b"\x89!x", b"\0\0\x01\0", b"\xff\xff\xff\xff"];

    /// Gives what follows the first byte, as a decoder of packed bytes does.
    struct Unwrap;

    impl Decoder for Unwrap {
        const INFO: DecoderInfo = DecoderInfo { name: "unwrap", ..DecoderInfo::DEFAULT };
        type Options = NoOptions;

        fn new(_: NoOptions) -> Result<Self> {
            Ok(Self)
        }

        fn decode(&self, bytes: &Buffer, _: &Wanted, _: &Context) -> Result<Value> {
            Ok(bytes.slice(1..).into())
        }
    }

    /// Decodes `bin` that begins with an `a` or is named without a look at it, anything if told to `count`, and unwraps what begins with a `(`.
    fn host() -> Host {
        small_host().decoders(|extension, head, name| {
            assert!(head.len() <= HEAD);
            match (extension, head.first(), name) {
                (_, Some(b'('), "") => decoder::<Unwrap>(),
                (_, Some(b'!'), "") => decoder::<Empty>(),
                (_, _, "") if BEGINNINGS.iter().any(|own| head.starts_with(own)) => decoder::<Empty>(),
                ("bin", None | Some(b'a'), "") | (_, _, "count") => decoder::<Count>(),
                _ => Err(Error::unsupported("nothing fits")),
            }
        })
    }

    fn bytes(text: &[u8]) -> Value {
        Buffer::from(text.to_vec()).into()
    }

    fn decode(options: &str, fields: &[(&str, Value)]) -> Result<Vec<Value>> {
        let pipe = Decode::new(DecodeOptions::parse(options)?)?;
        Ok(map(&pipe, &sample(1, fields), &host())?.values().to_vec())
    }

    #[test]
    fn decodes_what_it_can() {
        let fields = [
            ("a.x.bin", bytes(b"abc")),
            ("bin", bytes(&[b'a'; 5000])),
            ("b.bin", bytes(b"xyz")),
            ("n", 4_i64.into()),
        ];
        let expected = [3_u64.into(), 5000_u64.into(), bytes(b"xyz"), 4_i64.into()];
        assert_eq!(decode("{}", &fields).unwrap(), expected);
        let one = decode(r#"{"fields": ["bin"]}"#, &fields).unwrap();
        assert_eq!(one[..2], [bytes(b"abc"), 5000_u64.into()]);
    }

    #[test]
    fn bytes_that_come_out_are_decoded_by_the_rest_of_the_name() {
        let fields = [
            ("a.bin.gz", bytes(b"(abc")),
            ("bin", bytes(b"((abcd")),
            ("b.txt.gz", bytes(b"(xyz")),
            ("bin.x", bytes(b"((((abc")),
        ];
        let expected = [3_u64.into(), 4_u64.into(), bytes(b"xyz"), 3_u64.into()];
        assert_eq!(decode("{}", &fields).unwrap(), expected);
        assert_eq!(decode(r#"{"fields": ["b.txt.gz"]}"#, &fields).unwrap()[2], bytes(b"xyz"));
        let error = decode("{}", &[("bin", bytes(b"(((((((abc"))]).unwrap_err();
        assert_eq!((error.kind(), error.get("field")), (ErrorKind::Limit, Some("bin")));
    }

    #[test]
    fn named_fields_must_decode() {
        let fields = [("b.bin", bytes(b"xyz")), ("bin", bytes(b"abc"))];
        let error = decode(r#"{"fields": ["bin", "b.bin"]}"#, &fields).unwrap_err();
        assert_eq!((error.kind(), error.get("field")), (ErrorKind::Unsupported, Some("b.bin")));
        assert_eq!(decode(r#"{"fields": ["jpg"]}"#, &fields).unwrap_err().get("field"), Some("jpg"));
    }

    #[test]
    fn pins_choose_the_decoder() {
        let fields = [("b.bin", bytes(b"xyz")), ("bin", bytes(b"abcd"))];
        assert_eq!(
            decode(r#"{"decoders": ["b.bin=count"]}"#, &fields).unwrap(),
            [3_u64.into(), 4_u64.into()]
        );
        let error = decode(r#"{"decoders": ["b.bin=other"]}"#, &fields).unwrap_err();
        assert_eq!((error.kind(), error.get("field")), (ErrorKind::Unsupported, Some("b.bin")));
        for wrong in [
            r#"{"decoders": ["bin"]}"#,
            r#"{"decoders": ["bin=a", "bin=b"]}"#,
            r#"{"decoders": ["bin=a"], "fields": ["jpg"]}"#,
        ] {
            assert_eq!(decode(wrong, &fields).unwrap_err().get("option"), Some("decoders"), "{wrong}");
        }
    }

    #[test]
    fn what_begins_as_a_format_and_is_none_stays_bytes_unless_its_name_says_so() {
        let fields = [("id", bytes(b"!x")), ("n", bytes(b"!"))];
        assert_eq!(decode("{}", &fields).unwrap(), [bytes(b"!x"), bytes(b"!")]);
        let error = decode(r#"{"fields": ["id"]}"#, &fields).unwrap_err();
        assert_eq!((error.message(), error.get("field")), ("an empty bin", Some("id")));
        // Of numbers the first may be anything, and so may two bytes of an id.
        for chance in [&b"\0\0\x01\0\x02\0"[..], b"\xff\xff\xff\xff", b"!\xe9\xff", b"!\0\x01"] {
            assert_eq!(decode("{}", &[("id", bytes(chance))]).unwrap(), [bytes(chance)], "{chance:?}");
        }
    }

    #[test]
    fn what_begins_as_a_format_beyond_chance_and_does_not_decode_is_an_error() {
        let damaged = [BEGINNINGS[0], b"\0\0"].concat();
        let error = decode("{}", &[("id", bytes(&damaged))]).unwrap_err();
        assert_eq!((error.message(), error.get("field")), ("an empty bin", Some("id")));
    }

    #[test]
    fn what_stays_bytes_is_noted_and_in_strict_fields_an_error() {
        let fields =
            [("b.bin", bytes(b"xyz")), ("c", bytes(b"!x")), ("bin", bytes(b"abc")), ("d.gz", bytes(b"(x"))];
        let _ = logged();
        let as_it_was = decode("{}", &fields).unwrap();
        assert_eq!(as_it_was[..3], [bytes(b"xyz"), bytes(b"!x"), 3_u64.into()]);
        let told = [
            "field `b.bin` stays bytes\nnothing fits",
            "field `c` stays bytes\nan empty bin",
            "field `d.gz` stays bytes\nnothing fits",
        ];
        assert_eq!(logged(), told);
        let error = decode(r#"{"strict": true}"#, &fields).unwrap_err();
        assert_eq!((error.kind(), error.get("field")), (ErrorKind::Unsupported, Some("b.bin")));
        let lax = decode(r#"{"fields": ["b.bin"], "strict": false}"#, &fields).unwrap();
        assert_eq!((&lax[0], logged()), (&bytes(b"xyz"), vec![told[0].to_owned()]));
    }

    #[test]
    fn encoded_values_of_tables_become_what_they_hold() {
        let encoded = |data: &[u8], path: Value| {
            Value::structure(vec![("bytes".into(), bytes(data)), ("path".into(), path)])
        };
        let more = Value::structure(vec![("bytes".into(), bytes(b"abc")), ("size".into(), 3_i64.into())]);
        let fields = [
            ("image", encoded(b"abc", "0001.bin".into())),
            ("x.bin", encoded(b"abcd", Value::NULL)),
            ("other", encoded(b"xyz", "0001.txt".into())),
            ("more", more.clone()),
        ];
        let expected = [3_u64.into(), 4_u64.into(), encoded(b"xyz", "0001.txt".into()), more];
        assert_eq!(decode("{}", &fields).unwrap(), expected);
        assert_eq!(decode(r#"{"fields": ["image"]}"#, &fields).unwrap()[0], 3_u64.into());
    }

    #[test]
    fn a_failure_names_the_field() {
        let error = decode("{}", &[("x.bin", bytes(b""))]).unwrap_err();
        assert_eq!((error.message(), error.get("field")), ("an empty bin", Some("x.bin")));
    }
}
