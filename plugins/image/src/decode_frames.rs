//! `decode_frames`: an animation to a tensor of all its frames.
//!
//! ```toml
//! [decode_frames]
//! examples = ['forebay head "files plugins/image/seeds/walk.gif | decode_frames delays=milliseconds"']
//!
//! [[decode_frames.ending]]
//! graph = "files '../plugins/image/seeds/walk.gif' open=read | repeat | take N | decode_frames delays=ms"
//! instead = "files '../plugins/image/seeds/walk.gif' open=read | repeat | decode_frames delays=ms"
//! why = "a folder has an end: its files come again"
//! ```

use forebay_core::{
    Context, DType, DataPipe, Error, Map, PipeInfo, Result, Sample, Tensor, TensorExt as _, Value, options,
};

use crate::{field, frames::Frames};

options! {
    /// Options of `decode_frames`.
    pub struct DecodeFramesOptions {
        /// The field with the animation's bytes; null for the first field that begins like a picture.
        field: Option<String> = null;
        /// A new field for the milliseconds of each frame, a float64 tensor [frames]; null for none.
        delays: Option<String> = null;
        /// The most frames to read, the first ones; null for all.
        most: Option<u64> = null, in 1..=4294967295;
    }
}

/// Decodes each GIF, WebP or animated PNG into a uint8 tensor [frames, height, width, 3].
#[derive(Debug)]
pub struct DecodeFrames {
    options: DecodeFramesOptions,
}

impl DataPipe for DecodeFrames {
    const INFO: PipeInfo = PipeInfo {
        name: "decode_frames",
        summary: "Animations to a tensor of all frames",
        ..PipeInfo::DEFAULT
    };
    type Options = DecodeFramesOptions;

    fn new(options: DecodeFramesOptions) -> Result<Self> {
        Ok(Self { options })
    }
}

impl Map for DecodeFrames {
    fn map(&self, sample: &mut Sample, cx: &Context<'_>) -> Result<()> {
        let DecodeFramesOptions { field, delays, most } = &self.options;
        let mut shown = Vec::new();
        let picture = field::change_bytes(sample, field.as_deref(), |bytes| {
            let frames = Frames::open(bytes, cx.limits().pixels)?;
            let count = most.map_or(frames.count(), |most| frames.count().min(most as usize));
            let [height, width] = frames.size();
            let rows = height.checked_mul(count);
            let limit = || Error::limit(format!("{count} frames of {height} x {width} are too many"));
            let len = rows.and_then(|rows| rows.checked_mul(width)?.checked_mul(3)).ok_or_else(limit)?;
            let times = count.saturating_mul(size_of::<f64>());
            if len.saturating_add(times) as u64 > cx.limits().bytes {
                return Err(limit());
            }
            let mut out = cx.alloc(len)?;
            shown = vec![0.0; count];
            frames.read(&mut out, &mut shown)?;
            Tensor::new(DType::U8, &[count, height, width, 3], out.freeze())
        })?;
        if let Some(name) = delays {
            if sample.schema().position(name) == Some(picture) {
                return Err(Error::invalid(format!(
                    "delays={name} is the field of the frames, name another one"
                )));
            }
            let bytes: Vec<u8> = shown.iter().flat_map(|shown: &f64| shown.to_ne_bytes()).collect();
            sample.set(name, Value::from(Tensor::new(DType::F64, &[shown.len()], bytes.into())?));
        }
        Ok(())
    }
}
