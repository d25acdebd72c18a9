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
use crate::{Context, Decoder, Options, Result, Wanted, descriptor::Described, export::DecoderEntry};

/// The entry of a decoder.
#[must_use]
pub const fn decoder_entry<T: Decoder>() -> DecoderEntry {
    DecoderEntry { described: Described { info: T::INFO, options: T::Options::SPECS }, make: make::<T> }
}

fn make<T: Decoder>(options: &str) -> Result<RawDecoder> {
    let decoder = T::new(T::Options::parse(options)?)?;
    let instance = Arc::into_raw(Arc::new(Instance::new(decoder))).cast();
    // SAFETY: the instance is of the table's type, and its one reference is given up.
    Ok(unsafe { RawDecoder::from_raw(instance, Table::<T>::REF) })
}

struct Table<T>(PhantomData<T>);

impl<T: Decoder> Table<T> {
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

unsafe extern "C" fn probe<T: Decoder>(
    this: *const (),
    head: RSlice<'_, u8>,
    extension: RStr<'_>,
) -> Outcome {
    // SAFETY: the table's rule: `this` is a live instance of this type, here and below.
    let this = unsafe { &*this.cast::<Instance<T>>() };
    this.with(|decoder| Outcome::of(code::READY, decoder.probe(head.as_slice(), extension.as_str()).into()))
}

unsafe extern "C" fn decode<T: Decoder>(
    this: *const (),
    cx: &RawContext,
    bytes: &Buffer,
    wanted: &RawWanted<'_>,
    place: &mut Value,
) -> Outcome {
    // SAFETY: as above.
    let this = unsafe { &*this.cast::<Instance<T>>() };
    let wanted = Wanted { dtype: wanted.dtype, extension: wanted.extension.as_str() };
    this.with(|decoder| {
        let value = decoder.decode(bytes, &wanted, &Context::new(cx));
        outcome(value.map(|value| *place = value))
    })
}
