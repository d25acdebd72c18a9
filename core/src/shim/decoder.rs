//! The table of a Decoder.

use std::{marker::PhantomData, sync::Arc};

use forebay_abi::{
    Buffer, Context as RawContext, Decoder as RawDecoder, DecoderTable, DecoderTableRef, Outcome, Value,
    Wanted as RawWanted,
    abi_stable::{
        prefix_type::WithMetadata,
        std_types::{RSlice, RStr},
    },
    code,
};

use super::{
    guard::{Instance, guard},
    outcome,
};
use crate::{Context, Decoder, Error, Options, Result, Wanted, descriptor::Described, export::DecoderEntry};

/// The entry of a decoder.
#[must_use]
pub const fn decoder_entry<T: Decoder>() -> DecoderEntry {
    DecoderEntry { described: Described { info: T::INFO, options: T::Options::SPECS }, make: make::<T> }
}

/// What a decoder's table calls: a [`Decoder`], or what the host itself has for one of another language.
pub trait Decodes: Send + Sync + 'static {
    /// How sure it is, from 0 to 255, that bytes with this head and extension are its own.
    ///
    /// # Errors
    /// Any.
    fn probe(&self, head: &[u8], extension: &str) -> Result<u8>;

    /// Decodes.
    ///
    /// # Errors
    /// Any.
    fn decode(&self, bytes: &Buffer, wanted: &Wanted, cx: &Context) -> Result<Value>;

    /// Says whose an error is that came of decoding, also that of a panic. It does not panic itself.
    fn blame(&self, error: Error) -> Error {
        error
    }
}

/// A decoder, and the plugin it is of: an error says both, since the pipe that called may be of another.
struct Owned<T> {
    decoder: T,
    plugin: &'static str,
}

impl<T: Decoder> Decodes for Owned<T> {
    fn probe(&self, head: &[u8], extension: &str) -> Result<u8> {
        Ok(self.decoder.probe(head, extension))
    }

    fn decode(&self, bytes: &Buffer, wanted: &Wanted, cx: &Context) -> Result<Value> {
        self.decoder.decode(bytes, wanted, cx)
    }

    fn blame(&self, error: Error) -> Error {
        error.context("decoder", format!("{} of {}", T::INFO.name, self.plugin))
    }
}

fn make<T: Decoder>(options: &str, plugin: &'static str) -> Result<RawDecoder> {
    Ok(decoder(Owned { decoder: T::new(T::Options::parse(options)?)?, plugin }))
}

/// A handle of `decodes`, with one reference.
#[must_use]
pub fn decoder<T: Decodes>(decodes: T) -> RawDecoder {
    let instance = Arc::into_raw(Arc::new(Instance::new(decodes))).cast();
    // SAFETY: the instance is of the table's type, and its one reference is given up.
    unsafe { RawDecoder::from_raw(instance, Table::<T>::REF) }
}

struct Table<T>(PhantomData<T>);

impl<T: Decodes> Table<T> {
    const TABLE: &'static WithMetadata<DecoderTable> = &WithMetadata::new(DecoderTable {
        retain: retain::<T>,
        release: release::<T>,
        probe: probe::<T>,
        decode: decode::<T>,
    });
    const REF: DecoderTableRef = DecoderTableRef(Self::TABLE.static_as_prefix());
}

pub(super) unsafe extern "C" fn retain<T>(this: *const ()) {
    // SAFETY: `this` came from `Arc::into_raw` of this type, and the caller holds a reference.
    unsafe { Arc::increment_strong_count(this.cast::<Instance<T>>()) }
}

pub(super) unsafe extern "C" fn release<T>(this: *const ()) {
    let _ = guard(|| {
        // SAFETY: as above; the caller's reference ends here.
        drop(unsafe { Arc::from_raw(this.cast::<Instance<T>>()) });
        Outcome::of(code::READY, 0)
    });
}

unsafe extern "C" fn probe<T: Decodes>(
    this: *const (),
    head: RSlice<'_, u8>,
    extension: RStr<'_>,
) -> Outcome {
    // SAFETY: the table's rule: `this` is a live instance of this type, here and below.
    let this = unsafe { &*this.cast::<Instance<T>>() };
    this.with(|decodes| match decodes.probe(head.as_slice(), extension.as_str()) {
        Ok(sure) => Outcome::of(code::READY, sure.into()),
        Err(error) => Outcome::failed(error.into()),
    })
}

unsafe extern "C" fn decode<T: Decodes>(
    this: *const (),
    cx: &RawContext,
    bytes: &Buffer,
    wanted: &RawWanted<'_>,
    place: &mut Value,
) -> Outcome {
    // SAFETY: as above.
    let this = unsafe { &*this.cast::<Instance<T>>() };
    let wanted = Wanted { dtype: wanted.dtype, extension: wanted.extension.as_str() };
    let decoded = this.attempt(|decodes| {
        *place = decodes.decode(bytes, &wanted, &Context::new(cx))?;
        Ok(())
    });
    outcome(decoded.map_err(|error| this.value.blame(error)))
}
