//! What the host gives with every call: who is calling, memory, limits, randomness, and its services.

use abi_stable::{
    StableAbi,
    std_types::{ROption, RSlice, RStr},
};

use crate::{BufferMut, Decoder, Key, Outcome, Store, Waker};

/// What a decoder may take, checked before memory is asked for.
#[repr(C)]
#[derive(StableAbi, Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes one value may decode to.
    pub bytes: u64,
    /// The most pixels one picture may have.
    pub pixels: u64,
}

impl Limits {
    /// One GiB a value, 256 Mi pixels a picture.
    pub const DEFAULT: Self = Self { bytes: 1 << 30, pixels: 1 << 28 };
}

/// The context of one call. It lives as long as the call.
#[repr(C)]
#[derive(StableAbi, Clone)]
pub struct Context {
    /// The host's services.
    pub services: HostServicesRef,
    /// The first argument of each service.
    pub host: *const (),
    /// The run's seed.
    pub seed: u64,
    /// The epoch, from 0.
    pub epoch: u64,
    /// Which pass of the epoch this is for this node: 0 for the first; another number for each time it was started over.
    pub pass: u64,
    /// A hash of the node's name, so that two nodes of one kind draw different numbers.
    pub node: u64,
    /// This process among those that share the data, from 0.
    pub rank: u32,
    /// How many processes share the data.
    pub world_size: u32,
    /// What may be taken.
    pub limits: Limits,
    /// To be cloned by a pipe that has nothing now; null where the caller does not wait.
    pub waker: *const Waker,
    /// This process among the loader's worker processes, from 0.
    pub worker: u32,
    /// How many worker processes the loader has; 0 in its own process.
    pub workers: u32,
    /// Zero; room for what comes, as numbers that functions read out of these words, so that the layout stays. The last
    /// is the address of a [`Noting`], and the one before it [tells loaders apart](Context::TAG).
    pub reserved: [u64; 7],
}

/// Since 1.2: gives the place, for the call of a pipe that runs on this thread, where the pipe says which sample it is at: the address of
/// the sample's key, or null. The host reads it when the call crashes. Null outside of such a call.
pub type Noting = extern "C" fn() -> *mut *const Key;

impl Context {
    /// The word of [`reserved`](Context::reserved) that is a [`Noting`].
    pub const NOTING: usize = 6;

    /// The word of [`reserved`](Context::reserved) by which a program tells its loaders apart; 0 unless it does.
    pub const TAG: usize = 5;

    /// What the host's [`Noting`] gives; null where the host is older.
    #[must_use]
    #[inline]
    pub fn note(&self) -> *mut *const Key {
        match usize::try_from(self.reserved[Self::NOTING]) {
            Ok(0) | Err(_) => std::ptr::null_mut(),
            // SAFETY: a host puts nothing else there than the address of such a function.
            Ok(address) => unsafe { std::mem::transmute::<*const (), Noting>(address as *const ())() },
        }
    }
}

// SAFETY: the host's services may be called from any thread, and the waker is Sync.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

/// What a host offers to plugins. Every function takes [`Context::host`] first and may be called from any thread.
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = HostServicesRef)))]
#[sabi(missing_field(panic))]
pub struct HostServices {
    /// Memory for output: so many bytes, recycled by the host when the last buffer over them is dropped.
    pub alloc: unsafe extern "C" fn(*const (), usize, &mut ROption<BufferMut>) -> Outcome,
    /// Whether the run was stopped.
    pub cancelled: unsafe extern "C" fn(*const ()) -> bool,
    /// Writes a line to the host's log: level 1 error, 2 warning, 3 information, 4 detail.
    pub log: unsafe extern "C" fn(*const (), u32, RStr<'_>),
    /// The decoder for bytes with this extension and head, by rank; a name pins the choice.
    pub decoder:
        unsafe extern "C" fn(*const (), RStr<'_>, RSlice<'_, u8>, RStr<'_>, &mut ROption<Decoder>) -> Outcome,
    /// The store for this URL scheme.
    #[sabi(last_prefix_field)]
    pub store: unsafe extern "C" fn(*const (), RStr<'_>, &mut ROption<Store>) -> Outcome,
}
