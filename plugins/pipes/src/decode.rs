//! `decode`: bytes to values, by the host's choice among all decoders.

use forebay_core::{
    Context, DataPipe, Error, ErrorKind, Map, PipeInfo, Result, Sample, Value, View, Wanted, options,
};

use crate::{
    rename::pair,
    select::{place, repeated},
};

/// As many bytes as a decoder is shown to tell whether they are its own.
const HEAD: usize = 4096;
/// The most decoders for one value, each for the bytes that the one before gave: some packed bytes unpack to themselves, for ever.
const LAYERS: usize = 5;

options! {
    /// Options of `decode`.
    pub struct DecodeOptions {
        /// The fields to decode; null for all that hold bytes for which there is a decoder.
        fields: Option<Vec<String>> = null;
        /// `field=decoder`, one for each field whose decoder is not to be chosen.
        decoders: Vec<String> = [];
    }
}

/// Decodes fields that hold bytes, each by the decoder that the host ranks highest for its extension
/// and its first bytes.
///
/// Where a decoder gives bytes, as one of packed bytes does, they are decoded in turn, by what stands before the last dot of the field's
/// name: `json.gz` is unpacked and gives JSON. The choice is asked for anew for each value, so that it depends on nothing but that value.
#[derive(Debug)]
pub struct Decode {
    fields: Option<Vec<String>>,
    pins: Vec<(String, String)>,
}

impl DataPipe for Decode {
    const INFO: PipeInfo = PipeInfo {
        name: "decode",
        summary: "Bytes to values, by the best decoder that is installed",
        ..PipeInfo::DEFAULT
    };
    type Options = DecodeOptions;

    fn new(options: DecodeOptions) -> Result<Self> {
        let refuse = |message: String| Error::invalid(message).context("option", "decoders");
        let fields = options.fields;
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
        Ok(Self { fields, pins })
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
        self.layers(name, value, cx).map_err(|error| error.context("field", name))
    }

    fn layers(&self, name: &str, value: &mut Value, cx: &Context) -> Result<()> {
        let pin = self.pins.iter().find(|(field, _)| field == name).map(|(_, decoder)| decoder.as_str());
        // One that was asked for must decode.
        let must = pin.is_some() || self.fields.is_some();
        let mut rest = name;
        for layer in 0..LAYERS {
            let View::Bytes(bytes) = value.view() else { return Ok(()) };
            // What follows the last dot, as `png` in `seg.png`.
            let (before, extension) = rest.rsplit_once('.').unwrap_or((rest, rest));
            let head = &bytes[..bytes.len().min(HEAD)];
            let decoder = match cx.decoder(extension, head, pin.filter(|_| layer == 0)) {
                Err(error) if error.kind() == ErrorKind::Unsupported && !(must && layer == 0) => {
                    return Ok(());
                }
                found => found?,
            };
            *value = decoder.decode(bytes, &Wanted { extension, ..Wanted::default() }, cx)?;
            rest = before;
        }
        match value.view() {
            View::Bytes(_) => Err(Error::limit(format!("still bytes after {LAYERS} decoders"))),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::{Buffer, Decoder, DecoderInfo, NoOptions, Options};
    use forebay_testkit::decoder;

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

    /// Decodes `bin` that begins with an `a`, anything if told to `count`, and unwraps what begins with a `(`.
    fn host() -> Host {
        small_host().decoders(|extension, head, name| {
            assert!(head.len() <= HEAD);
            match (extension, head.first(), name) {
                (_, Some(b'('), "") => decoder::<Unwrap>(),
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
    fn a_failure_names_the_field() {
        let error = decode("{}", &[("x.bin", bytes(b""))]).unwrap_err();
        assert_eq!((error.message(), error.get("field")), ("an empty bin", Some("x.bin")));
    }
}
