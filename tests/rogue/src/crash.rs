//! How a pipe takes its whole process with it, or what that has open.
#![expect(unsafe_code, reason = "closes what is not its own")]

use std::process::{self, Command};

/// Sends its own process this signal, until that works.
pub(crate) fn by_signal(signal: u64) -> ! {
    let signal = format!("-{signal}");
    // Rust's own handler lets the first SIGSEGV that is no fault pass.
    loop {
        let _ = Command::new("kill").args([&signal, &process::id().to_string()]).status();
    }
}

/// Uses up its thread's stack, which is a fault of this thread alone.
#[expect(unconditional_recursion, reason = "it is to have no end")]
pub(crate) fn by_depth(depth: u64) -> u64 {
    let page = std::hint::black_box([depth; 512]);
    by_depth(page[511] + 1) + page[0]
}

/// Closes the descriptors 3 to 63, whosever they are.
pub(crate) fn close_others() {
    unsafe extern "C" {
        safe fn close(descriptor: i32) -> i32;
    }
    for descriptor in 3..64 {
        close(descriptor);
    }
}
