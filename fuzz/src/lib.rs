#![doc = include_str!("../README.md")]

use std::{
    panic::{catch_unwind, set_hook},
    process::abort,
    sync::{Mutex, Once, PoisonError},
};

/// Gives bytes to a parser, and aborts when it panics. A panic that it catches itself, as one of Arrow's library is, is none.
pub fn run(parser: fn(&[u8]), bytes: &[u8]) {
    static HOOK: Once = Once::new();
    static LAST: Mutex<String> = Mutex::new(String::new());
    HOOK.call_once(|| {
        set_hook(Box::new(|panic| *LAST.lock().unwrap_or_else(PoisonError::into_inner) = panic.to_string()));
    });
    if catch_unwind(|| parser(bytes)).is_err() {
        eprintln!("{}", LAST.lock().unwrap_or_else(PoisonError::into_inner));
        abort();
    }
}
