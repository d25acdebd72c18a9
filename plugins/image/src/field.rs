//! Which field of a sample holds the picture, and putting another one in its place.

use forebay_core::{Context, DType, Error, Result, Sample, Tensor, TensorExt, Value};

use crate::pixels::{Pixels, output};

/// Puts what `work` makes of the sample's picture in its place; `None` leaves it.
///
/// The picture is in the field called `name`, or in the first one that holds a picture.
pub(crate) fn change(
    sample: &mut Sample,
    name: Option<&str>,
    work: impl FnOnce(&Pixels<'_>) -> Result<Option<Tensor>>,
) -> Result<()> {
    let index = position(sample, name)?;
    let in_field = |sample: &Sample, error: Error| match sample.schema().names().get(index) {
        Some(name) => error.context("field", name),
        None => error,
    };
    let value = sample.values().get(index).ok_or_else(|| Error::bug("a field without a value"))?;
    let tensor = pixels(value).and_then(|src| work(&src)).map_err(|error| in_field(sample, error))?;
    if let Some(tensor) = tensor
        && let Some(value) = sample.values_mut().get_mut(index)
    {
        *value = tensor.into();
    }
    Ok(())
}

/// The tensor that `write` fills, in the host's memory: a picture of `size`, seen as `shape`.
pub(crate) fn tensor(
    size: [usize; 3],
    shape: [usize; 3],
    dtype: DType,
    cx: &Context<'_>,
    write: impl FnOnce(&mut [u8]) -> Result<()>,
) -> Result<Tensor> {
    let mut out = output(size, dtype, cx)?;
    write(&mut out)?;
    Tensor::new(dtype, &shape, out.freeze())
}

fn position(sample: &Sample, name: Option<&str>) -> Result<usize> {
    let found = match name {
        Some(name) => sample.schema().position(name),
        None => sample.values().iter().position(|value| pixels(value).is_ok()),
    };
    found.ok_or_else(|| {
        let fields: Vec<&str> = sample.schema().names().iter().map(|name| name.as_str()).collect();
        let fields = fields.join(", ");
        Error::invalid(match name {
            Some(name) => format!("no field {name:?}, the sample has: {fields}"),
            None => format!(
                "no field holds a picture (uint8 [height, width, channels]), is it decoded? the sample has: \
                 {fields}"
            ),
        })
    })
}

/// The picture in `value`.
fn pixels(value: &Value) -> Result<Pixels<'_>> {
    let Some(tensor) = value.as_tensor() else {
        return Err(Error::invalid("found no tensor, expected a decoded picture"));
    };
    match *tensor.shape() {
        [height, width, channels] if tensor.dtype() == DType::U8 => {
            let shape = [height, width, channels].map(|axis| usize::try_from(axis).unwrap_or(0));
            Pixels::new(tensor.data(), shape)
        }
        _ => Err(Error::invalid(format!("found {tensor:?}, expected uint8 [height, width, channels]"))),
    }
}
