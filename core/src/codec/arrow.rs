//! Arrow columns as a list of plain values: format, name, metadata, flags, length, nulls, offset, buffers, children, dictionary.

use crate::{ArrowData, ArrowParts, Error, Result, Value, View};

/// The columns' parts in a list.
pub(super) fn to_value(parts: ArrowParts) -> Value {
    let text = |text: String| Value::from(text);
    let number = |number: usize| Value::from(number as u64);
    let metadata = parts.metadata.into_iter().flat_map(|(key, value)| [text(key), text(value)]).collect();
    let buffers = parts.buffers.into_iter().map(|buffer| buffer.map_or(Value::NULL, Value::from)).collect();
    Value::list(vec![
        text(parts.format),
        text(parts.name),
        Value::list(metadata),
        parts.flags.into(),
        number(parts.length),
        parts.nulls.map_or(Value::NULL, number),
        number(parts.offset),
        Value::list(buffers),
        Value::list(parts.children.into_iter().map(to_value).collect()),
        parts.dictionary.map_or(Value::NULL, |values| to_value(*values)),
    ])
}

/// The columns whose parts are in a list.
///
/// # Errors
/// `Corrupt` for anything that [`to_value`] does not make.
pub(super) fn from_value(value: &Value) -> Result<Value> {
    let parts = parts(value).ok_or_else(|| Error::corrupt("Arrow columns without all of their parts"))?;
    ArrowData::new(parts).map(Value::from).map_err(Error::corrupt)
}

fn parts(value: &Value) -> Option<ArrowParts> {
    let [format, name, metadata, flags, length, nulls, offset, buffers, children, dictionary] = list(value)?
    else {
        return None;
    };
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let number = |value: &Value| usize::try_from(value.as_i64()?).ok();
    let maybe = |value: &Value| if *value == Value::NULL { Some(None) } else { number(value).map(Some) };
    let buffer =
        |value: &Value| if *value == Value::NULL { Some(None) } else { value.as_bytes().cloned().map(Some) };
    let (pairs, []) = list(metadata)?.as_chunks::<2>() else { return None };
    Some(ArrowParts {
        format: text(format)?,
        name: text(name)?,
        metadata: pairs.iter().map(|[key, value]| Some((text(key)?, text(value)?))).collect::<Option<_>>()?,
        flags: flags.as_i64()?,
        length: number(length)?,
        nulls: maybe(nulls)?,
        offset: number(offset)?,
        buffers: list(buffers)?.iter().map(buffer).collect::<Option<_>>()?,
        children: list(children)?.iter().map(parts).collect::<Option<_>>()?,
        dictionary: match dictionary.view() {
            View::Null => None,
            _ => Some(Box::new(parts(dictionary)?)),
        },
    })
}

fn list(value: &Value) -> Option<&[Value]> {
    match value.view() {
        View::List(items) => Some(items),
        _ => None,
    }
}
