//! Values as bytes that are the same for equal values, and differ for others.

use forebay_core::{Error, Key, Result, Schema, Tensor, Value, View};
use xxhash_rust::xxh3::xxh3_128;

use super::{Draws, Expression, Places, node::Row, val::Val};

/// Longer bytes stand as their hash, so that large values are not copied.
const LONG: usize = 1024;

/// What tells the kinds apart; each is followed by what has a length of its own.
mod kind {
    pub(super) const NULL: u8 = 0;
    pub(super) const BOOL: u8 = 1;
    pub(super) const WHOLE: u8 = 2;
    pub(super) const FLOAT: u8 = 3;
    pub(super) const TEXT: u8 = 4;
    pub(super) const BYTES: u8 = 5;
    pub(super) const LIST: u8 = 6;
    pub(super) const STRUCT: u8 = 7;
    pub(super) const TENSOR: u8 = 8;
    /// An integer of more than 64 bits.
    pub(super) const BEYOND: u8 = 9;
}

impl Expression {
    /// Adds what it gives for a sample, as [`write`] does.
    ///
    /// # Errors
    /// As [`value`](Expression::value), and for values that only their makers read.
    #[inline]
    pub(crate) fn write(
        &self,
        places: &Places,
        key: &Key,
        schema: &Schema,
        values: &[Value],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        if let Some(value) = self.field_of(places, values) {
            return write(value, out).map_err(|error| self.blame(error));
        }
        let draws = Draws::none();
        let given = match self.quick(places, values, &draws) {
            Some(found) => Ok(found.into_val()),
            None => self.node.eval(&Row { places, key, schema, values, draws: &draws }, None),
        };
        given.and_then(|given| given.write(out)).map_err(|error| self.blame(error))
    }
}

/// Adds a value to `out`: equal ones add the same, others something else. Numbers are equal by what they are, whatever their types,
/// structs in any order of their names, tensors by type, shape and bytes.
///
/// # Errors
/// `Unsupported`, for values that only their makers read, and for Arrow columns.
#[inline]
pub(crate) fn write(value: &Value, out: &mut Vec<u8>) -> Result<()> {
    // Most keys are integers, which need nothing put together.
    if let View::Int(number) = value.view() {
        word(number, out);
        return Ok(());
    }
    Val::of(value).write(out)
}

/// Adds a text to `out`.
pub(crate) fn write_text(text: &str, out: &mut Vec<u8>) {
    bytes(kind::TEXT, text.as_bytes(), out);
}

/// Adds an integer to `out`.
pub(crate) fn write_whole(number: u64, out: &mut Vec<u8>) {
    whole(number.into(), out);
}

impl Val<'_> {
    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        match self {
            Self::Null => out.push(kind::NULL),
            Self::Bool(truth) => out.extend([kind::BOOL, u8::from(*truth)]),
            Self::Int(number) => whole((*number).into(), out),
            Self::UInt(number) => whole((*number).into(), out),
            Self::Float(number) => float(*number, out),
            Self::Text(text) => bytes(kind::TEXT, text.as_bytes(), out),
            Self::Bytes(data) => bytes(kind::BYTES, data, out),
            Self::List(items) => {
                count(kind::LIST, items.len(), out);
                items.iter().try_for_each(|item| item.write(out))?;
            }
            Self::Map(fields) => {
                structure(fields.iter().map(|(name, value)| (*name, value.clone())).collect(), out)?;
            }
            Self::Of(value) => held(value, out)?,
            Self::Row(row) => tensor(row, out),
        }
        Ok(())
    }
}

fn held(value: &Value, out: &mut Vec<u8>) -> Result<()> {
    match value.view() {
        View::List(items) => {
            count(kind::LIST, items.len(), out);
            items.iter().try_for_each(|item| write(item, out))?;
        }
        View::Struct(fields) => {
            structure(fields.fields().map(|(name, value)| (name.as_str(), Val::of(value))).collect(), out)?;
        }
        View::Tensor(found) => tensor(found, out),
        _ => {
            let found = Val::of(value).kind();
            let expected = "numbers, text, bytes, tensors, or lists and structs of them";
            return Err(Error::unsupported(format!("{found} cannot be compared; expected {expected}")));
        }
    }
    Ok(())
}

