//! How a pipe that had nothing says that it has something now.

use abi_stable::StableAbi;

use crate::shared::{Owner, keep, let_go, share};

/// Wakes whoever got "not available" from a pipe. Cheap to clone; may be called from any thread, any number of times.
#[repr(C)]
#[derive(StableAbi)]
pub struct Waker {
    wake: unsafe extern "C" fn(*const ()),
    target: *const (),
    owner: *const Owner,
}

// SAFETY: `new` asks for a target that is Send and Sync.
unsafe impl Send for Waker {}
// SAFETY: as above.
unsafe impl Sync for Waker {}

impl Waker {
    /// A waker that calls `wake`.
    pub fn new<F: Fn() + Send + Sync + 'static>(wake: F) -> Self {
        unsafe extern "C" fn call<F: Fn()>(target: *const ()) {
            // SAFETY: `target` is the `F` that the owner of this waker keeps alive.
            unsafe { (*target.cast::<F>())() }
        }
        let (owner, target) = share(wake);
        Self { wake: call::<F>, target: target.cast(), owner }
    }

    /// Says that asking again may give something now.
    pub fn wake(&self) {
        // SAFETY: `target` is what `wake` was made for, kept by `owner`.
        unsafe { (self.wake)(self.target) }
    }
}

impl Clone for Waker {
    fn clone(&self) -> Self {
        keep(self.owner);
        Self { ..*self }
    }
}

impl Drop for Waker {
    fn drop(&mut self) {
        // SAFETY: every handle owns one reference, and this one ends here.
        unsafe { let_go(self.owner) }
    }
}
