//! Where the memory of tensors comes from, and how much one value may take.

use forebay_core::{Buffer, BufferMut, Context, DType, Error, Limits, Result, Tensor, TensorExt as _};

/// Output memory for one value.
pub(crate) struct Memory<'a> {
    host: Option<&'a Context<'a>>,
    limit: u64,
}

impl<'a> Memory<'a> {
    /// The host's, within its limit.
    pub(crate) fn of(cx: &'a Context<'a>) -> Self {
        Self { host: Some(cx), limit: cx.limits().bytes }
    }

    /// The program's own, within the usual limit.
    pub(crate) fn own() -> Self {
        Self { host: None, limit: Limits::DEFAULT.bytes }
    }

    /// The most bytes that one value may have.
    pub(crate) const fn limit(&self) -> u64 {
        self.limit
    }

    /// Refuses more bytes than one value may have; all are counted, shared ones too.
    pub(crate) fn check(&self, bytes: usize) -> Result<()> {
        if bytes as u64 > self.limit {
            return Err(Error::limit(format!(
                "found {bytes} bytes, expected at most {} for one value",
                self.limit
            )));
        }
        Ok(())
    }

    /// `len` bytes with anything in them, after the check of the limit.
    pub(crate) fn take(&self, len: usize) -> Result<BufferMut> {
        self.check(len)?;
        match self.host {
            Some(cx) => cx.alloc(len),
            None => Ok(BufferMut::zeroed(len)),
        }
    }

    /// A row-major tensor over `data`: shared where the elements lie on their own boundaries, else a copy.
    pub(crate) fn tensor(&self, dtype: DType, shape: &[usize], data: Buffer) -> Result<Tensor> {
        self.check(data.len())?;
        let aligned = data.is_empty() || data.as_ptr().addr().is_multiple_of(dtype.size().max(1));
        let data = if aligned {
            data
        } else {
            let mut copy = self.take(data.len())?;
            copy.copy_from_slice(&data);
            copy.freeze()
        };
        // The callers have made the length fit, so it can only be too many axes.
        Tensor::new(dtype, shape, data).map_err(|error| Error::unsupported(error.message()))
    }
}

/// Turns round the bytes of every element of `unit` bytes.
pub(crate) fn swap(bytes: &mut [u8], unit: usize) {
    // A width known to the compiler becomes one instruction.
    match unit {
        2 => bytes.as_chunks_mut::<2>().0.iter_mut().for_each(|element| element.reverse()),
        4 => bytes.as_chunks_mut::<4>().0.iter_mut().for_each(|element| element.reverse()),
        8 => bytes.as_chunks_mut::<8>().0.iter_mut().for_each(|element| element.reverse()),
        _ => {}
    }
}
