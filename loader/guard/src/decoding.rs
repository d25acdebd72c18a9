//! Decoders as pipes are given them. Each call of a decoder has a record. So a crash, a stall and an error
//! name the decoder's plugin, and not that of the pipe which asked for it.
#![expect(unsafe_code, reason = "the table of a decoder is C functions over raw instances")]

use std::sync::Arc;

use forebay_core::{
    AnyDecoder, Buffer, Error, Value,
    abi::{
        Context, Decoder, DecoderTable, DecoderTableRef, Outcome, Wanted,
        abi_stable::{
            prefix_type::WithMetadata,
            std_types::{RBox, ROption, RSlice, RStr},
        },
    },
};

use super::call::{Callee, call};

/// A decoder, and who that is.
struct NamedDecoder {
    decoder: Decoder,
    callee: Callee,
}

/// The same decoder, whose calls are told of.
pub fn told(decoder: AnyDecoder, callee: Callee) -> AnyDecoder {
    let told = Arc::into_raw(Arc::new(NamedDecoder { decoder: decoder.into_raw(), callee }));
    // SAFETY: the table's functions take such an instance, and its one reference is given up.
    AnyDecoder::new(unsafe { Decoder::from_raw(told.cast(), REF) })
}

const TABLE: &WithMetadata<DecoderTable> =
    &WithMetadata::new(DecoderTable { retain, release, probe, decode });
const REF: DecoderTableRef = DecoderTableRef(TABLE.static_as_prefix());

unsafe extern "C" fn retain(this: *const ()) {
    // SAFETY: `this` came from `Arc::into_raw` of this type, and the caller holds a reference.
    unsafe { Arc::increment_strong_count(this.cast::<NamedDecoder>()) }
}

unsafe extern "C" fn release(this: *const ()) {
    // SAFETY: as above; the caller's reference ends here.
    drop(unsafe { Arc::from_raw(this.cast::<NamedDecoder>()) });
}

unsafe extern "C" fn probe(this: *const (), head: RSlice<'_, u8>, extension: RStr<'_>) -> Outcome {
    // SAFETY: the table's rule: `this` is a live instance of this type, here and below.
    let NamedDecoder { decoder, callee } = unsafe { &*this.cast::<NamedDecoder>() };
    // SAFETY: the handle pairs the instance with its table, here and below.
    let probed = call(callee, || unsafe { decoder.table().probe()(decoder.instance(), head, extension) });
    blamed(probed, callee)
}

unsafe extern "C" fn decode(
    this: *const (),
    cx: &Context,
    bytes: &Buffer,
    wanted: &Wanted<'_>,
    place: &mut Value,
) -> Outcome {
    // SAFETY: as above.
    let NamedDecoder { decoder, callee } = unsafe { &*this.cast::<NamedDecoder>() };
    // SAFETY: as above.
    let decoded =
        call(callee, || unsafe { decoder.table().decode()(decoder.instance(), cx, bytes, wanted, place) });
    blamed(decoded, callee)
}

/// Adds to a failure whose it is.
///
/// A success is made anew of its two numbers: the plugin wrote it in pieces, and to copy it whole would wait for them, 5 ns a call.
#[inline]
fn blamed(Outcome { code, detail, fault }: Outcome, callee: &Callee) -> Outcome {
    match fault {
        ROption::RSome(fault) => Outcome::failed(callee.on(Error::from(RBox::into_inner(fault))).into()),
        ROption::RNone => Outcome::of(code, detail),
    }
}
