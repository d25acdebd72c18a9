//! Any bytes as `hdf5_rows`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| forebay_fuzz::run(forebay_fuzz::hdf5_rows, bytes));