fn tensor(tensor: &Tensor, out: &mut Vec<u8>) {
    let dtype = tensor.dtype();
    count(kind::TENSOR, tensor.shape().len(), out);
    out.extend([dtype.code, dtype.bits]);
    out.extend(dtype.lanes.to_le_bytes());
    out.extend(tensor.shape().iter().flat_map(|axis| axis.to_le_bytes()));
    bytes(kind::TENSOR, tensor.data(), out);
}

fn count(kind: u8, count: usize, out: &mut Vec<u8>) {
    out.push(kind);
    out.extend((count as u64).to_le_bytes());
}

// In words, as they are read again to be hashed: what is written in other pieces than it is read in has to wait in between.
#[inline]
fn word(number: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(&u64::from(kind::WHOLE).to_le_bytes());
    out.extend_from_slice(&number.to_le_bytes());
}

fn whole(number: i128, out: &mut Vec<u8>) {
    match i64::try_from(number) {
        Ok(number) => word(number, out),
        Err(_) => {
            out.push(kind::BEYOND);
            out.extend(number.to_le_bytes());
        }
    }
}

fn float(number: f64, out: &mut Vec<u8>) {
    // Beyond these, no integer of 64 bits is equal to it.
    if number.trunc() == number && number.abs() < 2f64.powi(65) {
        return whole(number as i128, out);
    }
    out.push(kind::FLOAT);
    let bits = if number.is_nan() { f64::NAN.to_bits() } else { number.to_bits() };
    out.extend(bits.to_le_bytes());
}

fn bytes(kind: u8, data: &[u8], out: &mut Vec<u8>) {
    count(kind, data.len(), out);
    if data.len() > LONG { out.extend(xxh3_128(data).to_le_bytes()) } else { out.extend(data) }
}

