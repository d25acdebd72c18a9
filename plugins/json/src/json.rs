//! `json`: one document to a value.
//!
//! ```toml
//! [json]
//! gives = "objects as structs, arrays as lists, numbers, text, truth values and null"
//! when = "one document a sample; for lines, use `json_lines`, for an array, `json_array`"
//! ```

use std::sync::Arc;

use forebay_core::{
    Arena, Buffer, Context, Decoder, DecoderInfo, Limits, Magic, NoOptions, Result, Value, Wanted,
};

use crate::{
    scan::{DEPTH, Scan},
    shapes::{ROOT, Shapes},
    value::{Reader, Rules},
};

/// As documents with an object in them begin, under any name; and then any, called `json`.
const BEGINNINGS: [Magic; 8] = [
    start(b"{\""),
    start(b"{\n"),
    start(b"{\r"),
    start(b"{ "),
    start(b"[{"),
    start(b"[\n"),
    start(b"[ "),
    start(b""),
];

/// The most bytes that are shown to say how sure it is.
const HEAD: usize = 4096;

const fn start(bytes: &'static [u8]) -> Magic {
    Magic { offset: 0, bytes }
}

/// Decodes JSON as RFC 8259 has it: see [`parse`].
#[derive(Debug)]
pub struct Json;

impl Decoder for Json {
    const INFO: DecoderInfo = DecoderInfo {
        name: "json",
        summary: "JSON documents to structs, lists and numbers",
        extensions: &["json"],
        media_types: &["application/json"],
        magic: &BEGINNINGS,
        ..DecoderInfo::DEFAULT
    };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self)
    }

    fn probe(&self, head: &[u8], extension: &str) -> u8 {
        if !extension.eq_ignore_ascii_case("json") {
            // Less than who knows the extension.
            return if is_object(head) { 48 } else { 0 };
        }
        match head.iter().find(|byte| !b" \t\r\n".contains(byte)) {
            Some(b'{' | b'[') => 192,
            Some(b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n') => 96,
            // Nothing else claims it: a broken document had better be told than left as bytes.
            _ => 16,
        }
    }

    fn decode(&self, bytes: &Buffer, _: &Wanted, cx: &Context) -> Result<Value> {
        parse_within(bytes, cx.limits().bytes)
    }
}

/// Whether bytes begin as one object with a key does, or an array of objects, and nothing follows it as far as can be seen.
fn is_object(head: &[u8]) -> bool {
    let text = head.trim_ascii_start();
    let text = text.strip_prefix(b"[").map_or(text, <[u8]>::trim_ascii_start);
    let Some(text) = text.strip_prefix(b"{").and_then(|text| text.trim_ascii_start().strip_prefix(b"\""))
    else {
        return false;
    };
    let end =
        text.iter().enumerate().position(|(at, &byte)| byte == b'"' && (at == 0 || text[at - 1] != b'\\'));
    if !end.is_some_and(|end| text[end + 1..].trim_ascii_start().starts_with(b":")) {
        return false;
    }
    match first(head) {
        Some(end) => head[end..].trim_ascii().is_empty(),
        None => head.len() >= HEAD,
    }
}

