//! How a pipe takes its whole process with it.

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
