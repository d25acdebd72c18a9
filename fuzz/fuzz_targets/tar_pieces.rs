//! Any bytes as `tar_pieces`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| forebay_fuzz::run(forebay_fuzz::tar_pieces, bytes));
