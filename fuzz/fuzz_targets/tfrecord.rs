//! Any bytes as `tfrecord`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| forebay_fuzz::run(forebay_fuzz::tfrecord, bytes));
