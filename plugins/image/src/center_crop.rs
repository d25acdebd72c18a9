//! `center_crop`: the middle of a picture.

use forebay_core::{Context, DType, DataPipe, Map, OneOrMany, PipeInfo, Result, Sample, options};

use crate::pixels::{Crop, cut};
use crate::{field, resize::size_of};

options! {
    /// Options of `center_crop`.
    pub struct CenterCropOptions {
        /// Height and width, or one number for both.
        size: OneOrMany<usize> = required, in 1..=65535;
        /// The field with the picture; null for the first that holds one.
        field: Option<String> = null;
    }
}

/// The pipe `center_crop`. A picture smaller than `size` is an error.
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
        field::change(sample, self.field.as_deref(), |src| {
            let crop = Crop::center([src.height(), src.width()], self.size)?;
            if crop == src.whole() {
                return Ok(None);
            }
            let shape = [crop.height, crop.width, src.channels()];
            field::tensor(shape, shape, DType::U8, cx, |out| cut(src, crop, out)).map(Some)
        })
    }
}
