//! safetensors files, as the manifest tells of them: metadata, and type, shape and hash of each tensor.

use std::{fs, path::Path};

use forebay_bundled::forebay_tensors;
use forebay_core::{Buffer, Error, View};
use serde_json::{Map, Value as Json, json};

use super::npy::array;

/// What the reader makes of a file: `metadata` and `tensors`, by name.
pub(crate) fn digest(path: &Path) -> Result<Json, Error> {
    let value = forebay_tensors::parse_safetensors(&Buffer::from(fs::read(path)?))?;
    let View::Struct(fields) = value.view() else {
        return Err(Error::bug("a safetensors file that is no struct"));
    };
    let (mut tensors, mut metadata) = (Map::new(), Json::Null);
    for (name, value) in fields.fields() {
        match value.view() {
            View::Struct(texts) => {
                let texts = texts.fields().map(|(name, text)| (name.to_string(), json!(text.as_str())));
                metadata = Json::Object(texts.collect());
            }
            _ => drop(tensors.insert(name.to_string(), array(value))),
        }
    }
    Ok(json!({"metadata": metadata, "tensors": tensors}))
}
