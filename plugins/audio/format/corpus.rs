//! WAV files, as the manifest tells of them: channels, width, rate, frames and a hash of the data as stored.

use std::{fs, path::Path};

use forebay_bundled::forebay_audio;
use forebay_core::{Buffer, DType, Error, Value, View};
use serde_json::{Value as Json, json};

use crate::sha256;

/// What the reader makes of a file.
pub(crate) fn digest(path: &Path) -> Result<Json, Error> {
    let value = forebay_audio::parse_wav(&Buffer::from(fs::read(path)?), DType::ANY)?;
    let View::Struct(sound) = value.view() else { return Err(Error::bug("a sound that is no struct")) };
    let number = |name: &str| sound.get(name).and_then(Value::as_i64).unwrap_or_default();
    let samples = sound.get("samples").and_then(Value::as_tensor);
    let samples = samples.ok_or_else(|| Error::bug("a sound without samples"))?;
    let width = usize::try_from(number("bits")).unwrap_or_default().div_ceil(8);
    // 24 bits were made wider when they were read.
    let size = samples.dtype().size();
    let stored: Vec<u8> =
        samples.data().chunks_exact(size).flat_map(|sample| &sample[..width.min(size)]).copied().collect();
    Ok(json!({
        "frames": samples.shape()[0], "channels": samples.shape()[1], "rate": number("rate"),
        "bytes_per_sample": width, "pcm_sha256": sha256(&stored),
    }))
}
