//! `text`: UTF-8.
//!
//! ```toml
//! [text]
//! gives = "text"
//! when = "captions and other short texts; for one line a sample, use `text_lines`"
//! ```

use forebay_core::{Buffer, Context, Decoder, DecoderInfo, Error, NoOptions, Result, Str, Value, Wanted};

/// Decodes UTF-8 to text, which shares the memory of the bytes.
#[derive(Debug)]
pub struct Text;

impl Decoder for Text {
    const INFO: DecoderInfo = DecoderInfo {
        name: "text",
        summary: "UTF-8 to text",
        extensions: &["txt", "text", "caption", "transcript"],
        media_types: &["text/plain"],
        ..DecoderInfo::DEFAULT
    };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self)
    }

    fn decode(&self, bytes: &Buffer, _: &Wanted, _: &Context) -> Result<Value> {
        parse_text(bytes)
    }
}

/// Reads text, without a copy.
///
/// ```
/// let value = forebay_json::parse_text(&b"a grey heron".to_vec().into())?;
/// assert_eq!(value.as_str(), Some("a grey heron"));
/// # Ok::<(), forebay_core::Error>(())
/// ```
///
/// # Errors
/// `Corrupt` with the first byte that is not UTF-8.
pub fn parse_text(bytes: &Buffer) -> Result<Value> {
    match Str::from_utf8(bytes.clone()) {
        Ok(text) => Ok(text.into()),
        Err(bytes) => utf8(&bytes).map(Value::from),
    }
}

/// The bytes as text.
pub(crate) fn utf8(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        let found = bytes.get(at).copied().unwrap_or_default();
        Error::corrupt(format!("found byte 0x{found:02x}, expected UTF-8")).context("byte", at)
    })
}

/// Whether bytes may be the beginning of a text: UTF-8 but for a byte in sixteen, without NUL. Whoever reads it says which
/// lines are none.
pub(crate) fn is_text(head: &[u8]) -> bool {
    let wrong: usize = head.utf8_chunks().map(|chunk| chunk.invalid().len()).sum();
    !head.contains(&0) && wrong.saturating_sub(3) <= head.len() / 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_wrong_bytes_leave_a_text_and_many_none() {
        let latin = b"name;stadt\nJ\xfcrgen;M\xfcnchen am Flu\xdf, und so weiter, und so fort, bis zum Ende der Zeile\n";
        assert!(
            is_text(latin) && is_text("grün".as_bytes()) && is_text(&"grün".as_bytes()[..3]) && is_text(b"")
        );
        assert!(!is_text(b"a\0b") && !is_text(&[0xff; 64]));
    }

    #[test]
    fn shares_the_bytes_and_refuses_what_is_no_text() {
        let bytes = Buffer::from("grün\n".as_bytes().to_vec());
        let value = parse_text(&bytes).unwrap();
        assert_eq!(value.as_str(), Some("grün\n"));
        assert_eq!(value.as_bytes().unwrap().as_ptr(), bytes.as_ptr());
        assert_eq!(parse_text(&Buffer::EMPTY).unwrap().as_str(), Some(""));
        let error = parse_text(&b"gr\xfcn".to_vec().into()).unwrap_err();
        assert_eq!((error.message(), error.get("byte")), ("found byte 0xfc, expected UTF-8", Some("2")));
    }
}
