//! TFRecord files, as the manifest tells of them: length and hash of each record.

use std::{fs, path::Path};

use forebay_bundled::forebay_tfrecord;
use forebay_core::{Buffer, Error, Key, Sample, Value};
use serde_json::{Value as Json, json};

use crate::sha256;

/// What the reader makes of a file: `records`.
pub(crate) fn digest(path: &Path) -> Result<Json, Error> {
    let file = Buffer::from(fs::read(path)?);
    let origin = path.to_string_lossy().into_owned().into();
    let sample = Sample::new(0, Key { origin, ..Key::default() });
    let records = forebay_tfrecord::records(file.into(), &sample, true).map(|record| {
        let record = record?;
        let bytes = record.get("bytes").and_then(Value::as_bytes);
        let bytes = bytes.ok_or_else(|| Error::bug("a record without bytes"))?;
        Ok(json!([bytes.len(), sha256(&**bytes)]))
    });
    Ok(json!({"records": records.collect::<Result<Vec<_>, Error>>()?}))
}
