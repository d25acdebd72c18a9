//! CSV and TSV: what the records of a file are, in the words of the manifest.

use std::{collections::BTreeSet, fs, path::Path};

use forebay_bundled::forebay_json::{Dialect, records};
use forebay_core::{Error, Result};
use serde_json::json;

use crate::{sha256, write_text};

/// The records of the file, as text.
pub(crate) fn digest(path: &Path) -> Result<serde_json::Value, Error> {
    let tabs = path.to_string_lossy().contains(".tsv");
    let dialect = Dialect { separator: if tabs { b'\t' } else { b',' }, ..Dialect::CSV };
    let rows = records(&fs::read(path)?.into(), dialect)?;
    let columns: BTreeSet<_> = rows.iter().map(Vec::len).collect();
    let header: Vec<_> = rows.first().into_iter().flatten().take(40).map(|cell| cell.as_str()).collect();
    let mut text = String::new();
    for (at, row) in rows.iter().enumerate() {
        text.push_str(if at == 0 { "[[" } else { ",[" });
        for (at, cell) in row.iter().enumerate() {
            text.push_str(if at == 0 { "" } else { "," });
            write_text(cell, &mut text);
        }
        text.push(']');
    }
    text.push_str(if rows.is_empty() { "[]" } else { "]" });
    Ok(json!({ "rows": rows.len(), "columns": columns, "header": header, "sha256": sha256(&text) }))
}
