//! Which field of a sample holds the picture, and putting another one in its place.

use forebay_core::{Context, DType, Error, Result, Sample, Tensor, TensorExt, Value, View};

use crate::encoded::Encoded;
use crate::pixels::{self, Crop, Pixels, output};
use crate::scratch;

/// A picture as a field holds it.
pub(crate) enum Picture<'a> {
    Decoded(Pixels<'a>),
    Encoded(Encoded<'a>),
}

impl Picture<'_> {
    /// Height and width.
    pub(crate) fn size(&self) -> [usize; 2] {
        match self {
            Self::Decoded(src) => [src.height(), src.width()],
            Self::Encoded(encoded) => encoded.size(),
        }
    }

    /// Gives `work` pixels and the rectangle of them that is `crop` of the picture. Of a picture that is
    /// still encoded, no more than this rectangle is decoded.
    pub(crate) fn part<T>(self, crop: Crop, work: impl FnOnce(&Pixels<'_>, Crop) -> Result<T>) -> Result<T> {
        match self {
            Self::Decoded(src) => work(&src, crop),
            Self::Encoded(encoded) => scratch::with(crop.height * crop.width * 3, |out| {
                encoded.read(crop, out)?;
                let src = Pixels::new(out, [crop.height, crop.width, 3])?;
                work(&src, src.whole())
            }),
        }
    }

    /// The rectangle `crop` as a tensor; `None` if it is all of a picture that is decoded.
    pub(crate) fn cut(self, crop: Crop, cx: &Context<'_>) -> Result<Option<Tensor>> {
        let shape = |channels| [crop.height, crop.width, channels];
        match self {
            Self::Decoded(src) if crop == src.whole() => Ok(None),
            Self::Decoded(src) => {
                let shape = shape(src.channels());
                tensor(shape, shape, DType::U8, cx, |out| pixels::cut(&src, crop, out)).map(Some)
            }
            Self::Encoded(encoded) => {
                tensor(shape(3), shape(3), DType::U8, cx, |out| encoded.read(crop, out)).map(Some)
            }
        }
    }
}

/// Puts what `work` makes of the sample's decoded picture in its place; `None` leaves it.
///
/// The picture is in the field called `name`, or in the first one that holds a picture.
pub(crate) fn change<T: Into<Value>>(
    sample: &mut Sample,
    name: Option<&str>,
    work: impl FnOnce(&Pixels<'_>) -> Result<Option<T>>,
) -> Result<()> {
    let decoded = |value: &Value| decoded(value).is_ok();
    let wanted = "a decoded picture (uint8 [height, width, channels]), is it decoded?";
    let index = position(sample, name, wanted, &[&decoded])?;
    replace(sample, index, |value| work(&self::decoded(value)?))
}

/// The same for a picture that may still be encoded.
///
/// Without a `name`, a field with a decoded picture comes before all that hold files.
pub(crate) fn change_any(
    sample: &mut Sample,
    name: Option<&str>,
    cx: &Context<'_>,
    work: impl FnOnce(Picture<'_>) -> Result<Option<Tensor>>,
) -> Result<()> {
    let decoded = |value: &Value| decoded(value).is_ok();
    let wanted = "a picture (uint8 [height, width, channels], or bytes that begin as a picture's file does);";
    let index = position(sample, name, wanted, &[&decoded, &is_encoded])?;
    replace(sample, index, |value| {
        work(match value.view() {
            View::Bytes(bytes) => Picture::Encoded(Encoded::open(bytes, cx.limits().pixels)?),
            _ => Picture::Decoded(self::decoded(value)?),
        })
    })
}

/// The same for the bytes of a picture: those in the field called `name`, or the first that begin as a file does. Gives the place of the
/// field.
pub(crate) fn change_bytes(
    sample: &mut Sample,
    name: Option<&str>,
    work: impl FnOnce(&[u8]) -> Result<Tensor>,
) -> Result<usize> {
    let wanted = "bytes that begin as a picture's file does, is it decoded already?";
    let index = position(sample, name, wanted, &[&is_encoded])?;
    replace(sample, index, |value| match value.view() {
        View::Bytes(bytes) => work(bytes).map(Some),
        found => Err(Error::invalid(format!("found {found:?}, expected the bytes of a picture's file"))),
    })?;
    Ok(index)
}

/// Whether a value is the bytes of a file of a known format.
fn is_encoded(value: &Value) -> bool {
    matches!(value.view(), View::Bytes(bytes) if Encoded::is_known(bytes))
}

fn replace<T: Into<Value>>(
    sample: &mut Sample,
    index: usize,
    work: impl FnOnce(&Value) -> Result<Option<T>>,
) -> Result<()> {
    let value = sample.values().get(index).ok_or_else(|| Error::bug("a field without a value"))?;
    let changed = work(value).map_err(|error| match sample.schema().names().get(index) {
        Some(name) => error.context("field", name),
        None => error,
    })?;
    if let Some(changed) = changed
        && let Some(value) = sample.values_mut().get_mut(index)
    {
        *value = changed.into();
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

/// Where the field called `name` is, or else the first one of the first of these kinds that there is; together they are what is
/// `wanted`.
fn position(
    sample: &Sample,
    name: Option<&str>,
    wanted: &str,
    kinds: &[&dyn Fn(&Value) -> bool],
) -> Result<usize> {
    let found = match name {
        Some(name) => sample.schema().position(name),
        None => kinds.iter().find_map(|is_one| sample.values().iter().position(is_one)),
    };
    found.ok_or_else(|| {
        // A file without a byte in it is what is wrong, and not that it is no picture.
        let field = |(name, value): (_, &Value)| match value.view() {
            View::Bytes(bytes) if bytes.is_empty() => format!("{name} (0 bytes)"),
            _ => format!("{name}"),
        };
        let fields: Vec<_> = sample.schema().names().iter().zip(sample.values()).map(field).collect();
        let fields = fields.join(", ");
        Error::invalid(match name {
            Some(name) => format!("no field {name:?}, the sample has: {fields}"),
            None => format!("no field holds {wanted} the sample has: {fields}"),
        })
    })
}

/// The decoded picture in `value`.
fn decoded(value: &Value) -> Result<Pixels<'_>> {
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

#[cfg(test)]
mod tests {
    use forebay_core::{Buffer, Key};

    use super::*;

    #[test]
    fn an_empty_file_is_told_as_such() {
        let mut sample = Sample::new(1, Key::whole("a.jpg"));
        sample.set("path", "a.jpg");
        sample.set("bytes", Buffer::from(Vec::new()));
        let error = change_bytes(&mut sample, None, |_| unreachable!()).unwrap_err();
        assert!(error.message().ends_with("the sample has: path, bytes (0 bytes)"), "{error}");
    }
}
