//! Helpers for the plain types of the ABI.

use forebay_abi::{Buffer, DType, State, Tensor, abi_stable::std_types::RVec};
use serde::{Serialize, de::DeserializeOwned};

use crate::{Error, Result};

/// Reading and writing a [`State`] as JSON.
pub trait StateExt: Sized {
    /// A state that holds `value` as JSON, with this version of the format.
    ///
    /// # Errors
    /// `Bug` if `value` has no JSON form.
    fn json(version: u32, value: &impl Serialize) -> Result<Self>;

    /// Marks this state for a pipe that holds samples: after a restore, the pipe gets the last `count` samples of
    /// `input` again.
    #[must_use]
    fn again(self, input: usize, count: u64) -> Self;

    /// Reads the value from a state of this version.
    ///
    /// # Errors
    /// `Invalid` if the state has another version or another shape.
    fn parse<T: DeserializeOwned>(&self, version: u32) -> Result<T>;
}

impl StateExt for State {
    fn json(version: u32, value: &impl Serialize) -> Result<Self> {
        let bytes =
            serde_json::to_vec(value).map_err(|error| Error::bug(format!("unsavable state: {error}")))?;
        Ok(Self { version, bytes: bytes.into(), again: RVec::new() })
    }

    fn again(mut self, input: usize, count: u64) -> Self {
        let missing = (input + 1).saturating_sub(self.again.len());
        self.again.extend(std::iter::repeat_n(0, missing));
        self.again[input] = count;
        self
    }

    fn parse<T: DeserializeOwned>(&self, version: u32) -> Result<T> {
        if self.version != version {
            let found = self.version;
            return Err(Error::invalid(format!("found a state of version {found}, expected {version}")));
        }
        serde_json::from_slice(&self.bytes)
            .map_err(|error| Error::invalid(format!("unreadable state: {error}")))
    }
}

/// Makes a [`Tensor`] with this crate's error.
pub trait TensorExt: Sized {
    /// A row-major tensor over `data`, whose length must be exactly that of the shape.
    ///
    /// # Errors
    /// `Invalid` if the length does not fit, or if there are too many axes.
    fn new(dtype: DType, shape: &[usize], data: Buffer) -> Result<Self>;
}

impl TensorExt for Tensor {
    fn new(dtype: DType, shape: &[usize], data: Buffer) -> Result<Self> {
        Self::try_new(dtype, shape, data).map_err(Error::invalid)
    }
}