/// The end of the first value in brackets, if it is here.
fn first(text: &[u8]) -> Option<usize> {
    let (mut depth, mut quoted, mut escaped) = (0_u32, false, false);
    for (at, byte) in text.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = quoted,
            b'"' => quoted = !quoted,
            b'{' | b'[' if !quoted => depth += 1,
            b'}' | b']' if !quoted => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// Reads one document.
///
/// An object becomes a struct (of keys that stand there twice the last value counts), an array a list.
/// Integers become int64, or uint64 above that; beyond, and with a point or exponent, the nearest float64.
/// `-0` is the float. Text without escapes shares the memory of `bytes`.
///
/// ```
/// use forebay_core::View;
///
/// let value = forebay_json::parse(&br#"{"label": "heron", "box": [1, 2.5]}"#.to_vec().into())?;
/// let View::Struct(fields) = value.view() else { unreachable!() };
/// assert_eq!(fields.get("label").and_then(|label| label.as_str()), Some("heron"));
/// # Ok::<(), forebay_core::Error>(())
/// ```
///
/// # Errors
/// `Corrupt` with the byte where the document breaks the rules, also for bytes after it; `Limit` when it nests
/// deeper than [`DEPTH`] or its values need more memory than is usual ([`Limits::DEFAULT`]); `Unsupported` for a number
/// beyond the range of floats.
pub fn parse(bytes: &Buffer) -> Result<Value> {
    parse_within(bytes, Limits::DEFAULT.bytes)
}

/// Reads one document whose values take at most `limit` bytes.
fn parse_within(bytes: &Buffer, limit: u64) -> Result<Value> {
    let mut shapes = Shapes::new(Arc::default());
    let (mut arena, rules) = (Arena::new(bytes.clone()), Rules::DEFAULT);
    let (scan, mut stack) = (Scan::new(bytes), Vec::new());
    let (arena, shapes) = (&mut arena, &mut shapes);
    let mut reader = Reader { scan, arena, stack: &mut stack, shapes, rules, left: limit, objects: 0 };
    reader.value(ROOT, DEPTH)?;
    reader.scan.white();
    if reader.scan.at < bytes.len() {
        return Err(reader.scan.refuse("the end"));
    }
    Ok(stack.pop().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use forebay_core::{ErrorKind, View};

    use super::*;

    fn read(text: &str) -> Result<Value> {
        parse(&text.as_bytes().to_vec().into())
    }

    fn list(values: Vec<Value>) -> Value {
        Value::list(values)
    }

    #[test]
    fn reads_every_kind_of_value() {
        let value =
            read(r#" {"a": [1, -2, 2.5, 1e2], "b": "x\n", "c": {"d": null, "e": [true, false]}, "": []} "#);
        let inner = vec![("d".into(), Value::NULL), ("e".into(), list(vec![true.into(), false.into()]))];
        let expected = Value::structure(vec![
            ("a".into(), list(vec![1_i64.into(), (-2_i64).into(), 2.5.into(), 100.0.into()])),
            ("b".into(), "x\n".into()),
            ("c".into(), Value::structure(inner)),
            ("".into(), list(vec![])),
        ]);
        assert_eq!(value.unwrap(), expected);
    }

    #[test]
    fn under_any_name_only_what_begins_as_an_object_does() {
        let probe = |head: &str, extension: &str| Json.probe(head.as_bytes(), extension);
        let long = format!("[{}]", "{\"a\": 1}, ".repeat(500));
        for head in [
            "{\"a\": 1}",
            "{\n  \"a \\\" b\" : [\"}\", 2]}\n",
            "[{\"\":1}]",
            "[ {\n\"a\":0}, 7]",
            &long[..HEAD],
        ] {
            assert!(probe(head, "") > 0 && probe(head, "") < probe(head, "json"), "{head}");
        }
        // Of lines of JSON, and of what is cut off, the bytes are left.
        for head in [
            "{\"a\": 1}\n{\"a\": 2}\n",
            "{\"a\": [1, ",
            "{a: 1}",
            "[1, 2]",
            "{\"a\", 1}",
            "{\"a",
            "[[\"a\":",
            "{}",
            "true",
            "",
        ] {
            assert_eq!(probe(head, "cfg"), 0, "{head}");
            assert!(probe(head, "json") > 0, "{head}");
        }
    }

    #[test]
    fn integers_keep_every_digit_as_long_as_they_fit() {
        assert_eq!(read("9223372036854775807").unwrap(), i64::MAX.into());
        assert_eq!(read("-9223372036854775808").unwrap(), i64::MIN.into());
        assert_eq!(read("9223372036854775808").unwrap(), 9_223_372_036_854_775_808_u64.into());
        assert_eq!(read("18446744073709551615").unwrap(), u64::MAX.into());
        assert_eq!(read("18446744073709551616").unwrap(), 18_446_744_073_709_551_616.0.into());
        assert_eq!(read("-9223372036854775809").unwrap(), (-9_223_372_036_854_775_808.0).into());
        assert_eq!(read("-0").unwrap(), (-0.0).into());
        assert_eq!(read("0.1").unwrap(), 0.1.into());
        assert_eq!(read("1e400").unwrap_err().kind(), ErrorKind::Unsupported);
    }

    #[test]
    fn of_equal_keys_the_last_counts() {
        let value = read(r#"{"a": 1, "b": 2, "\u0061": 3}"#).unwrap();
        assert_eq!(value, Value::structure(vec![("a".into(), 3_i64.into()), ("b".into(), 2_i64.into())]));
        let many: Vec<_> = (0..200_000).map(|at| format!("\"{}\": {at}", at % 100_000)).collect();
        let value = read(&format!("{{{}}}", many.join(","))).unwrap();
        let View::Struct(fields) = value.view() else { panic!("no struct") };
        assert_eq!((fields.values().len(), fields.get("0")), (100_000, Some(&100_000_i64.into())));
    }

    #[test]
    fn plain_text_shares_the_documents_memory() {
        let bytes = Buffer::from(br#"["heron", "gr\u00fcn"]"#.to_vec());
        let value = parse(&bytes).unwrap();
        let View::List([plain, escaped]) = value.view() else { panic!("no list") };
        assert!(bytes.as_ptr_range().contains(&plain.as_bytes().unwrap().as_ptr()));
        assert_eq!(escaped.as_str(), Some("grün"));
    }

    #[test]
    fn errors_name_the_byte() {
        let cases: [(&[u8], ErrorKind, &str); 7] = [
            (b"{\"a\": 1,\n \"b\": x}", ErrorKind::Corrupt, "15"),
            (b"[1, 2", ErrorKind::Corrupt, "5"),
            (b"1 2", ErrorKind::Corrupt, "2"),
            (b"", ErrorKind::Corrupt, "0"),
            (b"[NaN]", ErrorKind::Corrupt, "1"),
            (b"[\"ab\xff\"]", ErrorKind::Corrupt, "4"),
            (b"[1e999]", ErrorKind::Unsupported, "1"),
        ];
        for (bytes, kind, byte) in cases {
            let error = parse(&bytes.to_vec().into()).unwrap_err();
            assert_eq!((error.kind(), error.get("byte")), (kind, Some(byte)), "{error} {bytes:?}");
        }
    }

    #[test]
    fn nests_only_so_deep() {
        let nest = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(read(&nest(DEPTH)).is_ok());
        assert_eq!(read(&nest(DEPTH + 1)).unwrap_err().kind(), ErrorKind::Limit);
        assert_eq!(read(&"{\"a\":".repeat(1_000_000)).unwrap_err().kind(), ErrorKind::Limit);
    }

    #[test]
    fn takes_only_so_much_memory() {
        let many = Buffer::from(format!("[{}0]", "0,".repeat(999)).into_bytes());
        assert!(parse_within(&many, 32_000).is_ok());
        assert_eq!(parse_within(&many, 31_999).unwrap_err().kind(), ErrorKind::Limit);
        let object = br#"{"a": "\u0041"}"#.to_vec().into();
        assert!(parse_within(&object, 62).is_ok());
        assert_eq!(parse_within(&object, 61).unwrap_err().kind(), ErrorKind::Limit);
    }

    #[test]
    fn tells_its_own_by_the_first_byte() {
        let sure = |head: &str, extension| Json.probe(head.as_bytes(), extension);
        assert!(sure(" \n{\"a\"", "json") > sure("7", "json"));
        assert!(sure("\u{1}", "json") > 0);
        assert_eq!(sure("\u{1}", "dat"), 0);
        assert_eq!(sure("", "dat"), 0);
    }
}
