//! The smallest host: memory that was used before, and nothing else.

use forebay_core::abi::abi_stable::prefix_type::PrefixTypeTrait;
use forebay_core::abi::abi_stable::std_types::{ROption, RSlice, RStr};
use forebay_core::abi::{self, HostServices, HostServicesRef, Outcome, code};
use forebay_core::{BufferMut, Context, Limits};

extern "C" fn alloc(_: *const (), len: usize, out: &mut ROption<BufferMut>) -> Outcome {
    *out = ROption::RSome(BufferMut::from_owner(vec![0xa5; len]));
    Outcome::of(code::READY, 0)
}

extern "C" fn cancelled(_: *const ()) -> bool {
    false
}

extern "C" fn log(_: *const (), _: u32, _: RStr<'_>) {}

extern "C" fn decoder(
    _: *const (),
    _: RStr<'_>,
    _: RSlice<'_, u8>,
    _: RStr<'_>,
    _: &mut ROption<abi::Decoder>,
) -> Outcome {
    Outcome::of(code::END, 0)
}

extern "C" fn store(_: *const (), _: RStr<'_>, _: &mut ROption<abi::Store>) -> Outcome {
    Outcome::of(code::END, 0)
}

fn services() -> HostServicesRef {
    static SERVICES: std::sync::OnceLock<HostServicesRef> = std::sync::OnceLock::new();
    *SERVICES.get_or_init(|| HostServices { alloc, cancelled, log, decoder, store }.leak_into_prefix())
}

/// Calls `work` with the context of this epoch.
pub(crate) fn with_context<T>(epoch: u64, limits: Limits, work: impl FnOnce(&Context<'_>) -> T) -> T {
    let raw = abi::Context {
        services: services(),
        host: std::ptr::null(),
        seed: 7,
        epoch,
        pass: 0,
        node: 3,
        rank: 0,
        world_size: 1,
        limits,
        waker: std::ptr::null(),
        worker: 0,
        workers: 0,
        reserved: [0; 7],
    };
    work(&Context::new(&raw))
}
