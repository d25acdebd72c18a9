//! Any bytes as `csv`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| forebay_fuzz::run(forebay_fuzz::csv, bytes));
