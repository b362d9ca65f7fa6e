//! See `counterproof_fuzz::renderer`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| counterproof_fuzz::renderer(bytes));
