//! Maps of files, which the host watches: another program may cut a file short while it is mapped.

use abi_stable::{StableAbi, std_types::RStr};

/// What a host offers to plugins that map files, for as long as the process lives. Every function may be called from any thread.
///
/// Touching a byte of a map that its file no longer has is a SIGBUS. The host puts zeros there, and whatever was made since fails with an
/// error that names the file.
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = MapsRef)))]
#[sabi(missing_field(panic))]
pub struct Maps {
    /// A map for reading begins at this address and has so many bytes of the file at this path. Gives a number for it.
    pub begin: extern "C" fn(usize, usize, RStr<'_>) -> u64,
    /// The map with this number is about to go. Its file has so many bytes now; `u64::MAX` where that is not known.
    pub end: extern "C" fn(u64, u64),
    /// How many maps of this process were cut short so far.
    #[sabi(last_prefix_field)]
    pub cut: extern "C" fn() -> u64,
}
