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
    guard::{Instance, catch, guard},
    outcome,
};
use crate::{Context, Decoder, Error, Options, Result, Wanted, descriptor::Described, export::DecoderEntry};

/// The entry of a decoder.
#[must_use]
pub const fn decoder_entry<T: Decoder>() -> DecoderEntry {
    DecoderEntry { described: Described { info: T::INFO, options: T::Options::SPECS }, make: make::<T> }
}

/// A decoder, and the plugin it is of: an error says both, since the pipe that called may be of another.
struct Owned<T> {
    decoder: T,
    plugin: &'static str,
}

fn make<T: Decoder>(options: &str, plugin: &'static str) -> Result<RawDecoder> {
    let decoder = Owned { decoder: T::new(T::Options::parse(options)?)?, plugin };
    let instance = Arc::into_raw(Arc::new(Instance::new(decoder))).cast();
    // SAFETY: the instance is of the table's type, and its one reference is given up.
    Ok(unsafe { RawDecoder::from_raw(instance, Table::<T>::REF) })
}

struct Table<T>(PhantomData<T>);

impl<T: Decoder> Table<T> {
    const TABLE: &'static WithMetadata<DecoderTable> = &WithMetadata::new(DecoderTable {
        retain: retain::<Owned<T>>,
        release: release::<Owned<T>>,
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
    let this = unsafe { &*this.cast::<Instance<Owned<T>>>() };
    this.with(|owned| {
        Outcome::of(code::READY, owned.decoder.probe(head.as_slice(), extension.as_str()).into())
    })
}

unsafe extern "C" fn decode<T: Decoder>(
    this: *const (),
    cx: &RawContext,
    bytes: &Buffer,
    wanted: &RawWanted<'_>,
    place: &mut Value,
) -> Outcome {
    // SAFETY: as above.
    let this = unsafe { &*this.cast::<Instance<Owned<T>>>() };
    let wanted = Wanted { dtype: wanted.dtype, extension: wanted.extension.as_str() };
    this.with(|owned| {
        let value = catch(|| owned.decoder.decode(bytes, &wanted, &Context::new(cx)));
        let name = |error: Error| error.context("decoder", format!("{} of {}", T::INFO.name, owned.plugin));
        outcome(value.map(|value| *place = value).map_err(name))
    })
}
