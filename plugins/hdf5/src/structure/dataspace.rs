//! Dataspace messages: how many elements, along which axes (section IV.A.2.b).

use forebay_core::{Error, Result};

use crate::{file::File, structure::header::Body};

/// The most axes that HDF5 knows.
const AXES: u8 = 32;

/// The shape of a dataset or attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dataspace {
    /// The length of each axis; `None` when there are no elements at all.
    pub(crate) dims: Option<Vec<u64>>,
    /// What each may grow to; `u64::MAX` without a bound.
    pub(crate) max: Vec<u64>,
}

impl Dataspace {
    pub(crate) fn read(file: &File, (body, at): &Body) -> Result<Self> {
        let mut cursor = file.cursor(body, *at);
        let version = cursor.version("the dataspace", 1..=2)?;
        let (rank, flags) = (cursor.u8()?, cursor.u8()?);
        if rank > AXES {
            return Err(cursor.corrupt(format!("found {rank} axes, expected at most {AXES}")));
        }
        let null = match version {
            1 => cursor.skip(5).map(|()| false)?,
            _ => cursor.u8()? == 2,
        };
        let mut axes = || (0..rank).map(|_| cursor.length()).collect::<Result<Vec<_>>>();
        let dims = axes()?;
        let mut max = if flags & 1 == 0 { dims.clone() } else { axes()? };
        // "Unlimited" is all ones in however many bytes.
        let unlimited = u64::MAX >> (64 - 8 * file.sizes().length);
        for (max, dim) in max.iter_mut().zip(&dims) {
            *max = if *max == unlimited { u64::MAX } else { (*max).max(*dim) };
        }
        if dims.iter().try_fold(1_u64, |count, &dim| count.checked_mul(dim.max(1))).is_none() {
            return Err(
                Error::corrupt(format!("more elements than can be counted: {dims:?}")).context("byte", at)
            );
        }
        Ok(Self { dims: (!null).then_some(dims), max })
    }
}
