//! Calls of the host's services and of other plugins' decoders.

use forebay_abi::{
    Buffer, BufferMut, Context, Decoder, Listing, Outcome, Store, Value, Waker, Wanted,
    abi_stable::std_types::{ROption, RSlice, RStr, RVec},
};

pub(crate) fn alloc(cx: &Context, len: usize, out: &mut ROption<BufferMut>) -> Outcome {
    // SAFETY: `host` is the first argument of the services beside it, here and below.
    unsafe { cx.services.alloc()(cx.host, len, out) }
}

pub(crate) fn cancelled(cx: &Context) -> bool {
    // SAFETY: as above.
    unsafe { cx.services.cancelled()(cx.host) }
}

pub(crate) fn log(cx: &Context, level: u32, line: RStr<'_>) {
    // SAFETY: as above.
    unsafe { cx.services.log()(cx.host, level, line) }
}

pub(crate) fn waker(cx: &Context) -> Option<Waker> {
    // SAFETY: null or valid for the call.
    unsafe { cx.waker.as_ref() }.cloned()
}

pub(crate) fn decoder(
    cx: &Context,
    extension: RStr<'_>,
    head: RSlice<'_, u8>,
    name: RStr<'_>,
    out: &mut ROption<Decoder>,
) -> Outcome {
    // SAFETY: as for `alloc`.
    unsafe { cx.services.decoder()(cx.host, extension, head, name, out) }
}

pub(crate) fn probe(decoder: &Decoder, head: RSlice<'_, u8>, extension: RStr<'_>) -> Outcome {
    // SAFETY: the handle pairs the instance with its table, here and below.
    unsafe { decoder.table().probe()(decoder.instance(), head, extension) }
}

#[inline]
pub(crate) fn decode(
    decoder: &Decoder,
    cx: &Context,
    bytes: &Buffer,
    wanted: &Wanted<'_>,
    out: &mut Value,
) -> Outcome {
    // SAFETY: as above.
    unsafe { decoder.table().decode()(decoder.instance(), cx, bytes, wanted, out) }
}

pub(crate) fn store(cx: &Context, scheme: RStr<'_>, out: &mut ROption<Store>) -> Outcome {
    // SAFETY: as for `alloc`.
    unsafe { cx.services.store()(cx.host, scheme, out) }
}

pub(crate) fn list(store: &Store, path: RStr<'_>, out: &mut RVec<Listing>) -> Outcome {
    // SAFETY: as for `probe`, here and below.
    unsafe { store.table().list()(store.instance(), path, out) }
}

pub(crate) fn size(store: &Store, path: RStr<'_>, out: &mut u64) -> Outcome {
    // SAFETY: as above.
    unsafe { store.table().size()(store.instance(), path, out) }
}

pub(crate) fn read(store: &Store, path: RStr<'_>, offset: u64, len: u64, out: &mut Buffer) -> Outcome {
    // SAFETY: as above.
    unsafe { store.table().read()(store.instance(), path, offset, len, out) }
}

pub(crate) fn map(store: &Store, path: RStr<'_>, out: &mut ROption<Buffer>) -> Outcome {
    // SAFETY: as above.
    unsafe { store.table().map()(store.instance(), path, out) }
}
