//! Samples and values in a few words, for people.

use std::fmt;

use forebay_loader::{DType, Sample, Tensor, Value, View, without_secrets};
use serde::Serialize;

/// The most characters of a value that are shown.
const WIDTH: usize = 72;
/// The most numbers of a tensor that are shown.
const NUMBERS: usize = 8;
/// The most bytes that are shown.
const BYTES: usize = 8;

/// What a field holds, without the values.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Field {
    /// Its name.
    pub(crate) name: String,
    /// The type of its elements, or what else it is.
    pub(crate) dtype: String,
    /// The length of each axis, where it has axes.
    pub(crate) shape: Option<Vec<i64>>,
}

impl Field {
    /// The fields of a sample.
    pub(crate) fn all(sample: &Sample) -> Vec<Self> {
        let field = |(name, value): (&str, &Value)| Self {
            name: name.to_owned(),
            dtype: dtype(value),
            shape: shape(value),
        };
        sample.fields().map(|(name, value)| field((name.as_str(), value))).collect()
    }

    /// The shape as text; empty for what has none.
    pub(crate) fn shape(&self) -> String {
        self.shape.as_ref().map(|shape| format!("{shape:?}")).unwrap_or_default()
    }
}

fn dtype(value: &Value) -> String {
    let name = match value.view() {
        View::Null => "null",
        View::Str(_) => "text",
        View::Bytes(_) => "bytes",
        View::List(_) => "list",
        View::Struct(_) => "struct",
        View::Opaque(name) => name,
        _ => return value.dtype().map_or_else(|| "unknown".to_owned(), |dtype| dtype.to_string()),
    };
    name.to_owned()
}

fn shape(value: &Value) -> Option<Vec<i64>> {
    match value.view() {
        View::Tensor(tensor) => Some(tensor.shape().to_vec()),
        View::List(values) => Some(vec![i64::try_from(values.len()).unwrap_or(i64::MAX)]),
        View::Bytes(bytes) => Some(vec![i64::try_from(bytes.len()).unwrap_or(i64::MAX)]),
        _ => None,
    }
}

/// The value in one line; empty for a tensor of many numbers.
pub(crate) fn short(value: &Value) -> String {
    let mut text = String::new();
    write(&mut text, value);
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(WIDTH).collect();
    if text.chars().nth(WIDTH).is_some() { clean + "…" } else { clean }
}

/// Adds a value, and stops soon after the width is full.
fn write(text: &mut String, value: &Value) {
    match value.view() {
        // For people: a path that is a URL loses its secrets here, and keeps them in the sample.
        View::Str(string) => text.extend(without_secrets(string).chars().take(WIDTH + 1)),
        View::Bytes(bytes) => {
            let shown: Vec<_> = bytes.iter().take(BYTES).map(|byte| format!("{byte:02x}")).collect();
            *text += &shown.join(" ");
            *text += if bytes.len() > BYTES { " …" } else { "" };
        }
        View::Tensor(tensor) => *text += &numbers(tensor),
        _ => write_json(text, value),
    }
}

fn write_json(text: &mut String, value: &Value) {
    match value.view() {
        View::Null => *text += "null",
        View::Bool(truth) => *text += if truth { "true" } else { "false" },
        View::Int(number) => *text += &number.to_string(),
        View::UInt(number) => *text += &number.to_string(),
        View::Float(number) => *text += &number.to_string(),
        View::Str(string) => *text += &serde_json::Value::from(&*without_secrets(string)).to_string(),
        View::List(values) => group(text, ['[', ']'], values.iter().map(|value| (None, value))),
        View::Struct(fields) => {
            let fields = fields.fields().map(|(name, value)| (Some(name.as_str()), value));
            group(text, ['{', '}'], fields);
        }
        _ => {
            let axes = shape(value).map(|shape| format!("{shape:?}")).unwrap_or_default();
            *text += &format!("<{}{axes}>", dtype(value));
        }
    }
}

