//! The smallest host: memory that was used before, small limits, and nothing else.

use std::{ptr, sync::OnceLock};

use forebay_core::{
    BufferMut, Context, Limits,
    abi::{
        self, HostServices, HostServicesRef, Outcome,
        abi_stable::{
            prefix_type::PrefixTypeTrait as _,
            std_types::{ROption, RSlice, RStr},
        },
        code,
    },
};

/// Calls `work` with a context that has these limits.
pub(crate) fn with_context<T>(limits: Limits, work: impl FnOnce(&Context<'_>) -> T) -> T {
    static SERVICES: OnceLock<HostServicesRef> = OnceLock::new();
    let services =
        || HostServices { alloc, cancelled, log, decoder: no_decoder, store: no_store }.leak_into_prefix();
    let raw = abi::Context {
        services: *SERVICES.get_or_init(services),
        host: ptr::null(),
        seed: 7,
        epoch: 0,
        pass: 0,
        node: 3,
        rank: 0,
        world_size: 1,
        limits,
        waker: ptr::null(),
        worker: 0,
        workers: 0,
        reserved: [0; 7],
    };
    work(&Context::new(&raw))
}

extern "C" fn alloc(_: *const (), len: usize, place: &mut ROption<BufferMut>) -> Outcome {
    *place = ROption::RSome(BufferMut::from_owner(vec![0xa5; len]));
    Outcome::of(code::READY, 0)
}

extern "C" fn cancelled(_: *const ()) -> bool {
    false
}

extern "C" fn log(_: *const (), _: u32, _: RStr<'_>) {}

extern "C" fn no_decoder(
    _: *const (),
    _: RStr<'_>,
    _: RSlice<'_, u8>,
    _: RStr<'_>,
    _: &mut ROption<abi::Decoder>,
) -> Outcome {
    Outcome::of(code::END, 0)
}

extern "C" fn no_store(_: *const (), _: RStr<'_>, _: &mut ROption<abi::Store>) -> Outcome {
    Outcome::of(code::END, 0)
}
