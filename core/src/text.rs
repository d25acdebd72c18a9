//! Values as JSON text, for pipes that write.

use forebay_abi::{DType, Struct, Value, View};

use crate::{Error, Result};

/// Values deeper than this are refused.
const DEPTH: usize = 512;

/// Adds `value` to `out` as JSON. Numbers have all digits, and floats are the shortest decimal that reads
/// back as the same float64. Tensors are lists within lists, and bytes are text in base64 (RFC 4648).
///
/// ```
/// use forebay_core::{Value, write_json};
///
/// let mut text = Vec::new();
/// write_json(&Value::list(vec![1_i64.into(), 0.5.into(), "a".into()]), &mut text)?;
/// assert_eq!(text, br#"[1,0.5,"a"]"#);
/// # Ok::<(), forebay_core::Error>(())
/// ```
///
/// # Errors
/// `Unsupported` for values without a JSON form: NaN, infinities, values of other plugins, columns. `Limit` for
/// values that nest deeper than 512.
pub fn write_json(value: &Value, out: &mut Vec<u8>) -> Result<()> {
    write(value, DEPTH, out)
}

fn write(value: &Value, depth: usize, out: &mut Vec<u8>) -> Result<()> {
    let depth =
        depth.checked_sub(1).ok_or_else(|| Error::limit(format!("values nest deeper than {DEPTH}")))?;
    match value.view() {
        View::Null => out.extend(b"null"),
        View::Bool(truth) => out.extend(if truth { &b"true"[..] } else { b"false" }),
        View::Int(number) => out.extend(number.to_string().into_bytes()),
        View::UInt(number) => out.extend(number.to_string().into_bytes()),
        View::Float(number) => float(number, out)?,
        View::Str(text) => string(text, out)?,
        View::Bytes(bytes) => {
            out.push(b'"');
            base64(bytes, out);
            out.push(b'"');
        }
        View::List(values) => list(values.iter(), out, |value, out| write(value, depth, out))?,
        View::Struct(fields) => object(fields, depth, out)?,
        View::Tensor(tensor) => {
            let bytes: &[u8] = tensor.data();
            let shape: Vec<_> =
                tensor.shape().iter().map(|&axis| usize::try_from(axis).unwrap_or(0)).collect();
            elements(tensor.dtype(), &shape, bytes, out)?;
        }
        View::Arrow(_) => {
            return Err(Error::unsupported("columns have no form in JSON; `read_rows` gives rows"));
        }
        _ => return Err(Error::unsupported(format!("{value:?} has no form in JSON"))),
    }
    Ok(())
}

fn list<T>(
    items: impl Iterator<Item = T>,
    out: &mut Vec<u8>,
    mut write: impl FnMut(T, &mut Vec<u8>) -> Result<()>,
) -> Result<()> {
    out.push(b'[');
    for (at, item) in items.enumerate() {
        out.extend((at > 0).then_some(b','));
        write(item, out)?;
    }
    out.push(b']');
    Ok(())
}

fn object(fields: &Struct, depth: usize, out: &mut Vec<u8>) -> Result<()> {
    out.push(b'{');
    for (at, (name, value)) in fields.fields().enumerate() {
        out.extend((at > 0).then_some(b','));
        string(name, out)?;
        out.push(b':');
        write(value, depth, out)?;
    }
    out.push(b'}');
    Ok(())
}

fn string(text: &str, out: &mut Vec<u8>) -> Result<()> {
    serde_json::to_writer(out, text).map_err(|error| Error::bug(error.to_string()))
}

fn float(number: f64, out: &mut Vec<u8>) -> Result<()> {
    if !number.is_finite() {
        return Err(Error::unsupported(format!("{number} has no form in JSON")));
    }
    serde_json::to_writer(out, &number).map_err(|error| Error::bug(error.to_string()))
}

/// The elements of a row-major tensor, as lists within lists.
fn elements(dtype: DType, shape: &[usize], bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let Some((&count, inner)) = shape.split_first() else { return element(dtype, bytes, out) };
    let size = bytes.len() / count.max(1);
    list(0..count, out, |at, out| {
        elements(dtype, inner, bytes.get(at * size..(at + 1) * size).unwrap_or_default(), out)
    })
}

fn element(dtype: DType, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let value = Value::element(dtype, bytes).filter(|value| !matches!(value.view(), View::Unknown(_)));
    let value =
        value.ok_or_else(|| Error::unsupported(format!("elements of {dtype} have no form in JSON")))?;
    write(&value, 1, out)
}

/// Adds bytes in base64.
fn base64(bytes: &[u8], out: &mut Vec<u8>) {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    out.reserve(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * at) & 63) as usize];
            out.push(if at <= group.len() { letter } else { b'=' });
        }
    }
}

#[cfg(test)]
mod tests {
    use forebay_abi::{Buffer, Tensor};

    use super::*;

    fn json(value: impl Into<Value>) -> Result<String> {
        let mut out = Vec::new();
        write_json(&value.into(), &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn values_read_back_as_they_were() {
        assert_eq!(json(u64::MAX).unwrap(), "18446744073709551615");
        assert_eq!(json(1e300).unwrap().parse(), Ok(1e300));
        assert_eq!(json(-0.0).unwrap(), "-0.0");
        assert_eq!(json("\u{1}\"é").unwrap(), "\"\\u0001\\\"é\"");
        assert_eq!(json(Value::structure(vec![("a".into(), true.into())])).unwrap(), r#"{"a":true}"#);
        assert!(json(f64::NAN).is_err());
        for (bytes, expected) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(json(Buffer::from(bytes.as_bytes().to_vec())).unwrap(), format!("\"{expected}\""));
        }
        let mut deep = Value::NULL;
        for _ in 0..600 {
            deep = Value::list(vec![deep]);
        }
        assert!(json(deep).is_err());
    }

    #[test]
    fn tensors_are_lists_within_lists() {
        let tensor = |dtype, shape: &[usize], bytes: Vec<u8>| {
            json(Tensor::try_new(dtype, shape, Buffer::from(bytes)).unwrap()).unwrap()
        };
        assert_eq!(tensor(DType::U8, &[2, 2], vec![1, 2, 3, 4]), "[[1,2],[3,4]]");
        assert_eq!(tensor(DType::I8, &[], vec![255]), "-1");
        assert_eq!(tensor(DType::U8, &[0, 2], vec![]), "[]");
        let halves: Vec<u8> =
            [0x3c00_u16, 0xc000, 0x0001].iter().flat_map(|half| half.to_ne_bytes()).collect();
        assert_eq!(tensor(DType::F16, &[3], halves), "[1.0,-2.0,5.960464477539063e-8]");
    }
}
