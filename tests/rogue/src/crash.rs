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
