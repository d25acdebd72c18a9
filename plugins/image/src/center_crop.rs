//! `center_crop`: the middle of a picture.
//!
//! ```toml
//! [center_crop]
//! examples = ['''forebay head -n 1 "files 'examples/photos/*.tar' | untar | resize 256 shorter=true | center_crop 224 | decode"''']
//! cases = ["PICTURES | center_crop 2"]
//! ```

use forebay_core::{Context, DataPipe, Map, OneOrMany, PipeInfo, Result, Sample, options};

use crate::pixels::Crop;
use crate::{field, resize::size_of};

options! {
    /// Options of `center_crop`.
    pub struct CenterCropOptions {
        /// Height and width, or one number for both.
        size: OneOrMany<usize> = required, in 1..=65535;
        /// The field with the picture, decoded or not; null for the first field that holds one.
        field: Option<String> = null;
    }
}

/// The pipe `center_crop`. A picture smaller than `size` is an error. Of one that is still encoded it decodes no
/// more than the middle.
pub struct CenterCrop {
    size: [usize; 2],
    field: Option<String>,
}

impl DataPipe for CenterCrop {
    const INFO: PipeInfo =
        PipeInfo { name: "center_crop", summary: "The middle of a picture", ..PipeInfo::DEFAULT };
    type Options = CenterCropOptions;

    fn new(options: CenterCropOptions) -> Result<Self> {
        Ok(Self { size: size_of(&options.size)?, field: options.field })
    }
}

impl Map for CenterCrop {
    fn map(&self, sample: &mut Sample, cx: &Context<'_>) -> Result<()> {
        field::change_any(sample, self.field.as_deref(), cx, |picture| {
            let crop = Crop::center(picture.size(), self.size)?;
            picture.cut(crop, cx)
        })
    }
}
