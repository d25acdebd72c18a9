//! `cast`: numbers and tensors in another type.
//!
//! ```toml
//! [cast]
//! page = "fields"
//! examples = ['''forebay head -n 1 "range 5 | cast 'value=f32' | batch 4"''']
//! cases = ["range N | cast 'value=f32'"]
//! ```

mod element;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use forebay_core::{
    Context, DType, DataPipe, Error, Map, OneOrMany, PipeInfo, Result, Sample, Tensor, TensorExt, Value,
    View, options,
};

pub(crate) use self::element::{Number, Visit, visit};
use self::element::{converter, scalar};
use crate::{
    plumbing::{by_schema::BySchema, stack::room},
    rename::pair,
    select::{place, repeated},
};

options! {
    /// Options of `cast`.
    pub struct CastOptions {
        /// `name=type`, one for each field: `image=f32`. The types: bool, u8 to u64, i8 to i64, f16, bf16, f32, f64.
        fields: OneOrMany<String> = required;
    }
}

/// Gives numbers and the elements of tensors another type.
///
/// A number that the type does not hold is an error: one that is out of its range, NaN as an integer, all but 0 and 1 as a truth value.
/// Floats as integers are cut off towards zero; as floats of fewer bits, numbers are rounded to the nearest, ties to even. A tensor is
/// written into the host's memory; one that has the type already is left as it is.
#[derive(Debug)]
pub struct Cast {
    fields: Vec<(String, DType)>,
    places: BySchema<Arc<[usize]>>,
}

impl DataPipe for Cast {
    const INFO: PipeInfo =
        PipeInfo { name: "cast", summary: "Numbers and tensors in another type", ..PipeInfo::DEFAULT };
    type Options = CastOptions;

    fn new(options: CastOptions) -> Result<Self> {
        let refuse = |message: String| Error::invalid(message).context("option", "fields");
        let mut fields = Vec::new();
        for text in &options.fields.0 {
            let (name, dtype) =
                pair(text).ok_or_else(|| refuse(format!("found `{text}`, expected `name=type`")))?;
            let dtype = dtype_of(dtype).ok_or_else(|| {
                let known: Vec<_> = DType::NAMED.iter().map(|(_, name)| short(name)).collect();
                refuse(format!("no type `{dtype}`; there are: {}", known.join(", ")))
            })?;
            fields.push((name.to_owned(), dtype));
        }
        let names: Vec<_> = fields.iter().map(|(name, _)| name).collect();
        if let Some(twice) = repeated(&names) {
            return Err(refuse(format!("`{twice}` is named twice")));
        }
        Ok(Self { fields, places: BySchema::default() })
    }
}

impl Map for Cast {
    fn map(&self, sample: &mut Sample, cx: &Context) -> Result<()> {
        let places = self.places.get(sample.schema(), || {
            self.fields.iter().map(|(name, _)| place(sample.schema(), name)).collect()
        })?;
        for ((name, dtype), &at) in self.fields.iter().zip(&**places) {
            let value = &mut sample.values_mut()[at];
            if value.dtype() != Some(*dtype) {
                *value = cast(value, *dtype, cx).map_err(|error| error.context("field", name))?;
            }
        }
        Ok(())
    }
}

/// The type of this name, in our spelling or in NumPy's.
fn dtype_of(name: &str) -> Option<DType> {
    let found = DType::NAMED.iter().find(|(_, long)| *long == name || short(long) == name);
    found.map(|(dtype, _)| *dtype)
}

/// `f32` for `float32`.
fn short(name: &str) -> String {
    name.replace("float", "f").replace("uint", "u").replace("int", "i")
}

fn cast(value: &Value, to: DType, cx: &Context) -> Result<Value> {
    let number = match value.view() {
        View::Bool(truth) => Number::UInt(truth.into()),
        View::Int(number) => Number::Int(number),
        View::UInt(number) => Number::UInt(number),
        View::Float(number) => Number::Float(number),
        View::Tensor(tensor) => return cast_tensor(tensor, to, cx).map(Value::from),
        other => {
            let found = match other {
                View::Null => "null",
                View::Str(_) => "text",
                View::Bytes(_) => "bytes",
                View::List(_) => "a list",
                View::Struct(_) => "a struct",
                _ => "another value",
            };
            return Err(Error::invalid(format!("found {found}, expected a number or a tensor")));
        }
    };
    match scalar(number, to) {
        Some(bits) => Ok(Value::scalar(to, bits)),
        None => Err(unfit(number, value.dtype().unwrap_or(DType::ANY), to)),
    }
}

fn cast_tensor(tensor: &Tensor, to: DType, cx: &Context) -> Result<Tensor> {
    let from = tensor.dtype();
    let convert =
        converter(from, to).ok_or_else(|| Error::unsupported(format!("no cast from {from} to {to}")))?;
    let shape: Vec<_> = tensor.shape().iter().map(|&axis| axis as usize).collect();
    let mut data = room(cx, tensor.data().len() / from.size(), to.size())?;
    convert(tensor.data(), &mut data).map_err(|number| unfit(number, from, to))?;
    Tensor::new(to, &shape, data.freeze())
}

#[cold]
fn unfit(number: Number, from: DType, to: DType) -> Error {
    Error::invalid(format!("{number} is {from} and does not fit into {to}"))
}
