//! Shared ownership across libraries: a reference count with its own retain and release.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicUsize, Ordering, fence},
};

use abi_stable::StableAbi;

/// The head of every shared allocation: how to keep it and how to let it go.
///
/// Both functions may be called from any thread, and take the address of this head.
#[repr(C)]
#[derive(StableAbi)]
pub struct Owner {
    /// Adds one reference.
    pub retain: unsafe extern "C" fn(*const ()),
    /// Drops one reference, and the allocation with the last one.
    pub release: unsafe extern "C" fn(*const ()),
}

/// A value with an [`Owner`] head; only ever reached through that head once shared.
#[repr(C)]
struct Shared<T> {
    owner: Owner,
    count: AtomicUsize,
    value: T,
}

/// Moves `value` to the heap behind an [`Owner`] with one reference; gives the head and the value's place.
pub(crate) fn share<T: Send + Sync + 'static>(value: T) -> (*const Owner, *const T) {
    let owner = Owner { retain: retain::<T>, release: release::<T> };
    let shared = Box::into_raw(Box::new(Shared { owner, count: AtomicUsize::new(1), value }));
    // SAFETY: `shared` was just made from a box; only the field's address is taken.
    (shared.cast(), unsafe { &raw const (*shared).value })
}

unsafe extern "C" fn retain<T>(owner: *const ()) {
    // SAFETY: `owner` is the head of a live `Shared<T>`: the caller holds a reference to it. Only the count
    // is borrowed: somebody may be writing to the value.
    let count = unsafe { &(*owner.cast::<Shared<T>>()).count };
    // Relaxed: a new reference is made from one that is held, so nothing needs ordering (as in `Arc`).
    count.fetch_add(1, Ordering::Relaxed);
}

unsafe extern "C" fn release<T>(owner: *const ()) {
    let shared = owner.cast::<Shared<T>>();
    // SAFETY: as in `retain`; the reference given up here is the caller's.
    if unsafe { &(*shared).count }.fetch_sub(1, Ordering::Release) != 1 {
        return;
    }
    fence(Ordering::Acquire);
    // A panic must not unwind into another library; the value is gone either way.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: that was the last reference, and the allocation came from a box.
        drop(unsafe { Box::from_raw(shared.cast_mut()) });
    }));
}

/// Adds a reference to `owner`, unless it is null (memory that lives for ever).
#[inline]
pub(crate) fn keep(owner: *const Owner) {
    if !owner.is_null() {
        // SAFETY: a non-null owner held by a live handle is a valid head (invariant of every handle here).
        unsafe { ((*owner).retain)(owner.cast()) }
    }
}

/// Gives up a reference to `owner`, unless it is null.
///
/// # Safety
/// The caller owns the reference and does not use it again.
#[inline]
pub(crate) unsafe fn let_go(owner: *const Owner) {
    if !owner.is_null() {
        // SAFETY: as in `keep`; the caller gives up its reference.
        unsafe { ((*owner).release)(owner.cast()) }
    }
}
