//! Any bytes as `json_array`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| forebay_fuzz::run(forebay_fuzz::json_array, bytes));
