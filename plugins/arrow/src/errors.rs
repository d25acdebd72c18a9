//! What the Arrow and Parquet libraries say, in the words of this one.

use std::{
    error::Error as _,
    panic::{AssertUnwindSafe, catch_unwind},
};

use arrow_schema::ArrowError;
use forebay_core::{Error, Result};
use parquet::errors::ParquetError;

/// A library's error as ours: one of ours that went through it comes back as it was.
pub(crate) fn of_parquet(error: ParquetError) -> Error {
    if let Some(ours) = error.source().and_then(|source| source.downcast_ref::<Error>()) {
        return ours.clone();
    }
    match error {
        ParquetError::NYI(message) => Error::unsupported(format!("unreadable Parquet: {message}")),
        ParquetError::ArrowError(message) if message.contains("not yet implemented") => {
            Error::unsupported(format!("unreadable Parquet: {message}"))
        }
        other => Error::corrupt(format!("unreadable Parquet: {other}")),
    }
}

/// A library's error as ours.
pub(crate) fn of_arrow(error: ArrowError) -> Error {
    if let Some(ours) = error.source().and_then(|source| source.downcast_ref::<Error>()) {
        return ours.clone();
    }
    match error {
        ArrowError::NotYetImplemented(message) => Error::unsupported(format!("unreadable Arrow: {message}")),
        other => Error::corrupt(format!("unreadable Arrow: {other}")),
    }
}

/// What `read` gives. Where damaged bytes make a library panic, which its own checks should have kept from happening, that is an
/// error of the bytes.
pub(crate) fn shielded<T>(read: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|cause| {
        let text = cause.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| cause.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Err(Error::corrupt(format!("the bytes break a promise of their format: {text}")))
    })
}
