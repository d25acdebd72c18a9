//! Parquet and Arrow IPC files: rows, and of each column name, type, nulls and a hash of its values.

use std::{fmt::Write as _, path::Path};

use forebay_bundled::forebay_arrow::{
    ReadOptions, RowValues,
    arrow_schema::{DataType, IntervalUnit},
    read,
};
use forebay_core::{Buffer, Error, Tensor, Value, View};
use serde_json::{Value as Json, json};

use crate::{sha256, write_text};

/// What the plugin makes of the file at `path`.
pub(crate) fn digest(path: &Path) -> Result<Json, Error> {
    let bytes = Buffer::from(std::fs::read(path)?);
    let table = read(&bytes.into(), &ReadOptions::default())?;
    let schema = table.schema().clone();
    let mut columns: Vec<_> = schema.fields().iter().map(|_| (0, String::new())).collect();
    let mut rows = 0;
    for batch in table {
        let batch = batch?.columns;
        let values = RowValues::new(&batch)?;
        for at in 0..values.len() {
            for ((value, field), (_, text)) in values.row(at)?.iter().zip(schema.fields()).zip(&mut columns) {
                text.push(if text.is_empty() { '[' } else { ',' });
                canon(value, field.data_type(), text)?;
            }
        }
        for (column, (nulls, _)) in batch.columns().iter().zip(&mut columns) {
            *nulls += if *column.data_type() == DataType::Null { column.len() } else { column.null_count() };
        }
        rows += batch.num_rows();
    }
    let columns = schema.fields().iter().zip(columns).map(|(field, (nulls, mut text))| {
        text.push_str(if text.is_empty() { "[]" } else { "]" });
        let hash = sha256(&text);
        json!([field.name(), field.data_type().to_string(), field.is_nullable(), nulls, hash])
    });
    Ok(json!({"rows": rows, "columns": columns.collect::<Vec<_>>()}))
}

/// Compares rows and, of each column, name, nulls and values; the types are spelt in other words.
pub(crate) fn compare(expected: &Json, found: &Json) -> Result<(), String> {
    if expected["rows"] != found["rows"] {
        return Err(format!("{} rows, expected {}", found["rows"], expected["rows"]));
    }
    let of = |digest: &Json| digest["columns"].as_array().cloned().unwrap_or_default();
    let (expected, found) = (of(expected), of(found));
    if expected.len() != found.len() {
        return Err(format!("{} columns, expected {}", found.len(), expected.len()));
    }
    for (expected, found) in expected.iter().zip(&found) {
        let unknown = expected[4].as_str().is_some_and(|hash| hash.starts_with("no digest"));
        let same =
            expected[0] == found[0] && (unknown || (expected[3] == found[3] && expected[4] == found[4]));
        if !same {
            return Err(format!("column {found}, expected {expected}"));
        }
    }
    Ok(())
}

/// Writes the canonical form of a value.
fn canon(value: &Value, kind: &DataType, out: &mut String) -> Result<(), Error> {
    match kind {
        DataType::Dictionary(_, values) => return canon(value, values, out),
        DataType::RunEndEncoded(_, values) => return canon(value, values.data_type(), out),
        DataType::Union(fields, _) => {
            // The value does not say which type it is of; the first that could be is right where types differ.
            let fits = fields.iter().find(|(_, field)| could_be(value, field.data_type()));
            return match fits {
                Some((_, field)) => canon(value, field.data_type(), out),
                None => canon(&Value::NULL, &DataType::Null, out),
            };
        }
        _ => {}
    }
    match value.view() {
        View::Null => out.push_str("null"),
        View::Bool(value) => write!(out, "{value}").unwrap_or_default(),
        View::Int(value) => write!(out, "{value}").unwrap_or_default(),
        View::UInt(value) => write!(out, "{value}").unwrap_or_default(),
        View::Float(value) => {
            let bits = if value.is_nan() { 0x7ff8_0000_0000_0000 } else { value.to_bits() };
            write!(out, "\"{bits:016x}\"").unwrap_or_default();
        }
        View::Str(text) => write_text(text, out),
        View::Bytes(bytes) => {
            out.push_str("\"x");
            bytes.iter().for_each(|byte| write!(out, "{byte:02x}").unwrap_or_default());
            out.push('"');
        }
        View::Tensor(tensor) => elements(tensor, tensor.shape(), &mut 0, out),
        View::List(items) => {
            let inner = match kind {
                DataType::List(items)
                | DataType::LargeList(items)
                | DataType::FixedSizeList(items, _)
                | DataType::ListView(items)
                | DataType::LargeListView(items)
                | DataType::Map(items, _) => items.data_type().clone(),
                DataType::Interval(IntervalUnit::DayTime | IntervalUnit::MonthDayNano) => DataType::Int64,
                other => return Err(Error::bug(format!("a list in a column of type {other}"))),
            };
            let map = matches!(kind, DataType::Map(_, _));
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                if map { entry(item, &inner, out)? } else { canon(item, &inner, out)? }
            }
            out.push(']');
        }
        View::Struct(values) => {
            let DataType::Struct(fields) = kind else {
                return Err(Error::bug(format!("a struct in a column of type {kind}")));
            };
            out.push('[');
            for (at, (value, field)) in values.values().iter().zip(fields).enumerate() {
                out.push_str(if at > 0 { ",[" } else { "[" });
                write_text(field.name(), out);
                out.push(',');
                canon(value, field.data_type(), out)?;
                out.push(']');
            }
            out.push(']');
        }
        other => return Err(Error::bug(format!("no canonical form of {other:?}"))),
    }
    Ok(())
}

/// A key and its value.
fn entry(value: &Value, kind: &DataType, out: &mut String) -> Result<(), Error> {
    let (View::Struct(values), DataType::Struct(fields)) = (value.view(), kind) else {
        return Err(Error::bug("a map of other than pairs"));
    };
    out.push('[');
    for (at, (value, field)) in values.values().iter().zip(fields).enumerate() {
        out.push_str(if at > 0 { "," } else { "" });
        canon(value, field.data_type(), out)?;
    }
    out.push(']');
    Ok(())
}

fn could_be(value: &Value, kind: &DataType) -> bool {
    match value.view() {
        View::Null => true,
        View::Int(_) => kind.is_signed_integer() || kind.is_temporal(),
        View::UInt(_) => kind.is_unsigned_integer(),
        View::Float(_) => kind.is_floating(),
        View::Bool(_) => *kind == DataType::Boolean,
        View::Str(_) => {
            matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) || kind.is_decimal()
        }
        View::Bytes(_) => kind.is_binary() || matches!(kind, DataType::FixedSizeBinary(_)),
        View::Struct(_) => matches!(kind, DataType::Struct(_)),
        _ => kind.is_nested(),
    }
}

/// The numbers of a tensor, a list for each axis.
fn elements(tensor: &Tensor, shape: &[i64], at: &mut usize, out: &mut String) {
    let Some((&len, inner)) = shape.split_first() else {
        let size = tensor.dtype().size();
        let mut bits = [0; 8];
        bits[..size].copy_from_slice(&tensor.data()[*at * size..(*at + 1) * size]);
        *at += 1;
        let (mut bits, wide) = (u64::from_le_bytes(bits), 64 - 8 * size);
        if tensor.dtype().code == 0 {
            bits = ((bits << wide) as i64 >> wide) as u64;
        }
        return canon(&Value::scalar(tensor.dtype(), bits), &DataType::Null, out).unwrap_or_default();
    };
    out.push('[');
    for item in 0..len {
        out.push_str(if item > 0 { "," } else { "" });
        elements(tensor, inner, at, out);
    }
    out.push(']');
}