fn group<'a>(
    text: &mut String,
    [open, close]: [char; 2],
    items: impl Iterator<Item = (Option<&'a str>, &'a Value)>,
) {
    text.push(open);
    for (at, (name, value)) in items.enumerate() {
        // What is longer is cut anyway.
        if text.len() > 4 * WIDTH {
            break;
        }
        *text += if at > 0 { "," } else { "" };
        if let Some(name) = name {
            *text += &serde_json::Value::from(name).to_string();
            text.push(':');
        }
        write_json(text, value);
    }
    text.push(close);
}

/// The numbers of a tensor that has few and a type that is shown.
fn numbers(tensor: &Tensor) -> String {
    let size = tensor.dtype().size();
    let bytes: &[u8] = tensor.data();
    if size == 0 || bytes.len() / size > NUMBERS {
        return String::new();
    }
    let number = |bytes: &[u8]| element(tensor.dtype(), bytes).unwrap_or_else(|| "?".to_owned());
    bytes.chunks_exact(size).map(number).collect::<Vec<_>>().join(" ")
}

fn element(dtype: DType, bytes: &[u8]) -> Option<String> {
    Some(match Value::element(dtype, bytes)?.view() {
        View::Bool(truth) => u8::from(truth).to_string(),
        View::Int(number) => number.to_string(),
        View::UInt(number) => number.to_string(),
        View::Float(number) if dtype == DType::F64 => real(number),
        // The shortest text for a float32 is shorter than that for the same float64.
        #[expect(
            clippy::cast_possible_truncation,
            reason = "it was widened from this type, or a shorter one"
        )]
        View::Float(number) => real(number as f32),
        _ => return None,
    })
}

/// With an exponent where the number would be mostly zeros without.
fn real<T: Copy + Into<f64> + fmt::Display + fmt::LowerExp>(number: T) -> String {
    let size = number.into().abs();
    if size != 0.0 && size.is_finite() && !(1e-5..1e16).contains(&size) {
        format!("{number:e}")
    } else {
        number.to_string()
    }
}

#[cfg(test)]
mod tests {
    use forebay_loader::{Buffer, DType, Tensor, Value};

    use super::{WIDTH, short};

    #[test]
    fn values_take_one_short_line() {
        let record =
            Value::structure(vec![("a".into(), 1i64.into()), ("b".into(), Value::list(vec!["x\n".into()]))]);
        assert_eq!(short(&record), r#"{"a":1,"b":["x\n"]}"#);
        assert_eq!(short(&"two\nlines".into()), "two lines");
        assert_eq!(short(&Buffer::from(vec![255; 9]).into()), "ff ff ff ff ff ff ff ff …");
        assert_eq!(short(&"é".repeat(500).as_str().into()).chars().count(), WIDTH + 1);
    }

    #[test]
    fn few_numbers_are_shown_and_many_are_not() {
        let tensor = |len| Tensor::try_new(DType::U8, &[len], Buffer::from(vec![7; len])).unwrap();
        assert_eq!(short(&tensor(2).into()), "7 7");
        assert_eq!(short(&tensor(9).into()), "");
    }

    #[test]
    fn numbers_of_each_type_are_shown() {
        let of = |dtype: DType, bytes: &[u8]| {
            let count = bytes.len() / dtype.size();
            short(&Tensor::try_new(dtype, &[count], Buffer::from(bytes.to_vec())).unwrap().into())
        };
        for &(dtype, name) in DType::NAMED {
            assert_eq!(of(dtype, &vec![0; 2 * dtype.size()]), "0 0", "{name}");
        }
        assert_eq!(of(DType::I16, &(-2i16).to_ne_bytes()), "-2");
        let halves = [0x3c00u16, 0xc500, 0x0001, 0x7c00, 0xfe00].map(u16::to_ne_bytes).concat();
        assert_eq!(of(DType::F16, &halves), "1 -5 5.9604645e-8 inf NaN");
        assert_eq!(of(DType::BF16, &0x3f80u16.to_ne_bytes()), "1");
        assert_eq!(of(DType::F32, &[0.25f32, 3.82e-38].map(f32::to_ne_bytes).concat()), "0.25 3.82e-38");
    }
}
