//! npy and npz files, as the manifest tells of them: type, shape and a hash of the bytes of each array.

use std::{fs, path::Path};

use forebay_bundled::forebay_tensors;
use forebay_core::{Buffer, Error, Value, View};
use serde_json::{Map, Value as Json, json};

use crate::sha256;

/// What the reader makes of a file: `array`, or `arrays` by name for npz.
pub(crate) fn digest(path: &Path) -> Result<Json, Error> {
    let bytes = Buffer::from(fs::read(path)?);
    if path.extension().is_none_or(|extension| extension != "npz") {
        return Ok(json!({"array": array(&forebay_tensors::parse_npy(&bytes)?)}));
    }
    let value = forebay_tensors::parse_npz(&bytes)?;
    let View::Struct(fields) = value.view() else { return Err(Error::bug("an npz file that is no struct")) };
    let arrays: Map<String, Json> =
        fields.fields().map(|(name, value)| (name.to_string(), array(value))).collect();
    Ok(json!({"arrays": arrays}))
}

/// Type, shape and hash. Strings lose the zeros at their ends when they are read: they have a hash only where they lost none.
pub(crate) fn array(value: &Value) -> Json {
    match value.view() {
        View::Tensor(tensor) => {
            let dtype = tensor.dtype();
            let order = if dtype.size() == 1 { '|' } else { '<' };
            let kind =
                ["i", "u", "f", "?", "V", "c", "b"].get(usize::from(dtype.code)).copied().unwrap_or("?");
            let code = format!("{order}{kind}{}", dtype.size());
            json!([code, tensor.shape(), sha256(&**tensor.data())])
        }
        View::Bytes(bytes) => {
            json!([format!("|S{}", bytes.len()), [], sha256(&**bytes)])
        }
        other => json!(format!("{other:?}")),
    }
}

/// The keys that this reader gives are those of the manifest, with the same values.
pub(crate) fn compare(expected: &Json, found: &Json) -> Result<(), String> {
    for key in ["array", "arrays"] {
        if expected[key] != found[key] {
            return Err(format!("{key}: found {}, expected {}", found[key], expected[key]));
        }
    }
    if found["array"].is_null() && found["arrays"].is_null() {
        return Err("nothing was found".into());
    }
    Ok(())
}
