//! See `counterproof_fuzz::differ`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| counterproof_fuzz::differ(bytes));
