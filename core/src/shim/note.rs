//! Tells the host which sample a call is at, so that it can name the sample after a crash.

use forebay_abi::{Context as RawContext, Key};

/// The place in the host that holds the address of the key of the sample that is being worked on; none of an older host.
#[derive(Clone, Copy)]
pub(crate) struct Note(*mut *const Key);

// SAFETY: the shim alone writes there, on the thread of the call.
unsafe impl Send for Note {}
// SAFETY: as above.
unsafe impl Sync for Note {}

impl Note {
    pub(crate) const NONE: Self = Self(std::ptr::null_mut());

    /// The place for the call that runs on this thread.
    pub(super) fn of(cx: &RawContext) -> Self {
        Self(cx.note())
    }

    /// The call works on the sample with this key from here on.
    ///
    /// The key must stay where it is until the next note, or until the author's code cannot run any more.
    #[inline]
    pub(super) fn at(self, key: *const Key) {
        if !self.0.is_null() {
            // SAFETY: the host's place lives as long as the call. Volatile, since its reader is the handler of a signal.
            unsafe { self.0.write_volatile(key) }
        }
    }
}
