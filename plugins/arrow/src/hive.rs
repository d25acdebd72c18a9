//! Hive partitions: folders called `name=value`, which are columns that all rows below share.

use forebay_core::Value;

/// What a missing value is called.
const NONE: &str = "__HIVE_DEFAULT_PARTITION__";

/// The names and values in a path: int64 where the value is an integer as it would be printed, null for the name that Hive gives to
/// a missing one, otherwise text.
pub(crate) fn fields(path: &str) -> Vec<(String, Value)> {
    let folders = path.rsplit_once('/').map_or("", |(folders, _)| folders);
    let pairs = folders.split('/').filter_map(|folder| folder.split_once('='));
    pairs
        .filter(|(name, _)| !name.is_empty())
        .map(|(name, value)| (decoded(name), value_of(&decoded(value))))
        .collect()
}

fn value_of(text: &str) -> Value {
    match text.parse::<i64>() {
        _ if text == NONE => Value::NULL,
        Ok(number) if number.to_string() == text => number.into(),
        _ => text.into(),
    }
}

/// The text with `%41` for `A`; as it is where that would be no UTF-8.
fn decoded(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let hex = after.get(..2).filter(|_| *first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        let byte = hex.filter(|hex| !hex.starts_with('+')).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        out.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_fields() {
        let found =
            fields("s3://b/year=2026/cat=a%20b/none=__HIVE_DEFAULT_PARTITION__/id=007/x=y=z/=q/f=1.parquet");
        let names: Vec<_> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["year", "cat", "none", "id", "x"]);
        let values: Vec<_> = found.into_iter().map(|(_, value)| value).collect();
        let expected = [2026_i64.into(), "a b".into(), Value::NULL, "007".into(), "y=z".into()];
        assert_eq!(values, expected);
        assert!(fields("plain.parquet").is_empty());
        assert_eq!(fields("a=%ff/x")[0].1, "%ff".into());
        assert_eq!(fields("a=%+1%4/x")[0].1, "%+1%4".into());
    }
}
