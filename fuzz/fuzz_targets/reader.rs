//! See `counterproof_fuzz::reader`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| counterproof_fuzz::reader(bytes));
