//! What any handler of a signal needs: a stack of its own, and what was there before it.
#![expect(unsafe_code, reason = "handlers of signals, which are C's, and the stacks they run on")]

use std::ptr;

/// For the handler, since the thread's own stack may be used up.
const STACK: usize = 64 << 10;

/// In a handler: leaves a signal to what was there before.
pub(super) fn pass_on(
    before: &libc::sigaction,
    (signal, info, context): (i32, *mut libc::siginfo_t, *mut libc::c_void),
) {
    // SAFETY: the system gives one with each signal.
    let told = unsafe { (*info).si_code } == libc::SI_USER;
    match before.sa_sigaction {
        libc::SIG_IGN if told => {}
        // What a thread does itself cannot be ignored.
        libc::SIG_IGN | libc::SIG_DFL => {
            // SAFETY: as the system would have done.
            unsafe {
                libc::signal(signal, libc::SIG_DFL);
                libc::raise(signal);
            }
        }
        handler if before.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: it was installed as one with these arguments.
            let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) =
                unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: it was installed as one with this argument.
            let handler: extern "C" fn(i32) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
    }
}

/// A stack for handlers, where the thread has none.
pub(super) struct Stack(Option<Vec<u8>>);

impl Stack {
    /// Without one, a stack that is used up ends the program.
    pub(super) fn new() -> Self {
        // SAFETY: all-zero is a valid `stack_t`.
        let mut old: libc::stack_t = unsafe { std::mem::zeroed() };
        // SAFETY: asks only.
        let asked = unsafe { libc::sigaltstack(ptr::null(), &raw mut old) };
        if asked != 0 || old.ss_flags & libc::SS_DISABLE == 0 {
            return Self(None);
        }
        let mut memory = vec![0; STACK];
        let new = libc::stack_t { ss_sp: memory.as_mut_ptr().cast(), ss_flags: 0, ss_size: memory.len() };
        // SAFETY: the memory is this thread's until it is taken away again, by the drop.
        let given = unsafe { libc::sigaltstack(&raw const new, ptr::null_mut()) };
        Self((given == 0).then_some(memory))
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        if self.0.is_some() {
            let none = libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: STACK };
            // SAFETY: no handler runs on it, since this does.
            unsafe { libc::sigaltstack(&raw const none, ptr::null_mut()) };
        }
    }
}
