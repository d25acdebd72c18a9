//! What every sound becomes: a struct of samples, rate and bits.

use forebay_core::{Buffer, DType, Error, Result, Tensor, TensorExt as _, Value};

/// The type to give where `stored` is that of the file.
///
/// # Errors
/// `Unsupported` for another one than that and float32.
pub(crate) fn chosen(wanted: DType, stored: DType) -> Result<DType> {
    match wanted {
        DType::ANY => Ok(stored),
        wanted if wanted == DType::F32 || wanted == stored => Ok(wanted),
        wanted => {
            Err(Error::unsupported(format!("wanted {wanted}, the file has {stored}; float32 would do too")))
        }
    }
}

/// How many bytes so many frames take.
///
/// # Errors
/// `Limit` when that is more than one value may have.
pub(crate) fn size(frames: usize, channels: usize, dtype: DType, limit: u64) -> Result<usize> {
    let len = frames.checked_mul(channels).and_then(|samples| samples.checked_mul(dtype.size()));
    len.filter(|&len| len as u64 <= limit)
        .ok_or_else(|| Error::limit(format!("{frames} frames, and one value may have {limit} bytes")))
}

/// The struct of `samples`, a tensor [frames, channels]; `rate`, frames a second; and `bits`, as stored for each sample.
pub(crate) fn value(samples: Buffer, dtype: DType, shape: [usize; 2], rate: u32, bits: u32) -> Result<Value> {
    Ok(Value::structure(vec![
        ("samples".into(), Tensor::new(dtype, &shape, samples)?.into()),
        ("rate".into(), i64::from(rate).into()),
        ("bits".into(), i64::from(bits).into()),
    ]))
}

/// An integer of so many bits and a sign, between -1 and 1.
#[expect(clippy::cast_precision_loss, reason = "the nearest float is meant")]
pub(crate) fn scaled(x: i32, bits: u32) -> [u8; 4] {
    (x as f32 / (1_u32 << bits) as f32).to_le_bytes()
}
