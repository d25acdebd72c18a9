//! The WebDataset rule for the members of an archive that belong to one sample. It looks only at names.

use std::borrow::Cow;

/// Splits a member's name at the first dot of its last part: what the members of a sample share, and the field.
///
/// Gives `None` for a name that belongs to no sample. Such a name has no dot, has nothing before or after it
/// (as the `._name` files of macOS), or is below a `__meta__` name.
///
/// ```
/// use forebay_core::names::split_name;
///
/// assert_eq!(split_name(b"train.v2/0001.seg.png"), Some((&b"train.v2/0001"[..], &b"seg.png"[..])));
/// assert_eq!(split_name(b"train.v2/readme"), None);
/// assert_eq!(split_name(b"._0001.jpg"), None);
/// assert_eq!(split_name(b"__info__/made.json"), None);
/// ```
#[must_use]
pub fn split_name(name: &[u8]) -> Option<(&[u8], &[u8])> {
    let last = name.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    let dot = last + name.get(last..)?.iter().position(|&byte| byte == b'.')?;
    let (key, field) = (name.get(..dot)?, name.get(dot + 1..)?);
    (dot > last && !field.is_empty() && !is_meta(name)).then_some((key, field))
}

/// Whether the first part of the name is `__…__`, which WebDataset keeps for notes about the shard.
fn is_meta(name: &[u8]) -> bool {
    if !name.starts_with(b"__") {
        return false;
    }
    let first = name.split(|&byte| byte == b'/').next().unwrap_or_default();
    first.len() >= 4 && first.ends_with(b"__")
}

/// The name of the field: the extension in lower case. Bytes that are not UTF-8 become U+FFFD.
///
/// ```
/// assert_eq!(forebay_core::names::field_name(b"Seg.PNG"), "seg.png");
/// ```
#[must_use]
pub fn field_name(extension: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(extension) {
        Ok(text) if text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase()) => {
            Cow::Borrowed(text)
        }
        _ => Cow::Owned(String::from_utf8_lossy(extension).to_lowercase()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_split_as_webdataset_does() {
        let split = |name: &'static str| {
            let (key, field) = split_name(name.as_bytes())?;
            Some((std::str::from_utf8(key).unwrap(), std::str::from_utf8(field).unwrap()))
        };
        assert_eq!(split("0001.jpg"), Some(("0001", "jpg")));
        assert_eq!(split("./a/0001.JPG"), Some(("./a/0001", "JPG")));
        assert_eq!(split("a.b/c.d.e"), Some(("a.b/c", "d.e")));
        for none in
            ["", ".", "a", "a.b/c", "a/", ".hidden", "a/.hidden", "a/._b.jpg", "a.", "__a__", "__a__/b.c"]
        {
            assert_eq!(split(none), None, "{none}");
        }
        assert_eq!(split("__a.jpg"), Some(("__a", "jpg")));
    }

    #[test]
    fn fields_are_lower_case() {
        assert_eq!(field_name(b"jpg"), "jpg");
        assert_eq!(field_name(b"Seg.PNG"), "seg.png");
        assert_eq!(field_name("Ä".as_bytes()), "ä");
        assert_eq!(field_name(b"x\xff"), "x\u{fffd}");
    }
}
