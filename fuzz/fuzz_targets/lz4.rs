//! Any bytes as `lz4`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| forebay_fuzz::run(forebay_fuzz::lz4, bytes));
