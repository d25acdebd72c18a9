//! The signals of a crash, and the end of the program, as far as a plugin may be behind them: whoever dies in a plugin's call says in which.
//!
//! Handlers that were there before are called afterwards, so a program and its runtime see each crash as they would without this.
#![expect(unsafe_code, reason = "handlers of signals, which are C's, and the stacks they run on")]

use std::{
    io, ptr,
    sync::{
        OnceLock,
        atomic::{AtomicI32, Ordering},
    },
};

use super::{
    call::{self, CallReport, tell},
    handler::pass_on,
    maps,
    post::stop_if_guarded,
};

/// The variable that is set for worker processes.
pub const WORKER: &str = "FOREBAY_WORKER";
/// What a crash is known by.
const SIGNALS: [i32; 7] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT, libc::SIGSYS, libc::SIGTRAP];
/// What a reader can do about a crash, and about the end of the program.
const ON_CRASH: &str = "isolate the plugin: with `--isolate on-crash` the run goes on in worker processes";
const ON_EXIT: &str = "isolate the plugin: with `--isolate process` it ends only a worker process";

/// The process that these handlers are for: a child that a plugin forks has them too, and is none of ours.
static PROGRAM: AtomicI32 = AtomicI32::new(0);
/// What the signals did before.
static BEFORE: OnceLock<Vec<libc::sigaction>> = OnceLock::new();

/// The number of a signal, and what it means.
pub fn signal_text(signal: i32) -> String {
    format!("signal {signal}{}", signal_name(signal))
}

/// What a signal means.
pub fn signal_name(signal: i32) -> &'static str {
    match signal {
        4 => " (SIGILL, an illegal instruction)",
        6 => " (SIGABRT, it aborted)",
        7 => " (SIGBUS, such as a file cut short)",
        8 => " (SIGFPE, bad arithmetic)",
        9 => " (SIGKILL, such as for lack of memory)",
        11 => " (SIGSEGV, bad memory)",
        15 => " (SIGTERM)",
        31 => " (SIGSYS, a forbidden system call)",
        _ => "",
    }
}

/// Installs the signal handlers that the first loaded plugin would install. They name the plugin that crashes, and
/// find files that are cut short while they are mapped.
///
/// Each handler calls the handler that was there before. Call this first if your own handlers must come before
/// these. Further calls do nothing.
pub fn install_signal_handlers() {
    watch_plugins();
    maps::install();
}

/// Has the program say which plugin it died in; before any code of a plugin runs.
///
/// What cannot be had of this is done without.
pub fn watch_plugins() {
    if std::env::var_os(WORKER).is_some() {
        return; // What happens in a worker, its loader tells.
    }
    let _ = install();
    static AT_EXIT: OnceLock<()> = OnceLock::new();
    // SAFETY: the function is there as long as the program.
    AT_EXIT.get_or_init(|| unsafe {
        libc::atexit(on_exit);
    });
}

/// Turns the end of the program within a plugin's call into an error.
///
/// It runs on the thread that ends the program, and does nothing for one that is in no plugin's call.
extern "C" fn on_exit() {
    // SAFETY: the call is one of this thread.
    if let Some(told) = unsafe { CallReport::new(call::untold()) }.filter(|_| is_program()) {
        tell(&told, format_args!("a plugin ended the whole program by `exit`"), ON_EXIT);
        // SAFETY: it ends the process, whose other threads may be at anything.
        unsafe { libc::_exit(1) }
    }
}

/// Ends this process at once. Nothing that a library wants done at the end is done: its other threads may be at anything, and a destructor
/// would take from under them what they use.
pub fn leave(status: i32) -> ! {
    // SAFETY: it ends the process, and returns to nobody.
    unsafe { libc::_exit(status) }
}

/// Has the signals of a crash come here first, once for the whole program.
pub(super) fn install() -> io::Result<()> {
    // SAFETY: it asks only, here and below.
    PROGRAM.store(unsafe { libc::getpid() }, Ordering::Relaxed);
    static FAILED: OnceLock<Option<i32>> = OnceLock::new();
    let failed = FAILED.get_or_init(|| {
        let mut before = Vec::new();
        for signal in SIGNALS {
            // SAFETY: all-zero is a valid `sigaction`; likewise below.
            let mut old: libc::sigaction = unsafe { std::mem::zeroed() };
            // SAFETY: asks only.
            unsafe { libc::sigaction(signal, ptr::null(), &raw mut old) };
            before.push(old);
        }
        // Before any handler can look for it.
        let _ = BEFORE.set(before);
        for signal in SIGNALS {
            // SAFETY: as above.
            let mut new: libc::sigaction = unsafe { std::mem::zeroed() };
            new.sa_sigaction = on_signal as *const () as usize;
            // One that has stopped does nothing else.
            // SAFETY: it is a set of signals.
            unsafe { libc::sigfillset(&raw mut new.sa_mask) };
            new.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
            // SAFETY: the handler does only what a handler may; see there.
            if unsafe { libc::sigaction(signal, &raw const new, ptr::null_mut()) } != 0 {
                return io::Error::last_os_error().raw_os_error();
            }
        }
        None
    });
    failed.map_or(Ok(()), |error| Err(io::Error::from_raw_os_error(error)))
}

/// Whether this process installed the handlers.
fn is_program() -> bool {
    // SAFETY: as above.
    PROGRAM.load(Ordering::Relaxed) == unsafe { libc::getpid() }
}

/// Stops a thread that crashed where that is outlived; of any other crash it says where it was, and leaves it to whose it was before.
///
/// It may come between any two instructions, so it takes no lock and no memory.
extern "C" fn on_signal(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    if signal == libc::SIGBUS && maps::mend(info) {
        return;
    }
    // SAFETY: the system gives one with each signal.
    let told = unsafe { (*info).si_code } == libc::SI_USER;
    // One by another program comes to whichever thread.
    if !told && is_program() {
        stop_if_guarded(signal);
        // SAFETY: the call is one of this thread.
        if let Some(call) = unsafe { CallReport::new(call::untold()) } {
            tell(
                &call,
                format_args!("a plugin crashed with signal {signal}{}", signal_name(signal)),
                ON_CRASH,
            );
        }
    }
    let known = SIGNALS.iter().position(|&known| known == signal);
    let Some(before) = BEFORE.get().zip(known).and_then(|(before, at)| before.get(at)) else { return };
    pass_on(before, (signal, info, context));
}