fn structure(mut fields: Vec<(&str, Val<'_>)>, out: &mut Vec<u8>) -> Result<()> {
    fields.sort_unstable_by_key(|(name, _)| *name);
    count(kind::STRUCT, fields.len(), out);
    fields.into_iter().try_for_each(|(name, value)| {
        bytes(kind::TEXT, name.as_bytes(), out);
        value.write(out)
    })
}

/// The most characters of a text that are shown.
const SHOWN: usize = 24;

/// What was written, in a few words for people: a text in quotes, a number as it is.
pub(crate) fn shown(written: &[u8]) -> String {
    let number = |bytes: &[u8]| bytes.first_chunk().map(|bytes| i64::from_le_bytes(*bytes).to_string());
    let float = |bytes: &[u8]| {
        bytes.first_chunk().map(|bytes| f64::from_bits(u64::from_le_bytes(*bytes)).to_string())
    };
    let known = match written.split_first() {
        Some((&kind::NULL, _)) => Some("null".to_owned()),
        Some((&kind::BOOL, rest)) => rest.first().map(|&truth| (truth != 0).to_string()),
        Some((&kind::WHOLE, rest)) => rest.get(7..).and_then(number),
        Some((&kind::FLOAT, rest)) => float(rest),
        Some((&kind::TEXT, _)) => Some(match text(written) {
            Some(text) if text.chars().count() > SHOWN => {
                format!("{:?}", text.chars().take(SHOWN).chain(['…']).collect::<String>())
            }
            Some(text) => format!("{text:?}"),
            None => "a long text".to_owned(),
        }),
        Some((&kind::BYTES, _)) => Some("bytes".to_owned()),
        Some((&kind::LIST, _)) => Some("a list".to_owned()),
        Some((&kind::STRUCT, _)) => Some("a struct".to_owned()),
        _ => None,
    };
    known.unwrap_or_else(|| "a value".to_owned())
}

/// The text that was written, unless it stands as its hash.
pub(crate) fn text(written: &[u8]) -> Option<&str> {
    let (&kind, rest) = written.split_first()?;
    let (len, data) = rest.split_first_chunk()?;
    let whole = kind == kind::TEXT && u64::from_le_bytes(*len) == data.len() as u64;
    std::str::from_utf8(data).ok().filter(|_| whole)
}

#[cfg(test)]
mod tests {
    use forebay_core::{DType, TensorExt};

    use super::*;

    fn written(value: impl Into<Value>) -> Vec<u8> {
        let mut out = Vec::new();
        write(&value.into(), &mut out).unwrap();
        out
    }

    fn structure(fields: &[(&str, Value)]) -> Value {
        Value::structure(fields.iter().map(|(name, value)| ((*name).into(), value.clone())).collect())
    }

    fn tensor(dtype: DType, shape: &[usize], data: Vec<u8>) -> Value {
        Tensor::new(dtype, shape, data.into()).unwrap().into()
    }

    #[test]
    fn equal_values_are_the_same_bytes_and_no_others() {
        let long = "x".repeat(LONG + 1);
        let zeros = || vec![0; 4];
        let classes: Vec<Vec<Value>> = vec![
            vec![Value::NULL],
            vec![5_u8.into(), 5_i64.into(), 5.0_f32.into(), 5.0.into()],
            vec![0_i8.into(), 0.0.into(), (-0.0).into()],
            vec![u64::MAX.into()],
            vec![18_446_744_073_709_551_616.0.into()],
            vec![(-1_i64).into(), (-1.0).into()],
            vec![5.5.into(), 5.5_f32.into()],
            vec![f64::NAN.into(), (-f64::NAN).into()],
            vec![f64::INFINITY.into()],
            vec![1e300.into()],
            vec![true.into()],
            vec![1_i64.into()],
            vec!["".into()],
            vec!["5".into()],
            vec![Value::from(forebay_core::Buffer::from(vec![b'5']))],
            vec![long.as_str().into(), long.clone().into()],
            vec![format!("{long}x").into()],
            vec![Value::list(vec![])],
            vec![Value::list(vec![1_i64.into(), 2_i64.into()]), Value::list(vec![1.0.into(), 2_u8.into()])],
            vec![Value::list(vec![Value::list(vec![1_i64.into()]), 2_i64.into()])],
            vec![Value::list(vec![Value::list(vec![1_i64.into(), 2_i64.into()])])],
            vec![Value::list(vec!["ab".into(), "c".into()])],
            vec![Value::list(vec!["a".into(), "bc".into()])],
            vec![
                structure(&[("a", 1_i64.into()), ("b", 2_i64.into())]),
                structure(&[("b", 2_i64.into()), ("a", 1.0.into())]),
            ],
            vec![structure(&[("a", 2_i64.into()), ("b", 1_i64.into())])],
            vec![tensor(DType::U8, &[4], zeros()), tensor(DType::U8, &[4], zeros())],
            vec![tensor(DType::I8, &[4], zeros())],
            vec![tensor(DType::U8, &[2, 2], zeros())],
            vec![tensor(DType::U16, &[2], zeros())],
            vec![tensor(DType::U8, &[3, 700], vec![1; 2100])],
        ];
        for (at, class) in classes.iter().enumerate() {
            let first = written(class[0].clone());
            assert!(class.iter().all(|value| written(value.clone()) == first), "class {at}");
            let others = classes.iter().enumerate().filter(|(other, _)| *other != at);
            assert!(others.into_iter().all(|(_, other)| written(other[0].clone()) != first), "class {at}");
        }
    }

    #[test]
    fn what_only_its_maker_reads_is_refused() {
        let error = write(&Value::opaque("thing", 3_u8), &mut Vec::new()).unwrap_err();
        assert!(error.message().contains("a value of another plugin cannot be compared"), "{error}");
        assert!(write(&Value::list(vec![Value::opaque("thing", 3_u8)]), &mut Vec::new()).is_err());
    }

    #[test]
    fn what_was_written_can_be_shown() {
        for (value, expected) in [
            (Value::from("000000.jpg"), "\"000000.jpg\""),
            ("x".repeat(99).as_str().into(), "\"xxxxxxxxxxxxxxxxxxxxxxxx…\""),
            ("x".repeat(LONG + 1).as_str().into(), "a long text"),
            ((-7_i64).into(), "-7"),
            (7.0.into(), "7"),
            (0.5.into(), "0.5"),
            (true.into(), "true"),
            (Value::NULL, "null"),
            (Value::list(vec![]), "a list"),
            (u64::MAX.into(), "a value"),
        ] {
            assert_eq!(shown(&written(value.clone())), expected, "{value:?}");
        }
    }
}
