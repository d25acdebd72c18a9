//! Classes: which of several a field names.

use forebay_core::{Error, Value, View};

/// The number of the class, below `count`, that the value of a field stands for: its place among `values`, or itself where there are none.
#[inline]
pub(crate) fn class(value: &Value, values: Option<&[String]>, count: usize) -> Option<usize> {
    let found = match (values, value.view()) {
        (None, _) => value.as_i64().and_then(|number| usize::try_from(number).ok()),
        (Some(values), View::Str(text)) => values.iter().position(|known| known == text),
        (Some(values), View::Bool(truth)) => values.iter().position(|known| *known == truth.to_string()),
        (Some(values), _) => {
            let number = value.as_i64().map(|number| number.to_string());
            number.and_then(|number| values.iter().position(|known| *known == number))
        }
    };
    found.filter(|&class| class < count)
}

/// The error for a value of this field that stands for none.
#[cold]
pub(crate) fn none(value: &Value, field: &str, values: Option<&[String]>, count: usize) -> Error {
    let expected = match values {
        Some(values) => format!("one of {}", values.join(", ")),
        None => format!("a number below {count}"),
    };
    // Whole values may be long: only what could have been meant is shown.
    let found = match value.view() {
        View::Str(text) => format!("`{}`", text.chars().take(80).collect::<String>()),
        View::Bool(_) | View::Int(_) | View::UInt(_) | View::Float(_) | View::Null => {
            format!("{value:?}")
        }
        _ => "another kind of value".to_owned(),
    };
    Error::invalid(format!("found {found}, expected {expected}")).context("field", field)
}
