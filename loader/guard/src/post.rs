//! What a handler knows of the thread that it runs on, where its crash is outlived.
#![expect(unsafe_code, reason = "a record that a handler finds by the address that its thread keeps")]

use std::{
    cell::Cell,
    ptr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicUsize, Ordering},
    },
};

use crate::{
    call::{Call, innermost},
    counter::Counter,
};

thread_local! {
    /// Of the thread that a handler runs on.
    pub(crate) static POST: Cell<*const ThreadRecord> = const { Cell::new(ptr::null()) };
}

/// What is known of one thread.
pub(crate) struct ThreadRecord {
    /// The segment that it works on, and one more; 0 for none that may crash.
    pub(crate) segment: AtomicUsize,
    /// The signal that it crashed with.
    pub(crate) signal: AtomicI32,
    /// The call that it crashed in.
    pub(crate) call: AtomicPtr<Call>,
    pub(crate) told: AtomicBool,
    pub(crate) bell: Arc<Counter>,
    pub(crate) gone: Arc<Counter>,
}

/// In the handler of a signal: stops the thread for good if it crashed at work that others go on without.
pub(crate) fn stop_if_guarded(signal: i32) {
    // SAFETY: what a thread's `Enlisted` keeps alive, and takes away before it goes.
    if let Some(post) = unsafe { POST.get().as_ref() }
        && post.segment.load(Ordering::Acquire) != 0
        && post.signal.load(Ordering::Acquire) == 0
    {
        post.call.store(innermost().cast_mut(), Ordering::Release);
        post.signal.store(signal, Ordering::Release);
        post.bell.up();
        post.gone.up();
        loop {
            // SAFETY: it may be called by handlers.
            unsafe { libc::pause() };
        }
    }
}
